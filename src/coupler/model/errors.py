"""The error and the warning that models raise."""


class ModelError(ValueError):
    """A description or an argument that cannot be right; the message names the culprit and a remedy."""


class ModelWarning(UserWarning):
    """A robot that is suspicious, or of whose file something is ignored; the message says what."""
