"""Constraints on the links of a tree: loop joints and couplings with their names resolved, and their φ, K and k.

A loop joint or coupling has this one description from the builder to the trace of a cluster. It knows which joints it
couples and its *form*, which is all that matters to a trace. Constraints of one form differ only in numbers, which go
into tables. Programs over all constraints of a robot (constraint_steps.py) and passes over clusters (passes/loops.py)
both ask a constraint for its equations at given poses of its links:

    φ = 0,        K w = 0,        K ẇ = k.        [001, §II-B]

Everything is seen from the output body of a cluster, so that a loop closes as well far from the origin as near it. A
loop joint sees the motion s of a joint as ± T s, where T is the rate of φ; a relation is differentiated directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coupler.model.embedding.loop_constraints import LinkMotion, LoopConstraint
from coupler.model.embedding.relation_constraints import RelationConstraint
from coupler.model.joint import Joint
from coupler.spatial import Transform, cross_motion

Array = Any  # an ndarray of floats, or of nodes


Constraint = LoopConstraint | RelationConstraint


def carried(kind: Joint, pose: Transform, s: Array, q: Array, w: Array, parent: LinkMotion) -> LinkMotion:
    """The motion of a link from its parent's: V += s w, and A += ṡ w with ṡ = V × s + S̊, for constant w.

    Args:
        kind: its joint.
        pose: transform from the output body to the link.
        s: 6 × nv, the motions of its joint in the output body's frame.
        q, w: the position and velocity of its joint.
        parent: the motion of its parent.
    """
    across = s @ w
    V = parent[0] + across
    rate_of_S = pose.inverse_motion(kind.subspace_rate(q, w) @ w)
    return V, parent[1] + (cross_motion(V, across) + rate_of_S)


@dataclass(frozen=True, eq=False)
class Loop:
    """The constraints of one cluster.

    Attributes:
        cluster: the number of the cluster.
        links: all its links.
        columns: the entries of w that belong to these.
        constraints: what couples their joints.
    """

    cluster: int
    links: tuple[int, ...]
    columns: np.ndarray
    constraints: tuple[Constraint, ...]

    @property
    def rows(self) -> int:
        return sum(constraint.rows for constraint in self.constraints)

    @property
    def kept(self) -> int:
        """The number of rows that count."""
        return sum(len(constraint.kept) for constraint in self.constraints)

    def parts(self, start: int = 0) -> Iterator[tuple[Constraint, slice]]:
        """The constraints, each with its rows; the first row is number `start`."""
        for constraint in self.constraints:
            yield constraint, slice(start, start + constraint.rows)
            start += constraint.rows

    def keeping(self, rows: Sequence[int] | np.ndarray) -> Loop:
        """A copy of this loop of which only these rows count."""
        counts = np.isin(np.arange(self.rows), rows)
        kept = [replace(c, kept=tuple(np.flatnonzero(counts[part]).tolist())) for c, part in self.parts()]
        return replace(self, constraints=tuple(kept))
