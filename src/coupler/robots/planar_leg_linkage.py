"""A leg in a plane, whose knee is driven from the thigh by a four-bar."""

from __future__ import annotations

from math import radians

from coupler.model import Revolute, Robot, RobotBuilder

# Lengths in m. Driver and support are equally long and as far apart on the thigh as on the foot: a parallelogram.
DRIVER_AT, SUPPORT_AT, SHANK, FOOT = 0.011, 0.042, 0.096, 0.127
APART = SUPPORT_AT - DRIVER_AT
GRAVITY = (0.7, -9.81, 0.3)  # tilted, m/s²
BENT = radians(60.0)  # the knee, near which the loop is closed first: flat it is singular

LINKS = (  # body, mass in kg, where its centre is along the link in m, moment about it in kg m²
    ("thigh", 0.23, 0.0364, 4.5389e-5),
    ("shank_driver", 0.004, 0.048, 3.257e-6),
    ("shank_support", 0.225, 0.04, 2.2918e-5),
    ("foot", 0.017, 0.0635, 2.2176e-5),
)


def planar_leg_linkage() -> Robot:
    """A thigh, two links that make the shank, and the foot: 2 freedoms, 4 bodies. Only the plane's inertias count."""
    b = RobotBuilder("planar_leg_linkage", gravity=GRAVITY)
    for name, mass, centre, moment in LINKS:
        b.body(name, mass, (centre, 0, 0), (0, 0, moment), ideal=True)
    turn = Revolute(axis=(0, 0, 1))
    b.joint("thigh_joint", turn, "ground", "thigh", independent=True, actuated=True)
    for parent, child, at, start, driven in (
        ("thigh", "shank_driver", DRIVER_AT, BENT, True),
        ("thigh", "shank_support", SUPPORT_AT, BENT, False),
        ("shank_driver", "foot", SHANK, -BENT, False),
    ):
        b.joint(f"{child}_joint", turn, parent, child, (at, 0, 0), independent=driven, actuated=driven, start=start)
    b.loop("linkage", turn, "foot", "shank_support", at=(APART, 0, 0), meets=(SHANK, 0, 0))
    b.contact("end-effector", "foot", (FOOT, 0, 0))
    return b.build()
