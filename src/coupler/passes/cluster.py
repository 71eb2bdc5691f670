"""A cluster as an algorithm sees it: bodies, transforms, subspaces and memory, in the notation of the papers.

Quantities are computed when they are first used. Unused ones cost nothing, because a trace keeps only what its results
depend on. What the first pass over a cluster has stored (sines and cosines, the Jacobian G of its loops), later passes
load from memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import Any, Generic, TypeVar

import numpy as np

from coupler.forks import cached_property
from coupler.graph import jvp
from coupler.linear import Reflected
from coupler.model.embedding.solutions import Solution
from coupler.model.tolerances import STEEP
from coupler.passes.body import B_co, Body, Output
from coupler.passes.cluster_store import BodyPair, ClusterStore, Speed
from coupler.passes.context import Context
from coupler.passes.loops import Loops, SolvedLoops
from coupler.passes.records import Array, ClusterRecord
from coupler.passes.shape import ClusterShape
from coupler.passes.tree_loops import LoopedJoint
from coupler.passes.windows import ClusterViews

C_co = TypeVar("C_co", bound=ClusterRecord, covariant=True)  # what a cluster remembers


class Visit(Generic[B_co, C_co]):
    """A pass's visit to a cluster: all that the pass sees of it; see the module's text.

    The cluster's velocities ẏ are those of its independent joints. At a dead point these do not determine the others
    and cannot describe its motion. A program may therefore use *tangent* coordinates for loops without a solution: an
    orthonormal basis N of all velocities that the loops allow in the current configuration, w = N ẏ and
    ẇ = N ÿ + K⁺ k. Such coordinates exist wherever the loops are regular, and are valid in one configuration only.

    Attributes:
        shape: the cluster's shape, which it has in common with others.
        memory: the cluster's own record, and its parts of vectors over independent velocities.
        bodies: its bodies, parents first.
        outputs: the bodies of other clusters that carry it.
        looped: whether loops over its joints have found what it knows of them; see tree_loops.py.
        motions: S y of bodies, for each y used so far; see `across_joints`.
        pairs: pairs of its bodies that carry the same other cluster, and their memory.
        output_pairs: pairs of its output bodies by their numbers, and their memory.
        seen_before: whether an earlier pass has stored what follows from positions.
        known_velocities: whether an earlier pass has stored what follows from velocities.
    """

    def __init__(self, views: ClusterViews, shape: ClusterShape, context: Context) -> None:
        self.views, self.shape, self.context = views, shape, context
        self.seen_before = context.seen_before and context.remembers(shape)
        self.known_velocities = self.seen_before and context.known_velocities and any(shape.carries)
        self.tangent = context.tangent and not shape.solved
        self.looped = context.looped and self.tangent and shape.can_be_looped
        joints = [(joint, len(free)) for joint, free in zip(views.joints, shape.free, strict=True) if free]
        self.memory: C_co = context.cluster(views.cluster, joints)
        self._speed, self._store = Speed(views.cluster, joints), ClusterStore(views.cluster)
        self.outputs: list[Output[B_co]] = [Output(self, i) for i in range(len(shape.grounded))]
        self.bodies: list[Body[B_co]] = [Body(self, i) for i in range(len(shape.kinds))]
        self.motions: dict[bytes, tuple[Array, dict[int, Array]]] = {}
        self.pairs = [
            (self.bodies[a], self.bodies[b], BodyPair(view))
            for (a, b), view in zip(shape.couples, views.pairs, strict=False)  # no views unless bodies collect Iᴬ
        ]
        couples = combinations(range(len(shape.grounded)), 2)
        self.output_pairs = {pair: BodyPair(view) for pair, view in zip(couples, views.output_pairs, strict=False)}

    @property
    def carriers(self) -> list[Body[B_co]]:
        """The bodies that carry other clusters."""
        return [body for body in self.bodies if body.carries]

    @property
    def grounded(self) -> bool:
        """Whether it hangs on the ground."""
        return self.outputs[0].grounded

    @property
    def gravity(self) -> Array:
        """The acceleration of free fall, 3, m/s²."""
        return self._store.gravity

    def rates(self, quantity: Callable[[Visit[Any, Any]], Array]) -> Array:
        """The time derivative of a quantity that depends on the positions of the cluster's joints, at velocities w."""
        starts = self.shape.starts[1:-1]

        def moved(x: Array) -> Array:
            joints = zip(self.shape.kinds, self.q, np.split(x, starts), strict=True)
            return quantity(self.elsewhere([kind.integrate(q, step) for kind, q, step in joints]))

        return jvp(moved, np.zeros(int(self.shape.starts[-1])), self.w)

    def elsewhere(self, q: list[Array]) -> Visit[B_co, C_co]:
        """This cluster with its joints at positions q, and nothing loaded from memory."""
        fresh = replace(self.context, seen_before=False, moving=False, looped=False)
        other: Visit[B_co, C_co] = Visit(self.views, self.shape, fresh)
        other.q = q
        return other

    # Coordinates

    @cached_property
    def v(self) -> Array:
        """ẏ: the independent velocities."""
        return self._speed.v

    @cached_property
    def q(self) -> list[Array]:
        """The positions of all joints."""
        stored = self.shape.stored
        return [self.views.joints[i].q if stored[i] else self._solved.positions[i] for i in range(len(stored))]

    @cached_property
    def kept(self) -> list[Array]:
        """For each joint, what is stored of its position, such as sine and cosine."""
        kept: list[Array] = []
        for i, kind in enumerate(self.shape.kinds):
            loaded = self.seen_before and not self.shape.steady[i]
            kept.append(self.views.joints[i].kept if loaded else kind.keep(self.q[i]))
        return kept

    @cached_property
    def G(self) -> Array:
        """w = G ẏ: velocities of all joints from the independent ones. [001, eq. 3]"""
        if self.tangent:
            if not self.seen_before:
                return self.loops.null_space[0]
            return _with_zeros(self._store.N, self.shape.null_space.basis) if self.shape.is_large else self._store.N
        return self._of_all_joints(np.eye(self.shape.freedoms), self._dependent_rows)

    def _of_all_joints(self, of_independent: Array, of_dependent: Array) -> Array:
        """Rows for the velocities of all joints, from the rows for independent and for dependent ones."""
        places, rows = (*self.shape.independent, *self.shape.dependent), (*of_independent, *of_dependent)
        return np.array([row for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])])

    @cached_property
    def _dependent_rows(self) -> Array:
        """The rows of G for dependent velocities."""
        if not len(self.shape.dependent):
            return np.zeros((0, self.shape.freedoms))
        if self.seen_before and not self.shape.linear:
            return self._store.GD
        return self._solved.GD if self.shape.solved else self.loops.GD

    @cached_property
    def g(self) -> Array:
        """ẇ = G ÿ + g. [001, eq. 3]"""
        if self.looped:
            return np.concatenate([LoopedJoint(view).bias for view in self.views.joints])
        if self.tangent:
            return self._store.g if self.known_velocities else self.K_inverse @ self.loops.k
        return self._of_all_joints(np.zeros(self.shape.freedoms), self._dependent_bias)

    @cached_property
    def K_inverse(self) -> Array | Reflected:
        """K⁺ of the loops, in tangent coordinates; its columns span what N does not."""
        if not self.seen_before:
            return self.loops.null_space[1]
        if not self.shape.is_large:
            return self._store.K_inverse
        return Reflected.stored(self._store.K_inverse, self.shape.null_space)

    @cached_property
    def _dependent_bias(self) -> Array:
        """The entries of g for dependent velocities."""
        if self.shape.linear:
            return np.zeros(len(self.shape.dependent))
        if self.known_velocities:
            return self._store.gD
        return self._solved.gD if self.shape.solved else self.loops.gD

    @cached_property
    def w(self) -> Array:
        """The velocities of all joints."""
        if self.looped and self.seen_before:
            return np.concatenate([LoopedJoint(view).speed for view in self.views.joints])
        return self.G @ self.v

    def remember(self) -> None:
        """Stores what later passes load again."""
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
            inverse = self.K_inverse  # of a large one as reflections, and N without zeros
            large = isinstance(inverse, Reflected)
            self._store.N = self.G[self.shape.null_space.basis] if large else self.G
            self._store.K_inverse = inverse.numbers if large else inverse
        elif not self.shape.linear:
            self._store.GD = self._dependent_rows

    def remember_velocities(self) -> None:
        """Stores what follows from velocities."""
        if not any(self.shape.carries):
            return  # the velocities of a leaf are needed in one pass only
        if self.tangent:
            self._store.g = self.g
        elif not self.shape.linear:
            self._store.gD = self._dependent_bias

    # Loops

    @cached_property
    def loops(self) -> Loops:
        """The constraints, if they have no solution."""
        constraints = [constraint for constraint in self.shape.constraints if not isinstance(constraint, Solution)]
        return Loops(self, constraints, self.views.constraints)

    @cached_property
    def _solved(self) -> SolvedLoops:
        """The solutions, if the constraints have some."""
        solutions = [constraint for constraint in self.shape.constraints if isinstance(constraint, Solution)]
        return SolvedLoops(self, solutions, self.views.constraints)

    @cached_property
    def constraint(self) -> tuple[Array, Array]:
        """K and k, with K w = 0 and K ẇ = k, before they are solved for dependent velocities. [001, eq. 2]"""
        if not self.shape.solved:
            return self.loops.K, self.loops.k
        columns = self._of_all_joints(-self._dependent_rows.T, np.eye(len(self.shape.dependent)))
        return columns.T, self._dependent_bias

    def report_gap(self, *, moving: bool = True) -> None:
        """Adds to the program's `gap`: how far loops are from closed and regular, and quaternions from unit length.

        Args:
            moving: whether the pass uses velocities or forces. Poses alone are right in singular configurations, too.
        """
        if not self.shape.can_be_invalid:
            return
        gap = self._store.gap
        for kind, q in zip(self.shape.kinds, self.q, strict=True):
            if kind.nq != kind.nv:
                gap = np.maximum(gap, np.abs(q[-4:] @ q[-4:] - 1.0))
                for x in q[:-4]:  # results may not depend on the position of a floating body, so it is checked here
                    gap = np.maximum(gap, np.where(np.abs(x) < np.inf, 0.0, 1.0))
        residuals = self.loops.residuals() if self.loops.constraints else ()
        for value in (*residuals, *(self._steepness() if moving else ())):
            gap = np.maximum(gap, np.abs(value))
        self._store.gap = gap

    def _steepness(self) -> Array:
        """How fast dependent joints move, which tells how near to singular loops without a solution are."""
        if self.shape.solved or self.looped:  # the loops over joints of a looped one have told already
            return np.zeros(0)
        rates: Any = self.K_inverse if self.tangent else self._dependent_rows
        rates = rates.inverse if isinstance(rates, Reflected) else rates  # which is as large
        if self.shape.is_large:  # the same number, with fewer products
            rates = [reduce(np.maximum, np.abs(rates).ravel())]
        return (STEEP * np.array(rates)).ravel()

    # Passive forces

    @cached_property
    def armature(self) -> Array:
        """Gᵀ A G: the armatures of joints, seen by independent velocities."""
        return self.G.T @ (self.armatures[:, None] * self.G)

    @cached_property
    def armature_bias(self) -> Array:
        """Gᵀ A g."""
        return self.G.T @ (self.armatures * self.g)

    @cached_property
    def armatures(self) -> Array:
        """A: the armatures of all joints."""
        return np.concatenate([body.model.armature for body in self.bodies])

    @cached_property
    def passive(self) -> Array:
        """The forces of springs and dampers at joints, on independent velocities."""
        return self.G.T @ self.springs

    @cached_property
    def springs(self) -> Array:
        """The forces of springs and dampers at all joints: k (rest − q) − d q̇, where v is q̇."""
        forces = []
        for body, q in zip(self.bodies, self.q, strict=True):
            deflection = body.kind.difference(body.model.rest, q)
            pull = body.kind.along_velocity(deflection, -deflection * body.model.stiffness)
            forces.append(pull - body.model.damping * body.w)
        return np.concatenate(forces)


def _with_zeros(values: Array, full: np.ndarray) -> Array:
    """The matrix that has these numbers, row by row, where its pattern says, and zeros elsewhere."""
    return np.where(full, values[np.maximum(np.cumsum(full).reshape(full.shape) - 1, 0)], 0.0)
