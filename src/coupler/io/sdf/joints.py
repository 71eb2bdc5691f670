"""SDFormat's words for joints: one table, by which they are read and written; and what stands in their axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coupler.io.sdf.elements import NAMESPACE, limit_of, number_of
from coupler.io.urdf.origins import NOISE
from coupler.io.xml import Element
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Helical,
    Joint,
    ModelError,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from coupler.rotation import about_axis, quaternion_conjugate, unit
from coupler.spatial import Transform

# The word that is written for each kind of joint, and the names of its axes. A piston turns as well; none is written.
JOINTS: Mapping[type[Joint], tuple[str, tuple[str, ...]]] = {
    Revolute: ("revolute", ("axis",)),
    Continuous: ("continuous", ("axis",)),
    Prismatic: ("prismatic", ("axis",)),
    Helical: ("screw", ("axis",)),
    Universal: ("universal", ("first", "second")),
    Spherical: ("ball", ()),
    Fixed: ("fixed", ()),
}
_READ = {word: kind for kind, (word, _) in JOINTS.items()} | {"revolute2": Universal, "piston": Cylindrical}

# Properties of joints and what they are called in <coupler:properties>.
LISTS = {
    "lower": "lower",
    "upper": "upper",
    "velocity": "velocity_limit",
    "effort": "effort_limit",
    "damping": "damping",
    "friction": "friction",
    "stiffness": "stiffness",
    "rest": "rest",
    "armature": "armature",
}
# Defaults of the properties of an axis; a property that no axis changes is left out.
_DEFAULTS = {
    "lower": -np.inf,
    "upper": np.inf,
    "velocity_limit": np.inf,
    "effort_limit": np.inf,
    "damping": 0.0,
    "friction": 0.0,
    "stiffness": 0.0,
    "rest": 0.0,
}
_STOP = {"stiffness": 1e8, "dissipation": 1.0}  # of joint stops, as files have them that do not care


@dataclass(frozen=True, eq=False)
class Motion:
    """The motion of a joint, before it is known whether the joint belongs to the tree or closes a loop.

    Attributes:
        word: the joint's type in the file.
        axes: directions in the joint's frame.
        pitch: the pitch of a screw, m/rad.
        properties: arguments of `Joint`.
        position: the joint's position in the pose that the file describes; neutral if None.
        independent, actuated: marks.
    """

    word: str
    axes: list[np.ndarray] = field(default_factory=list)
    pitch: float = 0.0
    properties: dict[str, Any] = field(default_factory=dict)
    position: np.ndarray | None = None
    independent: bool = False
    actuated: bool = False

    @property
    def freedoms(self) -> int:
        return _READ[self.word].nv

    def kind(self, *, plain: bool = False) -> Joint:
        """The kind of joint for this motion; if `plain`, without its properties."""
        kind, properties = _READ[self.word], {} if plain else self.properties
        if kind is Universal:
            return Universal(first=self.axes[0], second=self.axes[1], **properties)
        if kind is Helical:
            return Helical(axis=self.axes[0], pitch=self.pitch, **properties)
        return kind(**({"axis": self.axes[0]} if self.axes else {}), **properties)

    def turned_round(self) -> Motion:
        """This motion with parent and child swapped: how the parent moves as the child sees it, at equal positions."""
        axes, properties, position = [-axis for axis in reversed(self.axes)], self.properties, self.position
        if len(axes) == 2:
            properties = {name: value[::-1] if np.ndim(value) else value for name, value in properties.items()}
            position = None if position is None else position[::-1]
        elif position is not None and len(position) == 4:
            position = quaternion_conjugate(position)
        return replace(self, axes=axes, properties=properties, position=position)


def read_motion(element: Element, axes: list[np.ndarray]) -> Motion:
    """Reads how a joint moves.

    Args:
        element: the <joint>.
        axes: directions of <axis> and <axis2> in the joint's frame.
    """
    word = element.require("type")
    if word not in _READ:
        raise ModelError(f"there is no joint type {word!r}; there are {', '.join(_READ)} and gearbox")
    kind = _READ[word]
    used = 0 if kind in (Fixed, Spherical) else 2 if kind is Universal else 1
    given = [
        _figures(axis, kind) for tag in ("axis", "axis2")[: max(used, kind is Spherical)] for axis in element.all(tag)
    ]
    properties: dict[str, Any] = {}
    if kind is Cylindrical:
        given = [{}, *given]  # a piston's figures are those of its shift
    for name, default in _DEFAULTS.items():
        values = [figures.get(name, default) for figures in given]
        if any(value != default for value in values):
            values += [default] * (kind.nv - len(values))
            properties[name] = np.array(values) if kind.nv == 2 else values[0]
    motion = Motion(word, axes[:used], pitch_of(element) if kind is Helical else 0.0, properties)
    if kind is Fixed:
        for axis in element.all("axis", "axis2"):
            axis.ignore()
        return motion
    return _with_extras(motion, element, kind)


def _figures(axis: Element, kind: type[Joint]) -> dict[str, float]:
    """Limits and passive properties about an axis."""
    figures: dict[str, float] = {}
    limit, dynamics = axis.find("limit"), axis.find("dynamics")
    if limit is not None:
        for name, none in (("effort", np.inf), ("velocity", np.inf)):
            value = limit_of(limit, name, none)
            figures[f"{name}_limit"] = value if value >= 0.0 else np.inf  # negative means none
        if kind in (Spherical, Continuous):
            for part in limit.all("lower", "upper"):
                part.ignore()
        else:
            figures |= {"lower": limit_of(limit, "lower", -np.inf), "upper": limit_of(limit, "upper", np.inf)}
        for name, usual in _STOP.items():
            number_of(limit, name, usual)  # what a stop is made of matters little, and nothing here has a word for it
    if dynamics is not None:
        figures["damping"], figures["friction"] = (number_of(dynamics, name, 0.0) for name in ("damping", "friction"))
        if kind is not Spherical:
            figures["stiffness"] = number_of(dynamics, "spring_stiffness", 0.0)
            figures["rest"] = number_of(dynamics, "spring_reference", 0.0)
    if not figures.get("stiffness"):
        figures.pop("rest", None)
    return figures


def _with_extras(motion: Motion, element: Element, kind: type[Joint]) -> Motion:
    """The motion with what <coupler:properties> adds to SDFormat, and with the rotor of Drake's elements."""
    properties = dict(motion.properties)
    rotor, ratio = (element.find(f"drake:{name}") for name in ("rotor_inertia", "gear_ratio"))
    if rotor is not None and kind.nv == 1:
        reduction = 1.0 if ratio is None else float(ratio.values(1)[0])
        properties["armature"] = reduction**2 * float(rotor.values(1)[0])
    extras = element.find(f"{NAMESPACE}:properties")
    if extras is None:
        return replace(motion, properties=properties)
    position = extras.numbers("position", kind.nq) if extras.has("position") else None
    if position is not None and kind.nq == kind.nv:  # the file's limits and springs count from the posed position
        for name in ("lower", "upper", "rest"):
            if name in properties or (name == "rest" and "stiffness" in properties):
                properties[name] = properties.get(name, 0.0) + (position if kind.nv > 1 else position[0])
    properties |= read_lists(extras)
    axes = motion.axes
    if kind is Universal and position is not None and axes[1].any():  # the file has the first axis as the child sees it
        axes = [about_axis(unit(axes[1]), position[1]) @ axes[0], axes[1]]
    return replace(
        motion,
        axes=axes,
        properties=properties,
        position=position,
        independent=extras.flag("independent"),
        actuated=extras.flag("actuated"),
    )


