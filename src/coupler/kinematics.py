"""Where the bodies and frames of a robot are, and how they move.

A frame is a named frame, a contact point (with its body's axes), or a body, by name. Motions are (angular, linear): the
angular velocity of the frame and the velocity of its origin, along the frame's own axes or the world's.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from coupler.algorithms.kinematics import jacobians_program, motions_program, poses_program
from coupler.compiled import remembered, run
from coupler.model import ModelError, Robot
from coupler.model.words import listed
from coupler.passes import velocities_of
from coupler.spatial import Transform

__all__ = [
    "centre_of_mass",
    "frame_acceleration",
    "frame_jacobian",
    "frame_place",
    "frame_pose",
    "frame_velocity",
    "kinetic_energy",
    "momentum",
    "potential_energy",
]

Axes = Literal["frame", "world"]


def frame_pose(robot: Robot, q: Any, frame: str) -> np.ndarray:
    """The pose of a frame, (..., 4, 4): a homogeneous matrix from the frame's coordinates to the world's."""
    link, place = frame_place(robot, frame)
    E, r = _pose(robot, run(robot, poses_program, q), link)
    T = np.zeros((*E.shape[:-2], 4, 4), E.dtype)
    T[..., :3, :3] = np.swapaxes(place.E @ E, -1, -2)
    T[..., :3, 3] = r + np.einsum("...ji,j->...i", E, place.r)
    T[..., 3, 3] = 1.0
    return T


def frame_jacobian(robot: Robot, q: Any, frame: str, axes: Axes = "frame") -> np.ndarray:
    """J with frame velocity = J v, (..., 6, nv), angular rows first.

    Args:
        robot: which.
        q: (..., nq), a closed configuration.
        frame: name of a frame, contact point or body.
        axes: whose axes its rows are along, at the frame's origin.
    """
    link, place = frame_place(robot, frame)
    poses, subspaces = run(robot, jacobians_program, q)
    columns, starts = remembered(robot, _layout, _layout)
    J = np.zeros((*poses.shape[:-1], 6, robot.nv), poses.dtype)
    E, r = _pose(robot, poses, link)
    at, clusters = link, robot.cluster_tree
    while at:
        k = clusters.cluster_of[at]
        S = subspaces[..., starts[at] : starts[at] + 6 * len(columns[k])].reshape(*poses.shape[:-1], 6, -1)
        J[..., columns[k]] = _seen(S, *_pose(robot, poses, at), E, r)
        at = clusters.clusters[k].outputs[clusters.clusters[k].bodies.index(at)]
    return _in_axes(_at_frame(J, place), E, place, axes)


def frame_velocity(robot: Robot, q: Any, v: Any, frame: str, axes: Axes = "frame") -> np.ndarray:
    """The velocity of a frame, (..., 6): angular, then of its origin; rad/s and m/s."""
    link, place = frame_place(robot, frame)
    poses, velocities, _ = run(robot, motions_program, q, v, np.zeros(robot.nv, getattr(q, "dtype", float)))
    own = _of_link(velocities, link)[..., None]
    return _in_axes(_at_frame(own, place), _pose(robot, poses, link)[0], place, axes)[..., 0]


def frame_acceleration(robot: Robot, q: Any, v: Any, a: Any, frame: str, axes: Axes = "frame") -> np.ndarray:
    """The acceleration of a frame, (..., 6): of its angular velocity and of its origin, along the axes asked for.

    It is the rate of the velocity along the world's axes, J a + J̇ v, and has no gravity in it; rad/s² and m/s².
    """
    link, place = frame_place(robot, frame)
    poses, velocities, accelerations = run(robot, motions_program, q, v, a)
    v_frame = _at_frame(_of_link(velocities, link)[..., None], place)[..., 0]
    a_frame = _at_frame(_of_link(accelerations, link)[..., None], place)[..., 0].copy()
    a_frame[..., 3:] += np.cross(v_frame[..., :3], v_frame[..., 3:])  # what a moving frame does not see
    return _in_axes(a_frame[..., None], _pose(robot, poses, link)[0], place, axes)[..., 0]


def centre_of_mass(robot: Robot, q: Any) -> np.ndarray:
    """The centre of mass of all bodies in the world, (..., 3), m."""
    return _centre(robot, run(robot, poses_program, q))


def _centre(robot: Robot, poses: np.ndarray) -> np.ndarray:
    E, r = _all_poses(poses)
    m, h, _ = _inertias(robot)
    total = m @ r + np.einsum("...lji,lj->...i", E, h)
    fixed = robot.tree.links[0].inertia
    return (total + fixed.h) / (m.sum() + fixed.m)


def momentum(robot: Robot, q: Any, v: Any) -> np.ndarray:
    """The spatial momentum of all bodies, (..., 6): angular about the world's origin, then linear; world's axes."""
    poses, velocities, _ = run(robot, motions_program, q, v, np.zeros(robot.nv, getattr(q, "dtype", float)))
    E, r = _all_poses(poses)
    own = _momenta(robot, velocities)
    n, f = (np.einsum("...lji,...lj->...li", E, own[..., part]) for part in (slice(0, 3), slice(3, 6)))
    return np.concatenate([(n + np.cross(r, f)).sum(axis=-2), f.sum(axis=-2)], axis=-1)


def kinetic_energy(robot: Robot, q: Any, v: Any) -> np.ndarray:
    """½ Σ vᵀ I v over all bodies, and ½ Σ A q̇² over armatures; (...), J."""
    _, velocities, _ = run(robot, motions_program, q, v, np.zeros(robot.nv, getattr(q, "dtype", float)))
    motion = velocities.reshape(*velocities.shape[:-1], -1, 6)
    energy = 0.5 * (motion * _momenta(robot, velocities)).sum(axis=(-2, -1))
    armature = np.concatenate([link.kind.armature for link in robot.tree.links])
    if armature.any():
        p = robot.embedding.positions(np.asarray(q, dtype=float))
        w = robot.embedding.velocities(p, np.asarray(v, dtype=float))
        energy = energy + 0.5 * (armature * w * w).sum(axis=-1)
    return energy


def potential_energy(robot: Robot, q: Any) -> np.ndarray:
    """The energy of all bodies in the field of gravity, and of springs at joints and between points; (...), J."""
    poses = run(robot, poses_program, q)
    energy = -robot.mass * (_centre(robot, poses) @ robot.gravity)
    p = robot.embedding.positions(np.asarray(q, dtype=float))
    rest = np.concatenate([link.kind.rest for link in robot.tree.links])
    stiffness = np.concatenate([link.kind.stiffness for link in robot.tree.links])
    if stiffness.any():
        away = robot.states.motion.difference(rest, p)
        energy = energy + 0.5 * (stiffness * away * away).sum(axis=-1)
    for element in robot.elements:
        gap = _point(robot, poses, element.second, element.second_point)
        gap = gap - _point(robot, poses, element.first, element.first_point)
        L = np.linalg.norm(gap, axis=-1)
        energy = energy + 0.5 * element.stiffness * (L - element.free_length) ** 2 + element.pretension * L
    return energy


def frame_place(robot: Robot, name: str) -> tuple[int, Transform]:
    """The link of a frame, and the transform from the link's frame to it."""
    known = remembered(robot, _places, _places)
    if name not in known:
        named = listed([*robot.frame_names, *robot.body_names])
        raise ModelError(f"robot {robot.name!r} has no frame, contact point or body {name!r}; it has {named}")
    return known[name]


