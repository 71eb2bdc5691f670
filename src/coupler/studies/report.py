"""Common tools of studies: print and save tables, verdicts, notes and pictures, and measure times.

Whatever a study prints with these is kept in its record as well, from which `coupler study --all` makes a page.
"""

from __future__ import annotations

import csv
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coupler.model import ModelError

VERDICTS = ("agrees", "better", "differs")
_FEWEST = 3  # samples of a time


class LeftOut(ModelError):
    """A study needs what is not installed here: a library, or a robot that is not part of coupler."""


@dataclass(frozen=True)
class Verdict:
    """A paper's statement, the measurement here, and the outcome: agrees, better, or differs and why."""

    what: str
    paper: str
    ours: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.what}: paper {self.paper}, here {self.ours}: {self.outcome}"


@dataclass
class Record:
    """The record of a study.

    Attributes:
        name: the study's name.
        about: what the study shows.
        full: whether it may take longer than two minutes.
        verdicts, notes, pictures: in order.
        tables: heads and rows, as texts.
        failure: why the study ended early; empty if it did not.
        left_out: what the study needs but is not installed; empty if nothing.
        seconds: how long the study took.
    """

    name: str
    about: str
    full: bool = False
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    failure: str = ""
    left_out: str = ""
    seconds: float = 0.0


_RECORD: ContextVar[Record | None] = ContextVar("record", default=None)


@contextmanager
def recorded(record: Record) -> Iterator[Record]:
    """A context that keeps what the study inside shows, and how long it takes, in a record."""
    token, start = _RECORD.set(record), time.perf_counter()
    try:
        yield record
    finally:
        record.seconds = time.perf_counter() - start
        _RECORD.reset(token)


def full() -> bool:
    """Whether the study that runs may take longer than two minutes: `coupler study --full`."""
    record = _RECORD.get()
    return record is not None and record.full


def save_table(path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a table and writes it as a CSV file."""
    texts = [[x if isinstance(x, str) else f"{x:.4g}" for x in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    for row in texts:
        print("  ".join(x.ljust(w) if i == 0 else x.rjust(w) for i, (x, w) in enumerate(zip(row, widths, strict=True))))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    print(f"\nsaved {path}")
    if record := _RECORD.get():
        record.tables.append(texts)


def verdict(what: str, paper: str, ours: str, outcome: str) -> None:
    """Prints in one line what a paper says, what was found here, and what that means: agrees, better, or differs."""
    if not outcome.startswith(VERDICTS):
        raise ValueError(f"a verdict begins with {', '.join(VERDICTS)}; got {outcome!r}")
    line = Verdict(what, paper, ours, outcome)
    print(line)
    if record := _RECORD.get():
        record.verdicts.append(line)


def note(text: str) -> None:
    """Prints what a reader must know to understand the numbers, such as what a time includes."""
    print(text)
    if record := _RECORD.get():
        record.notes.append(text)


def progress(text: str) -> None:
    """Prints what is being computed, for a user who waits."""
    print(f"... {text}", flush=True)


def with_pyplot(path: Path, draw: Callable[[Any], None]) -> None:
    """Draws a picture with matplotlib and saves it, if matplotlib is installed."""
    try:
        import matplotlib  # type: ignore[import-not-found]
    except ImportError:
        print("no picture: matplotlib is not installed (pip install matplotlib)")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # type: ignore[import-not-found]

    draw(plt)
    plt.savefig(path, bbox_inches="tight", dpi=110)
    plt.close("all")
    keep_picture(path)


def keep_picture(path: Path) -> None:
    """Prints that a picture was saved, and keeps it in the record."""
    print(f"saved {path}")
    if record := _RECORD.get():
        record.pictures.append(path)


def best_times(calls: Sequence[Callable[[], Any]], seconds: float = 1.0) -> list[float]:
    """The best time of each call, s; calls take turns, because machines are shared and noisy.

    Of CPU times, a tenth are left out: on virtual machines, whose host takes some of their time and tells them how much
    only now and then, one or the other is too short.
    """
    samples = _samples(calls, seconds * len(calls))
    return [
        min(min(passed for passed, _ in pairs), sorted(on_processor for _, on_processor in pairs)[len(pairs) // 10])
        for pairs in samples
    ]


def median_times(calls: Sequence[Callable[[], Any]], seconds: float = 1.0) -> list[float]:
    """The median time of each call, s; calls take turns, for so many seconds altogether."""
    return [sorted(map(min, pairs))[len(pairs) // 2] for pairs in _samples(calls, seconds)]


def _samples(calls: Sequence[Callable[[], Any]], seconds: float) -> list[list[tuple[float, float]]]:
    """Times of calls that take turns, three of each at least: how much time passes, and how much of the processor's.

    The first call of each, which compiles, does not count.

    While other processes have the processor, a call takes no CPU time; while several threads work for it, it takes more
    of that than its own time. So the shorter of the two counts, which on an idle machine are one for a single thread.

    Garbage collection is off meanwhile: it would visit all traced nodes, which takes longer than a call.
    """
    times: list[list[tuple[float, float]]] = [[] for _ in calls]
    for call in calls:
        call()
    collecting = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times[-1]) < _FEWEST:
            for call, pairs in zip(calls, times, strict=True):
                on_processor, start = time.process_time(), time.perf_counter()
                call()
                passed = time.perf_counter() - start
                pairs.append((passed, time.process_time() - on_processor))
    finally:
        if collecting:
            gc.enable()
    return times
