"""The moving skeleton of a robot: bodies that are welded together made one link, links made a tree.

A link's frame is that in which its joint ends, turned so that the joint's axis is z, and slid along it (see
slides.py). All revolute joints then look alike, whatever their axes were, and one trace serves them all. Users see none
of this: poses, frames and contact points go through the placement of their body on its link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from coupler.forks import cached_property
from coupler.graph import PARAMETERS, Executable, Node, Parameters
from coupler.model.bodies import Body
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.joints import Fixed
from coupler.model.slides import best_slides, slid
from coupler.model.wording import listed
from coupler.spatial import RigidInertia, Transform

GROUND = "ground"  # the name of the world, on which robots stand
_BALANCED = 1e-15  # m: a centre of mass nearer to an axis is on it but for rounding


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """A joint of the spanning tree: it carries one body on another.

    Attributes:
        name: unique in its robot.
        kind: how it moves.
        parent, child: names of the two bodies.
        placement: transform from the parent's frame to the joint's predecessor frame.
        independent: whether its velocity must be among the independent ones.
        actuated: whether an actuator drives it; such joints are preferred as independent ones.
        start: a position near which loops are closed; neutral if not given.
        meets: transform from the child's frame to the joint's successor frame; the same frame if not given.
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
    """Bodies that move as one, on one moving joint.

    Attributes:
        name: of the body that the joint carries.
        joint: name of that joint.
        kind: how it moves in the link's frame: along or about z.
        parent: number of the link that carries it.
        start: its joint's position near which loops are closed.
        placement: transform from the parent link's frame to the joint's predecessor frame.
        inertia: of all its bodies, in its frame.
        bodies: names of all its bodies.
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

    Spanning positions p and velocities w are those of all joints, one link after the other.

    Attributes:
        links: all of them.
        place: for each body its link and the transform from the link's frame to the body's.
        parameters: what its numbers depend on, where they are nodes; see variants.py.
        given: (..., n), the values of these.
        all_rows: whether rows of loops that followed from others when it was built may not do so any more, as lengths
            have changed: then they count where a loop is said to be open.
    """

    links: tuple[Link, ...]
    place: Mapping[str, tuple[int, Transform]]
    parameters: Parameters | None = None
    given: np.ndarray | None = None
    all_rows: bool = False

    @classmethod
    def of(cls, bodies: Mapping[str, Body], joints: Iterable[TreeJoint]) -> Tree:
        """The tree of bodies that are connected by joints in any order.

        Raises:
            ModelError: for a body that hangs on two joints, on itself in a circle, or on nothing.
        """
        place: dict[str, tuple[int, Transform]] = {GROUND: (0, Transform.identity())}
        links = [Link(GROUND, "", Fixed(), 0, np.zeros(0), Transform.identity(), _NOTHING, ())]
        for joint in _outwards(bodies, _hung(bodies, joints)):
            link, carrier = place[joint.parent]
            to_child = Transform.identity() if joint.meets is None else _clean(joint.meets.inverse())
            if joint.kind.nv == 0:
                place[joint.child] = link, to_child @ joint.kind.transform(np.zeros(0)) @ joint.placement @ carrier
                continue
            A, kind = joint.kind.aligned()
            placement = _clean(Transform.rotation(A) @ joint.placement @ carrier)
            start = kind.neutral() if joint.start is None else joint.start
            place[joint.child] = len(links), to_child @ Transform.rotation(A.T)
            links.append(Link(joint.child, joint.name, kind, link, start, placement, _NOTHING, ()))
        members: list[list[str]] = [[] for _ in links]
        for body in (GROUND, *bodies):
            members[place[body][0]].append(body)
        parents = [link.parent for link in links]
        kinds, placements = [link.kind for link in links], [link.placement for link in links]
        inertias = [gathered(own, bodies, place) for own in members]
        slides = best_slides(parents, kinds, placements, inertias)
        for body, (link, X) in place.items():
            place[body] = link, X if slides[link] == 0.0 else X @ Transform.translation((0.0, 0.0, -slides[link]))
        for i, link in enumerate(links):
            placement = slid(link.placement, slides[link.parent], slides[i])
            inertia = inertias[i] if slides[i] == 0.0 else gathered(members[i], bodies, place)
            links[i] = replace(link, placement=placement, inertia=inertia, bodies=tuple(members[i]))
        return cls(tuple(links), MappingProxyType(place))

    def inputs_of(self, executable: Executable) -> tuple[np.ndarray, ...]:
        """What a program of it takes besides its own inputs: the parameters, if it depends on any, prepared for it."""
        inputs = executable.program.inputs
        if self.given is None or not inputs or inputs[-1].name != PARAMETERS:
            return ()
        prepared = self.__dict__.setdefault("_prepared", {})
        if executable not in prepared:
            prepared[executable] = executable.prepared(self.given)
        return (prepared[executable],)

    @cached_property
    def parent(self) -> list[int]:
        """The link that carries each."""
        return [link.parent for link in self.links]

    @cached_property
    def children(self) -> list[list[int]]:
        """The links that each carries."""
        children: list[list[int]] = [[] for _ in self.links]
        for i, link in enumerate(self.links[1:], 1):
            children[link.parent].append(i)
        return children

    def carriers(self, link: int) -> set[int]:
        """A link and all that carry it, the ground included."""
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
        """Where each link's position starts in p; one more entry than there are links."""
        return _starts(link.kind.nq for link in self.links)

    @cached_property
    def v_start(self) -> np.ndarray:
        """Where each link's velocity starts in w; one more entry than there are links."""
        return _starts(link.kind.nv for link in self.links)

    @property
    def nq(self) -> int:
        """The size of p."""
        return int(self.q_start[-1])

    @property
    def nv(self) -> int:
        """The size of w."""
        return int(self.v_start[-1])

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
        """The links whose joints lie between the last common carrier of two links and each of them."""
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


