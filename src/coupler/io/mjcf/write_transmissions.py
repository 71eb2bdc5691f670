"""Writing transmissions whose gear depends on the pose as MJCF: tendons over sites, slider-cranks and sites."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.io.mjcf.attributes import place
from coupler.io.taken_names import TakenNames
from coupler.io.writing import put
from coupler.model import Cable, SliderCrank, Transmission, Wrench
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


def transmission(
    name: str, along: Transmission, tendons: ET.Element, names: TakenNames, sites: SiteWriter
) -> dict[str, Any] | None:
    """Writes a transmission; returns what its actuator says of it, or None if MJCF cannot express it."""
    if isinstance(along, Cable):
        return _cable(name, along, tendons, names, sites)
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
    gear = next(share for share in cable.numbers if share)
    if (cable.numbers / gear < 0.0).any():
        return None
    tendon = put(tendons, "spatial", name=names.new(f"{name}_cable"))
    points = [sites.at(end.body, f"{name}_{i}", end.at) for i, end in enumerate(cable.ends, 1)]
    share = gear
    for i, new in enumerate(cable.numbers):
        if new == 0.0:
            continue
        if new != share or (i and cable.numbers[i - 1] == 0.0):
            put(tendon, "pulley", divisor=gear / new)
            put(tendon, "site", site=points[i])
        elif not len(tendon):
            put(tendon, "site", site=points[i])
        put(tendon, "site", site=points[i + 1])
        share = new
    return {"tendon": tendon.get("name"), "gear": None if gear == 1.0 else gear}
