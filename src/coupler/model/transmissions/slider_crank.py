"""Slider-cranks: a rod without mass, from a point of a body to a slider on an axis of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.transmissions.transmission import Array, Transmission, end_at
from coupler.rotation import unit
from coupler.spatial import Transform


class SliderCrank(Transmission):
    """A rod from a point of a body to a slider on an axis of another; its position is that of the slider, m.

    The rod has no mass. The slider is on the near side of the crank's point, seen along the axis.

    Args:
        slider: the body, or "ground", along an axis of which the slider moves.
        crank: the body, or "ground", that the rod turns.
        rod: the length of the rod, m.
        at: 3, where the slider's position is zero, on its body, m.
        meets: 3, the point of the crank, on its body, m.
        axis: 3, the slider's axis, in the axes of its body; its length does not matter.
        gear: a factor on the position.
    """

    def __init__(
        self, slider: str, crank: str, rod: float, at: Any = (0, 0, 0), meets: Any = (0, 0, 0), axis: Any = (0, 0, 1),
        gear: float = 1.0,
    ) -> None:  # fmt: skip
        what = "a slider-crank"
        length = float(numbers(f"{what}: its rod", rod, (), least=0.0))
        factor, along = float(numbers(f"{what}: its gear", gear, ())), numbers(f"{what}: its axis", axis, (3,))
        if not along.any() or not factor or not length:
            raise ModelError(f"{what}: its axis, its gear and the length of its rod must not be zero")
        ends = end_at(f"{what}: its slider", (slider, at)), end_at(f"{what}: its crank", (crank, meets))
        super().__init__(ends, [factor, length, *unit(along)])

    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        gear, rod = numbers[0], numbers[1]
        gap, axis = frames[1].r - frames[0].r, frames[0].E.T @ numbers[2:]
        height = axis @ gap
        square = height * height + rod * rod - gap @ gap  # of the part of the rod along the axis
        reaches = np.where(square > 0.0, 1.0, np.nan)  # out of reach there is no position, and no force
        return gear * reaches * (height - np.sqrt(np.where(square > 0.0, square, 1.0)))

    def scaled(self, factor: float) -> SliderCrank:
        """The same with this factor on its position."""
        return self._with(numbers=np.array([factor * self.numbers[0], *self.numbers[1:]]))

    def __repr__(self) -> str:
        (slider, at), (crank, meets), (gear, rod, *axis) = *self.ends, self.numbers.tolist()
        places = f"at={tuple(at.r.tolist())}, meets={tuple(meets.r.tolist())}, axis={tuple((at.E.T @ axis).tolist())}"
        return f"SliderCrank({slider!r}, {crank!r}, {rod!r}, {places}{'' if gear == 1.0 else f', gear={gear!r}'})"
