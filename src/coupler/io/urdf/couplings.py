"""Relations between joints of a URDF: URDF+'s couplings, those of joints that depend on others, and mimics."""

from __future__ import annotations

from coupler.io.dependences import check_amount, read_dependence, solved_for
from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import CouplingPart, JointPart
from coupler.io.xml import Element
from coupler.mechanisms import linear
from coupler.model.wording import clipped, counted, listed, some

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
    """ratio × (sum of the joints to the first link) = (sum of those to the second), from their last common link."""
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
    return CouplingPart(element.require("name"), *solved_for(order[0], row), element)


def dependence_of(element: Element, d: Description) -> CouplingPart:
    """A coupling that gives joints from others."""

    def check(joint: str) -> str:
        _check_single(element, joint_of(element, joint, d))
        return joint

    return CouplingPart(element.require("name"), *read_dependence(element, check), element)


def read_mimics(d: Description) -> None:
    """Adds joints that follow others; a file that was cut down may lack the leader, or have the follower fixed."""
    fixed, free = list[str](), list[str]()
    for joint in d.joints.values():
        mimic = joint.element.find("mimic")
        if mimic is None:
            continue
        leader = mimic.require("joint")
        if joint.kind != "fixed" and leader in d.joints:
            d.couplings.append(_mimic(joint, mimic, d))
            continue
        mimic.ignore()
        if joint.kind == "fixed":
            fixed.append(joint.name)
        else:
            free.append(f"{clipped(joint.name)} (mimics {clipped(leader)})")
    if fixed:
        d.warnings.append(f"<mimic> has no effect on {counted(len(fixed), 'fixed joint')}: {listed(fixed)}")
    if free:
        d.warnings.append(f"what these joints mimic is not in the file, so they move freely: {some(free)}")


def _mimic(follower: JointPart, mimic: Element, d: Description) -> CouplingPart:
    leader = joint_of(mimic, mimic.require("joint"), d)
    for joint in (follower, leader):
        _check_single(mimic, joint)
    if leader is follower:
        raise mimic.error(f"joint {follower.name!r} cannot mimic itself")
    function = linear([[1.0], [mimic.number("multiplier", 1.0)]], [0.0, mimic.number("offset", 0.0)])
    name = d.new_name(f"{follower.name}_mimic")
    return CouplingPart(name, [leader.name, follower.name], function, [leader.name], mimic)


def joint_of(element: Element, name: str, d: Description) -> JointPart:
    """The joint that an element names."""
    if name not in d.joints:
        raise element.error(f"there is no joint {name!r}; there are {listed(d.joints)}")
    return d.joints[name]


def _check_single(element: Element, joint: JointPart) -> None:
    if joint.kind not in SINGLE:
        raise element.error(f"joint {joint.name!r} is {joint.kind}; only joints of one freedom can be coupled")
