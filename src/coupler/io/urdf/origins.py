"""Poses in URDF: <origin xyz rpy>."""

from __future__ import annotations

import numpy as np

from coupler.io.xml import Element
from coupler.spatial import Transform

NOISE = 1e-15  # m, or entries of a rotation: CAD exporters and trigonometry leave such numbers instead of zero


def origin(element: Element | None, tag: str = "origin") -> Transform:
    """The transform from the frame of an element to that of <origin xyz rpy> in it; the identity without one."""
    pose = None if element is None else element.find(tag)
    if pose is None:
        return Transform.identity()
    xyz, rpy = pose.numbers("xyz", 3, [0.0] * 3), pose.numbers("rpy", 3, [0.0] * 3)
    return Transform(rotation_of(rpy).T, np.where(np.abs(xyz) < NOISE, 0.0, xyz))


def rotation_of(rpy: np.ndarray) -> np.ndarray:
    """The rotation matrix Rz Ry Rx: turns about the fixed axes x, y and z, in this order."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(rpy), np.sin(rpy)
    Rx = np.array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
    Ry = np.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    Rz = np.array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
    R = Rz @ Ry @ Rx
    return np.where(np.abs(R) < NOISE, 0.0, R)
