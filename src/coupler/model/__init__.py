"""What a robot is made of: joints and bodies."""

from coupler.model.bodies import Body
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.joints import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)

__all__ = [
    "Body",
    "Continuous",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "ModelError",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
]
