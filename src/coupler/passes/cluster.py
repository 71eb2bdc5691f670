"""A cluster as an algorithm sees it: bodies, transforms, subspaces and memory, in the notation of the papers.

Everything is computed when it is first asked for; what is not asked for costs nothing, because a trace keeps what leads
to its results and nothing else. What a cluster knows after the first pass over it (sines and cosines, the Jacobian G of
its loops) is loaded from its memory in later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, Generic, TypeVar

import numpy as np

from coupler.forks import cached_property
from coupler.graph import jvp
from coupler.model.embedding.solutions import Solution
from coupler.model.tolerances import STEEP
from coupler.passes.body import B_co, Body, Output
from coupler.passes.loops import Loops, SolvedLoops
from coupler.passes.records import Array, ClusterRecord, Coordinate, Record, entry, provided
from coupler.passes.shape import Shape
from coupler.passes.tree_loops import TreeJoint
from coupler.passes.windows import ClusterViews

C_co = TypeVar("C_co", bound=ClusterRecord, covariant=True)  # what a cluster remembers


@dataclass(frozen=True)
class Context:
    """What a program says about all of its clusters, and about one in some pass.

    Attributes:
        body, cluster, paired, loaded, everybody, remembering, tangent: what the program was begun with; see `Sweep`.
        all_rows: whether rows that follow from others count where a loop is said to be open.
        looped: whether large clusters are seen by loops over their joints; see tree_loops.py.
        moving: whether there are velocities.
        seen_before: whether there was a pass over the cluster before.
        known_velocities: whether that pass, or one after it, has stored velocities that still hold.
    """

    body: type[Any]
    cluster: type[Any]
    paired: bool
    loaded: bool
    everybody: bool
    remembering: bool
    tangent: bool
    all_rows: bool
    looped: bool = False
    moving: bool = False
    seen_before: bool = False
    known_velocities: bool = True

    def remembers(self, shape: Shape) -> bool:
        """Whether clusters of a shape keep what they know after the first pass."""
        return self.remembering or any(shape.carries)


class Pair(Record):
    """Two bodies of a cluster on both of which another one hangs, so that each feels the other's acceleration."""

    IA = entry((6, 6))  # the force on the first by unit of acceleration of the second


class Kept(Record):
    """What every cluster keeps for itself and for its program."""

    GD, gD = provided(), provided()  # rows of G, and entries of g, of dependent velocities
    N, K_inverse, g = provided(), provided(), provided()  # or, along a basis of its own, G, K⁺ and g
    gap, gravity = provided(), provided()


class Speed(ClusterRecord):
    v = Coordinate()


