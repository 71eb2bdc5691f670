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
        rows: the number of rows of each contact.
        names: the quantities that are reported of contacts.
    """

    def move_law(view: View) -> None:
        """Sets the law of a contact where its shapes meet at time t: b_n with the gap g − t n·w."""
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


def begin(block: View) -> None:
    begin_measured_anew(block)
    block.waiting = np.where(block.impulse[0] > 0.0, 1.0, 0.0)


def begin_measured_anew(block: View) -> None:
    block.touches = np.where(block.gap <= slop(block.step), 1.0, 0.0)


def doubt(block: View, ends: list[View]) -> None:
    """Puts a contact in doubt if it breaks its law."""
    block.waiting = np.where(normal_velocity(block, ends) < -block.tolerance, 1.0, 0.0)
    block.in_doubt = np.maximum(block.in_doubt, block.waiting)


def doubt_if_fast(block: View) -> None:
    """Puts a contact with a height field in doubt if its shape is too fast for the ground that has been searched."""
    block.waiting = np.maximum(block.waiting, block.fast)
    block.in_doubt = np.maximum(block.in_doubt, block.fast)


def let_move(block: View) -> None:
    block.moving = np.array(1.0)


def doubt_moving(block: View) -> None:
    """Keeps a contact in doubt if its pair has not passed."""
    block.waiting = np.where(block.moving > 0.0, block.waiting, 0.0)
    block.in_doubt = np.maximum(block.in_doubt, block.waiting)


def let_advance(block: View) -> None:
    block.meeting = block.undecided = np.array(1.0)


def wait_if_meeting(block: View) -> None:
    block.waiting = np.where(block.meeting > 0.0, 1.0, 0.0)


def note_touching(block: View) -> None:
    block.some_touch = np.maximum(block.some_touch, block.touches)


def let_wait(block: View, ends: list[View]) -> None:
    """Lets contacts that touch already join first; if there are any, the others are asked again in the next round."""
    later = (block.some_touch > 0.0) & (block.touches <= 0.0)
    block.waiting = np.where(later, 0.0, 1.0)
    block.joining = np.maximum(block.joining, block.waiting)
    block.residual = np.maximum(block.residual, -normal_velocity(block, ends))


# Kernels of a state


def begin_doubting(state: View) -> None:
    state.in_doubt = state.some_touch = np.array(0.0)


def none_in_doubt(state: View) -> Any:
    return state.in_doubt <= 0.0
