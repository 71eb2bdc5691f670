"""Bounding balls of shapes in kernels: how far apart two of them are, how they move, and whether they may meet.

A pair has `bound`, how far its balls are apart, `horizon`, for how long they move, s, and of each side that moves what
`PLACE` and `MOTION` have, under names such as `one_centre` and `other_spin_u`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.contact.collision.convex import cores
from coupler.contact.collision.tables import with_numbers
from coupler.graph import View
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry, Sphere
from coupler.spatial import Transform, cross

Array = Any  # nodes of a trace

PLACE: dict[str, Any] = {"centre": 3, "speed": (), "spin": ()}  # the larger of both velocities before impulses
_VELOCITIES = ("u", "start", "after")  # without impulses, before the step, and with impulses
MOTION: dict[str, Any] = {f"{x}_{name}": size for name in _VELOCITIES for x, size in (("shift", 3), ("spin", ()))}
SEEN = Box, Capsule, Cylinder, Sphere  # forms that are asked how far they reach along a direction
_TINY = 1e-30  # m, a distance that counts as none
# How much more than before impulses a ball may move until it is faster: within the horizon, in its radii and in rad.
_EASE, _EASE_OF_TURN = 0.02, 0.1


def ground(form: Geometry, at: Transform) -> tuple[np.ndarray, float, float]:
    """The normal of ground, the height of its highest point along it, and a lower bound of distance over height."""
    up, level, steep = at.E[2], 0.0, 1.0
    if isinstance(form, HeightField):
        cell = form.size / (np.array(form.heights.shape) - 1.0)
        slopes = [np.abs(np.diff(form.heights, axis=i)).max() / cell[i] for i in (0, 1)]
        level, steep = float(form.heights.max()), 1.0 / float(np.hypot(1.0, np.hypot(*slopes)))
    return up, float(up @ at.r) + level, steep


def place(ball: View) -> None:
    """Computes a ball's centre, and how it moves before impulses."""
    ball.centre = ball.r + ball.E.T @ ball.c
    _move(ball, "u", ball.u)
    _move(ball, "start", ball.start)
    ball.speed = np.sqrt(np.maximum(ball.shift_u @ ball.shift_u, ball.shift_start @ ball.shift_start))
    ball.spin = np.maximum(ball.spin_u, ball.spin_start)


def move(ball: View) -> None:
    """Computes how a ball moves after impulses, and whether it is faster than `are_close` has allowed for."""
    _move(ball, "after", ball.u + ball.du)
    turn = ball.horizon * np.maximum(ball.spin_after - ball.spin, 0.0)
    further = ball.horizon * (np.sqrt(ball.shift_after @ ball.shift_after) - ball.speed)
    faster = (further + ball.radius * turn > _EASE * ball.radius) | (turn > _EASE_OF_TURN)
    ball.any_faster = np.where(faster, 1.0, ball.any_faster)


def _move(ball: View, name: str, velocity: Array) -> None:
    """Computes the velocity of a ball's centre, along the world's axes, m/s, and how fast its link turns, rad/s."""
    spin = velocity[:3]
    setattr(ball, f"shift_{name}", ball.E.T @ (velocity[3:] + cross(spin, ball.c)))
    setattr(ball, f"spin_{name}", np.sqrt(spin @ spin))


def distance(view: View, on_ground: bool) -> Any:
    """The distance of the first shape's ball from the second's, or from the ground."""
    if on_ground:
        height = view.up @ view.one_centre - view.level
        return np.minimum(height, view.steep * height) - view.one_radius
    away = view.one_centre - view.other_centre
    return np.sqrt(away @ away) - view.one_radius - view.other_radius


def separation(view: View, both: tuple[Geometry, Geometry], moving: Mapping[str, bool]) -> Any:
    """A lower bound of the distance of two shapes along the line of their centres; negative if they overlap there."""
    away = view.one_centre - view.other_centre
    apart = distance = np.sqrt(away @ away)
    # Centres at one place have no line through them, and along any shapes overlap.
    line = np.where(distance > _TINY, away / np.maximum(distance, _TINY), np.array([1.0, 0.0, 0.0]))
    for (name, moves), form, sign in zip(moving.items(), both, (-1.0, 1.0), strict=True):
        if isinstance(form, SEEN):
            d, sized = sign * line, with_numbers(form, getattr(view, f"{name}_numbers"))
            seen = getattr(view, f"{name}_at_E") @ (getattr(view, f"{name}_E") @ d if moves else d)
            apart = apart - cores.extent(sized, seen) - cores.margin(sized)
        else:
            apart = apart - getattr(view, f"{name}_radius")
    return apart


def are_close(view: View, moving: Mapping[str, bool]) -> Any:
    """Whether balls could meet if each moved straight to the other, and no ball were faster after impulses.

    `meet` holds for no other pair, whichever velocities it is asked about.
    """
    rest = (1.0 - _EASE_OF_TURN) * view.bound
    for name, moves in moving.items():
        if moves:
            radius, speed, spin = (getattr(view, f"{name}_{x}") for x in ("radius", "speed", "spin"))
            rest = rest - _EASE * radius - view.horizon * (speed + spin * (radius + 0.5 * np.maximum(view.bound, 0.0)))
    return np.logical_not(rest >= 0.0)


def meet(view: View, moving: Mapping[str, bool], velocity: str) -> Any:
    """Whether balls may meet within the step with these velocities.

    Points of contact are as far from a centre as its ball reaches, and half the gap further.
    """
    shift, turn = np.zeros(3), 0.0
    for (name, moves), sign in zip(moving.items(), (1.0, -1.0), strict=True):
        if moves:
            shift = shift + sign * getattr(view, f"{name}_shift_{velocity}")
            reach = getattr(view, f"{name}_radius") + 0.5 * np.maximum(view.bound, 0.0)
            turn = turn + getattr(view, f"{name}_spin_{velocity}") * reach
    rest = view.bound - view.horizon * turn  # for the shift to close; compared in squares, which saves a root
    return (rest < 0.0) | (rest * rest < view.horizon * view.horizon * (shift @ shift))
