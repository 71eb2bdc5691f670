"""Phrases for messages: lists of names, counts of things, states of a batch; and names of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np

_LONGEST = 100  # characters of a name or a value in a message


def clipped(value: object, most: int = _LONGEST, *, quote: bool = True) -> str:
    """A name or value for a message, quoted; only the beginning of a very long one."""
    text = repr(value) if quote and not isinstance(value, str) else str(value)
    rest = f"... ({len(text) - most} more characters)" if len(text) > most else ""
    return (repr(text[:most]) if quote and isinstance(value, str) else text[:most]) + rest


def listed(names: Iterable[str], most: int = 8, like: object = "") -> str:
    """Quoted names, separated by commas; beyond `most` names, the rest is counted. Those `like` a name come first."""
    names = list(names)
    near = get_close_matches(like[:_LONGEST], names, n=most) if isinstance(like, str) else []
    return some([clipped(name) for name in (*near, *(name for name in names if name not in near))], most)


def some(texts: Sequence[str], most: int = 8) -> str:
    """Texts, separated by commas; beyond `most` texts, the rest is counted."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def clause(names: Iterable[str], one: str, many: str) -> str:
    """A clause about names, which replace {}: `one` for a single name, `many` for several."""
    names = list(names)
    return (one if len(names) == 1 else many).replace("{}", listed(names), 1)


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun: "1 body", "2 bodies"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of texts as a table, the first columns aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = (
        [x.ljust(w) if i < left else x.rjust(w) for i, (x, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(row).rstrip() for row in cells)


def length(metres: float) -> str:
    """A length in mm, or in m from one metre on."""
    return f"{metres:.3g} m" if metres >= 0.9995 else f"{1e3 * metres:.3g} mm"


def in_state(state: Sequence[int]) -> str:
    """Names a state of a batch by its index; empty if there is no batch."""
    return f" in state {tuple(state) if len(state) > 1 else state[0]}" if state else ""


def index_of(number: int, batch: tuple[int, ...]) -> tuple[int, ...]:
    """The index of a state in a batch, given its number among all states."""
    return tuple(int(i) for i in np.unravel_index(number, batch)) if batch else ()


def plain_name(name: str) -> str:
    """A name for a file, from one with characters that files should not have."""
    return re.sub(r"[^\w.-]+", "_", name)
