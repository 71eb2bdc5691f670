"""Friction of second order: it opposes the mean of a sliding contact's velocities before and after a step.

In Euler's methods, friction opposes the velocity w⁺ after a step, which dissipates most and stops what it can hold. If
a contact changes its direction, that is the direction at the end, an error of first order. A constant force that
opposes (w + w⁺)/2 is of second order, like the trapezoidal rule [002, refs. 22, 41: Potra, Anitescu, Gavrea, Trinkle, A
linearly implicit trapezoidal method for integrating stiff multibody dynamics with contact, joints, and friction, 2006].
With A λ + b = w⁺, the law has the same form for the sum w + w⁺ = A λ + (b + w): it needs another b, but no other
solver. A contact that friction stops must rest, though, and not turn back. So this law is for contacts that slide on
under the law of w⁺, and where there are some, the problem is solved twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.rows import Indices
from coupler.contact.step.blocks import Blocks, shared
from coupler.graph import Vector, View, Window, fields

_SLIDES_ON = 0.1  # of its velocity, along the direction of slip: a contact with less after a step is about to stop


def slides_on(before: Any, after: Any) -> Any:
    """Whether a contact slides on, from its velocities along both tangents before and after a step, m/s."""
    return before[0] * after[0] + before[1] * after[1] > _SLIDES_ON * (before[0] * before[0] + before[1] * before[1])


class Sliding:
    """The contacts of a program that slide on, and one more round of solving for them.

    Attributes:
        approach: 3 for each contact, its velocity before the step.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, builder = blocks, blocks.builder
        self.approach = builder.scratch("approach", 3 * blocks.contacts)
        self._state = {name: builder.scratch(f"sliding_{name}", 1) for name in ("again", "known")}

    def begin(self) -> None:
        """Writes the step that forgets which contacts slide."""
        self._blocks.builder.loop(_begin, state=self._scalars())

    def look(self) -> None:
        """Writes the steps that give sliding contacts their law, once no other contact waits to join."""
        state = shared(joining=self._blocks.joining, **self._state)

        def more(contacts: Indices) -> Window:
            return state(contacts) | fields(approach=self.approach.at(3 * np.asarray(contacts), 3))

        for contacts in self._blocks.alike(range(self._blocks.contacts)):
            window = self._blocks.of(contacts) | more(contacts)
            self._blocks.builder.loop(_look, contact=window, **self._blocks.among("active", contacts))
        self._blocks.builder.loop(_end, state=self._scalars())

    def _scalars(self) -> Window:
        buffers: dict[str, Vector] = {"joining": self._blocks.joining, **self._state}
        return fields(**{name: buffer.at(0) for name, buffer in buffers.items()})


def _begin(state: View) -> None:
    state.again = state.known = np.array(0.0)


def _look(contact: View) -> None:
    on = slides_on(contact.approach[1:], contact.w[1:]) & (contact.friction[0] > 0.0)
    on = on & (contact.joining <= 0.0) & (contact.known <= 0.0)
    others = np.zeros(len(contact.b) - 3)  # spin and rolling oppose velocities after the step
    sum_of_both = np.concatenate([np.zeros(1), contact.approach[1:], others])
    contact.b = contact.b + np.where(on, sum_of_both, 0.0)
    contact.again = np.maximum(contact.again, np.where(on, 1.0, 0.0))


def _end(state: View) -> None:
    state.known = np.where(state.joining <= 0.0, 1.0, state.known)
    state.joining, state.again = np.maximum(state.joining, state.again), np.array(0.0)
