"""Pictures of robots that move."""

from coupler.view.motion import plot_motion

__all__ = ["plot_motion"]
