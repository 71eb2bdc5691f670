"""Contacts in MJCF: pairs of geoms and bodies that touch or do not, and contact points, sites that a tuple lists."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.names import PartNames
from coupler.io.writing import put
from coupler.io.xml import Element
from coupler.model import ContactPair, Robot, RobotBuilder, Shape
from coupler.model.tree import GROUND
from coupler.model.wording import counted

_TUPLE = "coupler_contact_points"
_SLIDING, _SPINNING, _ROLLING = 3, 4, 6  # condim from which contacts have these frictions; below, they have none
_USUAL = 1.0  # MuJoCo's friction where a geom has none
_FRICTIONS = {_SLIDING: "friction", _SPINNING: "friction against spin", _ROLLING: "friction against rolling"}


def frictions_of_geoms(model: Compiled) -> list[dict[str, float | None]]:
    """The frictions of each geom, as `RobotBuilder.shape` takes them.

    Two geoms slide freely on each other if both have a condim of 1.
    """
    return [
        {
            "friction": float(slide) if condim >= _SLIDING else 0.0,
            "torsion": float(spin) if condim >= _SPINNING else None,
            "rolling": float(roll) if condim >= _ROLLING else None,
        }
        for condim, (slide, spin, roll) in zip(model.geom_condim, model.geom_friction, strict=True)
    ]


def geom_friction(shape: Shape, resists_turning: bool) -> dict[str, Any]:
    """The attributes of a geom that say its friction.

    Args:
        shape: the geom's.
        resists_turning: whether some shape resists spin or rolling; each is then to say how much, because MuJoCo takes
            the larger number of two geoms, and has some by default.
    """
    if not resists_turning:
        return {"friction": shape.friction}
    slide = _USUAL if shape.friction is None else shape.friction
    return {"friction": (slide, shape.torsion or 0.0, shape.rolling or 0.0), "condim": _condim(shape)}


def _condim(law: Shape | ContactPair) -> str:
    return str(_ROLLING if law.rolling is not None else _SPINNING if law.torsion is not None else _SLIDING)


def add_pairs(model: Compiled, names: PartNames, shapes: Sequence[str | None], builder: RobotBuilder) -> list[str]:
    """Adds what touches by name, or does not; returns a description of what is left out of contacts.

    Args:
        model: the compiled model.
        names: names of the model's bodies.
        shapes: names of the model's geoms; None for a geom that is left out.
        builder: the builder of the robot.
    """
    for signature in model.exclude_signature.tolist():
        builder.exclude(names.bodies[signature >> 16], names.bodies[signature & 0xFFFF])
    bent = lost = 0
    listed = zip(model.pair_geom1, model.pair_geom2, model.pair_dim, model.pair_friction, strict=True)
    for one, other, condim, (slide, slide_2, spin, roll, roll_2) in listed:
        first, second = shapes[one], shapes[other]
        if first is None or second is None:
            lost += 1
            continue
        bent += bool((condim >= _SLIDING and slide != slide_2) or (condim >= _ROLLING and roll != roll_2))
        builder.contact_pair(
            first,
            second,
            slide if condim >= _SLIDING else 0.0,
            torsion=spin if condim >= _SPINNING else None,
            rolling=roll if condim >= _ROLLING else None,
        )
    counts = {
        "of shapes that are left out": lost,
        "with different friction along their two tangents, of which the first is used": bent,
    }
    texts = [f"{counted(count, 'contact pair')} {which}" for which, count in counts.items() if count]
    return texts + _lost_friction(model)


def _lost_friction(model: Compiled) -> list[str]:
    """Messages on friction that is lost: MuJoCo takes the larger number of two geoms, whatever their own condim."""
    touches = (model.geom_contype | model.geom_conaffinity) != 0
    condim, friction = model.geom_condim[touches], model.geom_friction[touches]
    texts = []
    for number, (dim, what) in enumerate(_FRICTIONS.items()):
        used, hidden = friction[condim >= dim, number], friction[condim < dim, number]
        lost = int(np.count_nonzero(hidden > used.min())) if used.size else 0
        if lost:
            geoms = counted(lost, "geom")
            texts.append(f"{what} of {geoms} with a condim below {dim} where others have {dim} or more")
    return texts


def write_pairs(robot: Robot, root: ET.Element, body_names: Mapping[str, str], geoms: Collection[str]) -> int:
    """Lists what touches by name, or does not; returns how many contact pairs are left out.

    Args:
        root: the element of the file.
        body_names: for bodies that are renamed, their names in MJCF.
        geoms: names of the shapes that are written; pairs of shapes refer to these.
    """
    contact, lost = put(root, "contact"), 0
    for pair in robot.contact_pairs:
        if pair.first not in geoms or pair.second not in geoms:
            lost += 1
            continue
        spin, roll = pair.torsion or 0.0, pair.rolling or 0.0
        friction = (pair.friction, pair.friction, spin, roll, roll)
        put(contact, "pair", geom1=pair.first, geom2=pair.second, condim=_condim(pair), friction=friction)
    for bodies in robot.exclusions:
        one, other = ("world" if body == GROUND else body_names.get(body, body) for body in bodies)
        put(contact, "exclude", body1=one, body2=other)
    return lost


def contact_points(root: Element) -> set[str]:
    """The names of sites that are contact points."""
    tuples = [element for element in root.walk() if element.tag == "tuple" and element.get("name") == _TUPLE]
    return {element.get("objname") or "" for named in tuples for element in named.all("element")}


def write_contact_points(robot: Robot, root: ET.Element) -> None:
    """Lists the sites that are contact points, if there are some."""
    names = [name for body in robot.bodies.values() for name in body.contacts]
    if names:
        custom = root.find("custom")
        listed = put(put(root, "custom") if custom is None else custom, "tuple", name=_TUPLE)
        for name in names:
            put(listed, "element", objtype="site", objname=name)
