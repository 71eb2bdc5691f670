"""The MIT Humanoid: geared arms and hips, and legs whose knees and ankles are driven by belts. [001, fig. 1a, §IX]"""

from __future__ import annotations

from typing import NamedTuple

from coupler.mechanisms import belt, gear
from coupler.model import Free, Revolute, Robot, RobotBuilder
from coupler.robots._legged import (
    BASE,
    Point,
    X,
    Y,
    Z,
    foot_point,
    inertia_matrix,
    on_side,
    rotor_inertia,
    torso_contacts,
)
from coupler.rotation import about_y

SIDES = {"right": -1, "left": 1}


class _Rotor(NamedTuple):
    """Mass, kg, and moments of inertia about the axis and across it, kg m²."""

    mass: float
    spin: float
    across: float


_SMALL = _Rotor(0.05, spin=1.6841e-4, across=1.084e-4)
_LARGE = _Rotor(0.1, spin=5.548e-4, across=3.443e-4)


class _Joint(NamedTuple):
    """A joint of the left side with its link and its rotor; the right side is its mirror image."""

    name: str
    axis: tuple[int, int, int]
    at: Point  # on the link before, m
    pitch: float  # against it, rad; the rotor's, too
    mass: float  # of the link, kg
    centre: Point  # m
    inertia: tuple[float, ...]  # xx, yy, zz, xy, xz, yz, mg m²
    rotor: _Rotor
    rotor_at: Point  # on the link before the joint; of the ankle, before the knee
    ratio: float


# fmt: off
_ARM = (
    _Joint("shoulder_ry", Y, (0.01346, 0.17608, 0.24657), 0.0,
           0.788506, (0.009265, 0.052623, -0.0001249), (1367.8, 739.2, 884.0, 26.6, 2.1, -1.2),
           _SMALL, (0.01346, 0.16, 0.24657), 6.0),
    _Joint("shoulder_rx", X, (0.0, 0.0575, 0.0), 0.0,
           0.80125, (0.0006041, 0.0001221, -0.082361), (1152.4, 1192.1, 1238.6, 0.7, 39.6, 1.4),
           _SMALL, (0.0, 0.0575, 0.0), 6.0),
    _Joint("shoulder_rz", Z, (0.0, 0.0, -0.1025), 0.0,
           0.905588, (0.0001703, -0.016797, -0.06), (1271.3, 1747.7, 819.1, 1.0, -8.0, -22.5),
           _SMALL, (0.0, 0.0, -0.1025), 6.0),
    _Joint("elbow", Y, (0.0, 0.0, -0.1455), 0.0,
           0.34839, (-0.0059578, 0.000111, -0.0426735), (1570.0, 1616.7, 61.9, 0.2, 33.5, 3.0),
           _SMALL, (0.0, -0.0325, -0.06), 9.0),
)
_HIP = (
    _Joint("hip_rz", Z, (-0.00565, 0.082, -0.05735), -0.174533,
           0.84563, (-0.064842, -3.6e-05, -0.06309), (1537.3, 1425.2, 1202.8, 1.1, 557.8, 2.4),
           _SMALL, (-0.00842837, 0.082, -0.041593), 6.0),
    _Joint("hip_rx", X, (-0.06435, 0.0, -0.07499), 0.436332,
           1.20868, (0.067232, -0.013018, 0.0001831), (1753.5, 3338.0, 1992.7, -6.3, -80.0, -13.0),
           _SMALL, (-0.0827, 0.0, -0.066436), 6.0),
    _Joint("hip_ry", Y, (0.071, -0.0018375, 0.0), -0.261799,
           2.64093, (0.0132054, 0.0269864, -0.096021), (24376.1, 25901.5, 3892.9, 99.6, 654.8, 2671.3),
           _LARGE, (0.071, -0.024, 0.0), 6.0),
)
_KNEE = _Joint("knee", Y, (0.0, 0.0, -0.267), 0.0,
               0.35435, (0.00528, 0.0014762, -0.13201), (3051.0, 3033.0, 252.9, 0.0, 87.3, 39.3),
               _LARGE, (0.013, 0.0497, -0.0178), 12.0)
_ANKLE = _Joint("ankle", Y, (0.0, 0.0, -0.2785), 0.0,
                0.280951, (0.022623, 0.0, -0.012826), (84.2, 795.9, 768.1, 0.0, -48.8, 0.0),
                _SMALL, (0.01563, 0.0454, -0.13354), 12.0)
