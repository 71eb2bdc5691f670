"""Units in the headings of tables: "Ixx (kg mm^2)" says what its column is given in; without, it is in SI units."""

from __future__ import annotations

import re
from math import pi

from coupler.model import ModelError
from coupler.model.wording import clipped, listed

_DEGREE = pi / 180.0
# By kind of quantity, the unit's name without blanks, and what one of it is in SI units.
UNITS: dict[str, dict[str, float]] = {
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "in": 0.0254},
    "angle": {"rad": 1.0, "deg": _DEGREE, "°": _DEGREE},
    "mass": {"kg": 1.0, "g": 1e-3, "t": 1e3, "lb": 0.45359237},
    "inertia": {"kgm^2": 1.0, "kgcm^2": 1e-4, "kgmm^2": 1e-6, "gm^2": 1e-3, "gcm^2": 1e-7, "gmm^2": 1e-9},
    "force": {"N": 1.0, "kN": 1e3},
    "torque": {"Nm": 1.0, "Nmm": 1e-3, "kNm": 1e3},
    "stiffness": {"N/m": 1.0, "N/mm": 1e3, "kN/m": 1e3},
    "turning stiffness": {"Nm/rad": 1.0, "Nmm/rad": 1e-3, "Nm/deg": 1 / _DEGREE},
    "damping": {"Ns/m": 1.0, "Ns/mm": 1e3},
    "turning damping": {"Nms/rad": 1.0, "Nmms/rad": 1e-3, "Nms/deg": 1 / _DEGREE},
    "speed": {"m/s": 1.0, "mm/s": 1e-3},
    "turning speed": {"rad/s": 1.0, "deg/s": _DEGREE, "rpm": pi / 30.0},
}

_HEADING = re.compile(r"\s*(.*?)\s*(?:[\[(]\s*(.*?)\s*[\])])?\s*", re.DOTALL)


def heading(text: str) -> tuple[str, str]:
    """The name of a column, and its unit without blanks and dots; the unit is empty if the heading has none."""
    name, unit = _HEADING.fullmatch(text).groups()  # type: ignore[union-attr]
    unit = re.sub(r"[\s.·*]", "", unit or "").replace("²", "^2").replace("m2", "m^2")
    return " ".join(name.split()), unit


def scale_of(where: str, unit: str, kinds: tuple[str, ...]) -> float:
    """The factor from a unit to SI units.

    Args:
        where: the column, for messages.
        unit: the name of the unit; empty for SI.
        kinds: the kinds of quantities, keys of `UNITS`, that the column may have.

    Raises:
        ModelError: for a unit that is unknown, or that belongs to another kind of quantity.
    """
    for kind in kinds:
        if unit in UNITS[kind]:
            return UNITS[kind][unit]
    if not unit:
        return 1.0
    known = [name for kind in kinds for name in UNITS[kind]]
    if not known:
        raise ModelError(f"{where}: it is not a quantity, so it has no unit {clipped(unit)}")
    raise ModelError(f"{where}: its unit is {clipped(unit)}; it may be {listed(known, most=len(known))}")
