"""Which pairs of shapes may touch within a step, state by state; the contacts of other pairs are not computed.

If the balls around two shapes stay apart, so do the shapes, however they turn. So a pair is measured if its balls could
meet with the velocities before impulses; and, once impulses are known, if they could meet with the velocities after
them. For a plane or a height field, everything below its highest point takes the place of a ball. The gap of a pair
that is left out is the distance of its balls, which the true gap exceeds.

Searching for contacts is expensive, and balls around boxes are large. So where balls could meet, the distance of the
shapes along the line through their centres is checked as well, which is a lower bound of their true distance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.convex import cores
from coupler.contact.collision.forms import is_endless
from coupler.contact.collision.pair_groups import PairGroup, ShapeOnLink
from coupler.contact.collision.tables import numbers, with_numbers
from coupler.contact.kernels import clear
from coupler.graph import Builder, View, Window, constants, fields
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Sphere
from coupler.spatial import cross

Array = Any  # nodes of a trace

_CARE = 2.0  # times the velocities of a step, for what integrators make of the forces within it
_VELOCITIES = ("u", "start", "after")  # without impulses, before the step, and with impulses
_SEEN = Box, Capsule, Cylinder, Sphere  # forms whose extent along a direction has a closed form
_TINY = 1e-30  # m, added to a distance that may be zero


class BroadPhase:
    """Flags of pairs in a program, 1 or 0.

    Attributes:
        fresh: whether the contacts of a pair are to be measured now; listed.
        far: whether they have not been measured so far.
        near: whether they have been measured, or are to be now; listed.
        bounds: lower bounds of the gaps of each pair's contacts, m.
    """

    def __init__(
        self,
        builder: Builder,
        groups: Sequence[PairGroup],
        pairs: int,
        step: float,
        bodies: Callable[[list[int]], Window],
    ) -> None:
        """Makes the buffers.

        Args:
            builder: writes the program.
            groups: the pairs that may be left out.
            pairs: the number of all pairs.
            step: the length of a step, s.
            bodies: gives poses E and r of links, and their velocities: `u` after a step without impulses, `start`
                before it, and `du`, the change by impulses.
        """
        self._builder, self._groups, self._step, self._bodies = builder, groups, step, bodies
        names = ("fresh", "far", "near", "bounds", "close")
        self.fresh, self.far, self.near, self.bounds, self._close = (
            builder.scratch(f"pair_{name}", pairs) for name in names
        )
        self._any_fresh = builder.scratch("any_pair_fresh", 1)
        moving = [
            end for group in groups for ends in group.ends for end in ends if end.link and not is_endless(end.form)
        ]
        self._balls = list({_key(end): end for end in moving}.values())
        self._number = {_key(end): i for i, end in enumerate(self._balls)}
        layout = {f"{x}_{velocity}": size for velocity in _VELOCITIES for x, size in (("shift", 3), ("spin", ()))}
        self._records = builder.records("balls", len(self._balls), centre=3, **layout)

    def begin(self) -> None:
        """Writes the steps that mark pairs that may meet as fresh, and the others as far."""

        def place(ball: View) -> None:
            ball.centre = ball.r + ball.E.T @ ball.c
            _move(ball, "u", ball.u)
            _move(ball, "start", ball.start)

        self._move_balls(place)
        for flags in (self.fresh, self.near, self._close):
            clear(self._builder, flags)
        for group in self._groups:

            def begin(view: View, group: PairGroup = group) -> None:
                view.bound = _distance(view, group)
                close = np.where(_meet(view, group, "u") | _meet(view, group, "start"), 1.0, 0.0)
                if group.looked_at_closely:
                    view.close, view.far = close, np.array(1.0)
                else:
                    view.fresh, view.near, view.far = close, close, 1.0 - close

            self._builder.loop(begin, view=self._window(group))
        self._look_closely()
        for flags in (self.fresh, self.near):
            self._builder.list_flags(flags)

    def _look_closely(self) -> None:
        """Writes the steps that check the shapes themselves, for pairs whose balls could meet."""
        groups = [group for group in self._groups if group.looked_at_closely]
        if groups:
            self._builder.list_flags(self._close)
        for group in groups:

            def look(view: View, group: PairGroup = group) -> None:
                view.bound = np.maximum(view.bound, _separation(view, group))
                view.fresh = view.near = np.where(_meet(view, group, "u") | _meet(view, group, "start"), 1.0, 0.0)
                view.far = 1.0 - view.fresh

            shapes = dict[str, Any]()
            for name, moves in group.moving.items():
                ends = group.side(name)
                if not isinstance(ends[0].form, _SEEN):
                    continue
                shapes[f"{name}_at_E"] = constants([end.at.E for end in ends])
                shapes[f"{name}_numbers"] = constants([numbers(end.form) for end in ends])
                if moves:
                    shapes[f"{name}_E"] = self._bodies([end.link for end in ends]).fields["E"]
            window, close = self._window(group) | fields(**shapes), self._close.at(group.numbers)
            self._builder.loop(look, view=window, among=close)

    def look_again(self, measure: Callable[[], None]) -> None:
        """Writes the steps that measure far pairs that may meet with velocities after impulses.

        Args:
            measure: writes the steps that measure fresh pairs.
        """

        def move(ball: View) -> None:
            _move(ball, "after", ball.u + ball.du)

        self._move_balls(move)
        flag = fields(any_fresh=self._any_fresh.at(0))
        self._builder.loop(_none_fresh, view=flag)
        clear(self._builder, self.fresh)
        for group in self._groups:

            def look_again(view: View, group: PairGroup = group) -> None:
                view.fresh = view.near = np.where(_meet(view, group, "after"), 1.0, 0.0)
                view.far = 1.0 - view.fresh
                view.any_fresh = np.maximum(view.any_fresh, view.fresh)

            rows = group.numbers
            window = self._window(group) | fields(any_fresh=self._any_fresh.at([0] * len(rows)))
            self._builder.loop(look_again, view=window, where=self.far.at(rows))
        self._builder.list_flags(self.near)
        with self._builder.repeat(until=_no_more, at_most=1, rare=True, view=flag):
            self._builder.list_flags(self.fresh)
            measure()
            self._builder.loop(_none_fresh, view=flag)

    def _move_balls(self, kernel: Callable[[View], None]) -> None:
        """Writes a loop over the balls of moving shapes."""
        centres = fields(c=constants([end.centre for end in self._balls]))
        self._builder.loop(kernel, ball=self._records[:] | self._bodies([end.link for end in self._balls]) | centres)

    def _window(self, group: PairGroup) -> Window:
        rows = group.numbers
        slots: dict[str, Any] = {name: getattr(self, name).at(rows) for name in ("fresh", "far", "near")}
        slots |= {
            "close": self._close.at(rows),
            "bound": self.bounds.at(rows),
            "horizon": constants(np.full(len(rows), _CARE * self._step)),
        }
        for name in ("one",) if group.on_ground else ("one", "other"):
            ends = group.side(name)
            slots[f"{name}_radius"] = constants([cores.radius(end.form) for end in ends])
            if group.moving[name]:
                balls = self._records[[self._number[_key(end)] for end in ends]].fields
                slots |= {f"{name}_{field}": slot for field, slot in balls.items()}
            else:
                slots[f"{name}_centre"] = constants([end.centre for end in ends])
        if group.on_ground:
            grounds = zip(*(_ground(end) for end in group.side("other")), strict=True)
            slots |= {name: constants(values) for name, values in zip(("up", "level", "steep"), grounds, strict=True)}
        return fields(**slots)


def _key(end: ShapeOnLink) -> Hashable:
    """What distinguishes the balls of moving shapes."""
    return end.link, end.centre.tobytes()


def _ground(end: ShapeOnLink) -> tuple[np.ndarray, float, float]:
    """The normal of the ground, the height of its highest point along it, and the least ratio of distance to height."""
    up, level, steep = end.at.E[2], 0.0, 1.0
    if isinstance(end.form, HeightField):
        cell = end.form.size / (np.array(end.form.heights.shape) - 1.0)
        slopes = [np.abs(np.diff(end.form.heights, axis=i)).max() / cell[i] for i in (0, 1)]
        level, steep = float(end.form.heights.max()), 1.0 / float(np.hypot(1.0, np.hypot(*slopes)))
    return up, float(up @ end.at.r) + level, steep


def _move(ball: View, name: str, velocity: Array) -> None:
    """Sets the velocity of a ball's centre along the world's axes, m/s, and its link's angular speed, rad/s."""
    spin = velocity[:3]
    setattr(ball, f"shift_{name}", ball.E.T @ (velocity[3:] + cross(spin, ball.c)))
    setattr(ball, f"spin_{name}", np.sqrt(spin @ spin))