# fmt: on


def mit_humanoid(rotors: bool = True) -> Robot:
    """The robot: a free base, two arms of four joints and two legs of five.

    Args:
        rotors: whether its 18 motors have rotors; without them it is a tree of links.
    """
    b = RobotBuilder("mit_humanoid" if rotors else "mit_humanoid_no_rotors")
    trunk = inertia_matrix((172699.0, 105949.0, 91906.0, 1419.0, 4023.0, -1672.0))
    b.body(BASE, 8.52, (0.009896, 0.004771, 0.100522), trunk)
    b.joint("floating_base", Free(), "ground", BASE)
    torso_contacts(b, (0.05, 0.082, 0.15196))
    for side in SIDES:
        add_arm(b, side, BASE, rotors)
        add_leg(b, side, BASE, rotors)
    return b.build()


def add_arm(b: RobotBuilder, side: str, base: str, rotors: bool = True) -> None:
    """Adds an arm, from the shoulder to the hand."""
    forearm = _add_geared(b, side, base, _ARM, rotors)
    b.contact(f"{side}_elbow_contact", forearm, (0.0, 0.0, 0.0))
    b.contact(f"{side}_hand_contact", forearm, (0.0, 0.0, -0.27))


def add_leg(b: RobotBuilder, side: str, base: str, rotors: bool = True) -> None:
    """Adds a leg, from the hip to the foot. Both rotors below the hip are in the thigh; a belt leads to the ankle."""
    thigh = _add_geared(b, side, base, _HIP, rotors)
    if not rotors:
        foot = _add_link(b, side, _add_link(b, side, thigh, _KNEE), _ANKLE)
    else:
        driven_by_belt = _add_rotor(b, side, thigh, _ANKLE)
        shank = _add_link(b, side, thigh, _KNEE)
        geared = _add_rotor(b, side, thigh, _KNEE)
        foot = _add_link(b, side, shank, _ANKLE)
        joints = [f"{body}_joint" for body in (shank, geared, driven_by_belt, foot)]
        ratios = belt(_KNEE.ratio, _ANKLE.ratio, _ANKLE.ratio)
        b.couple(f"{side}_knee_and_ankle", joints, ratios, [joints[0], joints[-1]])
    b.contact(f"{side}_knee_contact", thigh, _KNEE.at)
    foot_point(b, f"{side}_toe_contact", foot, (0.1, 0.0, -0.041), again=side == "left")
    foot_point(b, f"{side}_heel_contact", foot, (-0.05, 0.0, -0.041), again=True)


def _add_geared(b: RobotBuilder, side: str, base: str, joints: tuple[_Joint, ...], rotors: bool) -> str:
    """Links, one after the other, each geared to a rotor on the one before; returns the last."""
    parent = base
    for joint in joints:
        link = _add_link(b, side, parent, joint)
        if rotors:
            pair = [f"{body}_joint" for body in (link, _add_rotor(b, side, parent, joint))]
            b.couple(f"{side}_{joint.name}", pair, gear(joint.ratio), pair[:1])
        parent = link
    return parent


def _add_link(b: RobotBuilder, side: str, parent: str, joint: _Joint) -> str:
    body, sign = f"{side}_{joint.name}_link", SIDES[side]
    b.body(body, joint.mass, on_side(sign, joint.centre), inertia_matrix(joint.inertia, sign))
    _add_joint(b, side, parent, body, joint, joint.at)
    return body


def _add_rotor(b: RobotBuilder, side: str, parent: str, joint: _Joint) -> str:
    body, (mass, spin, across) = f"{side}_{joint.name}_rotor", joint.rotor
    b.body(body, mass, inertia=rotor_inertia(joint.axis, spin, across))
    _add_joint(b, side, parent, body, joint, joint.rotor_at)
    return body


def _add_joint(b: RobotBuilder, side: str, parent: str, body: str, joint: _Joint, at: Point) -> None:
    turned = about_y(joint.pitch) if joint.pitch else None
    actuated = body.endswith("link")
    place = on_side(SIDES[side], at)
    b.joint(f"{body}_joint", Revolute(axis=joint.axis), parent, body, place, turned, actuated=actuated)
