"""What approximate rotors and approximate loops cost in accuracy: the numbers of docs/why_exact.md.

    python benchmarks/exactness.py

(a) Bundled robots whose rotors are replaced by armatures, or left out: by how much accelerations and forces at the
    joints are wrong, over random states.
(b) A four-bar that swings under gravity for 10 s in steps of 1 ms: how far its loop opens and how much energy it gains
    or loses, in coupler, MuJoCo and Pinocchio. Pinocchio computes accelerations only; they are integrated by
    semi-implicit Euler, as its examples do, without and with Baumgarte's stabilisation. Libraries that
    are not installed are left out.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import coupler
from common.pinocchio_tree import PinocchioTree
from coupler.algorithms.baselines import with_armatures, without_rotors
from coupler.model import Revolute

STATES = 256
H, SECONDS = 1e-3, 10.0
LENGTHS = {"crank": 0.3, "coupler": 0.8, "rocker": 0.7}  # m; the pivots on the ground are 0.9 m apart

Traces = tuple[np.ndarray, np.ndarray]  # positions and velocities of all joints, one row a step


def main() -> None:
    print(f"(a) relative errors over {STATES} random states, median and largest, %\n")
    print(f"{'':18} {'accelerations':^29}   {'forces at joints':^29}")
    print(f"{'':18} {'armatures':>14} {'no rotors':>14}   {'armatures':>14} {'no rotors':>14}")
    for name in ("mini_cheetah", "mit_humanoid_leg", "mit_humanoid", "jvrc1"):
        print(f"{name:18} " + " ".join(f"{text:>14}" for text in rotor_errors(coupler.robots.load(name))))
    print(f"\n(b) a four-bar that swings for {SECONDS:g} s in steps of {H * 1e3:g} ms\n")
    print(f"{'':44} {'loop open by, m':>24} {'energy off by, J':>24}")
    print(f"{'':44} {'largest':>12} {'at the end':>11} {'largest':>12} {'at the end':>11}")
    robot = four_bar()
    for name, run in runs().items():
        gaps, energies = judged(robot, *run(robot))
        cells = gaps.max(), gaps[-1], np.abs(energies).max(), abs(energies[-1])
        print(f"{name:44} {cells[0]:>12.1e} {cells[1]:>11.1e} {cells[2]:>12.1e} {cells[3]:>11.1e}", flush=True)


def rotor_errors(robot: coupler.Robot) -> list[str]:
    """Accelerations with armatures and without rotors, then forces, as "median, largest"."""
    rotors = [body for body in robot.body_names if "rotor" in body]
    models = [robot, with_armatures(robot, rotors), without_rotors(robot, rotors)]
    displacements, v, x = np.random.default_rng(0).normal(size=(3, STATES, robot.nv))
    q = robot.integrate(robot.neutral(), displacements)
    joints = slice(6 if "floating_base" in robot.joint_names else 0, None)  # all but the base, which is heavy
    texts = []
    for compute in (coupler.forward_dynamics, coupler.inverse_dynamics):
        exact, *others = (compute(model, q, v, x)[:, joints] for model in models)
        for other in others:
            errors = np.linalg.norm(other - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
            texts.append(f"{100 * np.median(errors):.1f}, {100 * errors.max():.0f}")
    return texts


def four_bar() -> coupler.Robot:
    """A crank-rocker in the xz plane; its crank, coupler and rocker are uniform bars of 1 kg."""
    b, turn = coupler.RobotBuilder("crank_rocker"), Revolute(axis=(0, 1, 0))
    for name, length in LENGTHS.items():
        b.body(name, 1.0, (length / 2, 0, 0), (1e-3, length**2 / 12, length**2 / 12))
    b.joint("A", turn, "ground", "crank", independent=True)
    b.joint("B", turn, "crank", "coupler", at=(0.3, 0, 0))
    b.joint("D", turn, "ground", "rocker", at=(0.9, 0, 0))
    b.loop("C", turn, "coupler", "rocker", at=(0.8, 0, 0), meets=(0.7, 0, 0))
    return b.build()


def start(robot: coupler.Robot) -> np.ndarray:
    return robot.pack_q({"A": 2.0})


def runs() -> dict[str, Callable[[coupler.Robot], Traces]]:
    found: dict[str, Callable[[coupler.Robot], Traces]] = {"coupler": ours}
    if find_spec("mujoco"):
        found["MuJoCo, defaults"] = lambda robot: in_mujoco(robot, stiff=False)
        found["MuJoCo, implicitfast, stiffest solref, solimp"] = lambda robot: in_mujoco(robot, stiff=True)
    else:
        print("mujoco is not installed")
    if find_spec("pinocchio"):
        found["Pinocchio, constraintDynamics"] = lambda robot: in_pinocchio(robot, 0.0)
        found["Pinocchio, with Baumgarte, 20 1/s"] = lambda robot: in_pinocchio(robot, 20.0)
    else:
        print("pinocchio is not installed")
    return found


def ours(robot: coupler.Robot) -> Traces:
    log = coupler.Simulation(robot, step=H, q=start(robot)).run(SECONDS)
    velocities = robot.joint_velocities(log.q, log.v)
    positions = robot.joint_positions(log.q)
    return np.stack([positions[joint] for joint in "ABD"], -1), np.stack([velocities[joint] for joint in "ABD"], -1)


def in_mujoco(robot: coupler.Robot, stiff: bool) -> Traces:
    mujoco: Any = import_module("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coupler.ModelWarning)  # which joint is independent is not in MJCF
        path = robot.save(tempfile.mkdtemp() + "/robot.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    model.opt.timestep = H
    if stiff:
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        model.eq_solref[:] = 2 * H, 1.0  # the shortest time constant that MuJoCo allows
        model.eq_solimp[:, :3] = 0.9999, 0.9999, 1e-3
    data.qpos[:], data.qvel[:] = coupler.convert.to_mujoco(robot, start(robot), np.zeros(robot.nv), model)
    rows = []
    for _ in range(round(SECONDS / H) + 1):
        rows.append([[data.joint(name).qpos[0] for name in "ABD"], [data.joint(name).qvel[0] for name in "ABD"]])
        mujoco.mj_step(model, data)
    return np.array(rows)[:, 0], np.array(rows)[:, 1]


def in_pinocchio(robot: coupler.Robot, stabilisation: float) -> Traces:
    pin: Any = import_module("pinocchio")
    tree = PinocchioTree(pin, robot)
    loops, datas = tree.point_constraints()
    for loop in loops:
        loop.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(stabilisation**2, 2 * stabilisation))
    pin.initConstraintDynamics(tree.model, tree.data, loops, datas)
    settings = pin.ProximalSettings(1e-14, 1e-10, 20)
    q = tree.positions(start(robot))
    v = np.zeros(3)
    order = [tree.model.joints[tree.model.getJointId(name)].idx_v for name in "ABD"]
    rows = []
    for _ in range(round(SECONDS / H) + 1):
        rows.append([q[order], v[order]])
        v = v + H * pin.constraintDynamics(tree.model, tree.data, q, v, np.zeros(3), loops, datas, settings)
        q = pin.integrate(tree.model, q, H * v)
    return np.array(rows)[:, 0], np.array(rows)[:, 1]


def judged(robot: coupler.Robot, positions: np.ndarray, velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gap at the pin, and the energy relative to the start, computed by plane geometry without any robot."""
    g = -float(robot.gravity[2])
    crank, coupler_bar = positions[:, 0], positions[:, 0] + positions[:, 1]
    rocker, rates = positions[:, 2], (velocities[:, 0], velocities[:, 0] + velocities[:, 1], velocities[:, 2])

    def along(angle: np.ndarray) -> np.ndarray:  # a turn about y takes x towards -z
        return np.stack([np.cos(angle), -np.sin(angle)], axis=-1)

    a, b, c = LENGTHS.values()
    joint = a * along(crank)
    pin = joint + b * along(coupler_bar)
    gaps = np.linalg.norm(pin - np.array([0.9, 0.0]) - c * along(rocker), axis=-1)

    def across(angle: np.ndarray, rate: np.ndarray) -> np.ndarray:
        return rate[:, None] * np.stack([-np.sin(angle), -np.cos(angle)], axis=-1)

    tip = a * across(crank, rates[0])
    centres = [a / 2 * along(crank), joint + b / 2 * along(coupler_bar), c / 2 * along(rocker)]
    speeds = [tip / 2, tip + b / 2 * across(coupler_bar, rates[1]), c / 2 * across(rocker, rates[2])]
    energy = np.zeros(len(gaps))
    for centre, speed, length, rate in zip(centres, speeds, (a, b, c), rates, strict=True):
        energy += g * centre[:, 1] + 0.5 * (speed**2).sum(axis=-1) + 0.5 * length**2 / 12 * rate**2  # of 1 kg
    return gaps, energy - energy[0]


if __name__ == "__main__":
    main()
