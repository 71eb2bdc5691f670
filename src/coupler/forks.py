"""Forking safely: a child has none of its parent's other threads, and the locks that these held stay locked for ever.

There are three rules. A lock is registered with `held_at_fork`, so that a fork waits until it is free. Late imports are
made `with imports():`, because Python's import locks would stay locked as well. And properties are cached with the
`cached_property` below: before Python 3.12, that of functools takes a lock.

This is the first of our modules to be imported, and raises an error in interpreters in which NumPy does not run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

_Lock = TypeVar("_Lock")


def _is_subinterpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13 on, and before
        with suppress(ImportError):
            current = import_module(name).get_current()
            return int(current[0] if isinstance(current, tuple) else current) != 0
    return False


try:
    import numpy.random  # noqa: F401  (which NumPy itself would import late)
except ImportError as error:
    if not _is_subinterpreter():
        raise
    raise ImportError(
        "coupler does not run in a subinterpreter, because NumPy does not; use threads or processes instead"
    ) from error

_IMPORTS = threading.RLock()  # the first lock that a fork takes; no lock is registered while it is held
_LOCKS: list[Any] = []


def held_at_fork(lock: _Lock) -> _Lock:
    """The lock, registered: each fork acquires it before and releases it after, in parent and child.

    Locks are acquired in reverse order of registration, so a lock that is acquired while another one is held must be
    registered before that one.
    """
    with _IMPORTS:
        _LOCKS.append(lock)
    return lock


def imports() -> AbstractContextManager[Any]:
    """A block for imports that are made late, while other threads may fork."""
    return _IMPORTS


def _take_locks() -> None:
    _IMPORTS.acquire()
    for lock in reversed(_LOCKS):
        lock.acquire()


def _give_locks_back() -> None:
    for lock in _LOCKS:
        lock.release()
    _IMPORTS.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_locks, after_in_parent=_give_locks_back, after_in_child=_give_locks_back)


if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """A property that is computed when it is first read, and kept among the object's attributes.

        Two threads that read it at once may both compute it; both get the same object.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self._function, self._name, self.__doc__ = function, "", function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._function(instance))
