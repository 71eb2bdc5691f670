"""Constraints on the links of a tree: loop joints and couplings with their names resolved, and their φ, K and k.

A loop joint or coupling has this one description from the builder to the trace of a cluster. It knows which joints it
couples and its *form*: all that matters to a trace. What constraints of one form differ in is numbers, which go into
tables. Programs over all constraints of a robot (scene.py) and passes over clusters (passes/loops.py) both ask a
constraint for its equations where its links are:

    φ = 0,        K w = 0,        K ẇ = k.        [001, §II-B]

Everything is seen from the output body of a cluster, so that a loop closes as well far from the origin as near it. A
loop joint sees the motion s of a joint as ± T s, where T is the rate of φ; a relation is differentiated directly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.graph import jacobian, jvp, second_directional, template
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.loops import Coupling, LoopJoint, LoopKind
from coupler.model.tree import Tree
from coupler.model.wording import listed
from coupler.spatial import Transform, cross_motion, skew

Array = Any  # an ndarray of floats, or of nodes
LinkMotion = tuple[Array, Array]  # against the output body, in its frame: velocity, and acceleration where ẇ = 0


@dataclass(frozen=True, eq=False)
class LoopConstraint:
    """Two frames on two links held together.

    Attributes:
        name: of the loop joint.
        kind: in standard form.
        ends: the two links; within a cluster, None for its output body.
        frames: transforms from each link's frame to the frame that is held, turned to standard form.
        turn: the rotation back from there to the axes in which the loop joint was described.
        ways: the links whose joints it couples, on the way to each end.
        rows: how many equations it makes.
        kept: which of them count; the others follow from those.
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
        """Which links it ties together, and how."""
        return self.ends, self.ways

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """What goes into tables."""
        first, second = self.frames
        frames = {"first_E": first.E, "first_r": first.r, "second_E": second.E, "second_r": second.r}
        return frames | {"turn": self.turn} | {x: np.asarray(value) for x, value in self.kind.lengths().items()}

    def within(self, number: Mapping[Any, int]) -> LoopConstraint:
        """The same, with links by their numbers in a cluster."""
        ways = tuple(tuple(number[link] for link in way) for way in self.ways)
        return replace(self, ends=tuple(map(number.get, self.ends)), ways=ways)

    def at(self, constants: Any, first: Transform, second: Transform) -> LoopEquations:
        """Its equations, for its constants (by name) and the poses of its links."""
        start = Transform(constants.first_E, constants.first_r) @ first
        end = Transform(constants.second_E, constants.second_r) @ second
        return LoopEquations(self.kind.with_lengths(constants), list(self.kept), end @ start.inverse(), end)


@dataclass(frozen=True, eq=False)
class LoopEquations:
    """φ, T and k of a loop joint.

    Attributes:
        kind: of joint.
        kept: its rows that count.
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
        """Kept rows × 6: the same for a motion in the output body's frame."""
        return self.wrenches @ self.end.matrix()

    def bias(self, first: LinkMotion, second: LinkMotion) -> Array:
        """k = −φ̈, kept rows, for motions of its links: φ̇ = T m for the motion m between them, so φ̈ = Ṫ m + T ṁ."""
        (V1, A1), (V2, A2) = first, second
        m, rate = self.end @ (V2 - V1), self.end @ (A2 - A1 - cross_motion(V2, V2 - V1))
        turning = jvp(lambda t: self._rate(_nudged(self.X, m * t)) @ m, 0.0, 1.0)
        return -(turning + self._rate(self.X) @ rate)[self.kept]

    def _rate(self, X: Transform) -> Array:
        """∂φ/∂m, all rows, for a transform between the held frames."""
        return jacobian(lambda m: self.kind.residual(_nudged(X, m)), np.zeros(6))


def _nudged(X: Transform, m: Array) -> Transform:
    """X with its second frame moved by the small motion m, given in that frame: exact to first order."""
    return Transform(X.E - skew(m[:3]) @ X.E, X.r + X.E.T @ m[3:])


