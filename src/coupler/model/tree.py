"""The moving skeleton of a robot: a tree of links, each on one joint, and the places of joints in p and w."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from coupler.forks import cached_property
from coupler.graph import PARAMETERS, Executable, Parameters
from coupler.model.joint import Joint
from coupler.spatial import RigidInertia, Transform

GROUND = "ground"  # the name of the world, which carries all robots


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """A joint of the spanning tree, on which one body carries another.

    Attributes:
        name: unique in its robot.
        kind: how it moves.
        parent, child: names of the two bodies.
        placement: transform from the parent's frame to the joint's predecessor frame.
        independent: whether its velocity must be among the independent ones.
        actuated: whether an actuator drives it; such joints are preferred as independent ones.
        start: the position near which loops are closed; neutral if None.
        meets: transform from the child's frame to the joint's successor frame; identity if None.
    """

    name: str
    kind: Joint
    parent: str
    child: str
    placement: Transform
    independent: bool = False
    actuated: bool = False
    start: np.ndarray | None = None
    meets: Transform | None = None


@dataclass(frozen=True, eq=False)
class Link:
    """Bodies that are welded together, on one moving joint.

    Attributes:
        name: the name of the body that the joint carries.
        joint: the name of the joint.
        kind: the joint in standard form, along or about z of the link's frame.
        parent: the number of the link that carries it.
        start: the joint position near which loops are closed.
        placement: transform from the parent link's frame to the joint's predecessor frame.
        inertia: the inertia of all its bodies, in the link's frame.
        bodies: the names of all its bodies.
    """

    name: str
    joint: str
    kind: Joint
    parent: int
    start: np.ndarray
    placement: Transform
    inertia: RigidInertia
    bodies: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """Links in regular numbering: link 0 is the ground, and a parent comes before its children.

    The spanning positions p and velocities w hold those of all joints, link after link.

    Attributes:
        links: all links.
        place: for each body its link and the transform from the link's frame to the body's.
        parameters: the inputs that its numbers depend on, where they are nodes; see variants.py.
        given: (..., n), the values of these inputs.
        all_rows: whether lengths have changed, so that rows of loops that used to follow from others may not do so any
            more; all rows then count in deciding whether a loop is open.
    """

    links: tuple[Link, ...]
    place: Mapping[str, tuple[int, Transform]]
    parameters: Parameters | None = None
    given: np.ndarray | None = None
    all_rows: bool = False

    def inputs_of(self, executable: Executable) -> tuple[np.ndarray, ...]:
        """The parameters, prepared for a program that depends on them: its last input; nothing for other programs."""
        inputs = executable.program.inputs
        if self.given is None or not inputs or inputs[-1].name != PARAMETERS:
            return ()
        prepared = self.__dict__.setdefault("_prepared", {})
        if executable not in prepared:
            prepared[executable] = executable.prepared(self.given)
        return (prepared[executable],)

    @cached_property
    def parent(self) -> list[int]:
        """The number of each link's parent."""
        return [link.parent for link in self.links]

    @cached_property
    def children(self) -> list[list[int]]:
        """The numbers of each link's children."""
        children: list[list[int]] = [[] for _ in self.links]
        for i, link in enumerate(self.links[1:], 1):
            children[link.parent].append(i)
        return children

    def carriers(self, link: int) -> set[int]:
        """A link and all links that carry it, the ground included."""
        links = {link}
        while link:
            link = self.links[link].parent
            links.add(link)
        return links

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The link of each moving joint, by the joint's name."""
        return MappingProxyType({link.joint: i for i, link in enumerate(self.links) if i})

    @cached_property
    def q_start(self) -> np.ndarray:
        """Where each link's position starts in p; the last entry is the size of p."""
        return _starts(link.kind.nq for link in self.links)

    @cached_property
    def v_start(self) -> np.ndarray:
        """Where each link's velocity starts in w; the last entry is the size of w."""
        return _starts(link.kind.nv for link in self.links)

    @property
    def nq(self) -> int:
        """The size of p."""
        return int(self.q_start[-1])

    @property
    def nv(self) -> int:
        """The size of w."""
        return int(self.v_start[-1])

    @cached_property
    def limits(self) -> np.ndarray:
        """2 × Σ nq, the lower and upper limits of all positions; infinite where there are none, and of orientations."""
        limits = np.repeat([[-np.inf], [np.inf]], self.nq, axis=1)
        for i, link in enumerate(self.links):
            if link.kind.nq == link.kind.nv:
                limits[:, self.positions(i)] = link.kind.lower, link.kind.upper
        return limits

    def outside_limits(self, p: np.ndarray) -> np.ndarray:
        """(..., Σ nq), how far positions p are beyond their limits, rad or m; zero within them."""
        lower, upper = self.limits
        return np.maximum(np.maximum(lower - p, p - upper), 0.0)

    def links_of(self, joints: Iterable[str]) -> list[int]:
        """The links of these joints, in order; joints that do not move are left out."""
        return [self.number[joint] for joint in joints if joint in self.number]

    def positions_of(self, links: Iterable[int]) -> np.ndarray:
        """The entries of p that belong to some links, one after the other."""
        return np.concatenate([np.zeros(0, int), *map(self.positions, links)])

    def velocities_of(self, links: Iterable[int]) -> np.ndarray:
        """The entries of w that belong to some links, one after the other."""
        return np.concatenate([np.zeros(0, int), *map(self.velocities, links)])

    def positions(self, link: int) -> np.ndarray:
        """The entries of p that belong to a link."""
        return np.arange(self.q_start[link], self.q_start[link + 1])

    def velocities(self, link: int) -> np.ndarray:
        """The entries of w that belong to a link."""
        return np.arange(self.v_start[link], self.v_start[link + 1])

    def ways(self, first: int, second: int) -> tuple[list[int], list[int]]:
        """The links on the way from the last common carrier of two links to each of them, from the outside in."""
        to_first: list[int] = []
        to_second: list[int] = []
        while first != second:  # a carrier has the lower number
            if first > second:
                to_first.append(first)
                first = self.links[first].parent
            else:
                to_second.append(second)
                second = self.links[second].parent
        return to_first, to_second

    def link_of(self, entry: int) -> int:
        """The link to which an entry of w belongs."""
        return int(np.searchsorted(self.v_start, entry, side="right")) - 1

    def joint_of(self, entry: int) -> str:
        """The name of the joint to which an entry of w belongs."""
        return self.links[self.link_of(entry)].joint


def _starts(sizes: Iterable[int]) -> np.ndarray:
    starts = np.cumsum([0, *sizes])
    starts.setflags(write=False)
    return starts
