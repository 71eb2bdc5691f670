"""Stick figures of a robot at instants of a run, side by side, each in a slot of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model import Plane, Robot, Shape
from coupler.model.tree import GROUND
from coupler.simulate.logs import Log
from coupler.spatial import Transform
from coupler.view.skeleton import Pose, Skeleton, outline

FORCE = "#D55E00"
_NEAR, _FAR = np.array([0.11, 0.19, 0.29]), np.array([0.66, 0.73, 0.8])  # colours of what is near the eye, and far
_SOIL, _SURFACE = "#F1EDE6", "#8C8375"

_FEWEST_FIGURES, _MOST_FIGURES = 6, 10
_SLOT = 1.12  # the width of a slot, relative to that of the widest figure
_USUAL_HEIGHT, _LEAST_HEIGHT, _LARGEST_HEIGHT = 2.3, 1.6, 3.4  # of the strip, inches
# Relative to the largest extent of the figures: shorter connections are not drawn, and flatter figures not shaded.
_CONNECTED, _FLAT = 1e-3, 0.01
_FAINT = 0.01  # contact forces below this part of the robot's weight have no arrow


class Strip:
    """A strip of figures, laid out for a given width.

    Attributes:
        times: the times of the figures, s, evenly spaced.
        height: the height of the strip, inches.
    """

    def __init__(self, robot: Robot, log: Log, rows: np.ndarray, width: float) -> None:
        """Lays figures out so that none reaches into another's slot.

        Args:
            robot: the robot that is drawn.
            log: the log of its run.
            rows: the rows of the log with finite states.
            width: the width of the strip, inches.
        """
        self._robot, self._log, self._rows = robot, log, rows
        self._skeleton = Skeleton(robot)
        self._view = self._skeleton.view
        self._figures = self._poses(self._instants(_MOST_FIGURES))
        self._measure()
        count = 1.2 * width * (self._high - self._low) / (_USUAL_HEIGHT * self._slot)
        self._at = self._instants(round(float(np.clip(count, _FEWEST_FIGURES, _MOST_FIGURES))))
        self.times = log.times[self._at]
        self._figures = self._poses(self._at)
        self._measure()
        self._fit(width)

    def _measure(self) -> None:
        """Measures the room that figures take: width and middle of a slot, lowest and highest point, largest extent."""
        points = [pose.points()[:, :2] for pose in self._figures]
        left, right = _range([xy[:, 0] - pose.base[0] for xy, pose in zip(points, self._figures, strict=True)])
        self._low, self._high = _range([xy[:, 1] for xy in points])
        self._tall = max(float(np.ptp(xy, axis=0).max()) for xy in points) or 1.0
        self._middle, self._slot = (left + right) / 2, max(_SLOT * (right - left), 0.2 * self._tall)

    def _fit(self, width: float) -> None:
        """Sets the range of heights: figures, arrows and the ground, with a margin, at one scale along both axes."""
        arrows = self._arrows()
        low, high = _range([np.array([self._low, self._high]), arrows[:, 1], arrows[:, 1] + arrows[:, 3]])
        margin = 0.06 * (high - low) + 0.02 * self._tall
        low, high = low - 1.5 * margin, high + margin
        count = len(self._at)
        self._slot = max(self._slot, width * (high - low) / (_LARGEST_HEIGHT * count))
        scale = width / (count * self._slot)
        self.height = max(scale * (high - low), _LEAST_HEIGHT)
        spare = self.height / scale - (high - low)
        self._low = low if self._log.contacts else low - spare / 2
        self._high = self._low + self.height / scale

    def _instants(self, count: int) -> np.ndarray:
        """The rows nearest to evenly spaced times, from the first to the last."""
        times = self._log.times[self._rows]
        between = (times[1:] + times[:-1]) / 2
        return self._rows[np.unique(np.searchsorted(between, np.linspace(times[0], times[-1], count)))]

    def _poses(self, instants: np.ndarray) -> list[Pose]:
        return [self._skeleton.at(self._log.q[row]) for row in instants]

    def _shift(self, k: int) -> float:
        """The shift to the right that moves a figure into its slot, m."""
        return k * self._slot - self._middle - float(self._figures[k].base[0])

    def _arrows(self) -> np.ndarray:
        """Arrows of the contact forces at all instants: n × 4, start and extent, to the right and up, m."""
        weight = self._robot.mass * float(np.linalg.norm(self._robot.gravity))
        forces = np.nan_to_num(self._view(self._log.forces[self._at])[..., :2])
        strongest = float(np.linalg.norm(forces, axis=-1).max(initial=0.0))
        self.force = weight or strongest or 1.0  # the force whose arrow is drawn as the key, N
        self._per_newton = 0.6 * self._tall / max(self.force, strongest)
        arrows = [np.zeros((0, 4))]
        for k, (row, force) in enumerate(zip(self._at, forces, strict=True)):
            pushed = np.linalg.norm(force, axis=-1) > _FAINT * self.force
            points = self._view(self._log.points[row, pushed])[:, :2] + [self._shift(k), 0.0]
            arrows.append(np.hstack([points, self._per_newton * force[pushed]]))
        return np.concatenate(arrows)

    def draw(self, axes: Any) -> None:
        """Draws the strip on axes whose width and height have its proportions."""
        count, (right, up) = len(self._at), self._view.names
        axes.set_xlim(-self._slot / 2, (count - 0.5) * self._slot)
        axes.set_ylim(self._low, self._high)
        self._draw_ground(axes)
        for k, pose in enumerate(self._figures):
            self._draw_figure(axes, pose, self._shift(k))
        self._draw_forces(axes)
        labels = [f"{time:.3g} s" for time in self.times]
        if any(pose.base.any() for pose in self._figures):
            labels = [f"{t}\n{right} = {_plain(p.base[0])} m" for t, p in zip(labels, self._figures, strict=True)]
        axes.set_xticks(self._slot * np.arange(count), labels)
        axes.tick_params(axis="x", length=0, labelsize=8.5)
        axes.set_ylabel(f"{up} (m)")
        axes.spines["bottom"].set_visible(False)

    def _draw_figure(self, axes: Any, pose: Pose, shift: float) -> None:
        near, far = _range([points[:, 2] for points in pose.links])
        for points in sorted(pose.links, key=lambda points: -points[:, 2].mean()):
            away = (points[:, 2].mean() - near) / (far - near) if far - near > _FLAT * self._tall else 0.0
            colour = (1 - away) * _NEAR + away * _FAR
            corners = outline(points[:, :2] + [shift, 0.0])
            if len(corners) > 2:
                axes.fill(*corners.T, facecolor=(*(0.85 + 0.15 * colour), 0.85), edgecolor=colour, linewidth=1.2)
            else:
                axes.plot(*corners.T, color=colour, linewidth=2.4, solid_capstyle="round")
        for ends in pose.connections:
            if np.ptp(ends[:, :2], axis=0).max() > _CONNECTED * self._tall:
                axes.plot(ends[:, 0] + shift, ends[:, 1], color=_NEAR, linewidth=0.9)
        axes.plot(pose.joints[:, 0] + shift, pose.joints[:, 1], "o", markersize=2.6, color="white", mec=_NEAR, mew=0.7)
        axes.plot(pose.anchors[:, 0] + shift, pose.anchors[:, 1], "^", markersize=5, color=_SURFACE, zorder=1)

    def _draw_forces(self, axes: Any) -> None:
        arrows = self._arrows()
        if not len(arrows):
            return
        drawn = axes.quiver(
            *arrows.T, angles="xy", scale_units="xy", scale=1.0, units="inches", width=0.022, color=FORCE, zorder=4
        )
        label, length = f"contact forces, with an arrow of {newtons(self.force)}:", self._per_newton * self.force
        start = 1.0 - length / (len(self._at) * self._slot)
        axes.quiverkey(drawn, start, 1.06, length, label, labelpos="W", color=FORCE, fontproperties={"size": 8.5})

    def _draw_ground(self, axes: Any) -> None:
        """Draws the ground: its planes, cut at the depth of the robot."""
        place = self._robot.tree.place
        floor = [Shape("", GROUND, Plane(), Transform.identity())]  # if what it touched is not among its shapes
        shapes = [shape for shape in self._robot.shapes if isinstance(shape.geometry, Plane)]
        for shape in shapes or (floor if self._log.contacts else []):
            link, X = place[shape.body]
            at = shape.at @ X
            normal, point = self._view(at.E[2]), self._view(at.r)
            if link or normal[1] < 0.1:  # a plane that moves, or a wall
                continue
            for k, pose in enumerate(self._figures):
                x = (k + np.array([-0.5, 0.5])) * self._slot
                rise = normal[0] * (x - self._shift(k) - point[0]) + normal[2] * (pose.base[2] - point[2])
                z = point[1] - rise / normal[1]
                axes.fill_between(x, z, self._low, color=_SOIL, linewidth=0, zorder=0)
                axes.plot(x, z, color=_SURFACE, linewidth=1.2, zorder=0.5)


def _range(parts: list[np.ndarray]) -> tuple[float, float]:
    """The smallest and the largest number, or zeros if there are none."""
    numbers = np.concatenate([np.zeros(0), *parts])
    return (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)


def newtons(force: float) -> str:
    """A force with its unit."""
    return f"{force:.3g} N" if abs(force) < 1000.0 else f"{force:,.0f} N"


def _plain(x: float) -> str:
    """A number with two decimals, and without a negative zero."""
    return f"{round(x, 2) + 0.0:.2f}".replace("-", "−")
