"""Play, pause, scrub and speed: controls of a time that runs with the clock or follows the user."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SPEEDS = ("0.05 ×", "0.1 ×", "0.25 ×", "0.5 ×", "1 ×", "2 ×", "4 ×")
_SHORTEST = 1e-6  # s, of a slider
_FRAMES = 30.0  # a second
_LONGEST = 0.25  # s: the most by which a frame advances the time, after the machine was busy
_SETTLED = 0.4  # s after a user let go of the slider


def speed_of(text: Any) -> float:
    """The number in one of `SPEEDS`."""
    return float(str(text).split()[0])


class Transport:
    """Controls of a time, and the thread that advances it.

    Attributes:
        time: the time that is shown, s.
        playing: whether the time is running.
        button, slider: controls.
    """

    def __init__(self, gui: Any, start: float, end: float, show: Callable[[float, bool], None]) -> None:
        """Adds controls to the current container; `run` starts it.

        Args:
            gui: viser's.
            start, end: the range of times, s.
            show: a function that shows a time, s; it is also told whether the time is running.
        """
        self.time, self.playing, self._start, self._end, self._show = start, True, start, end, show
        self._speed, self._scrubs, self._wake, self._stopped = 1.0, 0, threading.Event(), False
        self.button = gui.add_button("Pause")
        self.button.on_click(lambda _: self.play(not self.playing))
        span = max(end - start, _SHORTEST)
        step = float(10.0 ** np.floor(np.log10(span / 500.0)))
        self.slider = gui.add_slider("Time (s)", round(start, 6), round(start + span, 6), step, round(start, 6))
        self.slider.on_update(self._scrubbed)
        speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1 ×")
        speed.on_update(lambda event: setattr(self, "_speed", speed_of(event.target.value)))
        self._again = gui.add_checkbox("Play again at the end", True)
        self._thread = threading.Thread(target=self._run, name="coupler-player", daemon=True)

    def run(self) -> None:
        """Starts to play."""
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def seek(self, time: float) -> None:
        """Shows another time, s."""
        self.time = float(np.clip(time, self._start, self._end))
        self._wake.set()

    def play(self, playing: bool) -> None:
        """Continues or pauses; at the end, starts again."""
        if playing and self.time >= self._end:
            self.time = self._start
        self.playing = playing
        self.button.label = "Pause" if playing else "Play"
        self._wake.set()

    def wake(self) -> None:
        """Shows the present time again."""
        self._wake.set()

    def _scrubbed(self, event: Any) -> None:
        if event.client is not None:  # and not set by ourselves
            self._scrubs += 1
            self.play(False)
            self.seek(float(event.target.value))

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stopped:
            now = time.monotonic()
            if self.playing:
                self._advance(self._speed * min(now - last, _LONGEST))
            last = now
            scrubs = self._scrubs
            self._show(self.time, self.playing)
            if abs(self.slider.value - self.time) > self.slider.step:
                self._place_slider()
            woken = self._wake.wait(1.0 / _FRAMES if self.playing else _SETTLED if scrubs else None)
            if not woken and not self.playing and scrubs == self._scrubs:
                self._settle()
            self._wake.clear()

    def _settle(self) -> None:
        """Sends the slider's value once more, since late messages to a slow browser may have moved it."""
        self._scrubs = 0
        self.slider.value = self.slider.min if self.time > self._start else self.slider.max  # else it is not sent
        self._place_slider()

    def _place_slider(self) -> None:
        self.slider.value = round(float(np.clip(self.time, self.slider.min, self.slider.max)), 6)

    def _advance(self, seconds: float) -> None:
        self.time += seconds
        if self.time > self._end:
            self.time = self._start if self._again.value else self._end
            if not self._again.value:
                self.play(False)
