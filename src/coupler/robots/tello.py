"""Tello: a biped whose motors sit high in the legs and drive hips and shins through differentials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import asin, atan2, hypot, radians, sqrt
from typing import Any

import numpy as np

from coupler.mechanisms import HipDifferential, KneeAnkleDifferential, gear
from coupler.model import Free, Revolute, Robot, RobotBuilder
from coupler.robots._legged import X, Y, Z, foot_point, inertia_matrix, on_side, rotor_inertia

Array = Any  # an ndarray of floats, or of nodes
Phi = Callable[[Array], Array]

GEAR = 6.0

# Two cranks on the hip clamp, one on each side, pull on the thigh by rods; all in m, seen from the gimbal's centre.
HIP_HEIGHT = 0.1425  # of the cranks' axis over the gimbal
HIP_CRANK = 0.08  # of each crank, and how far behind the gimbal the rods meet the thigh
HIP_SIDE = 0.07  # of the rods off the middle
HIP_ROD = 0.155
HIP_UPRIGHT = GEAR * (  # of the rotors, rad: the thigh hangs straight down
    asin((HIP_ROD**2 - HIP_HEIGHT**2 - 2 * HIP_CRANK**2) / (2 * HIP_CRANK * hypot(HIP_HEIGHT, HIP_CRANK)))
    + atan2(HIP_CRANK, HIP_HEIGHT)
)

# A crank near the knee turns the foot by a rod along the shin; in m and degrees, seen from the crank's pivot.
SHIN = 0.26  # from knee to ankle
PIVOT, PIVOT_ANGLE = 0.042, 20.0  # from the knee, against the shin
ANKLE_CRANK, ANKLE_CRANK_ANGLE = 0.04, -59.16
ANKLE_LEVER, ANKLE_LEVER_ANGLE = 0.035, 24.0  # of the foot, on which the rod ends; against a line across the shin
ANKLE_ROD = 0.2146

HIP = HipDifferential(HIP_HEIGHT, HIP_CRANK, HIP_SIDE, HIP_ROD, GEAR)


def knee_and_ankle(degree: float) -> KneeAnkleDifferential:
    """The differential of knee and ankle, given the value of a degree in rad (the published code rounds π)."""
    angles = PIVOT_ANGLE * degree, ANKLE_CRANK_ANGLE * degree, ANKLE_LEVER_ANGLE * degree
    pivot, crank, lever = zip((PIVOT, ANKLE_CRANK, ANKLE_LEVER), angles, strict=True)
    return KneeAnkleDifferential(SHIN, pivot, crank, lever, ANKLE_ROD, GEAR)


KNEE_ANKLE = knee_and_ankle(radians(1.0))

# Mass in kg, centre in m, inertia about it: xx, yy, zz, xy, xz, yz in mg m².
TORSO = 2.3008, (0.0073, -0.0013, -0.0023), inertia_matrix((36600, 14200, 29100, 0, -600, -200))
CLAMP = 1.3289, (-0.001, 0, -0.0069), inertia_matrix((3200, 3300, 2700, 0, 100, 0))
GIMBAL = 0.4433, (-0.0027, 0, 0.0258), inertia_matrix((1800, 1700, 1500, 0, 0, 0))
THIGH = 1.5424, (0.003, -0.0001, -0.0323), inertia_matrix((10300, 9700, 2700, 0, -500, 0))
SHANK = 0.3072, (0.0047, -0.0003, -0.1043), inertia_matrix((5400, 5400, 100, 0, -200, 0))
FOOT = 0.1025, (0.0042, 0, -0.0251), inertia_matrix((94, 177.3, 90.1, 0, -3.8, 0))
ROTOR = 0.07, (0, 0, 0), rotor_inertia(Z, spin=5.1512e-5, across=2.5984e-5)

# How rotors, which turn about their z, are built in: that axis down, to the left, to the right.
DOWN = np.diag([1.0, -1.0, -1.0])
LEFT = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
RIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])

LEG = (  # part, what carries it, axis, where, how turned, what it weighs
    ("hip-clamp", "torso", Z, (0, 0.126, -0.087), None, CLAMP),
    ("hip-clamp-rotor", "torso", Z, (0, 0.126, -0.026), DOWN, ROTOR),
    ("hip-rotor-1", "hip-clamp", Z, (0, 0.04, 0), LEFT, ROTOR),
    ("hip-rotor-2", "hip-clamp", Z, (0, -0.04, 0), RIGHT, ROTOR),
    ("gimbal", "hip-clamp", X, (0, 0, -HIP_HEIGHT), None, GIMBAL),
    ("thigh", "gimbal", Y, (0, 0, 0), None, THIGH),
    ("knee-ankle-rotor-1", "thigh", Z, (0, 0.02655, 0), RIGHT, ROTOR),
    ("knee-ankle-rotor-2", "thigh", Z, (0, -0.02655, 0), LEFT, ROTOR),
    ("shin", "thigh", Y, (0, 0, -0.2268), None, SHANK),
    ("foot", "shin", Y, (0, 0, -SHIN), None, FOOT),
)
# The right toe is behind its heel: so it is in the published model, and kept.
TOES, HEEL, SOLE = {"left": 0.1, "right": -0.1}, -0.05, -0.041


def tello(*, as_shipped: bool = False) -> Robot:
    """The legs and the torso: 16 freedoms, 21 bodies. The rotors' velocities are independent in the differentials.

    Args:
        as_shipped: whether the differentials are those of the cluster algorithms' public code, slips included: another
            mechanism, see `shipped`.
    """
    b = RobotBuilder("tello")
    add_tello(b, "floating_base", as_shipped)
    return b.build()


def add_tello(b: RobotBuilder, base: str, as_shipped: bool) -> None:
    """Adds the torso, on a free joint of this name, and both legs, which differ in where they hang and in toes."""
    hip, knee_ankle = shipped() if as_shipped else (HIP.opening, KNEE_ANKLE.opening)
    b.body("torso", *TORSO)
    b.joint(base, Free(), "ground", "torso")
    for side, sign in (("left", 1), ("right", -1)):
        for part, carrier, axis, at, turned, weighs in LEG:
            b.body(f"{side}-{part}", *weighs)
            parent, child = (carrier, f"{side}-{part}") if carrier == "torso" else (f"{side}-{carrier}", part)
            place = on_side(sign, at) if carrier == "torso" else at
            driven = part == "hip-clamp" or "rotor-" in part
            b.joint(
                f"{parent}-to-{child}",
                Revolute(axis=axis),
                parent,
                f"{side}-{part}",
                place,
                turned,
                independent=driven,
                actuated=driven,
                start=HIP_UPRIGHT if part.startswith("hip-rotor") and not as_shipped else None,
            )
        clamp = f"torso-to-{side}-hip-clamp"
        b.couple(f"{side}-hip-clamp-gears", [clamp, f"{clamp}-rotor"], gear(GEAR), [clamp])
        hips = [f"{side}-hip-clamp-to-{part}" for part in ("hip-rotor-1", "hip-rotor-2", "gimbal")]
        b.couple(f"{side}-hip-differential", [*hips, f"{side}-gimbal-to-thigh"], hip)
        knees = [f"{side}-thigh-to-{part}" for part in ("knee-ankle-rotor-1", "knee-ankle-rotor-2", "shin")]
        b.couple(f"{side}-knee-ankle-differential", [*knees, f"{side}-shin-to-foot"], knee_ankle)
        foot_point(b, f"{side}-toe_contact", f"{side}-foot", (TOES[side], 0, SOLE), again=side == "right")
        foot_point(b, f"{side}-heel_contact", f"{side}-foot", (HEEL, 0, SOLE), again=True)


def shipped() -> tuple[Phi, Phi]:
    """Both differentials with the public code's slips: the same relations for another mechanism.

    Links and rotors have changed places, so that links are geared; the constants of both rods were lost in a division
    of integers, which makes them longer; and π is 3.1415.
    """
    hip_rod = sqrt(2 * HIP_CRANK**2 + 2 * HIP_SIDE**2 + HIP_HEIGHT**2)
    ankle_rod = sqrt(SHIN**2 + PIVOT**2 + ANKLE_CRANK**2 + ANKLE_LEVER**2)
    swapped = [2, 3, 0, 1]
    hip, knee_ankle = replace(HIP, rod=hip_rod), replace(knee_and_ankle(3.1415 / 180.0), rod=ankle_rod)
    return lambda q: hip.opening(q[swapped]), lambda q: knee_ankle.opening(q[swapped])
