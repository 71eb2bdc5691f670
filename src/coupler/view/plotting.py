"""Common parts of all plots: matplotlib, if it is installed, a style, and lines with only as many points as show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from coupler.forks import imports
from coupler.model import ModelError
from coupler.model.outputs import written_whole

SMALLEST = 1e-17  # errors below this are drawn here: a logarithmic axis has no zero
POINTS = 3000  # of a line: more than a page can resolve
_STYLE = {"font.size": 9.0, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#666666"}
_STYLE |= {"axes.linewidth": 0.8, "legend.frameon": False, "legend.fontsize": 8.5, "lines.linewidth": 1.4}


def matplotlib_module(name: str) -> Any:
    """A module of matplotlib, or of what is installed with it.

    Raises:
        ModelError: without matplotlib; it says how to install it.
    """
    try:
        with imports():
            import_module("matplotlib")
            return import_module(name)
    except ImportError:
        raise ModelError("pictures need matplotlib: pip install 'coupler[plot]'") from None


@contextmanager
def plot_style() -> Iterator[None]:
    """A context in which figures have our style, whatever style the user has set."""
    with matplotlib_module("matplotlib.style").context(["default", _STYLE]):
        yield


def new_figure(width: float, height: float, **options: Any) -> Any:
    """A figure of a size, inches. It is made without pyplot, which keeps every figure and may need a display."""
    return matplotlib_module("matplotlib.figure").Figure((width, height), **options)


def save_figure(figure: Any, path: Path, dpi: int) -> None:
    """Writes a figure to a file.

    Raises:
        ModelError: for a path that cannot be written to, and for a suffix that matplotlib does not know.
    """
    with written_whole(path) as file:
        try:
            figure.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=dpi)
        except ValueError as error:
            raise ModelError(f"{path}: the picture cannot be written: {error}") from None


def thinned(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line with fewer points that looks the same: the lowest and the highest of each stretch."""
    size = -(-len(times) // POINTS)
    if size < 3:
        return times, values
    whole = len(times) // size * size
    stretches = np.nan_to_num(values[:whole], nan=0.0).reshape(-1, size)
    ends = np.sort([stretches.argmin(axis=1), stretches.argmax(axis=1)], axis=0)
    kept = np.append((ends + size * np.arange(len(stretches))).T.ravel(), np.arange(whole, len(times)))
    return times[kept], values[kept]
