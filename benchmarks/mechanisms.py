"""Sub-mechanisms closed analytically and numerically, side by side, and with Pinocchio's constraint dynamics.

    pip install pin
    python benchmarks/mechanisms.py [FILE...]

For each sub-mechanism, and for the robots of files that are named (RH5 Manus, for example):

closure    all joint positions from the independent ones: in closed form, or by Newton's method from a pose nearby
inverse    C-RNEA where all loops are closed
forward    C-ABA; of Pinocchio `constraintDynamics`, one proximal step with mu = 1e-10, whose error is about mu

Columns are microseconds for each state of a batch on one thread, and of Pinocchio for each call in a loop in Python; in
brackets how often ours is faster. It is given positions and velocities of all joints, ready made; its wheel is built
for any x86-64 processor. Answers are checked to agree before anything is timed. Times are the best of many, in turns.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["COUPLER_THREADS"] = "1"

import numpy as np

import coupler
from common.pinocchio_tree import PinocchioTree
from common.sub_mechanisms import EXAMPLES
from common.timing import best_times
from coupler import Robot
from coupler.model import ModelWarning

DRAWN, STATES = 64, 4096  # random states, and how many a batch has: copies of them
NEARBY = 0.01  # rad or m: how far Newton's method starts from a closed pose
MU = 1e-10


def main(files: list[str]) -> None:
    try:
        pin = import_module("pinocchio")
    except ImportError:
        pin = None
        print("Pinocchio is not installed: `pip install pin` adds its column")
    print(f"{'':20}{'freedoms':>9}{'joints':>7}  {'':10}{'analytical':>11}{'numerical':>16}{'Pinocchio':>18}")
    for name, make in EXAMPLES.items():
        compare(pin, name, make())
    for file in files:
        warnings.simplefilter("ignore", ModelWarning)
        compare(pin, file.rsplit("/", 1)[-1], coupler.load(file, closure="analytical"))


def compare(pin: Any, name: str, robot: Robot) -> None:
    """Prints the rows of one mechanism."""
    numerical, rng = robot.with_closure("numerical"), np.random.default_rng(0)
    q = np.tile(robot.integrate(robot.neutral(), rng.uniform(-0.05, 0.05, (DRAWN, robot.nv))), (STATES // DRAWN, 1))
    v, x = rng.normal(size=(2, STATES, robot.nv))
    p = np.tile(numerical.pack_q({j: y[:DRAWN] for j, y in robot.joint_positions(q).items()}), (STATES // DRAWN, 1))
    robots = (robot, q), (numerical, p)
    print(f"{name:20}{robot.nv:9d}{robot.tree.nv:7d}", end="")
    near = p + NEARBY * rng.uniform(-1.0, 1.0, p.shape)
    times = best_times(lambda: robot.embedding.positions(q), lambda: numerical.close(near), budget=1.0)
    row("closure", times)
    for quantity, function in (("inverse", coupler.inverse_dynamics), ("forward", coupler.forward_dynamics)):
        answers = [function(own, states, v, x) for own, states in robots]
        check(f"{name}: {quantity} dynamics", answers[0], answers[1], 1e-9)
        calls = [lambda own=own, states=states, f=function: f(own, states, v, x) for own, states in robots]
        times = best_times(*calls, budget=1.0)
        theirs = peer(pin, numerical, p, v, x, answers[0]) if pin is not None and quantity == "forward" else None
        print(f"{'':36}", end="")
        row(quantity, times, theirs)


def row(quantity: str, times: list[float], theirs: float | str | None = None) -> None:
    analytical, other = (1e6 * seconds / STATES for seconds in times)
    print(f"  {quantity:10}{analytical:11.3f}{other:9.3f} ({other / analytical:.2f})", end="")
    if isinstance(theirs, str):
        print(f"  {theirs}", end="")
    elif theirs is not None:
        print(f"{1e6 * theirs:10.2f} ({1e6 * theirs / analytical:.0f})", end="")
    print(flush=True)


def check(what: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    away = float((np.abs(ours - theirs).max(axis=-1) / np.abs(theirs).max(axis=-1)).max())
    if not away < tolerance:
        sys.exit(f"{what}: the two differ by {away:.2g}, more than {tolerance:g}; nothing is timed")


def peer(pin: Any, robot: Robot, p: np.ndarray, v: np.ndarray, tau: np.ndarray, ours: np.ndarray) -> float | str:
    """Seconds for a call of Pinocchio's `constraintDynamics`, or why there are none."""
    try:
        tree = PinocchioTree(pin, robot)
    except TypeError as error:
        return str(error)
    loops, datas = tree.point_constraints()
    pin.initConstraintDynamics(tree.model, tree.data, loops, datas)
    whole = tree.positions(p[:DRAWN]), tree.velocities(p[:DRAWN], v[:DRAWN]), tree.spread(tau[:DRAWN])
    settings = pin.ProximalSettings(1e-14, MU, 1)

    def solve(steps: Any = settings) -> np.ndarray:
        out = np.empty((DRAWN, tree.model.nv))
        for i, state in enumerate(zip(*whole, strict=True)):
            out[i] = pin.constraintDynamics(tree.model, tree.data, *state, loops, datas, steps)
        return out

    check(f"{robot.name}: Pinocchio", ours[:DRAWN], tree.gathered(solve(pin.ProximalSettings(1e-14, MU, 20))), 1e-6)
    return best_times(solve, budget=0.5)[0] / DRAWN


if __name__ == "__main__":
    main(sys.argv[1:])
