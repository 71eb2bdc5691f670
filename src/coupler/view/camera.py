"""Cameras, placed so that a robot fills the picture."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from coupler.model.tolerances import TINY

_FIELD = np.radians(45.0)  # of view, from below to above
_ROOM = 1.15  # around the robot
_NEAREST = 1e-3  # m, from what is looked at
_SMALLEST = 1e-3  # m: the extent of a scene of points
_FLAT = 0.3  # of its width: scenes that are less deep are seen from the front
_TURNED, _TURNED_FLAT = np.radians(-52.0), np.radians(-22.0)  # about the vertical, from the front
_RAISED, _RAISED_FLAT = np.radians(20.0), np.radians(12.0)


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera.

    Attributes:
        position: 3, m.
        target: 3, the point in the middle of the picture, m.
        up: 3, the direction that is up in the picture.
        field: the vertical angle of view, rad.
    """

    position: np.ndarray
    target: np.ndarray
    up: np.ndarray
    field: float = _FIELD

    @classmethod
    def around(cls, low: np.ndarray, high: np.ndarray, up: np.ndarray, aspect: float = 1.0) -> Camera:
        """The camera that sees all between two corners, 3 each, m; flat scenes are seen from their broad side.

        Args:
            low, high: corners.
            up: a unit vector along one of the world's axes.
            aspect: the width of the picture over its height.
        """
        extent, vertical = high - low, int(np.abs(up).argmax())
        level = [k for k in range(3) if k != vertical]
        depth = min(level, key=lambda k: (round(float(extent[k]), 6), -k))  # along y, if both are alike
        flat = extent[depth] < _FLAT * max(float(extent.max()), TINY)
        turned, raised = (_TURNED_FLAT, _RAISED_FLAT) if flat else (_TURNED, _RAISED)
        front = -np.eye(3)[depth if flat else level[-1]]
        if not np.dot(np.cross(front, up), np.ones(3)) < 0.0:  # so that the other axis points to the right
            front = -front
        aside = np.cross(up, front)
        direction = np.cos(raised) * (np.cos(turned) * front - np.sin(turned) * aside) + np.sin(raised) * up
        middle = (low + high) / 2
        corners = np.array(list(product(*zip(low, high, strict=True)))) - middle
        right = np.cross(up, direction) / np.cos(raised)
        above = np.cross(direction, right)
        out = np.maximum(np.abs(corners @ right) / aspect, np.abs(corners @ above))  # from the middle of the picture
        away = float((_ROOM * out / np.tan(0.5 * _FIELD) + corners @ direction).max())
        return cls(middle + max(away, _NEAREST) * direction, middle, np.asarray(up, dtype=float))


def grid_cell(extent: float) -> float:
    """The side of a cell of the grid on the ground, a power of ten, for a scene of an extent, both in m."""
    return float(10.0 ** np.floor(np.log10(max(extent, _SMALLEST) / 2.0)))
