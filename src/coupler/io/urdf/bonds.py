"""What binds the links of a URDF file beyond its tree: loops, couplings, mimics, transmissions, springs."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.io.urdf.description import Description
from coupler.io.urdf.joints import axes_and_pitch, joint_kind
from coupler.io.urdf.parts import CouplingPart, JointPart, LoopPart
from coupler.io.urdf.places import origin
from coupler.io.urdf.sdf import read_gazebo
from coupler.io.xml import Element
from coupler.mechanisms import linear, polynomial
from coupler.model import Held, LoopKind, Rod
from coupler.model.words import listed
from coupler.spatial import Transform

__all__ = ["read_bonds", "read_transmissions"]


def read_bonds(d: Description) -> None:
    """Adds them to a description."""
    for element in d.root.all("loop"):
        (first, at), (second, meets) = (_end(element.need(end), d) for end in ("predecessor", "successor"))
        with element.blamed():
            kind = _loop_kind(element)
        d.loops.append(LoopPart(element.require("name"), kind, first, second, at, meets, element))
    for element in d.root.all("coupling"):
        d.couplings.append(_coupling(element, d))
    for joint in d.joints.values():
        mimic = joint.element.find("mimic")
        if mimic is not None:
            d.couplings.append(_mimic(joint, mimic, d))
    read_transmissions(d.root, d)
    for element in d.root.all("spring"):
        d.springs.append((element, _spring(element, d)))
    for element in d.root.all("gazebo"):
        read_gazebo(element, d)


def read_transmissions(root: Element, d: Description) -> None:
    """Adds the transmissions of a file to a description."""
    for element in root.all("transmission"):
        _transmission(element, d)


def _end(element: Element, d: Description) -> tuple[str, Transform]:
    """The link and the place on it that an end of a loop is at."""
    link = element.require("link")
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
    """A coupling in URDF+'s form, by two links and a ratio, or in the general one, by joints."""
    name = element.require("name")
    element.get("type")  # "rolling": the only one there is
    if element.all("joint"):
        return _dependence(element, name, d)
    ratio = element.need("ratio").number("value")
    (first, _), (second, _) = (_end(element.need(end), d) for end in ("predecessor", "successor"))
    return _by_ratio(element, name, d, first, second, ratio)


def _by_ratio(element: Element, name: str, d: Description, first: str, second: str, ratio: float) -> CouplingPart:
    """ratio × (sum of the joints to the first link) = (sum of those to the second), from where they part."""
    to_first, to_second = d.ways(first, second)
    row = {joint.name: ratio for joint in to_first if joint.kind != "fixed"}
    row |= {joint.name: -1.0 for joint in to_second if joint.kind != "fixed"}
    for joint in row:
        _check_single(element, d.joints[joint])
    # The dependent joint is one marked so, the successor's own if it is among them, and never one marked independent.
    order = [joint.name for joint in (*to_second[::-1], *to_first[::-1]) if row.get(joint.name)]
    order.sort(key=lambda joint: {False: 0, None: 1, True: 2}[d.joints[joint].independent])
    if len(row) < 2 or not order or d.joints[order[0]].independent:
        raise element.error(
            f"it must relate two joints or more, and one that is not marked as independent; between {first!r} and "
            f"{second!r} there are {listed(row) or 'none'}"
        )
    dependent = order[0]
    free = [joint for joint in row if joint != dependent]
    G = np.vstack([np.eye(len(free)), [-row[joint] / row[dependent] for joint in free]])
    return CouplingPart(name, [*free, dependent], linear(G), free, element)


