"""The viewer: a robot in the browser, with panels for what is shown of it."""

from __future__ import annotations

import time
from html import escape
from typing import Any, Self

import numpy as np

from coupler.model import Robot
from coupler.model.numbers import numbers
from coupler.view.browser.pose_panel import PosePanel
from coupler.view.browser.scene import RobotScene, dress
from coupler.view.browser.server import LOOPBACK, PORT, Server, started
from coupler.view.browser.tree_panel import TreePanel
from coupler.view.figure import Figure
from coupler.view.posing import Posing

__all__ = ["Viewer", "pose_viewer", "scene_of"]


class Viewer:
    """A robot that is shown in browsers, until it is stopped.

        with coupler.view(robot) as viewer:
            viewer.wait()

    Attributes:
        url: the address to open.
        scene: the robot there.
    """

    def __init__(self, server: Server, scene: RobotScene, *running: Any) -> None:
        """Takes over a server.

        Args:
            server: the server.
            scene: the robot in its scene.
            running: what has to be stopped with it.
        """
        self.url, self.scene, self._server, self._running = server.url, scene, server, running

    def show(self, q: Any) -> None:
        """Shows a closed configuration, (nq,)."""
        q = numbers("q", q, (self.scene.figure.robot.nq,))
        self.scene.show(self.scene.figure.poses(q))

    def wait(self) -> None:
        """Waits until the process is interrupted."""
        while True:
            time.sleep(3600.0)

    def stop(self) -> None:
        """Stops the server; browsers keep the last picture."""
        for each in self._running:
            each.stop()
        self._running = ()
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Viewer of {self.scene.figure.robot.name!r} at {self.url}>"


def scene_of(server: Server, robot: Robot, around: np.ndarray | None = None) -> RobotScene:
    """A robot in a new scene, with light, ground and camera.

    Args:
        server: the server.
        robot: the robot.
        around: (n, nq), configurations that the camera sees; neutral, if not given.
    """
    figure = Figure(robot)
    scene = RobotScene(server.viser, figure)
    poses = figure.poses(robot.neutral()[None] if around is None else around)
    bounds = [figure.bounds(pose) for pose in poses]
    low, high = np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], axis=0)
    dress(server.viser, figure, low, high)
    server.viser.gui.set_panel_label(robot.name)
    server.viser.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(61, 125, 189))
    server.viser.gui.main_panel.dock_right()
    if figure.notes:
        text = "<br>".join(escape(note) for note in figure.notes)
        server.viser.gui.add_html(f'<div style="padding:4px 14px;font-size:0.75em;color:#868e96">{text}</div>')
    return scene


def pose_viewer(robot: Robot, q: Any = None, host: str = LOOPBACK, port: int = PORT) -> Viewer:
    """A robot with sliders for its independent coordinates, and its cluster tree."""
    posing = Posing(robot, q)
    server = started(host, port)
    scene = scene_of(server, robot, posing.q[None])
    posing = Posing(robot, q, scene.figure.size)
    tabs = server.viser.gui.add_tab_group()
    with tabs.add_tab("Pose"):
        pose = PosePanel(server.viser, posing, lambda q: scene.show(scene.figure.poses(q)))
    with tabs.add_tab("Clusters"):
        TreePanel(server.viser, scene)
    return Viewer(server, scene, pose)
