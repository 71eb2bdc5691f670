"""Names that are taken, and new ones that do not clash with them."""

from __future__ import annotations

from collections.abc import Iterable


class TakenNames:
    """The names that parts of one kind have. A new name is taken from then on."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._counts: dict[str, int] = {}  # by name the last number behind it, so that thousands are found at once

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Takes a name."""
        self._names.add(name)

    def new(self, name: str, number: int | None = None) -> str:
        """The name, with a number behind it if one is given, and with more underscores if it is taken."""
        ending = "" if number is None else f"_{number}"
        while name + ending in self._names:
            name += "_"
        self._names.add(name + ending)
        return name + ending

    def numbered(self, name: str) -> str:
        """The name, or the first of name_2, name_3, ... that is not taken."""
        unique, count = name, self._counts.get(name, 1)
        while unique in self._names:
            count += 1
            unique = f"{name}_{count}"
        self._counts[name] = count
        self._names.add(unique)
        return unique
