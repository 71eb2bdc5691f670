"""What readers of robot files share: the options of `load`, bodies, shapes, named states, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coupler.io.xml import Element
from coupler.model import ModelError, RobotBuilder
from coupler.model.tree import GROUND
from coupler.model.wording import clause, counted, listed

_LISTED = 20  # at most this many kinds of things are listed in a warning

# A YAML file, pairs of frames (with how they are held), False for none, or None for what lies beside the robot's file.
Closures = str | Path | Sequence[Sequence[str]] | bool | None


@dataclass(frozen=True)
class Options:
    """How to read a file; see `load` for what each option means."""

    closures: Closures = None
    floating: bool = False
    packages: Mapping[str, Path] = field(default_factory=dict)
    gravity: Any = None
    lock_idle: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)
    xacro: bool = False
    massless: str = "refuse"


def add_body(b: RobotBuilder, name: str, mass: float, centre: Any, inertia: Any, *, ideal: bool = False) -> bool:
    """Adds a body, as an ideal one if no real body has its inertia.

    Args:
        b: the builder of the robot.
        mass: kg.
        centre: 3, the centre of mass in the body's frame, m.
        inertia: 3 × 3, about the centre of mass, kg m².
        ideal: whether the file says that the body is ideal.

    Returns:
        Whether the inertia is one that a real body can have, or the file says that the body is ideal.

    Raises:
        ModelError: for an inertia that not even an ideal body has.
    """
    try:
        b.body(name, mass, centre, inertia, ideal=ideal)
    except ModelError:
        b.body(name, mass, centre, inertia, ideal=True)
        return False
    return True


def warn_of_inertias(b: RobotBuilder, unreal: Sequence[str], weightless: Sequence[str]) -> None:
    """Warns of bodies for which `add_body` returned False: those with a mass, and those without."""
    if unreal:
        b.warn(
            f"no real body has the inertia of {listed(unreal)}: the largest principal moment exceeds the sum of the "
            f"other two; used as {_it_is(unreal)}"
        )
    if weightless:
        b.warn(clause(weightless, "{} has", "{} have") + f" an inertia but no mass: used as {_it_is(weightless)}")


def _it_is(names: Sequence[str]) -> str:
    return "it is" if len(names) == 1 else "they are"


def ground_renamed(name: str) -> str:
    """The warning that a link with the name of the ground has another name in the robot."""
    return f"link {GROUND!r} is renamed {name!r}: here {GROUND!r} is the world, which does not move"


def warn_left_out(b: RobotBuilder, left_out: Counter[str]) -> None:
    """Warns of what a file contains but coupler does not model; `left_out` counts it by kind."""
    if left_out:
        kinds = [f"{n} × {what}" for what, n in left_out.items()]
        more = f" and {counted(len(kinds) - _LISTED, 'more kind')}" if len(kinds) > _LISTED else ""
        b.warn(f"not modelled, and left out: {', '.join(kinds[:_LISTED])}{more}")


def shape_pairs(link: Element, same: str) -> Iterator[tuple[Element | None, Element | None]]:
    """The <visual>s and <collision>s of a link, each alone, or both where a collision has the shape of a visual.

    Args:
        same: the attribute by which a collision says that it has the shape of the visual before it.
    """
    visual: Element | None = None
    for element in link.all("visual", "collision"):
        if element.tag == "collision" and element.flag(same) and visual is not None:
            yield visual, element
            visual = None
            continue
        if visual is not None:
            yield visual, None
        visual = element if element.tag == "visual" else None
        if visual is None:
            yield None, element
    if visual is not None:
        yield visual, None


def read_keyframe(element: Element, prefix: str = "") -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A named state: its name, positions and velocities by joint; the prefix stands before names of joints."""
    positions, velocities = {}, {}
    for joint in element.all("joint"):
        name = prefix + joint.require("name")
        for word, state in (("position", positions), ("velocity", velocities)):
            if joint.has(word):
                values = joint.numbers(word, None)
                state[name] = values if len(values) > 1 else values[0]
    return prefix + element.require("name"), positions, velocities
