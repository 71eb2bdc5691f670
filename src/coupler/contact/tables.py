"""Forms and poses of pairs of shapes as kernels see them: what is a number of the model is in a table.

So kernels are shared by shapes of a kind, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from coupler.contact.convex.program import Forms, Located, form_of
from coupler.contact.forms import Hull
from coupler.contact.pairs import Pair
from coupler.graph import View
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry, Sphere
from coupler.spatial import Transform

__all__ = ["SIDES", "form", "forms", "locating", "numbers", "pose"]

Array = Any  # nodes of a trace

SIDES = "one", "other"
_NUMBERS: dict[type, tuple[str, ...]] = {  # of forms whose contacts are traced once for any numbers
    Sphere: ("radius",),
    Capsule: ("radius", "length"),
    Box: ("size",),
    Cylinder: ("radius", "length"),
}


def forms(pair: Pair) -> Forms:
    """The geometries of both shapes."""
    return pair.one.geometry, pair.other.geometry


def form(geometry: Geometry, searched: bool) -> Hashable:
    """What the trace of a geometry's contacts depends on."""
    if searched and isinstance(geometry, Hull):
        return form_of(geometry)
    named = _NUMBERS.get(type(geometry), ())
    values = [np.asarray(value) for name, value in vars(geometry).items() if name not in named]
    return type(geometry), *((value.shape, value.tobytes()) for value in values)


def numbers(geometry: Geometry) -> np.ndarray:
    """Of a form that is traced once for any numbers: these."""
    parts = [np.atleast_1d(getattr(geometry, name)) for name in _NUMBERS.get(type(geometry), ())]
    return np.concatenate([np.zeros(0), *parts])


def _with_numbers(geometry: Geometry, values: Array) -> Geometry:
    """The same form with its numbers from a table; they were checked when it was made."""
    named = _NUMBERS.get(type(geometry))
    if not named:
        return geometry
    found, start = object.__new__(type(geometry)), 0
    for name in named:
        size = np.size(getattr(geometry, name))
        object.__setattr__(found, name, values[start] if size == 1 else values[start : start + size])
        start += size
    return found


def locating(pair: Pair, moving: Mapping[str, bool]) -> Located:
    """How kernels find forms and poses of a pair: see `Located`."""

    def located(here: View) -> tuple[Forms, tuple[Transform, Transform]]:
        """The forms of a pair, with their numbers, and their poses."""
        own = [
            _with_numbers(geometry, getattr(here, f"{name}_numbers"))
            for geometry, name in zip(forms(pair), SIDES, strict=True)
        ]
        X = [
            Transform(getattr(here, f"{name}_at_E"), getattr(here, f"{name}_at_r")) @ pose(here, name, moves)
            for name, moves in moving.items()
        ]
        return (own[0], own[1]), (X[0], X[1])

    return located


def pose(here: View, name: str, moves: bool) -> Transform:
    """The pose of the link that carries a shape."""
    return Transform(getattr(here, f"{name}_E"), getattr(here, f"{name}_r")) if moves else Transform.identity()
