"""Loop joints that are written as SDF inside a URDF's <gazebo>.

An SDF joint has its frame on its child, where the child is when all joints are at zero; there the parent meets it.
"""

from __future__ import annotations

import numpy as np

from coupler.io.urdf.description import Description
from coupler.io.urdf.joints import joint_kind
from coupler.io.urdf.parts import LoopPart
from coupler.io.urdf.places import rotation_of
from coupler.io.xml import Element
from coupler.model.words import listed
from coupler.spatial import Transform

__all__ = ["read_gazebo"]

# Without meaning for motion, or switched off as they are by default.
_LOOKS = ("material", "visual", "sensor", "plugin")
_SWITCHES = (
    "selfCollide",
    "static",
    "turnGravityOff",
    "implicitSpringDamper",
    "provideFeedback",
    "disableFixedJointLumping",
)


def read_gazebo(element: Element, d: Description) -> None:
    """Adds the joints in a <gazebo> to a description as loops."""
    element.get("reference")
    for looks in element.all(*_LOOKS):
        looks.ignore()
    for switch in element.children:
        if switch.tag in _SWITCHES and switch.word().lower() in ("", "0", "false"):
            switch.ignore()
    for joint in element.all("joint"):
        d.loops.append(_loop(joint, d))


def _loop(element: Element, d: Description) -> LoopPart:
    parent, child = (_link(element, end, d) for end in ("parent", "child"))
    pose = element.find("pose")
    frame = Transform.identity()
    if pose is not None:
        if pose.get("relative_to"):
            raise pose.error("relative_to is not read; give the pose in the frame of the joint's child")
        values = pose.values(6)
        frame = Transform(rotation_of(values[3:]).T, values[:3])
    on_child = frame
    # The joint's frame, on its child at zero, seen from the parent there.
    X_child, X_parent = d.zero_pose(child), d.zero_pose(parent)
    on_parent = on_child @ X_child @ X_parent.inverse()
    axes = [_axis(axis, on_child @ X_child) for tag in ("axis", "axis2") for axis in element.all(tag)]
    with element.blamed():
        kind = joint_kind(element.require("type"), axes or [np.array([0.0, 0.0, 1.0])], _pitch(element), {})
    return LoopPart(element.require("name"), kind, parent, child, on_parent, on_child, element)


def _pitch(element: Element) -> float:
    """The pitch of a screw, m/rad: SDF gives metres a turn, or formerly radians a metre of a left-handed one."""
    turn, formerly = element.find("screw_thread_pitch"), element.find("thread_pitch")
    if turn is not None:
        return float(turn.values(1)[0]) / (2.0 * np.pi)
    if formerly is None:
        return 0.0
    value = float(formerly.values(1)[0])
    if value == 0.0:
        raise formerly.error("it must not be zero")
    return -1.0 / value


def _link(element: Element, end: str, d: Description) -> str:
    part = element.need(end)
    name = part.get("link") or part.word()
    if name not in d.links:
        raise part.error(f"there is no link {name!r}; there are {listed(d.links)}")
    return name


def _axis(element: Element, to_joint: Transform) -> np.ndarray:
    """The direction of an axis in the joint's frame; to_joint leads there from the model's frame."""
    xyz = element.need("xyz")
    direction = xyz.values(3)
    frame = xyz.get("expressed_in")
    if frame not in ("", "__model__"):
        raise xyz.error(f"expressed_in={frame!r} is not read; give the axis in the joint's frame or in '__model__'")
    model = frame == "__model__"
    for flag in element.all("use_parent_model_frame"):
        model = model or flag.word().lower() in ("1", "true")
    for figures in element.all("limit", "dynamics"):
        for figure in figures.children:
            if _says_nothing(figure):
                figure.ignore()
    return to_joint.E @ direction if model else direction


def _says_nothing(figure: Element) -> bool:
    """Limits beyond all bounds, and forces of zero; others are left out of a loop's joint, and told."""
    if not figure.word():
        return True
    value = float(figure.values(1)[0])
    if figure.tag in ("lower", "upper", "effort", "velocity"):
        return abs(value) >= 1e15 or (value < 0.0 and figure.tag in ("effort", "velocity"))
    return value == 0.0
