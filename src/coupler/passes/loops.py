"""Loops of a cluster that have no solution: their residuals φ, Jacobian K and bias k, from the poses of its bodies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model.embedding.constraints import loop_bias, loop_rate, relation_bias, relation_rate
from coupler.model.joint import Joint
from coupler.model.loops import residual_of
from coupler.passes.shape import Held, Related
from coupler.spatial import Transform, cross_motion

if TYPE_CHECKING:
    from coupler.passes.cluster import Cluster

__all__ = ["Loops"]

Array = Any  # nodes of a trace


class Loops:
    """What constrains a cluster while a pass over it is traced; all in the frame of its output body."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @cached_property
    def _motions(self) -> Array:
        """The motion of each joint velocity, 6 × n, in the output body's frame."""
        return np.concatenate([body.Xo.inverse_motion(body.subspace) for body in self.cluster.bodies], axis=1)

    def _frames(self, i: int, held: Held) -> tuple[Transform, Transform]:
        """From the output body to the two frames that are held."""
        ends = []
        for name, body in (("A", held.first), ("B", held.second)):
            frame = Transform(getattr(self.cluster.here, f"{name}E{i}"), getattr(self.cluster.here, f"{name}r{i}"))
            ends.append(frame if body is None else frame @ self.cluster.bodies[body].Xo)
        return ends[0], ends[1]

    @cached_property
    def K(self) -> Array:
        """∂φ/∂w, without rows that follow from others."""
        rows, n = [], int(self.cluster.shape.starts[-1])
        for i, constraint in enumerate(self.cluster.shape.constraints):
            columns: list[Any] = [np.zeros(len(constraint.rows))] * n  # type: ignore[union-attr]
            if isinstance(constraint, Held):
                first, second = self._frames(i, constraint)
                T = loop_rate(constraint.kind, second @ first.inverse())[list(constraint.rows)] @ second.matrix()
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
        return np.concatenate(rows)

    def residuals(self) -> Array:
        """φ, without rows that follow from others."""
        found = []
        for i, constraint in enumerate(self.cluster.shape.constraints):
            if isinstance(constraint, Held):
                first, second = self._frames(i, constraint)
                residual = residual_of(constraint.kind, second @ first.inverse())[list(constraint.rows)]
            else:
                assert isinstance(constraint, Related)
                residual = self._relation(i, constraint)(self._joints(constraint)[1])
            found.append(residual)
        return np.concatenate(found)

    @cached_property
    def k(self) -> Array:
        """−K̇ w."""
        parts = []
        V, A = self._relative_motion
        rest = np.zeros(6)
        for i, constraint in enumerate(self.cluster.shape.constraints):
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
        return lambda q: related.function(q, getattr(self.cluster.here, f"n{i}"))[rows]

    @cached_property
    def _relative_motion(self) -> tuple[list[Array], list[Array]]:
        """Velocities, and accelerations where no joint accelerates, against the output body and in its frame."""
        V: list[Array] = []
        A: list[Array] = []
        for body in self.cluster.bodies:
            own = self._motions[:, body.entries] @ body.w
            turning = body.kind.subspace_rate(self.cluster.q[body.number], body.w) @ body.w
            above = None if body.parent is None else body.parent.number
            V.append(own if above is None else V[above] + own)
            rate = cross_motion(V[-1], own) + body.Xo.inverse_motion(turning)
            A.append(rate if above is None else A[above] + rate)
        return V, A

    def _entries(self, bodies: Sequence[int]) -> list[int]:
        return [j for body in bodies for j in range(*self.cluster.shape.starts[body : body + 2].tolist())]
