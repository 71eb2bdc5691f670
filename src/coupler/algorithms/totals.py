"""The centre of mass, momentum and energy of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.kinematics import PoseBody
from coupler.model import Robot
from coupler.passes import (
    Body,
    ClusterRecord,
    ClusterShape,
    ClusterWindows,
    Record,
    Sweep,
    Visit,
    add_element_energy,
    entry,
    provided,
)


class SpeedBody(Record):
    v = entry(6)


class MotionBody(PoseBody, SpeedBody):
    """Pose and velocity."""


class Totals(ClusterRecord):
    """Sums over all clusters."""

    moment, momentum, energy = provided(), provided(), provided()


def centre_of_mass_program(robot: Robot) -> Any:
    """The program q → the centre of mass of all bodies, in world coordinates."""
    sweep = Sweep(robot, "centre_of_mass", body=PoseBody, cluster=Totals, oriented=())
    sweep.inputs("q")
    moment, fixed = sweep.total("moment", 3), robot.tree.links[0].inertia
    sweep.outward(add_moments)
    sweep.finish("centre", 3, lambda total, h, m: (total + h) / m, moment, fixed.h, robot.mass)
    return sweep.build()


def momentum_program(robot: Robot) -> Any:
    """The program (q, v) → the momentum of all bodies about the world's origin."""
    sweep = Sweep(robot, "momentum", body=MotionBody, cluster=Totals, oriented=())
    sweep.inputs("q", "v")
    momentum = sweep.total("momentum", 6)
    sweep.outward(add_momentum)
    sweep.finish("h", 6, lambda total: total, momentum)
    return sweep.build()


def kinetic_energy_program(robot: Robot, all_joints: bool = False) -> Any:
    """The program (q, v) → ½ Σ vᵀ I v over all bodies and ½ Σ A q̇² over armatures.

    Args:
        all_joints: whether the velocities w of all joints in loops without a solution are a further input, in the order
            of `unsolved_links`. At a dead point, v does not determine them.
    """
    sweep = Sweep(robot, "kinetic_energy", body=SpeedBody, cluster=Totals, oriented=())
    sweep.inputs("q", "v")
    if all_joints:
        links, starts = robot.embedding.unsolved_links, robot.tree.v_start
        w = sweep.input("w", len(robot.embedding.unsolved_entries))
        sizes = [int(starts[link + 1] - starts[link]) for link in links]
        place = dict(zip(links, np.cumsum([0, *sizes]).tolist(), strict=False))

        def provide(windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
            for i, kind in enumerate(shape.kinds if not shape.solved else ()):
                at = [place[sweep.instances[k].links[i]] for k in clusters]
                windows.joints[i]["w"] = w.at(at, kind.nv)

        sweep.provide = provide
    energy = sweep.total("energy", 1)
    sweep.outward(add_kinetic_of_all_joints if all_joints else add_kinetic)
    sweep.finish("T", 1, lambda total: total, energy)
    return sweep.build()


def potential_energy_program(robot: Robot) -> Any:
    """The program q → the energy of gravity, and of springs at joints and between points."""
    sweep = Sweep(robot, "potential_energy", body=PoseBody, cluster=Totals, leaf_bodies=bool(robot.elements))
    sweep.inputs("q")
    energy, fixed = sweep.total("energy", 1), robot.tree.links[0].inertia
    sweep.outward(add_potential)
    add_element_energy(sweep, energy)
    sweep.finish("V", 1, lambda total, V: total - V, energy, fixed.h @ robot.gravity)
    return sweep.build()


def add_moments(cluster: Visit[PoseBody, Totals]) -> None:
    """Adds Σ m r, with r the centre of mass of each body."""
    cluster.report_gap(moving=False)
    for body in cluster.bodies:
        cluster.memory.moment += first_moment(body)
    for body in cluster.carriers:
        body.memory.E, body.memory.r = body.pose.E, body.pose.r


def add_momentum(cluster: Visit[MotionBody, Totals]) -> None:
    """Adds Σ Xᵀ I v."""
    cluster.report_gap()
    for body in cluster.bodies:
        cluster.memory.momentum += body.pose.transform_force(body.inertia @ body.v)
    for body in cluster.carriers:
        body.memory.E, body.memory.r, body.memory.v = body.pose.E, body.pose.r, body.v


def add_kinetic(cluster: Visit[SpeedBody, Totals], *, moving: bool = True) -> None:
    """Adds ½ Σ vᵀ I v + ½ Σ A q̇². `moving`: whether velocities follow from v, which they cannot at dead points."""
    cluster.report_gap(moving=moving)
    for body in cluster.bodies:
        armature = (body.model.armature * body.w) @ body.w
        cluster.memory.energy += 0.5 * np.array([body.v @ (body.inertia @ body.v) + armature])
    for body in cluster.carriers:
        body.memory.v = body.v


def add_kinetic_of_all_joints(cluster: Visit[SpeedBody, Totals]) -> None:
    """`add_kinetic` from the velocities of all joints, where these are an input."""
    if not cluster.shape.solved:
        cluster.w = np.concatenate([joint.w for joint in cluster.views.joints])
    add_kinetic(cluster, moving=cluster.shape.solved)


def add_potential(cluster: Visit[PoseBody, Totals]) -> None:
    """Adds −Σ m r · g, and ½ Σ k (q − rest)²."""
    cluster.report_gap(moving=False)
    for body, q in zip(cluster.bodies, cluster.q, strict=True):
        deflection = body.kind.difference(body.model.rest, q)
        springs = 0.5 * ((body.model.stiffness * deflection) @ deflection)
        cluster.memory.energy += np.array([springs - first_moment(body) @ cluster.gravity])
        if body.remembers:
            body.memory.E, body.memory.r = body.pose.E, body.pose.r


def first_moment(body: Body[Any]) -> Any:
    """m r, with r its centre of mass in world coordinates."""
    return body.inertia.m * body.pose.r + body.pose.E.T @ body.inertia.h
