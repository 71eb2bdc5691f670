"""Restricting NumPy's linear algebra to one thread while robots are built and closed.

Matrices of loops are too small to gain from threads. NumPy's OpenBLAS uses several all the same, and these spin while
they wait for each other: on a machine with other load, four singular value decompositions of 360 × 216 matrices took up
to 12 s instead of 0.2 s. Results of several threads are also rounded differently.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import product
from typing import NamedTuple

from coupler.forks import held_at_fork, imports


class _Library(NamedTuple):
    """OpenBLAS: the functions that get and set its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], None]


class _Blocks:
    """The blocks that are running, by the ids of their threads, and OpenBLAS's number of threads before the first."""

    def __init__(self) -> None:
        self._lock, self._running, self._before = held_at_fork(threading.Lock()), list[int](), 1

    def enter(self, library: _Library) -> None:
        with self._lock:
            if not self._running:
                self._before = library.get()
                library.set(1)
            self._running.append(threading.get_ident())

    def leave(self, library: _Library) -> None:
        with self._lock:
            self._running.remove(threading.get_ident())
            self._restore(library)

    def forget_others(self) -> None:
        """Forgets the blocks of other threads; called after a fork, since the child has only this thread."""
        if self._running and (library := _openblas()) is not None:
            self._running = [ident for ident in self._running if ident == threading.get_ident()]
            self._restore(library)

    def _restore(self, library: _Library) -> None:
        if not self._running:
            library.set(self._before)


_BLOCKS = _Blocks()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLOCKS.forget_others)


@contextmanager
def one_thread() -> Iterator[None]:
    """A block in which OpenBLAS uses one thread; as a decorator, `@one_thread()`, it covers a function.

    The number of threads belongs to the process: the first block sets it, and the last one to end restores it. Without
    OpenBLAS, nothing changes.
    """
    library = _openblas()
    if library is None:
        yield
        return
    _BLOCKS.enter(library)
    try:
        yield
    finally:
        _BLOCKS.leave(library)


@cache
def _openblas() -> _Library | None:
    """NumPy's OpenBLAS, whose functions have different names in different builds; None if it uses another library."""
    with suppress(ImportError, OSError), imports():
        library = ctypes.CDLL(import_module("numpy.linalg._umath_linalg").__file__ or "")
        for prefix, suffix in product(("scipy_", ""), ("64_", "_64", "_", "")):
            with suppress(AttributeError):
                names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
                return _Library(*(getattr(library, name) for name in names))
    return None
