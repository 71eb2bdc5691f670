"""Constraints on the links of a tree: loop joints and relations between joint positions, with their names resolved.

A constraint knows which joints it couples, how many rows it has, and its *form*: all that matters to a trace. What
constraints of one form differ in is numbers, which go into tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.graph import Template, jacobian, jvp, second_directional, template
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.loops import Coupling, LoopJoint, LoopKind
from coupler.model.tree import Tree
from coupler.model.wording import listed
from coupler.spatial import Transform, skew

__all__ = [
    "Constraint",
    "Loop",
    "LoopConstraint",
    "RelationConstraint",
    "Solution",
    "loop_bias",
    "loop_rate",
    "relation_bias",
    "relation_rate",
]

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False)
class LoopConstraint:
    """Two frames on two links held together.

    Attributes:
        name: of the loop joint.
        kind: in standard form.
        first, second: the links.
        first_frame, second_frame: transforms from each link's frame to the frame that is held.
        to_first, to_second: the links whose joints it couples, on the way to each end.
        rows: how many freedoms it takes away.
    """

    name: str
    kind: LoopKind
    first: int
    second: int
    first_frame: Transform
    second_frame: Transform
    to_first: tuple[int, ...]
    to_second: tuple[int, ...]
    rows: int

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
        to_first, to_second = tree.ways(first, second)
        return cls(loop.name, kind, first, second, *frames, tuple(to_first), tuple(to_second), rows)

    @property
    def links(self) -> tuple[int, ...]:
        return (*self.to_first, *self.to_second)

    @property
    def form(self) -> Hashable:
        return self.kind.form()


@dataclass(frozen=True, eq=False)
class RelationConstraint:
    """A function of the positions of some joints that is zero when they fit together.

    Attributes:
        name: of the coupling, or of what is locked.
        links: those whose joints it couples, in the order in which the function takes their positions.
        rows: how many equations it makes.
        form: the same for functions that differ in their numbers alone.
        function: takes a list of positions, and the numbers.
        numbers: this constraint's.
    """

    name: str
    links: tuple[int, ...]
    rows: int
    form: Hashable
    function: Callable[[Sequence[Array], Array], Array]
    numbers: np.ndarray

    @classmethod
    def of(cls, coupling: Coupling, tree: Tree) -> RelationConstraint:
        what = f"coupling {coupling.name!r}"
        for joint in coupling.joints:
            if joint not in tree.number:
                raise ModelError(f"{what}: there is no joint {joint!r} that moves; there are {listed(tree.number)}")
            if (nv := tree.links[tree.number[joint]].kind.nv) != 1:
                raise ModelError(f"{what}: joint {joint!r} has {nv} freedoms; only joints of one can be coupled")
        try:
            traced = template(coupling.residual, len(coupling.joints))
        except Exception as error:  # whatever a user's function raises
            raise ModelError(
                f"{what}: its function fails for {len(coupling.joints)} positions that are not known yet: {error!r}; "
                "it must be written with NumPy's functions and operators, without branches on positions"
            ) from error
        if len(traced.shape) != 1 or not traced.shape[0]:
            raise ModelError(f"{what}: its function must give a vector of equations, got the shape {traced.shape}")
        links = tuple(tree.number[joint] for joint in coupling.joints)
        form, function = ("relation", traced.text), _TracedResidual(traced)
        return cls(coupling.name, links, traced.shape[0], form, function, traced.numbers)

    @classmethod
    def lock(cls, name: str, tree: Tree, link: int, position: np.ndarray, direction: np.ndarray) -> RelationConstraint:
        """Holds a joint at a position in one direction of its velocities: direction · difference(position, q) = 0."""
        kind = tree.links[link].kind
        numbers = np.concatenate([position, direction])
        return cls(name, (link,), 1, ("lock", kind.form()), _LockResidual(kind), numbers)


@dataclass(frozen=True, eq=False)
class _TracedResidual:
    """The residual of a coupling, as a `RelationConstraint` takes it."""

    residual: Template

    def __call__(self, positions: Sequence[Array], numbers: Array) -> Array:
        return self.residual(np.concatenate(positions), numbers)


@dataclass(frozen=True, eq=False)
class _LockResidual:
    """How far a joint has moved from a position in one direction; both are its numbers, one after the other."""

    kind: Joint

    def __call__(self, positions: Sequence[Array], numbers: Array) -> Array:
        nq = self.kind.nq
        return np.array([numbers[nq:] @ self.kind.difference(numbers[:nq], positions[0])])


Constraint = LoopConstraint | RelationConstraint


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


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved coupling: what gives the positions of dependent joints from those of independent ones.

    Attributes:
        name: of the coupling.
        function: γ, with its numbers taken out.
        inputs: links of the independent joints.
        outputs: links of all joints, in the order in which γ gives their positions.
        level: solutions of lower levels come first.
    """

    name: str
    function: Template
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    level: int = 0

    @property
    def slots(self) -> tuple[int, ...]:
        """Which of the outputs are dependent."""
        return tuple(i for i, link in enumerate(self.outputs) if link not in self.inputs)

    @property
    def dependent(self) -> tuple[int, ...]:
        return tuple(self.outputs[i] for i in self.slots)


def nudged(X: Transform, m: Array) -> Transform:
    """X with its second frame moved by the small motion m, given in that frame: exact to first order."""
    return Transform(X.E - skew(m[:3]) @ X.E, X.r + X.E.T @ m[3:])


def loop_rate(kind: LoopKind, X: Transform) -> Array:
    """∂φ/∂m: how the residual of a loop joint changes with a motion m of its second frame, given there; rows × 6."""
    return jacobian(lambda m: kind.residual(nudged(X, m)), np.zeros(6))


def loop_bias(kind: LoopKind, X: Transform, m: Array, rate: Array) -> Array:
    """k = −φ̈ of a loop joint whose joints do not accelerate.

    φ̇ = T m with T = ∂φ/∂m, hence φ̈ = Ṫ m + T ṁ.

    Args:
        kind: of joint.
        X: from its first to its second frame.
        m: motion of the second frame against the first, given in the second.
        rate: ṁ, of m's coordinates.
    """
    T = loop_rate(kind, X)
    return -(jvp(lambda t: loop_rate(kind, nudged(X, m * t)) @ m, 0.0, 1.0) + T @ rate)


Residual = Callable[[Sequence[Array]], Array]


def relation_rate(residual: Residual, kinds: Sequence[Joint], p: Sequence[Array], x: Sequence[Array]) -> Array:
    """∂φ/∂x, rows × Σ nv, of a function of joint positions integrate(p, x)."""

    def moved(step: Array) -> Array:
        return residual(_integrated(kinds, p, np.concatenate(x) + step))

    return jacobian(moved, np.zeros(sum(kind.nv for kind in kinds)))


def relation_bias(residual: Residual, kinds: Sequence[Joint], q: Sequence[Array], w: Sequence[Array]) -> Array:
    """k = −φ̈ of a function of joint positions, for joint velocities w that do not change."""

    def moved(step: Array) -> Array:
        return residual(_integrated(kinds, q, step))

    return -second_directional(moved, np.zeros(sum(kind.nv for kind in kinds)), np.concatenate(w))


def _integrated(kinds: Sequence[Joint], p: Sequence[Array], step: Array) -> list[Array]:
    steps = np.split(step, np.cumsum([kind.nv for kind in kinds])[:-1])
    return [kind.integrate(at, part) for kind, at, part in zip(kinds, p, steps, strict=True)]
