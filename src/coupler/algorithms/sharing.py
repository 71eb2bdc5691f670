"""How joints of an over-constrained cluster share what statics leaves open.

If some rows of K follow from others, the multipliers z of those rows may be anything: with the kept rows A and the
others B of K, and the undriven joints U,

    K_Uᵀ λ = s_U    gives    λ_A = K_AUᵀ⁻¹ (s_U − K_BUᵀ z),    λ_B = z.

The load R of a joint, its reaction without what does work, is then a known part and a multiple of z for each row:
R = R₀ + R₁ z. Statics hold whatever z is. A rule chooses it: conditions C R = 0 first, as many as can be met, and then
the least Σ c R² over all joints, loop joints and rows of couplings, with a compliance c for each of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.algorithms.rnea import BodyMemory, ClusterMemory
from coupler.linear import Cholesky, null_space, solve
from coupler.model import Robot
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.passes import Body, ClusterWindows, Record, Sweep, Visit, provided, tables
from coupler.passes.loops import Loops
from coupler.spatial import Transform


@dataclass(frozen=True)
class Condition:
    """A sum of loads of joints on a body that is zero.

    Attributes:
        component: of moment and force, 0 to 5, along the body's axes.
        link: the number of the body's link in the cluster; None for the output body.
        axes: 3 × 3, row by row, the rotation from that link to the body.
        joints: for each tree joint that takes part the number of its child in the cluster, and its factor.
        loops: for each loop joint that takes part its number among the bonds, and its factor.
    """

    component: int
    link: int | None
    axes: tuple[float, ...]
    joints: tuple[tuple[int, float], ...]
    loops: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Sharing:
    """How the rows of a cluster that follow from others take part.

    Attributes:
        kept, spare: numbers of the rows that others do not follow from, and of those that do, among all.
        joints: for each body the compliance of its joint, 6 rows.
        bonds: for each loop joint the same, and for each coupling that of its rows.
        conditions: of the rule.
        met: numbers of those that z meets; None if z is given.
    """

    kept: tuple[int, ...]
    spare: tuple[int, ...]
    joints: tuple[tuple[float, ...], ...]
    bonds: tuple[tuple[float, ...], ...]
    conditions: tuple[Condition, ...] = ()
    met: tuple[int, ...] | None = ()


Sharings = tuple[Sharing | None, ...]  # of each cluster; None where nothing is left open


class SharedBody(BodyMemory):
    """Of every body, besides what C-RNEA remembers: the frame on its link in which its joint ends."""

    end_axes, end_origin = provided(), provided()


class SharedBond(Record):
    """Of a loop joint: how its axes are turned from standard form."""

    turn = provided()


class SharedCluster(ClusterMemory):
    """Of a cluster, where z is given: that, and what is left of conditions."""

    z, left = provided(), provided()


Node = Visit[Any, Any]


class SharedRows:
    """What clusters see of the rows that they share, in a program."""

    def __init__(self, robot: Robot, sweep: Sweep[Any, Any], sharings: Sharings) -> None:
        self._robot, self._sharings = robot, sharings
        self._ends = {joint.name: joint.meets or Transform.identity() for joint in robot.joints}  # from the child
        given = [x if x is not None and x.met is None else None for x in sharings]
        rows, conditions = ([0 if x is None else len(getattr(x, y)) for x in given] for y in ("spare", "conditions"))
        self._z_at, self._left_at = (np.cumsum([0, *sizes]).tolist() for sizes in (rows, conditions))
        self._z = sweep.builder.input("z", sum(rows)) if sum(rows) else None
        self._left = sweep.result("left", sum(conditions)) if sum(conditions) else None

    def provide(self, windows: ClusterWindows, clusters: Sequence[int]) -> None:
        """Adds that for clusters of the same kind."""
        sharing, tree = self._sharings[clusters[0]], self._robot.tree
        if sharing is None:
            return
        for i in range(len(windows.bodies)):
            links = [tree.links[self._robot.cluster_tree.clusters[k].bodies[i]] for k in clusters]
            ends = [self._ends[link.joint] @ tree.place[link.name][1] for link in links]
            windows.bodies[i] |= tables([[{"end_axes": X.E, "end_origin": X.r}] for X in ends])[0]
        if sharing.met is None and self._z is not None:
            windows.cluster["z"] = self._z.at([self._z_at[k] for k in clusters], len(sharing.spare))
            if self._left is not None and sharing.conditions:
                windows.cluster["left"] = self._left.at([self._left_at[k] for k in clusters], len(sharing.conditions))


def shared_multipliers(
    cluster: Node, loops: Loops, sharing: Sharing, force: dict[Any, Any], s: Any, undriven: np.ndarray
) -> Any:
    """λ of all rows, z being chosen by a rule; see the module's text.

    Args:
        loops: all rows of what holds it together.
        sharing: the rule.
        force: what comes through each tree joint with loops open.
        s: what that needs along the freedoms of all joints.
        undriven: which of these no actuator drives.
    """
    kept, spare = list(sharing.kept), list(sharing.spare)
    need = np.concatenate([s[undriven][:, None], -loops.K[spare][:, undriven].T], axis=1)
    answers = solve(loops.K[kept][:, undriven].T, need) if kept else need
    by_row = dict(zip(kept, answers, strict=True)) | dict(zip(spare, np.eye(1 + len(spare))[1:], strict=True))
    multipliers = np.array([by_row[row] for row in range(len(loops.K))])  # rows × (1 + z)
    loads = Loads(cluster, loops, multipliers, force)
    C = np.array([loads.condition(condition) for condition in sharing.conditions]).reshape(-1, 1 + len(spare))
    if sharing.met is None:
        z = cluster.memory.z
        if len(C):
            cluster.memory.left = C[:, 0] + C[:, 1:] @ z
    else:
        z = least(loads.weighed(sharing), C[list(sharing.met)])
    return multipliers[:, 0] + multipliers[:, 1:] @ z


def least(R: Any, C: Any) -> Any:
    """z of the least |R₀ + R₁ z| for which C₀ + C₁ z = 0, whose rows do not follow from each other."""
    R0, R1, C0, C1 = R[:, 0], R[:, 1:], C[:, 0], C[:, 1:]
    if len(C1) == R1.shape[1]:
        return -solve(C1, C0)
    start: Any = np.zeros(R1.shape[1])
    N: Any = np.eye(R1.shape[1])
    if len(C1):
        N, inverse = null_space(C1)
        start = -inverse @ C0
    B = R1 @ N
    return start - N @ Cholesky(B.T @ B).solve(B.T @ (R0 + R1 @ start))


class Loads:
    """Loads of all joints of a cluster: columns of what is known, and of what each row of z adds."""

    def __init__(self, cluster: Node, loops: Loops, multipliers: Any, force: dict[Any, Any]) -> None:
        self._cluster, self._loops = cluster, loops
        spared, nothing = spared_by_loops(cluster, loops, multipliers), np.zeros((6, multipliers.shape[1] - 1))
        self.joints: list[Any] = []  # on the child, in the frame in which the joint ends
        for body in cluster.bodies:
            total = np.concatenate([force[body][:, None], nothing], axis=1) - spared.get(body, 0.0)
            end = Transform(body.memory.end_axes, body.memory.end_origin)
            self.joints.append(end.inverse_force(without_work(body, total)))
        self.bonds: list[Any] = []  # on the successor, in the loop's frame there; of couplings λ
        for i, (constraint, own) in enumerate(by_constraint(loops, multipliers)):
            if isinstance(constraint, LoopConstraint):
                own = turned(SharedBond(cluster.views.bonds[i]).turn, loops.wrench(i, own))
            self.bonds.append(own)

    def weighed(self, sharing: Sharing) -> Any:
        """All loads that z changes, times the roots of their compliances."""
        pairs = [*zip(sharing.joints, self.joints, strict=True), *zip(sharing.bonds, self.bonds, strict=True)]
        return np.concatenate([np.sqrt(compliance)[:, None] * load for compliance, load in pairs])

    def condition(self, condition: Condition) -> Any:
        """The sum of a condition."""
        bodies, half, axis = self._cluster.bodies, slice(0, 3), condition.component % 3
        if condition.component > 2:
            half = slice(3, 6)
        to_link = np.eye(3) if condition.link is None else bodies[condition.link].Xo.E
        along = (np.reshape(condition.axes, (3, 3)) @ to_link)[axis]  # one axis of the body, seen from the output body
        total: Any = 0.0
        for i, factor in condition.joints:
            to_end = bodies[i].memory.end_axes @ bodies[i].Xo.E
            total = total + factor * (to_end @ along) @ self.joints[i][half]
        for i, factor in condition.loops:
            to_loop = SharedBond(self._cluster.views.bonds[i]).turn @ self._loops.axes(i)
            total = total + factor * (to_loop @ along) @ self.bonds[i][half]
        return total


def by_constraint(loops: Loops, multipliers: Any) -> Iterator[tuple[Constraint, Any]]:
    """Loop joints and couplings, each with its multipliers."""
    ends = np.cumsum([len(constraint.kept) for constraint in loops.constraints])[:-1]
    return zip(loops.constraints, np.split(multipliers, ends), strict=True)


def spared_by_loops(cluster: Node, loops: Loops, multipliers: Any) -> dict[Any, Any]:
    """By body, what loop joints spare its tree joint, in its frame."""
    spared: dict[Any, Any] = {}
    for i, (constraint, own) in enumerate(by_constraint(loops, multipliers)):
        if isinstance(constraint, LoopConstraint) and constraint.kept:
            for j, part in loops.spared(i, constraint, own).items():
                spared[cluster.bodies[j]] = spared.get(cluster.bodies[j], 0.0) + part
    return spared


def without_work(body: Body[Any], force: Any) -> Any:
    """The part of a joint's force that does no work: f − Tᵃ Sᵀ f. [001, eq. 9]"""
    S = body.subspace
    return force - S @ Cholesky(S.T @ S).solve(S.T @ force)


def turned(E: Any, force: Any) -> Any:
    """A force along axes from which E turns back to those in which it is given."""
    return Transform.rotation(E).inverse_force(force)
