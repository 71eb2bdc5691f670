"""Who may touch whom: connections between bodies, and the groups of shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from coupler.graph import is_known, may_differ
from coupler.model import Robot, Shape

_DUMMY = 1e-6  # of the mass of the link that carries it: a link that weighs less has a mass for form's sake


class Connections:
    """Connections between the bodies of a robot, which keep them from touching."""

    def __init__(self, robot: Robot) -> None:
        self._place, self._links = robot.tree.place, len(robot.tree.links)
        solid = _solid_carriers(robot)
        ends = [(joint.parent, joint.child) for joint in robot.joints]
        ends += [(loop.predecessor, loop.successor) for loop in robot.loops]
        self._joined = _neighbours((solid[self.link(a)], solid[self.link(b)]) for a, b in ends)
        self._excluded = _neighbours(robot.exclusions)

    def link(self, body: str) -> int:
        """The number of a body's link; the ground's is 0."""
        return self._place[body][0]

    def weld(self, a: str, b: str) -> bool:
        """Whether two bodies are one link."""
        return self.link(a) == self.link(b)

    def allow(self, a: str, b: str) -> bool:
        """Whether two bodies may touch."""
        one, other = self.link(a), self.link(b)
        if one == other or b in self._excluded.get(a, ()):
            return False
        return 0 in (one, other) or other not in self._joined.get(one, ())

    def allowed(self, body: str, others: Mapping[str, int], links: np.ndarray) -> np.ndarray:
        """Whether a body and each of the others may touch, as `allow` says.

        Args:
            others: bodies, with their numbers.
            links: their links.
        """
        link = self.link(body)
        apart = np.ones(self._links, dtype=bool)
        if link != 0:
            apart[list(self._joined.get(link, ()))] = False
            apart[0] = True
        apart[link] = False
        result = apart[links]
        result[[others[name] for name in self._excluded.get(body, ()) if name in others]] = False
        return result


def meeting(connections: Connections, shapes: Sequence[Shape], listed: Iterable[tuple[str, str]]) -> list[list[int]]:
    """For each shape, the numbers of those after it that it may touch, in ascending order.

    Shapes of one body and the same groups meet the same others. They are asked once, and all others at once, so that
    thousands of shapes cost little more than the pairs that are found.

    Args:
        connections: those of the robot with these shapes.
        listed: names of shapes that may touch whatever their groups, joints and exclusions are.
    """
    bodies = _numbered(shape.body for shape in shapes)
    groups = _numbered((shape.group, shape.meets) for shape in shapes)
    links = np.array([connections.link(body) for body in bodies], dtype=int)
    body_of = np.array([bodies[shape.body] for shape in shapes], dtype=int)
    group_of = np.array([groups[shape.group, shape.meets] for shape in shapes], dtype=int)
    asked = dict[tuple[str, int, int], np.ndarray]()
    found = list[list[int]]()
    for i, shape in enumerate(shapes):
        kind = shape.body, shape.group, shape.meets
        if kind not in asked:
            matching = [bool(shape.group & meets or group & shape.meets) for group, meets in groups]
            may = connections.allowed(shape.body, bodies, links)[body_of] & np.array(matching)[group_of]
            asked[kind] = np.flatnonzero(may)
        partners = asked[kind]
        found.append(partners[np.searchsorted(partners, i, "right") :].tolist())
    for i, more in _listed_after(connections, shapes, listed).items():
        found[i] = sorted(more.union(found[i]))
    return found


def _listed_after(
    connections: Connections, shapes: Sequence[Shape], listed: Iterable[tuple[str, str]]
) -> dict[int, set[int]]:
    """By the number of a shape, those of the shapes after it with which it is listed, but for those of one link."""
    named, after = dict[str, list[int]](), dict[int, set[int]]()
    for i, shape in enumerate(shapes):
        named.setdefault(shape.name, []).append(i)
    for first, second in listed:
        for i, j in product(named.get(first, ()), named.get(second, ())):
            if not connections.weld(shapes[i].body, shapes[j].body):
                after.setdefault(min(i, j), set()).add(max(i, j))
    return after


def _numbered(things: Iterable[Any]) -> dict[Any, int]:
    """Each thing with its number, in the order in which they come first."""
    return {thing: i for i, thing in enumerate(dict.fromkeys(things))}


def _neighbours(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, set[Any]]:
    """By each thing in a pair, what it is paired with."""
    found = dict[Any, set[Any]]()
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


def _solid_carriers(robot: Robot) -> list[int]:
    """For each link, the link itself if it has mass or shapes, or else the nearest such link that carries it.

    A joint on a link without mass and shapes counts as a joint on the link that carries it. So does a joint on a link
    without shapes and of nearly no mass, which it has only because other programs refuse massless links.
    """
    links = robot.tree.links
    shaped = {robot.tree.place[shape.body][0] for shape in robot.shapes if shape.touches}
    carriers = [0]
    for i, link in enumerate(links[1:], 1):
        carrier = carriers[link.parent]
        mass = links[carrier].inertia.m
        light = not may_differ(link.inertia.m, by=_DUMMY * float(mass) if is_known(mass) else 0.0)
        turns = not may_differ(link.inertia.m) and may_differ(link.inertia.I)  # an ideal rotor
        carriers.append(carrier if light and not turns and i not in shaped else i)
    return carriers
