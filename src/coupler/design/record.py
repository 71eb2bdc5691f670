"""The file of a sweep: results are kept as they are computed, so that an interrupted sweep can continue."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from coupler.model import ModelError

Results = Mapping[str, np.ndarray]

_KIND = "coupler sweep 2"


class SweepFile:
    """The shares of a sweep in an SQLite file; each is there completely or not at all."""

    def __init__(self, path: str | Path, identity: Mapping[str, str]) -> None:
        """Opens a file, or begins it.

        Args:
            path: the path of the file.
            identity: a digest of each thing that the sweep depends on.

        Raises:
            ModelError: for a file of something else, or of another sweep.
        """
        self.path = Path(path)
        try:
            with closing(self._connected()) as file, file:
                file.execute("CREATE TABLE IF NOT EXISTS about (kind TEXT, sweep TEXT)")
                file.execute("CREATE TABLE IF NOT EXISTS shares (number INTEGER PRIMARY KEY, results BLOB)")
                row = file.execute("SELECT kind, sweep FROM about").fetchone()
                if row is None:
                    file.execute("INSERT INTO about VALUES (?, ?)", (_KIND, json.dumps(identity)))
        except sqlite3.Error as error:
            raise ModelError(f"{self.path}: it cannot be used for a sweep: {error}") from None
        if row is not None and row[0] != _KIND:
            raise ModelError(f"{self.path}: it is not a sweep's file as this version writes them")
        before: dict[str, str] = dict(identity) if row is None else json.loads(row[1])
        differs = [name for name in {**identity, **before} if before.get(name) != identity.get(name)]
        if differs:
            which = f"{' and '.join(differs)} {'are' if len(differs) > 1 else 'is'}"
            raise ModelError(
                f"{self.path}: it belongs to another sweep: {which} not the same; name another file, or remove it"
            )

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60.0)

    def done(self) -> dict[int, Results]:
        """The shares that are done, by number."""
        with closing(self._connected()) as file:
            rows = file.execute("SELECT number, results FROM shares").fetchall()
        try:
            return {number: _unpacked(data) for number, data in rows}
        except Exception as error:
            raise ModelError(f"{self.path}: a share of it cannot be read: {error}") from None

    def add(self, number: int, results: Results) -> None:
        """Keeps a share."""
        data, arrays = io.BytesIO(), {f"result{i}": values for i, values in enumerate(results.values())}
        np.savez(data, names=np.array(list(results)), **arrays)  # type: ignore[arg-type]
        with closing(self._connected()) as file, file:
            file.execute("INSERT OR REPLACE INTO shares VALUES (?, ?)", (number, data.getvalue()))


def _unpacked(data: bytes) -> Results:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {str(name): arrays[f"result{i}"] for i, name in enumerate(arrays["names"])}
