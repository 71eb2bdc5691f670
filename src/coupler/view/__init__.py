"""Pictures of robots and of their motions."""

from coupler.view.motion import plot_motion

__all__ = ["plot_motion"]
