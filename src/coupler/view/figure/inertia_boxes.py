"""The box with the mass and the inertia of a link."""

from __future__ import annotations

import numpy as np

from coupler.spatial import RigidInertia


def principal(inertia: RigidInertia) -> tuple[np.ndarray, np.ndarray]:
    """The principal moments of an inertia about its centre, 3, kg m², and their axes, as columns."""
    h = np.asarray(inertia.h, dtype=float)
    about = np.asarray(inertia.I, dtype=float) - (h @ h * np.eye(3) - np.outer(h, h)) / inertia.m
    moments, axes = np.linalg.eigh((about + about.T) / 2)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return np.maximum(moments, 0.0), axes


def inertia_box(inertia: RigidInertia) -> np.ndarray:
    """The sides of the box that has this mass and inertia, 3, m; zeros without mass."""
    if not inertia.m > 0.0:
        return np.zeros(3)
    moments, _ = principal(inertia)
    return np.sqrt(np.maximum(6.0 / inertia.m * (moments.sum() - 2.0 * moments), 0.0))
