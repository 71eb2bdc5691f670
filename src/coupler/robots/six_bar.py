"""Two planar chains, of three links and of two, that start at one point and meet at their ends."""

from __future__ import annotations

from coupler.model import Revolute, Robot, RobotBuilder

LINK = 3.3, (0, 0, 0), (0.011253, 0.036203, 0.042673)  # mass in kg, centre, moments in kg m²; the same for all
GRAVITY = (0.7, -9.81, 0.3)  # tilted, m/s²
LENGTHS = {"link1": 0.1, "link2": 0.2, "link3": 0.3, "link4": 0.4, "link5": 0.5}  # m
LINKS = (  # number, parent, whether it is driven
    (1, "ground", True),
    (4, "ground", False),
    (2, "link1", True),
    (5, "link4", False),
    (3, "link2", True),
)


def six_bar() -> Robot:
    """The chain of the links 1, 2 and 3, which are driven, closed by the links 4 and 5: 3 freedoms, 5 bodies."""
    b = RobotBuilder("six_bar", gravity=GRAVITY)
    turn = Revolute(axis=(0, 0, 1))
    for number, parent, driven in LINKS:
        at = (LENGTHS.get(parent, 0.0), 0, 0)
        b.body(f"link{number}", *LINK)
        b.joint(f"joint{number}", turn, parent, f"link{number}", at, independent=driven, actuated=driven)
    b.loop("constraint1", turn, "link3", "link5", at=(LENGTHS["link3"], 0, 0), meets=(LENGTHS["link5"], 0, 0))
    b.contact("ee", "link3", (LENGTHS["link3"], 0, 0))
    return b.build()
