"""What is drawn over a moving robot: contact points and forces, friction cones, ways of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.view.browser.scene import rgb, wxyz_of
from coupler.view.figure.surface import Surface, ball, turned_to

if TYPE_CHECKING:
    from viser import ViserServer

__all__ = ["Overlays"]

_FORCE, _POINT, _CONE = (0.82, 0.13, 0.18), (0.55, 0.05, 0.10), (0.95, 0.75, 0.25)
_TRACES = ((0.10, 0.44, 0.76), (0.05, 0.60, 0.47), (0.58, 0.34, 0.72), (0.85, 0.52, 0.10))
_LONGEST = 1.6  # of the robot's size: longer arrows are cut, as those of impacts are
_SIDES = 28  # of a cone


class Overlays:
    """Contacts of one instant, and ways of frames.

    Attributes:
        forces, points, cones: whether each is shown.
    """

    def __init__(self, server: ViserServer, size: float, metres_per_newton: float) -> None:
        """Starts without anything.

        Args:
            server: the server.
            size: of the robot, m.
            metres_per_newton: the scale of arrows.
        """
        self._scene, self._size, self._scale = server.scene, size, metres_per_newton
        self.forces, self.points, self.cones = True, True, False
        self._arrows = self._scene.add_arrows(
            "/contact forces",
            np.zeros((1, 2, 3)),
            rgb(_FORCE),
            shaft_radius=0.006 * size,
            head_radius=0.016 * size,
            head_length=0.04 * size,
            visible=False,
        )
        self._balls = self._instances("/contact points", ball(0.011 * size), _POINT, None)
        self._cones = self._instances("/friction cones", _cone(), _CONE, 0.35)
        self._traces: list[Any] = []

    def show(self, points: np.ndarray, forces: np.ndarray, slopes: np.ndarray, normals: np.ndarray) -> None:
        """Shows contacts that press.

        Args:
            points: (n, 3), m.
            forces: (n, 3), N.
            slopes: (n,), coefficients of friction.
            normals: (n, 3), axes of the cones.
        """
        extent = self._scale * forces
        length = np.linalg.norm(extent, axis=1, keepdims=True)
        extent = extent * np.minimum(1.0, _LONGEST * self._size / np.maximum(length, 1e-12))
        self._arrows.visible = bool(len(points)) and self.forces
        self._balls.visible = bool(len(points)) and self.points
        self._cones.visible = bool(len(points)) and self.cones
        if self._arrows.visible:
            self._arrows.points = np.stack([points, points + extent], axis=1).astype(np.float32)
        if self._balls.visible:
            self._place(self._balls, points, np.tile([1.0, 0.0, 0.0, 0.0], (len(points), 1)), None)
        if self._cones.visible:
            turns = wxyz_of(np.array([turned_to(normal) for normal in normals]))
            high = 0.12 * self._size
            self._place(self._cones, points, turns, np.stack([slopes * high, slopes * high, 0 * slopes + high], axis=1))

    def trace(self, ways: dict[str, np.ndarray]) -> None:
        """Shows the ways of frames, (n, 3) each, m, instead of those that were shown."""
        for trace in self._traces:
            trace.remove()
        self._traces = []
        for k, (name, way) in enumerate(ways.items()):
            lines = np.stack([way[:-1], way[1:]], axis=1)
            colour = rgb(_TRACES[k % len(_TRACES)])
            node = f"/traces/{name.replace('/', '∕')}"
            self._traces.append(self._scene.add_line_segments(node, lines, colour, thickness=0.004 * self._size))

    def _instances(self, name: str, surface: Surface, colour: Any, opacity: float | None) -> Any:
        return self._scene.add_batched_meshes_simple(
            name,
            surface.vertices,
            surface.triangles,
            np.array([[1.0, 0.0, 0.0, 0.0]]),
            np.zeros((1, 3)),
            batched_scales=np.ones((1, 3), np.float32),
            batched_colors=rgb(colour),
            opacity=opacity,
            lod="off",
            cast_shadow=False,
            side="double" if opacity else "front",
            visible=False,
        )

    @staticmethod
    def _place(instances: Any, points: np.ndarray, turns: np.ndarray, scales: np.ndarray | None) -> None:
        instances.batched_positions = points.astype(np.float32)
        instances.batched_wxyzs = turns.astype(np.float32)
        instances.batched_scales = (np.ones((len(points), 3)) if scales is None else scales).astype(np.float32)


def _cone() -> Surface:
    """An open cone of height and radius 1, with its tip at the origin."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SIDES, endpoint=False)
    rim = np.stack([np.cos(angle), np.sin(angle), np.ones(_SIDES)], axis=1)
    around = np.arange(_SIDES)
    triangles = np.stack([np.zeros(_SIDES, int), 1 + around, 1 + (around + 1) % _SIDES], axis=1)
    return Surface(np.concatenate([np.zeros((1, 3)), rim]), triangles)