def _distance(view: View, group: PairGroup) -> Any:
    """The distance of the first shape's ball from the second's, or from the ground, m."""
    if group.on_ground:
        height = view.up @ view.one_centre - view.level
        return np.minimum(height, view.steep * height) - view.one_radius
    away = view.one_centre - view.other_centre
    return np.sqrt(away @ away) - view.one_radius - view.other_radius


def _separation(view: View, group: PairGroup) -> Any:
    """A lower bound of two shapes' distance along the line through their centres, m; negative for an overlap."""
    away = view.one_centre - view.other_centre
    apart = distance = np.sqrt(away @ away) + _TINY
    for (name, moves), end, sign in zip(group.moving.items(), group.ends[0], (-1.0, 1.0), strict=True):
        if isinstance(end.form, _SEEN):
            d, form = sign * away / distance, with_numbers(end.form, getattr(view, f"{name}_numbers"))
            seen = getattr(view, f"{name}_at_E") @ (getattr(view, f"{name}_E") @ d if moves else d)
            apart = apart - cores.extent(form, seen) - cores.margin(form)
        else:
            apart = apart - getattr(view, f"{name}_radius")
    return apart


def _meet(view: View, group: PairGroup, velocity: str) -> Any:
    """Whether balls may meet within the step with these velocities.

    A point of contact is as far from a centre as its ball reaches, plus half the gap.
    """
    shift, turn = np.zeros(3), 0.0
    for (name, moves), sign in zip(group.moving.items(), (1.0, -1.0), strict=True):
        if moves:
            shift = shift + sign * getattr(view, f"{name}_shift_{velocity}")
            reach = getattr(view, f"{name}_radius") + 0.5 * np.maximum(view.bound, 0.0)
            turn = turn + getattr(view, f"{name}_spin_{velocity}") * reach
    rest = view.bound - view.horizon * turn  # for the shift to close; compared in squares, which saves a root
    return (rest < 0.0) | (rest * rest < view.horizon * view.horizon * (shift @ shift))


def _none_fresh(view: View) -> None:
    view.any_fresh = np.array(0.0)


def _no_more(view: View) -> Any:
    return view.any_fresh <= 0.0
