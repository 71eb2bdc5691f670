"""Steps of a robot in a scene, for one state and for batches, with errors that explain themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coupler.compiled import driven, inputs_given, on_bodies, remembered
from coupler.contact.pairs import pairs_of
from coupler.contact.scene import ContactScene
from coupler.contact.scheme import SCHEMES
from coupler.contact.selection import chosen, select
from coupler.contact.step.candidates import Candidates
from coupler.forks import cached_property
from coupler.kinematics import energies, kinetic_energy
from coupler.model import ModelError, Robot
from coupler.model.numbers import as_array, numbers
from coupler.model.robot import check_robot
from coupler.model.wording import in_state, index_of
from coupler.simulate.failures import why_not
from coupler.simulate.inputs import checked_controls, checked_forces
from coupler.simulate.options import SimulationOptions
from coupler.simulate.programs import StepPrograms
from coupler.simulate.standing import standing
from coupler.simulate.stiffness import check_stiffness

_LOOKED_AT = 64  # robots of a batch whose springs are checked before it starts


def engine_of(robot: Robot, options: SimulationOptions) -> Engine:
    """The engine of a robot for these options, made once and shared by all values of the robot's parameters."""
    check_robot(robot)
    if robot.given is None:
        return remembered(robot, (Engine, options), Engine, options)
    return remembered(robot.given.variant, (Engine, options), lambda _: Engine(robot, options)).of_robot(robot)


