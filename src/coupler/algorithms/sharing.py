"""How the joints of an over-constrained cluster share a statically indeterminate load.

If some rows of K are redundant, their multipliers z are arbitrary. With the kept rows A and the redundant rows B of K,
and the undriven joints U,

    K_Uᵀ λ = s_U    gives    λ_A = K_AUᵀ⁻¹ (s_U − K_BUᵀ z),    λ_B = z.

The load R of a joint, its reaction apart from forces that do work, is an affine function of z: R = R₀ + R₁ z. Statics
hold for any z. A rule chooses z: it meets conditions C R = 0, as many as can be met, and then minimises Σ c R² over all
joints, loop joints and rows of couplings, with a compliance c for each of their rows.
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
    """A weighted sum of the loads of joints on a body, which is to be zero.

    Attributes:
        component: the component of moment and force, 0 to 5, along the body's axes.
        link: the number of the body's link in the cluster; None for the output body.
        axes: 3 × 3, row by row, the rotation from that link to the body.
        joints: for each tree joint in the sum the number of its child in the cluster, and its factor.
        loops: for each loop joint in the sum its number among the bonds, and its factor.
    """

    component: int
    link: int | None
    axes: tuple[float, ...]
    joints: tuple[tuple[int, float], ...]
    loops: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Sharing:
    """How the redundant rows of a cluster transmit forces.

    Attributes:
        kept, spare: the numbers of the kept and of the redundant rows among all rows.
        joints: for each body the compliance of its joint, 6 rows.
        bonds: for each loop joint its compliance, 6 rows, and for each coupling the compliance of its rows.
        conditions: the conditions of the rule.
        met: the numbers of conditions that z is to meet; None if z is an input of the program.
    """

    kept: tuple[int, ...]
    spare: tuple[int, ...]
    joints: tuple[tuple[float, ...], ...]
    bonds: tuple[tuple[float, ...], ...]
    conditions: tuple[Condition, ...] = ()
    met: tuple[int, ...] | None = ()


Sharings = tuple[Sharing | None, ...]  # for each cluster; None if it has no redundant rows


class SharedBody(BodyMemory):
    """What C-RNEA remembers of a body, and the frame on its link in which its joint ends."""

    end_axes, end_origin = provided(), provided()


class SharedBond(Record):
    """A loop joint's rotation from the axes of its standard form."""

    turn = provided()


class SharedCluster(ClusterMemory):
    """What C-RNEA remembers of a cluster, z where that is an input, and residuals of conditions."""

    z, residuals = provided(), provided()


Visited = Visit[Any, Any]


class SharedRows:
    """The fields that clusters of a program see of their redundant rows."""

    def __init__(self, robot: Robot, sweep: Sweep[Any, Any], sharings: Sharings) -> None:
        self._robot, self._sharings = robot, sharings
        self._ends = {joint.name: joint.meets or Transform.identity() for joint in robot.joints}  # from the child
        given = [x if x is not None and x.met is None else None for x in sharings]
        rows, conditions = ([0 if x is None else len(getattr(x, y)) for x in given] for y in ("spare", "conditions"))
        self._z_at, self._residuals_at = (np.cumsum([0, *sizes]).tolist() for sizes in (rows, conditions))
        self._z = sweep.builder.input("z", sum(rows)) if sum(rows) else None
        self._residuals = sweep.result("residuals", sum(conditions)) if sum(conditions) else None

    def provide(self, windows: ClusterWindows, clusters: Sequence[int]) -> None:
        """Adds these fields for clusters that share a trace."""
        sharing, tree = self._sharings[clusters[0]], self._robot.tree
        if sharing is None:
            return
        for i in range(len(windows.bodies)):
            links = [tree.links[self._robot.cluster_tree.clusters[k].bodies[i]] for k in clusters]
            ends = [self._ends[link.joint] @ tree.place[link.name][1] for link in links]
            windows.bodies[i] |= tables([[{"end_axes": X.E, "end_origin": X.r}] for X in ends])[0]
        if sharing.met is None and self._z is not None:
            windows.cluster["z"] = self._z.at([self._z_at[k] for k in clusters], len(sharing.spare))
            if self._residuals is not None and sharing.conditions:
                windows.cluster["residuals"] = self._residuals.at(
                    [self._residuals_at[k] for k in clusters], len(sharing.conditions)
                )


