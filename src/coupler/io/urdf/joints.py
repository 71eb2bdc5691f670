"""URDF's words for joints: one table, by which they are read and written.

Joints that URDF lacks are written as chains of joints that it has; <part> elements say which chain is one joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.io.xml import Element
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Held,
    Helical,
    Joint,
    LoopKind,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)


@dataclass(frozen=True)
class Words:
    """How a kind of joint or loop is written in a file.

    Attributes:
        types: the names of its type; any of them is read.
        steps: the URDF joints that it is written as, each with an axis: the name of an attribute, or a direction.
        numbers: names of its attributes that are numbers, besides its axes.
    """

    types: tuple[str, ...]
    steps: tuple[tuple[str, Any], ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def axes(self) -> list[str]:
        """Names of the attributes that are its axes."""
        return list(dict.fromkeys(axis for _, axis in self.steps if isinstance(axis, str)))


JOINTS: Mapping[type[Joint], Words] = {
    Revolute: Words(("revolute",), (("revolute", "axis"),)),
    Continuous: Words(("continuous",), (("continuous", "axis"),)),
    Prismatic: Words(("prismatic",), (("prismatic", "axis"),)),
    Fixed: Words(("fixed",), (("fixed", None),)),
    Free: Words(("floating", "free"), (("floating", None),)),
    Planar: Words(("planar",), (("planar", "normal"),)),
    Spherical: Words(("spherical", "ball"), tuple(("continuous", axis) for axis in np.eye(3))),
    Universal: Words(("universal",), (("continuous", "first"), ("continuous", "second"))),
    Cylindrical: Words(("cylindrical",), (("continuous", "axis"), ("prismatic", "axis"))),
    Helical: Words(("helical", "screw"), (("continuous", "axis"), ("prismatic", "axis")), ("pitch",)),
}
LOOPS: Mapping[type[LoopKind], Words] = {**JOINTS, Rod: Words(("rod",), numbers=("length",)), Held: Words(("held",))}

_CLASSES = {word: kind for kind, words in JOINTS.items() for word in words.types}


def joint_kind(word: str, axes: list[np.ndarray], pitch: float, properties: dict[str, Any]) -> Joint:
    """A joint from URDF's word for it, its axes and its properties."""
    if word not in _CLASSES:
        *first, last = (words.types[0] for words in JOINTS.values())
        raise ModelError(f"there is no joint type {word!r}; there are {', '.join(first)} and {last}")
    kind = _CLASSES[word]
    if kind is Fixed:
        return Fixed()
    words = JOINTS[kind]
    directions = dict(zip(words.axes, [*axes, *np.eye(3)[len(axes) :]], strict=False))
    return kind(**directions, **dict.fromkeys(words.numbers, pitch), **properties)


def axes_and_pitch(element: Element, word: str) -> tuple[list[np.ndarray], float]:
    """The axes of a kind of joint (by default x, and y for the second), and the pitch of a screw."""
    words = JOINTS[_CLASSES[word]] if word in _CLASSES else Words(())
    given = [element.find(tag) for tag in ("axis", "axis2")[: max(1, len(words.axes))]]
    default = np.eye(3)
    axes = [default[i] if axis is None else axis.numbers("xyz", 3) for i, axis in enumerate(given)]
    pitch = element.find("pitch") if "pitch" in words.numbers else None
    return axes, 0.0 if pitch is None else pitch.number("value")


def steps_of(kind: Joint) -> list[tuple[str, Any]]:
    """A joint as one URDF joint or several in a row: their types and axes."""
    steps = [(word, getattr(kind, axis) if isinstance(axis, str) else axis) for word, axis in JOINTS[type(kind)].steps]
    if steps[0][0] == "revolute" and not np.isfinite([kind.lower, kind.upper]).any():
        return [("continuous", steps[0][1])]  # URDF wants limits of a revolute joint
    return steps
