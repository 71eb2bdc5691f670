"""Passes over the clusters of a robot: what algorithms are written in, and how they become programs."""

from coupler.graph import symmetric
from coupler.passes.assembly import Assembly, Steps
from coupler.passes.body import Body, Output
from coupler.passes.climb import Climb, velocities_of
from coupler.passes.cluster import Cluster
from coupler.passes.columns import Columns, Rise, Start
from coupler.passes.frame import FrameMotion, FrameSweep
from coupler.passes.loads import add_element_energy, add_loads
from coupler.passes.paths import Paths
from coupler.passes.pieces import Piece
from coupler.passes.shape import Shape
from coupler.passes.spanning import Spanning
from coupler.passes.sweep import Sweep

__all__ = [
    "Assembly",
    "Body",
    "Climb",
    "Cluster",
    "Columns",
    "FrameMotion",
    "FrameSweep",
    "Output",
    "Paths",
    "Piece",
    "Rise",
    "Shape",
    "Spanning",
    "Start",
    "Steps",
    "Sweep",
    "add_element_energy",
    "add_loads",
    "symmetric",
    "velocities_of",
]
