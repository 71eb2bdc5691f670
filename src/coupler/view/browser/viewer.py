"""The viewer: a robot in the browser, with panels for what is shown of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from typing import Any, Self

import numpy as np

from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.view.browser.pose_panel import PosePanel
from coupler.view.browser.robot_scene import RobotScene, dress
from coupler.view.browser.server import LOOPBACK, PORT, Server, started
from coupler.view.browser.tree_panel import TreePanel
from coupler.view.figure import Figure
from coupler.view.posing import Posing


class Viewer:
    """A viewer, which browsers can open until it is stopped.

        with coupler.view(robot) as viewer:
            viewer.wait()

    Attributes:
        url: the address to open.
        shown: what is shown: a `PosePanel`, `Player`, `Live` or `Crowd`.
    """

    def __init__(self, server: Server, robot: Robot, shown: Any) -> None:
        """Takes over a server and what it shows."""
        self.url, self.shown, self._server, self._robot = server.url, shown, server, robot

    def show(self, q: Any) -> None:
        """Shows a closed configuration, (nq,), and updates the sliders.

        Raises:
            ModelError: for a q that is not closed, or of a viewer in which the robot moves by itself.
        """
        if self.shown is None:
            raise ModelError("this viewer was stopped; coupler.view(robot) opens another")
        if not isinstance(self.shown, PosePanel):
            raise ModelError("the robot in this viewer moves by itself; coupler.view(robot) gives one to show poses in")
        q = numbers("q", q, (self._robot.nq,))
        self._robot.check_closed(q)
        self.shown.place(q)

    def wait(self) -> None:
        """Waits until the process is interrupted."""
        while True:
            time.sleep(3600.0)

    def stop(self) -> None:
        """Stops the server; browsers keep the last picture. A second time does nothing."""
        if self.shown is not None:
            self.shown.stop()
            self._server.stop()
            self.shown = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Viewer of {self._robot.name!r} at {self.url}>"


def scene_of(server: Server, robot: Robot, around: np.ndarray | None = None) -> RobotScene:
    """A robot in a new scene, with light, ground and camera.

    Args:
        around: (n, nq), configurations that the camera sees; neutral, if not given.
    """
    figure = Figure(robot)
    scene = RobotScene(server.viser, figure)
    poses = figure.poses(robot.neutral()[None] if around is None else around)
    bounds = [figure.bounds(pose) for pose in poses]
    low, high = np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], axis=0)
    dress(server.viser, figure, low, high)
    dress_panel(server, robot)
    if figure.notes:
        text = "<br>".join(escape(note) for note in figure.notes)
        server.viser.gui.add_html(
            f'<div style="padding:4px 14px;font-size:0.75em;color:#868e96;overflow-wrap:anywhere">{text}</div>'
        )
    return scene


def dress_panel(server: Server, robot: Robot) -> None:
    """Sets up the panel at the right, with the robot's name."""
    gui = server.viser.gui
    gui.set_panel_label(robot.name)
    gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(61, 125, 189))
    gui.main_panel.dock_right()


def pose_viewer(robot: Robot, q: Any = None, host: str = LOOPBACK, port: int = PORT) -> Viewer:
    """A viewer of a robot with sliders for its independent coordinates, and its cluster tree."""
    posing = Posing(robot, q)
    server = started(host, port)
    scene = scene_of(server, robot, posing.q[None])
    posing = Posing(robot, q, scene.figure.size)
    return tabbed_viewer(server, scene, "Pose", lambda: PosePanel(server.viser, posing, scene))


def tabbed_viewer(server: Server, scene: RobotScene, title: str, panel: Callable[[], Any]) -> Viewer:
    """A viewer with two tabs.

    Args:
        server: the server that shows the scene.
        scene: the robot in it.
        title: the title of the first tab; the second has the cluster tree.
        panel: adds what is shown to the first tab, and returns it.
    """
    tabs = server.viser.gui.add_tab_group()
    with tabs.add_tab(title):
        shown = panel()
    with tabs.add_tab("Clusters"):
        TreePanel(server.viser, scene)
    return Viewer(server, scene.figure.robot, shown)
