"""The planar four-bar of two cranks and a coupler: a parallelogram."""

from __future__ import annotations

from math import radians

from coupler.model import Revolute, Robot, RobotBuilder

CRANK, COUPLER = 0.5, 1.0  # m; the rocker is as long as the crank, the ground as the coupler
LINK = 3.3, (0, 0, 0), (0.011253, 0.036203, 0.042673)  # mass in kg, centre, moments in kg m²; the same for all three
GRAVITY = (0.7, -9.81, 0.3)  # tilted, m/s²
TURNED = radians(60.0)  # of the crank, near which the loop is closed first: flat it is singular


def four_bar() -> Robot:
    """The crank link1 and the rocker link3 on the ground, with the coupler link2 on the crank: 1 freedom, 3 bodies."""
    b = RobotBuilder("four_bar", gravity=GRAVITY)
    for link in ("link1", "link3", "link2"):
        b.body(link, *LINK)
    turn = Revolute(axis=(0, 0, 1))
    b.joint("joint1", turn, "ground", "link1", start=TURNED, independent=True, actuated=True)
    b.joint("joint3", turn, "ground", "link3", at=(COUPLER, 0, 0), start=TURNED)
    b.joint("joint2", turn, "link1", "link2", at=(CRANK, 0, 0), start=-TURNED)
    b.loop("loop1", turn, "link2", "link3", at=(COUPLER, 0, 0), meets=(CRANK, 0, 0))
    b.contact("ee", "link2", (COUPLER, 0, 0))
    return b.build()
