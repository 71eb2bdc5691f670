"""MJCF: read through MuJoCo, and written."""
