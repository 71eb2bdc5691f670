"""RH5 Manus as the studies of [003] need it: closed in three ways, moved along trajectories, seen at its actuators."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coupler.dynamics import inverse_dynamics
from coupler.io import load as load_file
from coupler.model import ModelWarning, Robot
from coupler.model.embedding.constraints import LoopConstraint
from coupler.robots import load
from coupler.studies.cycloid import cycloid
from coupler.studies.report import LeftOut

WAYS = ("numerical", "hybrid", "analytical")
STAYS_NUMERICAL = {"rh5_manus": "BodyAct", "RH5v2": "Wrist"}  # loops of the hybrids: the torso, or the wrists
BAUMGARTE = {"Wrist": 0.02, "": 0.01}  # s, by parts of the names of loops [003]: those of the published model
SOURCE = "https://github.com/dfki-ric-underactuated-lab/hybrid_numerical_analytical_approach_case_study"


@dataclass(frozen=True)
class Motion:
    """A trajectory of independent joints, in the order of `robot.independent_joints`.

    Attributes:
        t: n, s.
        y, v, a: n × m, positions, velocities and accelerations, rad or m.
    """

    t: np.ndarray
    y: np.ndarray
    v: np.ndarray
    a: np.ndarray

    def positions(self, robot: Robot) -> np.ndarray:
        """n × nq: closed configurations of a robot, however its loops are closed."""
        return np.ascontiguousarray(robot.pack_q(dict(zip(robot.independent_joints, self.y.T, strict=True))))


def reduced(way: str) -> Robot:
    """Without head and wrists: 23 joints, 10 rows; 6 of these numerical in the hybrid, the torso's [003, §V-A]."""
    return closed(load("rh5_manus"), way)


def full(way: str) -> Robot:
    """With head and wrists: 61 joints, 30 rows; 20 of these numerical in the hybrid, the wrists' [003, §V-C].

    Raises:
        LeftOut: where the published model is not found, which is not part of coupler.
    """
    folder = Path(os.environ.get("COUPLER_MODELS", "")) / "rh5_manus"
    file = folder / "full_urdf" / "RH5v2.urdf"
    if "COUPLER_MODELS" not in os.environ or not file.is_file():
        raise LeftOut(
            f"the complete RH5 Manus is not part of coupler: save the folder 'model' of {SOURCE} as rh5_manus, and set "
            "COUPLER_MODELS to the folder that contains it"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of meshes
        robot = load_file(file, packages={"submechanisms": folder / "submechanisms_urdf"}, lock_idle=True)
    return closed(robot, way)


def closed(robot: Robot, way: str) -> Robot:
    """The robot with its loops closed in one of `WAYS`."""
    stays = {"numerical": "", "hybrid": STAYS_NUMERICAL[robot.name], "analytical": None}[way]
    return robot.with_closure(
        {loop.name: "numerical" if stays is not None and stays in loop.name else "analytical" for loop in robot.loops}
    )


def numerical_rows(robot: Robot) -> int:
    """The number of rows of loop joints that are closed by Newton's method; locks of idle freedoms do not count."""
    embedding, count = robot.embedding, 0
    for loop, choice, explicit in zip(embedding.closure.loops, embedding.choices, embedding.explicit, strict=True):
        joints = [rows for constraint, rows in loop.parts() if isinstance(constraint, LoopConstraint) and not explicit]
        count += sum(rows.start <= row < rows.stop for rows in joints for row in choice.rows)
    return count


def decay_times(robot: Robot) -> dict[str, float]:
    """Baumgarte's T of each loop, s, as the published model has it."""
    return {loop.name: next(T for part, T in BAUMGARTE.items() if part in loop.name) for loop in robot.loops}


# Actuators


@dataclass(frozen=True)
class Actuation:
    """A motion as actuators see it, each n × actuators: positions (rad or m), their rates, and forces (N m or N)."""

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    force: np.ndarray


def actuation(robot: Robot, motion: Motion) -> Actuation:
    """A motion of the independent joints, mapped to all actuated joints. [003, §V-B]"""
    q = motion.positions(robot)
    tau = inverse_dynamics(robot, q, motion.v, motion.a)
    G, g = robot.explicit_constraint(q, motion.v)
    rows = _actuator_rows(robot)
    return Actuation(
        actuator_positions(robot, q),
        (G[:, rows] @ motion.v[..., None])[..., 0],
        (G[:, rows] @ motion.a[..., None])[..., 0] + g[:, rows],
        actuator_forces(robot, q, tau),
    )


def actuator_positions(robot: Robot, q: np.ndarray) -> np.ndarray:
    """n × actuators: their positions in n configurations."""
    positions = robot.joint_positions(q)
    return np.stack([positions[joint] for joint in robot.actuated_joints], axis=-1)


def actuator_forces(robot: Robot, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """n × actuators: forces τᵤ that do the work of τ at the independent joints, Gᵤᵀ τᵤ = τ, with their rows of G."""
    G, _ = robot.explicit_constraint(q)
    return np.linalg.solve(G[:, _actuator_rows(robot)].mT, tau[..., None])[..., 0]


def _actuator_rows(robot: Robot) -> np.ndarray:
    return np.concatenate([robot.tree.velocities(robot.tree.number[joint]) for joint in robot.actuated_joints])


# Trajectories


def independent_limits(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the independent joints, rad or m; a radian to both sides of those that have none."""
    kinds = [robot.tree.links[robot.tree.number[joint]].kind for joint in robot.independent_joints]
    lower, upper = (np.concatenate([getattr(kind, name) for kind in kinds]) for name in ("lower", "upper"))
    return np.where(np.isfinite(lower), lower, -1.0), np.where(np.isfinite(upper), upper, 1.0)


def cycloids(robot: Robot, duration: float, states: int, seed: int = 3) -> Motion:
    """A motion from one random configuration to another along cycloids, at rest at both ends."""
    lower, upper = independent_limits(robot)
    start, end = np.random.default_rng(seed).uniform(lower, upper, (2, len(lower)))
    t = np.linspace(0.0, duration, states)
    s, ds, dds = cycloid(t[:, None], duration)
    return Motion(t, start + s * (end - start), ds * (end - start), dds * (end - start))


def wandering(robot: Robot, states: int, step: float = 1e-3, seed: int = 0) -> Motion:
    """A random trajectory: each joint swings at a frequency of its own about the middle of its range."""
    rng, (lower, upper) = np.random.default_rng(seed), independent_limits(robot)
    amplitude, rate = 0.35 * (upper - lower), 2 * np.pi * rng.uniform(0.1, 0.4, len(lower))  # rad or m, 1/s
    t = step * np.arange(states)
    phase = rate * t[:, None] + rng.uniform(0.0, 2 * np.pi, len(lower))
    y = 0.5 * (lower + upper) + amplitude * np.sin(phase)
    return Motion(t, y, amplitude * rate * np.cos(phase), -amplitude * rate**2 * np.sin(phase))
