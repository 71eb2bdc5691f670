"""What constrains or drives the links of a URDF beyond its tree: loops, couplings, transmissions, springs."""

from __future__ import annotations

from typing import Any

from coupler.io.actuators import read_actuator
from coupler.io.urdf.couplings import read_coupling, read_mimics
from coupler.io.urdf.description import Description
from coupler.io.urdf.gazebo import read_gazebo
from coupler.io.urdf.joints import axes_and_pitch, joint_kind
from coupler.io.urdf.parts import LoopPart
from coupler.io.urdf.transmissions import read_transmissions
from coupler.io.xml import Element
from coupler.model import Held, LoopKind, Rod


def read_constraints(d: Description) -> None:
    """Adds all loops, couplings, transmissions and springs of the file to its description."""
    for element in d.root.all("loop"):
        (first, at), (second, meets) = d.ends(element)
        with element.blamed():
            kind = _loop_kind(element)
        d.loops.append(LoopPart(element.require("name"), kind, first, second, at, meets, element))
    for element in d.root.all("coupling"):
        d.couplings.append(read_coupling(element, d))
    read_mimics(d)
    read_transmissions(d.root, d)
    for element in d.root.all("actuator"):
        d.actuators.append((element, read_actuator(element, d.link)))
    for element in d.root.all("spring"):
        d.springs.append((element, _spring(element, d)))
    dependent = {joint for part in d.couplings for joint in part.joints if joint not in part.independent}
    for element in d.root.all("gazebo"):
        read_gazebo(element, d, dependent)


def _loop_kind(element: Element) -> LoopKind:
    word = element.require("type")
    if word == "rod":
        return Rod(element.need("length").number("value"))
    if word == "held":
        rows = element.all("hold")
        return Held([[*row.numbers("angular", 3, [0.0] * 3), *row.numbers("linear", 3, [0.0] * 3)] for row in rows])
    return joint_kind(word, *axes_and_pitch(element, word), {})


def _spring(element: Element, d: Description) -> dict[str, Any]:
    (first, at), (second, meets) = d.ends(element)
    figures = {name: element.number(name, 0.0) for name in ("stiffness", "free_length", "pretension", "damping")}
    return {"name": element.require("name"), "first": first, "second": second, "at": at.r, "meets": meets.r} | figures
