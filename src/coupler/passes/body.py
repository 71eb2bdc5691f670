"""The bodies of a cluster, and those outside that carry it, in the notation of the papers; see cluster.py."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from coupler.forks import cached_property
from coupler.passes.records import Array, Record, provided
from coupler.passes.tree_loops import TreeJoint
from coupler.spatial import RigidInertia, Transform, cross_force, cross_motion, mirrored

if TYPE_CHECKING:
    from coupler.passes.cluster import Visit

B_co = TypeVar("B_co", bound=Record, covariant=True)  # what bodies remember


class Model(Record):
    """The constants of a body: where its joint is placed, its inertia, and the passive properties of its joint."""

    E, r = provided(), provided()
    m, h, I = provided(), provided(), provided()  # noqa: E741
    stiffness, rest, damping, armature = provided(), provided(), provided(), provided()


class Moving(Record):
    """What algorithms may remember of a body's motion and of the forces on it, by these names."""

    v, a = provided(), provided()  # velocity and acceleration
    E, r = provided(), provided()  # pose: the transform from the world
    load = provided()  # force from outside, along the world's axes about its origin
    IA, pA = provided(), provided()  # articulated inertia and bias force, of what it carries


class Output(Generic[B_co]):
    """A body outside of the cluster that carries bodies of it; the ground rests.

    Attributes:
        number: among the output bodies of its cluster.
        grounded: whether it is the ground.
        bodies: the bodies of the cluster that hang on it.
        memory: what it remembers.
    """

    def __init__(self, cluster: Visit[B_co, Any], number: int) -> None:
        self.number, self.grounded = number, cluster.shape.grounded[number]
        self._begins = cluster.shape.begins[number]
        view = cluster.views.outputs[number]
        self.memory: B_co = cluster.context.body(view)
        self._motion, self._cluster = Moving(view), cluster

    @property
    def bodies(self) -> list[Body[B_co]]:
        return [body for body in self._cluster.bodies if body.output is self]

    @property
    def v(self) -> Array:
        return np.zeros(6) if self.grounded else self._motion.v

    @property
    def pose(self) -> Transform:
        """From the world."""
        return Transform.identity() if self.grounded else Transform(self._motion.E, self._motion.r)

    @property
    def a(self) -> Array:
        """Its acceleration, to which gravity is added: the ground falls upwards. [001, §VI-A]"""
        return np.concatenate([np.zeros(3), -self._cluster.gravity]) if self.grounded else self._motion.a

    def collect(self, **values: Array) -> None:
        """Adds to what the clusters on it leave for it in its memory, which the first of them begins."""
        for name, value in values.items():
            setattr(self.memory, name, value if self._begins else getattr(self.memory, name) + value)


