"""Free joints as other libraries have them: orders of entries, axes of velocities, and where the joint is placed."""

from __future__ import annotations

import numpy as np

from coupler.model.tree import TreeJoint
from coupler.rotation import matrix_from_quaternion, quaternion_conjugate, quaternion_from_matrix, quaternion_product
from coupler.spatial import Transform

_W_LAST = [1, 2, 3, 0]


def swapped(velocity: np.ndarray) -> np.ndarray:
    """Velocities, (..., 6), with their angular and linear parts exchanged."""
    return np.concatenate([velocity[..., 3:], velocity[..., :3]], axis=-1)


def pinocchio_pose(position: np.ndarray) -> np.ndarray:
    """Poses as Pinocchio has them, (..., 7): position, then the quaternion with w last."""
    return np.concatenate([position[..., :3], position[..., 3:][..., _W_LAST]], axis=-1)


def turned(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors, (..., 3), rotated from a body's axes to the axes that its quaternion (w, x, y, z) is relative to."""
    R = matrix_from_quaternion(np.moveaxis(quaternion, -1, 0))
    return np.einsum("ij...,...j->...i", R, vector)


def turned_back(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors, (..., 3), rotated into a body's axes: the inverse of `turned`."""
    R = matrix_from_quaternion(np.moveaxis(quaternion, -1, 0))
    return np.einsum("ji...,...j->...i", R, vector)


def to_world(joint: TreeJoint, position: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pose in the world of the body on a free joint of the ground, and the body's velocity in its own frame."""
    at, meets = joint.placement, joint.meets or Transform.identity()
    quaternion = _times(_between(quaternion_from_matrix(at.E.T), position[..., 3:]), quaternion_from_matrix(meets.E))
    origin = at.r + position[..., :3] @ at.E - turned(quaternion, np.broadcast_to(meets.r, (*position.shape[:-1], 3)))
    return np.concatenate([origin, quaternion], axis=-1), velocity @ meets.inverse().matrix().T


def from_world(joint: TreeJoint, pose: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The position and velocity of a free joint: the inverse of `to_world`."""
    at, meets = joint.placement, joint.meets or Transform.identity()
    back = quaternion_conjugate(quaternion_from_matrix(at.E.T)), quaternion_conjugate(quaternion_from_matrix(meets.E))
    quaternion = _times(_between(back[0], pose[..., 3:]), back[1])
    point = pose[..., :3] + turned(pose[..., 3:], np.broadcast_to(meets.r, (*pose.shape[:-1], 3)))
    return np.concatenate([(point - at.r) @ at.E.T, quaternion], axis=-1), velocity @ meets.matrix().T


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quaternion products a b, for many b."""
    return b @ np.array([quaternion_product(a, unit) for unit in np.eye(4)])


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quaternion products a b, for many a."""
    return a @ np.array([quaternion_product(unit, b) for unit in np.eye(4)])
