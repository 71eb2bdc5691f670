"""Steps with contact, side by side with MuJoCo: the Mini Cheetah stands on its feet, or lands on them.

    COUPLER_THREADS=2 python benchmarks/simulation.py

Both simulate the same robot, written by coupler as MJCF, in steps of 1 ms: four balls as feet on a plane, joints held
by springs and dampers of the model, so that no control is needed. Twice: with all 12 rotors as bodies, which MuJoCo
takes with as many equality constraints, and with armatures instead, as is usual. Calls are interleaved in one process,
and the best of many counts (by CPU time if COUPLER_THREADS is 1, which other work on the machine disturbs least).
MuJoCo runs with its defaults; its contacts are soft, ours hard: see the overlaps.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import coupler
from common.timing import best_in_rounds
from coupler.algorithms.baselines import with_armatures
from coupler.model import ModelWarning, Robot, Shape, Sphere
from coupler.model.compose import compose
from coupler.spatial import Transform

try:
    mujoco: Any = import_module("mujoco")
    Rollout: Any = import_module("mujoco.rollout").Rollout
except ImportError as error:
    print(f"skipped: this compares with MuJoCo, and there is no module {error.name}; pip install 'mujoco>=4'")
    sys.exit()

STEP = 1e-3  # s
ANGLES = {"hip": -0.8, "knee": 1.6}  # rad
STIFFNESS, DAMPING = 80.0, 4.0  # N m/rad, N m s/rad
RADIUS, FRICTION = 0.01, 0.8  # m
STATES, STEPS = 1024, 50  # of a batch
THREADS = int(os.environ.get("COUPLER_THREADS", len(os.sched_getaffinity(0))))
CLOCK = time.process_time if THREADS == 1 else time.perf_counter


def held(robot: Robot) -> Robot:
    """The robot with springs and dampers at its legs' joints, balls as feet, and a floor."""
    joints = []
    for joint in robot.joints:
        if joint.name in robot.independent_joints and joint.kind.nv == 1:
            rest = next((angle for part, angle in ANGLES.items() if part in joint.name), 0.0)
            kind = replace(joint.kind, stiffness=STIFFNESS, damping=DAMPING, rest=rest)
            joints.append(replace(joint, kind=kind))
        else:
            joints.append(joint)
    parts = robot.bodies, joints, robot.loops, robot.couplings, robot.elements
    feet = [
        Shape(f"{name}_ball", body.name, Sphere(RADIUS), Transform.translation(at), friction=FRICTION, meets=0)
        for body in robot.bodies.values()
        for name, at in body.contacts.items()
        if name.endswith("foot_contact")
    ]
    return replace(compose(robot.name, robot.gravity, *parts), shapes=tuple(feet)).with_floor(FRICTION)


@dataclass(eq=False)
class Scene:
    """A robot in both simulators, standing."""

    name: str
    robot: Robot

    def __post_init__(self) -> None:
        robot = self.robot
        legs = {name: a for name in robot.independent_joints for part, a in ANGLES.items() if part in name}
        self.q = robot.pack_q({**legs, "floating_base": [0, 0, 0.3, 1, 0, 0, 0]})
        self.ours = coupler.Simulation(robot, STEP, q=self.q, contacts="*_ball on floor")
        self.ours.run(3.0)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # contact points become sites
            path = robot.save(Path(folder) / "robot.xml")
            self.model = mujoco.MjModel.from_xml_path(str(path))
        self.model.opt.timestep = STEP
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = self.theirs(self.q)
        for _ in range(3000):
            mujoco.mj_step(self.model, self.data)

    def theirs(self, q: np.ndarray) -> np.ndarray:
        """A configuration in MuJoCo's coordinates: every joint by itself."""
        positions, found = self.robot.joint_positions(q), np.zeros(self.model.nq)
        for j in range(self.model.njnt):
            value, at = np.atleast_1d(positions[self.model.joint(j).name]), self.model.jnt_qposadr[j]
            found[at : at + value.size] = value
        return found

    def check(self) -> None:
        """Checks that the robot stands at the same height, and carries the same weight, in both."""
        weight = -self.robot.mass * self.robot.gravity[2]
        ours, theirs = float(self.ours.q[2]), float(self.data.qpos[2])
        force = np.zeros(6)
        theirs_force = 0.0
        for i in range(self.data.ncon):
            mujoco.mj_contactForce(self.model, self.data, i, force)
            theirs_force += force[0]
        print(
            f"  height {ours:.5f} m and MuJoCo's {theirs:.5f} m; weight {weight:.4f} N, on the floor "
            f"{self.ours.contact_forces[:, 2].sum():.4f} N and {theirs_force:.4f} N; deepest overlap "
            f"{max(-self.ours.gaps.min(), 0.0):.1e} m and {-self.data.contact.dist.min(initial=0.0):.1e} m"
        )


