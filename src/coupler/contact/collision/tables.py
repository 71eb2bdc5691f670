"""Forms and poses of pairs of shapes as kernels see them: numbers of the model are in tables.

So shapes of one kind share kernels, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, contacts
from coupler.contact.pairs import Pair
from coupler.graph import Slot, View, Window, constants
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry, Sphere
from coupler.spatial import Transform

Array = Any  # nodes of a trace

Forms = tuple[Geometry, Geometry]
Located = Callable[[View], tuple[Forms, tuple[Transform, Transform]]]  # forms with their numbers, and poses

SIDES = "one", "other"
QUANTITIES = "gaps", "points", "frames"  # of a contact
_NUMBERS: dict[type, tuple[str, ...]] = {  # of forms whose contacts are traced once for any numbers
    Sphere: ("radius",),
    Capsule: ("radius", "length"),
    Box: ("size",),
    Cylinder: ("radius", "length"),
    HeightField: ("grid",),
}


def forms(pair: Pair) -> Forms:
    """The geometries of both shapes of a pair."""
    return pair.one.geometry, pair.other.geometry


def form(geometry: Geometry) -> Hashable:
    """The part of a geometry that a trace depends on."""
    if isinstance(geometry, HeightField):
        return HeightField, id(geometry.table)
    named = _NUMBERS.get(type(geometry), ())
    values = [np.asarray(value) for name, value in vars(geometry).items() if name not in named]
    return type(geometry), *((value.shape, value.tobytes()) for value in values)


def numbers(geometry: Geometry) -> np.ndarray:
    """The numbers of a geometry that go into a table, so that one trace serves all of its kind."""
    parts = [np.atleast_1d(getattr(geometry, name)) for name in _NUMBERS.get(type(geometry), ())]
    return np.concatenate([np.zeros(0), *parts])


def with_numbers(geometry: Geometry, values: Array) -> Geometry:
    """A copy of a form with its numbers from a table; they were checked when the form was made."""
    named = _NUMBERS.get(type(geometry))
    if not named:
        return geometry
    copy, start = object.__new__(type(geometry)), 0
    vars(copy).update(vars(geometry))
    for name in named:
        size = np.size(getattr(geometry, name))
        object.__setattr__(copy, name, values[start] if size == 1 else values[start : start + size])
        start += size
    return copy


def rows_of(slot: Any, rows: Any) -> Any:
    """Some rows of a slot or of a table of constants; None for None."""
    if slot is None:
        return None
    rows = np.array(rows)
    return replace(slot, bases=slot.bases[rows]) if isinstance(slot, Slot) else constants(slot.values[rows])


def window_rows(window: Window, rows: Any) -> Window:
    """Some rows of all fields of a window."""
    return Window({name: rows_of(slot, rows) for name, slot in window.fields.items()})


def locating(both: Forms, moving: Mapping[str, bool]) -> Located:
    """The function by which kernels find the forms and poses of a pair: see `Located`."""

    def located(view: View) -> tuple[Forms, tuple[Transform, Transform]]:
        """The forms of a pair, with their numbers, and their poses."""
        one, other = (
            with_numbers(geometry, getattr(view, f"{name}_numbers")) for geometry, name in zip(both, SIDES, strict=True)
        )
        X_one, X_other = (shape_pose(view, name, moves) for name, moves in moving.items())
        return (one, other), (X_one, X_other)

    return located


def pose(view: View, name: str, moves: bool) -> Transform:
    """The pose of the link that carries a shape."""
    return Transform(getattr(view, f"{name}_E"), getattr(view, f"{name}_r")) if moves else Transform.identity()


def shape_pose(view: View, name: str, moves: bool) -> Transform:
    """The transform from the world to a shape, from its place on its link and the link's pose."""
    return Transform(getattr(view, f"{name}_at_E"), getattr(view, f"{name}_at_r")) @ pose(view, name, moves)


def finding_kernel(
    both: Forms, moving: Mapping[str, bool], quantities: Sequence[str] = QUANTITIES
) -> Callable[[View], None]:
    """The kernel that finds the contacts of two forms with a closed form, and writes some quantities of them."""
    located = locating(both, moving)

    def finding(view: View) -> None:
        geometries, X = located(view)
        for k, contact in enumerate(contacts(*geometries, *X)):
            put_contact(view, k, contact, quantities)

    return finding


def put_contact(view: View, number: int, contact: Contact, quantities: Sequence[str] = QUANTITIES) -> None:
    """Writes quantities of a pair's contact to the fields `gaps0`, `points0`, `frames0` and so on."""
    values = {"gaps": np.array(contact.gap), "points": contact.point, "frames": contact.frame}
    for name in quantities:
        setattr(view, f"{name}{number}", values[name])


def first_of(rows: int, value: Any) -> Any:
    """A vector of a contact's rows with a value for the normal, and zeros for the others."""
    return np.stack([value, *[0.0] * (rows - 1)])


def pair_by_pair(loops: Sequence[np.ndarray]) -> np.ndarray:
    """The order in which loops take their next rows, so that all rows of a pair come before those of the next pair.

    Args:
        loops: for each loop, the pairs of its rows, in ascending order.
    """
    turns = np.repeat(np.arange(len(loops)), [len(pairs) for pairs in loops])
    return turns[np.argsort(np.concatenate(loops), kind="stable")]
