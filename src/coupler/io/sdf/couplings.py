"""What relates joints of an SDFormat file: gearboxes, axes that mimic others, and couplings of coupler's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from coupler.io.dependences import Dependence, check_amount, read_dependence, solved_for
from coupler.io.sdf.elements import NAMESPACE, number_of
from coupler.io.sdf.joints import Motion
from coupler.io.sdf.scopes import Scope
from coupler.io.xml import Element
from coupler.mechanisms import linear
from coupler.model import ModelError, RobotBuilder
from coupler.model.wording import clipped, listed

__all__ = ["Carried", "Couplings"]

_PARALLEL = 1e-6  # 1 − the cosine of the angle between axes that are parallel but for rounding


@dataclass(frozen=True, eq=False)
class Carried:
    """A joint of the tree.

    Attributes:
        name: in the robot.
        motion: from the link that carries to the one that is carried.
        carrier, link: the two.
        axis: its first axis in the world, as the file poses the robot, of unit length; zeros if it has none.
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
        builder: of the robot.
        tree: the joints of the tree, by the link that they carry.
        dependent: joints that depend on others already.
    """

    builder: RobotBuilder
    tree: Mapping[str, Carried]
    dependent: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._joints = {joint.name: joint for joint in self.tree.values()}
        self._taken = {*self._joints}

    # Axes that mimic others

    def mimic(self, name: str, mimic: Element, scope: Scope) -> None:
        """A follower's position is multiplier × (leader's position − reference) + offset."""
        if mimic.get("axis", "axis") != "axis":
            raise mimic.error("it follows a second axis; only joints of one freedom can be coupled")
        leader = self._joint(scope.joint_name(mimic.require("joint")), mimic)
        follower = self._joint(name, mimic)
        if leader is follower:
            raise mimic.error(f"joint {name!r} cannot mimic itself")
        multiplier = number_of(mimic, "multiplier", 1.0)
        offset = number_of(mimic, "offset", 0.0) - multiplier * number_of(mimic, "reference", 0.0)
        offset += _posed(follower) - multiplier * _posed(leader)
        function = linear([[1.0], [multiplier]], [0.0, offset])
        own = mimic.get(f"{NAMESPACE}:name") or f"{name}_mimic"
        self._couple(own, ([leader.name, follower.name], function, [leader.name]), mimic)

    def general(self, element: Element, scope: Scope) -> None:
        """A coupling of several joints, or by a polynomial."""

        def check(name: str) -> str:
            return self._joint(scope.prefix + name, element).name

        self._couple(scope.prefix + element.require("name"), read_dependence(element, check), element)

    # Gearboxes

    def gearbox(self, name: str, element: Element, ends: Mapping[str, str], axes: list[np.ndarray]) -> None:
        """θ₂ = −ratio × θ₁, the angles of the child and the parent against a reference body, about an axis each.

        Args:
            name: of the joint.
            element: the <joint>.
            ends: the links "parent", "child" and "reference".
            axes: the directions of both axes in the world.
        """
        ratio = number_of(element, "gearbox_ratio", 1.0)
        row: dict[str, float] = {}
        order: list[str] = []
        for end, axis, factor in (("child", axes[1], 1.0), ("parent", axes[0], ratio)):
            angle = self._angle(element, ends["reference"], ends[end], axis)
            if not angle:
                raise element.error(
                    f"its {end} {ends[end]!r} does not turn against its gearbox_reference_body {ends['reference']!r}"
                )
            for joint, sign in angle:
                row[joint] = row.get(joint, 0.0) + factor * sign
                order = [*order, joint] if end == "parent" else [joint, *order]
        row = {joint: factor for joint, factor in row.items() if factor}
        if len(row) < 2:
            raise element.error(
                "its parent and its child must each turn by a joint of their own against its gearbox_reference_body; "
                f"there is {listed(row) or 'no such joint'}"
            )
        check_amount(element, len(row))
        constant = sum(factor * _posed(self._joints[joint]) for joint, factor in row.items())
        free = [joint for joint in order if joint in row and joint not in self.dependent]
        if free:
            self._couple(name, solved_for(free[0], row, constant), element)
            return
        joints, factors = list(row), np.array(list(row.values()))

        def closed(positions: np.ndarray) -> np.ndarray:
            return np.array([factors @ positions - constant])

        self._couple(name, (joints, closed, []), element)

    def _angle(self, element: Element, first: str, last: str, axis: np.ndarray) -> list[tuple[str, float]]:
        """The joints whose angles add up to that of a link against another, with their signs."""
        down, up = self._way(first), self._way(last)
        common = {joint.name for joint in down} & {joint.name for joint in up}
        if (down[-1].carrier if down else first) != (up[-1].carrier if up else last):
            raise element.error(f"{first!r} and {last!r} do not hang together: no chain of hinge joints connects them")
        signed = [(joint, -1.0) for joint in down if joint.name not in common]
        signed += [(joint, 1.0) for joint in up if joint.name not in common]
        found = []
        for joint, sign in signed:
            if joint.motion.word == "fixed":
                continue
            along = float(joint.axis @ axis)
            if joint.motion.word not in ("revolute", "continuous") or abs(along) < 1.0 - _PARALLEL:
                raise element.error(
                    f"between {first!r} and {last!r} is joint {joint.name!r}, which does not turn about its axis"
                )
            found.append((joint.name, sign * float(np.sign(along))))
        return found

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
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        self.dependent |= {joint for joint in joints if joint not in independent and independent}
        try:
            self.builder.couple(name, joints, function, independent)
        except ModelError as error:
            raise element.error(str(error)) from None


def _posed(joint: Carried) -> float:
    """Where a joint is as the file poses the robot."""
    return 0.0 if joint.motion.position is None else float(joint.motion.position[0])
