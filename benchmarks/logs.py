"""How fast the rows of a run become a log, and what they take on the disk and in memory.

    python benchmarks/logs.py

The rows are those of the Mini Cheetah on its four feet: what a simulation hands over after each step.
"""

from __future__ import annotations

import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import coupler
from coupler.model import ModelWarning
from coupler.simulate.log_rows import Rows
from coupler.simulate.logs import LogWriter

ROWS, REPEATS = 100_000, 3
CASES: dict[str, dict[str, Any]] = {
    "in memory": {},
    "run.clog": {"path": "run.clog"},
    "run.clog, float32": {"path": "run.clog", "dtype": "float32"},
    "run.clog, q and v": {"path": "run.clog", "record": ["q", "v"]},
    "run.npz": {"path": "run.npz"},
}


def logged(simulation: coupler.Simulation, folder: Path, rows: int, path: str | None = None, **options: Any) -> None:
    place = folder / path if path else None
    engine, state, tau = simulation._engine, simulation._state, np.zeros(simulation.robot.nv)
    with LogWriter(place, simulation.robot, simulation.step_size, simulation.contacts, **options) as writer:
        handed = Rows(writer, engine)
        for k in range(rows):
            handed.add(1e-3 * k, state, tau, simulation._last_result)
        handed.flush()


def main() -> None:
    robot = coupler.robots.load("mini_cheetah").with_floor()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of how it starts, which does not matter here
        simulation = coupler.Simulation(robot, contacts="*foot*")
        simulation.step()
    print(f"{'':20}{'rows/s':>10}{'µs/row':>8}{'bytes/row':>11}{'peak MB':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, options in CASES.items():
            logged(simulation, folder, 1000, **options)
            seconds = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                logged(simulation, folder, ROWS, **options)
                seconds.append(time.perf_counter() - start)
            size = (folder / options["path"]).stat().st_size / ROWS if "path" in options else np.nan
            tracemalloc.start()
            logged(simulation, folder, ROWS // 5, **options)
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            best = min(seconds)
            print(f"{case:20}{ROWS / best:10,.0f}{1e6 * best / ROWS:8.2f}{size:11.0f}{peak:9.1f}")


if __name__ == "__main__":
    main()
