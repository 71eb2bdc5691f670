"""Relations between joints of a URDF: URDF+'s couplings, joints that depend on others, and mimics."""

from __future__ import annotations

from coupler.io.dependences import check_amount, read_dependence, solved_for
from coupler.io.mimics import Mimic, sorted_mimics
from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import CouplingPart, JointPart
from coupler.io.xml import Element
from coupler.mechanisms import linear
from coupler.model.wording import clipped, listed, some

SINGLE = ("revolute", "continuous", "prismatic", "helical", "screw")  # joints of one freedom


def read_coupling(element: Element, d: Description) -> CouplingPart:
    """A coupling: URDF+'s form relates two links by a ratio, the general one relates joints."""
    element.get("type")  # always "rolling"
    if element.all("joint"):
        return dependence_of(element, d)
    ratio = element.need("ratio").number("value")
    (first, _), (second, _) = d.ends(element)
    return _by_ratio(element, d, first, second, ratio)


def _by_ratio(element: Element, d: Description, first: str, second: str, ratio: float) -> CouplingPart:
    """The coupling ratio × Σ (joints to the first link) = Σ (joints to the second), from their last common link."""
    to_first, to_second = d.paths(first, second)
    row = {joint.name: ratio for joint in to_first if joint.kind != "fixed"}
    row |= {joint.name: -1.0 for joint in to_second if joint.kind != "fixed"}
    for joint in row:
        _check_single(element, d.joints[joint])
    # The dependent joint is preferably one that is marked so, then the successor's own; never an independent one.
    order = [joint.name for joint in (*to_second[::-1], *to_first[::-1]) if row.get(joint.name)]
    order.sort(key=lambda joint: {False: 0, None: 1, True: 2}[d.joints[joint].independent])
    if len(row) < 2 or not order or d.joints[order[0]].independent:
        raise element.error(
            f"it must relate two joints or more, at least one of them not marked as independent; between {first!r} "
            f"and {second!r} there are {listed(row) or 'none'}"
        )
    check_amount(element, len(row))
    with element.blamed():
        return CouplingPart(element.require("name"), *solved_for(order[0], row), element)


def dependence_of(element: Element, d: Description) -> CouplingPart:
    """A coupling that gives joints from others."""

    def check(joint: str) -> str:
        _check_single(element, joint_of(element, joint, d))
        return joint

    return CouplingPart(element.require("name"), *read_dependence(element, check), element)


def read_mimics(d: Description) -> None:
    """Adds joints that follow others; a file that was cut down may lack the leader, or have one of the two fixed."""
    mimics, free = list[Mimic](), list[str]()
    for joint in d.joints.values():
        element = joint.element.find("mimic")
        if element is None:
            continue
        leader = element.require("joint")
        if leader in d.joints or joint.kind == "fixed":
            mimics.append(_mimic(joint, leader, element))
        else:
            element.ignore()
            free.append(f"{clipped(joint.name)} (mimics {clipped(leader)})")
    found = sorted_mimics(mimics, [joint.name for joint in d.joints.values() if joint.kind == "fixed"])
    for mimic in found.moving:
        for joint in (mimic.follower, mimic.leader):
            _check_single(mimic.element, d.joints[joint])
        function = linear([[1.0], [mimic.multiplier]], [0.0, mimic.offset])
        name = d.new_name(f"{mimic.follower}_mimic")
        d.couplings.append(CouplingPart(name, [mimic.leader, mimic.follower], function, [mimic.leader], mimic.element))
    for name, position in found.held.items():
        d.joints[name].fix(position)
    d.warnings += found.warnings
    if free:
        d.warnings.append(f"what these joints mimic is not in the file, so they move freely: {some(free)}")


def _mimic(follower: JointPart, leader: str, element: Element) -> Mimic:
    if follower.kind != "fixed":
        _check_single(element, follower)
        if leader == follower.name:
            raise element.error(f"joint {follower.name!r} cannot mimic itself")
    return Mimic(follower.name, leader, element.number("multiplier", 1.0), element.number("offset", 0.0), element)


def joint_of(element: Element, name: str, d: Description) -> JointPart:
    """The joint that an element names."""
    if name not in d.joints:
        raise element.error(f"there is no joint {name!r}; there are {listed(d.joints)}")
    return d.joints[name]


def _check_single(element: Element, joint: JointPart) -> None:
    if joint.kind not in SINGLE:
        raise element.error(f"joint {joint.name!r} is {joint.kind}; only joints of one freedom can be coupled")
