"""Keys that are equal for objects that a trace cannot tell apart: compared by attributes, or by identity."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class _Itself:
    """Stands for an object that equals only itself, and keeps it alive, so that its id stays unique."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def attributes_of(thing: object) -> dict[str, Any]:
    """All attributes of an object itself, without those of its class."""
    if not (slots := _slots(type(thing))):
        return vars(thing)
    return vars(thing) | {name: getattr(thing, name) for name in slots if hasattr(thing, name)}


@cache
def _slots(cls: type) -> list[str]:
    return [str(name) for base in cls.__mro__ for name in np.atleast_1d(vars(base).get("__slots__", ()))]


def comparable(value: Any) -> Hashable:
    """A key that is equal only for values that no function can tell apart; other objects equal only themselves."""
    kind = type(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float | complex | np.generic):
        return comparable(np.asarray(value))  # by its bits: 0.0 and -0.0 are not the same
    if kind in (bool, int, str, bytes, type(None)):
        return kind, value
    if kind in (tuple, list):
        return kind, *map(comparable, value)
    return _Itself(value)
