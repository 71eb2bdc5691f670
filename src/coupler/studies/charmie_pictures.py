"""Robots as sticks in 3-D: for each body the lines from its origin to its joints, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.kinematics import body_poses
from coupler.model import Robot
from coupler.model.tree import GROUND
from coupler.view.plotting import matplotlib_module, new_figure

MAIN, ACTUATOR, SPRING, OTHER = "#22303C", "#0072B2", "#009E73", "#B8860B"
# How body 5 is drawn: from point to point of Table 1, as its figure seems to have it [Fig. 4].
BODY_5 = ("DE", "EF", "FH", ("H", "Bc"), "FG", "HI", "IJ", "IK", ("J", "Bb"), ("K", "Ba"))
BASE = (0.2, 0.2, 0.2)  # m: half the length and width, and the height of a box that stands for body 3; ours

Arrows = tuple[np.ndarray, np.ndarray, str, str]
Bone = tuple[str, np.ndarray, str, np.ndarray, str]  # a body and a point on it, another of both, and a colour


def bones(robot: Robot, *, auxiliary: bool = True) -> list[Bone]:
    """The lines of a robot, between points of its bodies.

    Args:
        robot: the robot; of CHARMIE, body 5 is drawn by its points, and what is auxiliary in other colours.
        auxiliary: whether bodies without mass are drawn, other than those that carry main ones.
    """
    bones: list[Bone] = []
    springs = {body for element in robot.elements for body in (element.first, element.second)}
    driven = {body for motor in robot.actuators for joint in motor.joints for body in _parts(robot, joint)}
    colour = {body: _colour(robot, body, springs, driven) for body in robot.body_names} | {GROUND: MAIN}
    drawn_by_points = "5" if "5.G" in robot.frame_names else ""

    def add(body: str, start: Any, other: str, end: Any, colour: str) -> None:
        if auxiliary or colour == MAIN:
            bones.append((body, np.asarray(start, float), other, np.asarray(end, float), colour))

    for joint in robot.joints:
        at, of_parent = joint.placement.r, colour[joint.child] if colour[joint.parent] != MAIN else MAIN
        if joint.parent not in (GROUND, drawn_by_points) and np.linalg.norm(at) > 0 and colour[joint.child] == MAIN:
            add(joint.parent, np.zeros(3), joint.parent, at, of_parent)
        if joint.kind.kind == "prismatic":
            add(joint.parent, at, joint.child, np.zeros(3), colour[joint.child])
    for loop in robot.loops:
        for body, frame in ((loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame)):
            if colour[body] != MAIN:
                add(body, np.zeros(3), body, frame.r, colour[body])
    for body in robot.bodies.values():
        for frame in body.frames.values():
            if body.name != drawn_by_points and colour[body.name] == MAIN:
                add(body.name, np.zeros(3), body.name, frame.r, MAIN)
        carries = any(joint.parent == body.name for joint in robot.joints)
        if not carries and not body.massless:
            add(body.name, np.zeros(3), body.name, 2 * body.centre, MAIN)
    if drawn_by_points:
        corners = [(x, y) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        for (x, y), (x_next, y_next) in zip(corners, corners[1:] + corners[:1], strict=True):
            for z in (0.0, BASE[2]):
                add("3", (x * BASE[0], y * BASE[1], z), "3", (x_next * BASE[0], y_next * BASE[1], z), MAIN)
            add("3", (x * BASE[0], y * BASE[1], 0.0), "3", (x * BASE[0], y * BASE[1], BASE[2]), MAIN)
        points = {name.partition(".")[2]: frame.r for name, frame in robot.bodies["5"].frames.items()}
        for first, second in BODY_5:
            add("5", points[first], "5", points[second], MAIN)
    return bones


class Stage:
    """A robot on axes in 3-D, which shows one configuration after the other.

    Args:
        auxiliary: as for `bones`.
        size: size of the picture, inches.

    Attributes:
        figure, axes: matplotlib's figure and axes.
    """

    def __init__(self, robot: Robot, *, auxiliary: bool = True, size: float = 5.0) -> None:
        canvas, art3d = map(matplotlib_module, ("matplotlib.backends.backend_agg", "mpl_toolkits.mplot3d.art3d"))
        self._robot, self._bones = robot, bones(robot, auxiliary=auxiliary)
        self.figure = new_figure(size, size)
        self._canvas, self._axes_drawn = canvas.FigureCanvasAgg(self.figure), None
        self.axes: Any = self.figure.add_axes((0, 0, 1, 1), projection="3d")
        self._lines = art3d.Line3DCollection(
            np.zeros((len(self._bones), 2, 3)), colors=[bone[-1] for bone in self._bones], linewidths=2.0
        )
        self.axes.add_collection3d(self._lines, autolim=False)
        ends = self.segments(robot.neutral()).reshape(-1, 3)
        middle, half = (ends.min(axis=0) + ends.max(axis=0)) / 2, 0.55 * np.ptp(ends, axis=0).max()
        for axis, centre in zip("xyz", middle, strict=True):
            getattr(self.axes, f"set_{axis}lim")(centre - half, centre + half)
            getattr(self.axes, f"set_{axis}label")(f"{axis}, m")
            self.axes.locator_params(axis=axis, nbins=4)
        self.axes.set_box_aspect((1, 1, 1))
        self.axes.view_init(elev=15, azim=55)

    def segments(self, q: np.ndarray) -> np.ndarray:
        """bones × 2 × 3, the ends of all lines at a configuration, m."""
        poses = dict(zip(self._robot.body_names, body_poses(self._robot, q), strict=True)) | {GROUND: np.eye(4)}

        def at(body: str, point: np.ndarray) -> np.ndarray:
            return poses[body][:3, :3] @ point + poses[body][:3, 3]

        return np.array([[at(body, start), at(other, end)] for body, start, other, end, _ in self._bones])

    def show(self, q: np.ndarray) -> None:
        """Draws a configuration. Axes are drawn once, and lines over them again and again: the view stays as it is."""
        self._lines.set_segments(list(self.segments(q)))
        if self._axes_drawn is None:
            self._lines.set_visible(False)
            self._canvas.draw()
            self._axes_drawn = self._canvas.copy_from_bbox(self.figure.bbox)
            self._lines.set_visible(True)
        self._canvas.restore_region(self._axes_drawn)
        self._lines.do_3d_projection()
        self.axes.draw_artist(self._lines)

    def picture(self, q: np.ndarray, arrows: Sequence[Arrows] = (), title: str = "") -> np.ndarray:
        """The `pixels` of a configuration with arrows: starts and vectors, n × 3 each, m, a colour, and a label."""
        for starts, vectors, colour, label in arrows:
            self.axes.quiver(*starts.T, *vectors.T, color=colour, label=label, linewidth=1.2, arrow_length_ratio=0.15)
        if arrows:
            self.axes.legend(loc="lower left", fontsize=8)
        self.axes.set_title(title, y=0.95)
        self._lines.set_segments(list(self.segments(q)))
        self._canvas.draw()
        return self.pixels()

    def pixels(self) -> np.ndarray:
        """height × width × 4, what was drawn, bytes of red, green, blue and opacity."""
        return np.asarray(self._canvas.buffer_rgba()).copy()


def _parts(robot: Robot, joint: str) -> tuple[str, ...]:
    """The bodies of a strut whose slide is a joint, and none for any other joint."""
    slide = next(other for other in robot.joints if other.name == joint)
    return (slide.parent, slide.child) if robot.bodies[slide.child].massless and slide.parent != GROUND else ()


def _colour(robot: Robot, body: str, springs: set[str], driven: set[str]) -> str:
    if not robot.bodies[body].massless or body in ("1", "2"):
        return MAIN
    return ACTUATOR if body in driven else SPRING if body in springs else OTHER
