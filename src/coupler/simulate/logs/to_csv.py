"""Logs as tables of text: a line for each row, a field for each number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coupler.model.outputs import written_whole

if TYPE_CHECKING:
    from coupler.simulate.logs.log import Log


def save(log: Log, path: Path) -> None:
    """Writes a log. Numbers have as many digits as are needed to tell them apart; fields are named like q[0]."""
    names = [
        name + "".join(f"[{i}]" for i in place)
        for name in log.columns
        for place in np.ndindex(getattr(log[:0], name).shape[1:])
    ]
    with written_whole(path) as file:
        file.write(",".join(names).encode() + b"\n")
        for part in log.parts():
            columns = [getattr(part, name).reshape(len(part), -1).astype(str) for name in part.columns]
            lines = [",".join(row) for row in np.hstack(columns)]
            file.write("\n".join([*lines, ""]).encode())
