"""What all transmissions have in common whose gear depends on the pose.

The position u of such a transmission is a function of the poses of bodies, its ends. A force f along u acts on each end
with f F, where F is a spatial force by which, in any motion of the ends, u̇ = Σ F · V: virtual work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from coupler.graph import vjp
from coupler.model.errors import ModelError
from coupler.model.names import named
from coupler.model.numbers import numbers
from coupler.model.places import placed
from coupler.model.wording import clipped
from coupler.spatial import Transform, cross, skew

Array = Any  # an ndarray of floats, or of nodes


class End(NamedTuple):
    """A frame on a body, at which a transmission acts."""

    body: str
    at: Transform


class Transmission(ABC):
    """What an actuator moves, where its gear depends on the pose.

    Attributes:
        ends: the frames at which it acts.
        numbers: its other numbers, along the axes of these frames.
        has_position: whether it has a position u; if not, it has a velocity only.
        is_balanced: whether its forces are in balance, so that they do nothing if all ends move as one body.
        turns: whether its position is an angle, rad, rather than a length, m.
        by_contact: whether it acts on contacts, so that no joint has a gear.
    """

    ends: tuple[End, ...]
    numbers: np.ndarray
    has_position = True
    is_balanced = True
    turns = False
    by_contact = False

    def __init__(self, ends: Iterable[End], numbers: Any) -> None:
        values = np.array(numbers, float)
        values.setflags(write=False)
        self._put("ends", tuple(ends))
        self._put("numbers", values)

    @abstractmethod
    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        """u, for transforms from the world to the ends; zero if it has no position.

        Args:
            numbers: those of `self`, or nodes in their place.
        """

    def wrenches(self, frames: Sequence[Transform], numbers: Array) -> list[Array]:
        """F: the force on each end by unit of force along u, 6 each, in the world about its origin.

        It is how u changes with a small motion of the end, which a transmission without a position must say itself.
        """

        count = len(frames)

        def moved(motions: Array) -> Array:
            ends = [displaced(X, m) for X, m in zip(frames, np.split(motions, count), strict=True)]
            return self.position(ends, numbers)

        return np.split(vjp(moved, np.zeros(6 * count), np.array(1.0)), count)

    def moved(self, name: Callable[[str], str], place: Callable[[str, Transform], Transform]) -> Self:
        """The transmission on other bodies.

        Args:
            name: gives the new name of a body.
            place: gives a frame's place on the new body, from the old name and the place on the old body.
        """
        ends = tuple(End(name(end.body), place(end.body, end.at)) for end in self.ends)
        return self._with(ends=ends)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for transmissions that differ in numbers alone."""
        return type(self), len(self.ends), len(self.numbers)

    def _with(self, **values: Any) -> Self:
        other = copy(self)
        for name, value in values.items():
            other._put(name, value)
        return other

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; make another")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transmission) or self.key != other.key:
            return False
        return self._figures == other._figures

    def __hash__(self) -> int:
        return hash((*self.key, self._figures))

    @property
    def _figures(self) -> tuple[Any, ...]:
        ends = [(end.body, *end.at.E.ravel().tolist(), *end.at.r.tolist()) for end in self.ends]
        return (*ends, *self.numbers.tolist())


def end_at(what: str, given: Any) -> End:
    """A point of a body, as an end."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise ModelError(f"{what} must be a pair of a body and a point, got {clipped(given)}")
    body, point = given
    return End(named(f"{what}: its body", body), placed(what, numbers(f"{what}: its point", point, (3,)), None))


def displaced(X: Transform, m: Array) -> Transform:
    """A transform from the world after a small motion m of its frame in the world, to first order."""
    return Transform(X.E - X.E @ skew(m[:3]), X.r + m[3:] + cross(m[:3], X.r))
