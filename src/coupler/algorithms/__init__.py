"""The cluster algorithms, one a file."""
