"""Kernels of passing_program.py: of contacts whose shapes may pass each other, and of the state that asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, forces_on
from coupler.contact.collision.tables import first_of, pose, with_numbers
from coupler.contact.passing import Shift, advanced, closing_speed, nearest, slop
from coupler.graph import View
from coupler.spatial import Transform

SIDES = {"one": 1.0, "other": -1.0}  # of a pair, and the signs of impulses on them


def shift_of(view: View, name: str, geometry: Any, moves: bool, changed: bool) -> Shift:
    """How a shape moves, with what impulses have `changed` or without; its form is not asked for if it is None."""
    own = geometry and with_numbers(geometry, getattr(view, f"{name}_numbers"))
    at = Transform(getattr(view, f"{name}_at_E"), getattr(view, f"{name}_at_r"))
    if not moves:
        return Shift(own, at)
    v = getattr(view, f"{name}_u") + (getattr(view, f"{name}_du") if changed else 0.0)
    reach, axis = (getattr(view, f"{name}_{of_form}") for of_form in ("reach", "axis"))
    return Shift.on_link(own, at, pose(view, name, True), v, reach, axis)


def moving_law(moving: Mapping[str, bool], rows: int, told: Sequence[str]) -> Callable[[View], None]:
    def move_law(view: View) -> None:
        """The law where shapes meet: b_n with the gap g − t n·w, on the way to which they move as they do."""
        open_before = view.near <= 0.0
        P, ahead = {}, 0.0
        for name, moves in moving.items():
            if moves:
                link, v = pose(view, name, True), getattr(view, f"{name}_u") + getattr(view, f"{name}_du")
                at = Transform(getattr(view, f"{name}_at_E"), getattr(view, f"{name}_at_r"))
                back = Shift.on_link(None, at, link, v).velocity(view.time, view.point)  # type: ignore[arg-type]
                contact = Contact(view.gap, view.point - view.time * back, view.frame)
                P[name] = SIDES[name] * forces_on(link, contact, rows)
                ahead = ahead + P[name][:, 0] @ v
        free, approach = (reduce(add, (P[name].T @ getattr(view, f"{name}_{x}") for name in P)) for x in ("u", "start"))
        gap = view.gap - view.time * ahead
        closure = gap / view.step
        for name, own in P.items():  # gaps count from where the step started
            closure = closure - getattr(view, f"{name}_gone") * (own[:, 0] @ getattr(view, f"{name}_start"))
        found = {"b": free + first_of(rows, closure), "free": free[:3], "approach": approach[:3]}
        found |= {"gaps": np.array(gap), "points": view.point, "frames": view.frame, "closures": closure}
        for name in told:
            setattr(view, f"told_{name}", np.where(open_before, found[name], getattr(view, f"told_{name}")))
        for name, own in P.items():
            setattr(view, f"{name}_P", np.where(open_before, own, getattr(view, f"{name}_P")))

    return move_law


# Kernels of contacts


def begin(own: View) -> None:
    own.near = np.where(own.gap <= slop(own.step), 1.0, 0.0)
    own.waiting = np.where(own.impulse[0] > 0.0, 1.0, 0.0)


def _velocity(own: View, ends: list[View]) -> Any:
    """w_n = b_n + P_nᵀ Δu."""
    return reduce(add, (end.P[:, 0] @ end.du for end in ends), own.b[0])


def doubt(own: View, ends: list[View]) -> None:
    own.waiting = np.where(_velocity(own, ends) < -own.tolerance, 1.0, 0.0)
    own.doubts = np.maximum(own.doubts, own.waiting)


def doubt_if_fast(own: View) -> None:
    own.waiting = np.maximum(own.waiting, own.fast)
    own.doubts = np.maximum(own.doubts, own.fast)


def forget(ahead: View) -> None:
    ahead.gap, ahead.point, ahead.frame = np.array(0.0), np.zeros(3), np.zeros((3, 3))


def ask(own: View) -> None:
    own.moving = np.array(1.0)


def letting_pass(count: int, one: bool, other: bool) -> Callable[[View], None]:
    """Of pairs with so many contacts, of which the one shape moves, and the other."""

    def let_pass(view: View) -> None:
        first, second = (
            shift_of(view, name, None, moves, True) for name, moves in zip(SIDES, (one, other), strict=True)
        )
        found = [Contact(getattr(view, f"gap{k}"), np.zeros(3), getattr(view, f"frame{k}")) for k in range(count)]
        gap, normal = nearest(first, second, 0.0, found)
        _, passes, _ = advanced(0.0, gap, closing_speed(first, second, normal), view.step)
        view.moving = np.where(passes, 0.0, view.moving)

    return let_pass


def doubt_still(own: View) -> None:
    own.waiting = np.where(own.moving > 0.0, own.waiting, 0.0)
    own.doubts = np.maximum(own.doubts, own.waiting)


def may_meet(own: View) -> None:
    own.meeting = own.undecided = np.array(1.0)


def decide(own: View) -> None:
    own.waiting = np.where(own.meeting > 0.0, 1.0, 0.0)


def note_touching(own: View) -> None:
    own.touches = np.maximum(own.touches, own.near)


def let_wait(own: View, ends: list[View]) -> None:
    later = (own.touches > 0.0) & (own.near <= 0.0)
    own.waiting = np.where(later, 0.0, 1.0)
    own.joining = np.maximum(own.joining, own.waiting)
    own.residual = np.maximum(own.residual, -_velocity(own, ends))


# Kernels of a state


def no_doubts(state: View) -> None:
    state.doubts = state.touches = np.array(0.0)


def doubtless(state: View) -> Any:
    return state.doubts <= 0.0


def no_one_left(state: View) -> None:
    state.undecided = np.array(0.0)


def decided(state: View) -> Any:
    return state.undecided <= 0.0
