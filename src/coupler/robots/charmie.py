"""CHARMIE: a domestic robot on wheels, with two arms, a head, and a body that squats and bows by linear actuators.

The robot of [004], its bodies numbered as there: 1 to 5 lead from the floor to the upper body, 6a to 13a are the left
arm, 6b to 13b the right one, 6c to 8c the head. x points to its right, y forward, z up. Each joint is called like the
body that it carries.

Numbers are those of the paper's tables, less their misprints, which docs/papers.md lists. What it does not print is
ours, and plausible: where actuators, springs and levers are on bodies 3 and 4, which point of body 5 the spring pulls
at, and all of the springs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import asin, inf, pi, sqrt

import numpy as np

from coupler.mechanisms import Spring, StrutBuilder, linear
from coupler.model import Fixed, Joint, ModelError, Prismatic, Revolute, Robot
from coupler.model.wording import listed
from coupler.robots._legged import X, Y, Z, inertia_matrix
from coupler.rotation import about_x, about_z

ARMS = ("a", "b")  # left and right
INDIRECT = {"4": "4d", "5": "5d"}  # joints that linear actuators move
# By body: of the joint before it, the kind and axis, the body that carries it, and where on that body, mm [Table 2].
# 6c has no axis there, and is called R: it is one of the three fixed joints that the text counts.
JOINTS = {
    "1": ("P", X, "ground", (0, 0, 0)),
    "2": ("P", Y, "1", (0, 0, 0)),
    "3": ("R", Z, "2", (0, 0, 0)),
    "4": ("P", Z, "3", (0, 0, 290)),  # up: −d₄ of the paper, which is how far body 4 has come down
    "5": ("R", X, "4", (0, 0, 438)),
    "6a": ("F", None, "5", (-200, -2, 460)),
    "6b": ("F", None, "5", (200, -2, 460)),
    "6c": ("F", None, "5", (0, 0, 495)),
    "7c": ("R", Z, "6c", (0, 0, 46.3)),
    "8c": ("R", X, "7c", (14.8, -5.3, 18.3)),
}
ARM = {  # likewise, of both arms
    "7": ("R", Z, "6", (0, 0, 30)),
    "8": ("R", X, "7", (0, 0, 61.5)),
    "9": ("R", Z, "8", (0, 0, 145)),
    "10": ("R", X, "9", (0, 0, 145)),
    "11": ("R", Z, "10", (0, 0, 140)),
    "12": ("R", X, "11", (0, 0, 140)),
}
JAWS = ("R", Y, "12", (0, 0, 52.3))
TURNED = {"6a": (pi / 2, -pi / 2, pi), "6b": (pi / 2, pi / 2, 0.0)}  # Euler angles ZXZ, rad [eq. 2, 3]
WEIGHTS = {  # mass in kg, centre in mm, and xx, yy, zz, xy, xz, yz about it in kg mm² [Tables 3, 4]
    "1": (0, (0, 0, 0), (0, 0, 0, 0, 0, 0)),
    "2": (0, (0, 0, 0), (0, 0, 0, 0, 0, 0)),
    "3": (45.7, (-0.5, 16.5, 88.7), (1.3e6, 1.5e6, 1.8e6, 1.4e2, 4.7e3, -5.3e5)),  # yz: printed −5.3E+6
    "4": (7.8, (0, 21, 330), (1.4e5, 1.9e5, 9.1e4, 2.9e1, -7.3e1, -2.4e4)),
    "5": (2.2, (0, -5.7, 338.5), (5.4e4, 6.6e4, 1.3e4, 1.2, -1.2e1, 1.87e3)),  # yz: printed 1.87+3
    "6": (0.3, (0, 0, 15), (3.2e1, 3.2e1, 2.0e1, 0, 0, 0)),
    "7": (0.3, (0, 0, 30.8), (1.0e2, 1.0e2, 2.0e1, 0, 0, 0)),
    "8": (0.4, (0, 0, 72.5), (7.1e2, 7.1e2, 2.6e1, 0, 0, 0)),
    "9": (0.4, (0, 0, 72.5), (7.1e2, 7.1e2, 2.6e1, 0, 0, 0)),
    "10": (0.4, (0, 0, 70), (6.6e2, 6.6e2, 2.6e1, 0, 0, 0)),
    "11": (0.4, (0, 0, 70), (6.6e2, 6.6e2, 2.6e1, 0, 0, 0)),
    "12": (0.2, (0, 11.6, 28.4), (7.5e1, 5.6e1, 3.3e1, 0, 0, -1.8e1)),
    "13_1": (0.1, (-24.7, 0, 17.8), (4.2e1, 6.2e1, 2.7e1, 0, 2.0e1, 0)),
    "13_2": (0.1, (24.7, 0, 17.8), (4.2e1, 6.2e1, 2.7e1, 0, -2.0e1, 0)),
    "6c": (0.3, (0, -1.3, 5.1), (1.5e2, 1.3e2, 2.5e2, 0, 0, 4.7)),
    "7c": (0.4, (-0.8, 7.1, 9), (3.0e2, 2.6e2, 5.2e2, 2.6, -0.8e-1, 6.8)),
    "8c": (0.8, (-11.8, 15.2, 75.7), (8.5e3, 7.2e3, 4.9e3, 3.2e1, 1.4e2, -2.2e2)),  # yy: printed 7.2E+2
}
POINTS = {  # mm: those of body 5 [Table 1], and the centre of a claw [§6]
    "5": {
        "A": (0, 0, 0),
        "Ba": (-200, -2, 460),
        "Bb": (200, -2, 460),
        "Bc": (0, 0, 495),
        "C": (0, -5.7, 338.5),
        "D": (0, 0, -15),
        "E": (0, 0, 85),
        "F": (0, 0, 397.2),
        "G": (0, 56, 397.2),
        "H": (0, 0, 460),
        "I": (0, -20, 460),
        "J": (200, -20, 460),
        "K": (-200, -20, 460),
        "O": (0, 0, 0),
    },
    "12a": {"D": (0, 0, 102.3)},
    "12b": {"D": (0, 0, 102.3)},
}
LENGTH = 0.4  # m, of both actuators with joints 4 and 5 at zero [§6]

# What follows is ours, m and N: the paper has the mechanisms, and names their points, but prints no numbers of them.
# Heights of E₄ and F₄ are such that the actuators are as long as the paper says.
D3 = (0.0, -0.07, 0.04)  # where actuator 4d stands on body 3
E4 = (0.0, -0.05, D3[2] + sqrt(LENGTH**2 - 0.02**2) - 0.29)  # where it ends on body 4
F4 = (0.0, 0.12, 0.438 + 0.3972 - sqrt(LENGTH**2 - (0.12 - 0.056) ** 2))  # where 5d stands on body 4; it ends at G₅
S4 = (0.0, -0.12, 0.40)  # where spring 5s is held on body 4; it ends at I₅
F3 = (0.03, 0.06, 0.25)  # the lever's axle on body 3, on the right
S3 = (0.06, 0.06, 0.50)  # where the lever's spring is held on body 3, on the right
H4 = (0.0, 0.06, 0.065)  # the rail on body 4 along which sliders move
LEVER, AT_SPRING, DROP = 0.16, 0.10, 0.03  # b and a of a lever, and how far its pin is below the rail, c
LIMITS = {"4": (-0.2, 0.05), "5": (-1.2, 0.6)}  # m and rad: within what levers and actuators reach
SPRINGS = {  # of the squat, one on each side, and of the bow
    "4slb": Spring(400.0, 0.15, 80.0),
    "4srb": Spring(400.0, 0.15, 80.0),
    "5s": Spring(2000.0, 0.50, 5.0),
}


def charmie(*, independent: str = "joints", springs: Mapping[str, Spring | None] | None = None) -> Robot:
    """40 bodies, 34 revolute, 10 prismatic and 3 fixed joints, 7 loops, 21 freedoms; 62.4 kg.

    Independent are the joints of the main bodies, and of each claw one of the two jaws. Actuators are called like the
    joints that they drive, but for the linear ones, 4d and 5d, whose positions are their lengths.

    Args:
        independent: "joints", by which loops have a closed form; or "actuators", with the lengths of the two linear
            ones, joints 4d2 and 5d2, in place of joints 4 and 5: a motion is then given as controllers have it.
        springs: other springs than ours, by name: 4slb and 4srb of the balancing mechanism, on the left and on the
            right, 5s between bodies 4 and 5; None for one that is taken out.
    """
    if independent not in ("joints", "actuators"):
        raise ModelError(f"charmie: independent must be 'joints' or 'actuators', got {independent!r}")
    b = StrutBuilder("charmie")
    for name, row in JOINTS.items():
        led = independent == "joints" or name not in INDIRECT
        _add(b, name, WEIGHTS[name.rstrip("ab")], row, TURNED.get(name), led)
    for side in ARMS:
        for number, (kind, axis, carrier, at) in ARM.items():
            _add(b, number + side, WEIGHTS[number], (kind, axis, carrier + side, at))
        for jaw in (1, 2):
            kind, axis, carrier, at = JAWS
            _add(b, f"13{side}{jaw}", WEIGHTS[f"13_{jaw}"], (kind, axis, carrier + side, at), driven=jaw == 1)
        jaws = [f"13{side}1", f"13{side}2"]
        b.couple(f"claw_{side}", jaws, linear([[1.0], [-1.0]]), jaws[:1])  # mirror images of each other
    for body, points in POINTS.items():
        for point, at in points.items():
            b.frame(f"{body}.{point}", body, _metres(at))
    b.strut("4d", "3", "4", D3, E4, axis=X, actuated=True)
    b.strut("5d", "4", "5", F4, _metres(POINTS["5"]["G"]), axis=X, actuated=True)
    chosen = {**SPRINGS, **(springs or {})}
    b.strut("5s", "4", "5", S4, _metres(POINTS["5"]["I"]), axis=X, spring=chosen.pop("5s"))
    for side in (-1, 1):
        _balance(b, side, chosen.pop("4slb" if side < 0 else "4srb"))
    if chosen:
        raise ModelError(f"charmie: there is no spring {listed(chosen)}; there are {listed(SPRINGS)}")
    return b.build(closure="analytical" if independent == "joints" else "numerical")


def _add(
    b: StrutBuilder, name: str, weight: tuple, row: tuple, turned: tuple | None = None, driven: bool = True
) -> None:
    """Adds a main body and its joint, which its own motor drives unless it is fixed or one of the two indirect ones."""
    mass, centre, moments = weight
    kind, axis, carrier, at = row
    b.body(name, mass, _metres(centre), inertia_matrix(moments))
    lower, upper = LIMITS.get(name, (-inf, inf))
    joint: Joint = {"P": Prismatic, "R": Revolute}[kind](axis=axis, lower=lower, upper=upper) if axis else Fixed()
    moves = axis is not None
    b.joint(
        name,
        joint,
        carrier,
        name,
        _metres(at),
        None if turned is None else zxz_euler(*turned),
        independent=moves and driven,
        actuated=moves and driven and name not in INDIRECT,
    )


def _balance(b: StrutBuilder, side: int, spring: Spring | None) -> None:
    """Adds half of the mechanism that balances the squat: a sprung lever on body 3, under a slider of body 4.

    [004, eq. 22 to 27, Fig. 7]
    """
    lever, strut, slider = (f"4s{'l' if side < 0 else 'r'}{part}" for part in "abc")
    rise = JOINTS["4"][3][2] / 1e3 + H4[2] - DROP - F3[2]  # of the lever's end above its axle
    axle, pin = _mirrored(side, F3), _mirrored(side, (LEVER, 0.0, 0.0))
    b.body(lever)
    b.joint(lever, Revolute(axis=Y), "3", lever, axle, start=[-side * asin(rise / LEVER)])
    b.body(slider)
    b.joint(slider, Prismatic(axis=X), "4", slider, H4, start=[axle[0] + side * sqrt(LEVER**2 - rise**2)])
    b.loop(lever[:-1], Revolute(axis=Y), lever, slider, pin, (0.0, 0.0, -DROP))
    b.strut(strut, "3", lever, _mirrored(side, S3), _mirrored(side, (AT_SPRING, 0.0, 0.0)), axis=Y, spring=spring)


def zxz_euler(first: float, second: float, third: float) -> np.ndarray:
    """Turns about z, about x as it then is, and about z again. [004, eq. 17, with s₁ s₂ in its corner]"""
    return about_z(first) @ about_x(second) @ about_z(third)


def _metres(point: tuple) -> tuple:
    return tuple(x / 1e3 for x in point)


def _mirrored(side: int, point: tuple) -> tuple:
    return (side * point[0], *point[1:])
