"""URDF, with what coupler adds to it: read from a file, with the loops that are described beside it, and written."""
