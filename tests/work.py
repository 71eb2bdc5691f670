"""Bounds of work that hold on any machine, however slow or busy: calls of functions are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class TooMuchWorkError(AssertionError):
    """More functions were called than a test allows."""


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Stops what runs within as soon as it has called more functions, of Python or of C, than this.

    Loops whose work is done in a single call of C are not seen.
    """
    count, before = 0, sys.getprofile()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        if count > calls:
            sys.setprofile(before)
            raise TooMuchWorkError(f"more than {calls:,} calls")

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)
