"""Platforms that tilt on a universal joint and are driven by two legs: ankles, torsos, wrists."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.mechanisms.checks import check_finite, check_lengths, pointing_axes, require, told
from coupler.mechanisms.posed import ALUMINIUM, Bars, PosedBuilder
from coupler.model import ClosureChoice, Revolute, Robot, Spherical
from coupler.model.numbers import numbers

X, Y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
SIDES = ("left", "right")


def _tilting(name: str, bars: Bars, centre: np.ndarray, offset: float, balls: np.ndarray) -> PosedBuilder:
    """A platform with points for two legs, on joints roll, about x, and pitch, about y."""
    b = PosedBuilder(name, bars)
    check_finite(name, cross_offset=offset)
    middle = centre + np.array([0.0, 0.0, offset])
    for side, ball in zip(SIDES, balls, strict=True):
        require((ball != middle).any(), f"{name}: the {side} ball is at the platform's joint, so that it turns nothing")
    b.link("roll", Revolute(axis=X), "ground", centre, bars=[(middle, centre)] if offset else (), independent=True)
    b.link("pitch", Revolute(axis=Y), "roll", middle, bars=[(middle, ball) for ball in balls], independent=True)
    return b


def _points(mechanism: str, **points: Any) -> list[np.ndarray]:
    """Points of two legs each, 2 × 3, m."""
    return [numbers(f"{mechanism}: {name}", value, (2, 3)) for name, value in points.items()]


def spu_platform(
    feet: Any,
    balls: Any,
    centre: Any = (0.0, 0.0, 0.0),
    *,
    cross_offset: float = 0.0,
    leg_offset: float = 0.0,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """2-SPU+1U, a torso or an ankle, or with axes that miss each other 2-SPRR+1U: 2 freedoms, roll and pitch.

    Two linear actuators lead from feet on the base to balls on the platform. Joints: roll, pitch, and for each side
    left and right: SIDE_swing, SIDE_cylinder, SIDE_piston, whose motor drives it and whose position is the length.
    The body "pitch" is the platform. [003, §III-C]

    Args:
        feet, balls: 2 × 3, the ends of the left and the right leg, in the world where it is assembled, m.
        centre: 3, where the platform's joint is, m.
        cross_offset: of the pitch axis above the roll axis, m.
        leg_offset: of the second axis of each leg beyond its first, m.
        bars, closure: as for `slider_crank`.
    """
    starts, ends = _points("spu_platform", feet=feet, balls=balls)
    check_finite("spu_platform", leg_offset=leg_offset)
    b = _tilting("spu_platform", bars, numbers("spu_platform: centre", centre, (3,)), cross_offset, ends)
    for side, start, end in zip(SIDES, starts, ends, strict=True):
        length = float(np.linalg.norm(end - start))
        require(length > abs(leg_offset), f"spu_platform: the {side} leg has no length where it is assembled")
        along, (first, second) = (end - start) / length, pointing_axes(end - start, Y)
        hinge = start + leg_offset * along
        swing = [(start, hinge)] if leg_offset else ()
        b.link(f"{side}_swing", Revolute(axis=first), "ground", start, bars=swing)
        names = f"{side}_cylinder", f"{side}_piston"
        b.linear_actuator(names, Revolute(axis=second), f"{side}_swing", hinge, end, length)
        b.close(f"{side}_ball", Spherical(), f"{side}_piston", "pitch", end)
    return told(b.build(closure=closure))


def rus_platform(
    cranks: Any,
    tips: Any,
    balls: Any,
    centre: Any = (0.0, 0.0, 0.0),
    axis: Any = (0.0, 1.0, 0.0),
    *,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """2-RUS+1U, the ankle of many humanoids: two motors with cranks pull a foot by rods: 2 freedoms, roll and pitch.

    Joints: roll, pitch, and for each side left and right: SIDE_crank, whose motor drives it, SIDE_swing, SIDE_rod.

    Args:
        cranks: 2 × 3, where the axes of the left and the right crank are, in the world where it is assembled, m.
        tips: 2 × 3, where rods are on the cranks, m.
        balls: 2 × 3, where rods are on the platform, m.
        centre: 3, where the platform's joint is, m.
        axis: 3, of the cranks.
        bars, closure: as for `slider_crank`.
    """
    b = _with_cranks("rus_platform", cranks, tips, balls, centre, axis, bars, actuated=True)
    return told(b.build(closure=closure))


def _with_cranks(
    name: str, cranks: Any, tips: Any, balls: Any, centre: Any, axis: Any, bars: Bars, *, actuated: bool
) -> PosedBuilder:
    pivots, ends, joints = _points(name, cranks=cranks, tips=tips, balls=balls)
    b = _tilting(name, bars, numbers(f"{name}: centre", centre, (3,)), 0.0, joints)
    direction = numbers(f"{name}: axis", axis, (3,))
    require(direction.any(), f"{name}: the cranks' axis must not be zero")
    for side, pivot, tip, ball in zip(SIDES, pivots, ends, joints, strict=True):
        arm = tip - pivot - ((tip - pivot) @ direction) * direction / (direction @ direction)
        check_lengths(f"{name}: {side}", crank=float(np.linalg.norm(arm)), rod=float(np.linalg.norm(ball - tip)))
        first, second = pointing_axes(ball - tip, direction)
        b.link(f"{side}_crank", Revolute(axis=direction), "ground", pivot, bars=[(pivot, tip)], actuated=actuated)
        b.link(f"{side}_swing", Revolute(axis=first), f"{side}_crank", tip)
        b.link(f"{side}_rod", Revolute(axis=second), f"{side}_swing", tip, bars=[(tip, ball)])
        b.close(f"{side}_ball", Spherical(), f"{side}_rod", "pitch", ball)
    return b


def wrist(
    feet: Any,
    pins: Any,
    cranks: Any,
    tips: Any,
    balls: Any,
    centre: Any = (0.0, 0.0, 0.0),
    axis: Any = (0.0, 1.0, 0.0),
    *,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """2-SU[RRPR]+1U, the wrist of RH5 Manus: as `rus_platform`, with cranks that linear actuators turn. [003, §V-C]

    Joints: those of `rus_platform`, and for each side left and right: SIDE_cylinder, SIDE_piston, whose motor drives it
    and whose position is the length.

    Args:
        feet: 2 × 3, where the left and the right actuator are on the base, in the world where it is assembled, m.
        pins: 2 × 3, where they are on the cranks, m.
        cranks, tips, balls, centre, axis: as for `rus_platform`.
        bars, closure: as for `slider_crank`.
    """
    starts, ends = _points("wrist", feet=feet, pins=pins)
    b = _with_cranks("wrist", cranks, tips, balls, centre, axis, bars, actuated=False)
    for side, start, end in zip(SIDES, starts, ends, strict=True):
        along, length = end - start, float(np.linalg.norm(end - start))
        require(length > 0.0, f"wrist: the {side} actuator has no length where it is assembled")
        across = abs(along @ np.asarray(axis, float)) < 1e-9 * length
        require(across, f"wrist: the {side} actuator does not lie in the plane in which its crank turns")
        b.linear_actuator((f"{side}_cylinder", f"{side}_piston"), Revolute(axis=axis), "ground", start, end, length)
        b.close(f"{side}_pin", Revolute(axis=axis), f"{side}_piston", f"{side}_crank", end)
    return told(b.build(closure=closure))
