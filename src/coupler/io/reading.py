"""What readers of robot files share: the options of `load`, and bodies with the inertias that files give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coupler.model import ModelError, RobotBuilder

__all__ = ["Closures", "Options", "add_body"]

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
        name: the body's name.
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
