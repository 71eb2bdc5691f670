"""What studies share: printing and saving tables, drawing pictures, and measuring times."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["best_times", "save_table", "verdict", "with_pyplot"]


def save_table(path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a table and writes it as a CSV file."""
    texts = [[x if isinstance(x, str) else f"{x:.4g}" for x in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    for row in texts:
        print("  ".join(x.ljust(w) if i == 0 else x.rjust(w) for i, (x, w) in enumerate(zip(row, widths, strict=True))))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    print(f"\nsaved {path}")


def verdict(what: str, paper: str, ours: str, found: str) -> None:
    """Prints in one line what a paper says, what was found here, and what that means: agrees, better, or differs."""
    print(f"{what}: paper {paper}, here {ours}: {found}")


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
    plt.savefig(path, bbox_inches="tight")
    plt.close("all")
    print(f"saved {path}")


def best_times(calls: Sequence[Callable[[], Any]], seconds: float = 1.0) -> list[float]:
    """The best time of each call, s; calls take turns, because machines are shared and noisy."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best
