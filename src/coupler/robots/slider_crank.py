"""The slider-crank: a crank that moves a piston by a rod."""

from __future__ import annotations

from math import radians

from coupler.model import Prismatic, Revolute, Robot, RobotBuilder

CRANK, ROD = 0.04, 0.14  # m
TURNED = radians(60.0)  # of the crank, near which the loop is closed first

BODIES = (  # body, mass in kg, centre in m, moments about it in kg m²: a disc with its pin, a slender rod, a cylinder
    ("crank", 1.2, (0.005, 0, 0), (9.0e-4, 1.6e-3, 9.0e-4)),
    ("rod", 0.35, (0.05, 0, 0), (4.0e-5, 8.5e-4, 8.6e-4)),
    ("piston", 0.5, (0.01, 0, 0), (2.8e-4, 2.4e-4, 2.4e-4)),
)


def slider_crank() -> Robot:
    """Crank and rod turn about y, the piston slides along x: 1 freedom, 3 bodies. The crank is driven, and can turn."""
    b = RobotBuilder("slider_crank")
    for body in BODIES:
        b.body(*body)
    turn = Revolute(axis=(0, -1, 0))  # from x up to z
    b.joint("shaft", turn, "ground", "crank", actuated=True, start=TURNED)
    b.joint("crank_pin", turn, "crank", "rod", at=(CRANK, 0, 0), start=-TURNED)
    b.joint("slide", Prismatic(axis=(1, 0, 0)), "ground", "piston", start=ROD)
    b.loop("piston_pin", turn, "rod", "piston", at=(ROD, 0, 0))
    b.contact("face", "piston", (0.03, 0, 0))
    return b.build()
