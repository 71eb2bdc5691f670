"""Gearboxes of SDFormat, which URDF files have in their <gazebo>: θ₂ = −ratio × θ₁, each angle about its own axis.

θ₁ and θ₂ are the angles of the joint's parent and of its child against a reference body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from coupler.io.dependences import Dependence, check_amount, solved_for
from coupler.io.sdf.elements import number_of
from coupler.io.xml import Element
from coupler.model.wording import listed

_PARALLEL = 1e-6  # 1 − the cosine of the angle between axes that are parallel but for rounding


class Passed(NamedTuple):
    """A joint between two links.

    Attributes:
        name: name of the joint.
        word: the joint's type in the file.
        axis: 3, the joint's first axis in the world, of unit length; zeros if it has none.
        position: the joint's position in the pose that the file describes.
    """

    name: str
    word: str
    axis: np.ndarray
    position: float = 0.0


# The joints from the last common ancestor of two links to each of them; None if they do not hang together.
Ways = Callable[[str, str], tuple[Sequence[Passed], Sequence[Passed]] | None]


def gearbox(
    element: Element, ends: Mapping[str, str], axes: Sequence[np.ndarray], ways: Ways, rank: Callable[[str], int | None]
) -> Dependence:
    """The relation between joints that a gearbox makes.

    Args:
        element: the <joint>.
        ends: the links "parent", "child" and "reference".
        axes: the directions of both axes in the world.
        ways: gives the joints between two links.
        rank: the rank of a joint; the one of lowest rank becomes dependent. None for a joint that must not.

    Raises:
        ModelError: for links that other joints than hinges about the axes connect.
    """
    row: dict[str, float] = {}
    order, positions = list[str](), dict[str, float]()
    for end, axis, factor in (("child", axes[1], 1.0), ("parent", axes[0], number_of(element, "gearbox_ratio", 1.0))):
        angle = _angle(element, ends["reference"], ends[end], axis, ways)
        if not angle:
            raise element.error(
                f"its {end} {ends[end]!r} does not turn against its gearbox_reference_body {ends['reference']!r}"
            )
        for joint, sign in angle:
            row[joint.name] = row.get(joint.name, 0.0) + factor * sign
            positions[joint.name] = joint.position
            order = [*order, joint.name] if end == "parent" else [joint.name, *order]
    row = {joint: factor for joint, factor in row.items() if factor}
    if len(row) < 2:
        raise element.error(
            "its parent and its child must each turn by a joint of their own against its gearbox_reference_body; "
            f"there is {listed(row) or 'no such joint'}"
        )
    check_amount(element, len(row))
    constant = sum(factor * positions[joint] for joint, factor in row.items())
    free = [joint for joint in order if joint in row and rank(joint) is not None]
    if free:
        with element.blamed():
            return solved_for(min(free, key=lambda joint: rank(joint) or 0), row, constant)
    factors = np.array(list(row.values()))

    def closed(q: np.ndarray) -> np.ndarray:
        return np.array([factors @ q - constant])

    return list(row), closed, []


def _angle(element: Element, first: str, last: str, axis: np.ndarray, ways: Ways) -> list[tuple[Passed, float]]:
    """The joints whose angles add up to that of a link against another, with their signs."""
    between = ways(first, last)
    if between is None:
        raise element.error(f"{first!r} and {last!r} do not hang together: no chain of hinge joints connects them")
    shafts = []
    for joint, sign in (*((joint, -1.0) for joint in between[0]), *((joint, 1.0) for joint in between[1])):
        if joint.word == "fixed":
            continue
        along = float(joint.axis @ axis)
        if joint.word not in ("revolute", "continuous") or abs(along) < 1.0 - _PARALLEL:
            raise element.error(
                f"between {first!r} and {last!r} is joint {joint.name!r}, which does not turn about its axis"
            )
        shafts.append((joint, sign * float(np.sign(along))))
    return shafts
