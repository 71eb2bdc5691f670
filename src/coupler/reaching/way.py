"""The way to positions of actuators in short steps, by Newton's method, damped after Levenberg and Marquardt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.actuation import actuator_jacobian, actuator_positions
from coupler.model import ModelError, Robot
from coupler.model.wording import in_state, listed
from coupler.passes import separate_actuators
from coupler.passes.shape import Clusters
from coupler.reaching.bounds import Bounds

_REACHED = 1e-10  # rad or m, or of the target: so near counts as there
_LONGEST = 0.2  # rad or m of a joint: a step that stays on its branch
_ITERATIONS = 300
_FIRST, _LEAST, _MOST = 1e-6, 1e-14, 1e8  # damping of steps
_SINGULAR = 1e-10  # of the largest singular value: what is below counts as zero
_FLAT = 1e-9  # a step that promises to come nearer by no more than this part is the last


class UnreachableError(ModelError):
    """Positions of actuators that cannot be reached.

    Attributes:
        nearest: (actuators,), the nearest positions that were reached.
        q: (nq,), the configuration there.
    """

    def __init__(self, text: str, nearest: np.ndarray, q: np.ndarray) -> None:
        super().__init__(text)
        self.nearest, self.q = nearest, q

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.nearest, self.q)


class Way:
    """The way of some states to their targets, in short steps."""

    def __init__(
        self, robot: Robot, target: np.ndarray, start: np.ndarray, bounds: Bounds | None, places: Sequence[list[int]]
    ) -> None:
        """Args: the robot, where states go to and come from, how far joints may go, and where states are in a batch."""
        self._robot, self._target, self._q, self._bounds, self._places = robot, target, start.copy(), bounds, places
        self._signs, self._crossed = _signs(actuator_jacobian(robot, start)), np.zeros(len(start), bool)
        self._straight = all(shape.linear for shape, _ in Clusters(robot).shapes)
        self._damping = np.full(len(target), 0.0 if self._straight else _FIRST)
        self._stopped: dict[int, set[str]] = {}  # by state, joints whose limits were in the way

    def followed(self) -> np.ndarray:
        """The configurations at the targets."""
        u, near = actuator_positions(self._robot, self._q), _REACHED * np.maximum(np.abs(self._target), 1.0)
        goal = self._target
        if self._bounds is not None:
            goal = self._bounds.within(goal, u)
            for i, number in np.argwhere(goal != self._target):
                self._stop(i, self._robot.actuators[number].joints[0])
        for actuators in separate_actuators(self._robot):  # what some cannot reach does not hold up the others
            own = np.isin(np.arange(u.shape[-1]), actuators)
            self._damping[:] = 0.0 if self._straight else _FIRST
            self._follow(u, np.where(own, goal, u), near)
        self._check(u, near)
        return self._q

    def _follow(self, u: np.ndarray, goal: np.ndarray, near: np.ndarray) -> None:
        """Takes actuators from where they are, u, as near to a goal as they come."""
        going = np.ones(len(u), bool)
        for _ in range(_ITERATIONS):
            missing = goal - u
            going &= (np.abs(missing) > near).any(axis=-1)
            own = np.flatnonzero(going)
            if not own.size:
                break
            step, promised = self._step(own, missing[own])
            q, moved = self._moved(own, step)
            before = np.linalg.norm(missing[own], axis=-1)
            arrived = np.where(moved[:, None], actuator_positions(self._robot, q), np.inf)
            after = np.linalg.norm(goal[own] - arrived, axis=-1)
            good = after < before
            self._q[own[good]], u[own[good]] = q[good], arrived[good]
            self._damping[own] = np.clip(np.where(good, 0.1, 10.0) * self._damping[own], _LEAST, _MOST)
            going[own] = np.where(good, promised > _FLAT * before, self._damping[own] < _MOST)

    def _step(self, own: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocities that lead nearer to the targets in a unit of time, and by how much they promise to."""
        A = actuator_jacobian(self._robot, self._q[own])
        self._crossed[own] |= _signs(A) * self._signs[own] < 0.0
        step = self._damped(own, A, missing)
        if self._bounds is not None:
            bounds, q = self._bounds.of(own), self._q[own]
            held = bounds.held(q, step)
            for i, entry in np.argwhere(held):
                self._stop(own[i], self._robot.tree.joint_of(int(self._robot.embedding.v_index[entry])))
            if held.any():  # the others go on without them
                step = np.where(held, 0.0, self._damped(own, np.where(held[:, None, :], 0.0, A), missing))
            step = bounds.cut(q, step)
        left = missing - (A @ step[..., None])[..., 0]
        return step, np.linalg.norm(missing, axis=-1) - np.linalg.norm(left, axis=-1)

    def _damped(self, own: np.ndarray, A: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """The step of Levenberg and Marquardt, no longer than stays on its branch."""
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        along = (np.swapaxes(U, -1, -2) @ missing[..., None])[..., 0]
        size = s[:, :1] * s[:, :1]
        answer = np.where(s > 1e-12 * s[:, :1], s, 0.0) / np.maximum(s * s + self._damping[own, None] * size, 1e-300)
        step = (np.swapaxes(Vt, -1, -2) @ (answer * along)[..., None])[..., 0]
        if self._straight:
            return step
        return step * np.minimum(1.0, _LONGEST / np.maximum(np.abs(step).max(axis=-1, keepdims=True), 1e-300))

    def _moved(self, own: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configurations of some states after a step, and which of them could take it."""
        q, moved = self._q[own], np.ones(len(own), bool)
        try:
            q = self._robot.integrate(q, step)
        except ModelError:  # at the edge of what loops allow: each state by itself
            for i in range(len(q)):
                try:
                    q[i] = self._robot.integrate(q[i], step[i])
                except ModelError:
                    moved[i] = False
        if self._bounds is not None:
            for i in np.flatnonzero(moved & ~self._bounds.of(own).hold(q)):
                self._stop(own[i], self._bounds.of(own[i : i + 1]).culprit(q[i]))
                moved[i] = False
        return q, moved

    def _stop(self, state: Any, joint: str) -> None:
        self._stopped.setdefault(int(state), set()).add(joint)

    def _check(self, u: np.ndarray, near: np.ndarray) -> None:
        """Refuses targets that are not reached, and those on another branch."""
        robot, missed = self._robot, np.abs(self._target - u)
        if (wrong := np.argwhere((missed > near).any(axis=-1))).size:
            i = int(wrong[0, 0])
            worst = int((missed[i] / near[i]).argmax())
            told = ", ".join(f"{a.name} {x:.6g}" for a, x in zip(robot.actuators, u[i], strict=True))
            limit = f", as {listed(sorted(self._stopped[i]))} stops at a limit" if i in self._stopped else ""
            raise UnreachableError(
                f"actuator {robot.actuators[worst].name!r} does not reach {self._target[i, worst]:.6g}"
                f"{in_state(self._places[i])} on this branch{limit}: the nearest positions found are {told}",
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
    """On which side of its singular configurations each state is, where actuators and what they move are as many.

    Zero where actuators follow from each other, so that rounding would decide.
    """
    moved = np.abs(A).max(axis=(0, 1)) > 0.0
    if moved.sum() != A.shape[-2]:
        return np.zeros(len(A))
    sizes = np.linalg.svd(A[..., moved], compute_uv=False)
    return np.where(sizes[:, -1] > _SINGULAR * sizes[:, 0], np.sign(np.linalg.det(A[..., moved])), 0.0)
