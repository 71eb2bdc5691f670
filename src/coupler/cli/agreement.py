"""How well two descriptions of a robot agree: their dynamics at one random state, carried over by names of joints.

Let v and v' be the velocities of both, and P the rows of G and p those of g, with w = G v and ẇ = G v̇ + g, of those
joints that make v'. Then v' = P v, v̇' = P v̇ + p and τ = Pᵀ τ', whichever joints are independent in each. So
H = Pᵀ H' P, and the biases c = Pᵀ (c' + H' p).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coupler.model import ModelError, Robot
from coupler.model.words import listed

__all__ = ["agreement"]


def agreement(first: Robot, second: Robot, seed: int = 0) -> Mapping[str, float]:
    """How far two robots are apart, as parts of what is compared: mass, mass matrix, bias force and acceleration.

    Raises:
        ModelError: for robots whose freedoms are not those of joints of the same names.
    """
    from coupler.dynamics import bias_force, forward_dynamics
    from coupler.inertia import mass_matrix

    rows = _entries(first, second)
    q, v = first.random_state(seed)
    other = second.pack_q({joint: x for joint, x in first.joint_positions(q).items() if joint in second.tree.number})
    G, g = first.explicit_constraint(q, v)
    P, p = G[rows], g[rows]
    H, c = mass_matrix(second, other), bias_force(second, other, P @ v)
    tau = np.random.default_rng(seed).normal(size=second.nv)
    return {
        "mass": _apart(first.mass, second.mass),
        "mass matrix": _apart(mass_matrix(first, q), P.T @ H @ P),
        "bias force": _apart(bias_force(first, q, v), P.T @ (c + H @ p)),
        "forward dynamics": _apart(
            P @ forward_dynamics(first, q, v, P.T @ tau) + p, forward_dynamics(second, other, P @ v, tau)
        ),
    }


def _entries(first: Robot, second: Robot) -> np.ndarray:
    """Where the velocities v of the second are among those of all joints of the first."""
    if first.nv != second.nv:
        raise ModelError(f"they have {first.nv} and {second.nv} freedoms")
    entries = []
    for entry in second.embedding.v_index.tolist():
        joint = second.tree.joint_of(entry)
        if joint not in first.tree.number:
            raise ModelError(f"only one of them has a joint {joint!r}; the other has {listed(first.tree.number)}")
        link, same = second.tree.number[joint], first.tree.number[joint]
        if first.tree.links[same].kind.nq != second.tree.links[link].kind.nq:
            raise ModelError(f"joint {joint!r} is of two kinds in them")
        entries.append(int(first.tree.v_start[same]) + entry - int(second.tree.v_start[link]))
    return np.array(entries, int)


def _apart(a: np.ndarray | float, b: np.ndarray | float) -> float:
    """The largest difference as a part of the largest number."""
    return float(np.abs(np.subtract(a, b)).max(initial=0.0) / max(np.abs(a).max(initial=0.0), 1e-300))
