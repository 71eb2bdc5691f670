"""The point, a form that only contact knows, and which forms have no end."""

from __future__ import annotations

from dataclasses import dataclass

from coupler.model.height_fields import HeightField
from coupler.model.shapes import Geometry, Plane


@dataclass(frozen=True, eq=False)
class Point(Geometry):
    """A point, at the origin of its frame."""


def is_endless(geometry: Geometry) -> bool:
    """Whether a form extends downwards without end, so that no ball surrounds it."""
    return isinstance(geometry, Plane | HeightField)
