"""The store of all live nodes but symbols, by what they compute: where equal nodes become the same object."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import ref

Node = TypeVar("Node")

# Arguments in a key are named by id. A node keeps its arguments alive, so no id is reused while the node lives. Entries
# of dead nodes are swept out now and then.
INTERNED: dict[tuple[Any, ...], ref[Any]] = {}
_FEWEST = 1 << 17  # entries, below which nothing is swept
_sweep_at = _FEWEST


def shared(key: tuple[Any, ...]) -> Any:
    """The live node that computes this, or None."""
    entry = INTERNED.get(key)
    return None if entry is None else entry()


def share(key: tuple[Any, ...], node: Node) -> Node:
    """Stores a new node, and returns it."""
    INTERNED[key] = ref(node)
    if len(INTERNED) > _sweep_at:
        sweep()
    return node


def sweep() -> int:
    """Forgets nodes that nobody uses any more; returns how many are left."""
    global _sweep_at
    for key, entry in list(INTERNED.items()):
        if entry() is None:
            removed = INTERNED.pop(key, None)  # another thread may have swept meanwhile, or made the node again
            if removed is not None and removed() is not None:
                INTERNED.setdefault(key, removed)
    _sweep_at = max(_FEWEST, 2 * len(INTERNED))
    return len(INTERNED)


@contextmanager
def uncollected() -> Iterator[None]:
    """Turns Python's cycle collector off while many nodes are made.

    Nodes form no cycles, but the collector would look at all of them again and again: a sixth of the time of a trace.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
