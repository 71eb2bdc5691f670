"""The kinds of joints: how one body moves relative to another.

A joint connects a predecessor frame to a successor frame. Its position q determines the transform between them, and its
velocity v the motion S v of the successor relative to the predecessor, in the successor's frame. Where q has as many
entries as v, v is q̇. An orientation is a unit quaternion, and its velocity the angular velocity in the successor's
frame.

`transform` and its two halves, `keep` and `placed`, `subspace`, `subspace_rate`, `integrate` and `difference` take
floats or nodes of a trace. A new kind is a subclass of `Joint` (joint.py); docs/extending.md shows one.
"""

from coupler.model.joints.axial import Continuous, Cylindrical, Fixed, Helical, Prismatic, Revolute
from coupler.model.joints.orientations import Free, Spherical
from coupler.model.joints.planar import Planar, Universal

__all__ = [
    "Continuous",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
]
