"""Clusters of many bodies: the time to their first answers, and a step beside MuJoCo's.

    python benchmarks/large_clusters.py

A foot hangs on its shank by elastic chains of hinges: 72 joint freedoms in one cluster, 39 of them independent, with
four balls on a floor. A lattice of four-bars and a closed chain of bodies are other large clusters. First answers are
measured as CPU time in a process of their own, without the cache on disk; steps in turns with `mj_step`, by CPU time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import coupler
from common.timing import best_in_rounds
from coupler import RobotBuilder
from coupler.model import Fixed, ModelWarning, Prismatic, Revolute, Sphere, Spherical
from robot import ring

STEP = 1e-3  # s
SETTLED = 600  # steps


def foot(chains: int = 12, links: int = 6) -> RobotBuilder:
    """A sole that hangs on a shank by chains of hinges with springs; the shank moves up and down."""
    b = RobotBuilder(f"foot of {chains} chains")
    b.body("shank", mass=2.0, inertia=(0.02, 0.02, 0.02))
    b.joint("lift", Prismatic(), "ground", "shank", at=(0, 0, 0.3))
    b.body("sole", mass=0.5, inertia=(0.002, 0.002, 0.002))
    for k in range(chains):
        x, y = np.cos(2 * np.pi * k / chains), np.sin(2 * np.pi * k / chains)
        last, at = "shank", (0.1 * x, 0.1 * y, 0.0)
        for i in range(links):
            name, axis = f"chain{k}_{i}", (-y, x, 0.0) if i % 2 == 0 else (x, y, 0.3 * (-1) ** (i // 2))
            b.body(name, mass=0.05, centre=(0, 0, -0.02), inertia=(1e-4, 1e-4, 1e-4))
            b.joint(name, Revolute(axis=axis, stiffness=20.0, damping=0.05), last, name, at=at)
            last, at = name, (0.0, 0.0, -0.04)
        if k:
            b.loop(f"rim{k}", Spherical(), last, "sole", at=at, meets=(0.1 * x, 0.1 * y, 0.0))
        else:
            b.joint("sole", Fixed(), last, "sole", at=(-0.1, 0.0, -0.04))
    for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        b.shape("sole", Sphere(0.01), at=(0.08 * x, 0.08 * y, -0.01), name=f"ball{x}{y}")
    b.floor()
    return b


def lattice(rows: int, columns: int) -> RobotBuilder:
    """Bars in a plane, side by side and one above the other, all pinned together: one cluster."""
    b, axis = RobotBuilder(f"lattice of {rows} × {columns}"), (0.0, 1.0, 0.0)
    for j in range(columns + 1):
        for i in range(rows):
            b.body(f"post{i}_{j}", mass=0.2, centre=(0, 0, 0.1), inertia=(1e-3, 1e-3, 1e-3))
            on, at = (f"post{i - 1}_{j}", (0, 0, 0.2)) if i else ("ground", (0.3 * j, 0, 0))
            start = 0.2 if i == 0 else 0.3 * (-1) ** i
            b.joint(f"post{i}_{j}", Revolute(axis=axis, stiffness=1.0), on, f"post{i}_{j}", at=at, start=start)
            if j:
                b.body(f"beam{i}_{j}", mass=0.2, centre=(0.15, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
                b.joint(f"beam{i}_{j}", Revolute(axis=axis), f"post{i}_{j - 1}", f"beam{i}_{j}", at=(0, 0, 0.2))
                at, meets = (0.3, 0, 0), (0, 0, 0.2)
                b.loop(f"pin{i}_{j}", Revolute(axis=axis), f"beam{i}_{j}", f"post{i}_{j}", at=at, meets=meets)
    return b


CLUSTERS: dict[str, Callable[[], RobotBuilder]] = {
    "foot": foot,
    "lattice 6 x 4": lambda: lattice(6, 4),
    "closed chain of 100": lambda: ring(100),
}


def first_answers(name: str) -> None:
    """Run in a process of its own; prints its times, s."""
    warnings.simplefilter("ignore", ModelWarning)
    times, clock = {}, time.process_time

    def timed(what: str, call: Callable[[], Any]) -> Any:
        start = clock()
        result = call()
        times[what] = clock() - start
        return result

    robot = timed("build", CLUSTERS[name]().build)
    q, v = robot.neutral(), np.zeros(robot.nv)
    timed("dynamics", lambda: coupler.forward_dynamics(robot, q, v, v))
    timed("mass matrix", lambda: coupler.mass_matrix(robot, q))
    simulation = coupler.Simulation(robot, STEP, q=q)
    timed("step", simulation.step)
    print(json.dumps({"freedoms": robot.nv, "numbers": robot.nq, **times}))


def beside_mujoco(mujoco: Any) -> None:
    """A step of the foot on the floor, and MuJoCo's of the same robot, written as MJCF."""
    robot = foot().build()
    simulation = coupler.Simulation(robot, STEP, contacts="ball*")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        path = Path(folder) / "foot.xml"
        robot.save(path)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = STEP
    data = mujoco.MjData(model)
    for _ in range(SETTLED):
        simulation.step()
        mujoco.mj_step(model, data)
    steps = {"coupler": simulation.step, "mujoco": lambda: mujoco.mj_step(model, data)}
    best = best_in_rounds(steps, repeats=50, rounds=20, clock=time.process_time)
    print(f"\nstep of the foot at rest: {best['coupler'] * 1e6:.0f} µs, mj_step {best['mujoco'] * 1e6:.0f} µs")


def main() -> None:
    print(f"{'first answers, s of CPU time':32} {'nq':>5} {'nv':>5} {'build':>7} {'dynamics':>9} {'H':>6} {'step':>6}")
    for name in CLUSTERS:
        command = [sys.executable, __file__, name]
        environment = {**os.environ, "COUPLER_CACHE": "off", "COUPLER_THREADS": "1"}
        t = json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
        times = f"{t['build']:>7.2f} {t['dynamics']:>9.2f} {t['mass matrix']:>6.2f} {t['step']:>6.2f}"
        print(f"{name:32} {t['numbers']:>5} {t['freedoms']:>5} {times}", flush=True)
    try:
        mujoco = import_module("mujoco")
    except ImportError:
        print("\nskipped: steps beside MuJoCo, as there is no module mujoco; pip install 'mujoco>=4'")
    else:
        beside_mujoco(mujoco)


if __name__ == "__main__":
    first_answers(sys.argv[1]) if len(sys.argv) > 1 else main()
