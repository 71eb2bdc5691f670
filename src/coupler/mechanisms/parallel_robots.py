"""Parallel robots: platforms on three or six legs."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.mechanisms.checks import check_finite, check_lengths, check_signs, elbow_of, require, with_warnings
from coupler.mechanisms.posed import ALUMINIUM, Bars, PosedBuilder
from coupler.model import ClosureChoice, Free, Prismatic, Revolute, Robot, Spherical
from coupler.model.numbers import numbers
from coupler.rotation import about_z

_IN_LINE = 1e-12  # the square of the sine of an angle: up to rounding there is none
Z = np.array([0.0, 0.0, 1.0])


def hexagon(radius: float, gap: float, turned: float = 0.0) -> np.ndarray:
    """6 × 3: points in pairs on a circle around z, as on the plates of a Stewart platform.

    Args:
        radius: radius of the circle, m.
        gap: angle between the two points of a pair, rad.
        turned: angle from x to the middle of the first pair, rad.
    """
    check_lengths("hexagon", radius=radius)
    check_finite("hexagon", gap=gap, turned=turned)
    angles = [turned + pair * 2.0 * np.pi / 3.0 + side * 0.5 * gap for pair in range(3) for side in (-1.0, 1.0)]
    return radius * np.array([[np.cos(angle), np.sin(angle), 0.0] for angle in angles])


def stewart(
    base: Any, platform: Any, height: float, *, bars: Bars = ALUMINIUM, closure: ClosureChoice = "analytical"
) -> Robot:
    """A 6-UPS robot, the platform of Stewart and Gough. It has 6 freedoms, those of the floating platform.

        stewart(hexagon(0.3, gap=0.3), hexagon(0.2, gap=1.7), height=0.4)

    Joints: platform, and for each leg i from 1 to 6 swing_i, cylinder_i and piston_i. The pistons are driven, and their
    positions are the lengths of the legs. These follow from the platform's pose in closed form; for the inverse see
    `coupler.configuration_of_actuators`.

    Args:
        base: 6 × 3, the ends of the legs on the base, m.
        platform: 6 × 3, their ends on the platform, in its own frame, m.
        height: height of the platform's origin above the base's in the assembled pose, m.
        bars, closure: as for `slider_crank`.
    """
    check_lengths("stewart", height=height)
    feet, points = numbers("stewart: base", base, (6, 3)), numbers("stewart: platform", platform, (6, 3))
    origin = height * Z
    b = PosedBuilder("stewart", bars)
    plate = [(origin, origin + point) for point in points if point.any()]
    b.link("platform", Free(), "ground", origin, bars=plate, position=[*origin, 1.0, 0.0, 0.0, 0.0], independent=True)
    for i, (foot, point) in enumerate(zip(feet, origin + points, strict=True), 1):
        require((point != foot).any(), f"stewart: leg {i} has zero length in the assembled pose")
        names = f"swing_{i}", f"cylinder_{i}", f"piston_{i}", f"ball_{i}"
        b.pointing_actuator(names, foot, point, "platform", np.cross(Z, foot) if foot[:2].any() else np.eye(3)[0])
    return with_warnings(b.build(closure=closure))


def delta(
    base: float,
    platform: float,
    upper: float,
    lower: float,
    *,
    height: float | None = None,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """A delta robot, hanging below its base. It has 3 freedoms, x, y and z of its platform, which does not rotate.

    Joints: x, y, z (whose body is the platform), and for each arm i from 1 to 3 shoulder_i, which is driven, swing_i
    and forearm_i. The two rods of a forearm stay parallel, and are modelled as one of twice the mass.

    Args:
        base, platform: radii of the circles on which the shoulders and the ends of the forearms lie, 120° apart, m.
        upper, lower: lengths of upper arms and forearms, m.
        height: height of the base above the platform in the assembled pose, m; by default the upper arms are level.
        bars, closure: as for `slider_crank`.
    """
    check_lengths("delta", base=base, platform=platform, upper=upper, lower=lower)
    if height is None:
        level = base + upper - platform
        require(abs(level) < lower, f"delta: forearms of {lower:g} m do not reach from level arms to the platform")
        height = float(np.sqrt(lower**2 - level**2))
    check_lengths("delta", height=height)
    origin = -height * Z
    b = PosedBuilder("delta", bars)
    ends = [origin + about_z(turn) @ np.array([platform, 0.0, 0.0]) for turn in np.arange(3) * 2.0 * np.pi / 3.0]
    for axis, parent, name in ((np.eye(3)[0], "ground", "x"), (np.eye(3)[1], "x", "y")):
        b.link(name, Prismatic(axis=axis), parent, origin, independent=True)
    plate = [(origin, end) for end in ends]
    b.link("z", Prismatic(axis=Z), "y", origin, bars=plate, position=[-height], independent=True)
    for i, end in enumerate(ends, 1):
        R = about_z((i - 1) * 2.0 * np.pi / 3.0)
        outwards, across = R[:, 0], R[:, 1]
        goal = np.array([platform - base, -height])  # in the arm's plane
        elbow = elbow_of(f"delta: arm {i}", goal, upper, lower, side=1.0)
        shoulder = base * outwards
        bend = shoulder + elbow[0] * outwards + elbow[1] * Z
        b.link(f"shoulder_{i}", Revolute(axis=across), "ground", shoulder, bars=[(shoulder, bend)], actuated=True)
        names = f"swing_{i}", f"forearm_{i}", f"ball_{i}"
        b.pointing_rod(names, f"shoulder_{i}", bend, end, "z", across, count=2)
    return with_warnings(b.build(closure=closure))


def spherical_rrr(
    upper: float = np.pi / 3.0,
    lower: float = np.pi / 2.0,
    base: float = 1.0,
    platform: float = 1.0,
    radius: float = 0.1,
    elbows: Any = (1, 1, 1),
    *,
    bars: Bars = ALUMINIUM,
    closure: ClosureChoice = "analytical",
) -> Robot:
    """A spherical 3-RRR robot: a platform that rotates about a point, on three arms whose axes meet there.

    It has 3 freedoms. Joints: platform (a ball), and for each arm i from 1 to 3 shoulder_i, which is driven, and
    elbow_i.

    Args:
        upper, lower: angles between the two axes of each link of an arm, rad.
        base, platform: angles of the shoulders' axes from −z, and of the platform's axes from +z, rad.
        radius: radius of the sphere on which the links lie, m.
        elbows: for each arm 1 or -1, the side of its elbow.
        bars, closure: as for `slider_crank`.
    """
    check_lengths("spherical_rrr", radius=radius)
    check_finite("spherical_rrr", upper=upper, lower=lower, base=base, platform=platform)
    sides = check_signs("spherical_rrr: elbows", elbows, 3)
    b, turns = PosedBuilder("spherical_rrr", bars), np.arange(3) * 2.0 * np.pi / 3.0
    tops = [np.array([np.sin(platform) * np.cos(t), np.sin(platform) * np.sin(t), np.cos(platform)]) for t in turns]
    b.link(
        "platform", Spherical(), "ground", (0, 0, 0), bars=[((0, 0, 0), radius * top) for top in tops], independent=True
    )
    for i, (turn, top, side) in enumerate(zip(turns, tops, sides, strict=True), 1):
        shoulder = np.array([np.sin(base) * np.cos(turn), np.sin(base) * np.sin(turn), -np.cos(base)])
        cosine = float(shoulder @ top)
        square = 1.0 - cosine**2
        require(
            square > _IN_LINE, f"spherical_rrr: arm {i} has its shoulder in line with the platform; change an angle"
        )
        alpha, beta = np.linalg.solve([[1.0, cosine], [cosine, 1.0]], [np.cos(upper), np.cos(lower)])
        height_square = (1.0 - alpha * np.cos(upper) - beta * np.cos(lower)) / square
        require(height_square > 0.0, f"spherical_rrr: arm {i} cannot be assembled: its links do not reach the platform")
        elbow = alpha * shoulder + beta * top + side * np.sqrt(height_square) * np.cross(shoulder, top)
        at, bend, end = radius * shoulder, radius * elbow, radius * top
        b.link(f"shoulder_{i}", Revolute(axis=shoulder), "ground", at, bars=[(at, bend)], actuated=True)
        b.link(f"elbow_{i}", Revolute(axis=elbow), f"shoulder_{i}", bend, bars=[(bend, end)])
        b.close(f"pin_{i}", Revolute(axis=top), f"elbow_{i}", "platform", end)
    return with_warnings(b.build(closure=closure))
