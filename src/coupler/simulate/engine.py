"""Compiled steps of a robot in a scene, for one state and for batches, with errors that explain themselves."""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.compiled import inputs_given, on_bodies, remembered
from coupler.contact.candidates import Candidates
from coupler.contact.drives import controls_of
from coupler.contact.pairs import pairs_of
from coupler.contact.proximity import Proximity
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.scheme import SCHEMES
from coupler.contact.selection import chosen, select
from coupler.contact.servos import may_yield
from coupler.contact.step_program import contact_step_program
from coupler.forks import cached_property
from coupler.graph import Executable, compile
from coupler.kinematics import energies, kinetic_energy
from coupler.model import ModelError, ModelWarning, Robot
from coupler.model.actuators import by_actuator, driven
from coupler.model.numbers import numbers
from coupler.model.wording import counted
from coupler.simulate.failures import why_not
from coupler.simulate.options import SimulationOptions
from coupler.simulate.overlaps import joint_overlaps, warn_of_overlaps
from coupler.simulate.standing import standing
from coupler.simulate.stiffness import check_stiffness

__all__ = ["Engine", "engine_of"]

_LOOKED_AT = 64  # robots of a batch whose springs are looked at before it starts
_MANY_CONTACTS = 64  # candidates, from which on their points and frames are most of what a step leads to


def engine_of(robot: Robot, options: SimulationOptions) -> Engine:
    """The engine of a robot for these options, made once, for all values of its parameters."""
    if robot.given is None:
        return remembered(robot, (Engine, options), Engine, options)
    return remembered(robot.given.variant, (Engine, options), lambda _: Engine(robot, options)).of_robot(robot)


