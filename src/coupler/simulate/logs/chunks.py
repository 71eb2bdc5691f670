"""Logs as files that only grow, so that what is written is safe whatever becomes of the run.

A file is the line `coupler log 1`, whose number is the version of the format, and records after it. Each begins with a
frame of 20 bytes: its kind, a number of rows, the number of bytes that follow (little-endian, like everything here) and
the CRC-32 of these three. What follows are blocks, each with its CRC-32 after it:

    HEAD    one block, a line of JSON: robot, step, contacts, joints, columns, and a number that no other run has
    ROWS    a block for each column, in the heading's order: its numbers for the rows of this record, one after another
    ENDS    one block, a line of JSON: why the run ended early, if it did

A process that is killed leaves at most one record incomplete, the last. Readers leave that out, and so may read at any
time while another process writes.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import struct
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from zlib import crc32

import numpy as np

from coupler.files import claimed, open_file, release, whole_file
from coupler.model import ModelError
from coupler.model.wording import clipped, counted
from coupler.simulate.logs.columns import Heading, check_shapes, stored_dtype

__all__ = ["NAME", "ChunkFile", "ChunkWriter", "end_record", "head_record", "rows_record"]

NAME = b"coupler log "  # with which each file begins
_VERSION = b"1\n"
_FRAME, _CRC = struct.Struct("<4sIQI"), struct.Struct("<I")
_HEAD, _ROWS, _ENDS = b"HEAD", b"ROWS", b"ENDS"
_MOST_TEXT = 16 << 20  # bytes of a heading or a note: the names of thousands of contacts take one
_MOST_NUMBERS = 1 << 31  # along a dimension: far more than any robot has, and few enough for every array
_PIECE = 1 << 20  # bytes that are looked at at once
_OPEN_END = "there is no end in the file: its run still writes it, or was killed"


# Records


def head_record(heading: Heading) -> bytes:
    """The beginning of a file."""
    columns = {name: (dtype.str, shape) for name, (dtype, shape) in heading.columns.items()}
    told = {**asdict(heading), "columns": columns, "run": secrets.token_hex(16)}
    return NAME + _VERSION + _text_record(_HEAD, told)


def rows_record(columns: Mapping[str, np.ndarray]) -> bytes:
    """Some rows, by column, all of one length and in the heading's order and types."""
    return _record(_ROWS, len(columns["times"]), *(np.ascontiguousarray(column).data for column in columns.values()))


def end_record(note: str) -> bytes:
    """The end of a file."""
    return _text_record(_ENDS, {"note": note})


def _text_record(kind: bytes, told: Any) -> bytes:
    return _record(kind, 0, json.dumps(told).encode() + b"\n")


def _record(kind: bytes, rows: int, *blocks: bytes | memoryview) -> bytes:
    sealed = b"".join(part for data in blocks for part in (data, _CRC.pack(crc32(data))))
    start = _FRAME.pack(kind, rows, len(sealed), 0)[: -_CRC.size]
    return start + _CRC.pack(crc32(start)) + sealed


# Writing


class ChunkWriter:
    """Appends records to a file, which takes its place with the first of them.

    A record that could not be written, for whatever reason, leaves no trace, and may be tried again.

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
            OSError: where they cannot be written.
        """
        record = rows_record(columns)
        self._add(record)
        self._size, self.written = self._size + len(record), self.written + 1

    def end(self, note: str) -> None:
        """Adds the end, and waits until all is on the disk."""
        self._add(end_record(note))
        assert self._file is not None
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Gives the file free; nothing can be added after that."""
        if self._file is not None:
            release(self._file)  # which a fork may have another descriptor of
            self._file.close()

    def read(self) -> ChunkFile:
        """What is in the file.

        Raises:
            ModelError: if it is gone, or another run has taken its place.
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
    except OSError:  # there is none, or it will be told when it is written
        return False


# Reading


