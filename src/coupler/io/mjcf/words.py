"""MJCF's words for passive properties of joints, inertias and shapes."""

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

__all__ = ["NO_LIMIT", "figures", "form", "inertial", "place", "quaternion"]

NO_LIMIT = 1e10  # MuJoCo's largest number; it has no limits of one side only


def figures(name: str, kind: Joint, step: Step) -> dict[str, Any]:
    """Passive properties and limits of a step.

    Raises:
        ModelError: for what MuJoCo has no word for: figures that differ from axis to axis of a ball or a free joint, a
            spring of theirs that rests elsewhere than at zero, and armature or friction of a free joint.
    """
    if not step.entries:
        return {}
    own = {word: getattr(kind, word)[step.entries] for word in ("damping", "friction", "armature", "stiffness")}
    if step.axis is None or kind.floats:
        _check_alike(name, kind, own)
    found = {word: values[0] for word, values in own.items() if values[0]}
    if "friction" in found:
        found["frictionloss"] = found.pop("friction")
    if step.axis is None or kind.floats:
        return found
    (i,) = step.entries
    if "stiffness" in found and kind.rest[i]:
        found["springref"] = kind.rest[i]
    limits = np.array([kind.lower[i], kind.upper[i]])
    if np.isfinite(limits).any():
        found["range"] = np.clip(limits, -NO_LIMIT, NO_LIMIT)
    if np.isfinite(kind.effort_limit[i]):
        found["actuatorfrcrange"] = -kind.effort_limit[i], kind.effort_limit[i]
    return found


def _check_alike(name: str, kind: Joint, own: dict[str, np.ndarray]) -> None:
    odd = [word for word, values in own.items() if np.ptp(values)]
    if kind.floats:
        odd += [word for word in ("friction", "armature", "stiffness") if np.any(getattr(kind, word))]
        odd += ["damping"] if np.ptp(kind.damping[:3]) or np.ptp(kind.damping[3:]) else []
    elif np.any(own["stiffness"]) and not np.array_equal(kind.rest, kind.neutral()):
        odd.append("rest")
    if odd:
        raise ModelError(
            f"joint {name!r}: MJCF has no word for the {odd[0]} of this {kind.kind} joint, "
            f"{getattr(kind, odd[0])}; save the robot as .urdf"
        )


def place(X: Transform) -> dict[str, Any]:
    """pos= and quat=, where they are not zero."""
    return {"pos": X.r if np.any(X.r) else None, "quat": quaternion(X.E.T)}


def quaternion(R: np.ndarray) -> np.ndarray | None:
    """None for no rotation, which need not be written."""
    return None if np.array_equal(R, np.eye(3)) else quaternion_from_matrix(R)


def inertial(inertia: Inertia) -> dict[str, Any]:
    """Mass, centre and inertia; principal moments as they are, since MuJoCo would compute them."""
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
