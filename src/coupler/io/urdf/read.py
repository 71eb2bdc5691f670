"""Reading URDF and URDF+: links, joints, and what coupler adds to them.

URDF describes a tree. URDF+ adds <loop>, <coupling> and independent="true". The other additions are ours; readers that
do not know them see a tree that moves in the same way. docs/files.md lists them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from coupler.grouping import grouped
from coupler.io.contact_pairs import read_contact_pair
from coupler.io.limits import BODIES, KEYFRAMES
from coupler.io.reading import Options, read_keyframe
from coupler.io.urdf.constraints import read_constraints
from coupler.io.urdf.description import Description
from coupler.io.urdf.exclusions import read_exclusions
from coupler.io.urdf.gazebo import read_bullet_friction
from coupler.io.urdf.joints import axes_and_pitch
from coupler.io.urdf.lenient import add_world, mend_inertias, pass_over, rename_ground, warn_of_masses
from coupler.io.urdf.meshes import Resolver
from coupler.io.urdf.origins import origin
from coupler.io.urdf.parts import NO_LIMIT, JointPart, LinkPart
from coupler.io.urdf.shapes import materials_of, shapes_of
from coupler.io.xml import Element
from coupler.model.wording import counted, listed

# The number of joints as which each of these kinds is written.
_PARTS = {"planar": 1, "free": 1, "floating": 1, "universal": 2, "cylindrical": 2, "helical": 2, "spherical": 3}
_PASSIVE = ("damping", "friction", "armature", "stiffness", "rest")


def read_urdf(root: Element, options: Options) -> Description:
    """The content of a URDF file.

    Args:
        root: the root element of the file.
        options: how to read it; of these, `packages` matters here.

    Raises:
        ModelError: for a file that does not describe a tree of links; it names file, line and element.
    """
    if root.tag != "robot":
        raise root.error("a URDF file begins with <robot>")
    for name in root.attributes:
        if name in ("version", "xmlns", "precision") or name.startswith("xmlns:"):
            root.get(name)
    d = Description(root.get("name") or root.file.stem, root)
    materials, resolve = materials_of(root), Resolver(root.file, options.packages)
    for element in root.all("link"):
        name = _new(element, d.links, "link")
        d.links[name] = _link(element)
        d.links[name].shapes = list(shapes_of(element, materials, resolve))
        read_bullet_friction(element, d.links[name])
    if not d.links:
        raise root.error("there is no <link> in it")
    if len(d.links) > BODIES:
        raise root.error(f"it has {len(d.links)} links; a file may have {BODIES}")
    for element in root.all("joint"):
        name = _new(element, d.joints, "joint")
        d.joints[name] = _joint(element, name)
    pass_over(root)
    _merge_chains(d)
    add_world(d)
    rename_ground(d, floating=options.floating)
    d.check_tree()  # what follows needs a tree
    mend_inertias(d)
    warn_of_masses(d)
    read_constraints(d)
    read_exclusions(d)
    d.contact_pairs += [(element, read_contact_pair(element)) for element in root.all("contact_pair")]
    gravity = root.find("gravity")
    if gravity is not None:
        d.gravity = gravity.numbers("xyz", 3)
    keyframes = root.all("keyframe")
    if len(keyframes) > KEYFRAMES:
        raise keyframes[KEYFRAMES].error(f"there are {len(keyframes)} keyframes; a file may have {KEYFRAMES}")
    d.keyframes += [(element, *read_keyframe(element)) for element in keyframes]
    if any(element.tag.startswith("xacro:") for element in root.children):
        d.warnings.append("macros of xacro are not expanded: if you trust the file's author, load it with xacro=True")
    d.left_out += root.unread()
    d.warnings += resolve.warnings()
    if resolve.above is not None:
        d.remarks.append(f"meshes are taken from the package that the file belongs to, {resolve.above}")
    return d


def _new(element: Element, parts: dict[str, Any], what: str) -> str:
    """The name of a new link or joint; a name that another one has is refused."""
    name = element.require("name")
    if name in parts:
        raise element.error(f"there is a {what} of this name already, in line {parts[name].element.line}")
    return name


def _link(element: Element) -> LinkPart:
    role = element.get("as", "body")
    if role not in ("body", "frame", "contact"):
        raise element.error(f"as={role!r} must be 'frame' or 'contact', or be left out for a body")
    link = LinkPart(element, ideal=element.flag("ideal"), role=role)
    inertial = element.find("inertial")
    for stray in element.all("origin"):  # which some exporters write; it has no meaning
        stray.ignore()
    if inertial is None:
        return link
    link.mass = inertial.need("mass").number("value")
    frame = origin(inertial)
    link.centre = frame.r
    moments = inertial.find("inertia")
    if moments is not None:
        ixx, ixy, ixz, iyy, iyz, izz = (
            moments.number(name, None if name[1] == name[2] else 0.0)
            for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        about_centre = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
        link.inertia = frame.E.T @ about_centre @ frame.E
    return link


def _joint(element: Element, name: str) -> JointPart:
    parent, child = (element.need(end).require("link") for end in ("parent", "child"))
    joint = JointPart(name, element.require("type"), parent, child, origin(element), element)
    joint.axes, joint.pitch = axes_and_pitch(element, joint.kind)
    joint.properties = _limits(element) | _passive(element)
    if element.has("independent"):
        joint.independent = element.flag("independent")
    joint.actuated = element.flag("actuated")
    if element.has("start"):
        joint.start = element.numbers("start", None)
    if any(child.tag == "meets" for child in element.children):
        joint.meets = origin(element, "meets")
    if joint.kind == "fixed":
        joint.properties = {}
    return joint


def _limits(element: Element) -> dict[str, Any]:
    """The limits of a joint. Without lower and upper it has none; if one of them is given, the other is zero."""
    limit = element.find("limit")
    if limit is None:
        return {}
    limits = {}
    if limit.has("lower") or limit.has("upper"):
        limits = {"lower": _limit(limit, "lower", 0.0), "upper": _limit(limit, "upper", 0.0)}
    for name in ("velocity", "effort"):
        limits[f"{name}_limit"] = _limit(limit, name, np.inf)
    if element.get("type") in ("continuous", "floating", "spherical", "ball"):
        limits.pop("lower", None)
        limits.pop("upper", None)
    return limits


def _limit(element: Element, name: str, default: float) -> Any:
    values = element.numbers(name, None, [default], finite=False)
    values = np.where(np.abs(values) >= NO_LIMIT, np.copysign(np.inf, values), values)
    return values if len(values) > 1 else values[0]


def _passive(element: Element) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for dynamics in element.all("dynamics", "joint_properties"):
        for name in _PASSIVE:
            if dynamics.has(name):
                values = dynamics.numbers(name, None)
                properties[name] = values if len(values) > 1 or name == "rest" else values[0]
    return properties


# Joints that URDF lacks


def _merge_chains(d: Description) -> None:
    """Merges chains of joints that are written as parts of one joint."""
    parts = [(joint, part) for joint in d.joints.values() if (part := joint.element.find("part")) is not None]
    for name, chain in grouped(parts, lambda pair: pair[1].require("of")).items():
        first, part = chain[0]
        parts = [joint for joint, _ in chain]
        for joint, following in pairwise(parts):
            if joint.child != following.parent:
                raise following.element.error(f"it is a part of joint {name!r}, but does not follow {joint.name!r}")
            if np.any(following.at.r) or np.any(np.eye(3) != following.at.E):
                raise following.element.error(f"it is a part of joint {name!r}, and so must not have an <origin>")
            between = d.links.pop(joint.child, None)
            if between is not None and (between.mass or between.inertia.any() or between.shapes):
                raise between.element.error(
                    f"it lies between parts of joint {name!r}, and so must have neither mass nor shapes"
                )
        kind = part.require("kind")
        if kind not in _PARTS:
            raise part.error(f"a {kind} joint cannot be written in parts; there are {listed(_PARTS)}")
        if len(chain) != _PARTS[kind]:
            raise part.error(
                f"a {kind} joint is made of {_PARTS[kind]} parts, but {name!r} has {counted(len(chain), 'part')}"
            )
        first.properties = _passive(first.element) | {
            word if word in ("lower", "upper") else f"{word}_limit": _limit(part, word, np.inf)
            for word in ("lower", "upper", "velocity", "effort")
            if part.has(word)
        }
        first.axes = [joint.axes[0] for joint in parts]
        first.pitch = part.number("pitch", 0.0)
        last = parts[-1]
        first.name, first.kind, first.child, first.meets = name, kind, last.child, last.meets
        for _, other in chain[1:]:
            other.ignore()
        for mimic in last.element.all("mimic"):  # which tells other readers the pitch of a screw
            mimic.ignore()
        others = [joint for joint in d.joints.values() if joint not in parts[1:]]
        if sum(joint.name == name for joint in others) > 1:
            raise part.error(f"there is a joint {name!r} already")
        d.joints = {joint.name: joint for joint in others}
