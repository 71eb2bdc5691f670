"""Names: of the parts of a robot, each used once; and those that a user asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, SupportsIndex, TypeVar, overload

from coupler.model.errors import ModelError
from coupler.model.wording import clipped, listed

Taken = dict[str, str]  # names that are in use, and what has them


class HasName(Protocol):
    @property
    def name(self) -> str: ...


Part = TypeVar("Part", bound=HasName, covariant=True)


class Parts(tuple[Part, ...]):
    """Parts in order, by number or by name: robot.actuators[0], robot.actuators["knee"]."""

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Part: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Part, ...]: ...

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for part in self:
            if part.name == key:
                return part
        raise ModelError(f"there is no {clipped(key)}; there are {listed((part.name for part in self), like=key)}")


def named(what: str, name: Any) -> str:
    """The name, after checking that it is one."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"{what} needs a name, got {clipped(name)}")
    return name


def names_given(what: str, given: Any) -> tuple[str, ...]:
    """The names in a list that a user gave; anything else, such as a single name, is an error."""
    names = None if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if names is None or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{what} must be a list of names, got {clipped(given)}")
    return names


def take(taken: Taken, name: str, user: str) -> None:
    """Adds a name to those in use; an error if it is in use already."""
    if name in taken:
        raise ModelError(f"the name {name!r} is taken already, by {taken[name]}; choose another for {user}")
    taken[name] = user
