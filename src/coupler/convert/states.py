"""States in the conventions of other libraries: joint by joint, from one array into the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.convert.free_joints import from_world, pinocchio_pose, swapped, to_world, turned, turned_back
from coupler.convert.layouts import SIZES, LibraryLayout, mujoco_layout, pinocchio_layout
from coupler.convert.matching import Match, matched_joints
from coupler.kinematics import frame_pose, frame_velocity
from coupler.model import Helical, ModelError, Robot
from coupler.model.numbers import batch_of, numbers
from coupler.rotation import quaternion_from_matrix

_NEAR = 0.05  # rad or m: how far MuJoCo's soft constraints may leave a loop open, with room to spare


def to_pinocchio(robot: Robot, q: Any, v: Any = None, model: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """A state in Pinocchio's conventions.

    Quaternions are x, y, z, w there; the velocity of a free joint is linear first; a continuous joint is (cos, sin).

    Args:
        q: (..., nq), closed configurations.
        v: (..., nv), velocities; zero if not given.
        model: a `pinocchio.Model` of the spanning tree, with the same names of joints; a free joint may also
            be the one that carries the same body. If not given, what `buildModelFromUrdf` makes of
            `robot.save("robot.urdf")`: joints depth first, those of one body by the alphabet, and hinges without limits
            as (cos, sin).

    Returns:
        (..., model.nq) and (..., model.nv), for all joints, dependent ones included.

    Raises:
        ModelError: for joints that the robot or the model does not have.
    """
    return _converted(robot, q, v, pinocchio_layout(robot, model))


def from_pinocchio(
    robot: Robot, q: Any, v: Any = None, model: Any = None, *, tolerance: float = _NEAR
) -> tuple[np.ndarray, np.ndarray]:
    """A state of Pinocchio in coupler's conventions; the inverse of `to_pinocchio`.

    Args:
        q, v: (..., model.nq) and (..., model.nv) of Pinocchio; v is zero if not given.
        model: see `to_pinocchio`.
        tolerance: how far joints may be from where their loops close, rad or m.

    Returns:
        (..., nq), the nearest closed configurations, and (..., nv), velocities of the independent joints. The angle of
        a continuous joint is between −π and π.

    Raises:
        ModelError: for joints that the robot or the model does not have, and where loops are open by more.
    """
    return _closed(robot, q, v, pinocchio_layout(robot, model), tolerance)


def to_mujoco(robot: Robot, q: Any, v: Any = None, model: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """A state in MuJoCo's conventions: qpos and qvel.

    The pose of a free joint is that of its body in the world there, and its velocity is linear first: the linear one
    along the world's axes, the angular one along the body's.

    Args:
        q: (..., nq), closed configurations.
        v: (..., nv), velocities; zero if not given.
        model: a `mujoco.MjModel` of the same robot, with the same names of joints. If not given, joints are
            in the order of the robot's file in MJCF, or of what `robot.save("robot.xml")` writes.

    Returns:
        (..., model.nq) and (..., model.nv), for all joints, dependent ones included. A joint that is fixed in the robot
        stays where the model has it; a free joint whose body is welded to another follows it.

    Raises:
        ModelError: for joints that the robot or the model does not have.
    """
    return _converted(robot, q, v, mujoco_layout(robot, model))


def from_mujoco(
    robot: Robot, qpos: Any, qvel: Any = None, model: Any = None, *, tolerance: float = _NEAR
) -> tuple[np.ndarray, np.ndarray]:
    """A state of MuJoCo in coupler's conventions; the inverse of `to_mujoco`.

    MuJoCo's loops are soft and somewhat open: the nearest closed configuration is taken.

    Args:
        qpos, qvel: (..., model.nq) and (..., model.nv) of MuJoCo; qvel is zero if not given.
        model: see `to_mujoco`.
        tolerance: how far joints may be from where their loops close, rad or m.

    Returns:
        (..., nq), closed configurations, and (..., nv), velocities of the independent joints.

    Raises:
        ModelError: for joints that the robot or the model does not have, and where loops are open by more.
    """
    return _closed(robot, qpos, qvel, mujoco_layout(robot, model), tolerance)


def pinocchio_jacobian(robot: Robot, q: Any, model: Any = None) -> np.ndarray:
    """The matrix A, (..., model.nv, nv), that maps v to Pinocchio's velocity A v.

    Forces go the other way, τ = Aᵀ τ', and so do matrices: the mass matrix is Aᵀ M A.

    Args:
        q: (..., nq), closed configurations.
        model: see `to_pinocchio`.
    """
    return _jacobian(robot, q, pinocchio_layout(robot, model))


def mujoco_jacobian(robot: Robot, q: Any, model: Any = None) -> np.ndarray:
    """The matrix A, (..., model.nv, nv), that maps v to MuJoCo's qvel, A v.

    Forces go the other way, τ = Aᵀ `qfrc`, and so do matrices: the mass matrix is Aᵀ M A.

    Args:
        q: (..., nq), closed configurations.
        model: see `to_mujoco`.
    """
    return _jacobian(robot, q, mujoco_layout(robot, model))


# To another library


def _converted(robot: Robot, q: Any, v: Any, layout: LibraryLayout) -> tuple[np.ndarray, np.ndarray]:
    """A state of the robot in the arrays of another library."""
    matches = matched_joints(robot, layout)
    q = numbers("q", q, (robot.nq,), batch=True)
    v = np.zeros(robot.nv) if v is None else numbers("v", v, (robot.nv,), batch=True)
    batch = batch_of({"q": q, "v": v})
    q, v = np.broadcast_to(q, (*batch, robot.nq)), np.broadcast_to(v, (*batch, robot.nv))
    robot.check_closed(q)
    positions, velocities = robot.joint_positions(q), robot.joint_velocities(q, v)
    state = np.broadcast_to(layout.rest, (*batch, len(layout.rest))).copy(), np.zeros((*batch, layout.nv))
    for match in matches:
        slot, joint = match.slot, match.joint
        if joint.name in positions:
            x, w = (np.asarray(of_joints[joint.name]) for of_joints in (positions, velocities))
            if joint.kind.nv == 1:
                x, w = x[..., None], w[..., None]
            written = _written(layout, match, x, w)
        elif slot.form == "free":  # a weld holds it
            pose = frame_pose(robot, q, slot.body).reshape(-1, 4, 4)
            turns = np.array([quaternion_from_matrix(T[:3, :3]) for T in pose])
            x = np.concatenate([pose[:, :3, 3], turns], axis=-1).reshape(*batch, 7)
            written = _free(layout, x, frame_velocity(robot, q, v, slot.body))
        else:
            continue
        for array, start, value in zip(state, (slot.q, slot.v), written, strict=True):
            array[..., start : start + value.shape[-1]] = value
    return state


def _written(layout: LibraryLayout, match: Match, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The position and velocity of a joint, or of a part of it, in the other library's form."""
    form, kind = match.slot.form, match.joint.kind
    if match.part is not None:
        if isinstance(kind, Helical):
            scale = (1.0, kind.pitch)[match.part]
            x, w = scale * x, scale * w
        else:
            x, w = x[..., [match.part]], w[..., [match.part]]
    if form == "circle":
        return np.concatenate([np.cos(x), np.sin(x)], axis=-1), w
    if form == "planar":
        cosine, sine = np.cos(x[..., 2]), np.sin(x[..., 2])
        ahead = cosine * w[..., 0] + sine * w[..., 1], cosine * w[..., 1] - sine * w[..., 0]
        return np.stack([x[..., 0], x[..., 1], cosine, sine], axis=-1), np.stack([*ahead, w[..., 2]], axis=-1)
    if form == "ball":
        return x[..., [1, 2, 3, 0]] if layout.library == "Pinocchio" else x, w
    if form == "free":
        return _free(layout, *(to_world(match.joint, x, w) if layout.library == "MuJoCo" else (x, w)))
    return x, w


