"""Motors of transmissions in a URDF: how far they turn by unit of their joints' positions.

As ROS has it, with reductions n of actuators and joints: of one joint, x_a = n x_j; of a differential,
x_a1 = n_a1 (n_j1 x_j1 + n_j2 x_j2) and x_a2 = n_a2 (n_j1 x_j1 − n_j2 x_j2); of a linkage of four bars,
x_a1 = n_a1 n_j1 x_j1 and x_a2 = n_a2 (x_j1 + n_j2 x_j2).
"""

from __future__ import annotations

from typing import Any

from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import JointPart
from coupler.io.xml import Element

_SINGLE = ("revolute", "continuous", "prismatic", "helical", "screw")


def actuator_number(element: Element, *tags: str) -> float | None:
    """A number of an actuator, under its name in ROS or in Drake."""
    for part in element.all(*tags, *(f"drake:{tag}" for tag in tags)):
        return part.number("value") if part.has("value") else float(part.values(1)[0])
    return None


def read_motors(element: Element, driven: list[JointPart], d: Description) -> None:
    """Adds the motors of a transmission, where it is one of these; otherwise each joint has one, as it is marked."""
    motors, parts = element.all("actuator"), element.all("joint")
    reductions = [_reduction(part) for part in parts]
    word = (element.get("type") or next((part.word() for part in element.all("type")), "")).lower()
    if not all(joint.kind in _SINGLE for joint in driven) or not motors:
        return
    if len(driven) == 1 and len(motors) == 1:
        ratio = _reduction(motors[0]) * _reduction(element) * reductions[0]
        _add(d, element, motors[0], {driven[0].name: ratio})
        return
    if len(driven) != 2 or len(motors) != 2 or driven[0] is driven[1]:
        return
    if "differential" in word or "fourbar" in word.replace("_", "").replace("-", ""):
        first, second = _by_role(parts, "joint")
        names, n = [driven[i].name for i in (first, second)], [reductions[i] for i in (first, second)]
        ordered = [motors[i] for i in _by_role(motors, "actuator")]
        linkage = "differential" not in word
        for k, motor in enumerate(ordered):
            own = _reduction(motor)
            if linkage:
                gears = {names[0]: own * n[0]} if k == 0 else {names[0]: own, names[1]: own * n[1]}
            else:
                gears = {names[0]: own * n[0], names[1]: own * n[1] * (1.0 if k == 0 else -1.0)}
            _add(d, element, motor, gears)


def _reduction(element: Element) -> float:
    """The reduction that an element of a transmission has; 1 if it has none, or one that cannot be."""
    for part in element.all("mechanicalReduction"):
        ratio = part.number("value") if part.has("value") else float(part.values(1)[0])
        return ratio or 1.0
    return 1.0


def _by_role(parts: list[Element], role: str) -> tuple[int, int]:
    """The numbers of the first and the second part, by their roles, or else in their order."""
    words = [next((own.word() for own in part.all("role")), "") for part in parts]
    return (1, 0) if words == [f"{role}2", f"{role}1"] else (0, 1)


def _add(d: Description, element: Element, motor: Element, gears: dict[str, Any]) -> None:
    taken = {given["name"] for _, given in d.actuators}
    name = motor.get("name") or element.get("name") or next(iter(gears))
    while name in taken:
        name += "_"
    d.actuators.append((element, {"name": name, "gears": gears}))
