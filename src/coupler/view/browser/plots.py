"""Plots over time in the browser, with a line at the time that is shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.view.quantities import quantities
from coupler.view.recording import Recording

if TYPE_CHECKING:
    from viser import ViserServer

_POINTS = 360  # of a line
_PAUSE = 0.1  # s between two moves of the cursor, which sends a plot again
_COLOURS = ("#1971c2", "#e8590c", "#2f9e44", "#9c36b5", "#868e96")
_CURSOR = "#c92a2a"


class CursorPlots:
    """A plot for each quantity of a recording."""

    def __init__(self, server: ViserServer, recording: Recording) -> None:
        """Adds the plots to the current container."""
        rows = np.unique(np.linspace(0, len(recording.times) - 1, _POINTS).astype(int))
        self._times, self._plots, self._last = recording.times[rows], list[tuple[Any, list[np.ndarray]]](), 0.0
        if len(rows) < 2:
            return
        for quantity in quantities(recording, rows):
            lines = [np.asarray(line, float) for line in quantity.lines.values()]
            unit = quantity.unit
            if quantity.logarithmic:  # the browser's own logarithmic axis writes all small numbers as 0
                lines, unit = [np.log10(line) for line in lines], f"log₁₀ of {unit}"
            series: list[Any] = [{"label": "t"}]
            for k, name in enumerate(quantity.lines):
                series.append({"label": name, "stroke": _COLOURS[k % len(_COLOURS)], "width": 1.5})
            series.append({"label": "now", "stroke": _CURSOR, "width": 1.5})
            with server.gui.add_folder(f"{quantity.name} ({unit})", expand_by_default=not self._plots):
                plot = server.gui.add_uplot(
                    (self._times, *lines, self._line(lines, self._times[0])),
                    tuple(series),
                    # Without an axis of their own, the gaps of the cursor's line would spoil that of the others.
                    scales={"x": {"time": False, "range": _room(self._times)}, "y": {"range": _room(np.array(lines))}},
                    legend={"show": len(lines) > 1},
                    height=150,
                )
            self._plots.append((plot, lines))

    def mark(self, now: float, moving: bool) -> None:
        """Moves the line to a time, s; while it is moving, not more often than can be seen."""
        wall = time.monotonic()
        if moving and wall - self._last < _PAUSE:
            return
        self._last = wall
        for plot, lines in self._plots:
            plot.data = (self._times, *lines, self._line(lines, now))

    def _line(self, lines: list[np.ndarray], now: float) -> np.ndarray:
        """The line at a time: nearly vertical, from the lowest value to the highest between two neighbours in time."""
        line, k = np.full(len(self._times), np.nan), int(np.searchsorted(self._times, now))
        k = min(max(k, 1), len(self._times) - 1)
        line[k - 1 : k + 1] = np.nanmin(lines), np.nanmax(lines)
        return line


def _room(values: np.ndarray) -> tuple[float, float]:
    """The range of an axis: from a little below the lowest value to a little above the highest."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin
