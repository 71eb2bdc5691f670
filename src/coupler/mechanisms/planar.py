"""Planar sub-mechanisms: linkages that move in the plane of x and z, about axes along y."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.mechanisms.checks import check_finite, check_lengths, check_signs, elbow_of, require, with_warnings
from coupler.mechanisms.posed import ALUMINIUM, Bars, PosedBuilder
from coupler.mechanisms.transmissions import linear
from coupler.model import ClosureChoice, Planar, Prismatic, Revolute, Robot
from coupler.model.numbers import numbers

Y = (0.0, 1.0, 0.0)
ORIGIN = (0.0, 0.0, 0.0)


def _point(xz: Any) -> np.ndarray:
    return np.array([xz[0], 0.0, xz[1]])


def slider_crank(
    crank: float,
    rod: float,
    offset: float = 0.0,
    angle: float = np.pi / 3.0,
    *,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """A crank that moves a slider along x by a rod. It has 1 freedom, the crank's angle above x.

    Joints: crank, which is driven, rod, slider.

    Args:
        crank, rod: lengths, m.
        offset: height of the slider's line above the crank's axis, m.
        angle: the crank's angle in the assembled pose, rad.
        bars: the bars that links are made of.
        closure: as for `Robot.with_closure`.
    """
    check_lengths("slider_crank", crank=crank, rod=rod)
    check_finite("slider_crank", offset=offset, angle=angle)
    tip = _point((crank * np.cos(angle), crank * np.sin(angle)))
    height = abs(offset - tip[2])
    require(height < rod, f"slider_crank: the rod is too short: it has to bridge {height:.4g} m at the angle {angle:g}")
    pin = _point((tip[0] + np.sqrt(rod**2 - height**2), offset))
    b = PosedBuilder("slider_crank", bars)
    up = Revolute(axis=(0.0, -1.0, 0.0))
    b.link("crank", up, "ground", ORIGIN, bars=[(ORIGIN, tip)], position=[angle], independent=True, actuated=True)
    b.link("rod", up, "crank", tip, bars=[(tip, pin)])
    end = pin + np.array([0.5 * crank, 0.0, 0.0])
    b.link("slider", Prismatic(axis=(1, 0, 0)), "ground", pin, bars=[(pin, end)])
    b.close("pin", Revolute(axis=Y), "rod", "slider", pin)
    return with_warnings(b.build(closure=closure))


def rrpr(
    arm: float,
    foot: Any,
    angle: float = 0.0,
    extent: float = 0.0,
    *,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """A linear actuator across a hinge, as in an elbow. It has 1 freedom, the arm's angle above x. [003, §III-C]

    The arm turns about the origin. The actuator leads from a fixed foot to a pin on the arm. Joints: arm, cylinder and
    piston, which is driven and whose position is the actuator's length.

    Args:
        arm: from the hinge to the pin, m.
        foot: 2, x and z of the actuator's foot, m.
        angle: the arm's angle in the assembled pose, rad.
        extent: how far the arm extends beyond the pin, m.
        bars, closure: as for `slider_crank`.
    """
    check_lengths("rrpr", arm=arm)
    check_finite("rrpr", angle=angle, extent=extent)
    direction = _point((np.cos(angle), np.sin(angle)))
    start, pin = _point(numbers("rrpr: foot", foot, (2,))), arm * direction
    length = float(np.linalg.norm(pin - start))
    require(start.any(), "rrpr: the actuator's foot is on the hinge, so that it cannot turn the arm")
    require(length > 0.0, "rrpr: the actuator has zero length in the assembled pose; choose another angle")
    tip = (arm + extent) * direction
    b = PosedBuilder("rrpr", bars)
    up = Revolute(axis=(0.0, -1.0, 0.0))
    b.link("arm", up, "ground", ORIGIN, bars=[(ORIGIN, tip)], position=[angle], independent=True)
    b.linear_actuator(("cylinder", "piston"), up, "ground", start, pin, length)
    b.close("pin", Revolute(axis=Y), "piston", "arm", pin)
    return with_warnings(b.build(closure=closure))


def planar_rrr(
    base: float,
    platform: float,
    upper: float,
    lower: float,
    elbows: Any = (1, 1, 1),
    *,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """A 3-RRR robot: a platform that moves in a plane, on three arms of two links. It has 3 freedoms, the platform's.

    Joints: platform, and for each arm i from 1 to 3 shoulder_i, which is driven, and elbow_i.

    Args:
        base, platform: radii of the circles on which the shoulders and the platform's pins lie, 120° apart, m.
        upper, lower: lengths of the links of each arm, m.
        elbows: for each arm 1 or -1, the side of its elbow.
        bars, closure: as for `slider_crank`.
    """
    check_lengths("planar_rrr", base=base, platform=platform, upper=upper, lower=lower)
    sides = check_signs("planar_rrr: elbows", elbows, 3)
    around = [np.array([np.cos(turn), np.sin(turn)]) for turn in np.arange(3) * 2.0 * np.pi / 3.0]
    pins = [_point(platform * direction) for direction in around]
    b = PosedBuilder("planar_rrr", bars)
    b.link("platform", Planar(normal=Y), "ground", ORIGIN, bars=[(ORIGIN, pin) for pin in pins], independent=True)
    for i, (direction, pin, side) in enumerate(zip(around, pins, sides, strict=True), 1):
        shoulder = base * direction
        elbow = shoulder + elbow_of(f"planar_rrr: arm {i}", pin[[0, 2]] - shoulder, upper, lower, float(side))
        at, bend = _point(shoulder), _point(elbow)
        b.link(f"shoulder_{i}", Revolute(axis=Y), "ground", at, bars=[(at, bend)], actuated=True)
        b.link(f"elbow_{i}", Revolute(axis=Y), f"shoulder_{i}", bend, bars=[(bend, pin)])
        b.close(f"pin_{i}", Revolute(axis=Y), f"elbow_{i}", "platform", pin)
    return with_warnings(b.build(closure=closure))


def pantograph(thigh: float, crank: float, shank: float, spread: float = 1.0, *, bars: Bars = ALUMINIUM) -> Robot:
    """A leg with a parallelogram: two motors at the hip turn the thigh and, by a rod, the shank. It has 2 freedoms.

    The crank stays parallel to the shank, even through flat poses. Joints: thigh and crank, both driven and about the
    origin, rod, shank. The frame "foot" is the end of the shank.

    Args:
        thigh: from hip to knee, m.
        crank: from the hip to the rod, and from the knee to the rod's pin on the shank, m.
        shank: from the knee to the foot, m.
        spread: angle from the thigh to the crank in the assembled pose, rad.
        bars: as for `slider_crank`.
    """
    check_lengths("pantograph", thigh=thigh, crank=crank, shank=shank)
    check_finite("pantograph", spread=spread)
    require(np.sin(spread), "pantograph: the parallelogram is flat in the assembled pose; choose another spread")
    towards = np.array([-np.sin(spread), 0.0, -np.cos(spread)])
    knee, tip = _point((0.0, -thigh)), crank * towards
    pin, foot = knee + crank * towards, knee - shank * towards
    b, turn = PosedBuilder("pantograph", bars), Revolute(axis=Y)
    b.link("thigh", turn, "ground", ORIGIN, bars=[(ORIGIN, knee)], independent=True, actuated=True)
    b.link("crank", turn, "ground", ORIGIN, bars=[(ORIGIN, tip)], independent=True, actuated=True)
    b.link("rod", turn, "crank", tip, bars=[(tip, pin)])
    b.link("shank", turn, "thigh", knee, bars=[(pin, foot)])
    b.close("pin", turn, "rod", "shank", pin)
    parallel = linear([[1, 0], [0, 1], [1, -1], [-1, 1]])
    b.couple("parallelogram", ["thigh", "crank", "rod", "shank"], parallel, ["thigh", "crank"], solves=["pin"])
    b.point("foot", "shank", foot)
    return b.build()
