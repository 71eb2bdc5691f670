"""The loops of a cluster: γ, or φ, K and k from the poses of its bodies, and the rows of G and g that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.forks import cached_property
from coupler.graph import jacobian, second_directional
from coupler.linear import Reflected, null_space, null_space_by_rows, product_where, solve
from coupler.model.embedding.constraints import Constraint, carried
from coupler.model.embedding.loop_constraints import LinkMotion, LoopConstraint, LoopEquations
from coupler.model.embedding.solutions import Solution
from coupler.passes.records import Array
from coupler.passes.tree_loops import TreeRecord
from coupler.spatial import Transform

if TYPE_CHECKING:
    from coupler.passes.cluster import Visit


class SolvedLoops:
    """γ of a cluster whose constraints have solutions, and the rows of G and g for dependent velocities."""

    def __init__(self, cluster: Visit[Any, Any], solutions: Sequence[Solution], constants: Sequence[Any]) -> None:
        """Args: a cluster, solutions between its bodies by their numbers, and the constants of each."""
        self.cluster, self.solutions, self.constants = cluster, solutions, constants
        stored = cluster.shape.stored
        self._inputs = [i for i in sorted({i for solution in solutions for i in solution.inputs}) if stored[i]]
        self._outputs = [i for i in range(len(stored)) if not stored[i]]

    def _solution(self, positions: dict[int, Array]) -> Array:
        """γ: dependent positions from independent ones."""
        for solution, constants in zip(self.solutions, self.constants, strict=True):
            positions = positions | solution.positions(constants.numbers, positions)
        return np.concatenate([positions[i] for i in self._outputs])

    def _moved(self, x: Array) -> Array:
        """γ after its independent joints have moved by x, in the sense of `Joint.integrate`."""
        kinds, starts = self.cluster.shape.kinds, np.cumsum([self.cluster.shape.kinds[i].nv for i in self._inputs])
        steps = zip(self._inputs, np.split(x, starts[:-1]), strict=True)
        return self._solution({i: kinds[i].integrate(self.cluster.q[i], step) for i, step in steps})

    @cached_property
    def positions(self) -> dict[int, Array]:
        """The positions of dependent joints, by body."""
        positions = self._solution({i: self.cluster.views.joints[i].q for i in self._inputs})
        return {i: positions[j : j + 1] for j, i in enumerate(self._outputs)}

    @property
    def GD(self) -> Array:
        """The rows of G for dependent velocities: ∂γ/∂y. [001, eq. 3]"""
        shape, rates = self.cluster.shape, jacobian(self._moved, np.zeros(len(self._entries)))
        columns = {entry: rates[:, j] for j, entry in enumerate(self._entries)}
        zero = np.zeros(len(shape.dependent))
        return np.array([columns.get(int(entry), zero) for entry in shape.independent]).T

    @property
    def gD(self) -> Array:
        """The entries of g for dependent velocities: the second derivative of γ along ẏ."""
        speed = np.concatenate([self.cluster.bodies[i].w for i in self._inputs])
        return second_directional(self._moved, np.zeros(len(self._entries)), speed)

    @property
    def _entries(self) -> list[int]:
        """The velocities of the joints that γ starts from, among those of the cluster."""
        starts = self.cluster.shape.starts
        return [entry for i in self._inputs for entry in range(int(starts[i]), int(starts[i + 1]))]


class Loops:
    """The constraints of a cluster without solutions, in the frame of its output body: φ, K and k. [001, eq. 2]"""

    def __init__(self, cluster: Visit[Any, Any], constraints: Sequence[Constraint], constants: Sequence[Any]) -> None:
        """Args: a cluster, constraints between its bodies by their numbers, and the constants of each."""
        self.cluster, self.constraints, self.constants = cluster, constraints, constants

    @property
    def GD(self) -> Array:
        """The rows of G for dependent velocities: −K_D⁻¹ K_I."""
        return -solve(self.K[:, self.cluster.shape.dependent], self.K[:, self.cluster.shape.independent])

    @property
    def gD(self) -> Array:
        """The entries of g for dependent velocities: K_D⁻¹ k."""
        return solve(self.K[:, self.cluster.shape.dependent], self.k)

    @cached_property
    def null_space(self) -> tuple[Array, Array | Reflected]:
        """An orthonormal basis N of the null space of K, and K⁺; see `coupler.linear.null_space`."""
        shape = self.cluster.shape
        return null_space_by_rows(self.K, shape.null_space) if shape.is_large else null_space(self.K)

    @cached_property
    def _motions(self) -> Array:
        """The motion subspaces of all joints, 6 × n, in the output body's frame."""
        return np.concatenate([body.Xo.inverse_motion(body.subspace) for body in self.cluster.bodies], axis=1)

    @cached_property
    def _equations(self) -> dict[int, LoopEquations]:
        """The equations of loop joints, by their numbers among the constraints."""
        poses = {None: Transform.identity()} | {body.number: body.Xo for body in self.cluster.bodies}
        return {
            i: constraint.at(self.constants[i], *(poses[body] for body in constraint.ends))
            for i, constraint in enumerate(self.constraints)
            if isinstance(constraint, LoopConstraint)
        }

    @cached_property
    def K(self) -> Array:
        """∂φ/∂w, without redundant rows."""
        if self.cluster.looped:
            return np.where(self.cluster.shape.loop_pattern, TreeRecord(self.cluster.views.cluster).columns.T, 0.0)
        return np.concatenate(self.rates)

    @cached_property
    def rates(self) -> list[Array]:
        """The rows of K, constraint by constraint."""
        rows, n = [], int(self.cluster.shape.starts[-1])
        at_once = self._rates_at_once if self.cluster.shape.is_large else {}
        for i, constraint in enumerate(self.constraints):
            columns: list[Any] = [np.zeros(len(constraint.kept))] * n
            if not constraint.kept:
                pass
            elif i in at_once:
                columns = list(at_once[i].T)
            elif isinstance(constraint, LoopConstraint):
                for way, sign in zip(constraint.ways, (-1.0, 1.0), strict=True):
                    for j in self._entries(way):
                        columns[j] = sign * (self._equations[i].T @ self._motions[:, j])
            else:
                entries = self._entries(constraint.links)
                q = [self.cluster.q[j] for j in constraint.links]
                rates = constraint.rate(self.constants[i].numbers, q, np.zeros(len(entries)))
                for j, column in zip(entries, rates.T, strict=True):
                    columns[j] = column
            rows.append(np.array(columns).T)
        return rows

    @cached_property
    def _rates_at_once(self) -> dict[int, Array]:
        """The rows of K of all loop joints, by their numbers among the constraints, computed as one product."""
        loops = {i: c for i, c in enumerate(self.constraints) if isinstance(c, LoopConstraint) and c.kept}
        if not loops:
            return {}
        T = np.concatenate([self._equations[i].T for i in loops])
        ways = np.zeros((2, len(T), self._motions.shape[1]), bool)
        ends = np.cumsum([len(loop.kept) for loop in loops.values()])
        for loop, end in zip(loops.values(), ends, strict=True):
            for way, bodies in zip(ways, loop.ways, strict=True):
                way[end - len(loop.kept) : end, self._entries(bodies)] = True
        away, towards = product_where(-T, self._motions, ways[0]), product_where(T, self._motions, ways[1])
        return dict(zip(loops, np.split(np.where(ways[1], towards, away), ends[:-1]), strict=True))

    def wrench(self, i: int, multipliers: Array) -> Array:
        """The force Tᵀλ of a loop joint on its second body, in its second frame. Several λ may be columns."""
        return self._equations[i].wrenches.T @ multipliers

    def axes(self, i: int) -> Array:
        """The rotation from the output body to the second frame of a loop joint."""
        return self._equations[i].end.E

    def spared(self, i: int, constraint: LoopConstraint, multipliers: Array) -> dict[int, Array]:
        """For each body the force that a loop joint takes off its tree joint, in the body's frame.

        The loop joint's force acts on its second body, and the opposite force on its first. So tree joints on the way
        to the second body transmit so much less, and those on the way to the first so much more.
        """
        on_output = self._equations[i].end.transform_force(self.wrench(i, multipliers))
        spared = {}
        for way, sign in zip(reversed(constraint.ways), (1.0, -1.0), strict=True):
            spared |= {j: sign * self.cluster.bodies[j].Xo.inverse_force(on_output) for j in way}
        return spared

    def residuals(self) -> Array:
        """φ without redundant rows, or with them where parameters may make them independent; see `Context.all_rows`."""
        if self.cluster.looped:
            record = TreeRecord(self.cluster.views.cluster)
            return record.residuals if self.cluster.context.all_rows else record.kept_residuals
        residuals = []
        for i, constraint in enumerate(self.constraints):
            if isinstance(constraint, LoopConstraint):
                residual = self._equations[i].residual()
            else:
                q = [self.cluster.q[j] for j in constraint.links]
                residual = constraint.residual(self.constants[i].numbers, q)
            residuals.append(residual if self.cluster.context.all_rows else residual[list(constraint.kept)])
        return np.concatenate(residuals)

    @cached_property
    def k(self) -> Array:
        """−K̇ w."""
        if self.cluster.looped:
            return TreeRecord(self.cluster.views.cluster).biases
        parts, motion = [], self._relative_motion
        for i, constraint in enumerate(self.constraints):
            if isinstance(constraint, LoopConstraint):
                parts.append(self._equations[i].bias(*(motion[body] for body in constraint.ends)))
            else:
                q, w = zip(*((self.cluster.q[j], self.cluster.bodies[j].w) for j in constraint.links), strict=True)
                parts.append(constraint.bias(self.constants[i].numbers, q, np.concatenate(w)))
        return np.concatenate(parts)

    @cached_property
    def _relative_motion(self) -> dict[int | None, LinkMotion]:
        """The motions of bodies relative to the output body, by their numbers; the output body is None."""
        motion: dict[int | None, LinkMotion] = {None: (np.zeros(6), np.zeros(6))}
        for body in self.cluster.bodies:
            s, parent = self._motions[:, body.entries], None if body.parent is None else body.parent.number
            motion[body.number] = carried(body.kind, body.Xo, s, self.cluster.q[body.number], body.w, motion[parent])
        return motion

    def _entries(self, bodies: Sequence[int]) -> list[int]:
        """The velocities of some bodies' joints among those of the cluster."""
        return [j for body in bodies for j in range(*self.cluster.shape.starts[body : body + 2].tolist())]
