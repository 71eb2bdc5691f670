"""A file in SDFormat as Drake reads it, by its own copy of the format's reference library, for trees without loops."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import coupler
from coupler.model import Robot
from coupler.rotation import about_x, about_y, about_z, matrix_from_quaternion
from peers import gap

__all__ = ["drake_gap", "drake_reads"]


def drake_reads(path: Path, packages: Mapping[str, Path] | None = None) -> Any:
    """The plant of a file, which is refused with an exception if it is not valid."""
    plant = import_module("pydrake.multibody.plant").MultibodyPlant(1e-3)
    parser = import_module("pydrake.multibody.parsing").Parser(plant)
    for name, folder in (packages or {}).items():
        parser.package_map().Add(name, str(folder))
    parser.AddModels(str(path))
    return plant


def drake_gap(robot: Robot, path: Path, packages: Mapping[str, Path] | None = None) -> float:
    """How far mass matrix and gravity's forces at a random configuration are from Drake's for the file."""
    plant = drake_reads(path, packages)
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    plant.Finalize()
    context, robot = plant.CreateDefaultContext(), robot.with_backend("interpreter")
    q, _ = robot.random_state(0)
    B = np.zeros((plant.num_velocities(), robot.nv))
    for name, position in robot.joint_positions(q).items():
        _move(plant, context, robot, name, np.atleast_1d(position), B)
    M = plant.CalcMassMatrix(context)
    pull = B.T @ plant.CalcGravityGeneralizedForces(context)
    expected = coupler.bias_force(robot, q, np.zeros(robot.nv)) + _springs(robot, q)
    return max(gap(B.T @ M @ B, coupler.mass_matrix(robot, q)), gap(-pull, expected))


def _springs(robot: Robot, q: np.ndarray) -> np.ndarray:
    """What springs at joints pull with, which Drake counts apart from gravity."""
    force = np.zeros(robot.nv)
    for name, position in robot.joint_positions(q).items():
        kind = robot.tree.links[robot.tree.number[name]].kind
        if kind.nq == kind.nv:
            force[robot.v_slice(name)] = kind.stiffness * (kind.rest - np.atleast_1d(position))
    return force


def _move(plant: Any, context: Any, robot: Robot, name: str, p: np.ndarray, B: np.ndarray) -> None:
    """Takes over the position of a joint, and says which velocities of Drake's its velocity makes."""
    columns = np.eye(B.shape[1])[robot.v_slice(name)]
    if len(p) == 7:
        body = _body(plant, robot, name)
        rigid = import_module("pydrake.math").RigidTransform
        R = matrix_from_quaternion(p[3:])
        plant.SetFreeBodyPose(context, body, rigid(np.vstack([np.hstack([R, p[:3, None]]), [0, 0, 0, 1]])))
        start = body.floating_velocities_start_in_v()
        B[start : start + 6] = np.kron(np.eye(2), R) @ columns  # along the world's axes
        return
    joint = _joint(plant, name)
    rows = range(joint.velocity_start(), joint.velocity_start() + joint.num_velocities())
    if len(p) == 4:
        R = matrix_from_quaternion(p)  # Drake's is Rz Ry Rx, its velocity along the parent's axes
        pitch = np.arcsin(-R[2, 0])
        rpy = np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])
        np.testing.assert_allclose(about_z(rpy[2]) @ about_y(rpy[1]) @ about_x(rpy[0]), R, atol=1e-9)
        _set(plant, context, joint, rpy)
        B[rows] = R @ columns
    else:
        _set(plant, context, joint, p)
        B[rows] = columns


def _set(plant: Any, context: Any, joint: Any, position: np.ndarray) -> None:
    q = plant.GetPositions(context)
    q[joint.position_start() : joint.position_start() + joint.num_positions()] = position
    plant.SetPositions(context, q)


def _scoped(plant: Any, part: Any) -> str:
    """A name as coupler has it: without that of the outermost model."""
    instance = plant.GetModelInstanceName(part.model_instance())
    inner = instance.split("::")[1:]
    return "::".join([*inner, part.name()])


def _joint(plant: Any, name: str) -> Any:
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    # Drake puts a joint into the model of its child.
    return next(joint for joint in joints if name in (_scoped(plant, joint), joint.name()))


def _body(plant: Any, robot: Robot, joint: str) -> Any:
    child = next(one.child for one in robot.joints if one.name == joint)
    module = import_module("pydrake.multibody.tree")
    bodies = [plant.get_body(module.BodyIndex(i)) for i in range(1, plant.num_bodies())]
    return next(body for body in bodies if _scoped(plant, body) == child)
