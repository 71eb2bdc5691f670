"""Overlays of a moving robot: contact points and forces, friction cones, and paths of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.view.arrows import COLOUR, HEAD, HEAD_LENGTH, SHAFT, arrow_extents
from coupler.view.browser.robot_scene import linear_rgb, rgb
from coupler.view.figure.surface import Surface, joined, turned_to
from coupler.view.recording import Recording

if TYPE_CHECKING:
    from viser import ViserServer

_POINT, _CONE = (0.55, 0.05, 0.10), (0.95, 0.75, 0.25)
_TRACES = ((0.10, 0.44, 0.76), (0.05, 0.60, 0.47), (0.58, 0.34, 0.72), (0.85, 0.52, 0.10))
_NOWHERE = 1e5  # of the robot's size: out of sight, where contacts are before they are placed
_UNSEEN = 1e-6  # of the robot's size: a cone that is not to be seen
_CONE_HEIGHT, _SIDES = 0.12, 28  # of a cone, over the robot's size, and how many sides it has


class Overlays:
    """Contacts of one instant, and paths of frames.

    Args:
        size: the robot's size, m.
        metres_per_newton: the scale of arrows.

    Attributes:
        forces, points, cones: whether each is shown.
    """

    def __init__(self, server: ViserServer, size: float, metres_per_newton: float) -> None:
        self._scene, self._size, self._scale = server.scene, size, metres_per_newton
        self.forces, self.points, self.cones = True, True, False
        nowhere = np.full((1, 2, 3), _NOWHERE * size)
        self._arrows = self._scene.add_arrows(
            "/contact forces",
            nowhere,
            linear_rgb(COLOUR),
            shaft_radius=SHAFT * size,
            head_radius=HEAD * size,
            head_length=HEAD_LENGTH * size,
            visible=False,
        )
        self._balls = self._scene.add_point_cloud(
            "/contact points",
            nowhere[0],
            rgb(_POINT),
            precision="float32",
            point_size=0.024 * size,
            point_shape="circle",
            visible=False,
        )
        cone = _cone(np.zeros(3), np.eye(3)[2], 1.0, _UNSEEN * size)  # not to be seen before it is placed
        self._cones = self._scene.add_mesh_simple(
            "/friction cones",
            cone.vertices,
            cone.triangles,
            color=rgb(_CONE),
            opacity=0.4,
            side="double",
            cast_shadow=False,
            visible=False,
        )
        self._traces: list[Any] = []

    def show(self, recording: Recording, row: int) -> None:
        """Shows the contacts of a row."""
        points, forces = recording.pressed(row)
        self.show_forces(points, forces)
        tips, axes, slopes = recording.cones(row) if self.cones else (np.zeros((0, 3)),) * 3
        self._cones.visible = bool(len(tips))
        if len(tips):
            high = _CONE_HEIGHT * self._size
            cones = joined(
                _cone(tip, axis, float(slope), high) for tip, axis, slope in zip(tips, axes, slopes, strict=True)
            )
            self._cones.vertices, self._cones.faces = (
                cones.vertices.astype(np.float32),
                cones.triangles.astype(np.uint32),
            )

    def show_forces(self, points: np.ndarray, forces: np.ndarray) -> None:
        """Shows points, (n, 3), m, and arrows of the forces there, (n, 3), N."""
        extent = arrow_extents(forces, self._scale, self._size)
        self._arrows.visible = bool(len(points)) and self.forces
        self._balls.visible = bool(len(points)) and self.points
        if self._arrows.visible:
            self._arrows.points = np.stack([points, points + extent], axis=1).astype(np.float32)
        if self._balls.visible:
            self._balls.points = points.astype(np.float32)

    def trace(self, ways: dict[str, np.ndarray]) -> None:
        """Shows the paths of frames, (n, 3) each, m, in place of earlier ones."""
        for trace in self._traces:
            trace.remove()
        self._traces = []
        for k, (name, way) in enumerate(ways.items()):
            lines = np.stack([way[:-1], way[1:]], axis=1)
            colour = rgb(_TRACES[k % len(_TRACES)])
            node = f"/traces/{name.replace('/', '∕')}"
            self._traces.append(self._scene.add_line_segments(node, lines, colour, thickness=0.004 * self._size))


def _cone(tip: np.ndarray, axis: np.ndarray, slope: float, height: float) -> Surface:
    """An open cone about an axis."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SIDES, endpoint=False)
    rim = height * np.stack([slope * np.cos(angle), slope * np.sin(angle), np.ones(_SIDES)], axis=1)
    around = np.arange(_SIDES)
    triangles = np.stack([np.zeros(_SIDES, int), 1 + around, 1 + (around + 1) % _SIDES], axis=1)
    return Surface(np.concatenate([np.zeros((1, 3)), rim]), triangles).moved(turned_to(axis), tip)
