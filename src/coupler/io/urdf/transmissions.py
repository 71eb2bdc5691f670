"""Transmissions of a URDF: which joints have motors, how far these turn, and the inertia of their rotors.

ROS defines, with reductions n of actuators and joints: for one joint, x_a = n x_j; for a differential,
x_a1 = n_a1 (n_j1 x_j1 + n_j2 x_j2) and x_a2 = n_a2 (n_j1 x_j1 − n_j2 x_j2); for a four-bar linkage,
x_a1 = n_a1 n_j1 x_j1 and x_a2 = n_a2 (x_j1 + n_j2 x_j2).
"""

from __future__ import annotations

from typing import Any

from coupler.io.taken_names import TakenNames
from coupler.io.urdf.couplings import SINGLE, dependence_of, joint_of
from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import JointPart
from coupler.io.xml import Element
from coupler.model.wording import clipped, listed


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
            _read_transmission(element, d)
    if absent:
        d.warnings.append(f"transmissions of joints that are not in the file are left out: {listed(absent)}")


def _read_transmission(element: Element, d: Description) -> None:
    """Marks joints as actuated and adds their actuators and armatures; or adds a coupling, if joints depend on others.

    The file does not say where the rotor is: its inertia J behind a reduction n counts as the armature n² J.
    """
    element.get("name")
    element.get("type")
    for kind in element.all("type"):
        kind.ignore()
    parts = element.all("joint")
    if any(part.all("depends_on") for part in parts):
        d.couplings.append(dependence_of(element, d))
        return
    driven = [joint_of(part, part.require("name"), d) for part in parts]
    for part in parts:
        for interface in part.all("hardwareInterface", "role", "offset"):
            interface.ignore()
    if any(_number(part, "mechanicalReduction") == 0.0 for part in (element, *parts, *element.all("actuator"))):
        name = clipped(element.get("name"))
        d.warnings.append(f"transmission {name} has a mechanicalReduction of 0, which is taken as 1")
    for joint in driven:
        joint.actuated = joint.kind != "fixed"
    _add_motors(element, driven, d)
    for actuator in element.all("actuator"):
        actuator.get("name")
        for interface in actuator.all("hardwareInterface", "role"):
            interface.ignore()
        inertia = _number(actuator, "rotor_inertia", "rotorInertia", "motorInertia")
        stated = _number(actuator, "gear_ratio")
        if inertia and len(driven) == 1 and driven[0].kind != "fixed":
            ratio = stated or _reduction(actuator) * _reduction(element) * _reduction(parts[0])
            driven[0].properties["armature"] = driven[0].properties.get("armature", 0.0) + ratio**2 * inertia
        elif inertia:
            d.left_out["rotor inertia of a transmission with several joints"] += 1


def _add_motors(element: Element, driven: list[JointPart], d: Description) -> None:
    """Adds the motors of a transmission. If its type is unknown, each joint gets a motor because it is marked."""
    motors, parts = element.all("actuator"), element.all("joint")
    reductions = [_reduction(part) for part in parts]
    word = (element.get("type") or next((part.word() for part in element.all("type")), "")).lower()
    if not all(joint.kind in SINGLE for joint in driven) or not motors:
        return
    if len(driven) == 1 and len(motors) == 1:
        ratio = _reduction(motors[0]) * _reduction(element) * reductions[0]
        _add_motor(d, element, motors[0], {driven[0].name: ratio})
        return
    if len(driven) != 2 or len(motors) != 2 or driven[0] is driven[1]:
        return
    if "differential" in word or "fourbar" in word.replace("_", "").replace("-", ""):
        order = _by_role(parts, "joint")
        (first, second), (n1, n2) = (driven[i].name for i in order), (reductions[i] for i in order)
        for k, motor in enumerate(motors[i] for i in _by_role(motors, "actuator")):
            n = _reduction(motor)
            if "differential" in word:
                gears = {first: n * n1, second: n * n2 * (1.0 if k == 0 else -1.0)}
            else:
                gears = {first: n * n1} if k == 0 else {first: n, second: n * n2}
            _add_motor(d, element, motor, gears)


def _number(element: Element, *tags: str) -> float | None:
    """A number of a transmission or an actuator, under its name in ROS or in Drake; None if it has none."""
    for part in element.all(*tags, *(f"drake:{tag}" for tag in tags)):
        return part.value()
    return None


def _reduction(element: Element) -> float:
    """The reduction of a transmission, or of a joint or an actuator in it; 1 if it has none, or zero."""
    return _number(element, "mechanicalReduction") or 1.0


def _by_role(parts: list[Element], role: str) -> tuple[int, int]:
    """The indices of the first and the second part, by their roles, or else by their order."""
    roles = [next((element.word() for element in part.all("role")), "") for part in parts]
    return (1, 0) if roles == [f"{role}2", f"{role}1"] else (0, 1)


def _add_motor(d: Description, element: Element, motor: Element, gears: dict[str, Any]) -> None:
    taken = TakenNames(actuator["name"] for _, actuator in d.actuators)
    name = taken.new(motor.get("name") or element.get("name") or next(iter(gears)))
    d.actuators.append((element, {"name": name, "gears": gears}))
