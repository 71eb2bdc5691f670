"""Sub-mechanisms: linkages and parallel mechanisms with the user's dimensions, and functions γ of transmissions.

    b = RobotBuilder("robot")
    b.body("torso", ...)
    b.attach(stewart(hexagon(0.06, 0.3), hexagon(0.05, 1.7), height=0.1), prefix="neck/", to="torso", at=(0, 0, 0.4))

A sub-mechanism is a robot of its own, and becomes part of another robot when it is attached to it. Its loops have a
closed form, which closes them unless another way is chosen: see docs/mechanisms.md.
"""

from coupler.mechanisms.differentials import HipDifferential, KneeAnkleDifferential
from coupler.mechanisms.four_bar import FourBar
from coupler.mechanisms.parallel_robots import delta, hexagon, spherical_rrr, stewart
from coupler.mechanisms.planar import pantograph, planar_rrr, rrpr, slider_crank
from coupler.mechanisms.platforms import rus_platform, spu_platform, wrist
from coupler.mechanisms.posed import Bars, PosedBuilder
from coupler.mechanisms.struts import Spring, StrutBuilder
from coupler.mechanisms.transmissions import (
    Gear,
    Linear,
    Polynomial,
    belt,
    differential,
    gear,
    linear,
    polynomial,
    rack_and_pinion,
)

__all__ = [
    "Bars",
    "FourBar",
    "Gear",
    "HipDifferential",
    "KneeAnkleDifferential",
    "Linear",
    "Polynomial",
    "PosedBuilder",
    "Spring",
    "StrutBuilder",
    "belt",
    "delta",
    "differential",
    "gear",
    "hexagon",
    "linear",
    "pantograph",
    "planar_rrr",
    "polynomial",
    "rack_and_pinion",
    "rrpr",
    "rus_platform",
    "slider_crank",
    "spherical_rrr",
    "spu_platform",
    "stewart",
    "wrist",
]
