"""Writes the log of a run: collects rows in memory, and writes them in chunks to a file that grows during the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

import numpy as np

from coupler.kinematics import kinetic_energy, potential_energy
from coupler.model import ModelError, Robot
from coupler.model.errors import warn
from coupler.model.numbers import numbers, positive_integer
from coupler.model.outputs import unwritten
from coupler.simulate.logs.columns import Heading, chosen_columns, known_dtype, row_shapes, stored_dtype
from coupler.simulate.logs.energies import energies_of
from coupler.simulate.logs.growing import ChunkWriter, growing_path
from coupler.simulate.logs.log import Log
from coupler.simulate.logs.to_npz import NpzColumns

_INTERVAL = 0.5  # s: rows are written after this time at the latest, so that a busy machine loses no whole second
_CHUNK = 1 << 20  # bytes of rows that are written together
_SMALLEST, _LARGEST = 64, 16384  # rows for which memory is allocated at a time
_MOST_WAITING = 64 << 20  # bytes of rows that may wait for space on the disk before the run ends
_NONE, _NOWHERE = np.zeros(0), np.zeros((0, 3))  # gaps, and forces or points, of a run without contacts
_Chunk = dict[str, np.ndarray]  # rows, by column


class LogWriter:
    """Collects the rows of a log during a run, in memory or in a file.

        with LogWriter("run.clog", robot, step, contacts) as writer:
            writer.append(time=0.0, q=q, v=v, tau=tau, ...)

    The file grows twice a second, so that a killed process loses no more than the rows of its last second, even on a
    busy machine, and memory holds no more than those. When a run ends by an exception, the log's note says so. The file
    of an earlier run stays until there are rows to replace it. An npz file cannot grow: it is written at the end, and
    until then a file beside it, such as run.npz.clog, grows, which stays if the process is killed.

    Attributes:
        note: why the run ended early; the run may set it itself.
        columns: the names of the columns that it takes: those to keep, and those that energies follow from.
    """

    def __init__(
        self,
        path: str | Path | None,
        robot: Robot,
        step: float,
        contacts: Sequence[str] = (),
        *,
        every: int = 1,
        record: str | Iterable[str] | None = None,
        dtype: Any = "float64",
    ) -> None:
        """Checks the path before the run.

        Args:
            path: the file to write, ".clog" or ".npz"; None keeps everything in memory.
            robot: the robot whose run is logged.
            step: the length of the simulation's steps, s.
            contacts: the names of its nc candidate contacts.
            every: keep one row of so many, starting with the first.
            record: the columns to keep, by the names of a log's attributes; all, if not given. Times are always kept.
            dtype: the type of the numbers to keep, "float64" or "float32"; times are always float64.

        Raises:
            ModelError: for a folder that does not exist or cannot be written to, and for another suffix.
        """
        self._path = None if path is None else Path(path).absolute()  # a run may change the working folder
        self._robot, self._every, self.note = robot, positive_integer("every", every), ""
        self._shapes = row_shapes(robot.nq, robot.nv, len(contacts))
        number_type, names = known_dtype(dtype), chosen_columns(record)
        kinds = {name: (stored_dtype(name, number_type), self._shapes[name]) for name in names}
        length = float(numbers("step", step, ()))
        self._heading = Heading(robot.name, length, tuple(contacts), tuple(robot.independent_joints), kinds)
        needed = {"q", "v"} if "kinetic" in names else {"q"} if "potential" in names else set()
        self.columns = tuple(n for n in self._shapes if (n in names or n in needed) and n != "potential")
        self._file = None if self._path is None else ChunkWriter(growing_path(self._path), self._heading)
        size = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in kinds.values())
        self._most = min(max(_CHUNK // size, 1), _LARGEST)
        self._chunks: list[_Chunk] = []  # finished ones: all without a file, with one those that are not written yet
        self._made = 0  # how many there were ever
        self._chunk: _Chunk = {}  # the one that is being filled
        self._room = self._used = self._kept = self._calls = 0
        self._last = monotonic()
        self._due = self._last + _INTERVAL
        self._told = self._closed = False
        self._npz: NpzColumns | None = None  # once it is written

    def __len__(self) -> int:
        """The number of rows kept."""
        return self._kept

    def append(
        self,
        *,
        time: float,
        q: Any,
        v: Any,
        tau: Any,
        gaps: Any = _NONE,
        forces: Any = _NOWHERE,
        points: Any = _NOWHERE,
        residual: float = 0.0,
        sweeps: int = 0,
    ) -> None:
        """Adds a row; see `Log` for shapes and units. It takes a few microseconds."""
        self._calls += 1
        if (self._calls - 1) % self._every:
            return
        if self._used == self._room:
            self._make_room()
        row = {"times": time, "q": q, "v": v, "tau": tau, "gaps": gaps, "forces": forces, "points": points}
        row |= {"kinetic": np.nan, "residuals": residual, "sweeps": sweeps}
        try:
            for name, value in row.items():
                if self._shapes[name] and self._shapes[name] != getattr(value, "shape", None):
                    self._check_row(row)
                if name in self._chunk:
                    self._chunk[name][self._used] = value
        except (ValueError, TypeError):
            self._check_row(row)
            raise
        self._used, self._kept = self._used + 1, self._kept + 1  # last, so that an interrupted row does not count
        if self.is_due():
            self.flush()

    def extend(self, **rows: np.ndarray) -> None:
        """Adds rows, as arrays named like `columns`; all are kept.

        Kinetic energies may be NaN, and are then computed from q and v. This is faster than adding rows one at a time,
        and the caller must check whether a `flush` is due.
        """
        start, count = 0, len(rows["times"])
        while start < count:
            if self._used == self._room:
                self._make_room()
            i, n = self._used, min(self._room - self._used, count - start)
            for name, column in self._chunk.items():
                column[i : i + n] = rows[name][start : start + n]
            self._used, self._kept, start = i + n, self._kept + n, start + n

    def is_due(self) -> bool:
        """Whether rows must be written now: the next call may come too late if it takes as long to come as this one.

        Rows that are more than half a second apart are written one by one.
        """
        if self._file is None:
            return False
        now = monotonic()
        before, self._last = self._last, now
        return now + (now - before) >= self._due

    def flush(self) -> None:
        """Writes all rows so far to the file, if there is one; warns once if the disk is full.

        Raises:
            ModelError: if the disk was full for so long that memory is used up, too.
        """
        self._finish_chunk()
        if self._file is None:
            return
        self._due = monotonic() + _INTERVAL
        try:
            self._write_chunks(self._file)
        except OSError as error:
            failure = unwritten(self._file.path, error)
            if sum(column.nbytes for chunk in self._chunks for column in chunk.values()) > _MOST_WAITING:
                raise failure from None
            if not self._told:
                warn(f"the log is not written for now: {failure}")
            self._told = True

    def log(self) -> Log:
        """The log so far; rows in a file are read from there."""
        if self._npz is not None:
            return Log.of(self._npz, self.note)
        self._finish_chunk()
        if self._file is not None:
            with suppress(OSError):  # what cannot be written is in memory
                if not self._closed:
                    self._write_chunks(self._file)
            if self._file.written and not self._chunks:
                return Log.of(self._file.read(), self.note)
        return self._in_memory()

    def close(self) -> None:
        """Writes the end of the file; no rows can be added after that.

        Raises:
            ModelError: if it cannot be written; `log` still has everything.
        """
        if self._closed:
            return
        self._finish_chunk()
        self._closed = True
        if self._file is None or self._path is None:
            return
        try:
            self._write_chunks(self._file)
            self._file.end(self.note)
        except OSError as error:
            raise unwritten(self._path, error) from None
        finally:
            self._file.close()
        if self._path != self._file.path:
            self._make_npz(self._file, self._path)

    def close_after(self, error: BaseException) -> None:
        """Closes the log because of an error; a failure to do so must not hide that error."""
        reason = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        self.note = self.note or reason
        try:
            if self._kept:
                self.close()
        except ModelError as failure:
            error.add_note(f"besides, the log is lost: {failure}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.close_after(error)

    def _make_room(self) -> None:
        """Allocates memory for as many rows as there are already, within bounds: no row is ever moved."""
        if self._closed:
            raise ModelError("the log is closed: it takes no more rows")
        if self._used:
            self.flush()
        room = min(max(self._kept, _SMALLEST), self._most)
        shapes = {name: (room, *self._shapes[name]) for name in self.columns}
        self._chunk, self._room = {name: np.empty(shape) for name, shape in shapes.items()}, room

    def _finish_chunk(self) -> None:
        """Moves the rows of the current chunk to the finished ones, with their energies."""
        if not self._used:
            return
        rows = {name: column[: self._used] for name, column in self._chunk.items()}
        if "kinetic" in rows:
            unknown = np.isnan(rows["kinetic"])
            rows["kinetic"][unknown] = energies_of(kinetic_energy, self._robot, rows["q"][unknown], rows["v"][unknown])
        if "potential" in self._heading.columns:
            rows["potential"] = energies_of(potential_energy, self._robot, rows["q"])
        with np.errstate(over="ignore"):  # what is too large for float32 is infinite
            chunk = {name: rows[name].astype(dtype, copy=False) for name, (dtype, _) in self._heading.columns.items()}
        self._chunks, self._made, self._chunk, self._used, self._room = [*self._chunks, chunk], self._made + 1, {}, 0, 0

    def _write_chunks(self, file: ChunkWriter) -> None:
        """Writes the chunks that are not in the file yet, none of them twice, even if an interrupt comes."""
        try:
            while waiting := self._made - file.written:
                file.append(self._chunks[-waiting])
            self._told = False
        finally:
            self._chunks = self._chunks[len(self._chunks) - (self._made - file.written) :]

    def _make_npz(self, file: ChunkWriter, path: Path) -> None:
        try:
            Log.of(file.read(), self.note).save(path)
        except ModelError as error:
            raise ModelError(f"{error}; the log is in {file.path}") from None
        self._npz = NpzColumns(path, self._heading, self._kept)
        file.path.unlink()

    def _in_memory(self) -> Log:
        """The log as arrays, including the rows in the file."""
        written = self._file.read() if self._file is not None and self._file.written else None
        rows = {}
        for name, (dtype, shape) in self._heading.columns.items():
            begin = np.empty((0, *shape), dtype) if written is None else written.read(name, 0, written.rows)
            rows[name] = np.concatenate([begin, *(chunk[name] for chunk in self._chunks)])
        about = {name: getattr(self._heading, name) for name in ("robot", "step", "contacts", "joints")}
        return Log(**about, note=self.note, **rows)

    def _check_row(self, row: dict[str, Any]) -> None:
        """Refuses a row in which something has another shape than in the log."""
        for name, value in row.items():
            try:
                shape = np.asarray(value, dtype=float).shape
            except (ValueError, TypeError):
                raise ModelError(f"a row of the log: {name} must be numbers, got {value!r}") from None
            if shape != self._shapes[name]:
                raise ModelError(f"a row of the log: {name} has the shape {shape}, and must have {self._shapes[name]}")
