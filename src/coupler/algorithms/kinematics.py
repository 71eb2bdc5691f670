"""Where frames are, how they move, how independent joints move them, and the mass, momentum and energy of all bodies.

Motions of a frame are told at its origin, along its own axes or the world's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.frames import Frame, FrameBody, FrameCluster, FrameSweep
from coupler.model import Robot
from coupler.passes import (
    Body,
    ClusterRecord,
    ClusterWindows,
    Coordinate,
    Place,
    Record,
    Shape,
    Sweep,
    Visit,
    add_element_energy,
    entry,
    provided,
)
from coupler.spatial import Transform, cross, cross_motion

__all__ = [
    "body_poses_program",
    "centre_of_mass_program",
    "frame_acceleration_program",
    "frame_jacobian_program",
    "frame_jacobian_rate_program",
    "frame_pose_program",
    "frame_velocity_program",
    "kinetic_energy_program",
    "momentum_program",
    "potential_energy_program",
]


class PoseBody(Record):
    """What a body remembers: its pose, as the transform from the world."""

    E, r = entry((3, 3)), entry(3)


class SpeedBody(Record):
    v = entry(6)


class MotionBody(PoseBody, SpeedBody):
    """Pose and velocity."""


class MovingFrameBody(FrameBody):
    """Pose and velocity."""

    v = entry(6)


class AcceleratedFrameBody(MovingFrameBody):
    """Pose, velocity and acceleration."""

    a = entry(6)


class FrameAcceleration(FrameCluster):
    a = Coordinate()


class Totals(ClusterRecord):
    """Sums over all clusters."""

    moment, momentum, energy = provided(), provided(), provided()


# Frames


def frame_pose_program(robot: Robot, link: int, place: Transform) -> Any:
    """The program q → T of a frame, a homogeneous matrix from its coordinates to the world's."""
    sweep = FrameSweep(robot, "frame_pose", link, place, False)
    sweep.inputs("q")
    sweep.outward(locate)
    sweep.tell("T", (4, 4), homogeneous)
    return sweep.build()


def body_poses_program(robot: Robot) -> Any:
    """The program q → T of all bodies in their order, homogeneous matrices from their coordinates to the world's."""
    sweep = Sweep(robot, "body_poses", body=PoseBody, cluster=ClusterRecord, everybody=True, oriented=_links(robot))
    sweep.inputs("q")
    sweep.outward(locate)
    poses, schedule = sweep.result("T", 16 * len(robot.bodies)), sweep.schedule()
    for i, body in enumerate(robot.bodies):
        link, place = robot.tree.place[body]
        pose: list[Any] = [sweep.place(link, name) for name in ("E", "r")] if link else [np.eye(3), np.zeros(3)]
        schedule.call(_body_pose, place.E + 0.0, place.r + 0.0, *pose, out=Place.of(poses, 16 * i, (4, 4)))
    schedule.run()
    return sweep.build()


def _links(robot: Robot) -> range:
    return range(1, len(robot.tree.links))


def _body_pose(E_place: Any, r_place: Any, E: Any, r: Any) -> Any:
    return homogeneous(Frame(Transform(E_place, r_place), Transform(E, r), False))


def frame_velocity_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program (q, v) → the velocity of a frame: angular, and of its origin."""
    sweep = FrameSweep(robot, "frame_velocity", link, place, along_world, MovingFrameBody)
    sweep.inputs("q", "v")
    sweep.outward(move)
    sweep.tell("velocity", 6, velocity, "v")
    return sweep.build()


def frame_acceleration_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program (q, v, a) → the rate of a frame's velocity along the world's axes, told along those asked for."""
    sweep = FrameSweep(robot, "frame_acceleration", link, place, along_world, AcceleratedFrameBody, FrameAcceleration)
    sweep.inputs("q", "v", "a")
    sweep.outward(accelerate)
    sweep.tell("acceleration", 6, acceleration, "v", "a")
    return sweep.build()


def locate(cluster: Visit[Any, Any]) -> None:
    """Poses."""
    cluster.report_gap(moving=False)
    for body in cluster.bodies:
        body.memory.E, body.memory.r = body.pose.E, body.pose.r


