"""Friction of second order: where a contact slides on, it opposes the mean of the velocities before and after a step.

Euler's methods let friction oppose the velocity w⁺ after a step, which dissipates most and brings to rest what it can
hold. Of a contact whose direction changes, that is the direction at the end, and of first order. A constant force that
opposes (w + w⁺)/2 is of second order, as the trapezoidal rule is [002, refs. 22, 41: Potra, Anitescu, Gavrea, Trinkle,
A linearly implicit trapezoidal method for integrating stiff multibody dynamics with contact, joints, and friction,
2006]. With A λ + b = w⁺, the law is the same for the sum w + w⁺ = A λ + (b + w): so it takes another b, and no other
solver. What it brings to rest must rest, though, and not turn back: so that is for contacts which the law of w⁺ lets
slide on, and the problem is solved twice where there are some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.step.blocks import Blocks, shared
from coupler.graph import Vector, View, Window, fields

_LEFT = 0.1  # of its velocity, along where it slid: what must be left of it after a step, or it is about to stop


def slides_on(before: Any, after: Any) -> Any:
    """Whether a contact slides on, from its velocities along both tangents before and after a step, m/s."""
    return before[0] * after[0] + before[1] * after[1] > _LEFT * (before[0] * before[0] + before[1] * before[1])


class Sliding:
    """The contacts of a program that slide on, and one more round for them.

    Attributes:
        approach: 3 for each contact, its velocities before the step.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, builder = blocks, blocks.builder
        self.approach = builder.scratch("approach", 3 * blocks.contacts)
        self._state = {name: builder.scratch(f"sliding_{name}", 1) for name in ("again", "known")}

    def begin(self) -> None:
        """Writes that nothing is known of contacts that slide."""
        self._blocks.builder.loop(_begin, state=self._scalars())

    def look(self) -> None:
        """Writes the steps that give contacts the law of those that slide on, once no other waits to join."""
        state = shared(joining=self._blocks.joining, **self._state)

        def more(contacts: Sequence[int]) -> Window:
            return state(contacts) | fields(approach=self.approach.at([3 * k for k in contacts], 3))

        contacts = self._blocks.all[: self._blocks.contacts]
        window = self._blocks.of(contacts) | more(contacts)
        self._blocks.builder.loop(_look, own=window, **self._blocks.among("active", contacts))
        self._blocks.builder.loop(_end, state=self._scalars())

    def _scalars(self) -> Window:
        buffers: dict[str, Vector] = {"joining": self._blocks.joining, **self._state}
        return fields(**{name: buffer.at(0) for name, buffer in buffers.items()})


def _begin(state: View) -> None:
    state.again = state.known = np.array(0.0)


def _look(own: View) -> None:
    on = slides_on(own.approach[1:], own.w[1:]) & (own.friction[0] > 0.0)
    on = on & (own.joining <= 0.0) & (own.known <= 0.0)
    own.b = own.b + np.where(on, np.stack([0.0, own.approach[1], own.approach[2]]), 0.0)
    own.again = np.maximum(own.again, np.where(on, 1.0, 0.0))


def _end(state: View) -> None:
    state.known = np.where(state.joining <= 0.0, 1.0, state.known)
    state.joining, state.again = np.maximum(state.joining, state.again), np.array(0.0)