class ChunkFile:
    """The whole records of a file, whose columns are read when they are asked for.

    Attributes:
        heading: what it tells about the run.
        rows: how many there are in all.
        note: why the run ended early; empty if it did not.
    """

    def __init__(self, path: Path, head: bytes | None = None) -> None:
        """Looks through the file, without reading its rows.

        Args:
            path: the file.
            head: how it must begin, if that is known.

        Raises:
            ModelError: for a file that is not there, is no log, or is damaged; also when its columns are read.
        """
        self._path = path
        with self._opened(head) as file:
            size = os.fstat(file.fileno()).st_size
            self.heading = self._read_head(file, size)
            at = file.tell()
            file.seek(0)
            self._head = file.read(at)
            self._row_bytes = [dtype.itemsize * prod(shape) for dtype, shape in self.heading.columns.values()]
            self._starts, self._lasts = array("q"), array("q")  # of records of rows: where their blocks are; last rows
            self.note = self._look_through(file, at, size)
        self.rows = self._lasts[-1] if self._lasts else 0

    def read(self, name: str, first: int, last: int) -> np.ndarray:
        """A column from one row to another, which is left out.

        Raises:
            ModelError: where the file is damaged, or was replaced since.
        """
        dtype, shape = self.heading.columns[name]
        number = list(self.heading.columns).index(name)
        result = np.empty((last - first, *shape), dtype)
        with self._opened(self._head) as file:
            k = int(np.searchsorted(self._lasts, first, side="right"))
            while k < len(self._lasts) and (before := self._lasts[k - 1] if k else 0) < last:
                values = self._block(file, k, number).view(dtype).reshape(self._lasts[k] - before, *shape)
                own = slice(max(first - before, 0), last - before)
                begin = max(before - first, 0)
                result[begin : begin + len(values[own])] = values[own]
                k += 1
        return result

    def _block(self, file: BinaryIO, k: int, number: int) -> np.ndarray:
        """The bytes of a column in the k-th record of rows."""
        rows = self._lasts[k] - (self._lasts[k - 1] if k else 0)
        file.seek(self._starts[k] + sum(rows * size + _CRC.size for size in self._row_bytes[:number]))
        values = np.empty(rows * self._row_bytes[number], np.uint8)
        file.readinto(values.data)  # type: ignore[attr-defined]
        if file.read(_CRC.size) != _CRC.pack(crc32(values.data)):
            self._refuse_damage(self._starts[k])
        return values

    @contextmanager
    def _opened(self, head: bytes | None) -> Iterator[BinaryIO]:
        try:
            with open_file(self._path) as file:
                if head is not None and file.read(len(head)) != head:
                    raise ModelError(f"{self._path}: another log has taken its place")
                file.seek(0)
                yield file
        except FileNotFoundError:
            raise ModelError(f"{self._path}: there is no such file") from None
        except OSError as error:
            raise ModelError(f"{self._path}: it cannot be read: {error.strerror or error}") from None

    def _read_head(self, file: BinaryIO, size: int) -> Heading:
        line = file.read(len(NAME) + len(_VERSION))
        if not line.startswith(NAME):
            raise ModelError(f"{self._path}: it is not a log of coupler")
        if not line.endswith(_VERSION):
            version = clipped(line[len(NAME) :].decode(errors="replace").strip())
            raise ModelError(f"{self._path}: it is a log of version {version}, and this coupler reads version '1'")
        frame = self._frame(file, size)
        if frame is None or frame[0] != _HEAD:
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
            begin, at = at + _FRAME.size, at + _FRAME.size + length
            if kind == _ENDS:
                if at != size:
                    self._refuse_damage(begin)
                told = self._text(file, length)
                return str(told.get("note", "")) if isinstance(told, dict) else ""
            if kind != _ROWS or not count or length != sum(count * own + _CRC.size for own in self._row_bytes):
                self._refuse_damage(begin)
            if at == size and not self._is_whole(file, count):
                break
            rows += count
            self._starts.append(begin)
            self._lasts.append(rows)
        return _OPEN_END

    def _frame(self, file: BinaryIO, size: int) -> tuple[bytes, int, int] | None:
        """Kind, rows and length of the next record; None if it is not complete."""
        at, frame = file.tell(), file.read(_FRAME.size)
        if len(frame) < _FRAME.size or not any(frame):  # a file system may give out room before what is to be there
            return None
        kind, rows, length, seal = _FRAME.unpack(frame)
        if crc32(frame[: -_CRC.size]) != seal:
            self._refuse_damage(at)
        return (kind, rows, length) if at + _FRAME.size + length <= size else None

    def _is_whole(self, file: BinaryIO, rows: int) -> bool:
        """Whether the blocks of a record are what was written."""
        for size in self._row_bytes:
            rest, seal = rows * size, 0
            while rest:
                piece = file.read(min(rest, _PIECE))
                if not piece:
                    return False
                rest, seal = rest - len(piece), crc32(piece, seal)
            if file.read(_CRC.size) != _CRC.pack(seal):
                return False
        return True

    def _text(self, file: BinaryIO, length: int) -> Any:
        if length > _MOST_TEXT:
            raise ModelError(f"{self._path}: a text in it is longer than {_MOST_TEXT >> 20} MiB")
        at, data = file.tell(), file.read(length)
        if data[-_CRC.size :] != _CRC.pack(crc32(data[: -_CRC.size])):
            self._refuse_damage(at)
        try:
            return json.loads(data[: -_CRC.size])
        except (ValueError, RecursionError):
            self._refuse_damage(at)

    def _refuse_damage(self, at: int) -> NoReturn:
        rows = counted(self._lasts[-1] if getattr(self, "_lasts", None) else 0, "row")
        raise ModelError(f"{self._path}: it is damaged at byte {at}; {rows} before that may be sound")


def _heading(told: Mapping[str, Any]) -> Heading:
    """The heading in a file, which may be a stranger's."""
    for name in ("contacts", "joints"):
        if not isinstance(told[name], list) or not all(isinstance(text, str) for text in told[name]):
            raise ModelError(f"{name} must be a list of names")
    columns = {}
    for name, (code, shape) in told["columns"].items():
        if not all(type(n) is int and 0 <= n < _MOST_NUMBERS for n in shape):
            raise ModelError(f"{name} has the shape {clipped(shape)}")
        kinds = {stored_dtype(name, np.dtype(own)).str for own in ("<f8", "<f4")}
        if code not in kinds:
            raise ModelError(f"{name} has numbers of the type {clipped(code)}, and not {' or '.join(sorted(kinds))}")
        columns[name] = np.dtype(code), tuple(shape)
    contacts, joints = tuple(told["contacts"]), tuple(told["joints"])
    check_shapes({name: shape for name, (_, shape) in columns.items()}, len(contacts))
    return Heading(str(told["robot"]), float(told["step"]), contacts, joints, columns)
