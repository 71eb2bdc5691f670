"""Reading what constrains the links of a URDF beyond its tree: loops, couplings, mimics, transmissions, springs."""

from __future__ import annotations

from typing import Any

from coupler.io.actuators import read_actuator
from coupler.io.dependences import check_amount, read_dependence, solved_for
from coupler.io.urdf.description import Description
from coupler.io.urdf.gazebo import read_gazebo
from coupler.io.urdf.joints import axes_and_pitch, joint_kind
from coupler.io.urdf.origins import origin
from coupler.io.urdf.parts import CouplingPart, JointPart, LoopPart
from coupler.io.urdf.transmissions import actuator_number, read_motors
from coupler.io.xml import Element
from coupler.mechanisms import linear
from coupler.model import Held, LoopKind, Rod
from coupler.model.wording import clipped, counted, listed
from coupler.spatial import Transform

_LISTED = 8  # joints named in a warning


def read_constraints(d: Description) -> None:
    """Adds all loops, couplings, transmissions and springs of the file to its description."""
    for element in d.root.all("loop"):
        (first, at), (second, meets) = _ends(element, d)
        with element.blamed():
            kind = _loop_kind(element)
        d.loops.append(LoopPart(element.require("name"), kind, first, second, at, meets, element))
    for element in d.root.all("coupling"):
        d.couplings.append(_coupling(element, d))
    _read_mimics(d)
    read_transmissions(d.root, d)
    for element in d.root.all("actuator"):
        d.actuators.append((element, read_actuator(element)))
    for element in d.root.all("spring"):
        d.springs.append((element, _spring(element, d)))
    dependent = {joint for own in d.couplings for joint in own.joints if joint not in own.independent}
    for element in d.root.all("gazebo"):
        read_gazebo(element, d, dependent)


def read_transmissions(root: Element, d: Description) -> None:
    """Adds the transmissions of a file to a description; those of unknown joints are left out, with a warning."""
    absent = list[str]()
    for element in root.all("transmission"):
        joints = [joint.get("name") for joint in element.all("joint")]
        missing = [joint for joint in joints if joint and joint not in d.joints]
        if missing:
            absent += missing
            element.ignore()
        else:
            _transmission(element, d)
    if absent:
        d.warnings.append(f"transmissions of joints that are not in the file are left out: {listed(absent)}")


def _ends(element: Element, d: Description) -> list[tuple[str, Transform]]:
    """The predecessor and the successor of an element: the link, and the frame on it."""
    return [_end(element.need(end), d) for end in ("predecessor", "successor")]


def _end(element: Element, d: Description) -> tuple[str, Transform]:
    link = element.require("link")
    link = d.renamed.get(link, link)
    if link not in d.links:
        raise element.error(f"there is no link {link!r}; there are {listed(d.links)}")
    return link, origin(element)


def _loop_kind(element: Element) -> LoopKind:
    word = element.require("type")
    if word == "rod":
        return Rod(element.need("length").number("value"))
    if word == "held":
        rows = element.all("hold")
        return Held([[*row.numbers("angular", 3, [0.0] * 3), *row.numbers("linear", 3, [0.0] * 3)] for row in rows])
    return joint_kind(word, *axes_and_pitch(element, word), {})


# Couplings


def _coupling(element: Element, d: Description) -> CouplingPart:
    """A coupling: URDF+'s form relates two links by a ratio, the general one relates joints."""
    name = element.require("name")
    element.get("type")  # always "rolling"
    if element.all("joint"):
        return _dependence(element, name, d)
    ratio = element.need("ratio").number("value")
    (first, _), (second, _) = _ends(element, d)
    return _by_ratio(element, name, d, first, second, ratio)


def _by_ratio(element: Element, name: str, d: Description, first: str, second: str, ratio: float) -> CouplingPart:
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
    return CouplingPart(name, *solved_for(order[0], row), element)


def _dependence(element: Element, name: str, d: Description) -> CouplingPart:
    def check(joint: str) -> str:
        _check_single(element, _joint_of(element, joint, d))
        return joint

    return CouplingPart(name, *read_dependence(element, check), element)


