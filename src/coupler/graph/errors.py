"""The one error type of the compiler."""


class GraphError(ValueError):
    """A request that the compiler cannot fulfil; the message names the culprit and a remedy."""
