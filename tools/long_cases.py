"""Chooses the cases that `make test` leaves to `make test-long`, from how long each one took.

    pytest -n auto --durations=0 > durations.txt
    python tools/long_cases.py durations.txt

Of each test with several cases, the quickest third stays, and all that take less than a second; of the others the
longest go to tests/long_cases.txt, until they make up the part of the time that is to be saved.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).parents[1] / "tests" / "long_cases.txt"
SAVED = 0.4  # of the time of all tests
SHORT = 1.0  # s


def main() -> None:
    taken: dict[str, float] = defaultdict(float)
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(tests/.*)$", line):
            taken[found[2].strip()] += float(found[1])
    groups: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case, seconds in taken.items():
        if "[" in case:
            groups[case.split("[")[0]].append((seconds, case))
    movable = [
        (seconds, case)
        for cases in groups.values()
        for seconds, case in sorted(cases)[max(1, len(cases) // 3) :]
        if seconds >= SHORT
    ]
    left, chosen = SAVED * sum(taken.values()), list[str]()
    for seconds, case in sorted(movable, reverse=True):
        if left > 0.0:
            left, chosen = left - seconds, [*chosen, case]
    LIST.write_text("".join(f"{case}\n" for case in sorted(chosen)), encoding="utf-8")
    print(f"{len(chosen)} of {len(taken)} cases that take some time are long now: {LIST.name}")


if __name__ == "__main__":
    main()
