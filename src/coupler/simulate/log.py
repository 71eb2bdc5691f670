"""The log of a run: states, forces and contacts over time, in a file that is whole whenever one looks.

A run that takes hours may end in many ways. What it has done so far is written beside the file now and then, and put in
its place as a whole: whoever reads the file, also after the process was killed, finds a complete log. The more there
is, the longer the next writing waits, so that all writings together cost a few times what one costs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

import numpy as np

from coupler.kinematics import kinetic_energy, potential_energy
from coupler.model import ModelError, ModelWarning, Robot
from coupler.model.numbers import numbers
from coupler.simulate.archive import check_target, load_arrays, save_arrays
from coupler.simulate.options import positive_integer

__all__ = ["Log", "LogWriter"]

_INTERVAL = 5.0  # s between two writings of a log that grows, at least
_GROWTH = 1.25  # by which factor it must have grown, at least
_SMALLEST, _LARGEST = 64, 16384  # rows for which memory is taken at once
_WORDS = ("robot", "contacts", "joints", "note")
_ENERGIES = ("kinetic", "potential")
_ARRAYS = ("times", "q", "v", "tau", "gaps", "forces", "points", *_ENERGIES, "residuals", "sweeps")
_NONE, _NOWHERE = np.zeros(0), np.zeros((0, 3))  # gaps, and forces or points, of a run without contacts
_Chunk = tuple[np.ndarray, ...]  # rows of all arrays but the potential energy


@dataclass(frozen=True, eq=False)
class Log:
    """What happened in a run: T rows for nc candidate contacts.

    Attributes:
        times: (T,), s.
        q, v: (T, nq) and (T, nv), the states.
        tau: (T, nv), forces at independent joints, N m or N.
        gaps: (T, nc), m.
        forces: (T, nc, 3), contact forces on the first body of each pair, along the world's axes, N.
        points: (T, nc, 3), where they act, in the world, m.
        kinetic, potential: (T,), energies, J; NaN where a state is not finite.
        residuals: (T,), by how much the solver missed the laws of contact, m/s.
        sweeps: (T,), the number of sweeps and further iterations it took.
        robot: the name of the robot.
        step: the length of the simulation's steps, s; rows may be further apart.
        contacts: the names of the candidate contacts.
        joints: the names of the independent joints.
        note: why the run ended early; empty if it did not.
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
    note: str = ""

    def __post_init__(self) -> None:
        contacts, joints = (tuple(str(name) for name in names) for names in (self.contacts, self.joints))
        plain = {"robot": str(self.robot), "step": float(self.step), "note": str(self.note)}
        plain |= {"contacts": contacts, "joints": joints}
        nq, nv = (np.shape(x)[-1] if np.ndim(x) else 0 for x in (self.q, self.v))
        for name, shape in _shapes(nq, nv, len(contacts)).items():
            plain[name] = _read_only(name, getattr(self, name), (np.size(self.times), *shape))
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.times)

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # arrays are read-only again

    def save(self, path: str | Path) -> Path:
        """Writes it as an npz file, whose arrays are named after its attributes. A file that is there is replaced.

        Raises:
            ModelError: for a place that cannot be written to.
        """
        path = Path(path)
        check_target(path)
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        words = {name: np.array(getattr(self, name), dtype=str) for name in _WORDS}
        save_arrays(path, {**arrays, **words, "step": self.step})
        return path

    @classmethod
    def load(cls, path: str | Path) -> Log:
        """Reads one from a file.

        Raises:
            ModelError: for a file that is not there, is no npz file, or lacks an array, naming it.
        """
        path = Path(path)
        found: dict[str, Any] = load_arrays(path, [field.name for field in fields(cls)])
        try:
            return cls(**found)
        except (ModelError, ValueError, TypeError) as error:
            raise ModelError(f"{path}: it is no log of a run: {error}") from None


