"""Logs as npz files, whose arrays are named after the attributes of a log."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model import ModelError
from coupler.model.outputs import written_whole
from coupler.simulate.archive import load_arrays
from coupler.simulate.logs.columns import COLUMNS, Heading

if TYPE_CHECKING:
    from coupler.simulate.logs.log import Log

_WORDS = ("robot", "contacts", "joints", "note")


def save(log: Log, path: Path) -> None:
    """Writes a log, one column after the other, in pieces that fit into any memory.

    It is not compressed: compression would save a third of the space and take ten times as long.
    """
    words = {name: np.array(getattr(log, name), dtype=str) for name in _WORDS}
    with written_whole(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, value in {**words, "step": np.array(log.step)}.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, value, allow_pickle=False)
        for name in log.columns:
            column = getattr(log[:0], name)
            described = np.lib.format.header_data_from_array_1_0(column)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, {**described, "shape": (len(log), *column.shape[1:])})
                for part in log.parts():
                    member.write(np.ascontiguousarray(getattr(part, name)).data)


def load(path: Path) -> dict[str, Any]:
    """The contents of a log's npz file, by name, for `Log`.

    Raises:
        ModelError: for a file that does not exist, is not an npz file, or lacks what every log has, naming it.
    """
    return load_arrays(path, ("times", "step", *_WORDS), COLUMNS)


class NpzColumns:
    """The columns of an npz file that was just written, read on demand."""

    def __init__(self, path: Path, heading: Heading, rows: int) -> None:
        self.heading, self.rows = heading, rows
        self._path, self._written, self._read = path, _identity(path), dict[str, np.ndarray]()

    def read(self, name: str, first: int, last: int) -> np.ndarray:
        """A column from row `first` to row `last`, which is excluded; see `Source`."""
        if name not in self._read:
            column = load_arrays(self._path, [name])[name]
            if _identity(self._path) != self._written:
                raise ModelError(f"{self._path}: another log has taken its place")
            self._read[name] = column
        return self._read[name][first:last]


def _identity(path: Path) -> tuple[int, int, int]:
    """A key that tells a file from another one that later takes its place."""
    info = os.stat(path)
    return info.st_ino, info.st_size, info.st_mtime_ns
