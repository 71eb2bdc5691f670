"""Which pairs of shapes may touch within a step, state by state: the contacts of others are not looked for.

Balls around two shapes that stay apart, however the shapes turn, keep their contacts open. So a pair is measured where
its balls could meet with the velocities before impulses; and, once impulses are known, where they could meet with those
after them. Of a plane or a height field, all below its highest point counts in place of a ball. Pairs that are left out
have the distance of their balls as a gap: the true one is larger.

Most pairs are far from that. They are asked one short question: whether balls could meet if each came along with all
its speed, and some more. The others, the close ones, are listed. They alone are asked further, also once impulses are
known, unless these change some velocity by more than that; then all pairs are.

Contacts that are searched for cost much, and balls around boxes are large. So where balls could meet, it is asked how
far apart the shapes themselves are along the line of their centres, which their true distance is not below.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision import balls
from coupler.contact.collision.convex import cores
from coupler.contact.collision.forms import is_endless
from coupler.contact.collision.pair_groups import PairGroup, ShapeOnLink
from coupler.contact.collision.tables import numbers
from coupler.contact.kernels import clear
from coupler.graph import Builder, View, Window, constants, fields

_CARE = 2.0  # times the velocities of a step: what integrators make of the forces within it


class BroadPhase:
    """Flags of pairs in a program, 1 or 0.

    Args:
        groups: the pairs that may be left out.
        pairs: the number of all pairs.
        step: the length of the step, s.
        bodies: gives poses E and r of links, and their velocities: `u` after a step without impulses, `start`
            before it, and `du`, the change by impulses.

    Attributes:
        fresh: whether the contacts of a pair are to be measured now; listed.
        far: whether they have not been measured so far.
        near: whether they have been measured, or are to be now; listed.
        bounds: for each pair a lower bound of the gaps of its contacts, m.
    """

    def __init__(
        self,
        builder: Builder,
        groups: Sequence[PairGroup],
        pairs: int,
        step: float,
        bodies: Callable[[list[int]], Window],
    ) -> None:
        self._builder, self._groups, self._step, self._bodies = builder, groups, step, bodies
        names = ("fresh", "far", "near", "bounds", "close")
        self.fresh, self.far, self.near, self.bounds, self._close = (
            builder.scratch(f"pair_{name}", pairs) for name in names
        )
        self._any_fresh, self._any_faster = (
            builder.scratch(f"any_{name}", 1) for name in ("pair_fresh", "ball_faster")
        )
        moving = [
            end for group in groups for ends in group.ends for end in ends if end.link and not is_endless(end.form)
        ]
        self._balls = list({_key(end): end for end in moving}.values())
        self._number = {_key(end): i for i, end in enumerate(self._balls)}
        self._places = builder.records("ball_places", len(self._balls), **balls.PLACE)
        self._motions = builder.records("ball_motions", len(self._balls), **balls.MOTION)

    def begin(self, gaps: Callable[[PairGroup], Window]) -> None:
        """Writes the steps that flag pairs which may meet as fresh, and the others as far.

        Args:
            gaps: returns, for some pairs, the fields that get bounds as gaps of contacts: `gaps0` and so on.
        """
        self._move_balls(balls.place)
        for flags in (self.fresh, self.near, self._close):
            clear(self._builder, flags)
        for group in self._groups:

            def begin(view: View, group: PairGroup = group) -> None:
                _tell(view, group, balls.distance(view, group.on_ground))
                view.close = np.where(balls.are_close(view, group.moving), 1.0, 0.0)
                view.far = np.array(1.0)

            self._builder.loop(begin, view=self._window(group) | gaps(group))
        self._builder.list_flags(self._close)
        for group in self._groups:
            self._look_closely(group, gaps(group))
        for flags in (self.fresh, self.near):
            self._builder.list_flags(flags)

    def _look_closely(self, group: PairGroup, gaps: Window) -> None:
        """Writes the steps that flag those close pairs as fresh that may meet."""
        both = group.ends[0][0].form, group.ends[0][1].form

        def look(view: View) -> None:
            if group.looked_at_closely:
                _tell(view, group, np.maximum(view.bound, balls.separation(view, both, group.moving)))
            may_meet = balls.meet(view, group.moving, "u") | balls.meet(view, group.moving, "start")
            view.fresh = view.near = np.where(may_meet, 1.0, 0.0)
            view.far = 1.0 - view.fresh

        closer = dict[str, Any]()
        for name, moves in group.moving.items() if group.looked_at_closely else ():
            ends = group.side(name)
            if isinstance(ends[0].form, balls.SEEN):
                closer[f"{name}_at_E"] = constants([end.at.E for end in ends])
                closer[f"{name}_numbers"] = constants([numbers(end.form) for end in ends])
                closer |= {f"{name}_E": self._bodies([end.link for end in ends]).fields["E"]} if moves else {}
        window, close = self._window(group) | gaps | fields(**closer), self._close.at(group.numbers)
        self._builder.loop(look, view=window, among=close)

    def look_again(self, measure: Callable[[], None]) -> None:
        """Writes the steps that measure far pairs which may meet with velocities after impulses.

        Args:
            measure: writes the steps that measure fresh pairs.
        """
        builder, pairs = self._builder, range(self.near.size)
        state = fields(any_fresh=self._any_fresh.at(0), any_faster=self._any_faster.at(0))
        builder.loop(_none, view=state)
        builder.loop(_forget, pair=fields(fresh=self.fresh.at(pairs)), among=self.near.at(pairs))
        self._move_balls(balls.move)
        for group in self._groups:
            self._look_again(group, among=self._close.at(group.numbers))
        with builder.repeat(until=_none_faster, at_most=1, view=state):
            for group in self._groups:
                self._look_again(group)
        builder.list_flags(self.near)
        with builder.repeat(until=_none_fresh, at_most=1, rare=True, view=state):
            builder.list_flags(self.fresh)
            measure()

    def _look_again(self, group: PairGroup, **among: Any) -> None:
        """Writes a loop that flags far pairs as fresh that may meet after impulses; it asks all of them, or some."""

        def look_again(view: View) -> None:
            view.fresh = view.near = np.where(balls.meet(view, group.moving, "after"), 1.0, 0.0)
            view.far = 1.0 - view.fresh
            view.any_fresh = np.maximum(view.any_fresh, view.fresh)

        rows = group.numbers
        window = self._window(group) | fields(any_fresh=self._any_fresh.at([0] * len(rows)))
        self._builder.loop(look_again, view=window, where=self.far.at(rows), **among)

    def _move_balls(self, kernel: Callable[[View], None]) -> None:
        """Writes a loop over the balls of shapes that move."""
        rows = [0] * len(self._balls)
        constant = fields(
            c=constants([end.centre for end in self._balls]),
            radius=constants([cores.radius(end.form) for end in self._balls]),
            horizon=constants(np.full(len(rows), _CARE * self._step)),
            any_faster=self._any_faster.at(rows),
        )
        bodies = self._bodies([end.link for end in self._balls])
        self._builder.loop(kernel, ball=self._places[:] | self._motions[:] | bodies | constant)

    def _window(self, group: PairGroup) -> Window:
        rows = group.numbers
        pair: dict[str, Any] = {name: getattr(self, name).at(rows) for name in ("fresh", "far", "near")}
        pair |= {
            "close": self._close.at(rows),
            "bound": self.bounds.at(rows),
            "horizon": constants(np.full(len(rows), _CARE * self._step)),
        }
        for name in ("one",) if group.on_ground else ("one", "other"):
            ends = group.side(name)
            pair[f"{name}_radius"] = constants([cores.radius(end.form) for end in ends])
            if group.moving[name]:
                places = [self._number[_key(end)] for end in ends]
                ball = self._places[places] | self._motions[places]
                pair |= {f"{name}_{field}": slot for field, slot in ball.fields.items()}
            else:
                pair[f"{name}_centre"] = constants([end.centre for end in ends])
        if group.on_ground:
            grounds = zip(*(balls.ground(end.form, end.at) for end in group.side("other")), strict=True)
            pair |= {name: constants(values) for name, values in zip(("up", "level", "steep"), grounds, strict=True)}
        return fields(**pair)


def _key(end: ShapeOnLink) -> Hashable:
    """Key of a moving shape's bounding ball."""
    return end.link, end.centre.tobytes(), cores.radius(end.form)


def _tell(view: View, group: PairGroup, bound: Any) -> None:
    """Stores a lower bound of a pair's gaps, also in place of the gaps of its contacts."""
    view.bound = bound
    for k in range(group.contacts):
        setattr(view, f"gaps{k}", view.bound)


def _none(view: View) -> None:
    view.any_fresh = view.any_faster = np.array(0.0)


def _forget(pair: View) -> None:
    pair.fresh = np.array(0.0)


def _none_fresh(view: View) -> Any:
    return view.any_fresh <= 0.0


def _none_faster(view: View) -> Any:
    return view.any_faster <= 0.0
