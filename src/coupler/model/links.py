"""Building the tree: bodies that are welded together become one link, and links become a tree.

A link's frame is that in which its joint ends, turned so that the joint's axis is z, and slid along it (see slides.py).
All revolute joints then look alike, whatever their axes were, and one trace serves them all. Users see none of this:
poses, frames and contact points go through the placement of their body on its link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from coupler.graph import Node
from coupler.model.bodies import Body
from coupler.model.errors import ModelError
from coupler.model.joints import Fixed
from coupler.model.slides import best_slides, slid
from coupler.model.tree import GROUND, Link, Tree, TreeJoint
from coupler.model.wording import listed
from coupler.spatial import RigidInertia, Transform

_BALANCED = 1e-15  # m: a centre of mass this close to an axis is on it, up to rounding
_NOTHING = RigidInertia(0.0, np.zeros(3), np.zeros((3, 3)))


def tree_of(bodies: Mapping[str, Body], joints: Iterable[TreeJoint]) -> Tree:
    """The tree of bodies that joints, in any order, connect.

    Raises:
        ModelError: for a body that hangs on two joints, on itself in a cycle, or on nothing.
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
    inertias = [gathered(group, bodies, place) for group in members]
    slides = best_slides(parents, kinds, placements, inertias)
    for body, (link, X) in place.items():
        place[body] = link, X if slides[link] == 0.0 else X @ Transform.translation((0.0, 0.0, -slides[link]))
    for i, link in enumerate(links):
        placement = slid(link.placement, slides[link.parent], slides[i])
        inertia = inertias[i] if slides[i] == 0.0 else gathered(members[i], bodies, place)
        links[i] = replace(link, placement=placement, inertia=inertia, bodies=tuple(members[i]))
    return Tree(tuple(links), MappingProxyType(place))


def gathered(
    members: Iterable[str], bodies: Mapping[str, Body], place: Mapping[str, tuple[int, Transform]]
) -> RigidInertia:
    """The inertia of a link's bodies, in the link's frame; first moments within rounding of zero are set to zero."""
    inertia = _NOTHING
    for body in members:
        if body != GROUND:
            inertia = inertia + bodies[body].spatial_inertia().seen_from(place[body][1])
    if inertia.h.dtype == object or isinstance(inertia.m, Node):
        return inertia
    h = np.where(np.abs(inertia.h) < _BALANCED * inertia.m, 0.0, inertia.h)
    return RigidInertia(inertia.m, h, inertia.I)


def _clean(X: Transform) -> Transform:
    """A transform without negative zeros, which would hide that a constant is zero."""
    return Transform(X.E + 0.0, X.r + 0.0)


def _hung(bodies: Mapping[str, Body], joints: Iterable[TreeJoint]) -> dict[str, TreeJoint]:
    """The joint that carries each body; a ModelError if a body has none or two, or a name is unknown."""
    carried: dict[str, TreeJoint] = {}
    for joint in joints:
        for body in (joint.parent, joint.child):
            if body not in bodies and body != GROUND:
                raise ModelError(
                    f"joint {joint.name!r}: there is no body {body!r}; there are {listed([GROUND, *bodies], like=body)}"
                )
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
    """The joints in an order in which parents come before children, otherwise in the order given."""
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
