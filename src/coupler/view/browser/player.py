"""Plays a recording: play, pause, scrub, speed; contacts and paths of frames; plots with the same cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coupler.contact.pairs import FRICTION
from coupler.model import Robot
from coupler.simulate import Log
from coupler.view.browser.overlays import Overlays
from coupler.view.browser.plots import CursorPlots
from coupler.view.browser.robot_scene import RobotScene
from coupler.view.browser.server import LOOPBACK, PORT, started
from coupler.view.browser.transport import Transport
from coupler.view.browser.viewer import Viewer, scene_of, tabbed_viewer
from coupler.view.recording import Recording

if TYPE_CHECKING:
    from viser import ViserServer

_SEEN = 12  # states that the camera is placed for
_NOTHING = "nothing"


class Player:
    """Shows a recording over time.

    Attributes:
        recording: the recording.
        transport: the time that is shown, and whether it is playing.
        overlays: contacts and traces.
    """

    def __init__(self, server: ViserServer, scene: RobotScene, recording: Recording) -> None:
        """Adds the player's panel to the current tab, and plays."""
        self.recording, self._scene, self._server, self._row = recording, scene, server, -1
        self.overlays = Overlays(server, scene.figure.size, recording.force_scale(scene.figure.size))
        self.transport = Transport(server.gui, recording.start, recording.end, self._show)
        self._add_controls()
        self._plots = CursorPlots(server, recording)
        self.transport.run()

    def stop(self) -> None:
        self.transport.stop()

    def _add_controls(self) -> None:
        gui, recording = self._server.gui, self.recording
        if recording.points.shape[1]:
            with gui.add_folder("Contacts"):
                for name, text, hint in (
                    ("points", "Points", None),
                    ("forces", "Forces", None),
                    ("cones", "Friction cones", f"where no shape gives a coefficient, of {FRICTION:g}"),
                ):
                    box = gui.add_checkbox(text, getattr(self.overlays, name), hint=hint)
                    box.on_update(lambda event, name=name: self._set_overlay(name, bool(event.target.value)))
        names = (_NOTHING, *recording.robot.frame_names, *recording.robot.body_names)
        trace = gui.add_dropdown("Trace", tuple(dict.fromkeys(names)), hint="the way of a frame, contact point or body")
        trace.on_update(lambda event: self._trace(str(event.target.value)))
        if recording.log.note:
            gui.add_markdown(f"*ended early: {recording.log.note}*")

    def _set_overlay(self, name: str, shown: bool) -> None:
        setattr(self.overlays, name, shown)
        self._row = -1
        self.transport.wake()

    def _trace(self, name: str) -> None:
        self.overlays.trace(self.recording.traces([] if name == _NOTHING else [name]))

    def _show(self, time: float, playing: bool) -> None:
        row = self.recording.row(time)
        if row == self._row:
            return
        self._row = row
        with self._server.atomic():
            self._scene.show(self._scene.figure.poses(self.recording.q[row]))
            self.overlays.show(self.recording, row)
            self._plots.mark(float(self.recording.times[row]), playing)


def camera_states(recording: Recording) -> np.ndarray:
    """States of a recording that the camera has to see."""
    return recording.q[np.unique(np.linspace(0, len(recording.times) - 1, _SEEN).astype(int))]


def log_viewer(robot: Robot, log: Log, host: str = LOOPBACK, port: int = PORT) -> Viewer:
    """A viewer in which a robot plays a log."""
    recording = Recording.of(robot, log)
    server = started(host, port)
    scene = scene_of(server, robot, camera_states(recording))
    return tabbed_viewer(server, scene, "Play", lambda: Player(server.viser, scene, recording))
