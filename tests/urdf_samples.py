"""Links and joints of URDF for tests, and the same for a `RobotBuilder`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from coupler.model import Fixed, Joint, Revolute, RobotBuilder
from coupler.rotation import about_x, about_y, about_z

__all__ = ["AT", "BODY", "FOUR_BAR", "INERTIAL", "PLACE", "TURNED", "add_hinges", "hinges", "joint", "link"]

# A body, and where it may be on another.
INERTIAL = (
    '<inertial><origin xyz="0.1 -0.2 0.05"/><mass value="1.3"/>'
    '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial>'
)
BODY: dict[str, Any] = {"mass": 1.3, "centre": (0.1, -0.2, 0.05), "inertia": (0.02, 0.03, 0.04)}
PLACE = '<origin xyz="0.3 0.1 -0.2" rpy="0.3 -0.5 0.7"/>'
AT, TURNED = (0.3, 0.1, -0.2), about_z(0.7) @ about_y(-0.5) @ about_x(0.3)

# A four-bar across y that a pin between coupler and rocker closes: parent, x, z and turn there of each moving link.
Hinges = Mapping[str, tuple[str, float, float, float]]
FOUR_BAR: dict[str, tuple[str, float, float, float]] = {
    "crank": ("ground", 0.0, 0.0, 1.0),
    "coupler": ("crank", 0.3, 0.0, -0.8),
    "rocker": ("ground", 0.5, 0.1, 1.3),
}


def link(name: str, inside: str = INERTIAL, more: str = "") -> str:
    return f'<link name="{name}" {more}>{inside}</link>\n'


def joint(name: str, kind: str, parent: str, child: str, inside: str = PLACE, more: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}" {more}>{ends}{inside}</joint>\n'


def hinges(links: Hinges, fixed: Collection[str] = ()) -> str:
    """The ground and links on hinges about y, a line each; those that are fixed have no mass."""
    text = link("ground", "")
    for name, (parent, x, z, turn) in links.items():
        place = f'<axis xyz="0 1 0"/><origin xyz="{x} 0 {z}" rpy="0 {turn} 0"/>'
        text += link(name, "" if name in fixed else INERTIAL).rstrip()
        text += joint(f"j_{name}", "fixed" if name in fixed else "revolute", parent, name, place)
    return text


def add_hinges(
    b: RobotBuilder,
    links: Hinges,
    fixed: Collection[str] = (),
    others: Mapping[str, Joint] = {},
    marks: Mapping[str, dict[str, Any]] = {},
) -> None:
    """Adds the links of `hinges` to a builder; some joints may be others, or marked as independent or actuated."""
    for name, (parent, x, z, turn) in links.items():
        b.body(name, **({} if name in fixed else BODY))
        kind = Fixed() if name in fixed else others.get(name, Revolute(axis=(0, 1, 0)))
        b.joint(f"j_{name}", kind, parent, name, (x, 0, z), about_y(turn), **marks.get(name, {}))
