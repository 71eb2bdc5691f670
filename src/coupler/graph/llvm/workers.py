"""The threads that share a batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["run_all"]

_POOL: list[ThreadPoolExecutor] = []  # one, made when first needed

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.clear)  # threads do not survive a fork


def run_all(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
    """Calls the function with each tuple of arguments, all at the same time, one of them in this thread."""
    here, *rest = arguments
    if rest and not _POOL:
        _POOL.append(ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="coupler"))
    others = [_POOL[0].submit(function, *args) for args in rest]
    function(*here)
    for other in others:
        other.result()
