"""Bounds of joints on their way to positions of actuators."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.model.actuators import terms_of
from coupler.model.joint import Joint
from coupler.model.tolerances import WITHIN_LIMITS


class Bounds:
    """Bounds on the positions of joints in each state: their limits, or how far beyond them they start.

    Steps of independent joints are cut short. A step that takes other joints beyond their limits is not taken.
    """

    def __init__(self, robot: Robot, start: np.ndarray) -> None:
        self._robot, self._allowed = robot, np.maximum(_beyond(robot, start), WITHIN_LIMITS)
        self._lower, self._upper = (np.full((len(start), robot.nv), side * np.inf) for side in (-1.0, 1.0))
        self._places = [
            (i, int(robot.embedding.q_place[robot.tree.q_start[link] + j]), float(kind.lower[j]), float(kind.upper[j]))
            for i, (link, j, kind) in enumerate(_independent(robot))
            if kind.nq == kind.nv
        ]
        for i, at, lower, upper in self._places:
            self._lower[:, i], self._upper[:, i] = np.minimum(lower, start[:, at]), np.maximum(upper, start[:, at])

    def of(self, states: np.ndarray) -> Bounds:
        """The bounds of some states."""
        other = copy(self)
        for name in ("_allowed", "_lower", "_upper"):
            setattr(other, name, getattr(self, name)[states])
        return other

    def _room(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distances that independent joints can move down and up, (states, nv) each."""
        now = np.zeros(self._lower.shape)
        for i, at, _, _ in self._places:
            now[:, i] = q[:, at]
        return self._lower - now, self._upper - now

    def held(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Flags for independent joints at a limit that a step would cross."""
        back, forth = self._room(q)
        return ((step < 0.0) & (back >= -WITHIN_LIMITS)) | ((step > 0.0) & (forth <= WITHIN_LIMITS))

    def cut(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The step, cut short where it would take independent joints beyond their limits."""
        return np.clip(step, *self._room(q))

    def hold(self, q: np.ndarray) -> Any:
        """For each state, whether its joints are within their bounds."""
        return np.all(_beyond(self._robot, q) <= self._allowed, axis=-1)

    def culprit(self, q: np.ndarray) -> str:
        """The joint that is furthest beyond its bounds in the configuration of a single state."""
        entry = int((_beyond(self._robot, q) - self._allowed[0]).argmax())
        tree = self._robot.tree
        return tree.links[int(np.searchsorted(tree.q_start, entry, side="right")) - 1].joint

    def within(self, target: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Targets of actuators, cut to the limits of the single joint that each drives, or to its position u beyond."""
        lower, upper = np.full(target.shape[-1], -np.inf), np.full(target.shape[-1], np.inf)
        for i, actuator in enumerate(self._robot.actuators):
            (link, j, gear), *others = terms_of(self._robot, actuator)
            if not others and actuator.along is None:
                kind = self._robot.tree.links[link].kind
                lower[i], upper[i] = sorted((gear * float(kind.lower[j]), gear * float(kind.upper[j])))
        return np.clip(target, np.minimum(lower, u), np.maximum(upper, u))


def _independent(robot: Robot) -> list[tuple[int, int, Joint]]:
    """For each entry of v its link, its number among the link's entries, and the joint."""
    tree, entries = robot.tree, robot.embedding.v_index.tolist()
    links = [tree.link_of(entry) for entry in entries]
    return [
        (link, entry - int(tree.v_start[link]), tree.links[link].kind)
        for link, entry in zip(links, entries, strict=True)
    ]


def within_limits(robot: Robot, q: np.ndarray) -> Any:
    """(...): whether all joints of configurations are within their limits."""
    return (_beyond(robot, q) <= WITHIN_LIMITS).all(axis=-1)


def _beyond(robot: Robot, q: np.ndarray) -> np.ndarray:
    """(..., Σ nq): how far the positions of all joints are beyond their limits; negative within them."""
    lower, upper = robot.tree.limits
    p = robot.embedding.positions(q)
    return np.maximum(lower - p, p - upper)