def _free(layout: LibraryLayout, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if layout.library == "Pinocchio":
        return pinocchio_pose(x), swapped(w)
    return x, np.concatenate([turned(x[..., 3:], w[..., 3:]), w[..., :3]], axis=-1)


def _jacobian(robot: Robot, q: Any, layout: LibraryLayout) -> np.ndarray:
    q = numbers("q", q, (robot.nq,), batch=True)
    _, rows = _converted(robot, q[..., None, :], np.eye(robot.nv), layout)
    return np.swapaxes(rows, -1, -2)


# From another library


def _closed(robot: Robot, q: Any, v: Any, layout: LibraryLayout, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """The closed state of the robot that is nearest to one of another library."""
    matches, tree = matched_joints(robot, layout), robot.tree
    names = ("qpos", "qvel") if layout.library == "MuJoCo" else ("q", "v")
    q = numbers(names[0], q, (len(layout.rest),), batch=True)
    v = np.zeros(layout.nv) if v is None else numbers(names[1], v, (layout.nv,), batch=True)
    batch = batch_of({names[0]: q, names[1]: v})
    q, v = np.broadcast_to(q, (*batch, q.shape[-1])), np.broadcast_to(v, (*batch, v.shape[-1]))
    p, w = np.zeros((*batch, tree.nq)), np.zeros((*batch, tree.nv))
    given = np.zeros(tree.nv, bool)
    for match in matches:
        if match.joint.name not in tree.number or (match.part == 1 and isinstance(match.joint.kind, Helical)):
            continue  # fixed, or what the first part says already
        link, (nq, nv) = tree.number[match.joint.name], SIZES[match.slot.form]
        x, dx = q[..., match.slot.q : match.slot.q + nq], v[..., match.slot.v : match.slot.v + nv]
        part = slice(None) if match.part is None else slice(match.part, match.part + 1)
        entries = tree.velocities(link)[part]
        p[..., tree.positions(link)[part]], w[..., entries] = _understood(layout, match, x, dx)
        given[entries] = True
    closed = robot.close(p[..., robot.embedding.q_index])
    _check_near(robot, closed, p, given, tolerance, {m.joint.name for m in matches if m.slot.form == "circle"})
    return closed, w[..., robot.embedding.v_index]


def _understood(layout: LibraryLayout, match: Match, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of `_written`."""
    form = match.slot.form
    if form == "circle":
        return np.arctan2(x[..., 1:], x[..., :1]), w
    if form == "planar":
        angle = np.arctan2(x[..., 3], x[..., 2])
        cosine, sine = np.cos(angle), np.sin(angle)
        along = cosine * w[..., 0] - sine * w[..., 1], sine * w[..., 0] + cosine * w[..., 1]
        return np.stack([x[..., 0], x[..., 1], angle], axis=-1), np.stack([*along, w[..., 2]], axis=-1)
    if form in ("ball", "free"):
        if layout.library == "Pinocchio":
            x = np.concatenate([x[..., :-4], x[..., -1:], x[..., -4:-1]], axis=-1)
        length = np.linalg.norm(x[..., -4:], axis=-1, keepdims=True)
        if not length.all():
            raise ModelError(f"joint {match.slot.name!r}: its quaternion in {layout.library}'s state is zero")
        x = np.concatenate([x[..., :-4], x[..., -4:] / length], axis=-1)
    if form == "free" and layout.library == "Pinocchio":
        return x, swapped(w)
    if form == "free":
        return from_world(match.joint, x, np.concatenate([w[..., 3:], turned_back(x[..., 3:], w[..., :3])], axis=-1))
    return x, w


def _check_near(
    robot: Robot, q: np.ndarray, p: np.ndarray, given: np.ndarray, tolerance: float, circles: set[str]
) -> None:
    """Refuses a state that is too far from closed."""
    for name, x in robot.joint_positions(q).items():
        link = robot.tree.number[name]
        if not given[robot.tree.velocities(link)].all():
            continue
        gap = np.abs(x - p[..., robot.tree.positions(link)].reshape(np.shape(x)))
        if name in circles:
            gap = np.minimum(gap % (2.0 * np.pi), -gap % (2.0 * np.pi))
        if gap.max(initial=0.0) > tolerance:
            raise ModelError(
                f"joint {name!r} is {gap.max():.3g} (rad or m) away from where its loop closes: convert a state that "
                f"is nearer to closed, or pass a tolerance above {tolerance:g}"
            )
