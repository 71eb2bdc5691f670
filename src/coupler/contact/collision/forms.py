"""Terms of all collision code: the point as a form of its own, forms without end, and places of contacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coupler.model.height_fields import HeightField
from coupler.model.shapes import Geometry, Plane

ContactPlace = tuple[Any, Any, Any]  # gap, m, point and normal of a contact, on floats or nodes


@dataclass(frozen=True, eq=False)
class Point(Geometry):
    """A point, at the origin of its frame."""


def is_endless(geometry: Geometry) -> bool:
    """Whether a form extends downwards without end, so that no ball surrounds it."""
    return isinstance(geometry, Plane | HeightField)