def span(cluster: Visit[FrameBody, Any]) -> None:
    """Poses, and what the way back to the ground needs again."""
    locate(cluster)
    cluster.report_gap()
    cluster.remember()


def move(cluster: Visit[MovingFrameBody, Any]) -> None:
    """Poses, and velocities v = X v_λ + S ẏ. [001, eq. 33]"""
    span(cluster)
    for body in cluster.bodies:
        body.memory.v = body.v


def accelerate(cluster: Visit[AcceleratedFrameBody, FrameAcceleration]) -> None:
    """Poses, velocities, and accelerations a = X a_λ + c + S ÿ. [001, eq. 33]"""
    move(cluster)
    ydd = cluster.memory.a
    for body in cluster.bodies:
        a_output = np.zeros(6) if body.output.grounded else body.output.memory.a
        body.memory.a = body.Xo @ a_output + body.c + body.S @ ydd


def homogeneous(frame: Frame) -> Any:
    """The matrix from the frame's coordinates to the world's."""
    return np.block([[frame.X.E.T, frame.X.r[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


def velocity(frame: Frame, v: Any) -> Any:
    """As it is seen at the frame."""
    return v


def acceleration(frame: Frame, v: Any, a: Any) -> Any:
    """A spatial acceleration is that of the body at a fixed place; the frame's origin moves on."""
    return np.concatenate([a[:3], a[3:] + cross(v[:3], v[3:])])


# Jacobians


def frame_jacobian_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program q → J of a frame, 6 × nv, by which velocities of independent joints move it."""
    sweep = FrameSweep(robot, "frame_jacobian", link, place, along_world)
    sweep.inputs("q")
    sweep.outward(span)
    sweep.matrix("J", columns)
    return sweep.build()


def frame_jacobian_rate_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program (q, v) → J̇ of a frame, with which its acceleration is J a + J̇ v."""
    sweep = FrameSweep(robot, "frame_jacobian_rate", link, place, along_world, MovingFrameBody)
    sweep.inputs("q", "v")
    sweep.outward(move)
    sweep.matrix("J", column_rates, moving=True)
    return sweep.build()


def columns(cluster: Visit[Any, Any], active: Sequence[Body[Any]]) -> Any:
    """J = Σ Pᵀ S, where Pᵀ is the transform from a body to the frame."""
    return sum(body.memory.P.T @ body.S for body in active)


def column_rates(cluster: Visit[Any, FrameCluster], active: Sequence[Body[Any]]) -> Any:
    """J̇ = Σ Pᵀ (Ṡ + v × S), with J_ω × u in the rows below, for the velocity u of the frame's origin."""
    rates = cluster.rates(lambda moved: np.array([body.S for body in moved.bodies]))
    total: Any = sum(body.memory.P.T @ (rates[body.number] + crossed(body.v, body.S)) for body in active)
    angular, u = columns(cluster, active)[:3], cluster.memory.motion[3:]
    return np.concatenate([total[:3], total[3:] + np.array([cross(w, u) for w in angular.T]).T])


def crossed(v: Any, S: Any) -> Any:
    """v × S, column by column."""
    return np.array([cross_motion(v, column) for column in S.T]).T


# All bodies


def centre_of_mass_program(robot: Robot) -> Any:
    """The program q → the centre of mass of all bodies in the world."""
    sweep = Sweep(robot, "centre_of_mass", body=PoseBody, cluster=Totals, oriented=())
    sweep.inputs("q")
    moment, fixed = sweep.total("moment", 3), robot.tree.links[0].inertia
    sweep.outward(weigh)
    sweep.finish("centre", 3, lambda total, h, m: (total + h) / m, moment, fixed.h, robot.mass)
    return sweep.build()


def momentum_program(robot: Robot) -> Any:
    """The program (q, v) → the momentum of all bodies about the world's origin."""
    sweep = Sweep(robot, "momentum", body=MotionBody, cluster=Totals, oriented=())
    sweep.inputs("q", "v")
    momentum = sweep.total("momentum", 6)
    sweep.outward(carry)
    sweep.finish("h", 6, lambda total: total, momentum)
    return sweep.build()


def kinetic_energy_program(robot: Robot, all_joints: bool = False) -> Any:
    """The program (q, v) → ½ Σ vᵀ I v over all bodies and ½ Σ A q̇² over armatures.

    Args:
        all_joints: whether velocities w of all joints in loops without a solution are given as a further input, in the
            order of `unsolved_links`. At a dead point, v cannot tell them.
    """
    sweep = Sweep(robot, "kinetic_energy", body=SpeedBody, cluster=Totals, oriented=())
    sweep.inputs("q", "v")
    if all_joints:
        links, starts = robot.embedding.unsolved_links, robot.tree.v_start
        w = sweep.input("w", len(robot.embedding.unsolved_entries))
        sizes = [int(starts[link + 1] - starts[link]) for link in links]
        place = dict(zip(links, np.cumsum([0, *sizes]).tolist(), strict=False))

        def provide(windows: ClusterWindows, shape: Shape, clusters: Sequence[int]) -> None:
            for i, kind in enumerate(shape.kinds if not shape.solved else ()):
                at = [place[sweep.instances[k].links[i]] for k in clusters]
                windows.joints[i]["w"] = w.at(at, kind.nv)

        sweep.provide = provide
    energy = sweep.total("energy", 1)
    sweep.outward(speed_of_all_joints if all_joints else speed)
    sweep.finish("T", 1, lambda total: total, energy)
    return sweep.build()


def potential_energy_program(robot: Robot) -> Any:
    """The program q → the energy of all bodies in the field of gravity, and of springs at joints and between points."""
    everybody = bool(robot.elements)
    sweep = Sweep(robot, "potential_energy", body=PoseBody, cluster=Totals, everybody=everybody)
    sweep.inputs("q")
    energy, fixed = sweep.total("energy", 1), robot.tree.links[0].inertia
    sweep.outward(lift)
    add_element_energy(sweep, energy)
    sweep.finish("V", 1, lambda total, V: total - V, energy, fixed.h @ robot.gravity)
    return sweep.build()


def weigh(cluster: Visit[PoseBody, Totals]) -> None:
    """Σ m r, for the centre of mass of each body."""
    cluster.report_gap(moving=False)
    for body in cluster.bodies:
        cluster.memory.moment += first_moment(body)
    for body in cluster.carriers:
        body.memory.E, body.memory.r = body.pose.E, body.pose.r


def carry(cluster: Visit[MotionBody, Totals]) -> None:
    """Σ Xᵀ I v."""
    cluster.report_gap()
    for body in cluster.bodies:
        cluster.memory.momentum += body.pose.transform_force(body.inertia @ body.v)
    for body in cluster.carriers:
        body.memory.E, body.memory.r, body.memory.v = body.pose.E, body.pose.r, body.v


def speed(cluster: Visit[SpeedBody, Totals], *, moving: bool = True) -> None:
    """½ Σ vᵀ I v, and of armatures; velocities follow from v, unless nothing `moving` is asked of it."""
    cluster.report_gap(moving=moving)
    for body in cluster.bodies:
        armature = (body.model.armature * body.w) @ body.w
        cluster.memory.energy += 0.5 * np.array([body.v @ (body.inertia @ body.v) + armature])
    for body in cluster.carriers:
        body.memory.v = body.v


def speed_of_all_joints(cluster: Visit[SpeedBody, Totals]) -> None:
    """The same from velocities of all joints, where these are given."""
    if not cluster.shape.solved:
        cluster.w = np.concatenate([joint.w for joint in cluster.views.joints])
    speed(cluster, moving=cluster.shape.solved)


def lift(cluster: Visit[PoseBody, Totals]) -> None:
    """−Σ m r · g, and ½ Σ k (q − rest)²."""
    cluster.report_gap(moving=False)
    for body, q in zip(cluster.bodies, cluster.q, strict=True):
        away = body.kind.difference(body.model.rest, q)
        springs = 0.5 * ((body.model.stiffness * away) @ away)
        cluster.memory.energy += np.array([springs - first_moment(body) @ cluster.gravity])
        if body.remembers:
            body.memory.E, body.memory.r = body.pose.E, body.pose.r


def first_moment(body: Body[Any]) -> Any:
    """m r of its centre of mass, in the world."""
    return body.inertia.m * body.pose.r + body.pose.E.T @ body.inertia.h
