"""Contact points in MJCF: sites, which a tuple of ours lists."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from coupler.io.writing import put
from coupler.io.xml import Element
from coupler.model import Robot

__all__ = ["add_contact_points", "contact_points"]

_TUPLE = "coupler_contact_points"


def contact_points(root: Element) -> set[str]:
    """The names of sites that are contact points."""
    tuples = [element for element in root.walk() if element.tag == "tuple" and element.get("name") == _TUPLE]
    return {element.get("objname") or "" for own in tuples for element in own.all("element")}


def add_contact_points(robot: Robot, root: ET.Element) -> None:
    """Lists the sites that are contact points, if there are some."""
    names = [name for body in robot.bodies.values() for name in body.contacts]
    if names:
        custom = root.find("custom")
        listed = put(put(root, "custom") if custom is None else custom, "tuple", name=_TUPLE)
        for name in names:
            put(listed, "element", objtype="site", objname=name)
