"""Playing a recording: play, pause, scrub, speed; contacts and ways of frames; plots under the same cursor."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model import Robot
from coupler.simulate import Log
from coupler.view.browser.overlays import Overlays
from coupler.view.browser.plots import CursorPlots
from coupler.view.browser.scene import RobotScene
from coupler.view.browser.server import LOOPBACK, PORT, started
from coupler.view.browser.tree_panel import TreePanel
from coupler.view.browser.viewer import Viewer, scene_of
from coupler.view.recording import Recording

if TYPE_CHECKING:
    from viser import ViserServer

__all__ = ["Player", "camera_states", "log_viewer"]

_FRAMES = 30.0  # a second
_SPEEDS = ("0.05 ×", "0.1 ×", "0.25 ×", "0.5 ×", "1 ×", "2 ×", "4 ×")
_SEEN = 12  # states that the camera is placed for
_NOTHING = "nothing"


class Player:
    """Shows a recording over time.

    Attributes:
        recording: what is played.
        time: the time that is shown, s.
        playing: whether it goes on.
    """

    def __init__(self, server: ViserServer, scene: RobotScene, recording: Recording) -> None:
        """Adds its panel to the current tab, and plays."""
        self.recording, self._scene, self._gui = recording, scene, server.gui
        self.time, self.playing = recording.start, True
        self._speed, self._plots, self._row = 1.0, None, -1
        self._server, self._wake, self._stopped = server, threading.Event(), False
        self.overlays = Overlays(server, scene.figure.size, recording.force_scale(scene.figure.size))
        self._add_controls()
        self._thread = threading.Thread(target=self._run, name="coupler-player", daemon=True)

    def start(self, plots: CursorPlots) -> None:
        """Starts, with plots that follow."""
        self._plots = plots
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def seek(self, time: float) -> None:
        """Shows another time, s."""
        self.time = float(np.clip(time, self.recording.start, self.recording.end))
        self._wake.set()

    def play(self, playing: bool) -> None:
        """Goes on or pauses; at the end, starts again."""
        if playing and self.time >= self.recording.end:
            self.time = self.recording.start
        self.playing = playing
        self.button.label = "Pause" if playing else "Play"
        self._wake.set()

    def _add_controls(self) -> None:
        gui, recording = self._gui, self.recording
        self.button = gui.add_button("Pause")
        self.button.on_click(lambda _: self.play(not self.playing))
        span = max(recording.end - recording.start, 1e-6)
        self.slider = gui.add_slider(
            "Time (s)",
            round(recording.start, 4),
            round(recording.start + span, 4),
            float(10.0 ** np.floor(np.log10(span / 500.0))),
            round(recording.start, 4),
        )
        self.slider.on_update(self._scrubbed)
        speed = gui.add_dropdown("Speed", _SPEEDS, initial_value="1 ×")
        speed.on_update(lambda event: setattr(self, "_speed", float(str(event.target.value).split()[0])))
        self._loops = gui.add_checkbox("Play again at the end", True)
        if recording.points.shape[1]:
            with gui.add_folder("Contacts"):
                for name, text in (("points", "Points"), ("forces", "Forces"), ("cones", "Friction cones")):
                    box = gui.add_checkbox(text, getattr(self.overlays, name))
                    box.on_update(lambda event, name=name: self._set_overlay(name, bool(event.target.value)))
        names = (_NOTHING, *recording.robot.frame_names, *recording.robot.body_names)
        trace = gui.add_dropdown("Trace", tuple(dict.fromkeys(names)), hint="the way of a frame, contact point or body")
        trace.on_update(lambda event: self._trace(str(event.target.value)))
        if recording.log.note:
            gui.add_markdown(f"*ended early: {recording.log.note}*")

    def _scrubbed(self, event: Any) -> None:
        if event.client is not None:  # and not set by ourselves
            self.play(False)
            self.seek(float(event.target.value))

    def _set_overlay(self, name: str, shown: bool) -> None:
        setattr(self.overlays, name, shown)
        self._row = -1
        self._wake.set()

    def _trace(self, name: str) -> None:
        self.overlays.trace(self.recording.traces([] if name == _NOTHING else [name]))

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stopped:
            now = time.monotonic()
            if self.playing:
                self._advance(self._speed * min(now - last, 0.25))
            last = now
            self._show()
            self._wake.wait(1.0 / _FRAMES if self.playing else None)
            if self._wake.is_set() and not self.playing:
                last = time.monotonic()
            self._wake.clear()

    def _advance(self, seconds: float) -> None:
        self.time += seconds
        if self.time > self.recording.end:
            if self._loops.value:
                self.time = self.recording.start
            else:
                self.time = self.recording.end
                self.play(False)

    def _show(self) -> None:
        row = self.recording.row(self.time)
        if row == self._row:
            return
        self._row = row
        with self._server.atomic():
            self._scene.show(self._scene.figure.poses(self.recording.q[row]))
            self.overlays.show(self.recording, row)
            if abs(self.slider.value - self.time) > self.slider.step:
                self.slider.value = round(float(np.clip(self.time, self.slider.min, self.slider.max)), 4)
            if self._plots is not None:
                self._plots.mark(float(self.recording.times[row]), self.playing)


def camera_states(recording: Recording) -> np.ndarray:
    """States that a camera has to see."""
    return recording.q[np.unique(np.linspace(0, len(recording.times) - 1, _SEEN).astype(int))]


def log_viewer(robot: Robot, log: Log, host: str = LOOPBACK, port: int = PORT) -> Viewer:
    """A robot that plays a log."""
    recording = Recording.of(robot, log)
    server = started(host, port)
    scene = scene_of(server, robot, camera_states(recording))
    tabs = server.viser.gui.add_tab_group()
    with tabs.add_tab("Play"):
        player = Player(server.viser, scene, recording)
        plots = CursorPlots(server.viser, recording)
    with tabs.add_tab("Clusters"):
        TreePanel(server.viser, scene)
    player.start(plots)
    return Viewer(server, robot, player)
