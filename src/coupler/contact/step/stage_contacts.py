"""Contacts in the stages of a step, as steps of a program: carried.py for all of them; see stages.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from coupler.contact.carried import (
    Carrier,
    carried,
    centre,
    followed,
    is_strong,
    load,
    moved,
    on_carriers,
    on_same_side,
    on_surface,
    reach,
    strength,
    turned,
    velocity_ahead,
)
from coupler.contact.collision.convex import cores
from coupler.contact.collision.geometry import Contact, contacts
from coupler.contact.collision.pair_groups import PairGroup
from coupler.contact.collision.tables import SIDES, forms, pose, with_numbers
from coupler.contact.floating import centre_of, mean_inertia
from coupler.contact.kernels import clear
from coupler.contact.rows import ContactRows, Indices
from coupler.contact.step.candidates import SIGNS, Candidates
from coupler.contact.step.narrow_phase import find_closed_forms
from coupler.contact.step.report import ContactReport
from coupler.graph import Builder, Constants, Slot, Vector, View, constants, fields
from coupler.grouping import grouped
from coupler.passes import Sweep
from coupler.spatial import Transform

_SIZES = {"moment": 3, "reach": 1, "one_place": 3, "other_place": 3, "found": 3, "found_frame": 9}
_SIZES |= {"found_gap": 1, "start_normal": 3, "normal": 3, "touched": 1, "force": 3, "acts": 1}
_SIZES |= {"one_arm": 3, "other_arm": 3}


class StageContacts:
    """Velocities of contacts after a step without impulses, and the forces that act at contacts in its stages.

    Args:
        rows: the rows of the candidates.
        step: h, s.
    """

    def __init__(self, builder: Builder, candidates: Candidates, rows: ContactRows, step: float) -> None:
        self._candidates, self._builder, self._rows, self._step = candidates, builder, rows, step
        self._pair_of, n = candidates.pair_of, len(candidates.pair_of)
        self._buffers = {name: builder.scratch(f"contact_{name}", size * n) for name, size in _SIZES.items()}
        self._pair_acts = builder.scratch("pair_acts", len(candidates.pairs))
        self._velocity = builder.scratch("contact_velocity", rows.total)
        self._strengths = builder.scratch("strengths", len(candidates.robot.tree.links))  # of forces on each link

    def velocity(self, contacts: Indices) -> Slot:
        """Velocities of all rows of contacts that have equally many; see `velocity_ahead`."""
        return self._velocity.at(self._rows.first[np.asarray(contacts)], int(self._rows.widths[contacts[0]]))

    def look_ahead(self, sweep: Sweep[Any, Any], alike: PairGroup, report: ContactReport, where: Slot | None) -> None:
        """Writes the steps that compute velocities of contacts after the step from poses and velocities of links.

        Args:
            sweep: the program; it has poses E and r of links, and their velocities `start` before the step and `ahead`
                after it.
            alike: pairs whose contacts have been located.
            report: has the `gaps`, `points` and `frames` of these contacts.
            where: flags of the pairs to look at; None for all.
        """
        window = self._candidates.poses(sweep, alike) | self._candidates.motion(sweep, alike, ("start", "ahead"))
        window |= self._candidates.results(alike, report.at, ("gaps", "points", "frames"))
        sides = _moving(alike.moving)
        names = ["reach", "start_normal", *(f"{side}_{x}" for side in sides for x in ("place", "arm"))]
        window |= fields(step=constants(np.full(len(alike.numbers), self._step)))
        window |= fields(**{f"{side}_centre": self._centres([x.link for x in alike.side(side)]) for side in sides})
        for k in range(alike.contacts):
            rows = self._candidates.first[alike.numbers] + k
            window |= fields(**{f"{name}{k}": self._at(name, rows) for name in names})
            window |= fields(**{f"velocity{k}": self.velocity(rows)})
        self._builder.loop(self._looking(alike), view=window, where=where)

    def _looking(self, alike: PairGroup) -> Callable[[View], None]:
        """The kernel of `look_ahead`."""
        pair, moving = self._candidates.pairs[alike.numbers[0]], alike.moving

        def look_ahead(view: View) -> None:
            carriers = [
                Carrier(
                    SIGNS[side], pose(view, side, True), *(getattr(view, f"{side}_{x}") for x in ("start", "ahead"))
                )
                for side, moves in moving.items()
                if moves
            ]
            links = [body.X for body in carriers]
            contacts_after: Sequence[Contact | None] = [None] * alike.contacts
            if not alike.searched:
                after = iter([moved(body.X, body.v, view.step) for body in carriers])
                both = [
                    with_numbers(geometry, getattr(view, f"{side}_numbers"))
                    for side, geometry in zip(SIDES, forms(pair), strict=True)
                ]
                X = [_shape_at(view, side, next(after) if moves else None) for side, moves in moving.items()]
                contacts_after = contacts(both[0], both[1], X[0], X[1])
            for k in range(alike.contacts):
                contact = Contact(*(getattr(view, f"{name}{k}") for name in ("gaps", "points", "frames")))
                ahead = velocity_ahead(contact, contacts_after[k], carriers, view.step, pair.cone.size)
                setattr(view, f"velocity{k}", ahead)
                setattr(view, f"reach{k}", np.array(reach(carriers, contact.point, view.step)))
                setattr(view, f"start_normal{k}", contact.frame[0])
                for side, X, place in zip(_moving(moving), links, on_carriers(links, contact.point), strict=True):
                    setattr(view, f"{side}_place{k}", place)
                    setattr(view, f"{side}_arm{k}", contact.point - centre(X, getattr(view, f"{side}_centre")))

        return look_ahead

    def spread(self, impulses: Vector, frames: Vector) -> None:
        """Writes the steps that spread impulses over the step, as forces and moments, and flag contacts with some.

        Args:
            impulses: the impulses of all rows, contacts first.
            frames: the frames of all contacts.
        """
        clear(self._builder, self._pair_acts)
        for alike in map(np.array, self._rows.by_width()):
            names = ("start_normal", "normal", "touched", "force", "moment", "acts")
            window = fields(
                impulse=impulses.at(self._rows.first[alike], int(self._rows.widths[alike[0]])),
                frame=frames.at(9 * alike, (3, 3)),
                pace=constants(np.full(len(alike), 1.0 / self._step)),
                pair_acts=self._pair_acts.at(self._pair_of[alike]),
                **{name: self._at(name, alike) for name in names},
            )
            self._builder.loop(_spread, view=window)
        clear(self._builder, self._strengths)
        for sides, _, rows in self._kinds():
            for side in sides:
                links = [self._link(row, side) for row in rows]
                step = constants(np.full(len(rows), self._step))
                inertia = constants([mean_inertia(self._candidates.robot.tree.links[link]) + 0.0 for link in links])
                window = fields(force=self._at("force", rows), arm=self._at(f"{side}_arm", rows))
                window |= fields(inertia=inertia, step=step, strength=self._strengths.at(links))
                self._builder.loop(_add_strength, view=window, where=self._at("acts", rows))

    def press(self, sweep: Sweep[Any, Any]) -> None:
        """Writes the steps that add forces of contacts to the loads of links, at the poses of a stage.

        Contacts with a closed form are found anew there; the others stay where they were on their links.
        """
        candidates, place = self._candidates, {"points": "found", "gaps": "found_gap", "frames": "found_frame"}
        at = lambda name, rows: self._at(place[name], rows)  # noqa: E731
        find_closed_forms(sweep, candidates, candidates.groups, [*place], at, self._pair_acts.at)
        for sides, searched, rows in self._kinds():
            names = ["force", "moment", "reach", *(f"{side}_{x}" for side in sides for x in ("place", "arm"))]
            names += [] if searched else [*place.values(), "normal", "touched"]
            view = fields(**{name: self._at(name, rows) for name in names})
            view |= fields(**{f"{side}_margin": constants(self._margins(rows, side)) for side in sides})
            links = {side: [self._link(row, side) for row in rows] for side in sides}
            view |= fields(**{f"{side}_centre": self._centres(links[side]) for side in sides})
            view |= fields(**{f"{side}_strength": self._strengths.at(links[side]) for side in sides})
            ends = [sweep.bodies(links[side]) for side in sides]
            self._builder.loop(_pressing(sides, searched), view=view, ends=ends, where=self._at("acts", rows))

    def _kinds(self) -> list[tuple[tuple[str, ...], bool, list[int]]]:
        """Contacts that have the same sides on moving links, and are all searched for or not."""
        kinds = grouped(self._candidates.groups, lambda alike: (tuple(_moving(alike.moving)), alike.searched))
        contacts_of = self._candidates.contacts_of
        return [
            (*kind, [k for alike in groups for pair in alike.numbers for k in contacts_of(pair)])
            for kind, groups in kinds.items()
        ]

    def _at(self, name: str, contacts: Any) -> Slot:
        size = _SIZES[name]
        return self._buffers[name].at(size * np.asarray(contacts), {1: (), 3: 3, 9: (3, 3)}[size])

    def _margins(self, contacts: Sequence[int], side: str) -> list[float]:
        """The distance, m, of the rounded surface of each contact's shape from the shape's core."""
        pairs = [self._candidates.pairs[self._pair_of[contact]] for contact in contacts]
        return [cores.margin(getattr(pair, side).geometry) for pair in pairs]

    def _centres(self, links: Sequence[int]) -> Constants:
        """The centres of mass of links, in their frames."""
        return constants([centre_of(self._candidates.robot.tree.links[link]) + 0.0 for link in links])

    def _link(self, contact: int, side: str) -> int:
        return self._candidates.ends[self._pair_of[contact]][side == "other"].link


def _moving(moving: Mapping[str, bool]) -> list[str]:
    return [side for side, moves in moving.items() if moves]


def _shape_at(view: View, side: str, link: Transform | None) -> Transform:
    """The transform from the world to a shape."""
    at = Transform(getattr(view, f"{side}_at_E"), getattr(view, f"{side}_at_r"))
    return at if link is None else at @ link


def _spread(view: View) -> None:
    """Computes F = λ/h along the world's axes, and `touched`: 0 if the normal is not the start's, as after meeting."""
    turning = view.impulse[3:]  # about the normal, and about the tangents
    view.force, view.normal = view.pace * (view.frame.T @ view.impulse[:3]), view.frame[0]
    view.moment = view.pace * (turning @ view.frame[: len(turning)]) if len(turning) else np.zeros(3)
    turn = view.frame[0] - view.start_normal
    view.touched = np.where(turn @ turn > 0.0, 0.0, 1.0)
    view.acts = np.where(view.impulse @ view.impulse > 0.0, 1.0, 0.0)
    view.pair_acts = np.maximum(view.pair_acts, view.acts)


def _add_strength(view: View) -> None:
    view.strength += strength(view.force, view.arm, view.inertia, view.step)


def _pressing(sides: Sequence[str], searched: bool) -> Callable[[View, list[View]], None]:
    def press(view: View, ends: list[View]) -> None:
        """Adds the force of a contact, at its present place, to the loads of the links that it acts on."""
        links = [Transform(end.E, end.r) for end in ends]
        point = carried(links, [getattr(view, f"{side}_place") for side in sides])
        points, force = dict.fromkeys(sides, point), view.force
        strong = reduce(np.logical_or, [is_strong(getattr(view, f"{side}_strength")) for side in sides])
        if not searched:
            touched, normal = view.touched > 0.0, view.found_frame[0]
            same = followed(view.found, point, view.reach)
            same = same & (np.logical_not(touched) | on_same_side(normal, view.normal))
            force = np.where(same & touched & np.logical_not(strong), turned(force, view.normal, normal), force)
            for side in sides:
                margin = np.where(touched, 0.0, getattr(view, f"{side}_margin"))
                surface = on_surface(view.found, view.found_gap, normal, view.normal, SIGNS[side], margin)
                points[side] = np.where(same, surface, point)
        keeps_arm = strong if searched else strong & (view.touched > 0.0)
        for side, X, end in zip(sides, links, ends, strict=True):
            held = centre(X, getattr(view, f"{side}_centre")) + getattr(view, f"{side}_arm")
            end.load += SIGNS[side] * load(np.where(keeps_arm, held, points[side]), force, view.moment)

    return press
