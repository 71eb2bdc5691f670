"""Robot files: URDF, URDF+, xacro and MJCF, and loops that are described beside them."""

from coupler.io.load import load

__all__ = ["load"]
