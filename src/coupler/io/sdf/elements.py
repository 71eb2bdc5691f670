"""Elements of SDFormat: values stand in the text of children, and most of them may be left out."""

from __future__ import annotations

import numpy as np

from coupler.io.urdf.origins import NOISE, rotation_of, turned_by
from coupler.io.xml import Element
from coupler.spatial import Transform

NAMESPACE = "coupler"  # the prefix of what SDFormat lacks; other readers pass over elements and attributes with one
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
PATCH = 3.0 * np.pi / 16.0  # the moment of friction of a round patch that spins, over its radius and its friction
NO_LIMIT = 1e15  # m, rad, N or N m: SDF writers put 1e16 where there is no limit
_TRUTH = {"true": True, "1": True, "false": False, "0": False, "": False}
_TURN = 4 * NOISE  # entries of a rotation: what products of rotations leave instead of 0 and ±1


def number_of(element: Element, tag: str, default: float) -> float:
    """The number in a child; the default if there is none, or nothing in it."""
    child = element.find(tag)
    return default if child is None or not child.word() else float(child.values(1)[0])


def limit_of(element: Element, tag: str, none: float) -> float:
    """A limit in a child; `none`, an infinite number, if the limit is missing or beyond reach."""
    child = element.find(tag)
    if child is None or not child.word():
        return none
    value = float(child.values(1, finite=False)[0])
    return float(np.copysign(np.inf, value)) if abs(value) >= NO_LIMIT else value


def truth_of(element: Element, tag: str, default: bool = False) -> bool:
    """The truth value in a child; the default if there is none."""
    child = element.find(tag)
    if child is None:
        return default
    value = _TRUTH.get(child.word().lower())
    if value is None:
        raise child.error(f"it must be true or false, got {child.word()!r}")
    return value


def word_of(element: Element, tag: str) -> str:
    """The text in a child; empty if there is none."""
    child = element.find(tag)
    return "" if child is None else child.word()


def name_in_robot(element: Element) -> str:
    """The name of a part in the robot, which coupler notes in the file where SDFormat needs another name, or any."""
    name = element.get("name")
    if element.flag(f"{NAMESPACE}:unnamed"):
        return ""
    return element.get(f"{NAMESPACE}:name") or name


def pose_of(element: Element) -> tuple[Transform, str]:
    """The <pose> of an element: the transform to it, and the name of the frame that it starts from, if one is given.

    Up to SDFormat 1.6, `relative_to` was called `frame`.
    """
    pose = element.find("pose")
    if pose is None:
        return Transform.identity(), ""
    base, old = pose.get("relative_to"), pose.get("frame")
    form, degrees = pose.get("rotation_format", "euler_rpy"), pose.flag("degrees")
    if form not in ("euler_rpy", "quat_xyzw"):
        raise pose.error(f"its rotation_format must be 'euler_rpy' or 'quat_xyzw', got {form!r}")
    if not pose.word():
        return Transform.identity(), base or old
    values = pose.values(7 if form == "quat_xyzw" else 6)
    if form == "quat_xyzw":
        R = turned_by(values[3:], pose)
    else:
        R = rotation_of(np.deg2rad(values[3:]) if degrees else values[3:])
    return cleaned(Transform(R.T, values[:3])), base or old


def cleaned(X: Transform) -> Transform:
    """A transform with entries near 0 and ±1 made exact, so that programs can fold them."""
    E = np.where(np.abs(X.E) < _TURN, 0.0, X.E)
    E = np.where(np.abs(np.abs(E) - 1.0) < _TURN, np.sign(E), E)
    return Transform(E, np.where(np.abs(X.r) < NOISE, 0.0, X.r))
