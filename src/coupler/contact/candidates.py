"""The candidate contacts of a robot in a program: gaps, frames, forces by unit of impulse, and velocities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact.blocks import Blocks, shared, wait
from coupler.contact.columns import Columns, Start
from coupler.contact.geometry import Contact, contacts, forces_on, has_closed_form
from coupler.contact.laws import gap_seen, let_out
from coupler.contact.pairs import Pair
from coupler.contact.scene import ContactScene
from coupler.graph import Buffer, View, Window, constants, fields
from coupler.model import ModelError, Robot
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry, Shape, Sphere
from coupler.passes import Schedule, Sweep
from coupler.spatial import Transform

__all__ = ["Candidates", "form", "given_row", "numbers", "pose", "with_numbers"]

Array = Any  # nodes of a trace

_GIVEN = 13  # numbers of a contact: gap, point, frame
_NUMBERS: dict[type, tuple[str, ...]] = {  # of forms whose contacts are traced once for any numbers
    Sphere: ("radius",),
    Capsule: ("radius", "length"),
    Box: ("size",),
    Cylinder: ("radius", "length"),
}


@dataclass(frozen=True)
class _End:
    """A shape of a pair: the link that carries it, and the transform from there to it."""

    link: int
    at: Transform


class Candidates:
    """The candidate contacts of pairs, in their order.

    Attributes:
        pairs: what may touch.
        names: of each contact: both shapes, and a number where they touch in several places.
        friction: of each contact.
        links: those that may touch.
        searched: pairs whose contacts a program cannot find, and is given.
        given: how many numbers it is given: gap, point and frame of each of these contacts.
        starts: where the columns of each contact start; see `Columns`.
    """

    def __init__(self, robot: Robot, pairs: Sequence[Pair]) -> None:
        self.robot, self.pairs = robot, tuple(pairs)
        for pair in self.pairs:
            if pair.torsion is not None:
                both = f"{pair.one.name!r} and {pair.other.name!r}"
                raise ModelError(f"{both}: a compiled step takes no torsion; leave it out, or step with contact_step")
        self.searched = [pair for pair in pairs if not has_closed_form(pair.one.geometry, pair.other.geometry)]
        self.given = _GIVEN * sum(pair.count for pair in self.searched)
        self._ends = [(self._end(pair.one), self._end(pair.other)) for pair in pairs]
        self._first = np.cumsum([0, *(pair.count for pair in pairs)])
        self.friction = [pair.friction for pair in pairs for _ in range(pair.count)]
        self.names = [name for pair in pairs for name in _names(pair)]
        moving = [tuple(end.link for end in ends if end.link) for ends in self._ends]
        self.links = {link for links in moving for link in links}
        self.starts = [Start(3, links) for pair, links in zip(pairs, moving, strict=True) for _ in range(pair.count)]

    def _end(self, shape: Shape) -> _End:
        link, place = self.robot.tree.place[shape.body]
        return _End(link, shape.at @ place)

    def measure(
        self,
        sweep: Sweep[Any, Any],
        columns: Columns,
        scene: ContactScene,
        given: Buffer | None,
        told: Mapping[str, Buffer],
    ) -> None:
        """Writes the steps from poses and velocities of links to contacts.

        Args:
            sweep: has poses E and r of links, and their velocities v before and u after a step without impulses.
            columns: get forces on links by unit of impulse.
            scene: what counts.
            given: gap, point and frame of all contacts of searched pairs, one after the other.
            told: `b` gets velocities along normal and tangents, with the gap's at position level [002, eq. 4a];
                `gaps`, `points` and `frames` what their names say; `free` and `approach`, if they are there, velocities
                without the gap's, after the step and before it.
        """
        groups: dict[Hashable, list[int]] = {}
        for i, (pair, ends) in enumerate(zip(self.pairs, self._ends, strict=True)):
            forms = form(pair.one.geometry), form(pair.other.geometry)
            shape = ("given", pair.count) if pair in self.searched else forms
            groups.setdefault((*shape, *(bool(end.link) for end in ends)), []).append(i)
        for alike in groups.values():
            moving = {name: bool(end.link) for name, end in zip(("one", "other"), self._ends[alike[0]], strict=True)}
            window = fields(pace=constants(np.full(len(alike), 1.0 / scene.step))) | self._places(alike, told)
            for side, (name, moves) in enumerate(moving.items()):
                window |= self._seen(sweep, columns, alike, side, name, moves)
            if given is not None and self.pairs[alike[0]] in self.searched:
                window |= self._given(alike, given)
            sweep.builder.loop(_measuring(self.pairs[alike[0]], moving, scene, [*told]), here=window)

    def look(
        self,
        sweep: Sweep[Any, Any],
        columns: Columns,
        blocks: Blocks,
        residual: Buffer,
        tolerance: float,
        but: Collection[int] = (),
    ) -> None:
        """Writes the steps that make idle contacts wait which velocities after the step would close too far.

        Args:
            sweep: has the changes `du` of links' velocities by impulses.
            columns: have forces on links by unit of impulse.
            blocks: of contacts first.
            residual: how far impulses are from the laws, which this adds to.
            tolerance: by how much they may be, m/s.
            but: contacts that are looked at elsewhere (see `Passing`).
        """
        schedule = Schedule(sweep.builder)
        common = shared(residual=residual, joining=blocks.joining)

        def loop(contacts: list[int]) -> tuple[Callable[..., None], dict[str, Any]]:
            links = zip(*(self.starts[contact].links for contact in contacts), strict=True)
            ends = [
                fields(P=columns.at_link(contacts, own), du=sweep.bodies(own).fields["du"]) for own in map(list, links)
            ]
            own = (
                blocks.of(contacts) | common(contacts) | fields(tolerance=constants(np.full(len(contacts), tolerance)))
            )
            return _look, {"own": own, "ends": ends, "where": blocks.flags["idle"].at(contacts)}

        for contact, start in enumerate(self.starts):
            if contact not in but:
                schedule.add(len(start.links), contact, loop)
        schedule.run()

    def _given(self, alike: Sequence[int], given: Buffer) -> Window:
        first = np.cumsum([0, *(_GIVEN * pair.count for pair in self.searched)])
        starts = np.array([first[self.searched.index(self.pairs[i])] for i in alike])
        count = self.pairs[alike[0]].count
        return fields(**{f"given{k}": given.at(starts + _GIVEN * k, _GIVEN) for k in range(count)})

    def _places(self, alike: Sequence[int], told: Mapping[str, Buffer]) -> Window:
        found = {}
        for name in told:
            shape = {"gaps": (), "frames": (3, 3)}.get(name, (3,))
            for k in range(self.pairs[alike[0]].count):
                at = [int(self._first[i] + k) * int(np.prod(shape, dtype=int)) for i in alike]
                found[f"{name}{k}"] = told[name].at(at, shape)
        return fields(**found)

    def _seen(
        self, sweep: Sweep[Any, Any], columns: Columns, alike: Sequence[int], side: int, name: str, moves: bool
    ) -> Window:
        ends = [self._ends[i][side] for i in alike]
        shapes = [(self.pairs[i].one, self.pairs[i].other)[side] for i in alike]
        own: dict[str, Any] = {
            f"{name}_at_E": constants([end.at.E + 0.0 for end in ends]),
            f"{name}_at_r": constants([end.at.r + 0.0 for end in ends]),
            f"{name}_numbers": constants([numbers(shape.geometry) for shape in shapes]),
        }
        if moves:
            links = [end.link for end in ends]
            memory = sweep.bodies(links).fields
            own |= {f"{name}_{field}": memory[field] for field in ("E", "r", "u", "v")}
            for k in range(self.pairs[alike[0]].count):
                own[f"{name}_P{k}"] = columns.at_link([int(self._first[i] + k) for i in alike], links)
        return fields(**own)


def _look(own: View, ends: list[View]) -> None:
    """Makes a contact wait that velocities after the step close too far: w_n = b_n + P_nᵀ Δu."""
    w = reduce(add, (end.P[:, 0] @ end.du for end in ends), own.b[0])
    own.residual = np.maximum(own.residual, -w)
    wait(own, w < -own.tolerance)


def _names(pair: Pair) -> list[str]:
    return [pair.name] if pair.count == 1 else [f"{pair.name}, {k + 1}" for k in range(pair.count)]


def form(geometry: Geometry) -> Hashable:
    """What the trace of a geometry's contacts depends on."""
    named = _NUMBERS.get(type(geometry), ())
    values = [np.asarray(value) for name, value in vars(geometry).items() if name not in named]
    return type(geometry), *((value.shape, value.tobytes()) for value in values)


