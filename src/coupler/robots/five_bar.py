"""The planar five-bar: two arms, driven at their shoulders, that hold one tip."""

from __future__ import annotations

from math import atan2, radians

from coupler.model import Revolute, Robot, RobotBuilder

SHOULDER, UPPER, FORE = 0.1, 0.2, 0.25  # from the middle to each shoulder, shoulder to elbow, elbow to tip; m

# Mass in kg, centre in m, moments about it in kg m²: aluminium tubes.
UPPER_ARM = 0.3, (0.1, 0, 0), (3.0e-5, 1.05e-3, 1.05e-3)
FOREARM = 0.2, (0.12, 0, 0), (1.5e-5, 1.1e-3, 1.1e-3)

# Where the loop is closed first, elbows up and out: upper arms 30° off the vertical, the tip above and between them.
RAISED = radians(60.0)
BENT = RAISED + atan2(0.15, 0.2)  # forearms rise by 0.15 m on their 0.2 m to the middle


def five_bar() -> Robot:
    """Two upper arms and two forearms in the vertical plane x, z: 2 freedoms, 4 bodies."""
    b = RobotBuilder("five_bar")
    turn = Revolute(axis=(0, -1, 0))  # from x up to z
    for side, at, raised, bent in (
        ("left", -SHOULDER, radians(180.0) - RAISED, BENT - radians(180.0)),
        ("right", SHOULDER, RAISED, radians(180.0) - BENT),
    ):
        b.body(f"{side}_upper_arm", *UPPER_ARM)
        b.body(f"{side}_forearm", *FOREARM)
        b.joint(f"{side}_shoulder", turn, "ground", f"{side}_upper_arm", at=(at, 0, 0), actuated=True, start=raised)
        b.joint(f"{side}_elbow", turn, f"{side}_upper_arm", f"{side}_forearm", at=(UPPER, 0, 0), start=bent)
    b.loop("tip_pin", turn, "left_forearm", "right_forearm", at=(FORE, 0, 0), meets=(FORE, 0, 0))
    b.contact("tip", "left_forearm", (FORE, 0, 0))
    return b.build()
