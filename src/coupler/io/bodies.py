"""Bodies as files give them."""

from __future__ import annotations

from typing import Any

from coupler.model import ModelError, RobotBuilder

__all__ = ["add_body"]


def add_body(b: RobotBuilder, name: str, mass: float, centre: Any, inertia: Any, *, ideal: bool = False) -> bool:
    """Adds a body; returns whether its inertia is one that a real body can have, or is said to be ideal.

    Raises:
        ModelError: for an inertia that is not even ideal.
    """
    try:
        b.body(name, mass, centre, inertia, ideal=ideal)
    except ModelError:
        b.body(name, mass, centre, inertia, ideal=True)
        return False
    return True
