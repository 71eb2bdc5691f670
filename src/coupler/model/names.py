"""Names of the parts of a robot: each is used once."""

from __future__ import annotations

from typing import Any

from coupler.model.errors import ModelError

Taken = dict[str, str]  # names that are in use, and what has them


def named(what: str, name: Any) -> str:
    """The name, if it is one; an error if not."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"{what} needs a name, got {name!r}")
    return name


def take(taken: Taken, name: str, user: str) -> None:
    """Enters a name among those in use; an error if it is there already."""
    if name in taken:
        raise ModelError(f"the name {name!r} is taken already, by {taken[name]}; choose another for {user}")
    taken[name] = user
