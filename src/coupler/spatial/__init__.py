"""Spatial vector algebra, for bodies and for clusters of bodies."""

from coupler.spatial.body import (
    RigidInertia,
    Transform,
    cross,
    cross_force,
    cross_force_matrix,
    cross_motion,
    cross_motion_matrix,
    mirrored,
    skew,
)
from coupler.spatial.cluster import ClusterTransform, Remap, block, split, stack

__all__ = [
    "ClusterTransform",
    "Remap",
    "RigidInertia",
    "Transform",
    "block",
    "cross",
    "cross_force",
    "cross_force_matrix",
    "cross_motion",
    "cross_motion_matrix",
    "mirrored",
    "skew",
    "split",
    "stack",
]