def read_lists(extras: Element) -> dict[str, Any]:
    """Properties of a joint that are given as attributes, one number or one for each freedom."""
    given = {name: extras.numbers(word, None, finite=False) for word, name in LISTS.items() if extras.has(word)}
    return {name: values if len(values) > 1 or name == "rest" else values[0] for name, values in given.items()}


def axis_of(axis: Element, version: tuple[int, int], joint: Transform, find: Any) -> np.ndarray:
    """The direction of an axis in the joint's frame.

    Args:
        axis: the <axis> or <axis2>.
        version: the file's version. Before 1.5 axes are given in the model's frame, and up to 1.6 they may be.
        joint: transform from the world to the joint.
        find: returns the transform from the world to a frame, given the frame's name.
    """
    xyz = axis.find("xyz")
    direction = np.array([0.0, 0.0, 1.0]) if xyz is None or not xyz.word() else xyz.values(3)
    frame = "" if xyz is None else xyz.get("expressed_in")
    for flag in axis.all("use_parent_model_frame"):
        frame = frame or ("__model__" if flag.word().lower() in ("1", "true") else "")
    if version < (1, 5) and not axis.all("use_parent_model_frame"):
        frame = frame or "__model__"
    if frame:
        direction = joint.E @ find(frame).E.T @ direction
    return np.where(np.abs(direction) < NOISE * np.abs(direction).max(), 0.0, direction)


def pitch_of(element: Element) -> float:
    """The pitch of a screw, m/rad; SDF gives it in metres per turn, or formerly in radians per metre, left-handed."""
    current, deprecated = element.find("screw_thread_pitch"), element.find("thread_pitch")
    if current is not None or deprecated is None:
        return (1.0 if current is None else float(current.values(1)[0])) / (2.0 * np.pi)
    value = float(deprecated.values(1)[0])
    if value == 0.0:
        raise deprecated.error("it must not be zero")
    return -1.0 / value
