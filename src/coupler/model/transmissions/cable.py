"""Cables over points of bodies, and around spheres and cylinders between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from coupler.model.axes import plane_across
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.places import placed
from coupler.model.transmissions.transmission import Array, End, Transmission, end_at
from coupler.model.transmissions.wrapping import length_around_cylinder, length_around_sphere
from coupler.model.wording import clipped
from coupler.rotation import unit
from coupler.spatial import Transform

_POINT, _SPHERE, _CYLINDER = "point", "sphere", "cylinder"


@dataclass(frozen=True, eq=False)
class Around:
    """A sphere or a cylinder on a body, around which a cable runs between two of its points where it is in the way.

    Attributes:
        body: the body, or "ground".
        radius: m.
        at: 3, its centre on the body, m.
        axis: 3, the axis of a cylinder, which has no ends; None for a sphere.
        side: 3, a point on the body, outside, on whose side the cable passes; None if it takes the shorter way.
    """

    body: str
    radius: float
    at: Any = (0.0, 0.0, 0.0)
    axis: Any = None
    side: Any = None


class Cable(Transmission):
    """A cable over points of bodies; its position is its length, m.

    A positive force lengthens it. With shares below zero, a positive force pulls. A cable may be given forces of either
    sign: limits of an actuator's effort keep it from pushing.

    Args:
        points: the points that it runs over, in order: pairs of a body, or "ground", and a point on it, 3, m. What
            it runs around is `Around(...)` between two points.
        shares: how much of the length between two points counts, for each two points: 1 by default, ½ behind a
            pulley with two falls, 0 where the cable is interrupted. One number stands for all.
    """

    pattern: tuple[tuple[str, bool], ...]  # of all ends: a point or the kind of a shape, and whether the side is given

    def __init__(self, points: Any, shares: Any = 1.0) -> None:
        described = [_described(i, part) for i, part in enumerate(_parts(points), 1)]
        ends, figures = [end for end, _, _ in described], [number for _, _, numbers in described for number in numbers]
        self._put("pattern", tuple(kind for _, kind, _ in described))
        corners = [kind == _POINT for kind, _ in self.pattern]
        if corners.count(True) < 2 or not (corners[0] and corners[-1]):
            raise ModelError(f"a cable runs from a point to a point, got {clipped(points)}")
        if not all(a or b for a, b in pairwise(corners)):
            raise ModelError("a cable runs around one shape at a time: give it a point between two of them")
        values = numbers("the shares of a cable", shares, (corners.count(True) - 1,), spread=True)
        if not values.any():
            raise ModelError("the shares of a cable are all zero: its length never changes")
        super().__init__(ends, [*values, *figures])

    @property
    def key(self) -> tuple[Any, ...]:
        return Cable, self.pattern

    @property
    def shares(self) -> np.ndarray:
        """How much of each stretch counts."""
        return self.numbers[: sum(kind == _POINT for kind, _ in self.pattern) - 1]

    @property
    def parts(self) -> list[End | Around]:
        """The points and the shapes that it runs over, in order."""
        sizes = [0 if kind == _POINT else 4 for kind, _ in self.pattern]
        figures = np.split(self.numbers[len(self.shares) :], list(accumulate(sizes))[:-1])
        parts: list[End | Around] = []
        for end, (kind, sided), values in zip(self.ends, self.pattern, figures, strict=True):
            if kind == _POINT:
                parts.append(end)
                continue
            axis = tuple(end.at.E[2].tolist()) if kind == _CYLINDER else None
            side = tuple((end.at.r + end.at.E.T @ values[1:]).tolist()) if sided else None
            parts.append(Around(end.body, float(values[0]), tuple(end.at.r.tolist()), axis, side))
        return parts

    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        total = np.array(0.0)
        for share, i, j, around in self._stretches(frames, numbers):
            a, b = frames[i], frames[j]
            length = _length(b.r - a.r) if around is None else around.length(_seen(around.frame, a, b))
            total = total + share * length
        return total

    def scaled(self, factor: float) -> Cable:
        """The same with this factor on its position."""
        values, count = np.array(self.numbers), len(self.shares)
        values[:count] *= factor
        return self._with(numbers=values)

    def _stretches(self, frames: Sequence[Transform], numbers: Array) -> Iterator[tuple[Array, int, int, _Wrap | None]]:
        """For each two points: the share, the numbers of both, and what the cable runs around in between."""
        shares, figures, start, around = iter(numbers), numbers[len(self.shares) :], 0, None
        for i, (frame, (kind, sided)) in enumerate(zip(frames, self.pattern, strict=True)):
            if kind != _POINT:
                around, figures = _Wrap(i, kind, frame, figures[0], figures[1:4] if sided else None), figures[4:]
            elif i:
                yield next(shares), start, i, around
                start, around = i, None

    def __repr__(self) -> str:
        points = [
            repr(part) if isinstance(part, Around) else repr((part.body, tuple(part.at.r.tolist())))
            for part in self.parts
        ]
        shares = "" if (self.shares == 1.0).all() else f", shares={self.shares.tolist()}"
        return f"Cable([{', '.join(points)}]{shares})"


@dataclass(frozen=True, eq=False)
class _Wrap:
    """A shape in a stretch of a cable: the number of its end, its frame in the world, its radius, and the side."""

    number: int
    kind: str
    frame: Transform
    radius: Array
    side: Array | None

    def length(self, ends: Array) -> Array:
        """The length between two points, 6, in its frame."""
        measure = length_around_sphere if self.kind == _SPHERE else length_around_cylinder
        return measure(ends, self.radius, self.side)


def _parts(given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"the points of a cable must be pairs of a body and a point, got {clipped(given)}")
    return list(given)


def _described(number: int, part: Any) -> tuple[End, tuple[str, bool], list[float]]:
    """A point or a shape: its end, its kind and whether the side is given, and its numbers."""
    what = f"point {number} of a cable"
    if not isinstance(part, Around):
        return end_at(what, part), (_POINT, False), []
    what = f"{what}, a shape"
    radius = float(numbers(f"{what}: its radius", part.radius, (), least=0.0))
    if not radius:
        raise ModelError(f"{what}: its radius must be above zero")
    end, turned = end_at(what, (part.body, part.at)), None
    if part.axis is not None:
        axis = numbers(f"{what}: its axis", part.axis, (3,))
        if not axis.any():
            raise ModelError(f"{what}: its axis must not be zero")
        turned = np.vstack([plane_across(unit(axis)), unit(axis)]).T
    end = End(end.body, placed(what, end.at.r, turned))
    kind, side = _SPHERE if part.axis is None else _CYLINDER, np.zeros(3)
    if part.side is not None:
        side = end.at.E @ (numbers(f"{what}: its side", part.side, (3,)) - end.at.r)
        if np.linalg.norm(side if kind == _SPHERE else side[:2]) < radius:
            raise ModelError(f"{what}: its side is a point within it; a cable runs around the outside of a shape")
    return end, (kind, part.side is not None), [radius, *side]


def _seen(frame: Transform, a: Transform, b: Transform) -> Array:
    """The origins of two frames, in another one: 6."""
    return np.concatenate([frame.E @ (x.r - frame.r) for x in (a, b)])


def _length(gap: Array) -> Array:
    """The length of a stretch; where its points meet, a tension has no direction, and the length no slope."""
    square = gap @ gap
    return np.where(square > 0.0, np.sqrt(np.where(square > 0.0, square, 1.0)), 0.0)