class LogWriter:
    """Collects the rows of a log while a run goes on, and keeps them in a file.

        with LogWriter("run.npz", robot, step, contacts) as writer:
            writer.append(time=0.0, q=q, v=v, tau=tau, ...)

    The file is written at growing intervals, at the end, and when the run ends by an exception, which the log's note
    then tells. A file of an earlier run stays until there is a row to replace it with.

    Attributes:
        note: why the run ended early; a run may say so itself.
    """

    def __init__(
        self, path: str | Path | None, robot: Robot, step: float, contacts: Sequence[str] = (), *, every: int = 1
    ) -> None:
        """Checks the place of the file, before the run.

        Args:
            path: the file to write; None keeps everything in memory.
            robot: the robot whose run is logged.
            step: the length of the simulation's steps, s.
            contacts: the names of its nc candidate contacts.
            every: one row of so many is kept, starting with the first.

        Raises:
            ModelError: for a folder that is not there or cannot be written to.
        """
        self._path = None if path is None else Path(path)
        if self._path:
            check_target(self._path)
        self._robot, self._step = robot, float(numbers("step", step, ()))
        self._contacts, self._every = tuple(contacts), positive_integer("every", every)
        self.note = ""
        shapes = _shapes(robot.nq, robot.nv, len(self._contacts))
        self._columns = {name: shape for name, shape in shapes.items() if name != "potential"}
        self._full: list[_Chunk] = []
        self._chunk: _Chunk = ()  # the one that is being filled
        self._room = self._used = self._kept = self._calls = 0
        self._due = 0.0 if self._path else np.inf  # the rows with which the file is written again
        self._written_at, self._closed = monotonic(), False

    def __len__(self) -> int:
        """How many rows are kept."""
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
            self._grow()
        i, row = self._used, (time, q, v, tau, gaps, forces, points, np.nan, residual, sweeps)
        try:
            for column, value in zip(self._chunk, row, strict=True):
                if column.ndim > 1 and column.shape[1:] != getattr(value, "shape", None):
                    self._check_row(row)
                column[i] = value
        except (ValueError, TypeError):
            self._check_row(row)
            raise
        self._used, self._kept = i + 1, self._kept + 1  # last, so that an interrupted row does not count
        if self._kept >= self._due and monotonic() - self._written_at >= _INTERVAL:
            self._save_meanwhile()

    def extend(self, **rows: np.ndarray) -> None:
        """Adds rows, as arrays named like those of a log, without potential energies; all are kept.

        Kinetic energies may be NaN, and then follow from q and v. It is faster than to add rows one at a time.
        """
        start, count = 0, len(rows["times"])
        while start < count:
            if self._used == self._room:
                self._grow()
            i, n = self._used, min(self._room - self._used, count - start)
            for name, column in zip(self._columns, self._chunk, strict=True):
                column[i : i + n] = rows[name][start : start + n]
            self._used, self._kept, start = i + n, self._kept + n, start + n
        if self._kept >= self._due and monotonic() - self._written_at >= _INTERVAL:
            self._save_meanwhile()

    def log(self) -> Log:
        """What there is so far."""
        rows: dict[str, Any] = {}
        for k, (name, shape) in enumerate(self._columns.items()):
            chunks = [chunk[k] for chunk in self._full] + [column[: self._used] for column in self._chunk[k : k + 1]]
            rows[name] = np.concatenate([_room(name, 0, shape), *chunks])
        unknown = np.isnan(rows["kinetic"])
        rows["kinetic"][unknown] = _energies(kinetic_energy, self._robot, rows["q"][unknown], rows["v"][unknown])
        rows["potential"] = _energies(potential_energy, self._robot, rows["q"])
        about = {"robot": self._robot.name, "joints": tuple(self._robot.independent_joints), "note": self.note}
        return Log(**rows, **about, step=self._step, contacts=self._contacts)

    def close(self) -> None:
        """Writes the file for the last time; after that there are no more rows.

        Raises:
            ModelError: where it cannot be written; `log` still has everything.
        """
        if not self._closed:
            self._closed, self._room = True, self._used  # so that another row asks for room
            if self._path:
                self.log().save(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        told = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        self.note = self.note or told
        try:
            if self._kept:
                self.close()
        except ModelError as failure:  # which must not hide what ended the run
            error.add_note(f"besides, the log is lost: {failure}")

    def _save_meanwhile(self) -> None:
        """Writes the file in the middle of a run, which a full disk does not end: there may be room later."""
        assert self._path
        try:
            self.log().save(self._path)
        except ModelError as error:
            warnings.warn(f"the log is not written for now: {error}", ModelWarning, stacklevel=3)
        self._due, self._written_at = _GROWTH * self._kept, monotonic()

    def _grow(self) -> None:
        """Makes room for as many rows as there are, within bounds: no row is ever moved."""
        if self._closed:
            raise ModelError("the log is closed: it takes no more rows")
        room = min(max(self._kept, _SMALLEST), _LARGEST)
        chunk = tuple(_room(name, room, shape) for name, shape in self._columns.items())
        full = [self._chunk] if self._chunk else []
        self._full, self._chunk, self._used, self._room = self._full + full, chunk, 0, room

    def _check_row(self, row: tuple[Any, ...]) -> None:
        """Refuses a row of which something has another shape than the log's."""
        for (name, shape), value in zip(self._columns.items(), row, strict=True):
            _read_only(name, value, shape, of="a row of the log: ")


def _shapes(nq: int, nv: int, nc: int) -> dict[str, tuple[int, ...]]:
    """What each array of a log has in a row."""
    sizes = ((), (nq,), (nv,), (nv,), (nc,), (nc, 3), (nc, 3), (), (), (), ())
    return dict(zip(_ARRAYS, sizes, strict=True))


def _room(name: str, rows: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.empty((rows, *shape), dtype=_kind(name))


def _kind(name: str) -> type:
    return int if name == "sweeps" else float


def _read_only(name: str, value: Any, shape: tuple[int, ...], of: str = "") -> np.ndarray:
    """The value as an array of that shape that cannot be written to; the value itself still can."""
    try:
        array = np.asarray(value, dtype=_kind(name)).view()
    except (ValueError, TypeError):
        raise ModelError(f"{of}{name} must be numbers, got {value!r}") from None
    if array.shape != shape:
        raise ModelError(f"{of}{name} has the shape {array.shape}, and must have {shape}")
    array.setflags(write=False)
    return array


def _energies(energy: Callable[..., np.ndarray], robot: Robot, *state: np.ndarray) -> np.ndarray:
    """(T,), the energies of states, given by q or by q and v; NaN where a state is not finite or has none."""
    found = np.full(len(state[0]), np.nan)
    finite = np.flatnonzero(np.all([np.isfinite(part).all(axis=1) for part in state], axis=0))
    waiting = [finite] if finite.size else []
    while waiting:
        rows = waiting.pop()
        try:
            found[rows] = energy(robot, *(part[rows] for part in state))
        except ModelError:  # of a state that no robot can have: the others are sought out
            waiting += np.array_split(rows, 2) if len(rows) > 1 else []
    return found
