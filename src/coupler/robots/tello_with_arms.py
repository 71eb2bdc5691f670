"""Tello with arms: the biped and, on its torso, two arms of four geared joints each."""

from __future__ import annotations

from coupler.mechanisms import gear
from coupler.model import Revolute, Robot, RobotBuilder
from coupler.robots._legged import X, Y, Z, inertia_matrix, on_side, rotor_inertia
from coupler.robots.tello import add_tello

# The left arm; the right one is its mirror image.
LINKS = {  # mass in kg, centre in m, inertia about it: xx, yy, zz, xy, xz, yz in mg m²
    "shoulder-ry": (0.788506, (0.009265, 0.052623, -0.0001249), (1367.8, 739.2, 884.0, 26.6, 2.1, -1.2)),
    "shoulder-rx": (0.80125, (0.0006041, 0.0001221, -0.082361), (1152.4, 1192.1, 1238.6, 0.7, 39.6, 1.4)),
    "shoulder-rz": (0.905588, (0.0001703, -0.016797, -0.06), (1271.3, 1747.7, 819.1, 1.0, -8.0, -22.5)),
    "elbow": (0.34839, (-0.0059578, 0.000111, -0.0426735), (1570.0, 1616.7, 61.9, 0.2, 33.5, 3.0)),
}
JOINTS = {  # axis, where link and rotor are on the link before, gear ratio
    "shoulder-ry": (Y, (0.01346, 0.17608, 0.24657), (0.01346, 0.16, 0.24657), 6.0),
    "shoulder-rx": (X, (0, 0.0575, 0), (0, 0.0575, 0), 6.0),
    "shoulder-rz": (Z, (0, 0, -0.1025), (0, 0, -0.1025), 6.0),
    "elbow": (Y, (0, 0, -0.1455), (0, -0.0325, -0.06), 9.0),
}
NAMES = {"shoulder-rz": "shoulder-rz-link", "elbow": "elbow-link"}  # of links that are not called like their joints
HAND = (0, 0, -0.27)


def tello_with_arms(*, as_shipped: bool = True) -> Robot:
    """Legs, torso and arms: 24 freedoms, 37 bodies. The arms' rotors have inertia but, in the published model, no mass.

    Args:
        as_shipped: whether the differentials are those of the published model, whose reference this robot agrees with;
            else they are the physical ones, as in `tello`.
    """
    b = RobotBuilder("tello_with_arms")
    add_tello(b, "torso-to-ground", as_shipped)
    for side, sign in (("left", 1), ("right", -1)):
        parent, joint = "torso", f"torso-to-{side}-"
        for part, (axis, at, rotor_at, ratio) in JOINTS.items():
            mass, centre, moments = LINKS[part]
            link, rotor = f"{side}-{NAMES.get(part, part)}", f"{side}-{part}-rotor"
            pair = [joint + part, f"{joint}{part}-rotor"]
            b.body(link, mass, on_side(sign, centre), inertia_matrix(moments, sign))
            b.body(rotor, inertia=rotor_inertia(axis, spin=1.6841e-4, across=1.084e-4), ideal=True)
            b.joint(pair[0], Revolute(axis=axis), parent, link, on_side(sign, at), actuated=True)
            b.joint(pair[1], Revolute(axis=axis), parent, rotor, on_side(sign, rotor_at))
            b.couple(f"{side}-{part}-gears", pair, gear(ratio), pair[:1])
            parent, joint = link, f"{side}-{part}-to-"
        b.contact(f"{side}-elbow-contact", parent, (0, 0, 0))
        b.contact(f"{side}-hand-contact", parent, HAND)
    return b.build()
