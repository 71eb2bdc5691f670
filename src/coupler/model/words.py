"""Words for messages: names listed, things counted, states of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["counted", "in_state", "listed"]


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names, quoted; a long list is cut short."""
    quoted = [repr(name) for name in names]
    more = len(quoted) - most
    return ", ".join(quoted[:most]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, one: str, many: str = "") -> str:
    """So many things: "1 body", "2 bodies"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def in_state(state: Sequence[int]) -> str:
    """Which state of a batch is meant; nothing where there is one only."""
    return f" in state {tuple(state) if len(state) > 1 else state[0]}" if state else ""
