"""Platforms that tilt on a universal joint and are driven by two legs: ankles, torsos, wrists."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.mechanisms.checks import check_finite, check_lengths, require, with_warnings
from coupler.mechanisms.posed import ALUMINIUM, Bars, PosedBuilder
from coupler.mechanisms.struts import ASKEW
from coupler.model import ClosureChoice, Revolute, Robot
from coupler.model.numbers import numbers

X, Y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
SIDES = ("left", "right")


def _tilting(name: str, bars: Bars, centre: np.ndarray, offset: float, balls: np.ndarray) -> PosedBuilder:
    """A platform with points for two legs, on joints roll, about x, and pitch, about y."""
    b = PosedBuilder(name, bars)
    check_finite(name, cross_offset=offset)
    middle = centre + np.array([0.0, 0.0, offset])
    for side, ball in zip(SIDES, balls, strict=True):
        require((ball != middle).any(), f"{name}: the {side} ball is at the platform's joint and cannot turn it")
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
    """A 2-SPU+1U platform, for torsos and ankles; with leg axes that do not meet, 2-SPRR+1U. [003, §III-C]

    It has 2 freedoms, roll and pitch. Two linear actuators lead from feet on the base to balls on the platform, which
    is the body "pitch". Joints: roll, pitch, and for each SIDE, left and right, SIDE_swing, SIDE_cylinder and
    SIDE_piston. The pistons are driven, and their positions are the lengths of the legs.

    Args:
        feet, balls: 2 × 3, the ends of the left and the right leg in the assembled pose, in the world, m.
        centre: 3, where the platform's universal joint is, m.
        cross_offset: height of the pitch axis above the roll axis, m.
        leg_offset: distance of the second axis of each leg from its first, along the leg, m.
        bars, closure: as for `slider_crank`.
    """
    starts, ends = _points("spu_platform", feet=feet, balls=balls)
    check_finite("spu_platform", leg_offset=leg_offset)
    b = _tilting("spu_platform", bars, numbers("spu_platform: centre", centre, (3,)), cross_offset, ends)
    for side, start, end in zip(SIDES, starts, ends, strict=True):
        length = float(np.linalg.norm(end - start))
        require(length > abs(leg_offset), f"spu_platform: the {side} leg has zero length in the assembled pose")
        names = f"{side}_swing", f"{side}_cylinder", f"{side}_piston", f"{side}_ball"
        b.pointing_actuator(names, start, end, "pitch", Y, leg_offset)
    return with_warnings(b.build(closure=closure))


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
    """A 2-RUS+1U platform, the ankle of many humanoids: two driven cranks move a foot by rods.

    It has 2 freedoms, roll and pitch. Joints: roll, pitch, and for each SIDE, left and right, SIDE_crank, which is
    driven, SIDE_swing and SIDE_rod.

    Args:
        cranks: 2 × 3, points on the axes of the left and the right crank in the assembled pose, in the world, m.
        tips: 2 × 3, the ends of the rods on the cranks, m.
        balls: 2 × 3, the ends of the rods on the platform, m.
        centre: 3, where the platform's universal joint is, m.
        axis: 3, the direction of the cranks' axes.
        bars, closure: as for `slider_crank`.
    """
    b = _with_cranks("rus_platform", cranks, tips, balls, centre, axis, bars, actuated=True)
    return with_warnings(b.build(closure=closure))


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
        b.link(f"{side}_crank", Revolute(axis=direction), "ground", pivot, bars=[(pivot, tip)], actuated=actuated)
        b.pointing_rod((f"{side}_swing", f"{side}_rod", f"{side}_ball"), f"{side}_crank", tip, ball, "pitch", direction)
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
    """A 2-SU[RRPR]+1U platform, the wrist of RH5 Manus: a `rus_platform` whose cranks linear actuators turn.

    Joints: those of `rus_platform`, and for each SIDE, left and right, SIDE_cylinder and SIDE_piston. The pistons are
    driven, and their positions are the lengths of the actuators. [003, §V-C]

    Args:
        feet: 2 × 3, the ends of the left and the right actuator on the base in the assembled pose, in the world, m.
        pins: 2 × 3, their ends on the cranks, m.
        cranks, tips, balls, centre, axis: as for `rus_platform`.
        bars, closure: as for `slider_crank`.
    """
    starts, ends = _points("wrist", feet=feet, pins=pins)
    b = _with_cranks("wrist", cranks, tips, balls, centre, axis, bars, actuated=False)
    for side, start, end in zip(SIDES, starts, ends, strict=True):
        along, length = end - start, float(np.linalg.norm(end - start))
        require(length > 0.0, f"wrist: the {side} actuator has zero length in the assembled pose")
        across = abs(along @ np.asarray(axis, float)) < ASKEW * length
        require(across, f"wrist: the {side} actuator does not lie in the plane in which its crank turns")
        b.linear_actuator((f"{side}_cylinder", f"{side}_piston"), Revolute(axis=axis), "ground", start, end, length)
        b.close(f"{side}_pin", Revolute(axis=axis), f"{side}_piston", f"{side}_crank", end)
    return with_warnings(b.build(closure=closure))
