"""Rows of tables: cells by column, as text, numbers, axes and answers of yes or no."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from coupler.io.tables.units import heading, scale_of
from coupler.model import ModelError
from coupler.model.numbers import LARGEST
from coupler.model.wording import clipped, listed

_LENGTHS, _INERTIAS = ("length",), ("inertia",)
_JOINT = ("length", "angle")
_PLACE = dict.fromkeys(("x", "y", "z"), _LENGTHS)
_SPRING = {"stiffness": ("stiffness",), "free length": _LENGTHS, "pretension": ("force",), "damping": ("damping",)}
_WORD: tuple[str, ...] = ()

# By table, its columns, and of which kinds of quantities each may be; words, plain numbers and answers are of none.
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "bodies": {
        "body": _WORD,
        "mass": ("mass",),
        **_PLACE,
        **dict.fromkeys(("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "Pxy", "Pxz", "Pyz"), _INERTIAS),
        "ideal": _WORD,
    },
    "points": {"body": _WORD, "point": _WORD, **_PLACE},
    "joints": {
        "joint": _WORD,
        "body": _WORD,
        "type": _WORD,
        "axis": _WORD,
        "parent": _WORD,
        "at": _WORD,
        "meets": _WORD,
        **_PLACE,
        "euler": _WORD,
        **dict.fromkeys(("e1", "e2", "e3"), ("angle",)),
        **dict.fromkeys(("position", "lower", "upper", "rest"), _JOINT),
        "stiffness": ("stiffness", "turning stiffness"),
        "damping": ("damping", "turning damping"),
        "armature": ("mass", "inertia"),
        **dict.fromkeys(("friction", "effort"), ("force", "torque")),
        "speed": ("speed", "turning speed"),
        **dict.fromkeys(("actuated", "independent"), _WORD),
    },
    "loops": {"loop": _WORD, "type": _WORD, "axis": _WORD, "from": _WORD, "to": _WORD},
    "struts": {
        "strut": _WORD,
        "from": _WORD,
        "to": _WORD,
        "axis": _WORD,
        "actuated": _WORD,
        **_SPRING,
        **dict.fromkeys(("mass 1", "mass 2"), ("mass",)),
    },
    "springs": {"spring": _WORD, "from": _WORD, "to": _WORD, **_SPRING},
    "couplings": {"joint": _WORD, "of": _WORD, "ratio": _WORD, "offset": _JOINT},
}
_YES = {"yes": True, "true": True, "x": True, "1": True, "no": False, "false": False, "0": False, "-": False}
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, eq=False)
class Row:
    """A row of a table.

    Attributes:
        where: the file, table and row, for messages.
        cells: by column what is given, each with the factor to SI units and the unit; empty cells are left out.
    """

    where: str
    cells: Mapping[str, tuple[Any, float, str]]

    def error(self, text: str) -> ModelError:
        return ModelError(f"{self.where}: {text}")

    def has(self, column: str) -> bool:
        return column in self.cells

    def unit(self, column: str) -> str:
        """The unit of a column, as its heading says; empty if it says none."""
        return self.cells[column][2] if column in self.cells else ""

    def word(self, column: str, otherwise: str | None = None) -> str:
        """The text of a cell, such as a name; whole numbers may be names, too."""
        if column not in self.cells:
            if otherwise is None:
                raise self.error(f"its {column!r} is missing")
            return otherwise
        value = self.cells[column][0]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f"its {column!r} must be a word, got {clipped(value)}")
        return str(value).strip()

    def number(self, column: str, otherwise: float = 0.0) -> float:
        """A number in SI units."""
        if column not in self.cells:
            return otherwise
        value, scale, _ = self.cells[column]
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError
            number = float(value)
        except (ValueError, OverflowError):
            raise self.error(f"its {column!r} is not a number: {clipped(value)}") from None
        if not abs(number) <= LARGEST:
            wanted = f"a number below {LARGEST:g}" if math.isfinite(number) else "a finite number"
            raise self.error(f"its {column!r} must be {wanted}, got {clipped(value)}")
        return scale * number

    def point(self) -> np.ndarray:
        """x, y and z, m."""
        return np.array([self.number(column) for column in "xyz"])

    def answer(self, column: str) -> bool:
        """Whether a cell says yes."""
        if column not in self.cells:
            return False
        value = self.cells[column][0]
        if isinstance(value, bool):
            return value
        answer = _YES.get(str(value).strip().lower())
        if answer is None:
            raise self.error(f"its {column!r} must be yes or no, got {clipped(value)}")
        return answer

    def axis(self) -> tuple[float, float, float] | None:
        """An axis, given as x, y or z, possibly with a minus sign, or as three numbers; None if the cell is empty."""
        if "axis" not in self.cells:
            return None
        value = self.cells["axis"][0]
        if isinstance(value, str):
            sign, name = re.fullmatch(r"\s*([-+]?)\s*(.*?)\s*", value, re.DOTALL).groups()  # type: ignore[union-attr]
            if name.lower() in _AXES:
                x, y, z = _AXES[name.lower()]
                return (-x, -y, -z) if sign == "-" else (x, y, z)
            value = value.replace(",", " ").split()
        try:
            x, y, z = (float(entry) for entry in value)
        except (TypeError, ValueError):
            got = clipped(self.cells["axis"][0])
            raise self.error(f"its 'axis' must be x, y, z, -x, -y, -z or three numbers, got {got}") from None
        return x, y, z


def checked_row(where: str, table: str, cells: Mapping[str, Any]) -> Row:
    """A row whose columns are known.

    Args:
        where: the file, table and row, for messages.
        table: one of `COLUMNS`.
        cells: by heading, units included, what is in the row.

    Raises:
        ModelError: for an unknown column or unit, and for a quantity that is given twice.
    """
    columns, filled = COLUMNS[table], {}
    for text, value in cells.items():
        name, unit = heading(str(text))
        if name not in columns:
            similar = get_close_matches(name.lower(), {column.lower(): column for column in columns}, n=1)
            close = [column for column in columns if column.lower() in similar]
            hint = f"; did you mean {close[0]!r}?" if close else "."
            names = listed(columns, len(columns))
            raise ModelError(f"{where}: there is no column {clipped(name)} in {table}{hint} There are {names}")
        scale = scale_of(f"{where}: column {name!r}", unit, columns[name])
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if name in filled:  # as 'lower (deg)' and 'lower (mm)', of which a row fills one
            raise ModelError(f"{where}: its {name!r} is given twice, in {filled[name][2] or 'SI units'} and in {unit}")
        filled[name] = value, scale, unit
    return Row(where, filled)
