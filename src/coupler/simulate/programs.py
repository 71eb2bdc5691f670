"""The compiled programs of a robot's steps, made when they are first needed."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from coupler.compiled import inputs_given, remembered
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.scheme import SCHEMES
from coupler.contact.servos import may_yield
from coupler.contact.step.program import contact_step_program
from coupler.forks import cached_property
from coupler.graph import Executable, compile
from coupler.model import Robot
from coupler.simulate.options import SimulationOptions

_MANY_CONTACTS = 64  # candidates: from here on, their points and frames are most of a step's result


class StepPrograms:
    """Steps of a robot in a scene, as programs: with and without actuators, and with forces on bodies.

    Attributes:
        robot: the robot that moves.
        scene: the settings of a step; see `ContactScene`.
        layout: the layout of state and result vectors.
    """

    def __init__(self, robot: Robot, scene: ContactScene, options: SimulationOptions) -> None:
        self.robot, self.scene, self._options = robot, scene, options
        self._made_of = robot if robot.given is None else robot.given.variant
        self.layout = Layout(self._made_of, scene)

    def of_robot(self, robot: Robot) -> Self:
        """These programs for a robot that differs only in the values of parameters."""
        other = copy(self)
        other.robot = robot
        return other

    def of_states(self, batch: tuple[int, ...], states: slice | int | np.ndarray) -> Self:
        """These programs for some states of a batch, which may have their own parameters; see `Robot.of_states`."""
        return self if self.robot.given is None else self.of_robot(self.robot.of_states(batch, states))

    def brief(self) -> Self:
        """These programs without places of contacts in results, if these are many, so that batches move less memory."""
        if self.layout.contacts < _MANY_CONTACTS or self.scene.integrator in SCHEMES:
            return self
        other = copy(self)
        for name in [name for name in self.__dict__ if name.startswith("executable") or name == "motor_layout"]:
            del other.__dict__[name]  # made again on demand, for the smaller layout
        other.scene = replace(self.scene, places=False)
        other.layout = remembered(self._made_of, (Layout, self._options), Layout, other.scene)
        return other

    @property
    def fast_step(self) -> Any:
        """(state, tau) → the result of a step, or None where only `advance` can decide: see `Executable.one`."""
        return self._fast(self.executable) if "executable" in self.__dict__ else _no_fast_step

    @property
    def fast_motor_step(self) -> Any:
        """(state, tau, controls) → the result of a step in which actuators act, or None; see `fast_step`."""
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
        """(state, tau) → the result of a step."""
        return self._compiled()

    @cached_property
    def executable_with_loads(self) -> Executable:
        """(state, tau, f_ext) → the result of a step with forces on bodies."""
        return self._compiled(external=True)

    @cached_property
    def executable_with_motors(self) -> Executable:
        """(state, tau, controls) → the result of a step in which actuators act."""
        return self._compiled(motors=True)

    @cached_property
    def executable_with_motors_and_loads(self) -> Executable:
        """(state, tau, controls, f_ext) → the result of a step with actuators and forces on bodies."""
        return self._compiled(motors=True, external=True)

    @cached_property
    def executable_with_free_servos(self) -> Executable:
        """As `executable_with_motors`, but without a result if a servo of a single joint reaches its effort limit."""
        return self._compiled(motors=True, yielding=False)

    @cached_property
    def executable_with_free_servos_and_loads(self) -> Executable:
        """As `executable_with_free_servos`, with f_ext as the last input."""
        return self._compiled(motors=True, yielding=False, external=True)

    def prepare(self, *, motors: bool) -> None:
        """Compiles a step, for threads to share."""
        if not motors:
            _ = self.executable
        else:
            _ = self.executable_with_free_servos if self._may_yield else self.executable_with_motors

    @cached_property
    def _may_yield(self) -> bool:
        """Whether steps first assume that servos stay within their limits, which is cheaper than checking them."""
        return self.scene.implicit and may_yield(self.robot)

    def _run_with_motors(self, *vectors: np.ndarray, external: bool = False, out: np.ndarray | None = None) -> Any:
        """A step in which actuators act, of states of one batch; where servos reach limits, it is taken again."""
        if self._may_yield:
            free = self.executable_with_free_servos_and_loads if external else self.executable_with_free_servos
            result = self._run(free, *vectors, out=out)
            again = np.isnan(result[..., self.layout.places["residual"]][..., 0])
            if result.ndim > 1:
                if again.any():
                    yielding = self.of_states(again.shape, np.flatnonzero(again))
                    result[again] = yielding._run(self._with_motors(external), *(vector[again] for vector in vectors))
                return result
            if not again:
                return result
        return self._run(self._with_motors(external), *vectors, out=out)

    def _with_motors(self, external: bool) -> Executable:
        return self.executable_with_motors_and_loads if external else self.executable_with_motors

    def _compiled(self, **changes: bool) -> Executable:
        """A compiled step, shared by robots that differ only in the values of parameters."""
        key = StepPrograms, self._options, self.scene.places, tuple(changes)
        return remembered(self._made_of, key, _compiled_step, replace(self.scene, **changes))

    def _run(self, executable: Executable, *vectors: np.ndarray, out: np.ndarray | None = None) -> Any:
        inputs = *vectors, *inputs_given(self.robot, executable)
        if out is None:
            return executable(*inputs)
        executable.fill(out, *inputs)
        return out

    @cached_property
    def motor_layout(self) -> Layout:
        """The layout of results of a step in which actuators act: that of `layout`, and what the actuators do."""
        return Layout(self._made_of, replace(self.scene, motors=True))


def _compiled_step(robot: Robot, scene: ContactScene) -> Executable:
    return compile(contact_step_program(robot, scene), backend=robot.backend, prepared=True)


def _no_fast_step(state: np.ndarray, tau: Any, controls: Any = None) -> None:
    """Returns None: there is no fast step yet."""
