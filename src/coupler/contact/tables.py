"""Forms and poses of pairs of shapes as kernels see them: what is a number of the model is in a table.

So kernels are shared by shapes of a kind, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from coupler.contact.geometry import HeightField, contacts
from coupler.contact.pairs import Pair
from coupler.graph import View
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry, Sphere
from coupler.spatial import Transform

__all__ = [
    "SIDES",
    "Forms",
    "finding_kernel",
    "form",
    "forms",
    "locating",
    "numbers",
    "pose",
    "shape_of",
    "width_of",
    "with_numbers",
]

Array = Any  # nodes of a trace

Forms = tuple[Geometry, Geometry]
Located = Callable[[View], tuple[Forms, tuple[Transform, Transform]]]  # forms with their numbers, and poses

SIDES = "one", "other"
_NUMBERS: dict[type, tuple[str, ...]] = {  # of forms whose contacts are traced once for any numbers
    Sphere: ("radius",),
    Capsule: ("radius", "length"),
    Box: ("size",),
    Cylinder: ("radius", "length"),
    HeightField: ("grid",),
}


def forms(pair: Pair) -> Forms:
    """The geometries of both shapes."""
    return pair.one.geometry, pair.other.geometry


def form(geometry: Geometry) -> Hashable:
    """What a trace depends on, of a geometry."""
    if isinstance(geometry, HeightField):
        return HeightField, id(geometry.table)
    named = _NUMBERS.get(type(geometry), ())
    values = [np.asarray(value) for name, value in vars(geometry).items() if name not in named]
    return type(geometry), *((value.shape, value.tobytes()) for value in values)


def numbers(geometry: Geometry) -> np.ndarray:
    """Of a form that is traced once for any numbers: these."""
    parts = [np.atleast_1d(getattr(geometry, name)) for name in _NUMBERS.get(type(geometry), ())]
    return np.concatenate([np.zeros(0), *parts])


def with_numbers(geometry: Geometry, values: Array) -> Geometry:
    """The same form with its numbers from a table; they were checked when it was made."""
    named = _NUMBERS.get(type(geometry))
    if not named:
        return geometry
    found, start = object.__new__(type(geometry)), 0
    vars(found).update(vars(geometry))
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
            with_numbers(geometry, getattr(here, f"{name}_numbers"))
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


def finding_kernel(pair: Pair, moving: Mapping[str, bool]) -> Callable[[View], None]:
    """The kernel that finds the contacts of pairs with a closed form."""
    located = locating(pair, moving)

    def finding(here: View) -> None:
        both, X = located(here)
        for k, contact in enumerate(contacts(*both, *X)):
            setattr(here, f"gaps{k}", np.array(contact.gap))
            setattr(here, f"points{k}", contact.point)
            setattr(here, f"frames{k}", contact.frame)

    return finding


def shape_of(name: str) -> tuple[int, ...]:
    """The shape of what is told of a contact."""
    return {"gaps": (), "frames": (3, 3)}.get(name, (3,))


def width_of(name: str) -> int:
    """How many numbers are told of a contact."""
    return int(np.prod(shape_of(name), dtype=int))
