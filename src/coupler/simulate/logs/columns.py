"""The columns of a log: their names, their shapes in a row, and how their numbers are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model import ModelError
from coupler.model.wording import clipped, listed

COLUMNS = ("times", "q", "v", "tau", "gaps", "forces", "points", "kinetic", "potential", "residuals", "sweeps")
DTYPES = ("float64", "float32")


@dataclass(frozen=True, eq=False)
class Heading:
    """The heading of a log: everything besides its rows.

    Attributes:
        robot: the name of the robot.
        step: the length of the simulation's steps, s.
        contacts: the names of the candidate contacts.
        joints: the names of the independent joints.
        columns: the type of each column's numbers, and their shape in a row.
    """

    robot: str
    step: float
    contacts: tuple[str, ...]
    joints: tuple[str, ...]
    columns: Mapping[str, tuple[np.dtype, tuple[int, ...]]]


def row_shapes(nq: int, nv: int, nc: int) -> dict[str, tuple[int, ...]]:
    """The shape of each column in a row, for nc candidate contacts."""
    sizes = ((), (nq,), (nv,), (nv,), (nc,), (nc, 3), (nc, 3), (), (), (), ())
    return dict(zip(COLUMNS, sizes, strict=True))


def check_shapes(shapes: Mapping[str, tuple[int, ...]], contacts: int) -> None:
    """Refuses columns whose shapes do not fit together.

    Args:
        shapes: the shape in a row of each existing column.
        contacts: the number of candidate contacts.

    Raises:
        ModelError: naming the column.
    """
    nq, nv = (next((shapes[name][-1] for name in names if shapes.get(name)), 0) for names in (("q",), ("v", "tau")))
    wanted = row_shapes(nq, nv, contacts)
    if "times" not in shapes:
        raise ModelError("the column 'times' is missing; every log has it")
    for name, shape in shapes.items():
        if shape != wanted.get(name):
            fault = f"has the shape {shape} in a row, and must have {wanted[name]}" if name in wanted else "is unknown"
            raise ModelError(f"{clipped(name, quote=False)} {fault}")


def chosen_columns(record: str | Iterable[str] | None) -> tuple[str, ...]:
    """The columns to keep, in order: the named ones and the times; all columns for None.

    Raises:
        ModelError: for a name that no column has.
    """
    if record is None:
        return COLUMNS
    names = (record,) if isinstance(record, str) or not isinstance(record, Iterable) else tuple(record)
    for name in names:
        if name not in COLUMNS:
            raise ModelError(f"record: there is no column {clipped(name)}; there are {listed(COLUMNS, len(COLUMNS))}")
    return tuple(name for name in COLUMNS if name == "times" or name in names)


def known_dtype(dtype: Any) -> np.dtype:
    """float64 or float32, in the byte order of files."""
    try:
        chosen = np.dtype(dtype)
    except TypeError:
        chosen = None
    if chosen is None or chosen.name not in DTYPES:
        raise ModelError(f"dtype: logs are kept in {' or '.join(DTYPES)}, not in {clipped(dtype)}")
    return chosen.newbyteorder("<")


def stored_dtype(name: str, dtype: np.dtype) -> np.dtype:
    """The type of a stored column in a log of that type; times are always float64, as float32 would round them."""
    if name == "sweeps":
        return np.dtype("<i8" if dtype.itemsize == 8 else "<i4")
    return np.dtype("<f8") if name == "times" else dtype
