"""Actuators in formats that have no words for all of them: an element of ours, the same in URDF and SDFormat.

<actuator name="knee" type="position" effort="-30 30" speed="12" stiffness="100" damping="3">
  <joint name="left_knee" gear="6"/>
</actuator>

Instead of joints it may have a transmission; see transmissions.py.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.io.transmissions import LinkOf, put_transmission, read_transmission
from coupler.io.writing import put
from coupler.io.xml import Element
from coupler.model import Actuator, Robot
from coupler.model.robot_actuators import actuators_of
from coupler.spatial import Transform

_FIGURES = ("effort", "speed", "stiffness", "damping", "control")


def described_actuators(robot: Robot) -> list[Actuator]:
    """The actuators that a file must list; none if all of them are plain motors of joints marked as actuated."""
    return [] if robot.actuators == actuators_of(robot, ()) else list(robot.actuators)


def limits_beyond_joints(robot: Robot, actuator: Actuator) -> dict[str, Any]:
    """The effort and speed limits of an actuator; None for a limit that already follows from its joints."""
    plain = Actuator(actuator.name, actuator.gears, along=actuator.along)
    (joints,) = actuators_of(robot.with_actuators([]), [plain])
    effort = None if actuator.effort == joints.effort else actuator.effort
    return {"effort": effort, "speed": None if actuator.speed == joints.speed else actuator.speed}


def put_actuators(
    root: ET.Element,
    tag: str,
    robot: Robot,
    place: Callable[[str, Transform], Transform] = lambda body, at: at,
) -> None:
    """Writes a robot's actuators as elements with tag `tag`, unless marks at joints are enough to describe them.

    Args:
        place: gives a frame on a body in the frame of its link in the file.
    """
    for actuator in described_actuators(robot):
        element = _put_actuator(root, tag, robot, actuator)
        if actuator.along is not None:
            put_transmission(element, actuator.along, place)


def _put_actuator(root: ET.Element, tag: str, robot: Robot, actuator: Actuator) -> ET.Element:
    figures: dict[str, Any] = {name: getattr(actuator, name) or None for name in ("stiffness", "damping")}
    figures |= limits_beyond_joints(robot, actuator)
    unlimited = Actuator(actuator.name, actuator.gears, along=actuator.along).control
    figures["control"] = None if actuator.control == unlimited else actuator.control
    kind = None if actuator.kind == "motor" else actuator.kind
    element = put(root, tag, name=actuator.name, type=kind, **{name: figures[name] for name in _FIGURES})
    for joint, gear in actuator.gears.items():
        put(element, "joint", name=joint, gear=gear)
    return element


def read_actuator(element: Element, link_of: LinkOf, prefix: str = "") -> dict[str, Any]:
    """The arguments of `RobotBuilder.actuator` for an <actuator>; names of joints get the prefix."""
    along, gears = read_transmission(element, link_of), dict[str, Any]()
    for part in element.all("joint"):
        name = prefix + part.require("name")
        gears[name] = _one_or_many(part.numbers("gear", None, [1.0]))
    figures: dict[str, Any] = {}
    for name in _FIGURES:
        if element.has(name):
            figures[name] = _one_or_many(element.numbers(name, None, finite=False))
    way = gears if along is None else along
    return {"name": prefix + element.require("name"), "gears": way, "kind": element.get("type", "motor")} | figures


def _one_or_many(values: np.ndarray) -> Any:
    return float(values[0]) if len(values) == 1 else values
