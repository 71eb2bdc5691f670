"""Transmissions whose gear depends on the pose: cables, slider-cranks, and wrenches on a body.

The position u of such a transmission is a function of the poses of bodies, its ends. A force f along u acts on each end
with f F, where F is a spatial force by which, in any motion of the ends, u̇ = Σ F · V: virtual work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.names import named
from coupler.model.numbers import numbers
from coupler.model.places import Place, placed
from coupler.model.wording import clipped
from coupler.rotation import unit
from coupler.spatial import Transform, cross

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
    """

    ends: tuple[End, ...]
    numbers: np.ndarray
    has_position = True
    is_balanced = True

    @abstractmethod
    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        """u, for transforms from the world to the ends; zero if it has no position.

        Args:
            numbers: those of `self`, or nodes in their place.
        """

    @abstractmethod
    def wrenches(self, frames: Sequence[Transform], numbers: Array) -> list[Array]:
        """F: the force on each end by unit of force along u, 6 each, in the world about its origin."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """The transmission with this factor on u."""

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
            object.__setattr__(other, name, value)
        return other

    def _set(self, ends: Iterable[End], numbers: Any) -> None:
        values = np.array(numbers, float)
        values.setflags(write=False)
        object.__setattr__(self, "ends", tuple(ends))
        object.__setattr__(self, "numbers", values)

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


class Cable(Transmission):
    """A cable over points of bodies; its position is its length, m.

    A positive force lengthens it. With shares below zero, a positive force pulls. A cable may be given forces of either
    sign: limits of an actuator's effort keep it from pushing.
    """

    def __init__(self, points: Any, shares: Any = 1.0) -> None:
        """Describes a cable.

        Args:
            points: the points that it runs over, in order: pairs of a body, or "ground", and a point on it, 3, m.
            shares: how much of the length between two points counts, for each two points: 1 by default, ½ behind a
                pulley with two falls, 0 where the cable is interrupted. One number stands for all.
        """
        ends = [_end(f"point {i} of a cable", point) for i, point in enumerate(_points(points), 1)]
        if len(ends) < 2:
            raise ModelError(f"a cable needs two points or more, got {clipped(points)}")
        values = numbers("the shares of a cable", shares, (len(ends) - 1,), spread=True)
        if not values.any():
            raise ModelError("the shares of a cable are all zero: its length never changes")
        self._set(ends, values)

    @property
    def points(self) -> list[tuple[str, np.ndarray]]:
        """The points that it runs over, each with its body."""
        return [(end.body, end.at.r) for end in self.ends]

    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        return sum((share * np.sqrt(gap @ gap) for share, gap in _stretches(frames, numbers)), np.array(0.0))

    def wrenches(self, frames: Sequence[Transform], numbers: Array) -> list[Array]:
        forces: list[Array] = [np.zeros(3) for _ in frames]
        for i, (share, gap) in enumerate(_stretches(frames, numbers)):
            square = gap @ gap
            # Where two points meet, a tension has no direction.
            along = np.where(square > 0.0, gap / np.sqrt(np.where(square > 0.0, square, 1.0)), 0.0)
            forces[i], forces[i + 1] = forces[i] - share * along, forces[i + 1] + share * along
        return [_force_at(frame.r, force) for frame, force in zip(frames, forces, strict=True)]

    def scaled(self, factor: float) -> Cable:
        return self._with(numbers=factor * self.numbers)

    def __repr__(self) -> str:
        points = [(body, tuple(point.tolist())) for body, point in self.points]
        shares = "" if (self.numbers == 1.0).all() else f", shares={self.numbers.tolist()}"
        return f"Cable({points}{shares})"


class SliderCrank(Transmission):
    """A rod from a point of a body to a slider on an axis of another; its position is that of the slider, m.

    The rod has no mass. The slider is on the near side of the crank's point, seen along the axis.
    """

    def __init__(
        self, slider: str, crank: str, rod: float, at: Any = (0, 0, 0), meets: Any = (0, 0, 0), axis: Any = (0, 0, 1),
        gear: float = 1.0,
    ) -> None:  # fmt: skip
        """Describes a slider-crank.

        Args:
            slider: the body, or "ground", along an axis of which the slider moves.
            crank: the body, or "ground", that the rod turns.
            rod: the length of the rod, m.
            at: 3, where the slider's position is zero, on its body, m.
            meets: 3, the point of the crank, on its body, m.
            axis: 3, the slider's axis, in the axes of its body; its length does not matter.
            gear: a factor on the position.
        """
        what = "a slider-crank"
        length = float(numbers(f"{what}: its rod", rod, (), least=0.0))
        factor, along = float(numbers(f"{what}: its gear", gear, ())), numbers(f"{what}: its axis", axis, (3,))
        if not along.any() or not factor or not length:
            raise ModelError(f"{what}: its axis, its gear and the length of its rod must not be zero")
        ends = _end(f"{what}: its slider", (slider, at)), _end(f"{what}: its crank", (crank, meets))
        self._set(ends, [factor, length, *unit(along)])

    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        gap, axis = self._seen(frames, numbers)
        return numbers[0] * (axis @ gap - self._along(gap, axis, numbers[1]))

    def wrenches(self, frames: Sequence[Transform], numbers: Array) -> list[Array]:
        gap, axis = self._seen(frames, numbers)
        height = axis @ gap
        force = numbers[0] * (axis - (height * axis - gap) / self._along(gap, axis, numbers[1]))
        wrench = _force_at(frames[1].r, force)
        return [-wrench, wrench]

    def scaled(self, factor: float) -> SliderCrank:
        return self._with(numbers=np.array([factor * self.numbers[0], *self.numbers[1:]]))

    @staticmethod
    def _seen(frames: Sequence[Transform], numbers: Array) -> tuple[Array, Array]:
        """The way from the slider's origin to the crank's point, and the slider's axis, in the world."""
        return frames[1].r - frames[0].r, frames[0].E.T @ numbers[2:]

    @staticmethod
    def _along(gap: Array, axis: Array, rod: Array) -> Array:
        """The part of the rod along the axis; NaN where the rod is too short."""
        height = axis @ gap
        square = height * height + rod * rod - gap @ gap
        return np.where(square > 0.0, np.sqrt(np.where(square > 0.0, square, 1.0)), np.nan)

    def __repr__(self) -> str:
        (slider, at), (crank, meets), (gear, rod, *axis) = *self.ends, self.numbers.tolist()
        places = f"at={tuple(at.r.tolist())}, meets={tuple(meets.r.tolist())}, axis={tuple((at.E.T @ axis).tolist())}"
        return f"SliderCrank({slider!r}, {crank!r}, {rod!r}, {places}{'' if gear == 1.0 else f', gear={gear!r}'})"


