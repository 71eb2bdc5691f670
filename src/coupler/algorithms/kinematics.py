"""Poses, velocities, accelerations and Jacobians of frames, and the poses of all bodies.

A frame's motion is that of its origin, along the frame's axes or the world's.
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
    Coordinate,
    Place,
    Record,
    Sweep,
    Visit,
    across_joints,
    entry,
)
from coupler.spatial import Transform, cross, cross_motion


class PoseBody(Record):
    """What a body remembers: its pose, the transform from the world."""

    E, r = entry((3, 3)), entry(3)


class MovingFrameBody(FrameBody):
    """Pose and velocity."""

    v = entry(6)


class AcceleratedFrameBody(MovingFrameBody):
    """Pose, velocity and acceleration."""

    a = entry(6)


class FrameAcceleration(FrameCluster):
    a = Coordinate()


# Frames


def frame_pose_program(robot: Robot, link: int, place: Transform) -> Any:
    """The program q → T of a frame, a homogeneous matrix from its coordinates to the world's."""
    sweep = FrameSweep(robot, "frame_pose", link, place, False)
    sweep.inputs("q")
    sweep.outward(locate)
    sweep.write_result("T", (4, 4), homogeneous)
    return sweep.build()


def body_poses_program(robot: Robot) -> Any:
    """The program q → T of all bodies in their order: homogeneous matrices from body to world coordinates."""
    sweep = Sweep(robot, "body_poses", body=PoseBody, cluster=ClusterRecord, leaf_bodies=True)
    sweep.inputs("q")
    sweep.outward(locate)
    poses, schedule = sweep.result("T", 16 * len(robot.bodies)), sweep.schedule()
    for i, body in enumerate(robot.bodies):
        link, place = robot.tree.place[body]
        pose: list[Any] = [sweep.place(link, name) for name in ("E", "r")] if link else [np.eye(3), np.zeros(3)]
        schedule.call(_body_pose, place.E + 0.0, place.r + 0.0, *pose, out=Place.of(poses, 16 * i, (4, 4)))
    schedule.run()
    return sweep.build()


def _body_pose(E_place: Any, r_place: Any, E: Any, r: Any) -> Any:
    return homogeneous(Frame(Transform(E_place, r_place), Transform(E, r), False))


def frame_velocity_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program (q, v) → the velocity of a frame: its angular velocity, and the velocity of its origin."""
    sweep = FrameSweep(robot, "frame_velocity", link, place, along_world, MovingFrameBody)
    sweep.inputs("q", "v")
    sweep.outward(move)
    sweep.write_result("velocity", 6, velocity, "v")
    return sweep.build()


def frame_acceleration_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program (q, v, a) → the time derivative of a frame's velocity, along the frame's axes or the world's."""
    sweep = FrameSweep(robot, "frame_acceleration", link, place, along_world, AcceleratedFrameBody, FrameAcceleration)
    sweep.inputs("q", "v", "a")
    sweep.outward(accelerate)
    sweep.write_result("acceleration", 6, acceleration, "v", "a")
    return sweep.build()


def locate(cluster: Visit[Any, Any]) -> None:
    """Stores poses of bodies."""
    cluster.report_gap(moving=False)
    for body in cluster.bodies:
        body.memory.E, body.memory.r = body.pose.E, body.pose.r


def span(cluster: Visit[FrameBody, Any]) -> None:
    """Stores poses, and what the pass back to the ground loads again."""
    locate(cluster)
    cluster.report_gap()
    cluster.remember()


def move(cluster: Visit[MovingFrameBody, Any]) -> None:
    """Stores poses, and velocities v = X v_λ + S ẏ. [001, eq. 33]"""
    span(cluster)
    for body in cluster.bodies:
        body.memory.v = body.v


def accelerate(cluster: Visit[AcceleratedFrameBody, FrameAcceleration]) -> None:
    """Stores poses, velocities, and accelerations a = X a_λ + c + S ÿ. [001, eq. 33]"""
    move(cluster)
    ydd = cluster.memory.a
    for body in cluster.bodies:
        a_output = np.zeros(6) if body.output.grounded else body.output.memory.a
        body.memory.a = body.Xo @ a_output + body.c + across_joints(body, ydd)


def homogeneous(frame: Frame) -> Any:
    """The homogeneous matrix from the frame's coordinates to the world's."""
    return np.block([[frame.X.E.T, frame.X.r[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


def velocity(frame: Frame, v: Any) -> Any:
    """The velocity, which is already seen from the frame."""
    return v


def acceleration(frame: Frame, v: Any, a: Any) -> Any:
    """The acceleration of the frame's origin, ω × v more than the spatial acceleration, which is at a fixed point."""
    return np.concatenate([a[:3], a[3:] + cross(v[:3], v[3:])])


# Jacobians


def frame_jacobian_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program q → J of a frame, 6 × nv: its velocity is J v."""
    sweep = FrameSweep(robot, "frame_jacobian", link, place, along_world)
    sweep.inputs("q")
    sweep.outward(span)
    sweep.matrix("J", columns)
    return sweep.build()


def frame_jacobian_rate_program(robot: Robot, link: int, place: Transform, along_world: bool) -> Any:
    """The program (q, v) → J̇ of a frame: its acceleration is J a + J̇ v."""
    sweep = FrameSweep(robot, "frame_jacobian_rate", link, place, along_world, MovingFrameBody)
    sweep.inputs("q", "v")
    sweep.outward(move)
    sweep.matrix("J", column_rates, moving=True)
    return sweep.build()


def columns(cluster: Visit[Any, Any], active: Sequence[Body[Any]]) -> Any:
    """A cluster's columns of J: Σ χ S, where χ is the transform from a body to the frame."""
    return sum(body.memory.chiT.T @ body.S for body in active)


def column_rates(cluster: Visit[Any, FrameCluster], active: Sequence[Body[Any]]) -> Any:
    """A cluster's columns of J̇: Σ χ (Ṡ + v × S), plus J_ω × u in the lower rows, for the velocity u of the origin."""
    rates = cluster.rates(lambda moved: np.array([body.S for body in moved.bodies]))
    total: Any = sum(body.memory.chiT.T @ (rates[body.number] + crossed(body.v, body.S)) for body in active)
    angular, u = columns(cluster, active)[:3], cluster.memory.motion[3:]
    return np.concatenate([total[:3], total[3:] + np.array([cross(w, u) for w in angular.T]).T])


def crossed(v: Any, S: Any) -> Any:
    """v × S, column by column."""
    return np.array([cross_motion(v, column) for column in S.T]).T