def shared_multipliers(
    cluster: Visited, loops: Loops, sharing: Sharing, force: dict[Any, Any], s: Any, undriven: np.ndarray
) -> Any:
    """λ of all rows, with z chosen by a rule; see the module's text.

    Args:
        loops: all rows of its bonds.
        sharing: the rule.
        force: the force across each tree joint if loops were open.
        s: the forces that this needs along the freedoms of all joints.
        undriven: the freedoms that no actuator drives.
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
            cluster.memory.residuals = C[:, 0] + C[:, 1:] @ z
    else:
        z = least(loads.weighed(sharing), C[list(sharing.met)])
    return multipliers[:, 0] + multipliers[:, 1:] @ z


def least(R: Any, C: Any) -> Any:
    """The z with C₀ + C₁ z = 0, of independent rows, that minimises |R₀ + R₁ z|."""
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
    """The loads of all joints of a cluster as matrices: R₀ in the first column, R₁ in the others."""

    def __init__(self, cluster: Visited, loops: Loops, multipliers: Any, force: dict[Any, Any]) -> None:
        self._cluster, self._loops = cluster, loops
        spared, nothing = spared_by_loops(cluster, loops, multipliers), np.zeros((6, multipliers.shape[1] - 1))
        self.joints: list[Any] = []  # on the child, in the frame in which the joint ends
        for body in cluster.bodies:
            total = np.concatenate([force[body][:, None], nothing], axis=1) - spared.get(body, 0.0)
            end = Transform(body.memory.end_axes, body.memory.end_origin)
            self.joints.append(end.inverse_force(without_work(body, total)))
        self.bonds: list[Any] = []  # of loop joints on the successor, in the loop's frame there; of couplings λ
        for i, (constraint, load) in enumerate(by_constraint(loops, multipliers)):
            if isinstance(constraint, LoopConstraint):
                load = turned(SharedBond(cluster.views.bonds[i]).turn, loops.wrench(i, load))
            self.bonds.append(load)

    def weighed(self, sharing: Sharing) -> Any:
        """All loads as a matrix, each row times the square root of its compliance."""
        pairs = [*zip(sharing.joints, self.joints, strict=True), *zip(sharing.bonds, self.bonds, strict=True)]
        return np.concatenate([np.sqrt(compliance)[:, None] * load for compliance, load in pairs])

    def condition(self, condition: Condition) -> Any:
        """The weighted sum of a condition, as a row of C₀ and C₁."""
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


def spared_by_loops(cluster: Visited, loops: Loops, multipliers: Any) -> dict[Any, Any]:
    """For each body the force that loop joints take off its tree joint, in the body's frame."""
    spared: dict[Any, Any] = {}
    for i, (constraint, its_multipliers) in enumerate(by_constraint(loops, multipliers)):
        if isinstance(constraint, LoopConstraint) and constraint.kept:
            for j, part in loops.spared(i, constraint, its_multipliers).items():
                spared[cluster.bodies[j]] = spared.get(cluster.bodies[j], 0.0) + part
    return spared


def without_work(body: Body[Any], force: Any) -> Any:
    """The part of a joint's force that does no work: f − Tᵃ Sᵀ f. [001, eq. 8, 9]"""
    S = body.subspace
    return force - S @ Cholesky(S.T @ S).solve(S.T @ force)


def turned(E: Any, force: Any) -> Any:
    """A force along the axes that E rotates to."""
    return Transform.rotation(E).inverse_force(force)