class Wrench(Transmission):
    """A force and a moment on a body, along its own axes or along those of another body, which feels the opposite.

    Without another body, such as for a propeller, it has a velocity, but no position that a servo could follow. With
    another one, the position is what the body has moved and turned, seen from there, times force and moment; a turn
    counts as its rotation vector.
    """

    def __init__(
        self, body: str, force: Any = (0, 0, 0), moment: Any = (0, 0, 0), at: Place = (0, 0, 0), turned: Any = None,
        *, against: str | None = None, origin: Place = (0, 0, 0), origin_turned: Any = None,
    ) -> None:  # fmt: skip
        """Describes a wrench.

        Args:
            body: the body that it acts on.
            force: 3, the force by unit of the actuator's force.
            moment: 3, the moment by unit of the actuator's force, m.
            at, turned: a frame on the body: force and moment act at its origin, along its axes.
            against: the body that feels the opposite, or "ground"; force and moment are then along its axes.
            origin, origin_turned: a frame on that body. Where both frames agree, the position is zero.
        """
        what = "a wrench"
        parts = [numbers(f"{what}: its {n}", x, (3,)) for n, x in (("moment", moment), ("force", force))]
        if not np.any(parts):
            raise ModelError(f"{what}: its force and its moment are both zero")
        ends = [End(named(f"{what}: its body", body), placed(what, at, turned))]
        if against is not None:
            ends.append(End(named(f"{what}: the body it is against", against), placed(what, origin, origin_turned)))
        self._set(ends, np.concatenate(parts))

    @property
    def has_position(self) -> bool:  # type: ignore[override]
        """Whether it has a position u: if it is against another body."""
        return len(self.ends) == 2

    @property
    def is_balanced(self) -> bool:  # type: ignore[override]
        """Whether another body feels the opposite."""
        return len(self.ends) == 2

    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        if len(frames) == 1:
            return np.array(0.0)
        moved = frames[0] @ frames[1].inverse()  # from the frame that it is against
        return numbers[3:] @ moved.r + numbers[:3] @ _rotation_vector(moved.E.T)

    def wrenches(self, frames: Sequence[Transform], numbers: Array) -> list[Array]:
        turned = frames[-1].E.T
        moment, force = turned @ numbers[:3], turned @ numbers[3:]
        wrench = np.concatenate([moment + cross(frames[0].r, force), force])
        return [wrench] if len(frames) == 1 else [wrench, -wrench]

    def scaled(self, factor: float) -> Wrench:
        return self._with(numbers=factor * self.numbers)

    def __repr__(self) -> str:
        moment, force = (tuple(x.tolist()) for x in np.split(self.numbers, 2))
        against = f", against={self.ends[1].body!r}" if len(self.ends) == 2 else ""
        return f"Wrench({self.ends[0].body!r}, force={force}, moment={moment}{against})"


def _points(given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"the points of a cable must be pairs of a body and a point, got {clipped(given)}")
    return list(given)


def _end(what: str, given: Any) -> End:
    """A point of a body, as an end."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise ModelError(f"{what} must be a pair of a body and a point, got {clipped(given)}")
    body, point = given
    return End(named(f"{what}: its body", body), placed(what, numbers(f"{what}: its point", point, (3,)), None))


def _stretches(frames: Sequence[Transform], shares: Array) -> list[tuple[Array, Array]]:
    """The share of each stretch of a cable, and the way along it."""
    return [(share, b.r - a.r) for share, (a, b) in zip(shares, pairwise(frames), strict=True)]


def _force_at(point: Array, force: Array) -> Array:
    return np.concatenate([cross(point, force), force])


def _rotation_vector(R: Array) -> Array:
    """The rotation vector of a rotation matrix; undefined for half a turn."""
    sine = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    square, cosine = sine @ sine, 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    length = np.sqrt(np.where(square > 0.0, square, 1.0))
    return np.where(square > 0.0, np.arctan2(length, cosine) / length, 1.0) * sine
