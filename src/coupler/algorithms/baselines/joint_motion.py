"""Positions, velocities and accelerations of all joints from the independent ones: the full state. [003, Table I]"""

from __future__ import annotations

from typing import Any

from coupler.algorithms.baselines.projected_rnea import spread
from coupler.algorithms.baselines.spanning_tree import Spanning, spanning_sweep
from coupler.model import Robot


def joint_motion_program(robot: Robot) -> Any:
    """The program (q, v, a) → p, w, ẇ of all joints, in the order of `robot.spanning_tree()`: w = G v, ẇ = G a + g."""
    sweep = spanning_sweep(robot, "joint_motion")
    sweep.inputs("q", "v", "a")
    spanning = Spanning(sweep)
    sizes = {"p": spanning.tree.nq, "w": spanning.tree.nv, "wd": spanning.tree.nv}
    spanning.vectors |= {name: sweep.result(f"all_{name}", size) for name, size in sizes.items()}
    sweep.outward(spread)
    return sweep.build()
