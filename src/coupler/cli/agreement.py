"""How well two descriptions of a robot agree: their dynamics at one random state, carried over by names of joints.

Let v and v' be the velocities of both, and P the rows of G and p those of g, with w = G v and ẇ = G v̇ + g, of those
joints that make v'. Then v' = P v, v̇' = P v̇ + p and τ = Pᵀ τ', whichever joints are independent in each. So
H = Pᵀ H' P, and the biases c = Pᵀ (c' + H' p).

MJCF writes some joints as several, whose velocities are not always entries of v. Then accelerations of bodies are
compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coupler.io.mjcf.joints import steps_of
from coupler.io.mjcf.write_equalities import step_position, step_velocity
from coupler.model import ModelError, Robot
from coupler.model.tolerances import TINY
from coupler.model.tree import GROUND
from coupler.model.wording import listed


def agreement(first: Robot, second: Robot, seed: int = 0) -> Mapping[str, float]:
    """Relative differences between two robots: of mass, mass matrix, bias force and acceleration.

    Args:
        first: one robot.
        second: another description of it; joints are matched by name.
        seed: the seed of the random state.

    Raises:
        ModelError: if the freedoms of the two do not belong to joints of the same names.
    """
    from coupler.dynamics import bias_force, forward_dynamics
    from coupler.inertia import mass_matrix

    if any(f"{name}_1" in second.tree.number for name in first.tree.number if name not in second.tree.number):
        return _agreement_of_bodies(first, second, seed)
    rows = _entries(first, second)
    q, v = first.random_state(seed)
    q_second = second.pack_q({joint: x for joint, x in first.joint_positions(q).items() if joint in second.tree.number})
    G, g = first.explicit_constraint(q, v)
    P, p = G[rows], g[rows]
    H, c = mass_matrix(second, q_second), bias_force(second, q_second, P @ v)
    tau = np.random.default_rng(seed).normal(size=second.nv)
    return {
        "mass": _difference(first.mass, second.mass),
        "mass matrix": _difference(mass_matrix(first, q), P.T @ H @ P),
        "bias force": _difference(bias_force(first, q, v), P.T @ (c + H @ p)),
        "forward dynamics": _difference(
            P @ forward_dynamics(first, q, v, P.T @ tau) + p, forward_dynamics(second, q_second, P @ v, tau)
        ),
    }


def _agreement_of_bodies(first: Robot, second: Robot, seed: int) -> Mapping[str, float]:
    """Differences of mass, and of the accelerations of all bodies that fall from a random state.

    The second robot has each joint of the first, or the hinges, slides and balls as which MJCF writes it.
    """
    from coupler.dynamics import forward_dynamics
    from coupler.kinematics import frame_acceleration

    if first.nv != second.nv:
        raise ModelError(f"they have {first.nv} and {second.nv} freedoms")
    q, v = first.random_state(seed)
    angles, speeds = first.joint_positions(q), first.joint_velocities(q, v)
    positions, velocities = dict[str, np.ndarray](), dict[str, np.ndarray]()
    for joint in (joint for joint in first.joints if joint.kind.nv):
        steps = steps_of(joint.kind, loose=joint.parent == GROUND)
        for i, step in enumerate(steps, 1):
            whole = joint.name in second.tree.number
            name = joint.name if whole else f"{joint.name}_{i}"
            position, speed = np.atleast_1d(angles[joint.name]), np.atleast_1d(speeds[joint.name])
            positions[name] = np.squeeze(position if whole else step_position(joint, step, position))
            velocities[name] = np.squeeze(speed if whole else step_velocity(joint, step, position, speed))
    p = second.pack_q(positions)
    states = (first, q, v), (second, p, second.pack_v(velocities, p))
    falls = [forward_dynamics(*state, np.zeros(first.nv)) for state in states]
    common = [body for body in first.bodies if body in second.bodies]
    here, there = (
        np.array([frame_acceleration(*state, fall, body, axes="world") for body in common])
        for state, fall in zip(states, falls, strict=True)
    )
    return {"mass": _difference(first.mass, second.mass), "accelerations of bodies": _difference(here, there)}


def _entries(first: Robot, second: Robot) -> np.ndarray:
    """The entries of the first robot's joint velocities w that are the velocities v of the second."""
    if first.nv != second.nv:
        raise ModelError(f"they have {first.nv} and {second.nv} freedoms")
    entries = []
    for entry in second.embedding.v_index.tolist():
        joint = second.tree.joint_of(entry)
        if joint not in first.tree.number:
            raise ModelError(f"only one of them has joint {joint!r}; the other has {listed(first.tree.number)}")
        link, counterpart = second.tree.number[joint], first.tree.number[joint]
        if first.tree.links[counterpart].kind.nq != second.tree.links[link].kind.nq:
            raise ModelError(f"joint {joint!r} is of a different kind in each")
        entries.append(int(first.tree.v_start[counterpart]) + entry - int(second.tree.v_start[link]))
    return np.array(entries, int)


def _difference(a: np.ndarray | float, b: np.ndarray | float) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(np.subtract(a, b)).max(initial=0.0) / max(np.abs(a).max(initial=0.0), TINY))
