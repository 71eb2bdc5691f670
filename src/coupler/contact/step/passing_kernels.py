"""Kernels of passing_program.py: of contacts whose shapes may pass each other, and of the state.

A contact is in doubt while its law is broken and its shapes may still pass each other. `waiting` is the flag of blocks
that are about to join the problem (see `Blocks`); until it is decided, contacts in doubt have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, forces_on
from coupler.contact.collision.tables import first_of, pose
from coupler.contact.passing import Shift, slop
from coupler.contact.step.candidates import SIGNS
from coupler.contact.step.measurement import normal_velocity
from coupler.graph import View
from coupler.spatial import Transform


def moving_law(moving: Mapping[str, bool], rows: int, names: Sequence[str]) -> Callable[[View], None]:
    """The kernel that moves the laws of open contacts to where their shapes meet.

    Args:
        moving: for each side of their pairs whether it moves.
        rows: how many rows each contact has.
        names: what is reported of contacts.
    """

    def move_law(view: View) -> None:
        """The law where shapes meet: b_n with the gap g − t n·w, on the way to which they move as they do."""
        open_before = view.touches <= 0.0
        P, ahead = {}, 0.0
        for side in (side for side, moves in moving.items() if moves):
            link, v = pose(view, side, True), getattr(view, f"{side}_u") + getattr(view, f"{side}_du")
            at = Transform(getattr(view, f"{side}_at_E"), getattr(view, f"{side}_at_r"))
            velocity = Shift.on_link(None, at, link, v).velocity(view.time, view.point)  # type: ignore[arg-type]
            # Impulses act on links where these are now, so the point goes back with each of them.
            contact = Contact(view.gap, view.point - view.time * velocity, view.frame)
            P[side] = SIGNS[side] * forces_on(link, contact, rows)
            ahead = ahead + P[side][:, 0] @ v
        free, approach = (reduce(add, (P[side].T @ getattr(view, f"{side}_{x}") for side in P)) for x in ("u", "start"))
        gap = view.gap - view.time * ahead
        closure = gap / view.step
        for side in P:  # gaps count from where the step started
            closure = closure - getattr(view, f"{side}_gone") * (P[side][:, 0] @ getattr(view, f"{side}_start"))
        values = {"b": free + first_of(rows, closure), "free": free[:3], "approach": approach[:3]}
        values |= {"gaps": np.array(gap), "points": view.point, "frames": view.frame, "closures": closure}
        values = {f"reported_{name}": values[name] for name in names} | {f"{side}_P": P[side] for side in P}
        for name, value in values.items():
            setattr(view, name, np.where(open_before, value, getattr(view, name)))

    return move_law


# Kernels of contacts


def begin(own: View) -> None:
    begin_measured_anew(own)
    own.waiting = np.where(own.impulse[0] > 0.0, 1.0, 0.0)


def begin_measured_anew(own: View) -> None:
    own.touches = np.where(own.gap <= slop(own.step), 1.0, 0.0)


def doubt(own: View, ends: list[View]) -> None:
    """A contact is in doubt if it breaks its law."""
    own.waiting = np.where(normal_velocity(own, ends) < -own.tolerance, 1.0, 0.0)
    own.in_doubt = np.maximum(own.in_doubt, own.waiting)


def doubt_if_fast(own: View) -> None:
    """So is a contact with a field if its shape is too fast for what is seen of the ground."""
    own.waiting = np.maximum(own.waiting, own.fast)
    own.in_doubt = np.maximum(own.in_doubt, own.fast)


def let_move(own: View) -> None:
    own.moving = np.array(1.0)


def doubt_moving(own: View) -> None:
    """A contact stays in doubt if its pair has not passed."""
    own.waiting = np.where(own.moving > 0.0, own.waiting, 0.0)
    own.in_doubt = np.maximum(own.in_doubt, own.waiting)


def let_advance(own: View) -> None:
    own.meeting = own.undecided = np.array(1.0)


def wait_if_meeting(own: View) -> None:
    own.waiting = np.where(own.meeting > 0.0, 1.0, 0.0)


def note_touching(own: View) -> None:
    own.some_touch = np.maximum(own.some_touch, own.touches)


def let_wait(own: View, ends: list[View]) -> None:
    """Contacts that touch already join first; where there are any, the others are asked again in the next round."""
    later = (own.some_touch > 0.0) & (own.touches <= 0.0)
    own.waiting = np.where(later, 0.0, 1.0)
    own.joining = np.maximum(own.joining, own.waiting)
    own.residual = np.maximum(own.residual, -normal_velocity(own, ends))


# Kernels of a state


def begin_doubting(state: View) -> None:
    state.in_doubt = state.some_touch = np.array(0.0)


def none_in_doubt(state: View) -> Any:
    return state.in_doubt <= 0.0
