"""Checks of dimensions: a mechanism that cannot be assembled is refused before it is built."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model import ModelError, Robot
from coupler.model.errors import warn
from coupler.model.numbers import numbers

_IN_LINE = 1e-6  # of its length: an axis with a smaller part across a leg points along it


def require(holds: Any, otherwise: str) -> None:
    """Raises a ModelError unless something holds."""
    if not holds:
        raise ModelError(otherwise)


def check_lengths(mechanism: str, **lengths: float) -> None:
    """Raises a ModelError for lengths, m, that are not above zero."""
    for name, value in lengths.items():
        length = float(numbers(f"{mechanism}: {name}", value, ()))
        require(length > 0.0, f"{mechanism}: {name} must be longer than 0 m, got {length:g}")


def check_finite(mechanism: str, **values: float) -> None:
    """Raises a ModelError for angles and offsets, rad or m, that are not finite."""
    for name, value in values.items():
        numbers(f"{mechanism}: {name}", value, ())


def check_signs(what: str, values: Any, count: int) -> np.ndarray:
    """Assembly modes that a user gave, 1 or -1 each."""
    signs = numbers(what, values, (count,))
    require(np.isin(signs, (-1.0, 1.0)).all(), f"{what} must be 1 or -1 each, got {signs}")
    return signs


def elbow_of(what: str, goal: np.ndarray, first: float, second: float, side: float) -> np.ndarray:
    """2, where the elbow is of a planar arm of two links that reaches from the origin to a goal.

    Args:
        what: the arm, for messages.
        goal: 2, m.
        first, second: the lengths of its links, m.
        side: 1 or -1, to the left or to the right of the line to the goal.
    """
    distance = float(np.linalg.norm(goal))
    require(
        abs(first - second) < distance < first + second,
        f"{what} cannot be assembled: it reaches from {abs(first - second):.4g} to {first + second:.4g} m, where it is "
        f"folded and stretched, and its ends are {distance:.4g} m apart",
    )
    along = (distance**2 + first**2 - second**2) / (2.0 * distance)
    across = side * np.sqrt(first**2 - along**2)
    x, y = goal / distance
    return np.array([along * x - across * y, along * y + across * x])


def pointing_axes(direction: np.ndarray, prefer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The axes of a universal joint that carries a leg along a direction: perpendicular to it and to each other.

    The first is the one closest to a preferred axis.
    """
    along = direction / np.linalg.norm(direction)
    first = prefer - (prefer @ along) * along
    if np.linalg.norm(first) < _IN_LINE * np.linalg.norm(prefer):
        other = np.eye(3)[np.argmin(np.abs(along))]
        first = other - (other @ along) * along
    first = first / np.linalg.norm(first)
    return first, np.cross(along, first)


def with_warnings(robot: Robot) -> Robot:
    """The robot; warns of what is wrong with its dimensions, such as motors that do not hold it."""
    for text in robot.warnings:
        warn(f"{robot.name}: {text}")
    return robot
