"""Elements of SDFormat as they are written: poses, inertias, shapes, and axes of joints."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np

from coupler.io.mjcf.inertias import Inertia
from coupler.io.sdf.elements import MOMENTS, NAMESPACE, PATCH
from coupler.io.sdf.joints import JOINTS, LISTS
from coupler.io.writing import mesh_path, put, rpy_of, text
from coupler.model import (
    Body,
    Box,
    Capsule,
    Continuous,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Hull,
    Joint,
    Mesh,
    Plane,
    Shape,
    Sphere,
    Spherical,
    Universal,
)
from coupler.model.tree import GROUND
from coupler.spatial import Transform

_BITS = 65535  # of a bitmask
_NOTHING = 1e-15  # kg and kg m²: what readers take that refuse bodies without mass
_UPPER = np.triu_indices(3)
_PASSIVE = {"damping": "damping", "friction": "friction", "stiffness": "spring_stiffness"}


def extension(name: str) -> str:
    """The name of an element or attribute that SDFormat lacks."""
    return f"{NAMESPACE}:{name}"


def say(parent: ET.Element, tag: str, value: Any) -> ET.Element:
    """Adds an element with a value in it."""
    element = put(parent, tag)
    element.text = text(value)
    return element


def put_pose(parent: ET.Element, X: Transform, relative_to: str = "") -> None:
    """Adds a pose, unless it is the identity relative to the default frame."""
    turned = not np.array_equal(X.E, np.eye(3))
    if relative_to or turned or np.any(X.r):
        pose = say(parent, "pose", [*X.r, *(rpy_of(X.E.T) if turned else np.zeros(3))])
        if relative_to:
            pose.set("relative_to", relative_to)


def add_inertial(link: ET.Element, body: Body, real: Inertia | None) -> None:
    """Adds mass and inertia, and beside them coupler's own if other readers would refuse these.

    Args:
        real: an inertia that a real body can have and that moves the robot in the same way; if None, a negligible one.
    """
    inertial = put(link, "inertial")
    mass, I = (_NOTHING, _NOTHING * np.eye(3)) if real is None else (real.mass, real.about_centre)  # noqa: E741
    put_pose(inertial, Transform.translation(body.centre))
    say(inertial, "mass", mass)
    inertia = put(inertial, "inertia")
    for tag, value in zip(MOMENTS, I[_UPPER], strict=True):
        say(inertia, tag, value)
    if mass != body.mass or not np.array_equal(I, body.inertia):
        put(inertial, extension("inertial"), mass=body.mass, inertia=body.inertia[_UPPER])


# Joints


def add_axes(joint: ET.Element, kind: Joint, turn: np.ndarray, position: np.ndarray) -> list[ET.Element]:
    """Adds the axes of a joint, with its limits and passive properties, and the pitch of a screw.

    Args:
        joint: the <joint>.
        kind: the joint's kind.
        turn: 3 × 3, rotation from the joint's predecessor frame to its successor frame in the pose of the file.
        position: the joint's position in the pose of the file, from which the file counts limits and springs.
    """
    names, axes = JOINTS[type(kind)][1], list[ET.Element]()
    for i, name in enumerate(names):
        direction = getattr(kind, name)
        axis = put(joint, "axis2" if i else "axis")
        say(axis, "xyz", turn @ direction if isinstance(kind, Universal) and i == 0 else direction)
        _add_figures(axis, kind, i, float(position[i]))
        axes.append(axis)
    if isinstance(kind, Spherical) and np.any(kind.damping) and not np.ptp(kind.damping):
        axis = put(joint, "axis")
        say(axis, "xyz", (0.0, 0.0, 1.0))
        say(put(axis, "dynamics"), "damping", kind.damping[0])
    if JOINTS[type(kind)][0] == "screw":
        say(joint, "screw_thread_pitch", 2.0 * np.pi * kind.pitch)  # type: ignore[attr-defined]
    return axes


def _add_figures(axis: ET.Element, kind: Joint, i: int, position: float) -> None:
    limits = {"lower": kind.lower[i] - position, "upper": kind.upper[i] - position}
    limits |= {"effort": kind.effort_limit[i], "velocity": kind.velocity_limit[i]}
    finite = {name: value for name, value in limits.items() if np.isfinite(value)}
    if isinstance(kind, Continuous):
        finite = {name: value for name, value in finite.items() if name not in ("lower", "upper")}
    passive = {word: getattr(kind, name)[i] for name, word in _PASSIVE.items() if getattr(kind, name)[i]}
    if "spring_stiffness" in passive:
        passive["spring_reference"] = kind.rest[i] - position
    for tag, figures in (("limit", finite), ("dynamics", passive)):
        if figures:
            part = put(axis, tag)
            for word, value in figures.items():
                say(part, word, value)


def properties(kind: Joint) -> dict[str, Any]:
    """The properties of a joint that SDFormat's <axis> has no words for."""
    standard = [name for name in LISTS.values() if name != "armature"] if JOINTS.get(type(kind), ("", ()))[1] else []
    if isinstance(kind, Spherical) and not np.ptp(kind.damping):
        standard = ["damping"]
    figures: dict[str, Any] = {}
    for word, name in LISTS.items():
        value = getattr(kind, name)
        usual = kind.neutral() if name == "rest" else {"lower": -np.inf, "upper": np.inf}.get(name, _usual(name))
        if name not in standard and not np.array_equal(value, np.broadcast_to(usual, value.shape)):
            figures[word] = value if name == "rest" or np.ptp(value) else value[0]
    return figures


