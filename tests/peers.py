"""What comparisons with other libraries share: random trees, joints in single steps, and closed loops without coupler.

A peer is given a robot part by part, as it was described, in the peer's own coordinates. What it computes of the
spanning tree comes back for the velocities w of all joints, in the order of `robot.tree.links`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model import (
    Cylindrical,
    Free,
    Held,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    Rod,
    Spherical,
    Universal,
)
from coupler.model.loops import LoopJoint
from coupler.model.tree import TreeJoint
from coupler.spatial import Transform, cross_motion
from random_robots import JOINTS, Rng, Sketch, place

__all__ = [
    "Batch",
    "Equations",
    "Motion",
    "batch_of",
    "children",
    "coupling_rows",
    "gap",
    "loop_rows",
    "random_tree",
    "steps",
]


def gap(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max(initial=0.0) / np.abs(expected).max(initial=1e-300))


# Robots and states


def random_tree(
    rng: Rng, kinds: Sequence[str], n: int, floating: bool, dressed: Callable[[Rng, Joint], Joint] | None = None
) -> Robot:
    """A tree of n joints of the given kinds in turn, on random parents, tilted, with a frame on each body.

    Fixed joints are never on the ground: peers count no mass there.
    """
    sketch = Sketch(rng, "tree")

    def joint(kind: str, parent: str) -> str:
        made = JOINTS[kind](rng)
        return sketch.joint(dressed(rng, made) if dressed else made, parent)

    bodies = [joint("free", "ground") if floating else "ground"]
    for i in range(n):
        kind = kinds[i % len(kinds)]
        carriers = [body for body in bodies if kind != "fixed" or body != "ground"]
        bodies.append(joint(kind, carriers[rng.integers(len(carriers))]))
    for body in sketch.pose:
        if body != "ground":
            sketch.builder.frame(f"tool{body}", body, place(rng))
    return sketch.build().with_gravity(5.0 * rng.normal(size=3))


@dataclass(frozen=True, eq=False)
class Batch:
    """States of a robot, with random forces, accelerations and forces on bodies."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    a: np.ndarray
    f_ext: np.ndarray

    def __len__(self) -> int:
        return len(self.q)


def batch_of(robot: Robot, count: int = 3) -> Batch:
    """Random states."""
    rng = np.random.default_rng(11)
    q, v = map(np.array, zip(*(robot.random_state(rng) for _ in range(count)), strict=True))
    tau, a = rng.normal(size=(2, count, robot.nv))
    return Batch(q, v, tau, a, rng.normal(size=(count, len(robot.bodies), 6)))


# Joints and bodies, as other libraries have them


def children(robot: Robot) -> dict[str, list[TreeJoint]]:
    """The joints on each body, so that trees can be walked depth first."""
    found: dict[str, list[TreeJoint]] = {body: [] for body in ("ground", *robot.bodies)}
    for joint in robot.joints:
        found[joint.parent].append(joint)
    return found


def steps(kind: Joint) -> list[tuple[str, Any]]:
    """A joint as simple ones in a row: turns and shifts with their axes, screws, balls, or a free one."""
    if isinstance(kind, Revolute):
        return [("turn", kind.axis)]
    if isinstance(kind, Prismatic):
        return [("shift", kind.axis)]
    if isinstance(kind, Helical):
        return [("screw", (kind.axis, kind.pitch))]
    if isinstance(kind, Cylindrical):
        return [("turn", kind.axis), ("shift", kind.axis)]
    if isinstance(kind, Universal):
        return [("turn", kind.first), ("turn", kind.second)]
    if isinstance(kind, Planar):
        return [("shift", kind.plane[0]), ("shift", kind.plane[1]), ("turn", kind.normal)]
    if isinstance(kind, Spherical):
        return [("ball", None)]
    return [("free", None)] if isinstance(kind, Free) else []


# Equations of motion