class Engine:
    """A robot that may touch, in steps of one length.

    Attributes:
        robot: the robot that moves.
        step: the length of a step, h, s.
        scene: what a step takes into account.
        layout: where state and results of a step are in their vectors.
        contacts: the names of all candidate contacts.
        selection: the pairs that may touch, and those that are left out.
    """

    def __init__(self, robot: Robot, options: SimulationOptions) -> None:
        self.robot, self.step, self._options = robot, options.step, options
        if not robot.nv:
            raise ModelError(f"robot {robot.name!r} cannot move: it has no freedoms, and there is nothing to simulate")
        made_of, base = (robot, robot) if robot.given is None else (robot.given.variant, robot.given.base)
        named = chosen(pairs_of(made_of, **options.laws), options.contacts)
        self.selection = select(base, named, tuple(options.contacts), options.limits)
        pairs = self.selection.pairs
        self.scene = ContactScene(
            pairs=pairs,
            step=options.step,
            tolerance=options.tolerance,
            most=options.sweeps,
            limits=options.limits,
            penetration="position" if options.penetration is None else options.penetration,
            integrator=options.integrator,
            recovery=options.recovery,
        )
        self._made_of, self.layout = made_of, Layout(made_of, self.scene)
        self.contacts = tuple(Candidates(robot, pairs).names)

    def of_robot(self, robot: Robot) -> Engine:
        """The same for a robot that differs in the values of parameters alone."""
        other = copy(self)
        other.robot = robot
        return other

    def brief(self) -> Engine:
        """The same, if contacts are many, without their places in its results: batches have less to move."""
        if self.layout.contacts < _MANY_CONTACTS or self.scene.integrator in SCHEMES:
            return self
        other = copy(self)
        for name in [name for name in self.__dict__ if name.startswith("executable") or name == "motor_layout"]:
            del other.__dict__[name]  # which are made anew, and remembered
        other.scene = replace(self.scene, places=False)
        other.layout = remembered(self._made_of, (Layout, self._options), Layout, other.scene)
        return other

    def of_states(self, batch: tuple[int, ...], states: slice | int | np.ndarray) -> Engine:
        """The engine of some states of a batch, which may have parameters of their own; see `Robot.of_states`."""
        return self if self.robot.given is None else self.of_robot(self.robot.of_states(batch, states))

    def warn_if_it_can_only_fall(self) -> None:
        """Warns of a floating robot that can touch nothing."""
        held = {link for loop in self.robot.embedding.closure.loops for link in loop.links}
        floating = any(link.kind.floats and i not in held for i, link in enumerate(self.robot.tree.links))
        if floating and self.robot.gravity.any() and not self.layout.contacts:
            text = f"robot {self.robot.name!r} floats, and can touch nothing: robot.with_floor() adds a floor"
            warnings.warn(text, ModelWarning, stacklevel=3)

    @property
    def fast_step(self) -> Any:
        """(state, tau) → result of a step, or None where only `advance` can say: see `Executable.one`."""
        return self._fast(self.executable) if "executable" in self.__dict__ else _no_fast_step

    @property
    def fast_motor_step(self) -> Any:
        """(state, tau, controls) → the same of a step in which actuators act."""
        compiled = "executable_with_motors" in self.__dict__
        step = self._fast(self.executable_with_motors) if compiled else _no_fast_step
        if "executable_with_free_servos" not in self.__dict__:
            return step
        free = self._fast(self.executable_with_free_servos)

        def step_again(*vectors: Any) -> Any:
            result = free(*vectors)
            return step(*vectors) if result is None else result

        return step_again

    def _fast(self, executable: Executable) -> Any:
        one, given = executable.one, inputs_given(self.robot, executable)
        return (lambda *vectors: one(*vectors, *given)) if given else one

    @cached_property
    def executable(self) -> Executable:
        """(state, tau) → result of a step."""
        return self._compiled()

    @cached_property
    def executable_with_loads(self) -> Executable:
        """The same with f_ext as the last input."""
        return self._compiled(external=True)

    @cached_property
    def executable_with_motors(self) -> Executable:
        """(state, tau, controls) → result of a step in which actuators act."""
        return self._compiled(motors=True)

    @cached_property
    def executable_with_motors_and_loads(self) -> Executable:
        """The same with f_ext as the last input."""
        return self._compiled(motors=True, external=True)

    @cached_property
    def executable_with_free_servos(self) -> Executable:
        """The same as with motors, without a result where a servo of a single joint comes to a limit of its effort."""
        return self._compiled(motors=True, yielding=False)

    @cached_property
    def executable_with_free_servos_and_loads(self) -> Executable:
        """The same with f_ext as the last input."""
        return self._compiled(motors=True, yielding=False, external=True)

    def prepare(self, *, motors: bool) -> None:
        """Compiles a step, for threads that share it."""
        if not motors:
            _ = self.executable
        else:
            _ = self.executable_with_free_servos if self._may_yield else self.executable_with_motors

    @cached_property
    def _may_yield(self) -> bool:
        """Whether servos are first assumed to keep within their limits, which costs less than to look at these."""
        return self.scene.has_rows and may_yield(self.robot)

    def _run_with_motors(self, *vectors: np.ndarray, external: bool = False, out: np.ndarray | None = None) -> Any:
        """A step in which actuators act, of states of one batch; where servos are at limits, it is taken again."""
        if self._may_yield:
            free = self.executable_with_free_servos_and_loads if external else self.executable_with_free_servos
            result = self._run(free, *vectors, out=out)
            again = np.isnan(result[..., self.layout.places["residual"]][..., 0])
            if result.ndim > 1:
                if again.any():
                    own = self.of_states(again.shape, np.flatnonzero(again))
                    result[again] = own._run(self._with_motors(external), *(vector[again] for vector in vectors))
                return result
            if not again:
                return result
        return self._run(self._with_motors(external), *vectors, out=out)

    def _with_motors(self, external: bool) -> Executable:
        return self.executable_with_motors_and_loads if external else self.executable_with_motors

    def _compiled(self, **changes: bool) -> Executable:
        """A step; robots that differ in the values of parameters alone share it."""
        key = Engine, self._options, self.scene.places, tuple(changes)
        return remembered(self._made_of, key, _compiled_step, replace(self.scene, **changes))

    def _run(self, executable: Executable, *vectors: np.ndarray, out: np.ndarray | None = None) -> Any:
        return executable(*vectors, *inputs_given(self.robot, executable), out=out)

    @cached_property
    def motor_layout(self) -> Layout:
        """Where results of a step have what in which actuators act: all that `layout` has, and what these do."""
        return Layout(self._made_of, replace(self.scene, motors=True))

    def start(self, q: Any, v: Any) -> np.ndarray:
        """States to start from, (..., state), without impulses.

        Raises:
            ModelError: for a configuration that the robot cannot have.
        """
        robot = self.robot
        q = np.array(standing(robot, self.scene.pairs) if q is None else numbers("q", q, (robot.nq,), batch=True))
        v = np.zeros(robot.nv) if v is None else numbers("v", v, (robot.nv,), batch=True)
        try:
            shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        except ValueError:
            raise ModelError(
                f"q and v have leading dimensions {q.shape[:-1]} and {v.shape[:-1]}, which differ"
            ) from None
        if not shape:  # states of a batch are checked by their first step
            robot.check_closed(q)
        if 0 not in shape:
            self._check_stiffness(q.reshape(-1, robot.nq)[0])
        return self.layout.start(robot, q, v)

    def _check_stiffness(self, q: np.ndarray, *, servos: bool = False) -> None:
        """Refuses springs, dampers and servos that are too strong for explicit steps about a configuration."""
        if self.scene.integrator in SCHEMES:
            robot = self.robot
            batch = () if robot.given is None else robot.given.packed.shape[:-1]
            for i in range(min(math.prod(batch), _LOOKED_AT)):
                one = robot.of_states(batch, i) if batch else robot
                check_stiffness(one, q, self.step, self.scene.integrator, servos=servos)

    def kinetic_energy(self, states: np.ndarray) -> np.ndarray:
        """(...,): that of states, J, at dead points of loops, too."""
        q, v, w = (states[..., self.layout.places[name]] for name in ("q", "v", "w"))
        return kinetic_energy(self.robot, q, v, w if self.layout.loop_links else None)

    def energies(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(...,) each: kinetic and potential energy of states, J; NaN where one is not possible."""
        q, v, w = (states[..., self.layout.places[name]] for name in ("q", "v", "w"))
        return energies(self.robot, q, v, w)

    def warn_of_overlaps(self, q: np.ndarray) -> None:
        """Warns of what overlaps in a configuration to start from, (nq,), and of joints beyond their limits."""
        proximity, gaps = Proximity(self.robot, self.scene.pairs, q[None]), list[float]()
        for i, pair in enumerate(self.scene.pairs):
            may_overlap = proximity.nearest(i, 0.0) < 0.0
            gaps += proximity.gaps(i, 0) if may_overlap else pair.count * [np.inf]
        joints = joint_overlaps(self.robot, self.scene, q)
        warn_of_overlaps(self.robot, self.scene, np.array(gaps), self.contacts, joints)

    def warn_of_selection(self) -> None:
        """Warns of what is left out though it would touch, as it overlaps in the neutral pose."""
        deepest = sorted(self.selection.overlapping, key=lambda own: -own[1])
        if deepest:
            name, depth = deepest[0]
            more = f", and {counted(len(deepest) - 1, 'other pair')}" if deepest[1:] else ""
            warnings.warn(
                f"robot {self.robot.name!r}: what overlaps in its neutral pose does not touch: {name}, by "
                f"{depth * 1e3:.3g} mm{more}; `Simulation.left_out` lists all, and contacts=[...] takes those that it "
                "names in full",
                ModelWarning,
                stacklevel=3,
            )

    def advance(self, state: np.ndarray, tau: Any, f_ext: Any = None, controls: np.ndarray | None = None) -> np.ndarray:
        """The result of a step, (..., layout.size): the next state first; see `Layout`.

        Args:
            state: (..., layout.state), the state before it.
            tau: (..., nv), forces at independent joints.
            f_ext: (..., bodies, 6), forces on bodies about the world's origin; none if not given.
            controls: of actuators, as `controls` makes them; without, none of them acts. With them the result is as
                `motor_layout` tells.

        Raises:
            ModelError: for arguments of a wrong shape or that are not finite, and where a step is not possible.
        """
        tau = self._forces("tau", tau, state.shape[:-1], (self.robot.nv,))
        inputs = (state, tau) if controls is None else (state, tau, controls)
        if f_ext is not None:
            loads = self._forces("f_ext", f_ext, state.shape[:-1], (len(self.robot.bodies), 6))
            inputs = (*inputs, on_bodies(self.robot, loads))
        if controls is None:
            result = self._run(self.executable if f_ext is None else self.executable_with_loads, *inputs)
        else:
            result = self._run_with_motors(*inputs, external=f_ext is not None)
        if not np.isfinite(result).all():
            raise ModelError(why_not(self, state, result))
        return result

    def advance_batch(
        self, states: np.ndarray, tau: np.ndarray, result: np.ndarray, controls: np.ndarray | None = None
    ) -> np.ndarray | None:
        """The same for finite arrays of one leading dimension; the result is written to an array, for speed.

        Returns:
            Which states could not take the step; None if all did.
        """
        if controls is None:
            self._run(self.executable, states, tau, out=result)
        else:
            self._run_with_motors(states, tau, controls, out=result)
        if all(np.isfinite(result[:, self.layout.places[name]]).all() for name in ("v", "residual")):
            return None
        return np.logical_not(np.isfinite(result).all(axis=1))

    def _forces(self, name: str, given: Any, batch: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
        """Forces of one state, or of a batch, which may be the same for all."""
        values = numbers(name, np.zeros(shape) if given is None else given, shape, batch=bool(batch))
        try:
            return np.broadcast_to(values, (*batch, *shape))
        except ValueError:
            raise ModelError(f"{name} has the shape {values.shape}, for states of {batch}") from None

    def controls(self, motors: Any, rates: Any = None, batch: tuple[int, ...] = ()) -> np.ndarray:
        """What a step takes to control actuators, (..., as many as `controls_of` tells).

        Args:
            motors: (..., actuators), a number for each actuator, or by name.
            rates: the same of rates of targets; zero if not given.
            batch: the leading dimensions of states.

        Raises:
            ModelError: for a robot without actuators, one that these steps do not take, an unknown name, a missing
                one, a wrong shape, and what is not finite.
        """
        robot, count = self.robot, len(self.robot.actuators)
        self.check_actuators()
        values = self._forces("motors", by_actuator(robot, "motors", motors), batch, (count,))
        if controls_of(robot) == count:
            if rates is not None:
                raise ModelError(f"rates: robot {robot.name!r} has no position servo, which alone has rates of targets")
            return values
        given = None if rates is None else by_actuator(robot, "rates", rates)
        return np.concatenate([values, self._forces("rates", given, batch, (count,))], axis=-1)

    def check_actuators(self) -> None:
        """Refuses motors of a robot that has none, and those that steps of several stages do not take."""
        driven(self.robot, "motors: ")
        if not self.scene.has_rows:
            _ = self._are_explicit

    @cached_property
    def _are_explicit(self) -> bool:
        """True, if explicit steps take all actuators: without speed limits, and not too strong in the neutral pose."""
        for actuator in self.robot.actuators:
            if actuator.speed < np.inf:
                raise ModelError(
                    f"motors: actuator {actuator.name!r}: it has a speed limit, which steps of "
                    f'{self.scene.integrator!r} do not take; integrator="midpoint" does'
                )
        if any(actuator.servo for actuator in self.robot.actuators):
            self._check_stiffness(self.robot.neutral(), servos=True)
        return True

    def forces(self, result: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): contact forces in a step on the first body of each pair, along the world's axes, N."""
        impulses = result[..., self.layout.places["impulses"]]
        return self._in_world(result, impulses[..., self.layout.contact_rows.first[:, None] + np.arange(3)])

    def moments(self, result: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): their moments about the points of contact, by torsion and rolling friction, N m."""
        rows, impulses = self.layout.contact_rows, result[..., self.layout.places["impulses"]]
        moments = np.zeros((*result.shape[:-1], len(rows), 3))
        for contact, (first, width) in enumerate(zip(rows.first, rows.widths, strict=True)):
            moments[..., contact, : width - 3] = impulses[..., first + 3 : first + width]
        return self._in_world(result, moments)

    def _in_world(self, result: np.ndarray, impulses: np.ndarray) -> np.ndarray:
        """Impulses along the frames of contacts, (..., contacts, 3), as forces along the world's axes."""
        frames = result[..., self.layout.places["frames"]].reshape(*result.shape[:-1], self.layout.contacts, 3, 3)
        return np.einsum("...ni,...nij->...nj", impulses, frames) / self.step

    def points(self, result: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): where contacts were before a step, in the world, m."""
        return result[..., self.layout.places["points"]].reshape(*result.shape[:-1], self.layout.contacts, 3)


def _compiled_step(robot: Robot, scene: ContactScene) -> Executable:
    return compile(contact_step_program(robot, scene), backend=robot.backend)


def _no_fast_step(state: np.ndarray, tau: Any, controls: Any = None) -> None:
    """Gives no result."""
