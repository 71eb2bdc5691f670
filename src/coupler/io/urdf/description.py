"""A robot as its file describes it, before it is built: closures that are found elsewhere may still change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coupler.forks import cached_property
from coupler.grouping import grouped
from coupler.io.reading import Options, add_body, warn_left_out, warn_of_inertias
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
from coupler.model.wording import clipped, listed
from coupler.spatial import Transform

_COMPARED = 500  # characters: names that are longer together are not compared, which would take long


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
    actuators: list[tuple[Element, dict[str, Any]]] = field(default_factory=list)
    keyframes: list[tuple[Element, str, dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    exclusions: list[tuple[str, str]] = field(default_factory=list)
    contact_pairs: list[tuple[Element, dict[str, Any]]] = field(default_factory=list)
    gravity: Any = (0.0, 0.0, -9.81)
    left_out: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def new_name(self, name: str) -> str:
        """A name for a joint, loop or coupling that the file does not name; underscores make it unique."""
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
        """Joints by child; valid once the tree has been checked, after which it does not change."""
        return {joint.child: joint for joint in self.joints.values()}

    def path(self, link: str) -> list[JointPart]:
        """The joints from the root to a link."""
        carriers, joints = self._carriers, []
        while (joint := carriers.get(link)) is not None:
            joints.append(joint)
            link = joint.parent
        return joints[::-1]

    def paths(self, first: str, second: str) -> tuple[list[JointPart], list[JointPart]]:
        """The joints from the last common ancestor of two links to each of them.

        Only these are passed: a file may ask for thousands of paths in a chain of thousands.
        """
        carriers, depths = self._carriers, self._depths
        to_first, to_second = list[JointPart](), list[JointPart]()
        while first != second:
            if depths[first] >= depths[second]:
                to_first.append(carriers[first])
                first = carriers[first].parent
            else:
                to_second.append(carriers[second])
                second = carriers[second].parent
        return to_first[::-1], to_second[::-1]

    @cached_property
    def _depths(self) -> dict[str, int]:
        """How many joints carry each link."""
        depths = dict.fromkeys(self.links, 0)
        for joint in self._outwards():
            depths[joint.child] = depths[joint.parent] + 1
        return depths

    def zero_pose(self, link: str) -> Transform:
        """The transform from the root's frame to a link's, with all joints at zero."""
        return self._zero_poses[link]

    @cached_property
    def _zero_poses(self) -> dict[str, Transform]:
        poses = dict.fromkeys(self.links, Transform.identity())
        for joint in self._outwards():
            poses[joint.child] = joint.at @ poses[joint.parent]
        return poses

    def _outwards(self) -> Iterator[JointPart]:
        """All joints, each after the one that carries its parent."""
        carried = grouped(self.joints.values(), lambda joint: joint.parent)
        pending = [link for link in self.links if link not in self._carriers]
        while pending:
            for joint in carried.get(pending.pop(), ()):
                yield joint
                pending.append(joint.child)

    def check_tree(self) -> str:
        """Checks that links and joints form a tree; returns the name of its root.

        Raises:
            ModelError: naming the line of a joint with an unknown link, of a link on two joints, of a cycle, and the
                links that hang on nothing.
        """
        carried: dict[str, JointPart] = {}
        for joint in self.joints.values():
            for end, link in (("parent", joint.parent), ("child", joint.child)):
                if link not in self.links:
                    raise joint.element.error(
                        f"its {end} {clipped(link)} is not a link of this file{_hint(link, self.links)}"
                    )
            if joint.child == joint.parent:
                raise joint.element.error(f"its parent and its child are the same link, {joint.child!r}")
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
            visited: list[str] = []
            while link not in reached and link not in visited:
                visited.append(link)
                link = carried[link].parent
            if link not in reached:
                cycle = [carried[one].name for one in visited[visited.index(link) :]]
                raise carried[link].element.error(
                    f"joints {listed(cycle)} carry each other in a cycle; write one of them as a <loop>"
                )
            reached.update(visited)
        return roots[0]

    # The robot

    def builder(self, options: Options) -> RobotBuilder:
        """The robot, ready to be built.

        Raises:
            ModelError: for what cannot be built; it names the line.
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
        self._describe_constraints(b, seats)
        self._describe_actuators(b)
        for pair in self.exclusions:
            b.exclude(*pair)
        for element, given in self.contact_pairs:
            with element.blamed():
                b.contact_pair(**given)
        for element, name, positions, velocities in self.keyframes:
            with element.blamed():
                b.keyframe(name, positions, velocities)
        for warning in self.warnings:
            b.warn(warning)
        for remark in self.remarks:
            b.remark(remark)
        warn_left_out(b, self.left_out)
        return b

    def _describe_bodies(self, b: RobotBuilder, root: str, seats: dict[str, Transform]) -> None:
        unreal, weightless, carriers = [], [], self._carriers
        carrying = {joint.parent for joint in self.joints.values()}
        for name, link in self.links.items():
            seat = seats.get(name, Transform.identity())
            with link.element.blamed():
                if name == GROUND and name == root:
                    if link.mass:
                        b.warn(f"the mass of {GROUND!r} is ignored: it does not move")
                    self._describe_shapes(b, name, link, seat)
                elif link.role == "body":
                    E = seat.E.T
                    inertia = seat.r + E @ link.centre, E @ link.inertia @ E.T
                    if not add_body(b, name, link.mass, *inertia, ideal=link.ideal):
                        (unreal if link.mass else weightless).append(name)
                    self._describe_shapes(b, name, link, seat)
                else:
                    if name in carrying:
                        raise ModelError(f"a {link.role} must hang on a fixed joint and carry nothing")
                    if link.mass or link.inertia.any() or link.shapes:
                        raise ModelError(f"a {link.role} has neither mass nor shapes: leave out as={link.role!r}")
                    self._describe_frame(b, name, link.role, carriers.get(name), seats)
        warn_of_inertias(b, unreal, weightless)

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
            b.joint(self.new_name(f"ground_to_{root}"), Fixed(), GROUND, root)
            return
        loose = [joint for joint in self.joints.values() if joint.parent == root and joint.kind == "floating"]
        if loose:
            raise loose[0].element.error("the robot floats by this joint already: leave out floating=True")
        name = self.new_name("floating_base")
        if name != "floating_base":
            b.warn(f"the robot floats by the joint {name!r}: the file has a joint 'floating_base' already")
        b.joint(name, Free(), GROUND, root)

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

    def _describe_constraints(self, b: RobotBuilder, seats: dict[str, Transform]) -> None:
        def on(link: str, at: Transform) -> tuple[str, Transform]:
            """The body that carries a frame of a link, and the frame relative to the body's own."""
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

    def _describe_actuators(self, b: RobotBuilder) -> None:
        """All actuators but those of joints that are fixed."""
        for element, given in self.actuators:
            fixed = [joint for joint in given["gears"] if joint in self.joints and self.joints[joint].kind == "fixed"]
            own: dict[str, Any] = {joint: gear for joint, gear in given["gears"].items() if joint not in fixed}
            arguments: dict[str, Any] = {**given, "gears": own}
            with element.blamed():
                if own or not fixed:
                    b.actuator(**arguments)

    def elements(self) -> Iterator[tuple[str, Element]]:
        """Names of all parts, and the elements that describe them."""
        for name, link in self.links.items():
            yield name, link.element
        for part in (*self.joints.values(), *self.loops, *self.couplings):
            if part.element is not None:
                yield part.name, part.element


def _hint(name: str, known: Any) -> str:
    """A hint at a similar name, or at all names."""
    from difflib import get_close_matches

    near = [other for other in known if len(name) + len(other) < _COMPARED]
    similar = get_close_matches(name, near, 1)
    return f"; did you mean {similar[0]!r}?" if similar else f"; there are {listed(known)}"
