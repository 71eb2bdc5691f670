"""Configurations in which actuators are where they are asked to be. [003, §III]"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.actuation import actuator_jacobian, actuator_positions
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.model.wording import in_state
from coupler.passes.shape import Clusters

__all__ = ["UnreachableError", "configuration_of_actuators"]

_REACHED = 1e-10  # rad or m, or of the target: so near counts as there
_LONGEST = 0.2  # rad or m of a joint: a step that stays on its branch
_ITERATIONS = 300
_FIRST, _LEAST, _MOST = 1e-6, 1e-14, 1e8  # damping of steps
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


def configuration_of_actuators(robot: Robot, positions: Any, near: Any = None) -> np.ndarray:
    """The configuration in which actuators have these positions.

    There may be several: elbow up and down. The one that is found is on the branch of `near`, to which it is followed
    in short steps by Newton's method, damped after Levenberg and Marquardt. Where all actuators are linear in the
    independent joints, one step is exact. What actuators do not move stays near where it is.

    Args:
        robot: the robot.
        positions: (..., actuators), u, rad or m.
        near: (..., nq), closed configurations to start from; neutral if not given.

    Returns:
        (..., nq), closed configurations.

    Raises:
        UnreachableError: for positions out of reach, with the nearest that are within it.
        ModelError: where the way to them leads to another branch.
    """
    target = numbers("positions", positions, (len(robot.actuators),), batch=True)
    start = robot.neutral() if near is None else numbers("near", near, (robot.nq,), batch=True)
    try:
        batch = np.broadcast_shapes(target.shape[:-1], start.shape[:-1])
    except ValueError:
        raise ModelError(f"positions of {target.shape[:-1]} states do not fit near of {start.shape[:-1]}") from None
    target = np.broadcast_to(target, (*batch, target.shape[-1])).reshape(-1, target.shape[-1])
    start = np.broadcast_to(start, (*batch, robot.nq)).reshape(-1, robot.nq)
    q = _Way(robot, target, start, batch).followed() if len(target) else start.copy()
    return q.reshape(*batch, robot.nq)


class _Way:
    """The way of a batch of states to their targets."""

    def __init__(self, robot: Robot, target: np.ndarray, start: np.ndarray, batch: tuple[int, ...]) -> None:
        self._robot, self._target, self._q, self._batch = robot, target, start.copy(), batch
        self._signs = _signs(actuator_jacobian(robot, start))
        self._straight = all(shape.linear for shape, _ in Clusters(robot).shapes)
        self._damping = np.full(len(target), 0.0 if self._straight else _FIRST)

    def followed(self) -> np.ndarray:
        """The configurations at the targets."""
        u, near = actuator_positions(self._robot, self._q), _REACHED * np.maximum(np.abs(self._target), 1.0)
        going = np.ones(len(u), bool)
        for _ in range(_ITERATIONS):
            missing = self._target - u
            going &= (np.abs(missing) > near).any(axis=-1)
            own = np.flatnonzero(going)
            if not own.size:
                break
            step, promised = self._step(own, missing[own])
            q, moved = self._moved(self._q[own], step)
            before = np.linalg.norm(missing[own], axis=-1)
            arrived = np.where(moved[:, None], actuator_positions(self._robot, q), np.inf)
            after = np.linalg.norm(self._target[own] - arrived, axis=-1)
            good = after < before
            self._q[own[good]], u[own[good]] = q[good], arrived[good]
            self._damping[own] = np.clip(np.where(good, 0.1, 10.0) * self._damping[own], _LEAST, _MOST)
            going[own] = np.where(good, promised > _FLAT * before, self._damping[own] < _MOST)
        self._check(u, near)
        return self._q

    def _step(self, own: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocities that lead nearer to the targets in a unit of time, and by how much they promise to."""
        A = actuator_jacobian(self._robot, self._q[own])
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        along = (np.swapaxes(U, -1, -2) @ missing[..., None])[..., 0]
        size = s[:, :1] * s[:, :1]
        answer = np.where(s > 1e-12 * s[:, :1], s, 0.0) / np.maximum(s * s + self._damping[own, None] * size, 1e-300)
        step = (np.swapaxes(Vt, -1, -2) @ (answer * along)[..., None])[..., 0]
        if not self._straight:
            step *= np.minimum(1.0, _LONGEST / np.maximum(np.abs(step).max(axis=-1, keepdims=True), 1e-300))
        left = missing - (A @ step[..., None])[..., 0]
        return step, np.linalg.norm(missing, axis=-1) - np.linalg.norm(left, axis=-1)

    def _moved(self, q: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configurations after a step, and which states could take it."""
        try:
            return self._robot.integrate(q, step), np.ones(len(q), bool)
        except ModelError:  # at the edge of what loops allow: each state by itself
            moved = np.ones(len(q), bool)
            q = q.copy()
            for i in range(len(q)):
                try:
                    q[i] = self._robot.integrate(q[i], step[i])
                except ModelError:
                    moved[i] = False
            return q, moved

    def _check(self, u: np.ndarray, near: np.ndarray) -> None:
        """Refuses targets that are not reached, and those on another branch."""
        robot, missed = self._robot, np.abs(self._target - u)
        if (wrong := np.argwhere((missed > near).any(axis=-1))).size:
            i = int(wrong[0, 0])
            worst = int((missed[i] / near[i]).argmax())
            told = ", ".join(f"{a.name} {x:.6g}" for a, x in zip(robot.actuators, u[i], strict=True))
            raise UnreachableError(
                f"actuator {robot.actuators[worst].name!r} does not reach {self._target[i, worst]:.6g}"
                f"{self._state(i)} on this branch: the nearest positions found are {told}",
                u[i].copy(),
                self._q[i].copy(),
            )
        signs = _signs(actuator_jacobian(robot, self._q))
        if (wrong := np.argwhere(signs * self._signs < 0.0)).size:
            raise ModelError(
                f"robot {robot.name!r}: the way to these positions of its actuators{self._state(int(wrong[0, 0]))} "
                "leads through a singular configuration to another branch; start near the one that is meant"
            )

    def _state(self, i: int) -> str:
        return in_state([int(k) for k in np.unravel_index(i, self._batch)] if self._batch else [])


def _signs(A: np.ndarray) -> np.ndarray:
    """On which side of its singular configurations each state is, where actuators and what they move are as many."""
    moved = np.abs(A).max(axis=(0, 1)) > 0.0
    if moved.sum() != A.shape[-2]:
        return np.zeros(len(A))
    return np.sign(np.linalg.det(A[..., moved]))
