"""The bodies of a cluster and its output bodies, in the notation of the papers; see cluster.py."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from coupler.forks import cached_property
from coupler.passes.records import Array, Record, provided
from coupler.passes.tree_loops import LoopedJoint
from coupler.spatial import RigidInertia, Transform, cross_force, cross_motion, mirrored

if TYPE_CHECKING:
    from coupler.passes.cluster import Visit

B_co = TypeVar("B_co", bound=Record, covariant=True)  # what bodies remember


class Model(Record):
    """The constants of a body: the placement of its joint, its inertia, and its joint's springs and armature."""

    E, r = provided(), provided()
    m, h, I = provided(), provided(), provided()  # noqa: E741
    stiffness, rest, damping, armature = provided(), provided(), provided(), provided()


class Moving(Record):
    """The names under which algorithms store a body's motion and the forces on it."""

    v, a = provided(), provided()  # velocity and acceleration
    E, r = provided(), provided()  # pose: the transform from the world
    load = provided()  # force from outside, along the world's axes about its origin
    IA, pA = provided(), provided()  # articulated inertia and bias force of what the body carries


class Output(Generic[B_co]):
    """An output body of a cluster: a body of another cluster, or the ground, that carries bodies of it. [001, §IV-B]

    Attributes:
        number: its number among the output bodies of the cluster.
        grounded: whether it is the ground.
        memory: its record.
    """

    def __init__(self, cluster: Visit[B_co, Any], number: int) -> None:
        self.number, self.grounded = number, cluster.shape.grounded[number]
        self._begins = cluster.shape.begins[number]
        view = cluster.views.outputs[number]
        self.memory: B_co = cluster.context.body(view)
        self._motion, self._cluster = Moving(view), cluster

    @property
    def bodies(self) -> list[Body[B_co]]:
        """The bodies of the cluster that hang on it."""
        return [body for body in self._cluster.bodies if body.output is self]

    @property
    def v(self) -> Array:
        """The output body's velocity; zero for the ground."""
        return np.zeros(6) if self.grounded else self._motion.v

    @property
    def pose(self) -> Transform:
        """The transform from the world."""
        return Transform.identity() if self.grounded else Transform(self._motion.E, self._motion.r)

    @property
    def a(self) -> Array:
        """The output body's acceleration; gravity accelerates the ground upward, a₀ = −a_g. [001, §VI-A]"""
        return np.concatenate([np.zeros(3), -self._cluster.gravity]) if self.grounded else self._motion.a

    def collect(self, **values: Array) -> None:
        """Adds to collected fields of its memory; the first cluster on the way inward sets them instead."""
        for name, value in values.items():
            setattr(self.memory, name, value if self._begins else getattr(self.memory, name) + value)


