"""Reads the records of a log from a file that may be untrusted, damaged, or still growing."""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from zlib import crc32

import numpy as np

from coupler.files import open_file
from coupler.model import ModelError
from coupler.model.wording import clipped, counted
from coupler.simulate.logs.columns import Heading, check_shapes, stored_dtype
from coupler.simulate.logs.records import CRC, ENDS, FRAME, HEAD, NAME, ROWS, VERSION

_MOST_TEXT = 16 << 20  # bytes of a heading or a note: the names of thousands of contacts take one
_MOST_NUMBERS = 1 << 31  # along a dimension: far more than any robot has, and few enough for every array
_PIECE = 1 << 20  # bytes that are checked at a time
_OPEN_END = "there is no end in the file: its run still writes it, or was killed"


class ChunkFile:
    """The complete records of a file, whose columns are read on demand.

    Attributes:
        heading: the heading of the log.
        rows: the number of rows.
        note: why the run ended early; empty if it did not.
    """

    def __init__(self, path: Path, head: bytes | None = None) -> None:
        """Scans the file, without reading its rows.

        Args:
            head: the bytes with which the file must begin, if they are known.

        Raises:
            ModelError: for a file that does not exist, is not a log, or is damaged; also when its columns are read.
        """
        self._path, self._place = path, path.absolute()  # the working folder may change before columns are read
        self._starts, self._lasts = array("q"), array("q")  # for each record of rows: where its blocks start; last row
        with self._opened(head) as file:
            size = os.fstat(file.fileno()).st_size
            self.heading = self._read_head(file, size)
            at = file.tell()
            file.seek(0)
            self._head = file.read(at)
            self._row_bytes = [dtype.itemsize * prod(shape) for dtype, shape in self.heading.columns.values()]
            self.note = self._look_through(file, at, size)
        self.rows = self._lasts[-1] if self._lasts else 0

    def read(self, name: str, first: int, last: int) -> np.ndarray:
        """A column from row `first` to row `last`, which is excluded.

        Raises:
            ModelError: if the file is damaged, or was replaced since.
        """
        dtype, shape = self.heading.columns[name]
        number = list(self.heading.columns).index(name)
        result = np.empty((last - first, *shape), dtype)
        with self._opened(self._head) as file:
            k = int(np.searchsorted(self._lasts, first, side="right"))
            while k < len(self._lasts) and (before := self._lasts[k - 1] if k else 0) < last:
                values = self._block(file, k, number).view(dtype).reshape(self._lasts[k] - before, *shape)
                part = slice(max(first - before, 0), last - before)
                begin = max(before - first, 0)
                result[begin : begin + len(values[part])] = values[part]
                k += 1
        return result

    def _block(self, file: BinaryIO, k: int, number: int) -> np.ndarray:
        """The bytes of a column in the k-th record of rows."""
        rows = self._lasts[k] - (self._lasts[k - 1] if k else 0)
        file.seek(self._starts[k] + sum(rows * size + CRC.size for size in self._row_bytes[:number]))
        values = np.empty(rows * self._row_bytes[number], np.uint8)
        file.readinto(values.data)  # type: ignore[attr-defined]
        if file.read(CRC.size) != CRC.pack(crc32(values.data)):
            self._refuse_damage(self._starts[k])
        return values

    @contextmanager
    def _opened(self, head: bytes | None) -> Iterator[BinaryIO]:
        try:
            with open_file(self._place) as file:
                if head is not None and file.read(len(head)) != head:
                    raise ModelError(f"{self._path}: another log has taken its place")
                file.seek(0)
                yield file
        except FileNotFoundError:
            raise ModelError(f"{self._path}: there is no such file") from None
        except OSError as error:
            raise ModelError(f"{self._path}: it cannot be read: {error.strerror or error}") from None

    def _read_head(self, file: BinaryIO, size: int) -> Heading:
        line = file.read(len(NAME) + len(VERSION))
        if not line.startswith(NAME):
            raise ModelError(f"{self._path}: it is not a log of coupler")
        if not line.endswith(VERSION):
            version = clipped(line[len(NAME) :].decode(errors="replace").strip())
            raise ModelError(f"{self._path}: it is a log of version {version}, and this coupler reads version '1'")
        frame = self._frame(file, size)
        if frame is None or frame[0] != HEAD:
            raise ModelError(f"{self._path}: it has no heading, or only part of one")
        try:
            return _heading(self._text(file, frame[2]))
        except (ModelError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise ModelError(f"{self._path}: its heading makes no sense: {clipped(error, quote=False)}") from None

    def _look_through(self, file: BinaryIO, at: int, size: int) -> str:
        """Notes where the records of rows are, and returns how the run ended."""
        rows = 0
        while at < size:
            file.seek(at)
            frame = self._frame(file, size)
            if frame is None:
                break
            kind, count, length = frame
            begin, at = at + FRAME.size, at + FRAME.size + length
            if kind == ENDS:
                if at != size:
                    self._refuse_damage(begin)
                ending = self._text(file, length)
                return str(ending.get("note", "")) if isinstance(ending, dict) else ""
            if (
                kind != ROWS
                or not count
                or length != sum(count * size_of_row + CRC.size for size_of_row in self._row_bytes)
            ):
                self._refuse_damage(begin)
            if at == size and not self._is_whole(file, count):
                break
            rows += count
            self._starts.append(begin)
            self._lasts.append(rows)
        return _OPEN_END

    def _frame(self, file: BinaryIO, size: int) -> tuple[bytes, int, int] | None:
        """The kind, number of rows and length of the next record; None if the record is not complete."""
        at, frame = file.tell(), file.read(FRAME.size)
        if len(frame) < FRAME.size or not any(frame):  # file systems may write zeros before the data
            return None
        kind, rows, length, seal = FRAME.unpack(frame)
        if crc32(frame[: -CRC.size]) != seal:
            self._refuse_damage(at)
        return (kind, rows, length) if at + FRAME.size + length <= size else None

    def _is_whole(self, file: BinaryIO, rows: int) -> bool:
        """Whether the blocks of a record are intact."""
        for size in self._row_bytes:
            rest, seal = rows * size, 0
            while rest:
                piece = file.read(min(rest, _PIECE))
                if not piece:
                    return False
                rest, seal = rest - len(piece), crc32(piece, seal)
            if file.read(CRC.size) != CRC.pack(seal):
                return False
        return True

    def _text(self, file: BinaryIO, length: int) -> Any:
        if length > _MOST_TEXT:
            raise ModelError(f"{self._path}: a text in it is longer than {_MOST_TEXT >> 20} MiB")
        at, data = file.tell(), file.read(length)
        if data[-CRC.size :] != CRC.pack(crc32(data[: -CRC.size])):
            self._refuse_damage(at)
        try:
            return json.loads(data[: -CRC.size])
        except (ValueError, RecursionError):
            self._refuse_damage(at)

    def _refuse_damage(self, at: int) -> NoReturn:
        before = bisect_left(self._starts, at)
        rows = counted(self._lasts[before - 1] if before else 0, "row")
        raise ModelError(f"{self._path}: it is damaged at byte {at}; {rows} before that may be sound")


def _heading(fields: Mapping[str, Any]) -> Heading:
    """The heading in a file, which may be untrusted."""
    for name in ("contacts", "joints"):
        if not isinstance(fields[name], list) or not all(isinstance(text, str) for text in fields[name]):
            raise ModelError(f"{name} must be a list of names")
    columns = {}
    for name, (code, shape) in fields["columns"].items():
        if not all(type(n) is int and 0 <= n < _MOST_NUMBERS for n in shape):
            raise ModelError(f"{name} has the shape {clipped(shape)}")
        kinds = {stored_dtype(name, np.dtype(dtype)).str for dtype in ("<f8", "<f4")}
        if code not in kinds:
            raise ModelError(f"{name} has numbers of the type {clipped(code)}, and not {' or '.join(sorted(kinds))}")
        columns[name] = np.dtype(code), tuple(shape)
    contacts, joints = tuple(fields["contacts"]), tuple(fields["joints"])
    check_shapes({name: shape for name, (_, shape) in columns.items()}, len(contacts))
    return Heading(str(fields["robot"]), float(fields["step"]), contacts, joints, columns)