def one_robot(scene: Scene) -> float:
    """Steps of one robot that stands, from Python; the ratio of times."""
    tau = np.zeros(scene.robot.nv)
    calls = {"ours": lambda: scene.ours.step(tau), "mujoco": lambda: mujoco.mj_step(scene.model, scene.data)}
    found = best_in_rounds(calls, 200, rounds=25, clock=CLOCK)
    ratio = found["mujoco"] / found["ours"]
    print(f"  one robot     {found['ours'] * 1e6:7.2f} µs {found['mujoco'] * 1e6:8.2f} µs   {ratio:5.1f} ×")
    return ratio


def batch(scene: Scene, what: str, height: float, spread: float) -> float:
    """A batch, each state in its own way, with its lowest foot at a height above the floor; the ratio of times."""
    robot, rng = scene.robot, np.random.default_rng(0)
    moved = spread * rng.normal(size=(STATES, robot.nv))
    q0 = robot.integrate(np.array(scene.ours.q), moved)
    feet = [name for name in robot.frame_names if name.endswith("foot_contact")]
    lowest = np.min([coupler.frame_pose(robot, q0, foot)[:, 2, 3] for foot in feet], axis=0) - RADIUS
    q0[:, 2] += height - lowest
    v0 = spread * rng.normal(size=(STATES, robot.nv))
    controls = np.zeros((STEPS, robot.nv))
    states = np.zeros((STATES, mujoco.mj_stateSize(scene.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    data = mujoco.MjData(scene.model)
    for i in range(STATES):
        data.qpos[:], data.qvel[:] = scene.theirs(q0[i]), 0.0
        for j in range(scene.model.njnt):
            name = scene.model.joint(j).name
            value, at = np.atleast_1d(robot.joint_velocities(q0[i], v0[i])[name]), scene.model.jnt_dofadr[j]
            data.qvel[at : at + value.size] = np.concatenate([value[3:], value[:3]]) if value.size == 6 else value
        mujoco.mj_getState(scene.model, data, states[i], mujoco.mjtState.mjSTATE_FULLPHYSICS)
    datas = [mujoco.MjData(scene.model) for _ in range(THREADS)]
    with Rollout(nthread=THREADS) as pool:
        calls: dict[str, Callable[[], object]] = {
            "ours": lambda: coupler.rollout(robot, q0, v0, controls, STEP, contacts="*_ball on floor"),
            "mujoco": lambda: pool.rollout(scene.model, datas, states, nstep=STEPS),
        }
        found = {name: t / (STATES * STEPS) for name, t in best_in_rounds(calls, 1, rounds=6, clock=CLOCK).items()}
    ratio = found["mujoco"] / found["ours"]
    print(f"  {what:12s}  {found['ours'] * 1e6:7.2f} µs {found['mujoco'] * 1e6:8.2f} µs   {ratio:5.1f} ×")
    return ratio


def main() -> None:
    cheetah = coupler.robots.load("mini_cheetah")
    rotors = [body for body in cheetah.body_names if "rotor" in body]
    robots = {"all 12 rotors": cheetah, "armatures": with_armatures(cheetah, rotors)}
    print(
        f"Mini Cheetah on its feet, steps of {STEP * 1e3:g} ms; batches of {STATES} in {THREADS} threads on both sides"
    )
    for name, robot in robots.items():
        scene = Scene(name, held(robot))
        print(f"{name}: ours, MuJoCo {mujoco.__version__}, ratio of the time of a step")
        one_robot(scene)
        batch(scene, "batch, stands", 0.0, 1e-3)
        batch(scene, "batch, lands", 0.005, 0.1)
        scene.check()


if __name__ == "__main__":
    main()