class Visit(Generic[B_co, C_co]):
    """The visit of a pass to a cluster: all that the pass sees of it; see the module's text.

    Its velocities ẏ are those of its independent joints. Where these do not determine the others, at a dead point, they
    cannot say how it moves. A program may therefore see clusters of loops without a solution along an orthonormal basis
    N of all velocities that the loops allow where they are: w = N ẏ, ẇ = N ÿ + K⁺ k. Such coordinates exist wherever
    the loops are regular, and belong to one configuration alone.

    Attributes:
        shape: what it has in common with others.
        memory: what it remembers as a whole, and its parts of vectors over independent velocities.
        bodies: its bodies, parents first.
        outputs: the bodies outside that carry it.
        looped: whether loops over its joints have found what it knows of them; see tree_loops.py.
        motions: S y of bodies, for each y that was asked for; see `across_joints`.
        pairs: those of its bodies on both of which another cluster hangs, and what they remember.
        output_pairs: the same of output bodies, by their numbers.
    """

    def __init__(self, views: ClusterViews, shape: Shape, context: Context) -> None:
        self.views, self.shape, self.context = views, shape, context
        self.seen_before = context.seen_before and context.remembers(shape)
        self.known_velocities = self.seen_before and context.known_velocities and any(shape.carries)
        self.tangent = context.tangent and not shape.solved
        self.looped = context.looped and self.tangent and shape.can_be_looped
        joints = [(joint, len(free)) for joint, free in zip(views.joints, shape.free, strict=True) if free]
        self.memory: C_co = context.cluster(views.cluster, joints)
        self._speed, self._kept = Speed(views.cluster, joints), Kept(views.cluster)
        self.outputs: list[Output[B_co]] = [Output(self, i) for i in range(len(shape.grounded))]
        self.bodies: list[Body[B_co]] = [Body(self, i) for i in range(len(shape.kinds))]
        both = [(self.bodies[a], self.bodies[b]) for a, b in shape.couples]
        self.motions: dict[bytes, tuple[Array, dict[int, Array]]] = {}
        self.pairs = [(one, other, Pair(view)) for (one, other), view in zip(both, views.pairs, strict=False)]
        couples = combinations(range(len(shape.grounded)), 2)
        self.output_pairs = {pair: Pair(view) for pair, view in zip(couples, views.output_pairs, strict=False)}

    @property
    def carriers(self) -> list[Body[B_co]]:
        """The bodies on which other clusters hang."""
        return [body for body in self.bodies if body.carries]

    @property
    def grounded(self) -> bool:
        """Whether it hangs on the ground."""
        return self.outputs[0].grounded

    @property
    def gravity(self) -> Array:
        """Acceleration of free fall, 3, m/s²."""
        return self._kept.gravity

    def rates(self, quantity: Callable[[Visit[Any, Any]], Array]) -> Array:
        """How fast a quantity changes that depends on where the cluster's joints are, at their velocities w."""
        starts = self.shape.starts[1:-1]

        def moved(x: Array) -> Array:
            parts = zip(self.shape.kinds, self.q, np.split(x, starts), strict=True)
            return quantity(self.elsewhere([kind.integrate(q, own) for kind, q, own in parts]))

        return jvp(moved, np.zeros(int(self.shape.starts[-1])), self.w)

    def elsewhere(self, q: list[Array]) -> Visit[B_co, C_co]:
        """The same cluster, of which nothing is known yet, with its joints at other positions."""
        fresh = replace(self.context, seen_before=False, moving=False, looped=False)
        other: Visit[B_co, C_co] = Visit(self.views, self.shape, fresh)
        other.q = q
        return other

    # Coordinates

    @cached_property
    def v(self) -> Array:
        """ẏ: its independent velocities."""
        return self._speed.v

    @cached_property
    def q(self) -> list[Array]:
        """The positions of all its joints."""
        stored = self.shape.stored
        return [self.views.joints[i].q if stored[i] else self._solved.positions[i] for i in range(len(stored))]

    @cached_property
    def kept(self) -> list[Array]:
        """Of each position what is kept."""
        kept: list[Array] = []
        for i, kind in enumerate(self.shape.kinds):
            loaded = self.seen_before and not self.shape.steady[i]
            kept.append(self.views.joints[i].kept if loaded else kind.keep(self.q[i]))
        return kept

    @cached_property
    def G(self) -> Array:
        """w = G ẏ: velocities of all joints from the independent ones. [001, §II-B]"""
        if self.tangent:
            if not self.seen_before:
                return self.loops.null_space[0]
            return _with_zeros(self._kept.N, self.shape.basis_patterns[0]) if self.shape.is_large else self._kept.N
        return self._of_all_joints(np.eye(self.shape.freedoms), self._dependent_rows)

    def _of_all_joints(self, of_independent: Array, of_dependent: Array) -> Array:
        """Rows for the velocities of all joints, from those for independent and for dependent ones."""
        places, rows = (*self.shape.independent, *self.shape.dependent), (*of_independent, *of_dependent)
        return np.array([row for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])])

    @cached_property
    def _dependent_rows(self) -> Array:
        """The rows of G that belong to dependent velocities."""
        if not len(self.shape.dependent):
            return np.zeros((0, self.shape.freedoms))
        if self.seen_before and not self.shape.linear:
            return self._kept.GD
        return self._solved.GD if self.shape.solved else self.loops.GD

    @cached_property
    def g(self) -> Array:
        """ẇ = G ÿ + g."""
        if self.looped:
            return np.concatenate([TreeJoint(view).bias for view in self.views.joints])
        if self.tangent:
            return self._kept.g if self.known_velocities else self.K_inverse @ self.loops.k
        return self._of_all_joints(np.zeros(self.shape.freedoms), self._dependent_bias)

    @cached_property
    def K_inverse(self) -> Array:
        """K⁺ of its loops, along a basis of its own; its columns span what N does not."""
        if not self.seen_before:
            return self.loops.null_space[1]
        if not self.shape.is_large:
            return self._kept.K_inverse
        full = self.shape.basis_patterns[1]
        return self._kept.K_inverse.T if full.all() else np.where(full, self._kept.K_inverse.T, 0.0)

    @cached_property
    def _dependent_bias(self) -> Array:
        """The entries of g that belong to dependent velocities."""
        if self.shape.linear:
            return np.zeros(len(self.shape.dependent))
        if self.known_velocities:
            return self._kept.gD
        return self._solved.gD if self.shape.solved else self.loops.gD

    @cached_property
    def w(self) -> Array:
        """Velocities of all its joints."""
        if self.looped and self.seen_before:
            return np.concatenate([TreeJoint(view).speed for view in self.views.joints])
        return self.G @ self.v

    def remember(self) -> None:
        """Stores what later passes need again."""
        self.remember_positions()
        if self.context.moving:
            self.remember_velocities()

    def remember_positions(self) -> None:
        """Stores what follows from positions."""
        if not self.context.remembers(self.shape):
            return
        for joint, steady, kept in zip(self.views.joints, self.shape.steady, self.kept, strict=True):
            if not steady and not self.looped:
                joint.kept = kept
        if self.tangent:
            # Of a large one, N without zeros, and K⁺ by columns: its products with vectors are then sums of rows that
            # lie side by side.
            large = self.shape.is_large
            self._kept.N = self.G[self.shape.basis_patterns[0]] if large else self.G
            self._kept.K_inverse = self.K_inverse.T if large else self.K_inverse
        elif not self.shape.linear:
            self._kept.GD = self._dependent_rows

    def remember_velocities(self) -> None:
        """Stores what follows from velocities."""
        if not any(self.shape.carries):
            return  # of a cluster that carries nothing, no other pass needs them
        if self.tangent:
            self._kept.g = self.g
        elif not self.shape.linear:
            self._kept.gD = self._dependent_bias

    # Loops

    @cached_property
    def loops(self) -> Loops:
        """Its constraints, where they have no solution."""
        constraints = [constraint for constraint in self.shape.constraints if not isinstance(constraint, Solution)]
        return Loops(self, constraints, self.views.constraints)

    @cached_property
    def _solved(self) -> SolvedLoops:
        """Its solutions, where there are such."""
        solutions = [constraint for constraint in self.shape.constraints if isinstance(constraint, Solution)]
        return SolvedLoops(self, solutions, self.views.constraints)

    @cached_property
    def constraint(self) -> tuple[Array, Array]:
        """K and k of its joints, K w = 0 and K ẇ = k, before they are solved for dependent velocities."""
        if not self.shape.solved:
            return self.loops.K, self.loops.k
        columns = self._of_all_joints(-self._dependent_rows.T, np.eye(len(self.shape.dependent)))
        return columns.T, self._dependent_bias

    def report_gap(self, *, moving: bool = True) -> None:
        """Tells how far its loops are from closed and from regular, and its quaternions from unit length.

        What depends on positions alone, with nothing `moving`, is right in a singular configuration, too.
        """
        if not self.shape.can_be_invalid:
            return
        gap = self._kept.gap
        for kind, q in zip(self.shape.kinds, self.q, strict=True):
            if kind.nq != kind.nv:
                gap = np.maximum(gap, np.abs(q[-4:] @ q[-4:] - 1.0))
                for x in q[:-4]:  # nothing else may depend on where a body floats
                    gap = np.maximum(gap, np.where(np.abs(x) < np.inf, 0.0, 1.0))
        if self.looped:  # whose loops over joints have told how steep it is
            for value in self.loops.residuals():
                gap = np.maximum(gap, np.abs(value))
        elif not self.shape.solved:
            rates = self.K_inverse if self.tangent else self._dependent_rows
            if moving and self.shape.is_large:  # the same number, with fewer products
                rates = [reduce(np.maximum, np.abs(rates).ravel())]
            steepness = (STEEP * np.array(rates)).ravel() if moving else ()
            for value in (*self.loops.residuals(), *steepness):
                gap = np.maximum(gap, np.abs(value))
        self._kept.gap = gap

    # Passive forces

    @cached_property
    def armature(self) -> Array:
        """The armature of its joints, by independent velocities: Gᵀ A G."""
        return self.G.T @ (self.armatures[:, None] * self.G)

    @cached_property
    def armature_bias(self) -> Array:
        """Gᵀ A g."""
        return self.G.T @ (self.armatures * self.g)

    @cached_property
    def armatures(self) -> Array:
        """The armatures of all its joints."""
        return np.concatenate([body.model.armature for body in self.bodies])

    @cached_property
    def passive(self) -> Array:
        """Forces of springs and dampers at its joints, on independent velocities."""
        return self.G.T @ self.springs

    @cached_property
    def springs(self) -> Array:
        """Forces of springs and dampers at all its joints: k (rest − q) − d q̇."""
        forces = []
        for body, q in zip(self.bodies, self.q, strict=True):
            pull = -body.kind.difference(body.model.rest, q) * body.model.stiffness
            forces.append(pull - body.model.damping * body.w)
        return np.concatenate(forces)


def _with_zeros(values: Array, full: np.ndarray) -> Array:
    """The matrix that has these numbers, row by row, where its pattern says, and zeros elsewhere."""
    matrix = np.zeros(full.shape, dtype=values.dtype)
    matrix[full] = values
    return np.where(full, matrix, 0.0)
