"""The search for contacts of convex shapes as steps of a program: what contacts.py does on floats, for lanes.

Pairs that are alike share kernels. Hulls are looked through row by row: some vertices at a time for the point furthest
along a direction, and face by face for the one that looks along it most.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.contact.convex import ascent, cores
from coupler.contact.convex.contacts import Scales, face_direction, manifold, relative_pose, sides_to_try, starts
from coupler.contact.convex.patches import Patch, faces_of, facing, has_patches, more_facing, sides
from coupler.contact.forms import Hull
from coupler.graph import Buffer, Builder, Records, Slot, View, Window, constants, fields
from coupler.model.shapes import Geometry
from coupler.spatial import Transform

__all__ = ["Forms", "Located", "Search", "form_of", "run_searches", "searched_contacts"]

Array = Any  # nodes of a trace
Forms = tuple[Geometry, Geometry]
Located = Callable[[View], tuple[Forms, tuple[Transform, Transform]]]  # forms with their numbers, and poses of centres

_FAR = 1e30  # further than any point along any direction, and more than any cosine


def form_of(hull: Hull) -> Hashable:
    """What kernels of a hull depend on."""
    return Hull, sides(hull), bool(len(faces_of(hull)[0]))


class Search:
    """Pairs of convex shapes that one trace serves, in a program.

    Attributes:
        window: of each pair the fields of `ascent.FIELDS`, its `Scales`, and the sides of hulls that face each other.
    """

    def __init__(self, builder: Builder, name: str, pairs: Sequence[Forms], located: Located, poses: Window) -> None:
        """Args: a program, a name, forms of pairs, and how kernels find forms and poses from fields of a window."""
        self._builder, self._pairs, self._located, self._poses = builder, pairs, located, poses
        self._hulls = [side for side in (0, 1) if isinstance(pairs[0][side], Hull)]
        self._records = self._remembered(name)
        scales = [Scales(*pair) for pair in pairs]
        lengths = {length: constants([getattr(own, length) for own in scales]) for length in vars(scales[0])}
        self.window = self._records[:] | fields(**lengths)

    def _remembered(self, name: str) -> Records:
        layout = dict(ascent.FIELDS)
        for side in self._hulls:
            hull = self._pairs[0][side]
            layout |= {f"reach{side}": (), f"tip{side}": 3, f"toward{side}": 3}
            layout |= {f"starts{side}": (_many_starts(), 3), f"extents{side}": _many_starts()}
            layout |= {f"facing{side}": (), f"face{side}": (sides(hull), 3), f"outward{side}": 3}
        return self._builder.records(name, len(self._pairs), **layout)

    @property
    def searching(self) -> Slot:
        """Of each pair whether the search goes on."""
        slot = self.window.fields["searching"]
        assert isinstance(slot, Slot)
        return slot

    def begin(self, where: Slot | None) -> None:
        """Writes the steps that start the search, for pairs with this flag; without one the search has ended."""
        located, hulls = self._located, self._hulls

        def begin(here: View) -> None:
            forms, X = located(here)
            ascent.begin(here, *relative_pose(*X))
            directions = starts(*forms, here.R, here.n)
            if not hulls:
                _aim(here, forms, directions)
            for side in hulls:
                setattr(here, f"starts{side}", np.stack([_seen(here, side, d) for d in directions]))
                setattr(here, f"extents{side}", np.full(len(directions), -_FAR))

        def look(here: View, side: int) -> None:
            reaches = [
                cores.further_of(reach, np.zeros(3), d, here.vertices)[0]
                for reach, d in zip(getattr(here, f"extents{side}"), getattr(here, f"starts{side}"), strict=True)
            ]
            setattr(here, f"extents{side}", np.stack(reaches))

        def aim(here: View) -> None:
            forms, _ = located(here)
            _aim(here, forms, starts(*forms, here.R, here.n))

        def try_face(here: View, side: int) -> None:
            forms, _ = located(here)
            normal = here.face[0]
            d = face_direction(here.R, side, normal)
            reach = normal @ here.face[1] + cores.extent(forms[1 - side], _seen(here, 1 - side, d))
            ascent.aim(here, [d], [reach])

        def point(here: View) -> None:
            _point(here, hulls)

        self._builder.loop(_no_search, here=self.window)
        self._builder.loop(begin, here=self.window | self._poses, where=where)
        for side in hulls:
            self._through(cores.chunks, "vertices", look, side, where)
        if not hulls:
            return
        self._builder.loop(aim, here=self.window | self._poses, where=where)
        for side in sides_to_try(*self._pairs[0]):
            self._through(_faces, "face", try_face, side, where)
        self._builder.loop(point, here=self.window, where=where)

    def improve(self, going: Buffer) -> None:
        """Writes one step of the search, for pairs that are searching; `going` tells whether any goes on after it."""
        located, hulls = self._located, self._hulls

        def look(here: View, side: int) -> None:
            reach, tip = (getattr(here, f"{name}{side}") for name in ("reach", "tip"))
            reach, tip = cores.further_of(reach, tip, getattr(here, f"toward{side}"), here.vertices)
            setattr(here, f"reach{side}", reach)
            setattr(here, f"tip{side}", tip)

        def improve(here: View) -> None:
            forms, _ = located(here)
            first, second = (
                getattr(here, f"tip{side}") if side in hulls else cores.furthest(forms[side], _seen(here, side, here.n))
                for side in (0, 1)
            )
            ascent.improve(here, first, second, here.larger, here.clearance)
            _point(here, hulls)
            here.going = np.maximum(here.going, here.searching)

        for side in hulls:
            self._through(cores.chunks, "vertices", look, side, self.searching)
        window = self.window | self._poses | fields(going=going.at([0] * len(self._pairs)))
        self._builder.loop(improve, here=window, where=self.searching)

    def end(self, where: Slot | None) -> None:
        """Writes the steps to the sides of hulls that face each other."""
        if not all(has_patches(form) for form in self._pairs[0]):
            return
        for side in self._hulls:
            first = [faces_of(pair[side]) for pair in self._pairs]  # type: ignore[arg-type]
            if not len(first[0][0]):
                return

            def begin(here: View, side: int = side) -> None:
                setattr(here, f"facing{side}", np.array(-_FAR))
                setattr(here, f"face{side}", here.points0)
                setattr(here, f"outward{side}", here.normal0)
                setattr(here, f"toward{side}", _seen(here, side, here.normal))

            def look(here: View, side: int) -> None:
                patch = Patch(getattr(here, f"face{side}"), getattr(here, f"outward{side}"))
                toward = getattr(here, f"toward{side}")
                best, patch = more_facing(getattr(here, f"facing{side}"), patch, toward, here.face[0], here.face[1:])
                setattr(here, f"facing{side}", best)
                setattr(here, f"face{side}", patch.points)
                setattr(here, f"outward{side}", patch.normal)

            start = fields(
                normal0=constants([normals[0] for normals, _ in first]),
                points0=constants([points[0] for _, points in first]),
            )
            self._builder.loop(begin, here=self.window | start, where=where)
            self._through(_faces, "face", look, side, where)

    def _through(
        self,
        table: Callable[[Any], np.ndarray],
        name: str,
        look: Callable[[View, int], None],
        side: int,
        where: Slot | None,
    ) -> None:
        """Writes a loop over all rows of the tables of one side's hulls."""
        tables = [table(pair[side]) for pair in self._pairs]
        rows = np.repeat(np.arange(len(tables)), [len(own) for own in tables])

        def looking(here: View) -> None:
            look(here, side)

        window = _rows(self.window | self._poses, rows) | fields(**{name: constants(np.concatenate(tables))})
        self._builder.loop(looking, here=window, where=None if where is None else _rows_of(where, rows))


