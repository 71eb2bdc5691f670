"""What relates joints of an SDFormat file: gearboxes, axes that mimic others, and couplings of coupler's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from coupler.io.dependences import Dependence, read_dependence
from coupler.io.gearboxes import Passed, gearbox
from coupler.io.mimics import Mimic
from coupler.io.sdf.elements import NAMESPACE, number_of
from coupler.io.sdf.joints import Motion
from coupler.io.sdf.scopes import Scope
from coupler.io.taken_names import TakenNames
from coupler.io.xml import Element
from coupler.mechanisms import linear
from coupler.model import ModelError, RobotBuilder
from coupler.model.wording import clipped, listed


def read_mimic(follower: str, element: Element, scope: Scope) -> Mimic:
    """The <mimic> of an axis: follower's position = multiplier × (leader's position − reference) + offset."""
    if element.get("axis", "axis") != "axis":
        raise element.error("it follows a second axis; only joints of one freedom can be coupled")
    multiplier = number_of(element, "multiplier", 1.0)
    offset = number_of(element, "offset", 0.0) - multiplier * number_of(element, "reference", 0.0)
    return Mimic(follower, scope.joint_name(element.require("joint")), multiplier, offset, element)


@dataclass(frozen=True, eq=False)
class Carried:
    """A joint of the tree.

    Attributes:
        name: in the robot.
        motion: how `link` moves against `carrier`.
        carrier, link: the link that carries, and the link that is carried.
        axis: the joint's first axis in the world, in the pose that the file describes, of unit length; zeros if it has
            none.
    """

    name: str
    motion: Motion
    carrier: str
    link: str
    axis: np.ndarray


@dataclass(eq=False)
class Couplings:
    """Adds couplings to a robot.

    Attributes:
        builder: the builder of the robot.
        tree: the joints of the tree, by the link that they carry.
        dependent: joints that depend on others already.
    """

    builder: RobotBuilder
    tree: Mapping[str, Carried]
    dependent: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._joints = {joint.name: joint for joint in self.tree.values()}
        self._taken = TakenNames(self._joints)

    # Axes that mimic others

    def mimic(self, mimic: Mimic) -> None:
        """Adds a joint that follows another; both positions count from the pose that the file describes."""
        element = mimic.element
        leader, follower = self._joint(mimic.leader, element), self._joint(mimic.follower, element)
        if leader is follower:
            raise element.error(f"joint {mimic.follower!r} cannot mimic itself")
        offset = mimic.offset + _posed(follower) - mimic.multiplier * _posed(leader)
        function = linear([[1.0], [mimic.multiplier]], [0.0, offset])
        coupling = element.get(f"{NAMESPACE}:name") or f"{mimic.follower}_mimic"
        self._couple(coupling, ([leader.name, follower.name], function, [leader.name]), element)

    def general(self, element: Element, scope: Scope) -> None:
        """Adds a coupling of several joints, or by a polynomial."""

        def check(name: str) -> str:
            return self._joint(scope.prefix + name, element).name

        self._couple(scope.prefix + element.require("name"), read_dependence(element, check), element)

    # Gearboxes

    def gearbox(self, name: str, element: Element, ends: Mapping[str, str], axes: list[np.ndarray]) -> None:
        """Adds a gearbox.

        Args:
            name: the name of the joint.
            element: the <joint>.
            ends: the links "parent", "child" and "reference".
            axes: the directions of both axes in the world.
        """
        dependence = gearbox(element, ends, axes, self._ways, lambda joint: None if joint in self.dependent else 0)
        self._couple(name, dependence, element)

    def _ways(self, first: str, last: str) -> tuple[list[Passed], list[Passed]] | None:
        """The joints from the last common carrier of two links to each of them; None if the links share none."""
        ways = self._way(first), self._way(last)
        root, other = (way[-1].carrier if way else link for way, link in zip(ways, (first, last), strict=True))
        if root != other:
            return None
        common = {joint.name for joint in ways[0]} & {joint.name for joint in ways[1]}
        passed = [[_passed(joint) for joint in way if joint.name not in common] for way in ways]
        return passed[0], passed[1]

    def _way(self, link: str) -> list[Carried]:
        """The joints from a link to the root."""
        way = []
        while link in self.tree:
            way.append(self.tree[link])
            link = way[-1].carrier
        return way

    # Both

    def _joint(self, name: str, element: Element) -> Carried:
        joint = self._joints.get(name)
        if joint is None:
            raise element.error(
                f"there is no joint {clipped(name)} in the tree of joints; there are {listed(self._joints)}"
            )
        if joint.motion.freedoms != 1:
            raise element.error(f"joint {name!r} is {joint.motion.word}; only joints of one freedom can be coupled")
        return joint

    def _couple(self, name: str, dependence: Dependence, element: Element) -> None:
        joints, function, independent = dependence
        name = self._taken.new(name)
        self.dependent |= {joint for joint in joints if joint not in independent and independent}
        try:
            self.builder.couple(name, joints, function, independent)
        except ModelError as error:
            raise element.error(str(error)) from None


def _passed(joint: Carried) -> Passed:
    return Passed(joint.name, joint.motion.word, joint.axis, _posed(joint))


def _posed(joint: Carried) -> float:
    """The position of a joint in the pose that the file describes."""
    return 0.0 if joint.motion.position is None else float(joint.motion.position[0])
