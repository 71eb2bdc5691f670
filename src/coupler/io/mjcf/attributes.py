"""MJCF's attributes of passive properties of joints, frames, inertias and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.io.mjcf.inertias import Inertia
from coupler.io.mjcf.joints import Step
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    Joint,
    ModelError,
    Plane,
    Sphere,
)
from coupler.rotation import quaternion_from_matrix
from coupler.spatial import Transform

NO_LIMIT = 1e10  # MuJoCo's largest number, written where a joint is limited on the other side only


def figures(name: str, kind: Joint, step: Step) -> dict[str, Any]:
    """Attributes of an MJCF joint for the passive properties and limits of a step.

    Raises:
        ModelError: for what MuJoCo cannot express: ball or free joints whose figures differ from axis to axis, or whose
            spring is not at rest at zero, and armature or friction of a free joint.
    """
    if not step.entries:
        return {}
    passive = {word: getattr(kind, word)[step.entries] for word in ("damping", "friction", "armature", "stiffness")}
    if step.axis is None or kind.floats:
        _check_alike(name, kind, passive)
    attributes = {word: values[0] for word, values in passive.items() if values[0]}
    if "friction" in attributes:
        attributes["frictionloss"] = attributes.pop("friction")
    if step.axis is None or kind.floats:
        return attributes
    (i,) = step.entries
    if "stiffness" in attributes and kind.rest[i]:
        attributes["springref"] = kind.rest[i]
    limits = np.array([kind.lower[i], kind.upper[i]])
    if np.isfinite(limits).any() and limits[0] < limits[1]:  # MuJoCo has no limits that are equal
        attributes["range"] = np.clip(limits, -NO_LIMIT, NO_LIMIT)
    if 0.0 < kind.effort_limit[i] < np.inf:
        attributes["actuatorfrcrange"] = -kind.effort_limit[i], kind.effort_limit[i]
    return attributes


def _check_alike(name: str, kind: Joint, passive: dict[str, np.ndarray]) -> None:
    odd = [word for word, values in passive.items() if np.ptp(values)]
    if kind.floats:
        odd += [word for word in ("friction", "armature", "stiffness") if np.any(getattr(kind, word))]
        odd += ["damping"] if np.ptp(kind.damping[:3]) or np.ptp(kind.damping[3:]) else []
    elif np.any(passive["stiffness"]) and not np.array_equal(kind.rest, kind.neutral()):
        odd.append("rest")
    if odd:
        raise ModelError(
            f"joint {name!r}: MJCF cannot express the {odd[0]} of this {kind.kind} joint, "
            f"{getattr(kind, odd[0])}; save the robot as .urdf"
        )


def place(X: Transform) -> dict[str, Any]:
    """The attributes pos and quat of a frame; None where they are not needed."""
    return {"pos": X.r if np.any(X.r) else None, "quat": quaternion(X.E.T)}


def quaternion(R: np.ndarray) -> np.ndarray | None:
    """The quaternion of a rotation; None for the identity, which need not be written."""
    return None if np.array_equal(R, np.eye(3)) else quaternion_from_matrix(R)


def inertial(inertia: Inertia) -> dict[str, Any]:
    """The attributes of <inertial>; a diagonal inertia is written as such, since MuJoCo would diagonalise it."""
    I = inertia.about_centre  # noqa: E741
    diagonal = np.array_equal(I, np.diag(np.diag(I)))
    moments = {"diaginertia": np.diag(I)} if diagonal else {"fullinertia": [*np.diag(I), I[0, 1], I[0, 2], I[1, 2]]}
    return {"pos": inertia.centre, "mass": inertia.mass} | moments


def form(geometry: Geometry) -> dict[str, Any]:
    """The type and size of a shape without a file. MuJoCo's sizes are halves."""
    if isinstance(geometry, Sphere):
        return {"type": "sphere", "size": geometry.radius}
    if isinstance(geometry, Capsule):
        return {"type": "capsule", "size": (geometry.radius, geometry.length / 2)}
    if isinstance(geometry, Cylinder):
        return {"type": "cylinder", "size": (geometry.radius, geometry.length / 2)}
    if isinstance(geometry, Box):
        return {"type": "box", "size": np.asarray(geometry.size) / 2}
    if isinstance(geometry, Ellipsoid):
        return {"type": "ellipsoid", "size": geometry.radii}
    assert isinstance(geometry, Plane)
    return {"type": "plane", "size": (0.0, 0.0, 1.0)}
