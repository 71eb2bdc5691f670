"""Passes over the clusters of a robot: what algorithms are written in, and how they become programs."""

from coupler.graph import symmetric
from coupler.passes.body import Body, Output
from coupler.passes.climb import Climb, velocities_of
from coupler.passes.cluster import Cluster
from coupler.passes.frame import FrameMotion, FrameSweep
from coupler.passes.loads import add_element_energy, add_loads
from coupler.passes.paths import Paths
from coupler.passes.shape import Shape
from coupler.passes.spanning import Spanning
from coupler.passes.sweep import Sweep

__all__ = [
    "Body",
    "Climb",
    "Cluster",
    "FrameMotion",
    "FrameSweep",
    "Output",
    "Paths",
    "Shape",
    "Spanning",
    "Sweep",
    "add_element_energy",
    "add_loads",
    "symmetric",
    "velocities_of",
]
