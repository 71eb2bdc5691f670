"""SDFormat: models and worlds of 1.4 to 1.11, read and written."""
