"""A line that shows the progress of a long run."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Self

_PATIENCE = 1.0  # s: shorter runs show nothing
_PAUSE = 0.2  # s between two lines
_STRIDE = 64  # steps between two looks at the clock
_WIDTH = 24  # characters of the bar
_TINY = 1e-9  # in place of a zero divisor


class Progress:
    """Shows the progress of a long run on stderr; a context manager that leaves the last line on the screen.

    Args:
        steps: the number of steps of the run.
        step: their length, s.
        shown: whether to show the progress; None shows it on a terminal.
    """

    def __init__(self, steps: int, step: float, shown: bool | None) -> None:
        self._steps, self._step = steps, step
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._begin = self._last = monotonic()
        self._done, self._drawn = 0, False

    def update(self, done: int) -> None:
        """Notes the number of completed steps; this is cheap."""
        self._done = done
        if self._shown and done % _STRIDE == 0:
            now = monotonic()
            if now - self._begin > _PATIENCE and now - self._last > _PAUSE:
                self._draw(now)

    def _draw(self, now: float) -> None:
        self._last, self._drawn = now, True
        part = self._done / max(self._steps, 1)
        bar = ("=" * round(_WIDTH * part)).ljust(_WIDTH)
        elapsed = max(now - self._begin, _TINY)
        remaining = elapsed * (1.0 - part) / max(part, _TINY)
        times = self._done * self._step / elapsed
        text = f"\r[{bar}] {self._done * self._step:.2f} of {self._steps * self._step:.2f} s"
        sys.stderr.write(f"{text}, {times:.3g} × real time, {remaining:.0f} s left   ")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._draw(monotonic())
            sys.stderr.write("\n")