@dataclass(frozen=True, eq=False)
class Equations:
    """H ẇ + c = τ of the spanning tree, for one state."""

    H: np.ndarray
    c: np.ndarray

    def projected(self, G: np.ndarray, g: np.ndarray) -> Equations:
        """Of the independent velocities, where ẇ = G v̇ + g."""
        return Equations(G.T @ self.H @ G, G.T @ (self.c + self.H @ g))

    def accelerations(self, tau: np.ndarray) -> np.ndarray:
        """What forces cause."""
        return np.linalg.solve(self.H, tau - self.c)

    def closed(self, tau: np.ndarray, K: np.ndarray, k: np.ndarray) -> np.ndarray:
        """What forces cause where K ẇ = k, some rows of which may follow from others: ẇ is free in K's null space."""
        U, s, Vt = np.linalg.svd(K)
        rank = int((s > 1e-9 * s[0]).sum())
        N, particular = Vt[rank:].T, Vt[:rank].T @ ((U.T @ k)[:rank] / s[:rank])
        return particular + N @ self.projected(N, particular).accelerations(N.T @ tau)


# Loops, from motions of their two frames


@dataclass(frozen=True, eq=False)
class Motion:
    """How a frame moves, by a peer: angular first, in the frame's own coordinates.

    Attributes:
        X: transform from the world to it.
        J: Jacobian for w, 6 × nw.
        V: spatial velocity.
        A: spatial acceleration for ẇ = 0, without gravity.
    """

    X: Transform
    J: np.ndarray
    V: np.ndarray
    A: np.ndarray

    @classmethod
    def along_world(cls, X: Transform, J: np.ndarray, V: np.ndarray, rate: np.ndarray) -> Motion:
        """From the velocity of the frame's origin and its rate, J̇ w, along the world's axes."""
        turn = np.kron(np.eye(2), X.E)
        V, A = turn @ V, turn @ rate
        A[3:] -= np.cross(V[:3], V[3:])
        return cls(X, turn @ J, V, A)


def loop_rows(loop: LoopJoint, first: Motion, second: Motion) -> tuple[np.ndarray, np.ndarray]:
    """K and k of a loop joint with K w = 0 and K ẇ = k, where it is closed."""
    X = second.X @ first.X.inverse()
    V, carried = second.V - X @ first.V, X @ first.V
    K = second.J - X.matrix() @ first.J
    A = second.A - X @ first.A + cross_motion(V, carried)
    if isinstance(loop.kind, Rod):
        return _rod_row(X, first, second)
    if isinstance(loop.kind, Held):  # along directions that the first frame carries
        along = loop.kind.axes[:, 3:] @ X.E.T
        return along @ K[3:], -along @ (A[3:] + np.cross(V[:3], V[3:]))
    if isinstance(loop.kind, Universal):
        seen, b = X.E @ loop.kind.first, loop.kind.second
        across, rate = np.cross(seen, b), np.cross(np.cross(seen, V[:3]), b)
        return np.vstack([K[3:], across @ K[:3]]), -np.array([*A[3:], across @ A[:3] + rate @ V[:3]])
    assert isinstance(loop.kind, Joint)
    T = loop.kind.constraint_force_subspace(loop.kind.neutral())  # the same in the second frame wherever it is
    return T.T @ K, -T.T @ A


def _rod_row(X: Transform, first: Motion, second: Motion) -> tuple[np.ndarray, np.ndarray]:
    """d·d is constant, for the way d from one origin to the other, in coordinates of the second frame."""
    d = X.E @ X.r
    rate = second.V[3:] - X.E @ first.V[3:]
    ends = [m.A[3:] + np.cross(m.V[:3], m.V[3:]) for m in (first, second)]
    K = d @ (second.J[3:] - X.E @ first.J[3:])
    return K[None], -np.array([d @ (ends[1] - X.E @ ends[0]) + rate @ rate])


def coupling_rows(robot: Robot, relation: Callable[[dict[str, Any]], Any]) -> np.ndarray:
    """K of a linear relation between joint positions, by its values at unit positions."""
    tree = robot.tree

    def at(w: np.ndarray) -> np.ndarray:
        by_joint = {joint: w[tree.velocities(link)] for joint, link in tree.number.items()}
        return np.atleast_1d(relation({joint: x[0] if len(x) == 1 else x for joint, x in by_joint.items()}))

    return np.stack([at(e) - at(np.zeros(tree.nv)) for e in np.eye(tree.nv)], axis=-1)
