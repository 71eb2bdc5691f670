"""Sliders for the independent coordinates, with dependent joints and errors of loops shown below."""

from __future__ import annotations

import threading
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model import ModelError
from coupler.model.tolerances import CLOSED, WITHIN_LIMITS
from coupler.view.browser.robot_scene import RobotScene
from coupler.view.posing import Coordinate, Posing

if TYPE_CHECKING:
    from viser import ViserServer

_NARROWEST = 1e-6  # rad or m, between the ends of a slider
_STEPS = 400  # of a slider, from its one end to the other
_MOST_OPEN = 12  # sliders that are shown at once; more are folded by joint
_MOST_LISTED = 40  # joints one under the other; more are folded by so many
_RANDOM_SEED = 0


class PosePanel:
    """A panel of sliders that poses a robot.

    Sliders are read by one thread, which takes the newest values only: a browser sends them faster than loops close.

    Attributes:
        posing: the robot's pose.
        scene: the robot in the scene.
        sliders: the sliders of all coordinates.
        message: why the robot cannot move further.
    """

    def __init__(self, server: ViserServer, posing: Posing, scene: RobotScene) -> None:
        """Adds the panel to the current tab, and moves the robot in the scene."""
        self.posing, self.scene, self._gui = posing, scene, server.gui
        self._random = np.random.default_rng(_RANDOM_SEED)
        self._changed, self._stopped, self._quiet = threading.Event(), False, False
        buttons = self._gui.add_button_group("Go to", ("neutral", "random"), hint="a pose of all joints")
        buttons.on_click(lambda event: self._go(str(event.target.value)))
        names = list(posing.robot.keyframes)
        if names:
            keyframes = self._gui.add_dropdown("Keyframe", ("", *names), hint="a pose that the file names")
            keyframes.on_update(lambda event: self._go_to_keyframe(str(event.target.value)))
        self.message = self._gui.add_html("")
        self.sliders: list[Any] = []
        self._add_sliders()
        self._seen, self._goal = [slider.value for slider in self.sliders], posing.values
        self._low = np.array([each.low for each in posing.coordinates])
        self._high = np.array([each.high for each in posing.coordinates])
        self._state = self._gui.add_html("")
        self._tell()
        self._thread = threading.Thread(target=self._follow, name="coupler-pose", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._changed.set()
        self._thread.join()

    def _add_sliders(self) -> None:
        folded = len(self.posing.coordinates) > _MOST_OPEN
        pairs = zip(self.posing.coordinates, self.posing.values, strict=True)
        joints = [(joint, list(group)) for joint, group in groupby(pairs, key=lambda pair: pair[0].joint)]
        if len(joints) <= _MOST_LISTED:
            self._add_joints(joints, folded)
            return
        for start in range(0, len(joints), _MOST_LISTED):
            page = joints[start : start + _MOST_LISTED]
            with self._gui.add_folder(f"{page[0][0]} … {page[-1][0]}", expand_by_default=False):
                self._add_joints(page, folded)

    def _add_joints(self, joints: list[tuple[str, list[tuple[Coordinate, Any]]]], folded: bool) -> None:
        for joint, coordinates in joints:
            if len(coordinates) > 1:
                with self._gui.add_folder(joint, expand_by_default=not folded):
                    for coordinate, value in coordinates:
                        self._add_slider(coordinate, value, coordinate.label.removeprefix(f"{joint} "))
            else:
                self._add_slider(*coordinates[0], joint)

    def _add_slider(self, coordinate: Coordinate, value: float, label: str) -> None:
        unit = "rad" if coordinate.angular else "m"
        step = 10.0 ** np.floor(np.log10(max(coordinate.high - coordinate.low, _NARROWEST) / _STEPS))  # few digits
        limits = f"limits {coordinate.low:.3g} and {coordinate.high:.3g} {unit}"
        slider = self._gui.add_slider(
            label,
            float(np.round(np.floor(coordinate.low / step) * step, 9)),
            float(np.round(np.ceil(coordinate.high / step) * step, 9)),
            float(step),
            float(np.round(np.round(np.clip(value, coordinate.low, coordinate.high) / step) * step, 9)),
            hint=f"{coordinate.joint}, {unit}; {limits if coordinate.limited else 'no limits'}",
            marks=_marks(coordinate),
        )
        slider.on_update(lambda _: None if self._quiet else self._changed.set())
        self.sliders.append(slider)

    def _go(self, where: str) -> None:
        self.place(
            self.posing.robot.neutral() if where == "neutral" else self.posing.robot.random_state(self._random)[0]
        )

    def _go_to_keyframe(self, name: str) -> None:
        if name:
            self.place(self.posing.robot.keyframes[name][0])

    def place(self, q: np.ndarray) -> None:
        """Moves the robot to a configuration at once, and updates the sliders."""
        try:
            self.posing.reset(q)
        except ModelError as error:
            self.posing.message = str(error)
        self._quiet = True
        for slider, value in zip(self.sliders, self.posing.values, strict=True):
            step = slider.step
            slider.value = float(np.round(np.round(np.clip(value, slider.min, slider.max) / step) * step, 9))
        self._seen, self._goal = [slider.value for slider in self.sliders], self.posing.values
        self._quiet = False
        self._tell()

    def _follow(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._stopped:
                return
            values = [slider.value for slider in self.sliders]
            moved = np.array(values) != self._seen  # the others are rounded to what a slider can show
            self._seen, self._goal = values, np.where(moved, values, self._goal)
            self.posing.move(np.clip(self._goal, self._low, self._high))
            self._tell()

    def _tell(self) -> None:
        self.scene.show(self.scene.figure.poses(self.posing.q))
        self.message.content = _warning(self.posing.message)
        self._state.content = followers_html(self.posing)


def _marks(coordinate: Coordinate) -> tuple[tuple[float, str], ...] | None:
    """The marks below a slider: its limits, or −π and π for an angle without limits; None for no marks."""
    low, high = coordinate.low, coordinate.high
    if coordinate.limited:
        return (low, f"{low:.3g}"), (high, f"{high:.3g}")
    return ((low, "−π"), (high, "π")) if (low, high) == (-np.pi, np.pi) else None


def _warning(text: str) -> str:
    if not text:
        return ""
    box = "margin:4px 12px;padding:6px 10px;border-left:4px solid #d9480f;background:#fff4e6;color:#862e06"
    return f'<div role="alert" style="{box};font-size:0.8em">{escape(text)}</div>'


def followers_html(posing: Posing) -> str:
    """Dependent joints with their limits, and loops with their errors, as HTML."""
    robot, set_ones = posing.robot, {each.joint for each in posing.coordinates}
    kinds, rows = {joint.name: joint.kind for joint in robot.joints}, []
    for name, position in robot.joint_positions(posing.q).items():
        kind = kinds[name]
        if name in set_ones or kind.nq != kind.nv:
            continue
        for x, low, high in zip(np.atleast_1d(position), kind.lower, kind.upper, strict=True):
            rows.append(_row(name, f"{x:.3f}", low - WITHIN_LIMITS <= x <= high + WITHIN_LIMITS, _limits(low, high)))
    loops = [_row(name, f"{float(e):.1e}", float(e) < CLOSED, "") for name, e in robot.loop_errors(posing.q).items()]
    return _table("joints that follow", rows) + _table("loops, open by (m or rad)", loops)


def _limits(low: float, high: float) -> str:
    if not np.isfinite([low, high]).any():
        return ""
    return f"{low:.3g} … {high:.3g}".replace("inf", "∞")


def _row(name: str, value: str, fine: bool, more: str) -> str:
    style = "" if fine else "color:#c92a2a;font-weight:600"
    return (
        f'<tr style="{style}"><td style="padding-right:10px;word-break:break-all">{escape(name)}</td>'
        f'<td style="text-align:right;font-variant-numeric:tabular-nums">{value}</td>'
        f'<td style="padding-left:10px;color:#868e96;white-space:nowrap">{more}</td></tr>'
    )


def _table(title: str, rows: list[str]) -> str:
    if not rows:
        return ""
    head = f'<div style="color:#495057;font-weight:600;padding:8px 0 2px">{title}</div>'
    body = f'<table style="border-collapse:collapse;width:100%">{"".join(rows)}</table>'
    return f'<div style="padding:0 14px;font-size:0.78em;line-height:1.5">{head}{body}</div>'
