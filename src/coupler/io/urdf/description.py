"""A robot as its file describes it, before it is built: parts that closures found elsewhere may still change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from coupler.io.bodies import add_body
from coupler.io.options import Options
from coupler.io.urdf.joints import joint_kind
from coupler.io.urdf.parts import CouplingPart, JointPart, LinkPart, LoopPart
from coupler.io.xml import Element
from coupler.model import (
    Fixed,
    Free,
    ModelError,
    RobotBuilder,
)
from coupler.model.tree import GROUND
from coupler.model.words import counted, listed
from coupler.spatial import Transform

__all__ = ["Description"]

_TOLD = 20  # kinds of things in a warning


@dataclass(eq=False)
class Description:
    """Everything in a file, by name and in its order."""

    name: str
    root: Element
    links: dict[str, LinkPart] = field(default_factory=dict)
    joints: dict[str, JointPart] = field(default_factory=dict)
    loops: list[LoopPart] = field(default_factory=list)
    couplings: list[CouplingPart] = field(default_factory=list)
    springs: list[tuple[Element, dict[str, Any]]] = field(default_factory=list)
    keyframes: list[tuple[Element, str, dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    gravity: Any = (0.0, 0.0, -9.81)
    left_out: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    def new_bond(self, name: str) -> str:
        """A name for what the file does not name, with underscores where it is taken."""
        taken = {*self.joints, *(part.name for part in (*self.loops, *self.couplings))}
        while name in taken:
            name += "_"
        return name

    # The tree

    def carrier(self, link: str) -> JointPart | None:
        """The joint that carries a link; the root has none."""
        return self._carriers.get(link)

    @cached_property
    def _carriers(self) -> dict[str, JointPart]:
        """By child; asked for once the tree has been checked, after which it stays."""
        return {joint.child: joint for joint in self.joints.values()}

    def way(self, link: str) -> list[JointPart]:
        """The joints from the root to a link."""
        carriers, found = self._carriers, []
        while (joint := carriers.get(link)) is not None:
            found.append(joint)
            link = joint.parent
        return found[::-1]

    def ways(self, first: str, second: str) -> tuple[list[JointPart], list[JointPart]]:
        """The joints from the last link that carries both to each of two links."""
        one, two = self.way(first), self.way(second)
        common = 0
        while common < min(len(one), len(two)) and one[common] is two[common]:
            common += 1
        return one[common:], two[common:]

    def zero_pose(self, link: str) -> Transform:
        """From the root's frame to a link's, with all joints at zero."""
        X = Transform.identity()
        for joint in self.way(link):
            X = joint.at @ X
        return X

    def check_tree(self) -> str:
        """Refuses what is no tree; the name of its root.

        Raises:
            ModelError: naming the line of a joint with an unknown link, of a link on two joints, of a cycle, and the
                links that hang on nothing.
        """
        carried: dict[str, JointPart] = {}
        for joint in self.joints.values():
            for end, link in (("parent", joint.parent), ("child", joint.child)):
                if link not in self.links:
                    raise joint.element.error(f"its {end} {link!r} is no link of this file{_near(link, self.links)}")
            if joint.child in carried:
                other = carried[joint.child]
                raise joint.element.error(
                    f"link {joint.child!r} hangs on joint {other.name!r} already (line {other.element.line}); to close "
                    "a loop, write one of the two as a <loop>"
                )
            carried[joint.child] = joint
        roots = [link for link in self.links if link not in carried]
        if len(roots) > 1:
            second = self.links[roots[1]].element
            raise second.error(f"links {listed(roots)} hang on no joint; a robot has one root")
        reached = set(roots)
        for link in self.links:
            way: list[str] = []
            while link not in reached and link not in way:
                way.append(link)
                link = carried[link].parent
            if link not in reached:
                cycle = [carried[one].name for one in way[way.index(link) :]]
                raise carried[link].element.error(
                    f"joints {listed(cycle)} carry each other in a cycle; write one of them as a <loop>"
                )
            reached.update(way)
        return roots[0]

    # The robot

    def builder(self, options: Options) -> RobotBuilder:
        """The robot, ready to be built.

        Raises:
            ModelError: naming the line of what cannot be.
        """
        root = self.check_tree()
        gravity = self.gravity if options.gravity is None else options.gravity
        with self.root.blamed():
            b = RobotBuilder(self.name, gravity)
        seats = {joint.child: joint.meets for joint in self.joints.values() if joint.meets is not None}
        self._describe_bodies(b, root, seats)
        if root != GROUND:
            self._carry_root(b, root, floating=options.floating)
        elif options.floating:
            raise self.links[root].element.error("the root is the ground, which cannot float")
        for joint in self.joints.values():
            if self.links[joint.child].role == "body":
                with joint.element.blamed():
                    self._describe_joint(b, joint, seats.get(joint.parent))
        self._describe_bonds(b, seats)
        for element, name, positions, velocities in self.keyframes:
            with element.blamed():
                b.keyframe(name, positions, velocities)
        for warning in self.warnings:
            b.warn(warning)
        if self.left_out:
            kinds = [f"{n} × {what}" for what, n in self.left_out.items()]
            more = f" and {counted(len(kinds) - _TOLD, 'more kind')}" if len(kinds) > _TOLD else ""
            b.warn(f"not modelled, and left out: {', '.join(kinds[:_TOLD])}{more}")
        return b

    def _describe_bodies(self, b: RobotBuilder, root: str, seats: dict[str, Transform]) -> None:
        odd, weightless, carriers = [], [], self._carriers
        carrying = {joint.parent for joint in self.joints.values()}
        for name, link in self.links.items():
            seat = seats.get(name, Transform.identity())
            with link.element.blamed():
                if name == GROUND and name == root:
                    if link.mass:
                        b.warn(f"the mass of {GROUND!r} is left out: it does not move")
                    self._describe_shapes(b, name, link, seat)
                elif link.role == "body":
                    E = seat.E.T
                    inertia = seat.r + E @ link.centre, E @ link.inertia @ E.T
                    if not add_body(b, name, link.mass, *inertia, ideal=link.ideal):
                        (odd if link.mass else weightless).append(name)
                    self._describe_shapes(b, name, link, seat)
                else:
                    if name in carrying:
                        raise ModelError(f"a {link.role} must hang on a fixed joint and carry nothing")
                    if link.mass or link.inertia.any() or link.shapes:
                        raise ModelError(f"a {link.role} has neither mass nor shapes: leave out as={link.role!r}")
                    self._describe_frame(b, name, link.role, carriers.get(name), seats)
        if odd:
            b.warn(
                f"no real body has the inertia of {listed(odd)}, whose largest principal moment exceeds the sum of the "
                "other two: it is used as it is"
            )
        if weightless:
            b.warn(f"{listed(weightless)} has an inertia but no mass: it is used as it is")

    def _describe_shapes(self, b: RobotBuilder, name: str, link: LinkPart, seat: Transform) -> None:
        for shape in link.shapes:
            b.shape(name, **(shape | {"at": shape["at"] @ seat}))

    def _describe_frame(
        self, b: RobotBuilder, name: str, role: str, joint: JointPart | None, seats: dict[str, Transform]
    ) -> None:
        """A frame or a contact point, written as a link on a fixed joint."""
        if joint is None or joint.kind != "fixed":
            raise ModelError(f"a {role} must hang on a fixed joint and carry nothing")
        at = joint.at @ seats.get(joint.parent, Transform.identity())
        if role == "contact":
            b.contact(name, joint.parent, at.r)
        else:
            b.frame(name, joint.parent, at)

    def _carry_root(self, b: RobotBuilder, root: str, *, floating: bool) -> None:
        if not floating:
            b.joint(self.new_bond(f"ground_to_{root}"), Fixed(), GROUND, root)
            return
        loose = [joint for joint in self.joints.values() if joint.parent == root and joint.kind == "floating"]
        if loose:
            raise loose[0].element.error("the robot floats by this joint already: leave out floating=True")
        b.joint(self.new_bond("floating_base"), Free(), GROUND, root)

    def _describe_joint(self, b: RobotBuilder, joint: JointPart, seat: Transform | None) -> None:
        b.joint(
            joint.name,
            joint_kind(joint.kind, joint.axes, joint.pitch, joint.properties),
            joint.parent,
            joint.child,
            joint.at if seat is None else joint.at @ seat,
            independent=bool(joint.independent),
            actuated=joint.actuated,
            start=joint.start,
            meets=joint.meets,
        )

    def _describe_bonds(self, b: RobotBuilder, seats: dict[str, Transform]) -> None:
        def on(link: str, at: Transform) -> tuple[str, Transform]:
            """The body that a place on a link is on, and where it is in the body's own frame."""
            joint = self.carrier(link)
            if self.links[link].role != "body" and joint is not None:
                link, at = joint.parent, at @ joint.at
            return link, at @ seats[link] if link in seats else at

        for loop in self.loops:
            with (loop.element or self.root).blamed():
                (first, at), (second, meets) = on(loop.first, loop.at), on(loop.second, loop.meets)
                b.loop(loop.name, loop.kind, first, second, at, meets)
        for coupling in self.couplings:
            with (coupling.element or self.root).blamed():
                b.couple(coupling.name, coupling.joints, coupling.function, coupling.independent)
        for element, spring in self.springs:
            first, at = on(spring["first"], Transform.translation(spring["at"]))
            second, meets = on(spring["second"], Transform.translation(spring["meets"]))
            with element.blamed():
                b.spring(**(spring | {"first": first, "at": at.r, "second": second, "meets": meets.r}))

    def elements(self) -> Iterator[tuple[str, Element]]:
        """Names, and where they are given."""
        for name, link in self.links.items():
            yield name, link.element
        for part in (*self.joints.values(), *self.loops, *self.couplings):
            if part.element is not None:
                yield part.name, part.element


def _near(name: str, known: Any) -> str:
    """A hint at a name that was mistyped."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {listed(known)}"
