"""Loops of a cluster: their residuals φ, Jacobian K and bias k, from the poses of its bodies, and their forces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model.embedding.constraints import loop_bias, loop_rate, relation_bias, relation_rate
from coupler.model.joint import Joint
from coupler.passes.records import Array
from coupler.passes.shape import Held, Related
from coupler.spatial import Transform, cross_motion

if TYPE_CHECKING:
    from coupler.passes.cluster import Cluster

__all__ = ["Loops"]


class Loops:
    """What constrains a cluster while a pass over it is traced; all in the frame of its output body."""

    def __init__(self, cluster: Cluster[Any, Any], bonds: Sequence[Held | Related] | None = None) -> None:
        """Args: a cluster, and its bonds where forces are asked for; else the constraints by which it is embedded."""
        self.cluster = cluster
        self.constraints = cluster.shape.constraints if bonds is None else bonds
        self._views = cluster.views.constraints if bonds is None else cluster.views.bonds

    @cached_property
    def _motions(self) -> Array:
        """The motion of each joint velocity, 6 × n, in the output body's frame."""
        return np.concatenate([body.Xo.inverse_motion(body.subspace) for body in self.cluster.bodies], axis=1)

    def _frames(self, i: int, held: Held) -> tuple[Transform, Transform]:
        """From the output body to the two frames that are held."""
        numbers = self._views[i]

        def seen(frame: Transform, body: int | None) -> Transform:
            return frame if body is None else frame @ self.cluster.bodies[body].Xo

        first = seen(Transform(numbers.first_E, numbers.first_r), held.first)
        return first, seen(Transform(numbers.second_E, numbers.second_r), held.second)

    @cached_property
    def K(self) -> Array:
        """∂φ/∂w, without rows that follow from others."""
        return np.concatenate(self.rates)

    @cached_property
    def rates(self) -> list[Array]:
        """The rows of K, constraint by constraint."""
        rows, n = [], int(self.cluster.shape.starts[-1])
        for i, constraint in enumerate(self.constraints):
            columns: list[Any] = [np.zeros(len(constraint.rows))] * n  # type: ignore[union-attr]
            if not constraint.rows:  # type: ignore[union-attr]
                pass
            elif isinstance(constraint, Held):
                T = self._rate(i, constraint) @ self._frames(i, constraint)[1].matrix()
                for bodies, sign in ((constraint.to_second, 1.0), (constraint.to_first, -1.0)):
                    for j in self._entries(bodies):
                        columns[j] = sign * (T @ self._motions[:, j])
            else:
                assert isinstance(constraint, Related)
                kinds, q = self._joints(constraint)
                x = [np.zeros(kind.nv) for kind in kinds]
                rates = relation_rate(self._relation(i, constraint), kinds, q, x)
                for j, column in zip(self._entries(constraint.bodies), rates.T, strict=True):
                    columns[j] = column
            rows.append(np.array(columns).T)
        return rows

    def _rate(self, i: int, held: Held) -> Array:
        """T = ∂φ/∂m for the motion m of the second frame against the first, given in the second."""
        first, second = self._frames(i, held)
        return loop_rate(held.kind, second @ first.inverse())[list(held.rows)]

    def wrench(self, i: int, held: Held, multipliers: Array) -> tuple[Array, dict[int, Array]]:
        """The force Tᵀλ of a loop joint on its second body, in its second frame, and what it does for tree joints.

        Its opposite acts on the first body. On the way to the second body tree joints carry so much less, on the way to
        the first so much more: for each body on those ways, what its joint is spared, in the body's frame.
        """
        force = self._rate(i, held).T @ multipliers
        on_output = self._frames(i, held)[1].transform_force(force)
        spared = {}
        for bodies, sign in ((held.to_second, 1.0), (held.to_first, -1.0)):
            spared |= {j: sign * self.cluster.bodies[j].Xo.inverse_force(on_output) for j in bodies}
        return force, spared

    def residuals(self) -> Array:
        """φ, without rows that follow from others."""
        residuals = []
        for i, constraint in enumerate(self.constraints):
            if isinstance(constraint, Held):
                first, second = self._frames(i, constraint)
                residual = constraint.kind.residual(second @ first.inverse())[list(constraint.rows)]
            else:
                assert isinstance(constraint, Related)
                residual = self._relation(i, constraint)(self._joints(constraint)[1])
            residuals.append(residual)
        return np.concatenate(residuals)

    @cached_property
    def k(self) -> Array:
        """−K̇ w."""
        parts = []
        V, A = self._relative_motion
        rest = np.zeros(6)
        for i, constraint in enumerate(self.constraints):
            if isinstance(constraint, Held):
                first, second = self._frames(i, constraint)
                start, goal = (rest if x is None else V[x] for x in (constraint.first, constraint.second))
                before, after = (rest if x is None else A[x] for x in (constraint.first, constraint.second))
                m = goal - start
                rate = second @ (after - before - cross_motion(goal, m))
                bias = loop_bias(constraint.kind, second @ first.inverse(), second @ m, rate)
                parts.append(bias[list(constraint.rows)])
            else:
                assert isinstance(constraint, Related)
                kinds, q = self._joints(constraint)
                speed = [self.cluster.bodies[j].w for j in constraint.bodies]
                parts.append(relation_bias(self._relation(i, constraint), kinds, q, speed))
        return np.concatenate(parts)

    def _joints(self, related: Related) -> tuple[list[Joint], list[Array]]:
        """The joints of a relation and their positions."""
        return [self.cluster.shape.kinds[j] for j in related.bodies], [self.cluster.q[j] for j in related.bodies]

    def _relation(self, i: int, related: Related) -> Any:
        rows = list(related.rows)
        return lambda q: related.function(q, self._views[i].numbers)[rows]

    @cached_property
    def _relative_motion(self) -> tuple[list[Array], list[Array]]:
        """Velocities, and accelerations where no joint accelerates, against the output body and in its frame."""
        V: list[Array] = []
        A: list[Array] = []
        for body in self.cluster.bodies:
            own = self._motions[:, body.entries] @ body.w
            subspace_rate = body.kind.subspace_rate(self.cluster.q[body.number], body.w) @ body.w
            above = None if body.parent is None else body.parent.number
            V.append(own if above is None else V[above] + own)
            rate = cross_motion(V[-1], own) + body.Xo.inverse_motion(subspace_rate)
            A.append(rate if above is None else A[above] + rate)
        return V, A

    def _entries(self, bodies: Sequence[int]) -> list[int]:
        return [j for body in bodies for j in range(*self.cluster.shape.starts[body : body + 2].tolist())]
