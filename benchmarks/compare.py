"""Two source trees of coupler against each other, as ratios.

    git worktree add ../before v1.0
    python benchmarks/compare.py ../before/src src [WORD...]

Each tree runs in a process of its own, with one thread, and they take turns, row by row, because machines are shared
and noisy. Each round has new processes, because where memory and code happen to be can make a row take twice as long.
Best times count. Words choose rows whose names have one of them. For a row that one of the trees cannot run, the reason
is printed. common/compared_rows.py has the rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 4
BUDGET = 0.3  # s a row and turn
WINDOW, LONG = 1e-3, 0.1  # s that calls are timed together, and from which on a call counts by processor time


def work() -> None:
    """Measures the rows whose names come in, one a line; answers with seconds, or with what went wrong."""
    from common.compared_rows import ROWS

    calls: dict[str, Callable[[], object]] = {}
    print(json.dumps([*ROWS]), flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in calls:
                calls[name] = ROWS[name]()
            answer: Any = best(calls[name])
        except Exception as error:  # the tree does not have it
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(answer), flush=True)


def best(call: Callable[[], object]) -> float:
    """The best time of a call, s: of many short windows, between which others may run; by the processor if it is long.

    A window of a millisecond is seldom interrupted, even on a busy machine. Processor time is not to be trusted there.
    """
    call()  # which may compile
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    clock = processor_time if first > LONG else time.perf_counter
    times, repeat, end = list[float](), max(1, int(WINDOW / first)), start + BUDGET
    while not times or time.perf_counter() < end:
        start = clock()
        for _ in range(repeat):
            call()
        times.append((clock() - start) / repeat)
    return min(times)


def processor_time() -> float:
    """The processor time of this process and of those that it has waited for, s."""
    of_children = os.times()[2:4]
    return time.process_time() + sum(of_children)


class Worker:
    """A process that measures with the coupler of a source tree."""

    def __init__(self, source: str) -> None:
        tree, script = Path(source).resolve(), Path(__file__).resolve()
        if not (tree / "coupler").is_dir():
            sys.exit(f"{tree} has no package coupler; give a folder such as ../before/src")
        one_thread = {"COUPLER_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment = os.environ | one_thread | {"PYTHONPATH": os.pathsep.join([str(tree), str(script.parent)])}
        command = [sys.executable, "-W", "ignore", str(script), "--work"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environment, **pipes)
        self.rows: list[str] = self._answer()

    def seconds(self, row: str) -> float | str:
        """The best time of a row in a turn; or why there is none."""
        print(row, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else sys.exit("a worker ended")

    def end(self) -> None:
        """Waits for the process to end."""
        self._process.communicate()


def main(before: str, now: str, words: list[str]) -> None:
    """Prints a line for each row: best times of both trees, and the ratio of now to before."""
    times: dict[str, tuple[list[Any], list[Any]]] = {}
    for turn in range(ROUNDS):
        print(f"round {turn + 1} of {ROUNDS}", file=sys.stderr, flush=True)
        workers = Worker(before), Worker(now)
        for row in workers[1].rows:
            if not words or any(word in row for word in words):
                for worker, own in zip(workers, times.setdefault(row, ([], [])), strict=True):
                    own.append(worker.seconds(row))
        for worker in workers:
            worker.end()
    print(f"{'':50} {'before, µs':>12} {'now, µs':>12} {'now / before':>13}")
    for row, (old, new) in times.items():
        failed = next((own for own in (*old, *new) if isinstance(own, str)), "")
        print(f"{row:50} {failed or f'{min(old) * 1e6:12.2f} {min(new) * 1e6:12.2f} {min(new) / min(old):13.3f}'}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    elif len(sys.argv) < 3:
        print(f"skipped: this compares two source trees\n\n{__doc__}")
    else:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