def _usual(name: str) -> float:
    return np.inf if name.endswith("_limit") else 0.0


# Shapes


def add_shape(link: ET.Element, shape: Shape, name: str, folder: Path) -> None:
    """Adds a shape: as a visual, as a collision, or as both, of which the second says that it is the same."""
    label = {extension("name"): shape.name} if shape.name else {extension("unnamed"): "true"}
    label = {} if shape.name == name else label
    if shape.visible:
        visual = put(link, "visual", name=name, **label)
        put_pose(visual, shape.at)
        _add_geometry(put(visual, "geometry"), shape.geometry, folder)
        if shape.colour is not None:
            material = put(visual, "material")
            for tag in ("ambient", "diffuse"):
                say(material, tag, shape.colour)
    if shape.touches or not shape.visible:
        collision = put(link, "collision", name=name, **label)
        if shape.visible:
            collision.set(extension("same"), "true")
        elif shape.colour is not None:
            collision.set(extension("colour"), text(shape.colour))
        if shape.priority:
            collision.set(extension("priority"), str(shape.priority))
        for word in ("restitution", "rolling"):
            if (number := getattr(shape, word)) is not None:
                collision.set(extension(word), text(number))
        put_pose(collision, shape.at)
        _add_geometry(put(collision, "geometry"), shape.geometry, folder)
        _add_surface(collision, shape)


def _add_surface(collision: ET.Element, shape: Shape) -> None:
    bits = {"collide_bitmask": shape.meets, "category_bitmask": shape.group}
    usual = shape.group == 1 and shape.meets == (-1 if shape.body == GROUND else 1)
    if usual and shape.friction is None and shape.torsion is None:
        return
    surface = put(collision, "surface")
    if shape.friction is not None or shape.torsion is not None:
        friction = put(surface, "friction")
        if shape.friction is not None:
            ode = put(friction, "ode")
            for word in ("mu", "mu2"):
                say(ode, word, shape.friction)
        if shape.torsion is not None:
            patch = {"coefficient": 1.0 / PATCH, "use_patch_radius": 1.0, "patch_radius": shape.torsion}
            torsional = put(friction, "torsional")
            for word, number in patch.items():
                say(torsional, word, number)
    if not usual:
        contact = put(surface, "contact")
        for word, value in bits.items():
            put(contact, word).text = str(value & _BITS)


def _add_geometry(parent: ET.Element, form: Geometry, folder: Path) -> None:
    """Adds a geometry; hulls and ground given by numbers are written as coupler's own elements inside an <empty>."""
    if isinstance(form, Hull | HeightField):
        put(parent, "empty")
        if isinstance(form, Hull):
            put(parent, extension("hull"), vertices=form.vertices.ravel())
        else:
            field = put(parent, extension("height_field"), size=form.size)
            for row in form.heights:
                say(field, extension("row"), row)
        return
    element = put(parent, type(form).__name__.lower())
    if isinstance(form, Box):
        say(element, "size", form.size)
    elif isinstance(form, Cylinder | Capsule):
        say(element, "radius", form.radius)
        say(element, "length", form.length)
    elif isinstance(form, Sphere):
        say(element, "radius", form.radius)
    elif isinstance(form, Ellipsoid):
        say(element, "radii", form.radii)
    elif isinstance(form, Plane):
        say(element, "normal", (0.0, 0.0, 1.0))
        say(element, "size", (20.0, 20.0))
    elif isinstance(form, Mesh):
        say(element, "uri", mesh_path(form.path, folder))
        if not np.array_equal(form.scale, np.ones(3)):
            say(element, "scale", form.scale)
