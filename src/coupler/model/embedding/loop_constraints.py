"""Loop joints between links of a tree, with their names resolved, and their φ, K and k; see constraints.py."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.graph import jacobian, jvp
from coupler.model.errors import ModelError
from coupler.model.loops import LoopJoint, LoopKind
from coupler.model.tree import Tree
from coupler.spatial import Transform, cross_motion, skew

Array = Any  # an ndarray of floats, or of nodes
LinkMotion = tuple[Array, Array]  # against the output body, in its frame: velocity, and acceleration where ẇ = 0


@dataclass(frozen=True, eq=False)
class LoopConstraint:
    """Two frames on two links held together.

    Attributes:
        name: the name of the loop joint.
        kind: what holds the frames together, in standard form.
        ends: the two links; within a cluster, None for its output body.
        frames: transforms from each link's frame to the held frame, with the axes of the standard form.
        turn: the rotation from the standard form back to the axes in which the loop joint was described.
        ways: the links whose joints it couples, on the way to each end.
        rows: the number of its equations.
        kept: the equations that count; the others follow from these.
    """

    name: str
    kind: LoopKind
    ends: tuple[int | None, ...]
    frames: tuple[Transform, Transform]
    turn: np.ndarray
    ways: tuple[tuple[int, ...], ...]
    rows: int
    kept: tuple[int, ...]

    @classmethod
    def of(cls, loop: LoopJoint, tree: Tree) -> LoopConstraint:
        A, kind = loop.kind.aligned()
        (first, on_first), (second, on_second) = tree.place[loop.predecessor], tree.place[loop.successor]
        if first == second:
            raise ModelError(
                f"loop {loop.name!r}: its bodies {loop.predecessor!r} and {loop.successor!r} are welded together "
                "already, so that it closes no loop"
            )
        try:
            rows = len(kind.residual(Transform.identity()))
        except ModelError as error:
            raise ModelError(f"loop {loop.name!r}: {error}") from None
        if not rows:
            raise ModelError(f"loop {loop.name!r}: a free joint holds nothing; leave it out")
        turn = Transform.rotation(A)
        frames = turn @ loop.predecessor_frame @ on_first, turn @ loop.successor_frame @ on_second
        ways = tuple(map(tuple, tree.ways(first, second)))
        return cls(loop.name, kind, (first, second), frames, A.T, ways, rows, tuple(range(rows)))

    @property
    def links(self) -> tuple[int, ...]:
        return sum(self.ways, ())

    @property
    def form(self) -> Hashable:
        return self.kind.form(), self.kept

    @property
    def connection(self) -> Hashable:
        """A key for the links that it couples, and for how it couples them."""
        return self.ends, self.ways

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """The numbers that go into tables, by name."""
        first, second = self.frames
        frames = {"first_E": first.E, "first_r": first.r, "second_E": second.E, "second_r": second.r}
        return frames | {"turn": self.turn} | {x: np.asarray(value) for x, value in self.kind.lengths().items()}

    def within(self, number: Mapping[Any, int]) -> LoopConstraint:
        """A copy whose links go by their numbers in a cluster; `number` maps links to these."""
        ways = tuple(tuple(number[link] for link in way) for way in self.ways)
        return replace(self, ends=tuple(map(number.get, self.ends)), ways=ways)

    def at(self, constants: Any, first: Transform, second: Transform) -> LoopEquations:
        """The constraint's equations, for its constants by name and the poses of its two links."""
        start = Transform(constants.first_E, constants.first_r) @ first
        end = Transform(constants.second_E, constants.second_r) @ second
        return LoopEquations(self.kind.with_lengths(constants), list(self.kept), end @ start.inverse(), end)


@dataclass(frozen=True, eq=False)
class LoopEquations:
    """φ, T and k of a loop joint.

    Attributes:
        kind: what holds the frames together.
        kept: the rows that count.
        X: from the first held frame to the second.
        end: from the output body to the second held frame.
    """

    kind: LoopKind
    kept: list[int]
    X: Transform
    end: Transform

    def residual(self) -> Array:
        """φ, all rows."""
        return self.kind.residual(self.X)

    @cached_property
    def wrenches(self) -> Array:
        """Kept rows × 6: ∂φ/∂m for a motion m of the second frame against the first, both given in the second."""
        return self._rate(self.X)[self.kept]

    @cached_property
    def T(self) -> Array:
        """Kept rows × 6: ∂φ/∂m for a motion m given in the output body's frame."""
        return self.wrenches @ self.end.matrix()

    def bias(self, first: LinkMotion, second: LinkMotion) -> Array:
        """k = −φ̈, kept rows, for motions of its links: φ̇ = T m for the motion m between them, so φ̈ = Ṫ m + T ṁ."""
        (V1, A1), (V2, A2) = first, second
        m, rate = self.end @ (V2 - V1), self.end @ (A2 - A1 - cross_motion(V2, V2 - V1))
        rate_of_T = jvp(lambda t: self._rate(_nudged(self.X, m * t)) @ m, 0.0, 1.0)
        return -(rate_of_T + self._rate(self.X) @ rate)[self.kept]

    def _rate(self, X: Transform) -> Array:
        """∂φ/∂m, all rows, for a transform between the held frames."""
        return jacobian(lambda m: self.kind.residual(_nudged(X, m)), np.zeros(6))


def _nudged(X: Transform, m: Array) -> Transform:
    """The transform X after its second frame has made the small motion m, given in that frame; exact to first order."""
    return Transform(X.E - skew(m[:3]) @ X.E, X.r + X.E.T @ m[3:])
