"""Following a branch to positions of actuators in short steps, by the method of Levenberg and Marquardt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.actuation import actuator_jacobian, actuator_positions
from coupler.model import ModelError, Robot
from coupler.model.tolerances import TINY
from coupler.model.wording import in_state, listed
from coupler.passes import separate_actuators
from coupler.passes.shape import Clusters
from coupler.reaching.bounds import Bounds

REACHED = 1e-10  # rad or m, or relative to the target: positions this close count as reached
_LONGEST = 0.2  # rad or m: the longest step of a joint that stays on its branch
_ITERATIONS = 300
_FIRST, _LEAST, _MOST = 1e-6, 1e-14, 1e8  # initial, smallest and largest damping of steps
_SINGULAR = 1e-10  # singular values below this part of the largest count as zero
_NOTHING = 1e-12  # below this part of the largest they are rounding, and steps leave them out
_FLAT = 1e-9  # a step that promises to close less than this part of the distance is the last


class UnreachableError(ModelError):
    """Positions of actuators that cannot be reached.

    Attributes:
        nearest: (actuators,), the closest positions that were reached.
        q: (nq,), the configuration there.
    """

    def __init__(self, text: str, nearest: np.ndarray, q: np.ndarray) -> None:
        super().__init__(text)
        self.nearest, self.q = nearest, q

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.nearest, self.q)


class Continuation:
    """Moves the actuators of some states to their targets in short steps, along the branches that they start on."""

    def __init__(
        self, robot: Robot, target: np.ndarray, start: np.ndarray, bounds: Bounds | None, places: Sequence[list[int]]
    ) -> None:
        """Args: the robot, targets and starts of states, bounds of joints, and the indices of states in their batch."""
        self._robot, self._target, self._q, self._bounds, self._places = robot, target, start.copy(), bounds, places
        self._signs, self._crossed = _signs(actuator_jacobian(robot, start)), np.zeros(len(start), bool)
        self._straight = all(shape.linear for shape, _ in Clusters(robot).shapes)
        self._damping = np.full(len(target), 0.0 if self._straight else _FIRST)
        self._stopped: dict[int, set[str]] = {}  # by state, the joints that were stopped by their limits

    def followed(self) -> np.ndarray:
        """The configurations at the targets."""
        u, near = actuator_positions(self._robot, self._q), REACHED * np.maximum(np.abs(self._target), 1.0)
        goal = self._target
        if self._bounds is not None:
            goal = self._bounds.within(goal, u)
            for i, number in np.argwhere(goal != self._target):
                self._stop(i, self._robot.actuators[number].joints[0])
        for actuators in separate_actuators(self._robot):  # so that those that cannot reach do not hold up the others
            is_moved = np.isin(np.arange(u.shape[-1]), actuators)
            self._damping[:] = 0.0 if self._straight else _FIRST
            self._follow(u, np.where(is_moved, goal, u), near)
        self._check(u, near)
        return self._q

    def _follow(self, u: np.ndarray, goal: np.ndarray, near: np.ndarray) -> None:
        """Moves actuators from their positions u as close to a goal as they get."""
        going = np.ones(len(u), bool)
        for _ in range(_ITERATIONS):
            missing = goal - u
            going &= (np.abs(missing) > near).any(axis=-1)
            states = np.flatnonzero(going)
            if not states.size:
                break
            step, promised = self._step(states, missing[states])
            q, moved = self._moved(states, step)
            before = np.linalg.norm(missing[states], axis=-1)
            arrived = np.where(moved[:, None], actuator_positions(self._robot, q), np.inf)
            after = np.linalg.norm(goal[states] - arrived, axis=-1)
            good = after < before
            self._q[states[good]], u[states[good]] = q[good], arrived[good]
            self._damping[states] = np.clip(np.where(good, 0.1, 10.0) * self._damping[states], _LEAST, _MOST)
            going[states] = np.where(good, promised > _FLAT * before, self._damping[states] < _MOST)

    def _step(self, states: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A step of independent joints towards the targets, and how much closer it promises to come."""
        A = actuator_jacobian(self._robot, self._q[states])
        self._crossed[states] |= _signs(A) * self._signs[states] < 0.0
        step = self._damped(states, A, missing)
        if self._bounds is not None:
            bounds, q = self._bounds.of(states), self._q[states]
            held = bounds.held(q, step)
            for i, entry in np.argwhere(held):
                self._stop(states[i], self._robot.tree.joint_of(int(self._robot.embedding.v_index[entry])))
            if held.any():  # the others move on without them
                step = np.where(held, 0.0, self._damped(states, np.where(held[:, None, :], 0.0, A), missing))
            step = bounds.cut(q, step)
        still_missing = missing - (A @ step[..., None])[..., 0]
        return step, np.linalg.norm(missing, axis=-1) - np.linalg.norm(still_missing, axis=-1)

    def _damped(self, states: np.ndarray, A: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """The step of Levenberg and Marquardt, shortened so that it stays on its branch."""
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        along = (np.swapaxes(U, -1, -2) @ missing[..., None])[..., 0]
        size = s[:, :1] * s[:, :1]
        answer = np.where(s > _NOTHING * s[:, :1], s, 0.0)
        answer /= np.maximum(s * s + self._damping[states, None] * size, TINY)
        step = (np.swapaxes(Vt, -1, -2) @ (answer * along)[..., None])[..., 0]
        if self._straight:
            return step
        return step * np.minimum(1.0, _LONGEST / np.maximum(np.abs(step).max(axis=-1, keepdims=True), TINY))

    def _moved(self, states: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configurations of some states after a step, and which of them could take it."""
        q, moved = self._q[states], np.ones(len(states), bool)
        try:
            q = self._robot.integrate(q, step)
        except ModelError:  # some states are at the edge of what loops allow: take each by itself
            for i in range(len(q)):
                try:
                    q[i] = self._robot.integrate(q[i], step[i])
                except ModelError:
                    moved[i] = False
        if self._bounds is not None:
            for i in np.flatnonzero(moved & ~self._bounds.of(states).hold(q)):
                self._stop(states[i], self._bounds.of(states[i : i + 1]).culprit(q[i]))
                moved[i] = False
        return q, moved

    def _stop(self, state: Any, joint: str) -> None:
        self._stopped.setdefault(int(state), set()).add(joint)

    def _check(self, u: np.ndarray, near: np.ndarray) -> None:
        """Raises an error for targets that were not reached, or only on another branch."""
        robot, missed = self._robot, np.abs(self._target - u)
        if (wrong := np.argwhere((missed > near).any(axis=-1))).size:
            i = int(wrong[0, 0])
            worst = int((missed[i] / near[i]).argmax())
            reached = ", ".join(f"{a.name} {x:.6g}" for a, x in zip(robot.actuators, u[i], strict=True))
            limit = f", as {listed(sorted(self._stopped[i]))} stops at a limit" if i in self._stopped else ""
            raise UnreachableError(
                f"actuator {robot.actuators[worst].name!r} does not reach {self._target[i, worst]:.6g}"
                f"{in_state(self._places[i])} on this branch{limit}: the nearest positions found are {reached}",
                u[i].copy(),
                self._q[i].copy(),
            )
        crossed = self._crossed | (_signs(actuator_jacobian(robot, self._q)) * self._signs < 0.0)
        if (wrong := np.flatnonzero(crossed)).size:
            raise ModelError(
                f"robot {robot.name!r}: the way to these positions of its actuators"
                f"{in_state(self._places[int(wrong[0])])} leads through a singular configuration to another branch; "
                "start near the one that is meant"
            )


def _signs(A: np.ndarray) -> np.ndarray:
    """The side of singular configurations on which each state is: the sign of det A, if A is square.

    It is zero where actuators depend on each other, so that rounding would decide, and where A is not square.
    """
    moved = np.abs(A).max(axis=(0, 1)) > 0.0
    if moved.sum() != A.shape[-2]:
        return np.zeros(len(A))
    sizes = np.linalg.svd(A[..., moved], compute_uv=False)
    return np.where(sizes[:, -1] > _SINGULAR * sizes[:, 0], np.sign(np.linalg.det(A[..., moved])), 0.0)