def _dependence(element: Element, name: str, d: Description) -> CouplingPart:
    """Joints that each depend on others, linearly or, on a single one, by a polynomial."""
    dependents = element.all("joint")
    free = [own.require("joint") for own in element.all("independent")]
    free += [on.require("joint") for own in dependents for on in own.all("depends_on")]
    free = list(dict.fromkeys(free))
    names = [own.require("name") for own in dependents]
    for own in dependents:
        if not own.all("depends_on"):
            raise own.error("it depends on nothing; write <depends_on joint=... multiplier=...> in it")
    for joint in (*free, *names):
        _check_single(element, _joint_of(element, joint, d))
    terms = [on for own in dependents for on in own.all("depends_on")]
    if any(term.has("polynomial") for term in terms):
        if len(terms) != 1 or len(free) != 1:
            raise element.error("a polynomial gives one joint from one other; write a coupling for each")
        return CouplingPart(
            name, [*free, *names], polynomial(list(terms[0].numbers("polynomial", None))), free, element
        )
    G, offset = np.zeros((len(names), len(free))), np.zeros(len(names))
    for i, own in enumerate(dependents):
        offset[i] = own.number("offset", 0.0)
        for on in own.all("depends_on"):
            G[i, free.index(on.require("joint"))] += on.number("multiplier", 1.0)
            offset[i] += on.number("offset", 0.0)
    function = linear(np.vstack([np.eye(len(free)), G]), [*np.zeros(len(free)), *offset])
    return CouplingPart(name, [*free, *names], function, free, element)


def _mimic(joint: JointPart, mimic: Element, d: Description) -> CouplingPart:
    master = _joint_of(mimic, mimic.require("joint"), d)
    for one in (joint, master):
        _check_single(mimic, one)
    if master is joint:
        raise mimic.error(f"joint {joint.name!r} cannot mimic itself")
    function = linear([[1.0], [mimic.number("multiplier", 1.0)]], [0.0, mimic.number("offset", 0.0)])
    return CouplingPart(d.new_bond(f"{joint.name}_mimic"), [master.name, joint.name], function, [master.name], mimic)


def _joint_of(element: Element, name: str, d: Description) -> JointPart:
    if name not in d.joints:
        raise element.error(f"there is no joint {name!r}; there are {listed(d.joints)}")
    return d.joints[name]


def _check_single(element: Element, joint: JointPart) -> None:
    if joint.kind not in ("revolute", "continuous", "prismatic", "helical", "screw"):
        raise element.error(f"joint {joint.name!r} is {joint.kind}; only joints of one freedom can be coupled")


# Actuators


def _transmission(element: Element, d: Description) -> None:
    """Joints that are driven, with the inertia of their rotors, or that depend on others.

    Where the rotor is, the file does not say: its inertia J behind a reduction n counts as the armature n² J.
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
        for interface in part.all("hardwareInterface", "role", "mechanicalReduction", "offset"):
            interface.ignore()
    for joint in driven:
        joint.actuated = joint.kind != "fixed"
    for actuator in element.all("actuator"):
        actuator.get("name")
        for interface in actuator.all("hardwareInterface", "role"):
            interface.ignore()
        inertia = _rotor(actuator, "rotor_inertia", "rotorInertia", "motorInertia")
        ratio = _rotor(actuator, "gear_ratio", "mechanicalReduction") or _rotor(element, "mechanicalReduction") or 1.0
        if inertia and len(driven) == 1 and driven[0].kind != "fixed":
            driven[0].properties["armature"] = driven[0].properties.get("armature", 0.0) + ratio**2 * inertia
        elif inertia:
            d.left_out["rotor inertia of a transmission with several joints"] += 1


def _rotor(actuator: Element, *tags: str) -> float | None:
    """A figure of an actuator, in the words of ROS or of Drake."""
    for found in actuator.all(*tags, *(f"drake:{tag}" for tag in tags)):
        return found.number("value") if found.has("value") else float(found.values(1)[0])
    return None


def _spring(element: Element, d: Description) -> dict[str, Any]:
    (first, at), (second, meets) = (_end(element.need(end), d) for end in ("predecessor", "successor"))
    figures = {name: element.number(name, 0.0) for name in ("stiffness", "free_length", "pretension", "damping")}
    return {"name": element.require("name"), "first": first, "second": second, "at": at.r, "meets": meets.r} | figures