class Body(Generic[B_co]):
    """A body of a cluster.

    Attributes:
        cluster: the cluster.
        number: its number in the cluster.
        kind: the kind of its joint.
        carries: whether other clusters hang on it.
        remembers: whether it has memory.
        output: its output body.
        memory: its record.
        model: its constants.
    """

    def __init__(self, cluster: Visit[B_co, Any], number: int) -> None:
        self.cluster, self.number, self.kind = cluster, number, cluster.shape.kinds[number]
        self.carries = cluster.shape.carries[number]
        self.remembers = self.carries or cluster.context.leaf_bodies
        self.output = cluster.outputs[cluster.shape.outputs[number]]
        view = cluster.views.bodies[number]
        self.memory: B_co = cluster.context.body(view)
        self.model, self._motion = Model(cluster.views.models[number]), Moving(view)

    @property
    def parent(self) -> Body[B_co] | None:
        """The body of the same cluster that carries it, if any."""
        number = self.cluster.shape.parents[self.number]
        return None if number is None else self.cluster.bodies[number]

    @cached_property
    def inertia(self) -> RigidInertia:
        return RigidInertia(self.model.m, self.model.h, mirrored(self.model.I))

    @cached_property
    def X(self) -> Transform:
        """ⁱX_λ: the transform from its parent body, in the cluster or outside."""
        if self.cluster.looped:
            return self.Xo if self.parent is None else self.Xo @ self.parent.Xo.inverse()
        return reduce(lambda X, before: X @ before, self._steps)

    @cached_property
    def _steps(self) -> list[Transform]:
        """The factors of X: that of its joint, unless its angle does not matter, and that of the joint's placement."""
        placement = Transform(self.model.E, self.model.r)
        steady = self.cluster.shape.steady[self.number]
        return [placement] if steady else [self.kind.placed(self.cluster.kept[self.number]), placement]

    @cached_property
    def Xo(self) -> Transform:
        """The transform from its output body. [001, eq. 17]"""
        if self.cluster.looped:
            joint = LoopedJoint(self.cluster.views.joints[self.number])
            return Transform(joint.pose_E, joint.pose_r)
        return self.X if self.parent is None else self.X @ self.parent.Xo

    def seen_by_parent(self, inertia: Any) -> Any:
        """Xᵀ I X: an inertia of this body, rigid or a matrix, seen from its parent body.

        Two rotations, each about a coordinate axis, are cheaper one after the other than as one.
        """
        for X in self._steps if all(X.axis for X in self._steps) else [self.X]:
            inertia = inertia.seen_from(X) if isinstance(inertia, RigidInertia) else X.transform_inertia(inertia)
        return inertia

    def seen_by_output(self, inertia: Any) -> Any:
        """Xᵀ I X: an inertia of this body, rigid or a matrix, seen from its output body."""
        if self.parent is None:
            return self.seen_by_parent(inertia)
        return inertia.seen_from(self.Xo) if isinstance(inertia, RigidInertia) else self.Xo.transform_inertia(inertia)

    @cached_property
    def pose(self) -> Transform:
        """The transform from the world."""
        return self.Xo @ self.output.pose

    @cached_property
    def subspace(self) -> Array:
        """Sᵢ: the motion subspace of its own joint, 6 × nv."""
        return self.kind.subspace(self.cluster.q[self.number])

    @property
    def entries(self) -> slice:
        """The entries of its joint's velocity among the velocities of the cluster's joints."""
        return slice(*self.cluster.shape.starts[self.number : self.number + 2].tolist())

    @cached_property
    def w(self) -> Array:
        """q̇ᵢ: the velocity of its joint."""
        return self.cluster.w[self.entries]

    @cached_property
    def S(self) -> Array:
        """Rows of the cluster's motion subspace: S ẏ is the velocity relative to the output body. [001, eq. 24]"""
        across_joint = self.subspace @ self.cluster.G[self.entries]
        return across_joint if self.parent is None else across_joint + self.X @ self.parent.S

    @property
    def motion(self) -> Array:
        """The motion of its joint by unit of velocity, 6 × nv, seen by its output body."""
        if self.cluster.looped:
            return LoopedJoint(self.cluster.views.joints[self.number]).motion.T
        return self.Xo.inverse_motion(self.subspace)

    @cached_property
    def joint_velocity(self) -> Array:
        """Sᵢ q̇ᵢ: the velocity across its own joint."""
        return self.subspace @ self.w

    @cached_property
    def v(self) -> Array:
        """The body's velocity. A body that carries others loads it from memory after the first pass. [001, eq. 33]"""
        if self.carries and self.cluster.known_velocities:
            return self._motion.v
        if self.cluster.looped:
            path = [self.cluster.bodies[i] for i in self.cluster.shape.paths[self.number]]
            return self.Xo @ sum((body.motion @ body.w for body in path), self.output.v)
        carrier_v = self.output.v if self.parent is None else self.parent.v
        return self.X @ carrier_v + self.joint_velocity

    @cached_property
    def c(self) -> Array:
        """c = Ṡ ẏ: its acceleration relative to its output body for ÿ = 0. [001, eq. 25, 26]

        Per joint, as docs/papers.md derives for Algorithm 1, lines 18 and 19: vᵢ × Sᵢ q̇ᵢ + d/dt(Sᵢ) q̇ᵢ + Sᵢ gᵢ.
        """
        rate = self.kind.subspace_rate(self.cluster.q[self.number], self.w) @ self.w
        across_joint = cross_motion(self.v, self.joint_velocity) + rate + self.subspace @ self.cluster.g[self.entries]
        return across_joint if self.parent is None else across_joint + self.X @ self.parent.c

    @cached_property
    def p(self) -> Array:
        """v ×* I v, less the forces on it from outside. [001, Algorithm 1, line 21]"""
        force = cross_force(self.v, self.inertia @ self.v)
        return force - self.applied

    @cached_property
    def IA(self) -> Array:
        """The body's articulated inertia, 6 × 6: I + Σ Xᵀ Iᵃ X over the clusters on it. [001, eq. 55]"""
        rigid = self.inertia.matrix()
        return rigid + self._motion.IA if self.carries else rigid

    @cached_property
    def pA(self) -> Array:
        """The body's articulated bias force: p + Σ Xᵀ pᵃ over the clusters on it. [001, eq. 55]"""
        return self.p + self._motion.pA if self.carries else self.p

    @cached_property
    def applied(self) -> Array:
        """The force on it from outside, in its own frame."""
        if not self.cluster.context.loaded:
            return np.zeros(6)
        return Transform(self._motion.E, self._motion.r).inverse_force(self._motion.load)
