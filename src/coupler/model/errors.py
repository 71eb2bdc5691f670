"""The one error type of models, and the one warning."""


class ModelError(ValueError):
    """A robot cannot be as described; the message names the culprit and the way out."""


class ModelWarning(UserWarning):
    """A robot is used other than its file says, or is suspicious; the message names what."""
