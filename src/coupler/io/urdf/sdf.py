"""Loop joints that are written as SDF in the <gazebo> element of a URDF.

The frame of an SDF joint is given on its child. On the parent it is where the child's is when all joints are at zero.
"""

from __future__ import annotations

import numpy as np

from coupler.io.sdf.elements import NO_LIMIT
from coupler.io.sdf.joints import pitch_of
from coupler.io.urdf.description import Description
from coupler.io.urdf.joints import joint_kind
from coupler.io.urdf.origins import rotation_of
from coupler.io.urdf.parts import LoopPart
from coupler.io.xml import Element
from coupler.model.wording import listed
from coupler.spatial import Transform

__all__ = ["read_gazebo"]

# Without influence on the motion, or switched off, as they are by default.
_APPEARANCE = ("material", "visual", "sensor", "plugin")
_SWITCHES = (
    "selfCollide",
    "static",
    "turnGravityOff",
    "implicitSpringDamper",
    "provideFeedback",
    "disableFixedJointLumping",
)


def read_gazebo(element: Element, d: Description) -> None:
    """Adds the joints in a <gazebo> element to a description, as loops."""
    element.get("reference")
    for appearance in element.all(*_APPEARANCE):
        appearance.ignore()
    for switch in element.children:
        if switch.tag in _SWITCHES and switch.word().lower() in ("", "0", "false"):
            switch.ignore()
    for joint in element.all("joint"):
        d.loops.append(_loop(joint, d))


def _loop(element: Element, d: Description) -> LoopPart:
    parent, child = (_link(element, end, d) for end in ("parent", "child"))
    pose = element.find("pose")
    on_child = Transform.identity()
    if pose is not None:
        if pose.get("relative_to"):
            raise pose.error("relative_to is not supported; give the pose in the frame of the joint's child")
        values = pose.values(6)
        on_child = Transform(rotation_of(values[3:]).T, values[:3])
    X_child, X_parent = d.zero_pose(child), d.zero_pose(parent)
    on_parent = on_child @ X_child @ X_parent.inverse()
    axes = [_axis(axis, on_child @ X_child) for tag in ("axis", "axis2") for axis in element.all(tag)]
    with element.blamed():
        kind = joint_kind(
            element.require("type"),
            axes or [np.array([0.0, 0.0, 1.0])],
            pitch_of(element) if element.get("type") == "screw" else 0.0,
            {},
        )
    return LoopPart(element.require("name"), kind, parent, child, on_parent, on_child, element)


def _link(element: Element, end: str, d: Description) -> str:
    part = element.need(end)
    name = part.get("link") or part.word()
    if name not in d.links:
        raise part.error(f"there is no link {name!r}; there are {listed(d.links)}")
    return name


def _axis(element: Element, to_joint: Transform) -> np.ndarray:
    """The direction of an axis in the joint's frame; `to_joint` transforms from the model's frame to it."""
    xyz = element.need("xyz")
    direction = xyz.values(3)
    frame = xyz.get("expressed_in")
    if frame not in ("", "__model__"):
        raise xyz.error(
            f"expressed_in={frame!r} is not supported; give the axis in the joint's frame or in '__model__'"
        )
    in_model_frame = frame == "__model__"
    for flag in element.all("use_parent_model_frame"):
        in_model_frame = in_model_frame or flag.word().lower() in ("1", "true")
    for figures in element.all("limit", "dynamics"):
        for figure in figures.children:
            if _has_no_effect(figure):
                figure.ignore()
    return to_joint.E @ direction if in_model_frame else direction


def _has_no_effect(figure: Element) -> bool:
    """Whether a figure is an infinite limit or a zero force. Other figures of a loop joint are reported as left out."""
    if not figure.word():
        return True
    value = float(figure.values(1)[0])
    if figure.tag in ("lower", "upper", "effort", "velocity"):
        return abs(value) >= NO_LIMIT or (value < 0.0 and figure.tag in ("effort", "velocity"))
    return value == 0.0
