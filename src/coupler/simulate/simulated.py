"""The state of a simulation, and what its last step did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.step.drives import controls_of
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.model.wording import clipped, counted
from coupler.simulate.engine import Engine, engine_of
from coupler.simulate.options import SimulationOptions
from coupler.simulate.start_warnings import warn_of_overlaps_in
from coupler.simulate.states import SimulationState
from coupler.simulate.status import StepStatus, solved_within
from coupler.simulate.step_watch import StepWatch


class Simulated:
    """The state of a simulation, and what its last step did.

    Attributes:
        robot: the robot that moves.
        options: how it is simulated.
        step_size: the length of a step, h, s.
        contacts: the names of all candidate contacts.
    """

    robot: Robot
    options: SimulationOptions
    _engine: Engine
    _first: np.ndarray  # the state that `reset` returns to
    _last_result: np.ndarray | None  # the result of the last step; None if there was none
    _runs = False  # whether `run` is active, which watches the energy itself
    _due: float  # the number of steps at which the energy is checked next

    def _attach_engine(self) -> None:
        """Sets everything that follows from robot and options."""
        robot, engine = self.robot, engine_of(self.robot, self.options)
        self._engine, self._fast_step, self._fast_motor_step = engine, engine.fast_step, engine.fast_motor_step
        self.step_size, self.contacts = engine.step, engine.contacts
        self._nq, self._nq_nv, self._size = robot.nq, robot.nq + robot.nv, engine.layout.state
        self._no_forces, self._actuators = np.zeros(robot.nv), len(robot.actuators)
        self._control = np.zeros(controls_of(robot))
        self._watch = StepWatch(engine)

    def __repr__(self) -> str:
        contacts = counted(len(self.contacts), "possible contact")
        return f"<Simulation of {self.robot.name!r} at {self.time:.6g} s, step {self.step_size:g} s, {contacts}>"

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickling: everything but the compiled step, which a copy shares or compiles again."""
        compiled = ("_engine", "_fast_step", "_fast_motor_step", "_watch")
        return {name: value for name, value in vars(self).items() if name not in compiled}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._attach_engine()
        self._watch_from_here()

    @property
    def left_out(self) -> dict[str, str]:
        """Pairs of shapes that may not touch, by name, and why; see docs/contact.md.

        They overlap in the neutral pose, or never came near each other in poses within joint limits. A pair that
        `contacts` names in full always may touch.
        """
        return self._engine.selection.left_out

    # State

    @property
    def time(self) -> float:
        """The time since the start, s."""
        return self._steps * self.step_size

    @property
    def q(self) -> np.ndarray:
        """The configuration, (nq,). Assign a whole, closed one; single entries are read-only."""
        return _read_only(self._state[: self._nq])

    @q.setter
    def q(self, q: Any) -> None:
        self._put(numbers("q", q, (self._nq,)), self.v)

    @property
    def v(self) -> np.ndarray:
        """The velocity, (nv,). Assign a whole one; single entries are read-only."""
        return _read_only(self._state[self._nq : self._nq_nv])

    @v.setter
    def v(self, v: Any) -> None:
        self._put(self.q, numbers("v", v, (self._nq_nv - self._nq,)))

    def _put(self, q: np.ndarray, v: np.ndarray) -> None:
        """Replaces the state at the present time, as if nothing had touched before."""
        self._continue_from(self._engine.start(q, v), self._steps)

    def _continue_from(self, state: np.ndarray, steps: int) -> None:
        """Continues from a state after a number of steps, without a last result."""
        self._state = self._before = state  # now, and before the last step
        self._steps, self._last_result = steps, None
        self._watch_from_here()

    def _watch_from_here(self) -> None:
        """Starts to watch the energy, unless a run does so."""
        self._watch.begin(self._steps)
        self._due = np.inf if self._runs else self._watch.due

    @property
    def state(self) -> SimulationState:
        """A copy of everything that the simulation's future depends on."""
        return SimulationState(self._steps, self._state.copy())

    def restore(self, state: SimulationState) -> None:
        """Continues from a state of this or an equal simulation, bit for bit."""
        if not isinstance(state, SimulationState):
            raise ModelError(f"state must be a SimulationState, as `simulation.state` is one, got {clipped(state)}")
        if np.shape(state.values) != (self._size,):
            raise ModelError(
                f"state has {np.size(state.values)} values, and this simulation of robot {self.robot.name!r} needs "
                f"{self._size}: it comes from another robot or other options"
            )
        values = numbers("state: its values", state.values, (self._size,))
        self._continue_from(values, state.steps)

    def reset(self, q: Any = None, v: Any = None) -> None:
        """Goes back to the start, or starts from another state."""
        if q is not None or v is not None:
            q = self._first[self._engine.layout.places["q"]] if q is None else q
            self._first = self._engine.start(q, v)
            warn_of_overlaps_in(self._engine, self._first[: self._nq])
        self._continue_from(self._first.copy(), 0)

    # What the last step did

    @property
    def gaps(self) -> np.ndarray:
        """(contacts,), the distance between the two shapes of each contact before the last step, m.

        It is negative for overlapping shapes, and infinite before the first step. For shapes that could not touch
        within the step, it is the distance between balls around them; the true one is larger.
        """
        return self._last("gaps", np.full(len(self.contacts), np.inf))

    @property
    def contact_forces(self) -> np.ndarray:
        """(contacts, 3), forces in the last step on the first body of each pair, along the world's axes, N."""
        return self._at_contacts(self._engine.forces, 0.0)

    @property
    def contact_points(self) -> np.ndarray:
        """(contacts, 3), where contacts were before the last step, in the world, m; NaN if there was none."""
        return self._at_contacts(self._engine.points, np.nan)

    @property
    def contact_moments(self) -> np.ndarray:
        """(contacts, 3), moments of torsion and rolling friction on first bodies, about the contact points, N m."""
        return self._at_contacts(self._engine.moments, 0.0)

    @property
    def residual(self) -> float:
        """The violation of the laws of contact in the last step, m/s."""
        return float(self._last("residual", np.zeros(1))[0])

    @property
    def status(self) -> StepStatus:
        """How the contacts of the last step were solved."""
        names = ("residual", "touching", "sweeps", "iterations", "rounds")
        residual, *counts = (float(self._last(name, np.zeros(1))[0]) for name in names)
        contacts, sweeps, iterations, rounds = (int(count) for count in counts)
        solved = bool(residual <= solved_within(self.options.tolerance, self._speed()))
        jammed = float(self._last("jammed", np.zeros(1))[0])
        return StepStatus(residual, contacts, sweeps, iterations, rounds, solved, jammed)

    def _speed(self) -> float:
        """The largest entry of joint velocities in the last step, m/s or rad/s."""
        places = self._engine.layout.places
        speeds = [np.abs(state[places["v"]]).max(initial=0.0) for state in (self._before, self._state)]
        return float(max(speeds))

    @property
    def motor_forces(self) -> np.ndarray:
        """(actuators,), forces of actuators in the last step, servos included, within effort limits; N m or N."""
        layout = self._engine.motor_layout
        if self._last_result is None or len(self._last_result) != layout.size:
            return np.zeros(self._actuators)
        return self._last_result[layout.places["motors"]].copy()

    def _at_contacts(self, quantity: Callable[[np.ndarray], np.ndarray], default: float) -> np.ndarray:
        """(contacts, 3): a quantity of the last step; the default if there was none."""
        if self._last_result is None:
            return np.full((len(self.contacts), 3), default)
        return quantity(self._last_result)

    def _last(self, name: str, default: np.ndarray) -> np.ndarray:
        return default if self._last_result is None else self._last_result[self._engine.layout.places[name]]


def _read_only(view: np.ndarray) -> np.ndarray:
    view.flags.writeable = False
    return view
