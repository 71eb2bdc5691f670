"""A form that only contact knows, and which ones have no end."""

from __future__ import annotations

from dataclasses import dataclass

from coupler.model.height_fields import HeightField
from coupler.model.shapes import Geometry, Plane


@dataclass(frozen=True, eq=False)
class Point(Geometry):
    """A point, at the origin of its frame."""


def is_endless(geometry: Geometry) -> bool:
    """Whether a form goes down without end, so that there is no ball around it."""
    return isinstance(geometry, Plane | HeightField)
