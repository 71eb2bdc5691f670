"""Writes the records of a log to a file, each completely or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from coupler.files import claimed, open_file, release, whole_file
from coupler.model import ModelError
from coupler.model.outputs import check_target
from coupler.simulate.logs.chunks import ChunkFile
from coupler.simulate.logs.columns import Heading
from coupler.simulate.logs.records import SUFFIX, end_record, head_record, rows_record


class ChunkWriter:
    """Appends records to a file, which is created with the first of them.

    A record that could not be written, for whatever reason, leaves no trace, and can be tried again.

    Attributes:
        written: the number of records of rows in the file.
    """

    def __init__(self, path: Path, heading: Heading) -> None:
        """Writes nothing yet.

        Raises:
            ModelError: if another run writes to that file.
        """
        self.path, self.written = path, 0
        self._head, self._file, self._size = head_record(heading), None, 0
        if _is_claimed(path):
            raise ModelError(f"{path}: another run writes it; choose another file, or end that run")

    def append(self, columns: Mapping[str, np.ndarray]) -> None:
        """Adds rows.

        Raises:
            OSError: if they cannot be written.
        """
        record = rows_record(columns)
        self._add(record)
        self._size, self.written = self._size + len(record), self.written + 1

    def end(self, note: str) -> None:
        """Adds the end, and waits until everything is on the disk."""
        self._add(end_record(note))
        assert self._file is not None
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Releases the file; nothing can be added after that."""
        if self._file is not None:
            release(self._file)  # closing is not enough if a fork has another descriptor
            self._file.close()

    def read(self) -> ChunkFile:
        """The contents of the file.

        Raises:
            ModelError: if it is gone, or another run has replaced it.
        """
        return ChunkFile(self.path, self._head)

    def _add(self, record: bytes) -> None:
        if self._file is None:
            if _is_claimed(self.path):
                raise OSError(errno.EBUSY, "another run writes it")
            with whole_file(self.path, sync=False) as file:
                file.write(self._head + record)
            self._file, self._size = open(self.path, "r+b", buffering=0), len(self._head)  # noqa: SIM115
            claimed(self._file)
            return
        try:
            self._file.seek(self._size)
            rest = memoryview(record)
            while rest:
                rest = rest[self._file.write(rest) :]
        except BaseException:
            with suppress(OSError):
                self._file.truncate(self._size)
            raise


def _is_claimed(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return not claimed(file)
    except OSError:  # it does not exist, or writing will raise the error
        return False


def growing_path(path: Path) -> Path:
    """The file that grows during a run: the path itself, or a file beside it.

    Raises:
        ModelError: for a path that cannot be written to, or a suffix that a run does not write.
    """
    check_target(path)
    suffix = path.suffix.lower()
    if suffix == SUFFIX:
        return path
    if suffix != ".npz":
        raise ModelError(f"{path}: a run writes {SUFFIX} files, or .npz; `Log.save` writes others from them")
    beside = path.with_name(f"{path.name}{SUFFIX}")
    check_target(beside)
    return beside