def _places(robot: Robot) -> dict[str, tuple[int, Transform]]:
    """Where all frames, contact points and bodies are on links."""
    found = dict(robot.tree.place)
    for body in robot.bodies.values():
        link, place = robot.tree.place[body.name]
        found |= {frame: (link, X @ place) for frame, X in body.frames.items()}
        found |= {point: (link, Transform.translation(r) @ place) for point, r in body.contacts.items()}
    return found


def _layout(robot: Robot) -> tuple[list[np.ndarray], dict[int, int]]:
    """Where velocities of each cluster are in v, and where the subspace of each link starts."""
    columns = [velocities_of(robot, k) for k in range(len(robot.cluster_tree.clusters))]
    starts, at = {}, 0
    for link in range(1, len(robot.tree.links)):
        starts[link], at = at, at + 6 * len(columns[robot.cluster_tree.cluster_of[link]])
    return columns, starts


def _of_link(values: np.ndarray, link: int, size: int = 6) -> np.ndarray:
    """A link's part of what a program reports; the ground does not move."""
    return values[..., size * (link - 1) : size * link] if link else np.zeros((*values.shape[:-1], size), values.dtype)


def _pose(robot: Robot, poses: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
    """E and r of a link."""
    if not link:
        shape = poses.shape[:-1]
        return np.broadcast_to(np.eye(3, dtype=poses.dtype), (*shape, 3, 3)), np.zeros((*shape, 3), poses.dtype)
    own = _of_link(poses, link, 12)
    return own[..., :9].reshape(*own.shape[:-1], 3, 3), own[..., 9:]


def _all_poses(poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E, (..., links, 3, 3), and r, (..., links, 3), of all links."""
    by_link = poses.reshape(*poses.shape[:-1], -1, 12)
    return by_link[..., :9].reshape(*by_link.shape[:-1], 3, 3), by_link[..., 9:]


def _inertias(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses, first moments and rotational inertias of all links."""
    links = [link.inertia for link in robot.tree.links[1:]]
    parts = zip(*((inertia.m, inertia.h, inertia.I) for inertia in links), strict=True)
    m, h, rotational = (np.array(part, dtype=float) for part in parts)
    return m, h, rotational


def _momenta(robot: Robot, velocities: np.ndarray) -> np.ndarray:
    """I v of all links in their own frames, (..., links, 6)."""
    m, h, rotational = _inertias(robot)
    motion = velocities.reshape(*velocities.shape[:-1], -1, 6)
    w, v = motion[..., :3], motion[..., 3:]
    n = np.einsum("lij,...lj->...li", rotational, w) + np.cross(h, v)
    return np.concatenate([n, m[:, None] * v - np.cross(h, w)], axis=-1)


def _seen(S: np.ndarray, E: np.ndarray, r: np.ndarray, E_goal: np.ndarray, r_goal: np.ndarray) -> np.ndarray:
    """Motions (as columns) of one link's frame, seen from another's."""
    turn = E_goal @ np.swapaxes(E, -1, -2)
    shift = np.einsum("...ij,...j->...i", E, r_goal - r)  # the other's origin in the one's frame
    w, v = S[..., :3, :], S[..., 3:, :]
    moved = v - np.cross(shift[..., :, None], w, axisa=-2, axisb=-2, axisc=-2)
    return np.concatenate([turn @ w, turn @ moved], axis=-2)


def _at_frame(motions: np.ndarray, place: Transform) -> np.ndarray:
    """Motions (as columns) of a link's frame, seen from a frame on it."""
    return place.matrix().astype(motions.dtype) @ motions


def _in_axes(motions: np.ndarray, E: np.ndarray, place: Transform, axes: Axes) -> np.ndarray:
    """Motions (as columns) that are given along a frame's axes, along those that are asked for."""
    if axes == "frame":
        return motions
    if axes != "world":
        raise ModelError(f"axes must be 'frame' or 'world', got {axes!r}")
    turn = np.swapaxes(place.E @ E, -1, -2)
    return np.concatenate([turn @ motions[..., :3, :], turn @ motions[..., 3:, :]], axis=-2)


def _point(robot: Robot, poses: np.ndarray, body: str, point: np.ndarray) -> np.ndarray:
    """A point of a body in the world."""
    link, place = robot.tree.place[body]
    E, r = _pose(robot, poses, link)
    return r + np.einsum("...ji,j->...i", E, place.r + place.E.T @ point)
