"""A robot as a URDF file describes it, by name. Closures from other files may still change it before it is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coupler.forks import cached_property
from coupler.grouping import grouped
from coupler.io.taken_names import TakenNames
from coupler.io.urdf.origins import origin
from coupler.io.urdf.parts import CouplingPart, JointPart, LinkPart, LoopPart
from coupler.io.xml import Element
from coupler.model.wording import clipped, listed
from coupler.spatial import Transform

_COMPARED = 500  # characters: a pair of names longer than this in all is not compared, which would take long


@dataclass(eq=False)
class Description:
    """Everything in a file, by name and in the file's order.

    Attributes:
        renamed: for each link that could not keep its name, the new one.
        left_out: counts of what the file has but coupler does not model, by kind.
        The other attributes are the robot's parts, most of them with the element that describes each.
    """

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
        return TakenNames([*self.joints, *(part.name for part in (*self.loops, *self.couplings))]).new(name)

    def link(self, name: str, element: Element) -> str:
        """The link that an element names, under the name that it has now.

        Raises:
            ModelError: naming the element, if the file has no such link.
        """
        link = self.renamed.get(name, name)
        if link not in self.links:
            raise element.error(f"there is no link {clipped(name)}; there are {listed(self.links)}")
        return link

    def ends(self, element: Element) -> list[tuple[str, Transform]]:
        """The <predecessor> and the <successor> in an element: the link of each, and the frame on it."""
        ends = [element.need(tag) for tag in ("predecessor", "successor")]
        return [(self.link(end.require("link"), end), origin(end)) for end in ends]

    # The tree

    def carrier(self, link: str) -> JointPart | None:
        """The joint that carries a link; None for the root."""
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

        No other joints are visited: a file may ask for thousands of paths in a chain of thousands.
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
        """For each link the number of joints between it and the root."""
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

    def movers(self) -> dict[str, tuple[str, Transform]]:
        """For each link the moving link that it is rigidly attached to, and the transform from that link to it."""
        movers = {link: (link, Transform.identity()) for link in self.links}
        for joint in self._outwards():
            if joint.kind == "fixed":
                mover, placed = movers[joint.parent]
                at = joint.at if joint.meets is None else joint.meets.inverse() @ joint.at
                movers[joint.child] = mover, at @ placed
        return movers

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
                        f"its {end} {clipped(link)} is not a link of this file; {self._hint(link)}"
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

    def elements(self) -> Iterator[tuple[str, Element]]:
        """The names of all parts, and the elements that describe them."""
        for name, link in self.links.items():
            yield name, link.element
        for part in (*self.joints.values(), *self.loops, *self.couplings):
            if part.element is not None:
                yield part.name, part.element

    def _hint(self, name: str) -> str:
        """A hint at the link with a similar name, or at all links."""
        from difflib import get_close_matches

        comparable = [link for link in self.links if len(name) + len(link) < _COMPARED]
        similar = get_close_matches(name, comparable, 1)
        return f"did you mean {similar[0]!r}?" if similar else f"there are {listed(self.links)}"
