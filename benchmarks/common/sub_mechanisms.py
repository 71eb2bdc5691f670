"""Sub-mechanisms with some dimensions, one of each kind."""

from __future__ import annotations

from collections.abc import Callable

from coupler import Robot
from coupler.mechanisms import (
    delta,
    hexagon,
    planar_rrr,
    rrpr,
    rus_platform,
    slider_crank,
    spherical_rrr,
    spu_platform,
    stewart,
    wrist,
)

__all__ = ["ACTUATORS", "CRANKS", "EXAMPLES", "RODS", "TIPS"]

FEET, BALLS = [[0.2, 0.15, 0], [0.2, -0.15, 0]], [[0.15, 0.1, 0.45], [0.15, -0.1, 0.45]]
CRANKS, TIPS = [[0, 0.05, 0.3], [0, -0.05, 0.3]], [[0.06, 0.05, 0.3], [0.06, -0.05, 0.3]]
RODS = [[0.05, 0.06, -0.02], [0.05, -0.06, -0.02]]
ACTUATORS, PINS = [[0.02, 0.05, 0.5], [0.02, -0.05, 0.5]], [[0.05, 0.05, 0.31], [0.05, -0.05, 0.31]]

EXAMPLES: dict[str, Callable[..., Robot]] = {  # of options such as closure="numerical"
    "slider_crank": lambda **k: slider_crank(0.1, 0.3, 0.02, **k),
    "rrpr": lambda **k: rrpr(0.2, (0.1, -0.3), 0.3, extent=0.1, **k),
    "planar_rrr": lambda **k: planar_rrr(0.5, 0.1, 0.3, 0.3, **k),
    "spherical_rrr": lambda **k: spherical_rrr(**k),
    "2-SPU+1U": lambda **k: spu_platform(FEET, BALLS, (0, 0, 0.5), **k),
    "2-SPRR+1U": lambda **k: spu_platform(FEET, BALLS, (0, 0, 0.5), cross_offset=0.02, leg_offset=0.03, **k),
    "rus_platform": lambda **k: rus_platform(CRANKS, TIPS, RODS, **k),
    "wrist": lambda **k: wrist(ACTUATORS, PINS, CRANKS, TIPS, RODS, **k),
    "stewart": lambda **k: stewart(hexagon(0.3, 0.3), hexagon(0.2, 1.7), 0.4, **k),
    "delta": lambda **k: delta(0.2, 0.05, 0.2, 0.5, **k),
}