def _read_mimics(d: Description) -> None:
    """Adds joints that follow others; files that were cut down may lack what follows, or what is followed."""
    fixed, alone = list[str](), dict[str, str]()
    for joint in d.joints.values():
        mimic = joint.element.find("mimic")
        if mimic is None:
            continue
        master = mimic.require("joint")
        if joint.kind != "fixed" and master in d.joints:
            d.couplings.append(_mimic(joint, mimic, d))
            continue
        mimic.ignore()
        if joint.kind == "fixed":
            fixed.append(joint.name)
        else:
            alone[joint.name] = master
    if fixed:
        d.warnings.append(f"<mimic> has no effect on {counted(len(fixed), 'fixed joint')}: {listed(fixed)}")
    if alone:
        joints = ", ".join(f"{clipped(joint)} (mimics {clipped(alone[joint])})" for joint in list(alone)[:_LISTED])
        more = f" and {len(alone) - _LISTED} more" if len(alone) > _LISTED else ""
        d.warnings.append(f"what these joints mimic is not in the file, so they move freely: {joints}{more}")


def _mimic(joint: JointPart, mimic: Element, d: Description) -> CouplingPart:
    master = _joint_of(mimic, mimic.require("joint"), d)
    for one in (joint, master):
        _check_single(mimic, one)
    if master is joint:
        raise mimic.error(f"joint {joint.name!r} cannot mimic itself")
    function = linear([[1.0], [mimic.number("multiplier", 1.0)]], [0.0, mimic.number("offset", 0.0)])
    return CouplingPart(d.new_name(f"{joint.name}_mimic"), [master.name, joint.name], function, [master.name], mimic)


def _joint_of(element: Element, name: str, d: Description) -> JointPart:
    if name not in d.joints:
        raise element.error(f"there is no joint {name!r}; there are {listed(d.joints)}")
    return d.joints[name]


def _check_single(element: Element, joint: JointPart) -> None:
    if joint.kind not in ("revolute", "continuous", "prismatic", "helical", "screw"):
        raise element.error(f"joint {joint.name!r} is {joint.kind}; only joints of one freedom can be coupled")


# Actuators


def _transmission(element: Element, d: Description) -> None:
    """Marks joints as actuated, with their actuators, and adds the inertia of rotors; or a coupling, if joints depend
    on others.

    The file does not say where the rotor is: its inertia J behind a reduction n counts as the armature n² J.
    """
    element.get("name")
    element.get("type")
    for kind in element.all("type"):
        kind.ignore()
    joints = element.all("joint")
    if any(joint.all("depends_on") for joint in joints):
        d.couplings.append(_dependence(element, element.require("name"), d))
        return
    driven = [_joint_of(joint, joint.require("name"), d) for joint in joints]
    for part in joints:
        for interface in part.all("hardwareInterface", "role", "offset"):
            interface.ignore()
    for joint in driven:
        joint.actuated = joint.kind != "fixed"
    read_motors(element, driven, d)
    for actuator in element.all("actuator"):
        actuator.get("name")
        for interface in actuator.all("hardwareInterface", "role"):
            interface.ignore()
        inertia = actuator_number(actuator, "rotor_inertia", "rotorInertia", "motorInertia")
        ratio = (
            actuator_number(actuator, "gear_ratio", "mechanicalReduction")
            or actuator_number(element, "mechanicalReduction")
            or 1.0
        )
        if inertia and len(driven) == 1 and driven[0].kind != "fixed":
            driven[0].properties["armature"] = driven[0].properties.get("armature", 0.0) + ratio**2 * inertia
        elif inertia:
            d.left_out["rotor inertia of a transmission with several joints"] += 1


def _spring(element: Element, d: Description) -> dict[str, Any]:
    (first, at), (second, meets) = _ends(element, d)
    figures = {name: element.number(name, 0.0) for name in ("stiffness", "free_length", "pretension", "damping")}
    return {"name": element.require("name"), "first": first, "second": second, "at": at.r, "meets": meets.r} | figures
