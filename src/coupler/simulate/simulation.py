"""A robot that moves and touches, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from coupler.kinematics import frame_pose
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers, positive_integer
from coupler.model.wording import clipped, listed
from coupler.simulate.control import Control, Controller
from coupler.simulate.energy_watch import EnergyWatch, known_gain
from coupler.simulate.log_rows import Rows
from coupler.simulate.logs import Log, LogWriter
from coupler.simulate.options import Rebound, SimulationOptions, Turning
from coupler.simulate.progress import Progress
from coupler.simulate.simulated import Simulated
from coupler.simulate.start_warnings import warn_if_it_can_only_fall, warn_of_overlaps_in, warn_of_selection
from coupler.simulate.states import SimulationError
from coupler.simulate.status import Unsolved


class Simulation(Simulated):
    """Moves a robot in time steps of fixed length, with contact, joint limits and dry friction of joints. [002, §2.3]

        robot = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
        simulation = coupler.Simulation(robot, step=1e-3)
        log = simulation.run(2.0, lambda t, q, v: tau)

    By default, steps are of second order and keep energy while nothing touches (see docs/simulation.md), and bodies in
    contact do not overlap. After each step loops are closed, and quaternions have unit length.

    A simulation can be copied and pickled; the copy goes on from the same state, bit for bit. Copies in one process
    share compiled code; another process compiles it again, or reads it from disk.

    Attributes:
        robot: the robot that moves.
        options: how it is simulated.
        step_size: the length of a step, h, s.
        contacts: the names of all candidate contacts.
    """

    def __init__(
        self,
        robot: Robot,
        step: float = SimulationOptions.step,
        *,
        q: Any = None,
        v: Any = None,
        contacts: str | Iterable[str] = SimulationOptions.contacts,
        integrator: str = SimulationOptions.integrator,
        friction: float = SimulationOptions.friction,
        restitution: Rebound = SimulationOptions.restitution,
        torsion: Turning = SimulationOptions.torsion,
        rolling: Turning = SimulationOptions.rolling,
        penetration: str | float | None = SimulationOptions.penetration,
        recovery: float = SimulationOptions.recovery,
        limits: bool = SimulationOptions.limits,
        tolerance: float = SimulationOptions.tolerance,
        sweeps: int = SimulationOptions.sweeps,
    ) -> None:
        """Compiles nothing yet; the first step does.

        Args:
            robot: the robot, with shapes or contact points, and something on the ground to touch, such as `with_floor`
                adds.
            step: the length of a step, h, s.
            q, v: (nq,) and (nv,), the state to start from; at rest if v is not given. Without q, the neutral
                configuration, in which floating bodies are raised until nothing is below a floor or a terrain.
            contacts: names of shapes, contact points or pairs that may touch, or patterns such as "*foot*" and "*foot*
                on floor"; all by default. Shapes without a name are called after their bodies. Pairs that cannot touch,
                or overlap in the neutral pose, are left out, unless one is named in full: see `left_out`.
            integrator: "midpoint", of second order while nothing touches, which conserves energy; "euler", of first
                order; "rk4", of fourth order while nothing touches, third at contacts without friction, and second with
                it; or "trapezoid", of second order in all of these cases: see docs/simulation.md.
            friction: the coefficient of pairs in which neither shape has one.
            restitution: how contacts rebound; by default not at all. A number is the coefficient of the normal
                velocity. Or a mapping from patterns such as "*ball*" and "*ball* on floor", of which the first that
                matches a pair counts. Joints do not rebound from their limits.
            torsion: how contacts resist spin about their normals: the largest moment over the normal force, m; by
                default as their shapes say. Or a mapping from patterns, like restitution.
            rolling: how contacts resist rolling, rotation about their tangents, likewise.
            penetration: how overlaps count: "position", in full; "velocity", as touching, so that they do not grow;
                "limited", as at most 1e-5 m, so that they shrink slowly; or another such limit. By default "position";
                but for "rk4" and "trapezoid", which leave more overlap, as at most g h², so that it does not come back
                before gravity does; without gravity, as touching. [002, §4.1]
            recovery: the largest speed at which overlapping shapes at rest part, m/s; revolute joints return from
                beyond a limit ten times as fast, rad/s. Infinite for no bound.
            limits: whether joints stop at their limits.
            tolerance: how exactly contacts satisfy their laws, m/s: what the solver aims at; see `StepStatus.solved`.
            sweeps: the largest number of sweeps of the contact solver in a step.

        Raises:
            ModelError: for a step that is not above zero, an invalid state, contacts that do not exist, or more
                contacts than a step can handle.
        """
        self.options, self.robot = SimulationOptions.among(locals()), robot
        self._attach_engine()
        if robot.given is not None and robot.given.packed.ndim > 1:
            batch = robot.given.packed.shape[:-1]
            raise ModelError(f"parameters must be those of one robot; a batch of {batch} is for coupler.rollout")
        self._first = self._engine.start(q, v)
        if self._first.ndim > 1:
            raise ModelError(f"q and v must be one state; a batch of {self._first.shape[:-1]} is for coupler.rollout")
        warn_if_it_can_only_fall(self._engine)
        warn_of_selection(self._engine)
        warn_of_overlaps_in(self._engine, self._first[self._engine.layout.places["q"]])
        self.reset()

    # Motion

    def step(self, tau: Any = None, f_ext: Any = None, *, motors: Any = None, rates: Any = None) -> None:
        """Takes one step.

        Args:
            tau: (nv,), forces at independent joints, held over the step; none, if not given.
            f_ext: (bodies, 6), forces on bodies along the world's axes about its origin, as `wrench` gives; none, if
                not given.
            motors: (actuators,), the control of each of `robot.actuators`, or a mapping from their names: the force of
                a motor, the target of a servo, held over the step. If not given, no actuator acts.
            rates: (actuators,), or by name, how fast the targets of position servos move; zero, if not given.

        Warns once if energy grows without work, which is checked now and then; `run` checks every step.

        Raises:
            ModelError: for forces of a wrong shape or that are not finite, and where a step is not possible.
        """
        if tau is None:
            tau = self._no_forces
        if motors is None and rates is None:
            result = self._fast_step(self._state, tau) if f_ext is None else None
            if result is None:
                result = self._advance(tau, f_ext)
                self._fast_step = self._engine.fast_step  # compiled by now
        else:
            result = self._driven(tau, f_ext, motors, rates)
        self._last_result, self._before = result, self._state
        self._state = result[: self._size]
        self._steps = steps = self._steps + 1
        if steps >= self._due:
            self._watch.look(steps, self._before, result, tau, f_ext)
            self._due = self._watch.due

    def _advance(self, tau: Any, f_ext: Any, controls: np.ndarray | None = None) -> np.ndarray:
        """The result of a step; if none is possible, the error also says whether energy had risen."""
        try:
            return self._engine.advance(self._state, tau, f_ext, controls)
        except ModelError as error:
            if self._runs or not (warning := self._watch.risen(self._state)):
                raise
            raise ModelError(f"{error}{warning}") from error

    def _driven(self, tau: Any, f_ext: Any, motors: Any, rates: Any) -> np.ndarray:
        """The result of a step in which actuators act."""
        if type(motors) is np.ndarray and motors.shape == (self._actuators,) and rates is None and f_ext is None:
            self._control[: self._actuators] = motors
            result = self._fast_motor_step(self._state, tau, self._control)
            if result is not None:
                return result
        if motors is None:
            raise ModelError("rates are the velocities of targets; give motors as well")
        result = self._advance(tau, f_ext, self._engine.controls(motors, rates))
        self._fast_motor_step = self._engine.fast_motor_step
        return result

    def wrench(
        self, body: str, force: Any = (0.0, 0.0, 0.0), at: Any = (0.0, 0.0, 0.0), moment: Any = (0.0, 0.0, 0.0)
    ) -> np.ndarray:
        """`f_ext`, (bodies, 6), with a force and a moment on one body.

        Args:
            body: the name of the body.
            force: 3, along the world's axes, N.
            at: 3, the point of application in the body's frame, m.
            moment: 3, along the world's axes, N m.
        """
        if not isinstance(body, str) or body not in self.robot.bodies:
            raise ModelError(
                f"robot {self.robot.name!r} has no body {clipped(body)}; it has {listed(self.robot.bodies, like=body)}"
            )
        force, at, moment = numbers("force", force, (3,)), numbers("at", at, (3,)), numbers("moment", moment, (3,))
        pose = frame_pose(self.robot, np.array(self.q), body)
        forces = np.zeros((len(self.robot.bodies), 6))
        about_origin = moment + np.cross(pose[:3, 3] + pose[:3, :3] @ at, force)
        forces[self.robot.body_names.index(body)] = [*about_origin, *force]
        return forces

    def run(
        self,
        duration: float,
        controller: Controller | None = None,
        *,
        motors: Any = None,
        log: str | Path | None = None,
        every: int = 1,
        record: str | Iterable[str] | None = None,
        dtype: Any = "float64",
        progress: bool | None = None,
        on_energy_gain: str = "stop",
    ) -> Log:
        """Simulates for some time.

        Args:
            duration: s, rounded to whole steps.
            controller: a function of (t, q, v), called before each step, that returns forces tau at independent joints,
                or tau and f_ext; None for none.
            motors: the same for actuators: a function that returns their controls, or controls and rates of targets
                (see `step`), or constant controls; None if no actuator acts.
            log: the file to which the log is written during the run, such as run.clog, so that memory holds no more
                than a second's rows; None keeps the log in memory. An npz file is written at the end.
            every: log one step of so many.
            record: the columns of the log to keep, such as ["q", "forces"]; all, if not given. Times are always kept.
            dtype: the type of the numbers in the log, "float64" or "float32".
            progress: whether a line on stderr shows the progress; by default for long runs on a terminal.
            on_energy_gain: what to do if energy grows without work done on the robot, as steps that are too long can
                cause: "stop", "warn" or "ignore". It is checked every ten steps, and when something gets twice as fast.

        Returns:
            The log: a row for the state before each logged step, with what acts in that step, and a last row for the
            state at the end, with what acted in the last step.

        Raises:
            SimulationError: if it cannot continue, with the time, and the log up to there; a file is kept.
        """
        steps = round(float(numbers("duration", duration, (), least=0.0)) / self.step_size)
        every = positive_integer("every", every)
        unsolved, watch = Unsolved(self.options.tolerance), EnergyWatch(self._engine, known_gain(on_energy_gain))
        with (
            LogWriter(log, self.robot, self.step_size, self.contacts, record=record, dtype=dtype) as writer,
            Progress(steps, self.step_size, progress) as shown,
        ):
            rows = Rows(writer, self._engine)
            try:
                self._runs, self._due = True, np.inf
                self._take_steps(steps, Control(controller, motors), rows, every, shown, unsolved, watch)
            except ModelError as error:
                rows.flush()
                writer.note = f"stopped at {self.time:.6g} s: {error}"
                writer.close_after(error)
                message = f"the run of robot {self.robot.name!r} stops at {self.time:.6g} s: {error}"
                raise SimulationError(message, self.time, writer.log()) from error
            finally:
                self._runs = False
                self._watch_from_here()
                rows.flush()
        unsolved.warn(self.robot, steps)
        return writer.log()

    def _take_steps(
        self,
        steps: int,
        control: Control,
        rows: Rows,
        every: int,
        shown: Progress,
        unsolved: Unsolved,
        watch: EnergyWatch,
    ) -> None:
        places, tau = self._engine.layout.places, None
        residual, jammed = places["residual"].start, places["jammed"].start
        for k in range(steps):
            time, state = self._steps * self.step_size, self._state
            tau, f_ext, motors, rates = control.at(time, self.q, self.v)
            self.step(tau, f_ext, motors=motors, rates=rates)
            assert self._last_result is not None
            unsolved.note(float(self._last_result[residual]), float(self._last_result[jammed]), time, self._speed)
            if k % every == 0:
                rows.add(time, state, tau, self._last_result)
            if watch.on:
                watch.note(k + 1, self.time, state, self._last_result, tau, f_ext)
            shown.update(k + 1)
        rows.add(self.time, self._state, tau, self._last_result)
