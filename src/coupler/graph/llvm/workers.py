"""The threads that share a batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

__all__ = ["run_all"]

_POOL: list[ThreadPoolExecutor] = []  # one, made when first needed

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.clear)  # threads do not survive a fork


def run_all(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
    """Calls the function with each tuple of arguments, all at the same time, one of them in this thread.

    Returns, or raises, only when all calls have ended: they work in memory that the caller is free to give up then.
    """
    here, *rest = arguments
    others: list[Future[Any]] = []
    try:
        for args in rest:
            others.append(_pool().submit(function, *args))
        function(*here)
    finally:
        _wait_for(others)
    for other in others:
        other.result()


def _wait_for(futures: Sequence[Future[Any]]) -> None:
    """Waits for all of them, and if that is interrupted, waits on and passes the interruption on afterwards."""
    interruption: KeyboardInterrupt | None = None
    while True:
        try:
            wait(futures)
            break
        except KeyboardInterrupt as caught:
            interruption = caught
    if interruption is not None:
        raise interruption


def _pool() -> ThreadPoolExecutor:
    if not _POOL:
        _POOL.append(ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="coupler"))
    return _POOL[0]
