"""Pairs of shapes that touch by name, in formats without a word for them: an element of ours in URDF and SDFormat.

<contact_pair first="left_pad" second="box" friction="1.5" torsion="0.01" rolling="0.001"/>
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from coupler.io.writing import put
from coupler.io.xml import Element
from coupler.model import Robot


def put_contact_pairs(root: ET.Element, tag: str, robot: Robot) -> None:
    """Writes the contact pairs of a robot as elements with tag `tag`."""
    for pair in robot.contact_pairs:
        put(root, tag, **vars(pair))


def read_contact_pair(element: Element) -> dict[str, Any]:
    """The arguments of `RobotBuilder.contact_pair` for an element."""
    pair: dict[str, Any] = {name: element.require(name) for name in ("first", "second")}
    pair["friction"] = element.number("friction")
    return pair | {name: element.number(name) for name in ("torsion", "rolling") if element.has(name)}
