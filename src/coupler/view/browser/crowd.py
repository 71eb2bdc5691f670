"""Many robots of a rollout side by side, which move together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model import ModelError, Robot
from coupler.simulate import Rollout
from coupler.view.browser.robot_scene import dress, linear_rgb, wxyz_of
from coupler.view.browser.server import LOOPBACK, PORT, started
from coupler.view.browser.transport import Transport
from coupler.view.browser.viewer import Viewer, dress_panel
from coupler.view.figure import Figure

if TYPE_CHECKING:
    from viser import ViserServer

MOST = 64  # robots that are shown
_APART = 0.9  # times their largest extent


class Crowd:
    """Robots on a grid that play a rollout; each body is drawn for all of them at once.

    Attributes:
        figure: what each robot looks like.
        transport: the time that is shown, and whether it is playing.
    """

    def __init__(self, server: ViserServer, figure: Figure, rollout: Rollout) -> None:
        """Adds the robots to the scene and a panel to the current container, and plays."""
        self.figure, self._server, self._row = figure, server, -1
        q = np.asarray(rollout.q, float).reshape(-1, *rollout.q.shape[-2:])
        self._chosen = np.unique(np.linspace(0, len(q) - 1, min(len(q), MOST)).astype(int))
        self._q, self._times = _last_where_stopped(q[self._chosen], figure.robot), rollout.times
        self._offsets = self._grid()
        self._bodies = [(solid, self._instances(k, solid)) for k, solid in enumerate(figure.solids)]
        shown = f"{len(self._chosen)} of {len(q)} robots" if len(q) > len(self._chosen) else f"{len(q)} robots"
        server.gui.add_markdown(f"**{shown}**, side by side; those that stopped stay where they were")
        self.transport = Transport(server.gui, float(self._times[0]), float(self._times[-1]), self._show)
        self.transport.run()

    def stop(self) -> None:
        self.transport.stop()

    def _grid(self) -> np.ndarray:
        """The shift of each robot to its place on the grid, (robots, 3), m."""
        size = _APART * self.figure.size
        columns = int(np.ceil(np.sqrt(len(self._q))))
        across = [axis for axis in np.eye(3) if not (axis @ self.figure.up)]
        rows = [divmod(k, columns) for k in range(len(self._q))]
        return size * np.array([i * across[0] + j * across[1] for i, j in rows])

    def _instances(self, k: int, solid: Any) -> Any:
        colour = self.figure.colours(self.figure.default_colouring())[k]
        return self._server.scene.add_batched_meshes_simple(
            f"/robots/{k}",
            solid.surface.vertices,
            solid.surface.triangles,
            np.tile([1.0, 0.0, 0.0, 0.0], (len(self._q), 1)),
            np.zeros((len(self._q), 3)),
            batched_colors=linear_rgb(colour),
            flat_shading=solid.flat,
            side="double" if solid.flat else "front",
        )

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest coordinates of all, 3 each, m."""
        low, high = self.figure.bounds(self.figure.poses(self._q[0, 0]))
        return low + self._offsets.min(axis=0), high + self._offsets.max(axis=0)

    def _show(self, time: float, playing: bool) -> None:
        row = int(np.searchsorted((self._times[1:] + self._times[:-1]) / 2, time))
        if row == self._row:
            return
        self._row = row
        poses = self.figure.poses(self._q[:, row])
        with self._server.atomic():
            for solid, instances in self._bodies:
                T = self.figure.pose(poses, solid.body)
                instances.batched_wxyzs = wxyz_of(T).astype(np.float32)
                instances.batched_positions = (T[:, :3, 3] + self._offsets).astype(np.float32)


def _last_where_stopped(q: np.ndarray, robot: Robot) -> np.ndarray:
    """States, (robots, T, nq), in which a robot that stopped stays where it was."""
    q = q.copy()
    for states in q:
        finite = np.isfinite(states).all(axis=1)
        if not finite.any():
            states[:] = robot.neutral()
        elif not finite.all():
            rows = np.maximum.accumulate(np.where(finite, np.arange(len(states)), 0))
            states[:] = states[rows]
    return q


def crowd_viewer(robot: Robot, rollout: Rollout, host: str = LOOPBACK, port: int = PORT) -> Viewer:
    """Up to 64 robots of a rollout, side by side."""
    if rollout.q.shape[-1] != robot.nq or not rollout.q.size:
        raise ModelError(f"the rollout has states of {rollout.q.shape}, which are not those of {robot.name!r}")
    server = started(host, port)
    figure = Figure(robot)
    dress_panel(server, robot)
    crowd = Crowd(server.viser, figure, rollout)
    dress(server.viser, figure, *crowd.bounds())
    return Viewer(server, robot, crowd)