_NOTHING = RigidInertia(0.0, np.zeros(3), np.zeros((3, 3)))


def gathered(
    members: Iterable[str], bodies: Mapping[str, Body], place: Mapping[str, tuple[int, Transform]]
) -> RigidInertia:
    """The inertia of bodies that make a link, in its frame; a first moment next to zero is zero."""
    inertia = _NOTHING
    for body in members:
        if body != GROUND:
            inertia = inertia + bodies[body].spatial_inertia().seen_from(place[body][1])
    if inertia.h.dtype == object or isinstance(inertia.m, Node):
        return inertia
    h = np.where(np.abs(inertia.h) < _BALANCED * inertia.m, 0.0, inertia.h)
    return RigidInertia(inertia.m, h, inertia.I)


def _starts(sizes: Iterable[int]) -> np.ndarray:
    starts = np.cumsum([0, *sizes])
    starts.setflags(write=False)
    return starts


def _clean(X: Transform) -> Transform:
    """Without negative zeros, which would hide that a constant is zero."""
    return Transform(X.E + 0.0, X.r + 0.0)


def _hung(bodies: Mapping[str, Body], joints: Iterable[TreeJoint]) -> dict[str, TreeJoint]:
    """The joint that carries each body; each body has one, and every name is known."""
    carried: dict[str, TreeJoint] = {}
    for joint in joints:
        for body in (joint.parent, joint.child):
            if body not in bodies and body != GROUND:
                raise ModelError(f"joint {joint.name!r}: there is no body {body!r}; there are {listed(bodies)}")
        if joint.child == joint.parent:
            raise ModelError(f"joint {joint.name!r} would carry body {joint.child!r} on itself")
        if joint.child == GROUND:
            raise ModelError(f"joint {joint.name!r} would carry the ground; exchange its two bodies")
        if joint.child in carried:
            raise ModelError(
                f"body {joint.child!r} hangs on two joints, {carried[joint.child].name!r} (on "
                f"{carried[joint.child].parent!r}) and {joint.name!r} (on {joint.parent!r}), which closes a cycle "
                "without a loop joint: make one of the two a loop joint"
            )
        carried[joint.child] = joint
    missing = [body for body in bodies if body not in carried]
    if missing:
        raise ModelError(
            f"no joint carries {listed(missing)}: each body must hang on another or on the ground, by a Free joint if "
            "it floats"
        )
    return carried


def _outwards(bodies: Mapping[str, Body], carried: Mapping[str, TreeJoint]) -> Sequence[TreeJoint]:
    """The joints such that parents come before children, otherwise in the order of the bodies' joints."""
    order: dict[str, TreeJoint] = {}
    for joint in carried.values():
        way: list[TreeJoint] = []
        body = joint.child
        while body != GROUND and body not in order:
            way.append(carried[body])
            body = carried[body].parent
            if len(way) > len(bodies):
                circle = _circle(carried, body)
                raise ModelError(
                    f"bodies {listed(circle)} hang on each other in a cycle and not on the ground: make one of the "
                    "joints between them a loop joint, and hang one of the bodies on the ground"
                )
        for step in reversed(way):
            order[step.child] = step
    return list(order.values())


def _circle(carried: Mapping[str, TreeJoint], body: str) -> list[str]:
    circle = [body]
    while (body := carried[body].parent) != circle[0]:
        circle.append(body)
    return circle
