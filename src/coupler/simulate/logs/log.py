"""The log of a run: states, forces and contacts over time, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from coupler.files import open_file
from coupler.forks import imports
from coupler.model import ModelError
from coupler.model.outputs import check_target, written_whole
from coupler.model.wording import clipped, counted, listed
from coupler.simulate.logs import to_csv, to_mcap, to_npz, to_rerun
from coupler.simulate.logs.chunks import ChunkFile
from coupler.simulate.logs.columns import COLUMNS, Heading, check_shapes, stored_dtype
from coupler.simulate.logs.records import NAME, SUFFIX, end_record, head_record, rows_record

_PART = 4 << 20  # bytes of the rows that are processed at a time


class Source(Protocol):
    """The source of a log's rows: an object with a heading that returns parts of columns."""

    heading: Heading
    rows: int

    def read(self, name: str, first: int, last: int) -> np.ndarray:
        """A column from row `first` to row `last`, which is excluded."""
        ...


class Log:
    """The log of a run: T rows for nc candidate contacts.

    Columns of a log in a file are read on first access, and kept. A log that is too large for that can be read in
    pieces: `log[1000:2000]` has some rows, `log[::10]` every tenth, and `parts` iterates over all of them. A column
    that was not recorded raises an error that says so.

    A row has a state, and of the step that starts from it tau, forces, gaps, points, residuals and sweeps. The last
    row, from which no step starts, repeats those of the step that ended there.

    Attributes:
        times: (T,), s.
        q, v: (T, nq) and (T, nv), the states.
        tau: (T, nv), forces at independent joints, N m or N, including those of actuators.
        gaps: (T, nc), m, where the step takes its forces: while nothing touches, half a step ahead with "midpoint".
        forces: (T, nc, 3), contact forces on the first body of each pair, along the world's axes, N.
        points: (T, nc, 3), where they act, in the world, m.
        kinetic, potential: (T,), energies, J; NaN where a state is not finite.
        residuals: (T,), the violation of the laws of contact that the solver left, m/s.
        sweeps: (T,), the number of sweeps and further iterations that it took.
        robot: the name of the robot.
        step: the length of the simulation's steps, s; rows may be further apart.
        contacts: the names of the candidate contacts.
        joints: the names of the independent joints.
        columns: the names of the columns that it has.
        note: why the run ended early, or that its end is unknown; empty if it ended as planned.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    gaps: np.ndarray
    forces: np.ndarray
    points: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray
    residuals: np.ndarray
    sweeps: np.ndarray
    robot: str
    step: float
    contacts: tuple[str, ...]
    joints: tuple[str, ...]
    columns: tuple[str, ...]
    note: str
    _source: Source
    _rows: range

    def __init__(self, *, robot: Any, step: Any, contacts: Any, joints: Any, note: Any = "", **columns: Any) -> None:
        """Makes a log of arrays in memory; see the attributes for their shapes.

        Raises:
            ModelError: for arrays that do not fit together.
        """
        contacts, joints = (tuple(str(name) for name in names) for names in (contacts, joints))
        arrays = {name: _array(name, columns[name]) for name in sorted(columns, key=_order)}
        if "times" not in arrays or arrays["times"].ndim != 1:
            raise ModelError("a log needs 'times', a list of numbers")
        rows = len(arrays["times"])
        for name, array in arrays.items():
            if array.shape[:1] != (rows,):
                raise ModelError(f"{name} has the shape {array.shape}, and must have {rows} rows like the times")
        check_shapes({name: array.shape[1:] for name, array in arrays.items()}, len(contacts))
        kinds = {name: (array.dtype, array.shape[1:]) for name, array in arrays.items()}
        heading = Heading(str(robot), float(step), contacts, joints, kinds)
        self._show(_Arrays(heading, rows, arrays), range(rows), str(note))

    @classmethod
    def of(cls, source: Source, note: str) -> Log:
        """The log of all rows of a source."""
        log = cls.__new__(cls)
        log._show(source, range(source.rows), note)
        return log

    def _show(self, source: Source, rows: range, note: str) -> None:
        heading = source.heading
        self.__dict__.update(robot=heading.robot, step=heading.step, contacts=heading.contacts, joints=heading.joints)
        self.__dict__.update(columns=tuple(heading.columns), note=note, _source=source, _rows=rows)

    def __getattr__(self, name: str) -> np.ndarray:
        """Reads a column on first access."""
        if name not in COLUMNS or "_source" not in self.__dict__:  # which a log that is being copied does not have yet
            raise AttributeError(f"a log has no {name!r}; its columns are {listed(self.columns, 11, like=name)}")
        if name not in self.columns:
            raise _NotRecorded(f"the log has no {name!r}, which was not recorded; it has {listed(self.columns, 11)}")
        rows = self._rows
        first, last = (min(rows[0], rows[-1]), max(rows[0], rows[-1]) + 1) if rows else (0, 0)
        column = self._source.read(name, first, last)[:: rows.step].view()
        column.setflags(write=False)
        self.__dict__[name] = column
        return column

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a log cannot be changed")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice) -> Log:
        if not isinstance(rows, slice):
            raise TypeError(f"a log is cut by slices, such as log[10:20], not by {clipped(rows)}")
        log = type(self).__new__(type(self))
        log._show(self._source, self._rows[rows], self.note)
        return log

    def __repr__(self) -> str:
        return f"Log(robot={self.robot!r}, rows={len(self)}, columns={self.columns}, note={self.note!r})"

    def __str__(self) -> str:
        """A summary in a few lines."""
        lines = [f"log of {self.robot}: {counted(len(self), 'row')}"]
        if len(self):
            first, last = float(self.times[0]), float(self.times[-1])
            lines[0] += f", from {first:g} to {last:g} s, in steps of {self.step:g} s"
        if len(self) and {"kinetic", "potential"} <= set(self.columns):
            total = self.kinetic[[0, -1]] + self.potential[[0, -1]]
            lines.append(f"  energy    {total[0]:.6g} J at the start, {total[1]:.6g} J at the end")
        if len(self) and self.contacts and "forces" in self.columns:
            forces = np.linalg.norm(np.nan_to_num(self.forces), axis=-1)
            pressed = int((forces.max(axis=0) > 0.0).sum())
            lines.append(f"  contacts  {pressed} of {len(self.contacts)} pressed, with up to {forces.max():.4g} N")
        if len(self) and "residuals" in self.columns and self.contacts:
            lines.append(f"  residual  {np.nanmax(self.residuals):.2g} m/s at most")
        lines.append(f"  columns   {', '.join(self.columns)}")
        return "\n".join([*lines, f"  note      {self.note}"] if self.note else lines)

    def plot(self, path: str | Path | None = None, robot: Any = None) -> Path:
        """Writes a picture of its columns over time: positions, velocities, forces, energies, contacts, residuals.

        Args:
            path: the file, ".png" or another format of matplotlib; named after the robot, if not given.
            robot: the robot that moved, to show the errors of its loops as well.

        Raises:
            ModelError: without matplotlib (`pip install 'coupler[plot]'`), for a log without rows, or a path that
                cannot be written to.
        """
        with imports():
            from coupler.view.log_plots import plot_log  # a call upwards: pictures know logs

        return plot_log(self, path, robot)

    def __reduce__(self) -> Any:
        arrays = {name: getattr(self, name) for name in ("robot", "step", "contacts", "joints", "note", *self.columns)}
        return partial(type(self), **arrays), ()

    def parts(self) -> Iterator[Log]:
        """Iterates over the log in pieces of consecutive rows, each small enough for any memory."""
        size = sum(dtype.itemsize * prod(shape) for dtype, shape in self._source.heading.columns.values())
        count = max(_PART // size, 1)
        for first in range(0, len(self), count):
            yield self[first : first + count]

    def save(self, path: str | Path) -> Path:
        """Writes the log to a file, in the format of its suffix. An existing file is replaced.

        Args:
            path: ".clog", ".npz" (whose arrays are named after the attributes), ".csv", ".mcap" or ".rrd" (Rerun).

        Raises:
            ModelError: for another suffix, a path that cannot be written to, or without the package that writes the
                format.
        """
        path = check_target(path)
        if path.suffix.lower() not in _FORMATS:
            raise ModelError(f"{path}: logs are saved as {listed(_FORMATS)}, by the suffix of the file")
        _FORMATS[path.suffix.lower()](self, path)
        return path

    @classmethod
    def load(cls, path: str | Path) -> Log:
        """Reads a log from a .clog file, even while a run writes it, or from an npz file.

        Raises:
            ModelError: for a file that does not exist, is not a log, or is damaged.
        """
        path = Path(path)
        suffix, start = path.suffix.lower(), b""
        with suppress(OSError), open_file(path) as file:  # errors are raised below
            start = file.read(len(NAME))
        if start == NAME or suffix == SUFFIX:
            source = ChunkFile(path)
            return cls.of(source, source.note)
        if start and suffix != ".npz" and not start.startswith(b"PK"):  # with which npz files begin
            raise ModelError(f"{path}: it is not a log, which is a {SUFFIX} or an .npz file")
        arrays = to_npz.load(path)
        try:
            return cls(**arrays)
        except (ModelError, ValueError, TypeError) as error:
            raise ModelError(f"{path}: it is not the log of a run: {error}") from None


class _NotRecorded(ModelError, AttributeError):
    """The error for a column that a log does not have; `hasattr` returns False for it."""


class _Arrays:
    """A source in memory."""

    def __init__(self, heading: Heading, rows: int, arrays: dict[str, np.ndarray]) -> None:
        self.heading, self.rows, self._arrays = heading, rows, arrays

    def read(self, name: str, first: int, last: int) -> np.ndarray:
        return self._arrays[name][first:last]


def _array(name: str, value: Any) -> np.ndarray:
    """A column as numbers of a type that logs use."""
    dtype = np.dtype("<f4" if getattr(value, "dtype", None) in (np.float32, np.int32) else "<f8")
    try:
        return np.asarray(value, dtype=stored_dtype(name, dtype))
    except (ValueError, TypeError):
        raise ModelError(f"{name} must be numbers, got {clipped(value)}") from None


def _order(name: str) -> int:
    return COLUMNS.index(name) if name in COLUMNS else len(COLUMNS)


def _save_chunks(log: Log, path: Path) -> None:
    """Writes a log as its run would have written it."""
    with written_whole(path) as file:
        file.write(head_record(log._source.heading))
        for part in log.parts():
            file.write(rows_record({name: getattr(part, name) for name in part.columns}))
        file.write(end_record(log.note))


_FORMATS = {
    SUFFIX: _save_chunks,
    ".npz": to_npz.save,
    ".csv": to_csv.save,
    ".mcap": to_mcap.save,
    ".rrd": to_rerun.save,
}
