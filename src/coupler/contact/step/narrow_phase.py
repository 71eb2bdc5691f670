"""Where candidate contacts are, as steps of a program: gaps, points and frames from the poses of links.

The geometry is in contact/collision. Contacts of two forms with a closed form take one kernel; others are searched for,
between convex shapes and on height fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from coupler.contact.collision.broad_phase import BroadPhase
from coupler.contact.collision.convex.program import Search
from coupler.contact.collision.geometry import Point
from coupler.contact.collision.pair_groups import PairGroup, ShapeOnLink
from coupler.contact.collision.tables import finding_kernel, forms
from coupler.contact.collision.terrain.placing import on_links, places, poses
from coupler.contact.collision.terrain.program import FieldSearch
from coupler.contact.step.candidates import Candidates, is_hull_on_plane
from coupler.contact.step.report import ContactReport
from coupler.graph import Slot, fields
from coupler.grouping import grouped
from coupler.model.shapes import Hull, Plane
from coupler.passes import Sweep
from coupler.spatial import Transform

LOCATION = ("gaps", "points", "frames")  # what the narrow phase finds of a contact

Places = Callable[[str, np.ndarray], Slot]  # the place of a quantity, by its name and the numbers of contacts


class NarrowPhase:
    """The steps that find where the contacts of pairs are.

    Args:
        sweep: the program; it has the poses E and r of links, and their velocities `start` and `u`.
        broad_phase: flags the pairs to look at, among those that can be culled.
        step: h, s.
    """

    def __init__(self, sweep: Sweep[Any, Any], candidates: Candidates, broad_phase: BroadPhase, step: float) -> None:
        self._sweep, self._candidates, self._broad_phase, self._step = sweep, candidates, broad_phase, step

    def find(self, groups: Sequence[PairGroup], report: ContactReport) -> None:
        """Writes the steps from poses of links to gaps, points and frames of contacts.

        Args:
            groups: the pairs. Either none can be culled, or all; then only the fresh ones are searched.
        """
        searched = sorted(i for alike in groups if alike.searched for i in alike.numbers)
        cullable = bool(groups) and groups[0].may_be_left_out
        if convex := [i for i in searched if i not in self._candidates.on_fields]:
            self._search(convex, report)
        if on_fields := [i for i in searched if i in self._candidates.on_fields]:
            self._search_fields(on_fields, report, cullable)
        flags = self._broad_phase.fresh.at if cullable else None
        find_closed_forms(self._sweep, self._candidates, groups, LOCATION, report.at, flags)

    def _search(self, pairs: Sequence[int], report: ContactReport) -> None:
        """Writes the search for contacts of convex shapes."""
        candidates, group = self._candidates, self._groups_among(pairs)
        search = Search(self._sweep.builder, [candidates.ends[i] for i in pairs], self._broad_phase.fresh.at(pairs))
        self._convex = search, {pair: row for row, pair in enumerate(pairs)}
        search.run(
            lambda rows: places(group(rows).ends) | candidates.motion(self._sweep, group(rows), ("E", "r")),
            lambda view, rows: poses(view, group(rows).ends[0]),
            lambda rows: candidates.results(group(rows), report.at, LOCATION),
        )

    def search_of(self, pairs: Sequence[int], flags: Slot) -> Search:
        """The search among some pairs of convex shapes only, with flags of its own; call it after `find`."""
        search, rows = self._convex
        return search.of([rows[pair] for pair in pairs], flags)

    def _search_fields(self, pairs: Sequence[int], report: ContactReport, cullable: bool) -> None:
        """Writes the search for contacts with height fields."""
        candidates, group = self._candidates, self._groups_among(pairs)
        flags = self._broad_phase.fresh.at(pairs) if cullable else None
        name = "terrain" if cullable else "moving_terrain"
        FieldSearch(self._sweep.builder, name, [candidates.ends[i] for i in pairs], flags, self._step).run(
            lambda rows: (
                places(group(rows).ends) | candidates.motion(self._sweep, group(rows), ("E", "r", "u", "start"))
            ),
            lambda view, rows: on_links(view, group(rows).ends[0]),
            lambda rows: candidates.results(group(rows), report.at, LOCATION),
        )

    def _groups_among(self, pairs: Sequence[int]) -> Callable[[Sequence[int]], PairGroup]:
        """A function from a search's own numbers of pairs, which start at zero, to the group of these pairs."""
        return lambda rows: self._candidates.group([pairs[row] for row in rows])


def find_closed_forms(
    sweep: Sweep[Any, Any],
    candidates: Candidates,
    groups: Sequence[PairGroup],
    names: Sequence[str],
    at: Places,
    flags: Callable[[Sequence[int]], Slot] | None,
) -> None:
    """Writes loops that find the contacts of pairs with a closed form.

    Args:
        sweep: the program; it has the poses E and r of links.
        groups: the pairs; pairs whose contacts are searched for are left out.
        names: the quantities to find: some of gaps, points and frames.
        at: returns the place for a quantity.
        flags: returns flags of the pairs to look at; None for all pairs.
    """

    def both(alike: PairGroup) -> tuple[Any, Any]:
        return forms(candidates.pairs[alike.numbers[0]])

    on_planes = [alike for alike in groups if is_hull_on_plane(both(alike))]
    for alike in groups:
        if not alike.searched and alike not in on_planes:
            window = candidates.poses(sweep, alike) | candidates.results(alike, at, names)
            kernel = finding_kernel(both(alike), alike.moving, names)
            sweep.builder.loop(kernel, view=window, where=flags and flags(alike.numbers))
    # Each corner of a hull over a plane is a point over it. All corners of all hulls share one loop, whose text does
    # not grow with their number.
    for hulls in grouped(on_planes, lambda alike: tuple(alike.moving.values())).values():
        pairs = [pair for alike in hulls for pair in alike.numbers]
        ends = [(corner, plane) for alike in hulls for hull, plane in alike.ends for corner in _corners(hull)]
        contacts = np.concatenate([candidates.contacts_of(pair) for pair in pairs])
        corners = PairGroup(candidates.pair_of[contacts].tolist(), ends, 1, searched=False)
        window = candidates.poses(sweep, corners) | fields(**{f"{name}0": at(name, contacts) for name in names})
        kernel = finding_kernel((Point(), Plane()), corners.moving, names)
        sweep.builder.loop(kernel, view=window, where=flags and flags(corners.numbers))


def _corners(hull: ShapeOnLink) -> list[ShapeOnLink]:
    vertices = cast(Hull, hull.form).vertices
    return [replace(hull, form=Point(), at=Transform.translation(vertex) @ hull.at) for vertex in vertices]
