"""Reading <visual> and <collision> of SDFormat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coupler.io.reading import shape_pairs
from coupler.io.sdf.elements import NAMESPACE, PATCH, name_in_robot, number_of, truth_of
from coupler.io.urdf.meshes import Resolver
from coupler.io.xml import Element
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Geometry, HeightField, Hull, Mesh, Plane, Sphere
from coupler.model.axes import plane_across
from coupler.rotation import unit
from coupler.spatial import Transform

_FORMS = ("box", "sphere", "cylinder", "capsule", "ellipsoid", "plane", "mesh")
_NUMBERS = (f"{NAMESPACE}:hull", f"{NAMESPACE}:height_field")  # which SDFormat lacks
_BITS = 65535  # a bitmask of SDFormat with all its bits
_UNSEEN = ("laser_retro", "max_contacts")  # elements of a collision that do not affect contact


def shapes_of(
    link: Element, bits: tuple[int, int], place: Callable[[Element], Transform], resolve: Resolver
) -> Iterator[dict[str, Any]]:
    """The shapes of a link, as arguments of `RobotBuilder.shape`; `at` is relative to the link's frame.

    A <collision coupler:same="true"> has the shape of the <visual> before it.

    Args:
        bits: the group of the link's collisions, and the groups that they meet, where the file does not say.
        place: returns the transform from the link's frame to a shape's.
        resolve: finds the file of a mesh.
    """
    for visual, collision in shape_pairs(link, f"{NAMESPACE}:same"):
        parts = [part for part in (visual, collision) if part is not None]
        with parts[0].blamed():
            form = _form(parts[0].need("geometry"), resolve)
        if form is None:
            for part in parts:
                _forget(part)
            continue
        geometry, turn = form
        shape: dict[str, Any] = {"geometry": geometry, "at": turn @ place(parts[0]), "name": name_in_robot(parts[0])}
        if visual is None:
            shape["visible"] = False
            for part in parts[0].all(*_UNSEEN):
                part.ignore()
        else:
            shape["colour"] = _colour(visual)
            _forget(visual)
        if collision is None:
            yield shape | {"group": 0, "meets": 0}
            continue
        contact = _contact(collision, bits)
        if visual is not None:
            collision.ignore()
        yield shape | contact


def _forget(element: Element) -> None:
    """Ignores parts of a shape that only affect its looks, or nothing at all; plugins stay unread, and so reported."""
    element.get("name")
    for child in element.children:
        if child.tag not in ("plugin", "geometry"):
            element.all(child.tag)
            child.ignore()


def _contact(element: Element, usual: tuple[int, int]) -> dict[str, Any]:
    """Friction and bitmasks of a collision. Softness parameters are ignored, since contacts are hard here."""
    law: dict[str, Any] = {"group": usual[0], "meets": usual[1]}
    for name in ("restitution", "rolling"):
        if element.has(f"{NAMESPACE}:{name}"):
            law[name] = element.number(f"{NAMESPACE}:{name}")
    if element.has(f"{NAMESPACE}:colour"):
        law["colour"] = element.numbers(f"{NAMESPACE}:colour", 4)
    law["priority"] = int(element.number(f"{NAMESPACE}:priority", 0.0))
    surface = element.find("surface")
    if surface is None:
        return law
    contact, friction = surface.find("contact"), surface.find("friction")
    if contact is not None:
        group, meets = (_bitmask(contact, tag) for tag in ("category_bitmask", "collide_bitmask"))
        group = meets if group is None else group  # as SDFormat has it
        law |= {name: bits for name, bits in (("group", group), ("meets", meets)) if bits is not None}
        contact.ignore()
    if friction is not None:
        law |= _friction(friction) | _torsion(friction)
    for bounce in surface.children:
        if bounce.tag == "bounce" and not number_of(bounce, "restitution_coefficient", 0.0):
            surface.all("bounce")
            bounce.ignore()
    return law


def _friction(friction: Element) -> dict[str, float]:
    """The coefficient of friction. A second direction that differs stays unread, and so is reported as left out."""
    for engine, first, second in (("ode", "mu", "mu2"), ("bullet", "friction", "friction2")):
        law = friction.find(engine)
        if law is None or law.find(first) is None:
            continue
        value = number_of(law, first, 1.0)
        for part in law.children:
            same = value if part.tag == second else 0.0  # slip, and directions that are none
            if not part.word() or (part.tag != first and (part.values(None) == same).all()):
                part.ignore()
        return {"friction": value}
    return {}


def _torsion(friction: Element) -> dict[str, float]:
    """Friction against spin, of a patch of known radius a: SDFormat's largest moment is 3π/16 a µ N.

    One whose patch grows with the depth of a contact is reported as left out, since contacts are hard here.
    """
    torsional = friction.find("torsional")
    if torsional is None:
        return {}
    if not truth_of(torsional, "use_patch_radius", True):
        return {}
    arm = PATCH * number_of(torsional, "coefficient", 1.0) * number_of(torsional, "patch_radius", 0.0)
    torsional.find("surface_radius")  # which counts only where the patch grows
    for part in torsional.children:
        if part.tag == "ode" and not any(slip.values(None).any() for slip in part.children if slip.word()):  # no slip
            torsional.all("ode")
            part.ignore()
    return {"torsion": arm} if arm else {}


def _bitmask(contact: Element, tag: str) -> int | None:
    part = contact.find(tag)
    if part is None or not part.word():
        return None
    try:
        value = int(part.word(), 0) if len(part.word()) < 20 else -1
    except ValueError:
        value = -1
    if not 0 <= value <= _BITS:
        raise part.error(f"it must be a whole number from 0 to {_BITS}, got {part.word()!r}")
    return value if value <= _BITS // 2 else value - _BITS - 1  # all bits above are as the highest one


def _form(element: Element, resolve: Resolver) -> tuple[Geometry, Transform] | None:
    """The shape in a <geometry>, and the shape's frame; None for a shape that is not modelled or has no extent."""
    forms = element.all(*_FORMS, *_NUMBERS)
    for empty in element.all("empty"):
        empty.ignore()
    if len(forms) > 1:
        raise element.error(f"it must hold one shape, but holds <{forms[0].tag}> and <{forms[1].tag}>")
    if not forms:
        return None
    form = forms[0]
    with form.blamed():
        if form.tag == "plane":
            return Plane(), _upright(form)
        geometry = _geometry(form, resolve)
        return None if geometry is None else (geometry, Transform.identity())