class Body(Generic[B_co]):
    """A body of a cluster.

    Attributes:
        cluster: the cluster.
        number: of the body in it.
        kind: of its joint.
        carries: whether other clusters hang on it.
        remembers: whether it has memory.
        output: the body outside of the cluster that carries it.
        memory: what it remembers.
        model: its constants.
    """

    def __init__(self, cluster: Visit[B_co, Any], number: int) -> None:
        self.cluster, self.number, self.kind = cluster, number, cluster.shape.kinds[number]
        self.carries = cluster.shape.carries[number]
        self.remembers = self.carries or cluster.context.everybody
        self.output = cluster.outputs[cluster.shape.outputs[number]]
        view = cluster.views.bodies[number]
        self.memory: B_co = cluster.context.body(view)
        self.model, self._motion = Model(cluster.views.models[number]), Moving(view)

    @property
    def parent(self) -> Body[B_co] | None:
        """The body of the same cluster that carries it."""
        number = self.cluster.shape.parents[self.number]
        return None if number is None else self.cluster.bodies[number]

    @cached_property
    def inertia(self) -> RigidInertia:
        return RigidInertia(self.model.m, self.model.h, mirrored(self.model.I))

    @cached_property
    def X(self) -> Transform:
        """From its parent body, in the cluster or outside."""
        if self.cluster.looped:
            return self.Xo if self.parent is None else self.Xo @ self.parent.Xo.inverse()
        return reduce(lambda X, before: X @ before, self._steps)

    @cached_property
    def _steps(self) -> list[Transform]:
        """Its joint, if its angle matters, and where that is placed."""
        placement = Transform(self.model.E, self.model.r)
        steady = self.cluster.shape.steady[self.number]
        return [placement] if steady else [self.kind.placed(self.cluster.kept[self.number]), placement]

    @cached_property
    def Xo(self) -> Transform:
        """From its output body."""
        if self.cluster.looped:
            found = TreeJoint(self.cluster.views.joints[self.number])
            return Transform(found.pose_E, found.pose_r)
        return self.X if self.parent is None else self.X @ self.parent.Xo

    def seen_by_parent(self, inertia: Any) -> Any:
        """Xᵀ I X: an inertia of it, rigid or as a matrix, seen from its parent body.

        To turn about one axis and then about another is cheaper than to turn about both.
        """
        for X in self._steps if all(X.axis for X in self._steps) else [self.X]:
            inertia = inertia.seen_from(X) if isinstance(inertia, RigidInertia) else X.transform_inertia(inertia)
        return inertia

    def seen_by_output(self, inertia: Any) -> Any:
        """Xᵀ I X: an inertia of it, rigid or as a matrix, seen from its output body."""
        if self.parent is None:
            return self.seen_by_parent(inertia)
        return inertia.seen_from(self.Xo) if isinstance(inertia, RigidInertia) else self.Xo.transform_inertia(inertia)

    @cached_property
    def pose(self) -> Transform:
        """From the world."""
        return self.Xo @ self.output.pose

    @cached_property
    def subspace(self) -> Array:
        """Sᵢ of its own joint, 6 × nv."""
        return self.kind.subspace(self.cluster.q[self.number])

    @property
    def entries(self) -> slice:
        """Where its joint's velocity is among those of the cluster."""
        return slice(*self.cluster.shape.starts[self.number : self.number + 2].tolist())

    @cached_property
    def w(self) -> Array:
        """Its joint's velocity."""
        return self.cluster.w[self.entries]

    @cached_property
    def S(self) -> Array:
        """Its rows of the cluster's motion subspace: its motion against its output body by unit of v. [001, eq. 24]"""
        own = self.subspace @ self.cluster.G[self.entries]
        return own if self.parent is None else own + self.X @ self.parent.S

    @property
    def motion(self) -> Array:
        """The motion of its joint by unit of velocity, 6 × nv, seen by its output body."""
        if self.cluster.looped:
            return TreeJoint(self.cluster.views.joints[self.number]).motion.T
        return self.Xo.inverse_motion(self.subspace)

    @cached_property
    def joint_velocity(self) -> Array:
        """Sᵢ q̇ᵢ, across its own joint."""
        return self.subspace @ self.w

    @cached_property
    def v(self) -> Array:
        """Its velocity; a body that carries others has it in its memory after the first pass."""
        if self.carries and self.cluster.known_velocities:
            return self._motion.v
        if self.cluster.looped:
            path = [self.cluster.bodies[i] for i in self.cluster.shape.paths[self.number]]
            return self.Xo @ sum((body.motion @ body.w for body in path), self.output.v)
        carrier_v = self.output.v if self.parent is None else self.parent.v
        return self.X @ carrier_v + self.joint_velocity

    @cached_property
    def c(self) -> Array:
        """Its acceleration against its output body for constant v: Ṡ ẏ, with g of the loops. [001, eq. 25, 26]"""
        rate = self.kind.subspace_rate(self.cluster.q[self.number], self.w) @ self.w
        own = cross_motion(self.v, self.joint_velocity) + rate + self.subspace @ self.cluster.g[self.entries]
        return own if self.parent is None else own + self.X @ self.parent.c

    @cached_property
    def p(self) -> Array:
        """v ×* I v, less what acts on it from outside."""
        force = cross_force(self.v, self.inertia @ self.v)
        return force - self.applied

    @cached_property
    def IA(self) -> Array:
        """Its articulated inertia: its own, and what the clusters on it have left. [001, eq. 55]"""
        own = self.inertia.matrix()
        return own + self._motion.IA if self.carries else own

    @cached_property
    def pA(self) -> Array:
        """Its articulated bias force."""
        return self.p + self._motion.pA if self.carries else self.p

    @cached_property
    def applied(self) -> Array:
        """Forces on it from outside, in its own frame."""
        if not self.cluster.context.loaded:
            return np.zeros(6)
        return Transform(self._motion.E, self._motion.r).inverse_force(self._motion.load)