def numbers(geometry: Geometry) -> np.ndarray:
    """Of a form that is traced once for any numbers: these."""
    parts = [np.atleast_1d(getattr(geometry, name)) for name in _NUMBERS.get(type(geometry), ())]
    return np.concatenate([np.zeros(0), *parts])


def with_numbers(geometry: Geometry, values: Array) -> Geometry:
    """The same form with its numbers from a table; they were checked when it was made."""
    named = _NUMBERS.get(type(geometry))
    if not named:
        return geometry
    found, start = object.__new__(type(geometry)), 0
    for name in named:
        size = np.size(getattr(geometry, name))
        object.__setattr__(found, name, values[start] if size == 1 else values[start : start + size])
        start += size
    return found


def _measuring(pair: Pair, moving: dict[str, bool], scene: ContactScene, told: Sequence[str]) -> Callable[[View], None]:
    def measuring(here: View) -> None:
        links = {name: pose(here, name, moves) for name, moves in moving.items()}
        X = [Transform(getattr(here, f"{name}_at_E"), getattr(here, f"{name}_at_r")) @ links[name] for name in moving]
        for k, contact in enumerate(_found(here, pair, X)):
            P = {}
            for (name, moves), sign in zip(moving.items(), (1.0, -1.0), strict=True):
                if moves:
                    P[name] = sign * forces_on(links[name], contact)
                    setattr(here, f"{name}_P{k}", P[name])
            free, approach = (reduce(add, (P[name].T @ getattr(here, f"{name}_{x}") for name in P)) for x in "uv")
            closure = let_out(gap_seen(contact.gap, scene.penetration) * here.pace, free[0], scene.recovery)
            found = {"b": free + np.stack([closure, 0.0, 0.0]), "free": free, "approach": approach}
            found |= {"gaps": np.array(contact.gap), "points": contact.point, "frames": contact.frame}
            for name in told:
                setattr(here, f"{name}{k}", found[name])

    return measuring


def _found(here: View, pair: Pair, X: Sequence[Transform]) -> list[Contact]:
    """The contacts of a pair, from its poses or as they are given."""
    if has_closed_form(pair.one.geometry, pair.other.geometry):
        forms = (
            with_numbers(pair.one.geometry, here.one_numbers),
            with_numbers(pair.other.geometry, here.other_numbers),
        )
        return contacts(*forms, *X)
    rows = [getattr(here, f"given{k}") for k in range(pair.count)]
    return [Contact(row[0], row[1:4], row[4:].reshape(3, 3)) for row in rows]


def given_row(contact: Contact) -> np.ndarray:
    """A contact as a program is given it."""
    return np.concatenate([[contact.gap], contact.point, contact.frame.ravel()])


def pose(here: View, name: str, moves: bool) -> Transform:
    return Transform(getattr(here, f"{name}_E"), getattr(here, f"{name}_r")) if moves else Transform.identity()
