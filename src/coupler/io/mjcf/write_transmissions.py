"""Writing transmissions whose gear depends on the pose as MJCF: tendons over sites, slider-cranks and sites."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.io.mjcf.attributes import place
from coupler.io.taken_names import TakenNames
from coupler.io.writing import put
from coupler.model import Adhesion, Around, Cable, SliderCrank, Transmission, Wrench
from coupler.model.axes import plane_across
from coupler.spatial import Transform


class SiteWriter:
    """Adds sites to the elements of bodies.

    Args:
        elements: the elements of bodies, by name.
        names: the names that are taken.
    """

    def __init__(self, elements: Mapping[str, ET.Element], names: TakenNames) -> None:
        self._elements, self._names = elements, names

    def at(self, body: str, name: str, at: Transform) -> str:
        """Adds a site, called after what needs it; returns its name."""
        site = self._names.new(name)
        put(self._elements[body], "site", name=site, **place(at))
        return site

    def around(self, shape: Around, name: str) -> dict[str, str]:
        """Adds a geom that a cable wraps around, and touches nothing else; returns how a tendon names it."""
        named, turned = {"geom": self._names.new(name)}, np.eye(3)
        if shape.side is not None:
            named["sidesite"] = self.at(shape.body, f"{name}_side", Transform.translation(shape.side))
        if shape.axis is not None:
            turned = np.vstack([plane_across(np.asarray(shape.axis)), shape.axis])
        kind = {"type": "sphere" if shape.axis is None else "cylinder"}
        size = shape.radius if shape.axis is None else (shape.radius, shape.radius)
        figures = {"size": size, "mass": 0.0, "contype": 0, "conaffinity": 0, "group": 3}
        at = place(Transform(turned, np.asarray(shape.at)))
        put(self._elements[shape.body], "geom", name=named["geom"], **kind, **figures, **at)
        return named


def transmission(
    name: str, along: Transmission, tendons: ET.Element, names: TakenNames, sites: SiteWriter
) -> dict[str, Any] | None:
    """Writes a transmission; returns what its actuator says of it, or None if MJCF cannot express it."""
    if isinstance(along, Cable):
        return _cable(name, along, tendons, names, sites)
    if isinstance(along, Adhesion):
        return {"body": along.body, "gain": along.gear}
    (body, at), *others = along.ends
    if isinstance(along, SliderCrank):
        gear, rod, *axis = along.numbers
        along_axis = at.E.T @ axis
        slider = Transform(np.vstack([plane_across(along_axis), along_axis]), at.r)  # MuJoCo's slider moves along z
        target = {"cranksite": sites.at(others[0].body, f"{name}_crank", others[0].at)}
        target["slidersite"] = sites.at(body, f"{name}_slider", slider)
        return target | {"cranklength": rod, "gear": None if gear == 1.0 else gear}
    assert isinstance(along, Wrench)
    wrench = {"site": sites.at(body, name, at), "gear": np.roll(along.numbers, 3)}  # MuJoCo's are linear first
    if others:
        wrench["refsite"] = sites.at(others[0].body, f"{name}_against", others[0].at)
    return wrench


def _cable(name: str, cable: Cable, tendons: ET.Element, names: TakenNames, sites: SiteWriter) -> dict[str, Any] | None:
    """A tendon over sites; where the share changes, a pulley begins a new branch at the same site."""
    shares = cable.shares
    gear = next(share for share in shares if share)
    if (shares / gear < 0.0).any():
        return None
    tendon = put(tendons, "spatial", name=names.new(f"{name}_cable"))
    stretches, start, around = list[tuple[str, dict[str, str] | None, str]](), "", None
    for i, part in enumerate(cable.parts, 1):
        if isinstance(part, Around):
            around = sites.around(part, f"{name}_{i}")
            continue
        end = sites.at(part.body, f"{name}_{i}", part.at)
        stretches += [(start, around, end)] if start else []
        start, around = end, None
    share: float | None = None  # of the stretch before
    for new, (start, around, end) in zip(shares, stretches, strict=True):
        if new and new != share:
            if len(tendon):
                put(tendon, "pulley", divisor=gear / new)
            put(tendon, "site", site=start)
        if new and around:
            put(tendon, "geom", **around)
        if new:
            put(tendon, "site", site=end)
        share = new
    return {"tendon": tendon.get("name"), "gear": None if gear == 1.0 else gear}
