"""The state before a step and the results after it, as vectors of a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.kernels import in_parts
from coupler.contact.scene import Layout
from coupler.graph import Part, View, fields
from coupler.model.tolerances import OPEN
from coupler.passes import Sweep


class StateVectors:
    """The parts of the state before a step, and of its results; `Layout` names them.

    Python calls programs fastest with few plain arrays. So the state is one input, and all results are one output.

    Attributes:
        before: the parts of the state before the step.
        after: the parts of the results, which begin with the state after the step.
    """

    def __init__(self, sweep: Sweep[Any, Any], layout: Layout) -> None:
        self._sweep, state = sweep, sweep.input("state", layout.state)
        self._results = sweep.builder.output("after", layout.size)
        self.after = {
            name: Part(self._results, place.start, place.stop - place.start) for name, place in layout.places.items()
        }
        self.before = {
            name: Part(state, self.after[name].start, self.after[name].size) for name in layout.parts_of_state
        }

    def invalidate_open_loops(self) -> None:
        """Writes the steps that make all results NaN where a loop of the configuration is open."""
        builder, gap = self._sweep.builder, self._sweep.gap
        if gap is not None:
            with builder.repeat(until=_is_closed, at_most=1, rare=True, state=fields(gap=gap.at(0))):
                for starts, size in in_parts(self._results.size):
                    builder.loop(_make_nan, row=fields(x=self._results.at(starts, size)))


def _is_closed(state: View) -> Any:
    return state.gap < OPEN


def _make_nan(row: View) -> None:
    row.x = np.full(len(row.x), np.nan)
