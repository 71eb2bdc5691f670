"""What a URDF says in <gazebo>, in the words of SDFormat: joints that close loops, gearboxes, friction of links.

The frame of an SDF joint is given on its child. On the parent it is where the child's is when all joints are at zero.
"""

from __future__ import annotations

import numpy as np

from coupler.io.gearboxes import Passed, gearbox
from coupler.io.sdf.elements import NO_LIMIT
from coupler.io.sdf.joints import pitch_of
from coupler.io.urdf.description import Description
from coupler.io.urdf.joints import joint_kind
from coupler.io.urdf.origins import rotation_of
from coupler.io.urdf.parts import CouplingPart, JointPart, LinkPart, LoopPart
from coupler.io.xml import Element
from coupler.rotation import unit
from coupler.spatial import Transform

# These do not change the motion: looks, names, and how other simulators soften contacts, limits and springs.
_IGNORED = (
    *("material", "visual", "sensor", "plugin", "laserRetro", "canonicalBody", "disableFixedJointLumping"),
    *("kp", "kd", "fdir1", "maxVel", "minDepth", "maxContacts", "provideFeedback", "preserveFixedJoint"),
    *("stopKp", "stopKd", "stopCfm", "stopErp", "cfmDamping", "fudgeFactor", "implicitSpringDamper"),
    *("selfCollide", "self_collide"),  # links may touch here in any case
)
_OFF, _ON = ("", "0", "false"), ("1", "true")
_USUAL = {  # switches that do not change the motion either, as long as they have these values
    **dict.fromkeys(("static", "turnGravityOff", "kinematic", "enable_wind"), _OFF),
    "gravity": _ON,
}
_SOFT = ("stiffness", "damping", "contact_cfm", "contact_erp", "inertia_scaling", "friction_anchor")
_HARD = ("restitution", "rolling_friction", "spinning_friction")
_STICKS = 1000.0  # files give coefficients up to 1e14 to what never slides; such numbers would cost digits


def read_gazebo(element: Element, d: Description, dependent: set[str]) -> None:
    """Adds what a <gazebo> element describes: joints as loops or couplings, and the friction of its link.

    Args:
        dependent: joints that depend on others already; dependent joints of gearboxes are added.
    """
    link = d.links.get(d.renamed.get(element.get("reference"), element.get("reference")))
    for part in element.children:
        usual = _USUAL.get(part.tag, ())
        if part.tag in _IGNORED or (part.get("value") or part.word()).lower() in usual:
            part.ignore()
    if link is not None:
        _set_friction(link, [part for part in element.children if part.tag in ("mu1", "mu2", "mu")])
    for joint in element.all("joint"):
        if joint.get("type") == "gearbox":
            d.couplings.append(_gearbox(joint, d, dependent))
        else:
            d.loops.append(_loop(joint, d))


def _set_friction(link: LinkPart, parts: list[Element]) -> None:
    """Gives a link's collisions the first friction coefficient; others stay unread, and so are reported as left out."""
    given = [(part, value) for part in parts if _has_number(part) and (value := part.value()) >= 0.0]
    for part, value in given:
        if value == given[0][1]:
            part.ignore()
    for shape in link.shapes if given else ():
        if shape.get("group", 1) or shape.get("meets", 1):
            shape.setdefault("friction", min(given[0][1], _STICKS))


def _has_number(element: Element) -> bool:
    return element.has("value") or bool(element.word())


def read_bullet_friction(element: Element, link: LinkPart) -> None:
    """Reads the friction that Bullet's <contact> gives a link. Softness is ignored, and restitution left out."""
    for contact in element.all("contact"):
        _set_friction(link, [part for part in contact.children if part.tag == "lateral_friction"])
        for part in contact.children:
            if part.tag in _SOFT or (part.tag in _HARD and not (_has_number(part) and part.value())):
                part.ignore()


def _gearbox(element: Element, d: Description, dependent: set[str]) -> CouplingPart:
    ends = {end: _link(element, end, d) for end in ("parent", "child")}
    ends["reference"] = d.link(element.need("gearbox_reference_body").word(), element)
    to_joint = _on_child(element) @ d.zero_pose(ends["child"])
    parts = element.need("axis"), element.find("axis2") or element.need("axis")
    axes = [to_joint.E.T @ _axis(axis, to_joint) for axis in parts]
    if not all(axis.any() for axis in axes):
        raise element.error("its axes must have a direction")

    def rank(joint: str) -> int | None:
        """Sort key to choose the dependent joint: one that is marked so first, then any that is not marked."""
        if joint in dependent or d.joints[joint].independent:
            return None
        return 0 if d.joints[joint].independent is False else 1

    def ways(first: str, last: str) -> tuple[list[Passed], list[Passed]]:
        to_first, to_last = d.paths(first, last)
        return [_passed(joint, d) for joint in to_first], [_passed(joint, d) for joint in to_last]

    joints, function, independent = gearbox(element, ends, [unit(axis) for axis in axes], ways, rank)
    dependent |= {joint for joint in joints if joint not in independent and independent}
    return CouplingPart(element.require("name"), joints, function, independent, element)


def _passed(joint: JointPart, d: Description) -> Passed:
    axis = d.zero_pose(joint.child).E.T @ joint.axes[0]
    return Passed(joint.name, joint.kind, unit(axis))


def _loop(element: Element, d: Description) -> LoopPart:
    parent, child = (_link(element, end, d) for end in ("parent", "child"))
    on_child = _on_child(element)
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


def _on_child(element: Element) -> Transform:
    """The transform from a joint's child to the joint's frame."""
    pose = element.find("pose")
    if pose is None:
        return Transform.identity()
    if pose.get("relative_to"):
        raise pose.error("relative_to is not supported; give the pose in the frame of the joint's child")
    values = pose.values(6)
    return Transform(rotation_of(values[3:]).T, values[:3])


def _link(element: Element, end: str, d: Description) -> str:
    part = element.need(end)
    return d.link(part.get("link") or part.word(), part)


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