def _of_numbers(form: Element) -> Geometry:
    """A hull or a height field that is given by numbers, as coupler writes them."""
    if form.tag == _NUMBERS[0]:
        return Hull(_table(form, "vertices", 3))
    rows = [row.values(None) for row in form.all(f"{NAMESPACE}:row")]
    if len({len(row) for row in rows}) != 1:
        raise form.error("its rows must be as long as each other")
    return HeightField(np.array(rows), form.numbers("size", 2))


def _table(form: Element, name: str, width: int) -> np.ndarray:
    values = form.numbers(name, None)
    if values.size % width:
        raise form.error(f"its {name} must be {width} numbers each, got {values.size} in all")
    return values.reshape(-1, width)


def _geometry(form: Element, resolve: Resolver) -> Geometry | None:
    if form.tag in _NUMBERS:
        return _of_numbers(form)
    if form.tag == "mesh":
        path = resolve(form.need("uri").word())
        return None if path is None else Mesh(path, _list(form, "scale", 1.0))
    if form.tag in ("box", "ellipsoid"):
        sizes = _list(form, "size" if form.tag == "box" else "radii", 1.0)
        return None if not sizes.all() else Box(sizes) if form.tag == "box" else Ellipsoid(sizes)
    radius = number_of(form, "radius", 1.0 if form.tag in ("sphere", "cylinder") else 0.5)
    if form.tag == "sphere":
        return Sphere(radius) if radius else None
    length = number_of(form, "length", 1.0)
    return (Capsule if form.tag == "capsule" else Cylinder)(radius, length) if radius and length else None


def _list(form: Element, tag: str, default: float) -> np.ndarray:
    part = form.find(tag)
    return np.full(3, default) if part is None or not part.word() else part.values(3)


def _upright(plane: Element) -> Transform:
    """The rotation of a plane whose normal is not z; a plane's <size> is only for display and is ignored."""
    for size in plane.all("size"):
        size.ignore()
    normal = plane.find("normal")
    if normal is None or not normal.word():
        return Transform.identity()
    direction = normal.values(3)
    if not direction.any():
        raise normal.error("it must not be zero")
    z = unit(direction)
    return Transform.rotation(np.vstack([plane_across(z), z]))


def _colour(visual: Element) -> np.ndarray | None:
    """The colour of a visual: what it scatters of white light, or of the light around it."""
    material = visual.find("material")
    transparent = number_of(visual, "transparency", 0.0)
    if material is None:
        return None
    for tag in ("diffuse", "ambient"):
        part = material.find(tag)
        if part is not None and part.word():
            values = part.values(None)
            if len(values) not in (3, 4):
                raise part.error(f"a colour must be three or four numbers, got {part.word()!r}")
            opacity = (values[3] if len(values) == 4 else 1.0) * (1.0 - transparent)
            return np.clip([*values[:3], opacity], 0.0, 1.0)
    return None
