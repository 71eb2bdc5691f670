"""A robot from its tables: what a designer has from CAD, and no file of joints and links. [004, §3]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.io.limits import BODIES
from coupler.io.tables.plausible import check_units
from coupler.io.tables.rows import Row
from coupler.io.tables.sources import Tables, read_tables
from coupler.mechanisms import Spring, StrutBuilder, linear
from coupler.model import Cylindrical, Fixed, Free, Joint, ModelError, Prismatic, Revolute, Spherical
from coupler.model.tree import GROUND
from coupler.model.wording import clipped, listed
from coupler.rotation import about_x, about_y, about_z

_KINDS: dict[str, type[Joint]] = {
    "r": Revolute,
    "revolute": Revolute,
    "p": Prismatic,
    "prismatic": Prismatic,
    "f": Fixed,
    "fixed": Fixed,
    "c": Cylindrical,
    "cylindrical": Cylindrical,
    "s": Spherical,
    "spherical": Spherical,
    "free": Free,
}
_TURNS = {"x": about_x, "y": about_y, "z": about_z}
_PASSIVE = {"lower": "lower", "upper": "upper", "damping": "damping", "friction": "friction", "armature": "armature"}
_PASSIVE |= {"stiffness": "stiffness", "rest": "rest", "effort": "effort_limit", "speed": "velocity_limit"}
_TURNING = {"rad", "deg", "°"}  # units of positions that only what turns can have


def read_robot_tables(file: Path, gravity: Any) -> StrutBuilder:
    """The robot that tables describe, ready to be built.

    Args:
        file: a YAML or JSON file, or bodies.csv in a folder of tables.
        gravity: 3, m/s²; that of the file, or 9.81 downwards along z, if not given.
    """
    tables = read_tables(file)
    given = tables.gravity if gravity is None else gravity
    try:
        b = StrutBuilder(tables.name) if given is None else StrutBuilder(tables.name, given)
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None
    return _Reader(tables, b).read()


class _Reader:
    """Adds the rows of all tables to a builder."""

    def __init__(self, tables: Tables, b: StrutBuilder) -> None:
        self._tables, self._b = tables, b
        self._bodies = dict.fromkeys(row.word("body") for row in tables.rows["bodies"])
        self._points: dict[str, dict[str, np.ndarray]] = {}

    def read(self) -> StrutBuilder:
        if len(self._tables.rows["bodies"]) > BODIES:
            raise ModelError(f"{self._tables.file}: it has more than {BODIES} bodies, the most that are read")
        for table, add in (
            ("points", self._add_point),
            ("bodies", self._add_body),
            ("joints", self._add_joint),
            ("couplings", self._add_coupling),
            ("loops", self._add_loop),
            ("struts", self._add_strut),
            ("springs", self._add_spring),
        ):
            for row in self._tables.rows[table]:
                try:
                    add(row)
                except ModelError as error:
                    message = str(error)
                    raise (error if message.startswith(row.where) else row.error(message)) from None
            if table == "joints":
                self._check_joints()
                check_units(self._tables, self._points, self._b)
        return self._b

    def _check_joints(self) -> None:
        """Refuses joints that carry each other in a circle, before other tables ask where bodies are."""
        rows = {row.word("body"): row for row in self._tables.rows["joints"]}
        for row in rows.values():
            way, on = [row.word("body")], row.word("parent")
            while on in rows and on not in way:
                way.append(on)
                on = rows[on].word("parent")
            if on in way:
                circle = " on ".join(map(repr, [*way[way.index(on) :], on]))
                raise row.error(f"joints carry bodies in a circle: {circle}; one of them must hang on the ground")

    def _body(self, row: Row, column: str) -> str:
        """The body that a row names; an unknown one is refused."""
        name = row.word(column)
        if name not in self._bodies and name != GROUND:
            raise row.error(
                f"its {column!r}: there is no body {clipped(name)}; there are {listed([GROUND, *self._bodies], 20)}"
            )
        return name

    def _place(self, row: Row, column: str) -> tuple[str, np.ndarray]:
        """A body and a point on it, from a cell with BODY.POINT, or BODY for the body's origin."""
        text = row.word(column)
        if text in self._bodies or text == GROUND:
            return text, np.zeros(3)
        bodies = [body for body in (GROUND, *self._bodies) if text.startswith(f"{body}.")]  # names may have dots, too
        if not bodies:
            raise row.error(
                f"its {column!r}: there is no body {clipped(text.partition('.')[0])}; a point is written BODY.POINT, "
                f"and there are {listed([GROUND, *self._bodies], 20)}"
            )
        body = next((body for body in bodies if text[len(body) + 1 :] in self._points.get(body, ())), bodies[-1])
        return body, self._point(row, column, body, text[len(body) + 1 :])

    def _point(self, row: Row, column: str, body: str, point: str) -> np.ndarray:
        points = self._points.get(body, {})
        if point not in points:
            hint = f"there are {listed(points, 20)}" if points else "it has none in the table of points"
            raise row.error(f"its {column!r}: there is no point {clipped(point)} on body {body!r}; {hint}")
        return points[point]

    def _add_point(self, row: Row) -> None:
        body, point = self._body(row, "body"), row.word("point")
        points = self._points.setdefault(body, {})
        if point in points:
            raise row.error(f"there is a point {point!r} on body {body!r} already")
        points[point] = row.point()
        if body != GROUND:
            self._b.frame(f"{body}.{point}", body, points[point])

    def _add_body(self, row: Row) -> None:
        xx, yy, zz, xy, xz, yz = (row.number(f"I{entry}") for entry in ("xx", "yy", "zz", "xy", "xz", "yz"))
        for entry in ("xy", "xz", "yz"):
            if row.has(f"I{entry}") and row.has(f"P{entry}"):
                raise row.error(f"give I{entry}, the entry of the inertia, or P{entry} = −I{entry}, not both")
        xy, xz, yz = xy - row.number("Pxy"), xz - row.number("Pxz"), yz - row.number("Pyz")
        inertia = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        self._b.body(row.word("body"), row.number("mass"), row.point(), inertia, ideal=row.answer("ideal"))

    def _add_joint(self, row: Row) -> None:
        child, parent = self._body(row, "body"), self._body(row, "parent")
        kind = self._kind(row)
        at = self._on(row, "at", parent, otherwise=row.point())
        start = [row.number("position")] if row.has("position") and kind.nq == 1 else None
        if row.has("position") and kind.nq != 1:
            raise row.error(f"its 'position' is one number, and a {kind.kind} joint has {kind.nq or 'none'}")
        self._b.joint(
            row.word("joint", child),
            kind,
            parent,
            child,
            at,
            self._turned(row),
            start=start,
            meets=self._on(row, "meets", child, otherwise=None),
            actuated=row.answer("actuated"),
            independent=row.answer("independent"),
        )

    def _on(self, row: Row, column: str, body: str, otherwise: Any) -> Any:
        """The point on a body that a cell names, as POINT or BODY.POINT."""
        if not row.has(column):
            return otherwise
        if column == "at" and any(row.has(axis) for axis in "xyz"):
            raise row.error("give a point in 'at', or 'x', 'y' and 'z', not both")
        return self._point(row, column, body, row.word(column).removeprefix(f"{body}."))

    def _kind(self, row: Row) -> Joint:
        name, axis = row.word("type"), row.axis()
        kind = _KINDS.get(name.lower())
        if kind is None:
            raise row.error(f"there is no type {clipped(name)}; there are {listed(_KINDS, 20)}")
        along = hasattr(kind, "axis")
        if along and axis is None:
            raise row.error(f"a {kind.__name__.lower()} joint needs an 'axis'")
        if not along and axis is not None:
            raise row.error(f"a {kind.__name__.lower()} joint has no 'axis'")
        slides = kind is Prismatic
        for column in ("position", "lower", "upper", "rest"):
            if row.unit(column) and slides == (row.unit(column) in _TURNING):
                moves = "slides" if slides else "turns"
                raise row.error(f"its {column!r} is in {row.unit(column)}, but a {kind.__name__.lower()} joint {moves}")
        passive = {name: row.number(column) for column, name in _PASSIVE.items() if row.has(column)}
        return kind(**passive, **({"axis": axis} if along else {}))

    def _turned(self, row: Row) -> np.ndarray | None:
        """The rotation of a row's Euler angles: about rotated axes for capital letters, fixed axes for small ones."""
        if not any(row.has(column) for column in ("euler", "e1", "e2", "e3")):
            return None
        order = row.word("euler", "xyz")
        if len(order) != 3 or not (set(order) <= set("xyz") or set(order) <= set("XYZ")):
            raise row.error(f"its 'euler' must be three axes such as xyz or ZXZ, got {clipped(order)}")
        turns = [_TURNS[axis.lower()](row.number(f"e{i}")) for i, axis in enumerate(order, 1)]
        first, second, third = turns if order.isupper() else turns[::-1]
        return first @ second @ third

    def _add_coupling(self, row: Row) -> None:
        joint, of = row.word("joint"), row.word("of")
        if not row.has("ratio"):
            raise row.error("its 'ratio' is missing")
        relation = linear([[1.0], [row.number("ratio")]], [0.0, row.number("offset")])
        self._b.couple(f"{joint} of {of}", [of, joint], relation, [of])

    def _add_loop(self, row: Row) -> None:
        (first, at), (second, meets) = self._place(row, "from"), self._place(row, "to")
        base, goal = self._b.pose(first), self._b.pose(second)
        # Its axes are those of the first body, wherever the second one's are where the robot is assembled.
        self._b.loop(row.word("loop"), self._kind(row), first, second, at, meets, meets_turned=goal.E @ base.E.T)

    def _add_strut(self, row: Row) -> None:
        (first, at), (second, meets) = self._place(row, "from"), self._place(row, "to")
        pulls = any(row.has(column) for column in ("stiffness", "free length", "pretension", "damping"))
        self._b.strut(
            row.word("strut"),
            first,
            second,
            at,
            meets,
            axis=row.axis(),
            spring=_spring(row) if pulls else None,
            masses=(row.number("mass 1"), row.number("mass 2")),
            actuated=row.answer("actuated"),
        )

    def _add_spring(self, row: Row) -> None:
        (first, at), (second, meets) = self._place(row, "from"), self._place(row, "to")
        self._b.spring(row.word("spring"), first, second, at, meets, **vars(_spring(row)))


def _spring(row: Row) -> Spring:
    return Spring(*(row.number(column) for column in ("stiffness", "free length", "pretension", "damping")))