@dataclass(frozen=True, eq=False)
class RelationConstraint:
    """A function of the positions of some joints that is zero when they fit together.

    Attributes:
        name: of the coupling, or of what is locked.
        links: those whose joints it couples, in the order in which the function takes their positions.
        kinds: of those joints.
        rows: how many equations it makes.
        kept: which of them count; the others follow from those.
        traced_as: the same for functions that differ in their numbers alone.
        function: takes the positions, one after the other, and the numbers.
        numbers: this constraint's.
        found: whether it is a closed form that was found, rather than something that the user described.
    """

    name: str
    links: tuple[int, ...]
    kinds: tuple[Joint, ...]
    rows: int
    kept: tuple[int, ...]
    traced_as: Hashable
    function: Callable[[Array, Array], Array]
    numbers: np.ndarray
    found: bool = False

    @classmethod
    def of(cls, coupling: Coupling, tree: Tree, *, found: bool = False) -> RelationConstraint:
        what = f"coupling {coupling.name!r}"
        for joint in coupling.joints:
            if joint not in tree.number:
                raise ModelError(f"{what}: there is no joint {joint!r} that moves; there are {listed(tree.number)}")
            if (nv := tree.links[tree.number[joint]].kind.nv) != 1 and joint not in coupling.independent:
                raise ModelError(f"{what}: joint {joint!r} has {nv} freedoms; only joints of one can depend on others")
        sizes = tuple(tree.links[tree.number[joint]].kind.nq for joint in coupling.joints)
        if sizes != coupling.sizes:
            raise ModelError(f"{what}: positions of its joints have {sizes} entries, not {coupling.sizes}")
        try:
            traced = template(coupling.residual, sum(sizes), tree.parameters or ())
        except Exception as error:  # whatever a user's function raises
            raise ModelError(
                f"{what}: its function fails for {len(coupling.joints)} positions that are not known yet: {error!r}; "
                "it must be written with NumPy's functions and operators, without branches on positions"
            ) from error
        if len(traced.shape) != 1 or not traced.shape[0]:
            raise ModelError(f"{what}: its function must give a vector of equations, got the shape {traced.shape}")
        links = tuple(tree.number[joint] for joint in coupling.joints)
        kinds, rows = tuple(tree.links[link].kind for link in links), traced.shape[0]
        form = traced.text, traced, traced.numbers
        return cls(coupling.name, links, kinds, rows, tuple(range(rows)), *form, found)

    @classmethod
    def lock(cls, name: str, tree: Tree, link: int, position: np.ndarray, direction: np.ndarray) -> RelationConstraint:
        """Holds a joint at a position in one direction of its velocities: direction · difference(position, q) = 0."""
        kind = tree.links[link].kind
        numbers = np.concatenate([position, direction])
        return cls(name, (link,), (kind,), 1, (0,), "lock", partial(_lock_residual, kind), numbers)

    @property
    def is_lock(self) -> bool:
        """Whether it holds a joint at a position; see `lock`."""
        return self.traced_as == "lock"

    @property
    def form(self) -> Hashable:
        return self.traced_as, self.kept, *(kind.form() for kind in self.kinds)

    @property
    def connection(self) -> Hashable:
        return self.links

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """What goes into tables."""
        return {"numbers": self.numbers}

    def within(self, number: Mapping[Any, int]) -> RelationConstraint:
        """The same, with links by their numbers in a cluster."""
        return replace(self, links=tuple(number[link] for link in self.links))

    def residual(self, numbers: Array, q: Sequence[Array]) -> Array:
        """φ, all rows, for its numbers and positions of its joints."""
        return self.function(np.concatenate(q), numbers)

    def rate(self, numbers: Array, p: Sequence[Array], x: Array) -> Array:
        """∂φ/∂x, kept rows × Σ nv, for positions integrate(p, x)."""
        return jacobian(lambda step: self._moved(numbers, p, x + step), np.zeros(len(x)))

    def bias(self, numbers: Array, q: Sequence[Array], w: Array) -> Array:
        """k = −φ̈, kept rows, for joint velocities w that do not change."""
        return -second_directional(lambda step: self._moved(numbers, q, step), np.zeros(len(w)), w)

    def _moved(self, numbers: Array, p: Sequence[Array], step: Array) -> Array:
        """The kept rows of φ for positions integrate(p, step)."""
        steps = np.split(step, np.cumsum([kind.nv for kind in self.kinds])[:-1])
        q = [kind.integrate(at, part) for kind, at, part in zip(self.kinds, p, steps, strict=True)]
        return self.residual(numbers, q)[list(self.kept)]


def _lock_residual(kind: Joint, q: Array, numbers: Array) -> Array:
    """How far a joint has moved from a position in one direction; both are its numbers, one after the other."""
    return np.array([numbers[kind.nq :] @ kind.difference(numbers[: kind.nq], q)])


Constraint = LoopConstraint | RelationConstraint


def carried(kind: Joint, pose: Transform, s: Array, q: Array, w: Array, parent: LinkMotion) -> LinkMotion:
    """The motion of a link on its parent's: V += s w, and A += ṡ w with ṡ = V × s + S̊, for constant w.

    Args:
        kind: of its joint.
        pose: of the link, from the output body.
        s: 6 × nv, motions of its joint in the output body's frame.
        q, w: its joint's position and velocity.
        parent: the motion of what carries it.
    """
    own = s @ w
    V = parent[0] + own
    turning = pose.inverse_motion(kind.subspace_rate(q, w) @ w)
    return V, parent[1] + (cross_motion(V, own) + turning)


@dataclass(frozen=True, eq=False)
class Loop:
    """The constraints of one cluster.

    Attributes:
        cluster: its number.
        links: all links of the cluster.
        columns: entries of w that belong to them.
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
        """How many rows count."""
        return sum(len(constraint.kept) for constraint in self.constraints)

    def parts(self, start: int = 0) -> Iterator[tuple[Constraint, slice]]:
        """The constraints, each with its rows, which begin at `start`."""
        for constraint in self.constraints:
            yield constraint, slice(start, start + constraint.rows)
            start += constraint.rows

    def keeping(self, rows: Sequence[int] | np.ndarray) -> Loop:
        """The same, of which only these rows count."""
        counts = np.isin(np.arange(self.rows), rows)
        kept = [replace(c, kept=tuple(np.flatnonzero(counts[own]).tolist())) for c, own in self.parts()]
        return replace(self, constraints=tuple(kept))
