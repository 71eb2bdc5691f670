"""The one error type of models."""


class ModelError(ValueError):
    """A robot cannot be as described; the message names the culprit and the way out."""
