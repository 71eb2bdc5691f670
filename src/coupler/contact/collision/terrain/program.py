"""Contacts with height fields as steps of a program: what contacts.py does on floats, for lanes.

A kernel handles what one grid point owns, and is looped over the window of grid points around a shape, whose number is
known beforehand. Grid points that are not near, and features that are not convex, are skipped, state by state. So a
field costs as much as the ground near the shape, whatever the field's size.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.convex import cores
from coupler.contact.collision.geometry import contact_of
from coupler.contact.collision.pair_groups import ShapeOnLink
from coupler.contact.collision.tables import form, numbers, put_contact, rows_of, window_rows, with_numbers
from coupler.contact.collision.terrain import features, kernels
from coupler.contact.collision.terrain.contacts import WALLS, as_solid, corner_contact, extent, first_point, window
from coupler.contact.collision.terrain.pool import SLOTS, Candidate, added, emptied, listed, slots_of
from coupler.contact.collision.terrain.solids import Planes, fixed_points, flat, lowest_points, planes_of
from coupler.contact.collision.terrain.surface import slopes_at
from coupler.contact.kernels import clear
from coupler.graph import Builder, Field, Slot, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.model.height_fields import EDGES, HeightField
from coupler.model.shapes import Hull, Sphere
from coupler.spatial import Transform

Array = Any  # nodes of a trace
Rows = Sequence[int]
Look = Callable[[View, Any, Any], list[Candidate]]  # of a feature, the field and the shape: candidates
Placed = Callable[[View, Rows], tuple[Transform, Transform, Any]]

_CARE = 2.0  # times the velocities of a step, for what integrators make of the forces within it
_LEAST = {True: 0.05, False: 0.25}  # in radii, for flat and for curved sides: how far to look however slow the shape is
_MOST = 8  # candidates of a feature at most: four points of a cylinder on two triangles
_CANDIDATE = {"exists": Field.of(()), "gap": Field.of(()), "point": Field.of(3), "normal": Field.of(3)}
_CANDIDATE_SIZE = sum(field.size for field in _CANDIDATE.values())
_FLAGS = ("near", "sharp", "edge0", "edge1", "edge2")  # of grid points, and of the edges that they own
_RECORD = {"E": (3, 3), "r": 3, "R": (3, 3), "p": 3, "i": (), "j": (), "bound": ()} | {
    "gap": SLOTS,
    "score": SLOTS,
    "point": (SLOTS, 3),
    "normal": (SLOTS, 3),
}


class FieldSearch:
    """Pairs of a shape and a height field in a program, and the search for their contacts.

    Args:
        name: the prefix of the buffers' names.
        ends: the shapes of each pair.
        flags: a flag for each pair, whether it is searched; None if all are.
        step: h, s.
    """

    def __init__(
        self,
        builder: Builder,
        name: str,
        ends: Sequence[tuple[ShapeOnLink, ShapeOnLink]],
        flags: Slot | None,
        step: float,
    ) -> None:
        self._builder, self._ends, self._where, self._step = builder, ends, flags, step
        self._side = [int(isinstance(other.form, HeightField)) for _, other in ends]  # the field's
        self._windows = [window(self._shape(i).form, self._field(i)) for i in self._all]
        self._first = np.cumsum([0, *map(len, self._windows)])
        self._records = builder.records(name, len(ends), **_RECORD)
        self._near = builder.records(f"{name}_near", int(self._first[-1]), **dict.fromkeys(_FLAGS, ()))
        self._found = builder.scratch(f"{name}_found", _MOST * _CANDIDATE_SIZE * len(ends))
        self._odd = builder.scratch(f"{name}_odd", len(ends))  # flags: next to the rim, or sunk

    def run(self, poses: Callable[[Rows], Window], placed: Placed, results: Callable[[Rows], Window]) -> None:
        """Writes the steps from poses to contacts.

        Args:
            poses: gives the fields that `placed` needs, for some pairs that share a trace.
            placed: gives the transforms from the world to both shapes, and how fast they approach at most, m/s.
            results: gives the fields `gaps0`, `points0`, `frames0` and so on to write to, for some pairs with equally
                many contacts.
        """
        for flags in (self._near.buffer, self._odd, self._found):
            clear(self._builder, flags)
        for rows in self._alike():
            self._begin(rows, poses(rows), placed)
            if as_solid(self._shape(rows[0]).form) is not None:
                self._look(rows)
            self._end(rows, results(rows))

    def _look(self, rows: Rows) -> None:
        """Visits all features of the ground, in a fixed order."""
        shape = self._shape(rows[0]).form
        lowest, along = len(lowest_points(shape, np.array([0.0, 0.0, 1.0]))), 1 if isinstance(shape, Sphere) else 2
        self._ask(rows)
        points, pairs = self._points(rows)
        at = self._at_points(rows)
        if lowest:
            self._collect(rows, pairs, at, self._near[points].fields["near"], kernels.faces, 2 * lowest)
            self._beside(rows, lowest)
        else:
            self._look_at_corners(rows)
        self._collect(rows, pairs, at, self._near[points].fields["sharp"], kernels.grid_point, 1)
        repeated = np.repeat(np.arange(len(points)), len(EDGES))
        edges = fields(edge=constants(np.tile(np.array(EDGES, dtype=float), (len(points), 1, 1))))
        flags = len(_FLAGS) * points[repeated] + 2 + np.tile(np.arange(len(EDGES)), len(points))
        where = self._near.buffer.at(flags)
        self._collect(rows, pairs[repeated], window_rows(at, repeated) | edges, where, kernels.edge, along)

    def _look_at_corners(self, rows: Rows) -> None:
        """Visits the faces that corners may run into, beside those below them."""
        points, pairs = self._points(rows)
        corners = np.array([fixed_points(self._shape(i).form) for i in rows])[pairs]
        count = corners.shape[1]
        repeated = np.repeat(np.arange(len(points)), count)
        window = window_rows(self._at_points(rows), repeated) | fields(corner=constants(corners.reshape(-1, 3)))
        near = self._near[points[repeated]].fields["near"]
        self._collect(rows, pairs[repeated], window, near, kernels.corner, 2)

    def _collect(self, rows: Rows, pairs: np.ndarray, window: Window, where: Any, look: Look, many: int) -> None:
        """Writes a loop over features, and adds the contacts that it finds to the pools.

        Few features are touched, and finding that out costs less than adding a contact to a pool, so the latter is
        skipped where there is none.

        Args:
            rows: pairs that share a trace.
            pairs: for each feature, the number of its pair among these.
            window: for each feature, the fields that `look` needs.
            where: for each feature, a flag whether it is visited.
            look: gives `many` candidates.
        """
        names, slots = ("exists", "gap", "point", "normal"), slots_of(self._shape(rows[0]).form)

        def looking(view: View) -> None:
            for k, candidate in enumerate(look(view, self._ground(view, rows[0]), self._solid(view, rows[0]))):
                setattr(view, f"found_exists{k}", np.where(candidate[0], 1.0, 0.0))
                for name, value in zip(names[1:], candidate[1:], strict=True):
                    setattr(view, f"found_{name}{k}", np.array(value))

        def keep(view: View) -> None:
            candidate = view.found_exists > 0.0, view.found_gap, view.found_point, view.found_normal
            added(view, candidate, view.p, view.radius, slots)
            view.found_exists = np.array(0.0)

        looking.__name__ = look.__name__
        numbers_of_pairs, repeated = np.array(rows), np.repeat(pairs, many)
        each = [self._place(numbers_of_pairs[pairs], k) for k in range(many)]
        window |= fields(**{f"found_{name}{k}": slot for k, slots in enumerate(each) for name, slot in slots.items()})
        one = self._place(numbers_of_pairs[repeated], 0, np.tile(np.arange(many), len(pairs)))
        pool = window_rows(self._records[list(rows)] | self._lengths(rows), repeated)
        pool |= fields(**{f"found_{name}": slot for name, slot in one.items()})
        with self._builder.interleave(np.tile([0] + many * [1], len(pairs))):
            self._builder.loop(looking, view=window, where=where)
            self._builder.loop(keep, view=pool, where=one["exists"])

    def _place(self, pairs: np.ndarray, k: int, further: np.ndarray | int = 0) -> dict[str, Slot]:
        """The place of candidate k of a feature, for each pair; `further` shifts it by that many candidates."""
        bases, offset, slots = (_MOST * pairs + further) * _CANDIDATE_SIZE, k * _CANDIDATE_SIZE, {}
        for name, field in _CANDIDATE.items():
            slots[name] = Slot(self._found, bases, offset, field)
            offset += field.size
        return slots

    # Pairs

    def _begin(self, rows: Rows, poses: Window, placed: Placed) -> None:
        """Writes the steps that set a shape's pose in the field, and how far it looks."""
        side, many = self._side[rows[0]], [offsets[-1] + 1.0 for offsets in self._windows]
        least = _LEAST[flat(self._shape(rows[0]).form)]
        at = {"extent": constants([extent(self._shape(i).form) for i in rows])}
        at |= {"many": constants([many[i] for i in rows]), "horizon": constants([_CARE * self._step] * len(rows))}

        def begin(view: View) -> None:
            one, other, fastest = placed(view, rows)
            field, shape = (one, other) if side == 0 else (other, one)
            view.E, view.r = field.E, field.r
            view.R, view.p = field.E @ shape.E.T, np.stack(list(field.E @ (shape.r - field.r)))
            ground = self._ground(view, rows[0])
            view.i, view.j = map(np.array, first_point(ground, view.p, view.extent, view.many))
            emptied(view)
            view.bound = np.maximum(least * view.radius, view.horizon * fastest)
            height, _, _ = slopes_at(ground, view.p[0], view.p[1])
            n, m, dx, dy = ground.grid
            inner = np.maximum(np.abs(view.p[0]) - 0.5 * (n - 1.0) * dx, np.abs(view.p[1]) - 0.5 * (m - 1.0) * dy)
            odd = (view.p[2] < height) | (inner + view.radius + view.bound > 0.0)
            view.odd = np.where(odd, 1.0, 0.0)

        window = self._records[list(rows)] | self._lengths(rows) | poses | fields(**at, odd=self._odd.at(rows))
        self._builder.loop(begin, view=window, where=self._flags(rows))

    def _beside(self, rows: Rows, lowest: int) -> None:
        """Visits walls, and ways out from below the surface, for shapes that are near the rim or have sunk."""
        window, pairs = self._records[list(rows)] | self._lengths(rows), np.arange(len(rows))
        self._collect(rows, pairs, window, self._odd.at(rows), kernels.sunk, 1)
        repeated = np.repeat(pairs, len(WALLS))
        walls = window_rows(window, repeated) | fields(outward=constants(np.tile(WALLS, (len(rows), 1))))
        self._collect(rows, repeated, walls, self._odd.at(np.array(rows)[repeated]), kernels.wall, lowest)

    def _end(self, rows: Rows, results: Window) -> None:
        """Writes the contacts of corners with the ground below them, and those of the pool, in the world."""
        side, slots = self._side[rows[0]], slots_of(self._shape(rows[0]).form)
        corners = [fixed_points(self._shape(i).form) for i in rows]
        table = fields(corners=constants(corners)) if corners[0] else fields()

        def end(view: View) -> None:
            ground, below, far = self._ground(view, rows[0]), [], None
            if corners[0]:
                below = [corner_contact(ground, view.R, view.p, point) for point in view.corners]
            else:
                far = features.far_contact(ground, self._solid(view, rows[0]), view.R, view.p, view.bound)
            for k, (gap, point, normal) in enumerate([*below, *listed(view, view.p, slots, far)]):
                outward = np.stack(list(view.E.T @ (normal if side else -normal)))
                put_contact(view, k, contact_of(gap, np.stack(list(view.r + view.E.T @ point)), outward))

        window = self._records[list(rows)] | self._lengths(rows) | table | results
        self._builder.loop(end, view=window, where=self._flags(rows))

    # Grid points

    def _ask(self, rows: Rows) -> None:
        """Finds out which grid points of windows are near, and which of their features are convex."""

        def ask(view: View) -> None:
            ground, solid = self._ground(view, rows[0]), self._solid(view, rows[0])
            i, j = kernels.at(view)
            near, *edges = features.near(ground, solid, view.R, view.p, i, j, view.radius, view.bound)
            n, m, _, _ = ground.grid
            view.near = np.where(near, 1.0, 0.0)
            for k, (name, close) in enumerate(zip(_FLAGS[1:], [near, *edges], strict=True)):
                sharp = ground.sharp.look_up(k * n * m + i * m + j)
                setattr(view, name, np.where(close, sharp, 0.0))

        points, pairs = self._points(rows)
        window = self._at_points(rows) | self._near[points]
        flags = rows_of(self._where, np.array(rows)[pairs])
        self._builder.loop(ask, view=window, where=flags)

    def _points(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all grid points in the windows of pairs, and for each the pair that it belongs to."""
        points = np.concatenate([np.arange(self._first[i], self._first[i + 1]) for i in rows])
        return points, np.repeat(np.arange(len(rows)), [len(self._windows[i]) for i in rows])

    def _at_points(self, rows: Rows) -> Window:
        _, pairs = self._points(rows)
        offsets = np.concatenate([self._windows[i] for i in rows])
        return window_rows(self._records[list(rows)] | self._lengths(rows), pairs) | fields(offset=constants(offsets))

    # Forms

    def _lengths(self, rows: Rows) -> Window:
        """The numbers of forms, as tables."""
        shapes = [self._shape(i).form for i in rows]
        tables = {"radius": constants([cores.radius(shape) for shape in shapes])}
        tables["numbers"] = constants([numbers(shape) for shape in shapes])
        tables["grid"] = constants([self._field(i).grid for i in rows])
        if isinstance(shapes[0], Hull):
            tables["planes"] = constants([planes_of(shape) for shape in shapes])  # type: ignore[arg-type]
        return fields(**tables)

    def _ground(self, view: View, row: int) -> Any:
        return with_numbers(self._field(row), view.grid)

    def _solid(self, view: View, row: int) -> Any:
        shape = self._shape(row).form
        return Planes(view.planes) if isinstance(shape, Hull) else with_numbers(shape, view.numbers)

    def _shape(self, i: int) -> ShapeOnLink:
        return self._ends[i][1 - self._side[i]]

    def _field(self, i: int) -> HeightField:
        ground = self._ends[i][self._side[i]].form
        assert isinstance(ground, HeightField)
        return ground

    # Rows

    @property
    def _all(self) -> range:
        return range(len(self._ends))

    def _alike(self) -> list[list[int]]:
        """Pairs, grouped by what a trace depends on."""

        def key(i: int) -> Hashable:
            shape = self._shape(i).form
            kind = (Hull, len(shape.vertices), len(planes_of(shape))) if isinstance(shape, Hull) else form(shape)
            moving = tuple(bool(end.link) for end in self._ends[i])
            return kind, form(self._field(i)), moving, self._side[i]

        return list(grouped(self._all, key).values())

    def _flags(self, rows: Rows) -> Slot | None:
        return rows_of(self._where, rows)
