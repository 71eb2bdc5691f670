"""From where a robot is looked at, so that it fills the picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Camera"]

_FIELD = np.radians(45.0)  # of view, from below to above
_ROOM = 1.4  # around the robot
_FLAT = 0.3  # of its width: what is less deep is looked at from the front
_TURNED, _TURNED_FLAT = np.radians(-52.0), np.radians(-22.0)  # about the vertical, from the front
_RAISED, _RAISED_FLAT = np.radians(20.0), np.radians(12.0)


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera.

    Attributes:
        position: 3, m.
        target: 3, what is in the middle of the picture, m.
        up: 3, what is up in the picture.
        field: the angle of view from below to above, rad.
    """

    position: np.ndarray
    target: np.ndarray
    up: np.ndarray
    field: float = _FIELD

    @classmethod
    def around(cls, low: np.ndarray, high: np.ndarray, up: np.ndarray) -> Camera:
        """The camera that sees all between two corners, 3 each, m; of what is flat, the broad side.

        Args:
            low, high: corners.
            up: a unit vector along one of the world's axes.
        """
        extent, vertical = high - low, int(np.abs(up).argmax())
        level = [k for k in range(3) if k != vertical]
        depth = min(level, key=lambda k: (round(float(extent[k]), 6), -k))  # along y, if both are alike
        flat = extent[depth] < _FLAT * max(float(extent.max()), 1e-9)
        turned, raised = (_TURNED_FLAT, _RAISED_FLAT) if flat else (_TURNED, _RAISED)
        front = -np.eye(3)[depth if flat else level[-1]]
        if not np.dot(np.cross(front, up), np.ones(3)) < 0.0:  # so that the other axis points to the right
            front = -front
        aside = np.cross(up, front)
        direction = np.cos(raised) * (np.cos(turned) * front - np.sin(turned) * aside) + np.sin(raised) * up
        radius = 0.5 * float(np.linalg.norm(extent))
        away = _ROOM * max(radius, 1e-3) / np.tan(0.5 * _FIELD)
        middle = (low + high) / 2
        return cls(middle + away * direction, middle, np.asarray(up, dtype=float))
