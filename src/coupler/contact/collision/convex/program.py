"""The search for contacts of convex shapes as steps of a program: what contacts.py does on floats, for lanes.

A kernel handles one shape of a pair, or none at all, so that the numbers of kinds of shapes add up instead of
multiplying. Hulls are scanned row by row: a few vertices at a time for the point furthest along a direction, and face
by face for the one that faces it most.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from coupler.contact.collision.convex import ascent, cores, kernels
from coupler.contact.collision.convex.contacts import (
    Scales,
    count,
    face_direction,
    manifold,
    relative_pose,
    sides_to_try,
    starts,
)
from coupler.contact.collision.convex.patches import corners, faces_of, facing, raised
from coupler.contact.collision.geometry import contact_of
from coupler.contact.collision.pair_groups import ShapeOnLink
from coupler.contact.collision.tables import (
    Forms,
    form,
    numbers,
    pair_by_pair,
    put_contact,
    rows_of,
    window_rows,
    with_numbers,
)
from coupler.graph import Builder, Field, Slot, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.model.shapes import Box, Geometry, Hull
from coupler.spatial import Transform

Rows = Sequence[int]
Placed = Callable[[View, Rows], tuple[Transform, Transform]]

_FAR = 1e30  # further than any point along any direction, and above any cosine
_STARTS = {True: 16, False: 7}  # the number of directions that are tried first, for two boxes and for any other two


class Search:
    """Pairs of convex shapes in a program, and the search for their contacts."""

    def __init__(self, builder: Builder, ends: Sequence[tuple[ShapeOnLink, ShapeOnLink]], flags: Slot) -> None:
        """Makes the buffers for pairs of shapes, `ends`, each with a listed flag whether it is searched."""
        self._builder, self._ends, self._among = builder, ends, flags
        self._forms: list[Forms] = [(one.form, other.form) for one, other in ends]
        self._corners = width = max(corners(shape) for both in self._forms for shape in both)
        first = max(_STARTS[_boxes(both)] for both in self._forms)
        layout = dict(ascent.FIELDS) | {"E": (3, 3), "r": 3}
        layout |= {"axes": (2, 3), "sign": (), "outermost": 4, "corner": (4, 2)}
        for side in (0, 1):
            layout |= {f"starts{side}": (first, 3), f"extents{side}": first, f"toward{side}": 3}
            layout |= {f"reach{side}": (), f"tip{side}": 3}
            layout |= {f"facing{side}": (), f"outward{side}": 3, f"face{side}": (width, 3), f"flat{side}": (width, 2)}
        self._records, self._places = builder.records("search", len(ends), **layout), list(self._all)
        self._scales = [Scales(*both) for both in self._forms]
        self._going = builder.scratch("searches_going", 1)

    def of(self, rows: Rows, flags: Slot) -> Search:
        """The search among some of these pairs, in the same memory, with other flags."""
        some = copy(self)
        some._among, some._places = flags, [self._places[i] for i in rows]
        some._ends, some._forms = [self._ends[i] for i in rows], [self._forms[i] for i in rows]
        some._scales = [self._scales[i] for i in rows]
        return some

    def run(self, poses: Callable[[Rows], Window], placed: Placed, results: Callable[[Rows], Window]) -> None:
        """Writes the steps from poses to contacts.

        Args:
            poses: gives the fields that `placed` needs, for some pairs of which the same shapes move.
            placed: gives the transforms from the world to the centres of both shapes.
            results: gives the fields `gaps0`, `points0`, `frames0` and so on to write to, for some pairs with equally
                many contacts.
        """
        for rows in self._alike(lambda i: (_boxes(self._forms[i]), *(bool(end.link) for end in self._ends[i]))):
            self._begin(rows, poses(rows), placed)
        self._aim()
        going = fields(going=self._going.at(0))
        self._builder.loop(kernels.go, pair=going)
        with self._builder.repeat(until=kernels.none_goes, at_most=ascent.MOST_STEPS, pair=going):
            self._builder.loop(kernels.stop, pair=going)
            self._improve()
        self._face_each_other()
        self._overlay([i for i in self._all if self._flat(i)])
        for rows in self._alike(lambda i: (self._flat(i), count(*self._forms[i]))):
            self._end(rows, results(rows))

    # What is shared by all kinds of shapes.

    def _begin(self, rows: Rows, poses: Window, placed: Placed) -> None:
        """Sets poses, and the directions to try first."""
        boxes = _boxes(self._forms[rows[0]])

        def begin(pair: View) -> None:
            one, other = placed(pair, rows)
            pair.E, pair.r = other.E, other.r
            ascent.begin(pair, *relative_pose(one, other))
            directions = starts(boxes, pair.R, pair.n)
            for side in (0, 1):
                directions_seen = [kernels.seen(pair, side, d) for d in directions]
                directions_seen += [np.zeros(3)] * (len(pair.extents0) - len(directions_seen))
                setattr(pair, f"starts{side}", np.stack([np.stack(list(d)) for d in directions_seen]))
                setattr(pair, f"extents{side}", np.full(len(directions_seen), -_FAR))

        self._builder.loop(begin, pair=self._window(rows) | poses, among=self._flags(rows))

    def _aim(self) -> None:
        """Chooses the direction to start from."""
        for rows in self._alike(lambda i: _boxes(self._forms[i])):
            many = _STARTS[_boxes(self._forms[rows[0]])]
            for side in (0, 1):
                self._look_at(
                    rows, side, partial(kernels.extents, many=many), partial(kernels.extents_of_hull, many=many)
                )

            def aim(pair: View, many: int = many) -> None:
                extents = pair.extents0[:many] + pair.extents1[:many]
                ascent.aim(pair, [pair.starts1[i] for i in range(many)], extents)

            self._builder.loop(aim, pair=self._window(rows), among=self._flags(rows))
        for side in (0, 1):
            tried = [i for i, both in enumerate(self._forms) if side in sides_to_try(*both)]
            for rows in self._alike(lambda i, side=side: self._key(i, 1 - side), tried):
                self._try_faces(rows, side)
        self._builder.loop(kernels.point, pair=self._window(self._all), among=self._among)

    def _improve(self) -> None:
        """Writes one step of each search that is not finished."""
        searching = self._records[self._places].fields["searching"]
        assert isinstance(searching, Slot)
        loops = [*self._pairs_looked_at(0), *self._pairs_looked_at(1), np.array(self._all)]
        with self._builder.interleave(pair_by_pair(loops)):  # one way through the pairs, not one for each kind
            for side in (0, 1):
                self._look_at(self._all, side, kernels.tip, kernels.tip_of_hull, searching)
            window = self._window(self._all) | fields(going=self._going.at([0] * len(self._all)))
            self._builder.loop(kernels.improve, pair=window, among=self._among, where=searching)

    def _flat(self, i: int) -> bool:
        """Whether both shapes of a pair have patches."""
        both = self._forms[i]
        return count(*both) > 1 and all(not isinstance(shape, Hull) or len(faces_of(shape)[0]) for shape in both)

    def _overlay(self, rows: Rows) -> None:
        """Finds the corners of the overlap of the pairs' facing patches, side by side."""
        if not rows:
            return
        self._builder.loop(kernels.overlay, pair=self._window(rows), among=self._flags(rows))
        window, many = self._window(rows), self._corners
        for cut, other in ((0, 1), (1, 0)):
            side: Any = window.fields[f"flat{cut}"]
            repeated = np.repeat(np.arange(len(rows)), many)
            first = np.tile(np.arange(many), len(rows))
            points = {
                name: replace(side, bases=side.bases[repeated] + 2 * at, field=Field.of(2))
                for name, at in (("start", first), ("end", (first + 1) % many))
            }
            seen = {name: rows_of(window.fields[name], repeated) for name in ("sign", "outermost", "corner", "smaller")}
            seen["window"] = rows_of(window.fields[f"flat{other}"], repeated)
            self._builder.loop(
                kernels.cut_side, pair=fields(**points, **seen), among=rows_of(self._among, np.array(rows)[repeated])
            )

    def _end(self, rows: Rows, results: Window) -> None:
        """Writes the contacts of pairs, with corners or without."""
        flat, many = self._flat(rows[0]), count(*self._forms[rows[0]])

        def end(pair: View) -> None:
            corners = 4 * [(pair.gap > _FAR, pair.gap, np.zeros(3))] if many > 1 else []
            if flat:
                one, other = kernels.patches(pair)
                places = [(pair.outermost[k], pair.corner[k]) for k in range(4)]
                corners = [raised(one, other, pair.normal, pair.axes, *place) for place in places]
            places = manifold((pair.margin0, pair.margin1), Transform(pair.E, pair.r), pair, pair, corners)
            for k, place in enumerate(places):
                put_contact(pair, k, contact_of(*place))

        lengths = {f"margin{side}": constants([cores.margin(self._forms[i][side]) for i in rows]) for side in (0, 1)}
        self._builder.loop(end, pair=self._window(rows) | fields(**lengths) | results, among=self._flags(rows))

    # What depends on the kind of one shape.

    def _look_at(
        self,
        rows: Rows,
        side: int,
        look: Callable[[View, Geometry, int], None],
        look_at_hull: Callable[[View, int], None],
        where: Slot | None = None,
    ) -> None:
        """Writes loops over one shape of pairs, by kinds: for all pairs that are searched, or for those with a flag."""
        for same_kind in self._alike(lambda i: self._key(i, side), rows):
            sample = self._forms[same_kind[0]][side]
            if isinstance(sample, Hull):
                self._through(same_kind, side, cores.chunks, look_at_hull, where)
                continue

            def looking(pair: View, sample: Geometry = sample) -> None:
                look(pair, with_numbers(sample, pair.numbers), side)

            table = fields(numbers=constants([numbers(self._forms[i][side]) for i in same_kind]))
            flags = {"among": self._flags(same_kind), "where": rows_of(where, same_kind)}
            self._builder.loop(looking, pair=self._window(same_kind) | table, **flags)

    def _pairs_looked_at(self, side: int) -> list[np.ndarray]:
        """The pairs in each loop that `_look_at` writes over all of them, row by row."""
        shapes = [both[side] for both in self._forms]
        rows = [len(cores.chunks(shape)) if isinstance(shape, Hull) else 1 for shape in shapes]
        return [np.repeat(alike, [rows[i] for i in alike]) for alike in self._alike(lambda i: self._key(i, side))]

    def _try_faces(self, rows: Rows, side: int) -> None:
        """Tries the normals of hulls' faces as directions to start from."""
        sample = self._forms[rows[0]][1 - side]
        table = fields(numbers=constants([numbers(self._forms[i][1 - side]) for i in rows]))

        def try_face(pair: View, side: int) -> None:
            other, normal = with_numbers(sample, pair.numbers), pair.table[0]
            d = face_direction(pair.R, side, normal)
            reach = normal @ pair.table[1] + cores.extent(other, np.stack(list(kernels.seen(pair, 1 - side, d))))
            ascent.aim(pair, [d], [reach])

        self._through(rows, side, lambda hull: kernels.normals_and_corners(hull)[:, :2], try_face, more=table)

    def _face_each_other(self) -> None:
        """Finds the patches that face the other shape."""
        for side in (0, 1):
            for rows in self._alike(lambda i, side=side: (self._key(i, side), count(*self._forms[i]) > 1)):
                both = self._forms[rows[0]]
                sample, flags = both[side], self._flags(rows)
                if count(*both) == 1 or (isinstance(sample, Hull) and not len(faces_of(sample)[0])):
                    continue
                if isinstance(sample, Hull):
                    self._builder.loop(kernels.facing_none(side), pair=self._window(rows), among=flags)
                    self._through(rows, side, kernels.normals_and_corners, kernels.face_of_hull)
                    continue

                def face(pair: View, sample: Geometry = sample, side: int = side) -> None:
                    d = np.stack(list(kernels.seen(pair, side, pair.normal)))
                    patch = facing(with_numbers(sample, pair.numbers), d)
                    setattr(pair, f"face{side}", kernels.padded(patch.points, len(getattr(pair, f"face{side}"))))
                    setattr(pair, f"outward{side}", patch.normal)

                table = fields(numbers=constants([numbers(self._forms[i][side]) for i in rows]))
                self._builder.loop(face, pair=self._window(rows) | table, among=flags)

    def _through(
        self,
        rows: Rows,
        side: int,
        table: Callable[[Any], np.ndarray],
        look: Callable[..., None],
        where: Slot | None = None,
        more: Window | None = None,
    ) -> None:
        """Writes a loop over all rows of the tables of one side's hulls."""
        tables = [table(self._forms[i][side]) for i in rows]
        repeated = np.repeat(np.arange(len(rows)), [len(values) for values in tables])

        window = self._window(rows) if more is None else self._window(rows) | more
        window = window_rows(window, repeated) | fields(table=constants(np.concatenate(tables)))
        pairs = np.array(rows)[repeated]
        self._builder.loop(partial(look, side=side), pair=window, among=self._flags(pairs), where=rows_of(where, pairs))

    # Rows.

    def _key(self, i: int, side: int) -> Hashable:
        shape = self._forms[i][side]
        return (Hull, corners(shape)) if isinstance(shape, Hull) else form(shape)

    @property
    def _all(self) -> range:
        return range(len(self._ends))

    def _alike(self, key: Callable[[int], Hashable], rows: Rows | None = None) -> list[list[int]]:
        return list(grouped(self._all if rows is None else rows, key).values())

    def _window(self, rows: Rows) -> Window:
        scales = [self._scales[i] for i in rows]
        lengths = {length: constants([getattr(scale, length) for scale in scales]) for length in vars(scales[0])}
        return self._records[[self._places[i] for i in rows]] | fields(**lengths)

    def _flags(self, rows: Any) -> Slot:
        return rows_of(self._among, rows)


def _boxes(both: Forms) -> bool:
    return all(isinstance(shape, Box) for shape in both)
