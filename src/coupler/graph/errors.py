"""The one error type of the compiler."""


class GraphError(ValueError):
    """What was asked of the compiler cannot be done; the message names the culprit and the way out."""
