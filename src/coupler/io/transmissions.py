"""Transmissions whose gear depends on the pose, as elements of ours in <actuator>, the same in URDF and SDFormat.

<cable shares="1 0.5">
  <end link="ground"><origin xyz="0 0 0.2"/></end>
  <end link="upper"><origin xyz="0.3 0 0.1"/></end>
  <end link="lower"/>
</cable>
A shape that a cable runs around, between two ends, is <around link="upper" radius="0.03">, with an axis if it is a
cylinder and a point on the side that the cable passes, if that is given.
<slider_crank rod="1.5" axis="0 0 1"> and <wrench force="0 0 1" moment="0 0 0.02"> have one end or two, and
<adhesion link="pad"/> has none.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from coupler.io.urdf.elements import put_origin
from coupler.io.urdf.origins import origin
from coupler.io.writing import put, text
from coupler.io.xml import Element
from coupler.model import Adhesion, Around, Cable, SliderCrank, Transmission, Wrench
from coupler.model.transmissions import End
from coupler.spatial import Transform

LinkOf = Callable[[str, Element], str]  # a link's name in the robot, from that in the file


def put_transmission(parent: ET.Element, along: Transmission, place: Callable[[str, Transform], Transform]) -> None:
    """Adds a transmission; `place` gives a frame on a body in the frame of its link."""
    if isinstance(along, Cable):
        element = put(parent, "cable", shares=None if (along.shares == 1.0).all() else along.shares)
        for part in along.parts:
            if isinstance(part, End):
                put_origin(put(element, "end", link=part.body), place(part.body, part.at))
            else:
                _put_around(element, part, place)
        return
    if isinstance(along, Adhesion):
        put(parent, "adhesion", link=along.body, gear=None if along.gear == 1.0 else along.gear)
        return
    if isinstance(along, SliderCrank):
        gear, rod, *axis = along.numbers
        element = put(parent, "slider_crank", rod=rod, axis=axis, gear=None if gear == 1.0 else gear)
    else:
        assert isinstance(along, Wrench)
        moment, force = along.numbers[:3], along.numbers[3:]
        element = put(parent, "wrench", force=force, moment=moment)
    for end in along.ends:
        put_origin(put(element, "end", link=end.body), place(end.body, end.at))


def _put_around(parent: ET.Element, around: Around, place: Callable[[str, Transform], Transform]) -> None:
    on_link = place(around.body, Transform.translation(around.at))
    element = put(parent, "around", link=around.body, radius=around.radius)
    if around.axis is not None:
        element.set("axis", text(on_link.E.T @ around.axis))
    if around.side is not None:
        element.set("side", text(place(around.body, Transform.translation(around.side)).r))
    put_origin(element, Transform.translation(on_link.r))


def _read_around(element: Element, link_of: LinkOf) -> Around:
    axis, side = (element.numbers(name, 3) if element.has(name) else None for name in ("axis", "side"))
    return Around(link_of(element.require("link"), element), element.number("radius"), origin(element).r, axis, side)


def read_transmission(element: Element, link_of: LinkOf) -> Transmission | None:
    """The transmission in an <actuator>; None if it has none."""
    parts = element.all("cable", "slider_crank", "wrench", "adhesion")
    if not parts:
        return None
    part = parts[0]
    if len(parts) > 1 or element.all("joint"):
        raise part.error("an actuator has either joints or one transmission")
    with part.blamed():
        if part.tag.endswith("adhesion"):
            return Adhesion(_link(part, link_of), part.number("gear", 1.0))
        if part.tag.endswith("cable"):
            shares, points = part.numbers("shares", None, [1.0]), list[Any]()
            for end in part.all("end", "around"):
                around = end.tag == "around"
                points.append(_read_around(end, link_of) if around else (_link(end, link_of), origin(end).r))
            return Cable(points, shares if len(shares) > 1 else float(shares[0]))
        ends = [(_link(end, link_of), origin(end)) for end in part.all("end")]
        if part.tag.endswith("slider_crank"):
            (slider, at), (crank, meets) = _several(part, ends, 2)
            axis = at.E.T @ part.numbers("axis", 3, [0.0, 0.0, 1.0])
            return SliderCrank(slider, crank, part.number("rod"), at.r, meets.r, axis, part.number("gear", 1.0))
        force, moment = (part.numbers(name, 3, [0.0] * 3) for name in ("force", "moment"))
        (body, at), *against = _several(part, ends, 1, 2)
        if not against:
            return Wrench(body, force, moment, at)
        return Wrench(body, force, moment, at, against=against[0][0], origin=against[0][1])


def _link(end: Element, link_of: LinkOf) -> str:
    return link_of(end.require("link"), end)


def _several(part: Element, ends: list[tuple[str, Transform]], *counts: int) -> list[tuple[str, Transform]]:
    if len(ends) not in counts:
        raise part.error(f"it must have {' or '.join(map(str, counts))} <end>, got {len(ends)}")
    return ends