def run_searches(builder: Builder, searches: Sequence[tuple[Search, Slot | None]]) -> None:
    """Writes the steps from poses to the results of searches, each for pairs with a flag, or for all."""
    if not searches:
        return
    going = builder.scratch("searches_going", 1)
    for search, where in searches:
        search.begin(where)
    builder.loop(_go, here=fields(going=going.at(0)))
    with builder.repeat(until=_none_goes, at_most=ascent.MOST, here=fields(going=going.at(0))):
        builder.loop(_stop, here=fields(going=going.at(0)))
        for search, _ in searches:
            search.improve(going)
    for search, where in searches:
        search.end(where)


def _rows(window: Window, rows: np.ndarray) -> Window:
    """These rows of a window."""
    return Window({name: _rows_of(slot, rows) for name, slot in window.fields.items()})


def _rows_of(slot: Any, rows: np.ndarray) -> Any:
    return replace(slot, bases=slot.bases[rows]) if isinstance(slot, Slot) else constants(slot.values[rows])


def searched_contacts(here: View, forms: Forms, X_other: Transform) -> list[Any]:
    """The contacts of a pair whose search has ended: see `manifold`."""
    patches: list[Patch | None] = []
    for side, form in enumerate(forms):
        if not all(map(has_patches, forms)) or (isinstance(form, Hull) and not len(faces_of(form)[0])):
            patches.append(None)
        elif isinstance(form, Hull):
            patches.append(Patch(getattr(here, f"face{side}"), getattr(here, f"outward{side}")))
        else:
            patches.append(facing(form, _seen(here, side, here.normal)))
    return manifold(*forms, X_other, here, here, patches)


def _faces(hull: Hull) -> np.ndarray:
    """f × (1 + k) × 3: the normal of each face, and its corners."""
    normals, points = faces_of(hull)
    return np.concatenate([normals[:, None], points], axis=1)


def _many_starts() -> int:
    return 7  # of pairs with a hull: see `starts`


def _seen(here: View, side: int, d: Array) -> Array:
    """A direction from the second shape to the first, as each of them sees it: towards the other one."""
    return d if side else -(here.R.T @ d)


def _aim(here: View, forms: Forms, directions: list[Array]) -> None:
    extents = []
    for i, d in enumerate(directions):
        own = [
            getattr(here, f"extents{side}")[i] if isinstance(form, Hull) else cores.extent(form, _seen(here, side, d))
            for side, form in enumerate(forms)
        ]
        extents.append(own[0] + own[1])
    ascent.aim(here, directions, extents)


def _point(here: View, hulls: list[int]) -> None:
    """Starts to look through hulls for their points furthest along the next direction."""
    for side in hulls:
        setattr(here, f"toward{side}", np.stack(list(_seen(here, side, here.n))))
        setattr(here, f"reach{side}", np.array(-_FAR))
        setattr(here, f"tip{side}", np.zeros(3))


def _no_search(here: View) -> None:
    here.searching = np.array(0.0)


def _go(here: View) -> None:
    here.going = np.array(1.0)


def _stop(here: View) -> None:
    here.going = np.array(0.0)


def _none_goes(here: View) -> Any:
    return here.going <= 0.0