class Engine(StepPrograms):
    """Takes steps of one length of a robot that may touch things.

    Attributes:
        step: the length of a step, h, s.
        contacts: the names of all candidate contacts.
        selection: the pairs that may touch, and those that are left out.
    """

    def __init__(self, robot: Robot, options: SimulationOptions) -> None:
        if not robot.nv:
            raise ModelError(f"robot {robot.name!r} cannot move: it has no freedoms, so there is nothing to simulate")
        made_of, base = (robot, robot) if robot.given is None else (robot.given.variant, robot.given.base)
        named = chosen(pairs_of(made_of, **options.laws), options.contacts)
        self.selection = select(base, named, tuple(options.contacts), options.limits)
        scene = ContactScene(
            pairs=self.selection.pairs,
            step=options.step,
            tolerance=options.tolerance,
            sweeps=options.sweeps,
            limits=options.limits,
            penetration=options.penetration,
            integrator=options.integrator,
            recovery=options.recovery,
        )
        super().__init__(robot, scene, options)
        self.step, self.contacts = options.step, tuple(Candidates(robot, scene.pairs).names)

    def start(self, q: Any, v: Any) -> np.ndarray:
        """States to start from, (..., state), without impulses.

        Raises:
            ModelError: for a configuration that the robot cannot have.
        """
        state = self._start(*self.given(q, v))
        if state.size:
            self._check_stiffness(state.reshape(-1, state.shape[-1])[0, : self.robot.nq])
        return state

    def given(self, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """The user's configurations and velocities, or the defaults; not yet checked to be possible states.

        Raises:
            ModelError: for arguments of a wrong shape.
        """
        robot = self.robot
        if q is None:
            q = standing(robot, self.scene.pairs)
        given = {}
        for name, values, size in (("q", q, robot.nq), ("v", np.zeros(robot.nv) if v is None else v, robot.nv)):
            array = as_array(name, values)
            if array.dtype.kind not in "fiu" or array.shape[-1:] != (size,):
                numbers(name, values, (size,), batch=True)  # raises an error
            given[name] = np.array(array, dtype=float)
        q, v = given["q"], given["v"]
        try:
            np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        except ValueError:
            raise ModelError(
                f"q and v have leading dimensions {q.shape[:-1]} and {v.shape[:-1]}, which differ"
            ) from None
        return q, v

    def _start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """`start` for arrays of the right shape, which are checked to be possible states."""
        q, v = (numbers(*x, batch=True) for x in (("q", q, (self.robot.nq,)), ("v", v, (self.robot.nv,))))
        if q.size:
            self.robot.check_closed(q)
        return self.layout.start(self.robot, q, v)

    def start_batch(self, q: np.ndarray, v: np.ndarray, batch: tuple[int, ...]) -> tuple[np.ndarray, dict[int, str]]:
        """States of a batch to start from, (n, state), and why some are impossible, by their number.

        An impossible state is replaced by a possible one.

        Args:
            q, v: (..., nq) and (..., nv), which the batch's leading dimensions fit; see `given`.

        Raises:
            ModelError: if no state is possible.
        """
        count, size, reasons = math.prod(batch), self.layout.state, dict[int, str]()
        if self.robot.given is not None and self.robot.given.packed.ndim > 1:
            q, v = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v))
        try:
            states = np.ascontiguousarray(np.broadcast_to(self._start(q, v), (*batch, size))).reshape(count, size)
        except ModelError:
            if not batch:
                raise
            q, v = (np.broadcast_to(x, (*batch, x.shape[-1])).reshape(count, x.shape[-1]) for x in (q, v))
            states, reasons = self._start_those_that_are(q, v, batch)
        if count:
            self._check_stiffness(states[0, : self.robot.nq])
        return states, reasons

    def _start_those_that_are(
        self, q: np.ndarray, v: np.ndarray, batch: tuple[int, ...]
    ) -> tuple[np.ndarray, dict[int, str]]:
        """`start_batch` for (n, nq) and (n, nv) with some impossible states, which are found by halving."""
        states, reasons, parts = np.empty((len(q), self.layout.state)), dict[int, str](), [(0, len(q))]
        while parts:
            first, last = parts.pop()
            some = first if last == first + 1 else slice(first, last)
            try:
                states[some] = self.of_states(batch, some)._start(q[some], v[some])
            except ModelError as error:
                if last == first + 1:
                    reasons[first] = str(error)
                else:
                    middle = (first + last) // 2
                    parts += [(middle, last), (first, middle)]
        if len(reasons) == len(q):
            raise ModelError(f"no state is possible to start from{in_state(index_of(0, batch))}: {reasons[0]}")
        states[list(reasons)] = states[next(i for i in range(len(q)) if i not in reasons)]
        return states, reasons

    def _check_stiffness(self, q: np.ndarray, *, servos: bool = False) -> None:
        """Refuses springs, dampers and servos that are too stiff for explicit steps around a configuration."""
        if self.scene.integrator in SCHEMES:
            robot = self.robot
            batch = () if robot.given is None else robot.given.packed.shape[:-1]
            for i in range(min(math.prod(batch), _LOOKED_AT)):
                one = robot.of_states(batch, i) if batch else robot
                check_stiffness(one, q, self.step, self.scene.integrator, servos=servos)

    def controls(self, motors: Any, rates: Any = None, batch: tuple[int, ...] = ()) -> np.ndarray:
        """The controls of actuators as a step takes them; see `checked_controls`."""
        self.check_actuators()
        return checked_controls(self.robot, motors, rates, batch)

    def check_actuators(self) -> None:
        """Refuses `motors` for a robot without actuators, and servos that are too stiff for steps of several stages."""
        driven(self.robot, "motors: ")
        if not self.scene.implicit:
            _ = self._are_soft

    @cached_property
    def _are_soft(self) -> bool:
        """True, unless servos are too stiff for explicit steps in the neutral pose, which raises an error."""
        if any(actuator.servo for actuator in self.robot.actuators):
            self._check_stiffness(self.robot.neutral(), servos=True)
        return True

    def kinetic_energy(self, states: np.ndarray) -> np.ndarray:
        """(...,): the kinetic energy of states, J, also at dead points of loops."""
        q, v, w = (states[..., self.layout.places[name]] for name in ("q", "v", "w"))
        return kinetic_energy(self.robot, q, v, w if self.layout.loop_links else None)

    def energies(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(...,) each: kinetic and potential energy of states, J; NaN for impossible states."""
        q, v, w = (states[..., self.layout.places[name]] for name in ("q", "v", "w"))
        return energies(self.robot, q, v, w)

    def advance(self, state: np.ndarray, tau: Any, f_ext: Any = None, controls: np.ndarray | None = None) -> np.ndarray:
        """The result of a step, (..., layout.size): the next state first; see `Layout`.

        Args:
            state: (..., layout.state), the state before it.
            tau: (..., nv), forces at independent joints.
            f_ext: (..., bodies, 6), forces on bodies about the world's origin; None for none.
            controls: the controls of actuators, from `controls`; None if no actuator acts. With controls, the result
                has the layout `motor_layout`.

        Raises:
            ModelError: for arguments of a wrong shape or that are not finite, and where a step is not possible.
        """
        tau = checked_forces("tau", tau, state.shape[:-1], (self.robot.nv,))
        inputs = (state, tau) if controls is None else (state, tau, controls)
        if f_ext is not None:
            loads = checked_forces("f_ext", f_ext, state.shape[:-1], (len(self.robot.bodies), 6))
            inputs = (*inputs, on_bodies(self.robot, loads))
        if controls is None:
            result = self._run(self.executable if f_ext is None else self.executable_with_loads, *inputs)
        else:
            result = self._run_with_motors(*inputs, external=f_ext is not None)
        if not np.isfinite(result).all():
            raise ModelError(why_not(self, state, result, tau))
        return result

    def advance_batch(
        self, states: np.ndarray, tau: np.ndarray, result: np.ndarray, controls: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Takes a step of finite arrays with the leading dimensions of `room`, and writes it to `result`, for speed.

        Returns:
            A mask of the states that could not take the step; None if all did.
        """
        if controls is not None:
            self._run_with_motors(states, tau, controls, out=result)
        elif self.executable.fill(result, states, tau, *inputs_given(self.robot, self.executable)):
            return None
        if all(np.isfinite(result[..., self.layout.places[name]]).all() for name in ("v", "residual")):
            return None
        return np.logical_not(np.isfinite(result).all(axis=-1))

    def room(self, states: int, size: int) -> np.ndarray:
        """An array for `size` numbers of each state of a batch; see `Executable.room`.

        If states have their own parameters, it is an ordinary array.
        """
        return self.executable.room(states, size) if self.robot.given is None else np.empty((states, size))

    def forces(self, result: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): contact forces in a step on the first body of each pair, along the world's axes, N."""
        impulses = result[..., self.layout.places["impulses"]]
        return self._in_world(result, impulses[..., self.layout.contact_rows.first[:, None] + np.arange(3)])

    def moments(self, result: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): moments of torsion and rolling friction about the contact points, N m."""
        rows, impulses = self.layout.contact_rows, result[..., self.layout.places["impulses"]]
        moments = np.zeros((*result.shape[:-1], len(rows), 3))
        for contact, (first, width) in enumerate(zip(rows.first, rows.widths, strict=True)):
            moments[..., contact, : width - 3] = impulses[..., first + 3 : first + width]
        return self._in_world(result, moments)

    def _in_world(self, result: np.ndarray, impulses: np.ndarray) -> np.ndarray:
        """Forces along the world's axes, from impulses along the frames of contacts, (..., contacts, 3)."""
        frames = result[..., self.layout.places["frames"]].reshape(*result.shape[:-1], self.layout.contacts, 3, 3)
        return np.einsum("...ni,...nij->...nj", impulses, frames) / self.step

    def points(self, result: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): where contacts were before a step, in the world, m."""
        return result[..., self.layout.places["points"]].reshape(*result.shape[:-1], self.layout.contacts, 3)
