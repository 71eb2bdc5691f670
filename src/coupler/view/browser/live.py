"""A running simulation in the browser: pause, single steps, reset; bodies are pulled; gravity and friction change."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.kinematics import body_poses
from coupler.model import ModelError
from coupler.simulate import Simulation
from coupler.simulate.control import Acting, Control, Controller
from coupler.view.arrows import metres_per_newton
from coupler.view.browser.overlays import Overlays
from coupler.view.browser.robot_scene import RobotScene, rgb
from coupler.view.browser.server import LOOPBACK, PORT, started
from coupler.view.browser.transport import SPEEDS, speed_of
from coupler.view.browser.viewer import Viewer, scene_of, tabbed_viewer
from coupler.view.figure.colours import ACCENT
from coupler.view.pulling import GRAVITY, Pull

if TYPE_CHECKING:
    from viser import ViserServer

_FRAME = 1.0 / 30.0  # s
_BUSY = 0.8  # of a frame: what steps may take, so that the picture still moves


class Live:
    """Runs a simulation in a thread, in real time or as near to it as the machine allows.

    Attributes:
        simulation: the simulation.
        running: whether it is running, not paused.
        pull: the spring by which a user pulls; None if there is none.
        wrong: why the simulation stopped, until it runs again.
    """

    def __init__(self, server: ViserServer, scene: RobotScene, simulation: Simulation, control: Control) -> None:
        """Adds the simulation's panel to the current tab, and runs."""
        self.simulation, self.running, self.pull = simulation, True, None
        self._scene, self._server, self._control = scene, server, control
        self._asked: deque[Callable[[], None]] = deque()  # by browsers, to be done between two steps
        self._speed, self._stopped, self._times = 1.0, threading.Event(), 0.0
        self.wrong = ""
        robot, size = simulation.robot, scene.figure.size
        self._extra = np.zeros(3)  # gravity beyond the robot's own, m/s²
        self._masses = np.array([body.mass for body in robot.bodies.values()])
        self._centres = np.array([body.centre for body in robot.bodies.values()]).reshape(-1, 3)
        self.overlays = Overlays(server, size, metres_per_newton(robot, size, robot.mass * GRAVITY))
        self._band = server.scene.add_line_segments(
            "/pull", np.zeros((1, 2, 3)), rgb(ACCENT), thickness=0.008 * size, visible=False
        )
        self._add_controls()
        scene.on_drag(self._dragged)
        self._thread = threading.Thread(target=self._run, name="coupler-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def run(self, running: bool) -> None:
        """Continues or pauses."""
        self.running, self.wrong = running, ""
        self.button.label = "Pause" if running else "Run"

    # What browsers ask for, done by the thread that steps

    def _add_controls(self) -> None:
        gui, robot = self._server.gui, self.simulation.robot
        self.button = gui.add_button("Pause")
        self.button.on_click(lambda _: self.run(not self.running))
        buttons = gui.add_button_group(" ", ("step", "reset"))
        buttons.on_click(
            lambda event: self._asked.append(self._single if event.target.value == "step" else self._reset)
        )
        speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1 ×")
        speed.on_update(lambda event: setattr(self, "_speed", speed_of(event.target.value)))
        strength = float(-robot.gravity @ self._scene.figure.up)
        low, high = min(0.0, strength), max(20.0, strength)
        gravity = gui.add_slider("Gravity (m/s²)", low, high, 0.01, round(strength, 2))
        gravity.on_update(lambda event: self._set_gravity(float(event.target.value)))
        if self.simulation.contacts:
            friction = gui.add_slider("Friction", 0.0, 2.0, 0.05, min(self._friction(), 2.0), hint="of all contacts")
            friction.on_update(lambda event: self._asked.append(lambda: self._set_friction(float(event.target.value))))
            for name, text in (("points", "Contact points"), ("forces", "Contact forces")):
                box = gui.add_checkbox(text, True)
                box.on_update(lambda event, name=name: setattr(self.overlays, name, bool(event.target.value)))
        gui.add_markdown("Drag a body to pull it.")
        self.status = gui.add_html("")

    def _single(self) -> None:
        self.run(False)
        self._step()

    def _reset(self) -> None:
        self.pull, self.wrong = None, ""
        self.simulation.reset()

    def _set_gravity(self, strength: float) -> None:
        gravity, up = self.simulation.robot.gravity, self._scene.figure.up
        self._extra = -(strength + gravity @ up) * up  # what it has across stays

    def _friction(self) -> float:
        coefficients = [s.friction for s in self.simulation.robot.shapes if s.friction is not None and s.touches]
        return max(coefficients, default=self.simulation.options.friction)

    def _set_friction(self, coefficient: float) -> None:
        """Continues with another simulation, which has to be compiled first."""
        if self._asked:
            return  # a slider that is moved asks for many
        self._tell("compiling …")
        old = self.simulation
        shapes = tuple(replace(s, friction=coefficient) if s.touches else s for s in old.robot.shapes)
        options = {field.name: getattr(old.options, field.name) for field in fields(old.options)}
        options |= {"friction": coefficient}
        new = Simulation(replace(old.robot, shapes=shapes), **options)
        first = copy(old)
        first.reset()
        new.reset(first.q, first.v)  # where it goes back to
        new.restore(old.state)
        self.simulation = new

    def _dragged(self, body: str, event: Any) -> None:
        if event.phase == "end":
            self.pull = None
        elif event.phase == "start" or self.pull is None:
            grabbed = np.array(event.start_position)
            self._asked.append(lambda: self._grab(body, grabbed, np.array(event.end_position)))
        else:
            self.pull.target = np.array(event.end_position)

    def _grab(self, body: str, grabbed: np.ndarray, target: np.ndarray) -> None:
        simulation = self.simulation
        try:
            pull = Pull(simulation.robot, simulation.q, body, grabbed, self._scene.figure.size, simulation.step_size)
        except ModelError as error:  # at a singular pose
            self.wrong = str(error)
            return
        self.wrong, pull.target, self.pull = "", target, pull

    # The thread

    def _run(self) -> None:
        self._warm_up()
        owed = 0.0
        while not self._stopped.is_set():
            start = time.monotonic()
            while self._asked:
                self._asked.popleft()()
            owed = min(owed + self._speed * _FRAME, 4.0 * _FRAME * self._speed) if self.running else 0.0
            taken = 0
            while owed >= self.simulation.step_size and self.running and time.monotonic() - start < _BUSY * _FRAME:
                self._step()
                owed -= self.simulation.step_size
                taken += 1
            passed = taken * self.simulation.step_size / _FRAME
            self._times += 0.1 * (passed - self._times)
            self._show()
            self._stopped.wait(max(_FRAME - (time.monotonic() - start), 0.001))

    def _warm_up(self) -> None:
        """Compiles the step, with and without forces on bodies, before they are needed."""
        self._tell("compiling …")
        trial = copy(self.simulation)
        try:
            acting = self._acting(trial)
            for forces in (acting.f_ext, np.zeros((len(self._masses), 6))):
                trial.step(acting.tau, forces, motors=acting.motors, rates=acting.rates)
        except ModelError:
            return  # the first step reports it

    def _acting(self, simulation: Simulation) -> Acting:
        """The forces and controls that the user's controllers return."""
        try:
            return self._control.at(simulation.time, simulation.q, simulation.v)
        except Exception as error:
            raise ModelError(f"the controller raised {type(error).__name__}: {error}") from error

    def _step(self) -> None:
        simulation = self.simulation
        try:
            acting = self._acting(simulation)
            forces = [f for f in (acting.f_ext, self._weights(), self._pulled()) if f is not None]
            total = np.sum(forces, axis=0) if forces else None
            simulation.step(acting.tau, total, motors=acting.motors, rates=acting.rates)
        except ModelError as error:
            self.run(False)
            self.wrong = str(error)
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)

    def _pulled(self) -> np.ndarray | None:
        pull = self.pull
        return None if pull is None else pull.force(self.simulation.q, self.simulation.v)

    def _weights(self) -> np.ndarray | None:
        """Forces on bodies, (bodies, 6), by which the chosen gravity differs from the robot's own; None for none."""
        if not self._extra.any():
            return None
        T = body_poses(self.simulation.robot, self.simulation.q)
        centres = np.einsum("bij,bj->bi", T[:, :3, :3], self._centres) + T[:, :3, 3]
        force = self._masses[:, None] * self._extra
        return np.concatenate([np.cross(centres, force), force], axis=1)

    def _show(self) -> None:
        simulation, pull = self.simulation, self.pull
        try:
            poses = self._scene.figure.poses(simulation.q)
        except ModelError:
            return  # not finite; the message says so already
        with self._server.atomic():
            self._scene.show(poses)
            forces = simulation.contact_forces
            pressed = np.linalg.norm(forces, axis=1) > 0.0
            points = simulation.contact_points
            self.overlays.show_forces(points[pressed], forces[pressed])
            self._band.visible = pull is not None
            if pull is not None:
                self._band.points = pull.ends(simulation.q)[None].astype(np.float32)
        self._tell(f"{self._times:.2g} × real time" if self.running else "paused")

    def _tell(self, text: str) -> None:
        status, loops = self.simulation.status, self.simulation.robot.loop_errors(self.simulation.q).values()
        lines = [f"<b>{self.simulation.time:.3f} s</b> &nbsp; {text}"]
        if self.simulation.contacts:
            lines.append(f"{status.contacts} contacts press, laws kept to {status.residual:.1e} m/s")
        if loops:
            lines.append(f"loops closed to {float(np.max(list(loops))):.1e} m or rad")
        if self.wrong:
            lines.append(f'<span role="alert" style="color:#c92a2a">{escape(self.wrong)}</span>')
        self.status.content = f'<div style="padding:4px 14px;font-size:0.85em">{"<br>".join(lines)}</div>'


def live_viewer(
    simulation: Simulation,
    controller: Controller | None = None,
    motors: Any = None,
    host: str = LOOPBACK,
    port: int = PORT,
) -> Viewer:
    """A viewer of a simulation that runs while it is watched."""
    server = started(host, port)
    scene = scene_of(server, simulation.robot, simulation.q[None])
    control = Control(controller, motors)
    return tabbed_viewer(server, scene, "Run", lambda: Live(server.viser, scene, simulation, control))
