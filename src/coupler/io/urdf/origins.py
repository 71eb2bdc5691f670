"""Poses in URDF: <origin xyz rpy>, or <origin xyz quat_xyzw>."""

from __future__ import annotations

import numpy as np

from coupler.io.xml import Element
from coupler.rotation import matrix_from_quaternion
from coupler.spatial import Transform

NOISE = 1e-15  # m, or entries of a rotation: CAD exporters and trigonometry leave such numbers instead of zero

_NO_TURN = 1e-12  # length of a quaternion, below which it has no direction


def origin(element: Element | None, tag: str = "origin") -> Transform:
    """The transform in an element's <origin>; the identity if it has none."""
    pose = None if element is None else element.find(tag)
    if pose is None:
        return Transform.identity()
    xyz = pose.numbers("xyz", 3, [0.0] * 3)
    return Transform(_turned(pose).T, np.where(np.abs(xyz) < NOISE, 0.0, xyz))


def _turned(pose: Element) -> np.ndarray:
    """The rotation matrix of an <origin>, from its angles, or since URDF 1.2 its quaternion."""
    if not pose.has("quat_xyzw"):
        return rotation_of(pose.numbers("rpy", 3, [0.0] * 3))
    if pose.has("rpy"):
        raise pose.error("it is turned by rpy and by quat_xyzw: keep one of them")
    return turned_by(pose.numbers("quat_xyzw", 4), pose)


def turned_by(quaternion: np.ndarray, element: Element) -> np.ndarray:
    """The rotation matrix of a quaternion x, y, z, w of any length that an element gives."""
    length = float(np.linalg.norm(quaternion))
    if length < _NO_TURN:
        raise element.error("its quaternion has no length")
    R = matrix_from_quaternion(quaternion[[3, 0, 1, 2]] / length)
    return np.where(np.abs(R) < NOISE, 0.0, R)


def rotation_of(rpy: np.ndarray) -> np.ndarray:
    """The rotation matrix Rz Ry Rx: turns about the fixed axes x, y and z, in this order."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(rpy), np.sin(rpy)
    Rx = np.array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
    Ry = np.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    Rz = np.array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
    R = Rz @ Ry @ Rx
    return np.where(np.abs(R) < NOISE, 0.0, R)
