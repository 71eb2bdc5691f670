"""The threads that share a batch."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["run_all"]

_POOL: list[ThreadPoolExecutor] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.clear)  # threads do not survive a fork


def run_all(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
    """Calls the function with each tuple of arguments, all at the same time, one of them in this thread."""
    here, *rest = arguments
    others = _start_elsewhere(function, rest) if rest else []
    function(*here)
    for other in others:
        other.result()


def _start_elsewhere(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Future[None]]:
    processors = _other_processors()

    def work(*args: Any) -> None:
        if processors:
            os.sched_setaffinity(0, processors)
        function(*args)

    if not _POOL:
        _POOL.append(ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="coupler"))
    return [_POOL[0].submit(work, *args) for args in arguments]


def _other_processors() -> set[int] | None:
    """The processors this thread may use, except the one it is on; None where that cannot be told.

    Linux may wake a worker on the processor of the thread that woke it and leave it there, waiting, for longer than a
    batch takes. Keeping workers off the caller's processor makes two threads two from the start.
    """
    if not sys.platform.startswith("linux"):
        return None
    here = ctypes.CDLL(None).sched_getcpu()
    return os.sched_getaffinity(0) - {here}
