"""Units that cannot be: inertias in kg mm² among lengths in m, or lengths in mm among others in m."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coupler.io.tables.sources import Tables
from coupler.mechanisms import StrutBuilder
from coupler.model import ModelError
from coupler.model.tree import GROUND

# Beyond 2 m and twice the robot's reach, no body of it has its mass; with kg mm² for kg m², it is 1000 times as far.
_LONG, _FAR = 2.0, 2.0  # m, reaches of the robot
_OTHER = 200.0  # between the lengths of two tables: in the same unit, few robots have it; in mm and m, it is 1000
_SMALL = 0.03  # of its own size: few bodies gather their mass so closely, and not all of a robot
_HUGE = 100.0  # m: no robot reaches so far, but one of 10 cm does in mm


def check_units(tables: Tables, points: Mapping[str, Mapping[str, np.ndarray]], b: StrutBuilder) -> None:
    """Compares lengths of tables, and √(I/m), the radius at which a body's mass would have its inertia, with them.

    Args:
        tables: all that was read.
        points: by body the points on it, m.
        b: the builder, which is warned.

    Raises:
        ModelError: naming a body whose mass would be far outside the robot, and what to do.
    """
    _compare_lengths(tables, b)
    sizes = {body: max(map(_length, on_body.values()), default=0.0) for body, on_body in points.items()}
    for row in tables.rows["bodies"]:
        body = row.word("body")
        sizes[body] = max(sizes.get(body, 0.0), _length(row.point()))
    reach = 0.0
    for row in tables.rows["joints"]:
        parent, offset = row.word("parent"), _length(row.point())
        sizes[parent] = max(sizes.get(parent, 0.0), offset)
        reach += offset
    reach += max((size for body, size in sizes.items() if body != GROUND), default=0.0)
    gathered = []
    for row in tables.rows["bodies"]:
        mass, moment = row.number("mass"), max(row.number(f"I{axis}{axis}") for axis in "xyz")
        if mass <= 0.0 or moment <= 0.0 or row.answer("ideal"):
            continue
        radius, body = float(np.sqrt(moment / mass)), row.word("body")
        if radius > max(_LONG, _FAR * reach):
            raise ModelError(
                f"{row.where}: its units cannot be: with {mass:g} kg and {moment:g} kg m², its mass would be "
                f"{radius:.3g} m from its centre, in a robot that reaches {reach:.3g} m. If inertias are given in kg "
                "mm², say so in their headings: Ixx (kg mm^2); if it is right, give points that show how large it is"
            )
        gathered += [radius / sizes[body]] if sizes[body] else []
    if gathered and max(gathered) < _SMALL:
        b.warn(
            f"all masses of {tables.name!r} are gathered within {100 * max(gathered):.2g} % of the size of their "
            "bodies: are lengths given in mm, or inertias in another unit? Then say so in their headings: x (mm), Ixx "
            "(kg mm^2)"
        )
    elif reach > _HUGE:
        b.warn(f"{tables.name!r} reaches {reach:.4g} m: are lengths given in mm? Then say so in their headings: x (mm)")


def _compare_lengths(tables: Tables, b: StrutBuilder) -> None:
    """Warns of a table whose lengths are as large among those of others as mm among m."""
    lengths_of = {
        table: [_length(row.point()) for row in tables.rows[table]] for table in ("points", "joints", "bodies")
    }
    largest = {table: max(lengths) for table, lengths in lengths_of.items() if any(lengths)}
    for table, length in largest.items():
        others = [other for other in largest.values() if other is not length]
        if others and length > _OTHER * max(others):
            b.warn(
                f"lengths in {table} of {tables.name!r} reach {length:.3g} m, in its other tables {max(others):.3g} m: "
                "are they in mm? Then say so in their headings: x (mm)"
            )


def _length(point: np.ndarray) -> float:
    return float(np.linalg.norm(point))
