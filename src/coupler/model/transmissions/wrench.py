"""Wrenches: a force and a moment on a body, such as those of a propeller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.names import named
from coupler.model.numbers import numbers
from coupler.model.places import Place, placed
from coupler.model.transmissions.transmission import Array, End, Transmission
from coupler.spatial import Transform, cross


class Wrench(Transmission):
    """A force and a moment on a body, along its own axes or along those of another body, which feels the opposite.

    Without another body, such as for a propeller, it has a velocity, but no position that a servo could follow. With
    another one, the position is what the body has moved and turned, seen from there, times force and moment; a turn
    counts as its rotation vector.

    Args:
        body: the body that it acts on.
        force: 3, the force by unit of the actuator's force.
        moment: 3, the moment by unit of the actuator's force, m.
        at, turned: a frame on the body: force and moment act at its origin, along its axes.
        against: the body that feels the opposite, or "ground"; force and moment are then along its axes.
        origin, origin_turned: a frame on that body. Where both frames agree, the position is zero.
    """

    def __init__(
        self, body: str, force: Any = (0, 0, 0), moment: Any = (0, 0, 0), at: Place = (0, 0, 0), turned: Any = None,
        *, against: str | None = None, origin: Place = (0, 0, 0), origin_turned: Any = None,
    ) -> None:  # fmt: skip
        what = "a wrench"
        parts = [numbers(f"{what}: its {n}", x, (3,)) for n, x in (("moment", moment), ("force", force))]
        if not np.any(parts):
            raise ModelError(f"{what}: its force and its moment are both zero")
        ends = [End(named(f"{what}: its body", body), placed(what, at, turned))]
        if against is not None:
            ends.append(End(named(f"{what}: the body it is against", against), placed(what, origin, origin_turned)))
        super().__init__(ends, np.concatenate(parts))

    @property
    def has_position(self) -> bool:  # type: ignore[override]
        """Whether it has a position u: if it is against another body."""
        return len(self.ends) == 2

    @property
    def is_balanced(self) -> bool:  # type: ignore[override]
        """Whether another body feels the opposite."""
        return len(self.ends) == 2

    @property
    def turns(self) -> bool:  # type: ignore[override]
        """Whether it is a moment alone."""
        return not self.numbers[3:].any()

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
        """The same with this factor on its position."""
        return self._with(numbers=factor * self.numbers)

    def __repr__(self) -> str:
        moment, force = (tuple(x.tolist()) for x in np.split(self.numbers, 2))
        against = f", against={self.ends[1].body!r}" if len(self.ends) == 2 else ""
        return f"Wrench({self.ends[0].body!r}, force={force}, moment={moment}{against})"


def _rotation_vector(R: Array) -> Array:
    """The rotation vector of a rotation matrix; undefined for half a turn."""
    sine = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    square, cosine = sine @ sine, 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    length = np.sqrt(np.where(square > 0.0, square, 1.0))
    return np.where(square > 0.0, np.arctan2(length, cosine) / length, 1.0) * sine
