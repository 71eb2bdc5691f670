"""Robot files: URDF, URDF+, xacro, MJCF, SDFormat and tables, and loops that are described beside them."""

from coupler.io.load import load

__all__ = ["load"]
