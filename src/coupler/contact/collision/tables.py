"""Forms and poses of pairs of shapes as kernels see them: what is a number of the model is in a table.

So kernels are shared by shapes of a kind, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import contacts
from coupler.contact.pairs import Pair
from coupler.graph import View
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry, Sphere
from coupler.spatial import Transform

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


def locating(both: Forms, moving: Mapping[str, bool]) -> Located:
    """How kernels find forms and poses of a pair: see `Located`."""

    def located(view: View) -> tuple[Forms, tuple[Transform, Transform]]:
        """The forms of a pair, with their numbers, and their poses."""
        own = [
            with_numbers(geometry, getattr(view, f"{name}_numbers")) for geometry, name in zip(both, SIDES, strict=True)
        ]
        X = [
            Transform(getattr(view, f"{name}_at_E"), getattr(view, f"{name}_at_r")) @ pose(view, name, moves)
            for name, moves in moving.items()
        ]
        return (own[0], own[1]), (X[0], X[1])

    return located


def pose(view: View, name: str, moves: bool) -> Transform:
    """The pose of the link that carries a shape."""
    return Transform(getattr(view, f"{name}_E"), getattr(view, f"{name}_r")) if moves else Transform.identity()


def finding_kernel(
    both: Forms, moving: Mapping[str, bool], told: Sequence[str] = ("gaps", "points", "frames")
) -> Callable[[View], None]:
    """The kernel that finds the contacts of two forms, if they have a closed form, and tells some things of them."""
    located = locating(both, moving)

    def finding(view: View) -> None:
        own, X = located(view)
        for k, contact in enumerate(contacts(*own, *X)):
            known = {"gaps": np.array(contact.gap), "points": contact.point, "frames": contact.frame}
            for name in told:
                setattr(view, f"{name}{k}", known[name])

    return finding


def first_of(rows: int, value: Any) -> Any:
    """A vector with a value for the normal, and zeros for all other rows of a contact."""
    return np.stack([value, *[0.0] * (rows - 1)])
