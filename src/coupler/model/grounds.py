"""What robots stand on: floors and terrains, as shapes of the ground."""

from __future__ import annotations

from typing import Any

from coupler.model.height_fields import HeightField
from coupler.model.numbers import numbers
from coupler.model.places import Place, placed
from coupler.model.shapes import Plane, Shape
from coupler.model.tree import GROUND
from coupler.spatial import Transform

_EVERYTHING = -1  # all bits of a shape's `meets`: whatever has a group touches the ground


def floor_shape(name: str, friction: float | None, height: float, restitution: float | None) -> Shape:
    """The plane z = height; see `Robot.with_floor`."""
    place = Transform.translation((0.0, 0.0, float(numbers("height", height, ()))))
    return Shape(name, GROUND, Plane(), place, meets=_EVERYTHING, friction=friction, restitution=restitution)


def terrain_shape(name: str, heights: Any, size: Any, at: Place, turned: Any, friction: float | None) -> Shape:
    """Ground of given heights over a grid; see `Robot.with_terrain`."""
    place = placed(f"shape {name!r}", at, turned)
    return Shape(name, GROUND, HeightField(heights, size), place, meets=_EVERYTHING, friction=friction)
