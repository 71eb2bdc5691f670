"""The MIT Mini Cheetah: a quadruped with a geared motor at each of its twelve joints. [001, §IX]"""

from __future__ import annotations

import numpy as np

from coupler.mechanisms import gear
from coupler.model import Free, Revolute, Robot, RobotBuilder
from coupler.robots._legged import BASE, X, Y, foot_point, inertia_matrix, on_side, rotor_inertia, torso_contacts

_LEGS = {"HR": (-1, -1), "HL": (-1, 1), "FR": (1, -1), "FL": (1, 1)}  # hind or front, right or left: signs of x and y

# Of the front left leg: axis, where link and rotor are on the link before, gear ratio.
_JOINTS = {
    "abad": (X, (0.19, 0.049, 0.0), (0.125, 0.049, 0.0), 6.0),
    "hip": (Y, (0.0, 0.062, 0.0), (0.0, 0.04, 0.0), 6.0),
    "knee": (Y, (0.0, 0.0, -0.209), (0.0, 0.0, 0.0), 9.33),
}
# Of left legs: mass, centre, inertia (xx, yy, zz, xy, xz, yz). The hip's breaks the triangle inequality by 4 %.
_LINKS = {
    "abad": (0.54, (0.0, 0.036, 0.0), (381.0, 560.0, 444.0, 58.0, 0.45, 0.95)),
    "hip": (0.634, (0.0, 0.016, -0.02), (1983.0, 2103.0, 408.0, 245.0, 13.0, 1.5)),
    "knee": (0.064, (0.0, 0.0, -0.061), (6.0, 248.0, 245.0, 0.0, 0.0, 0.0)),
}
# From the abduction link on, legs are described in a frame that looks backwards.
_TURNED = {"hip": np.diag([-1.0, -1.0, 1.0])}


def mini_cheetah() -> Robot:
    """The robot: a free base and four legs of three joints; 12 motors, each geared to its joint."""
    b = RobotBuilder("mini_cheetah")
    b.body(BASE, 3.3, inertia=(0.011253, 0.036203, 0.042673))
    b.joint("floating_base", Free(), "ground", BASE)
    torso_contacts(b, (0.19, 0.049, 0.05))
    for leg, (front, side) in _LEGS.items():
        _add_leg(b, leg, front, side)
    return b.build()


def _add_leg(b: RobotBuilder, leg: str, front: int, side: int) -> None:
    parent = BASE
    for name, (axis, *places, ratio) in _JOINTS.items():
        mass, centre, inertia = _LINKS[name]
        link, rotor = (f"{leg}_{name}_{part}" for part in ("link", "rotor"))
        b.body(link, mass, on_side(side, centre), inertia_matrix(inertia, side), ideal=name == "hip")
        b.body(rotor, 0.055, inertia=rotor_inertia(axis, spin=63e-6, across=33e-6))
        for body, (x, y, z) in zip((link, rotor), places, strict=True):
            at, turned = (front * x, side * y, z), _TURNED.get(name)
            b.joint(f"{body}_joint", Revolute(axis=axis), parent, body, at, turned, actuated=body == link)
        b.couple(f"{leg}_{name}", [f"{link}_joint", f"{rotor}_joint"], gear(ratio), [f"{link}_joint"])
        parent = link
    b.contact(f"{leg}_hip_contact", f"{leg}_hip_link", (0.0, 0.0, 0.0))
    b.contact(f"{leg}_knee_contact", f"{leg}_hip_link", (0.0, 0.0, -0.209))
    foot_point(b, f"{leg}_foot_contact", f"{leg}_knee_link", on_side(side, (0.0, -0.004, -0.195)), again=leg != "FR")
