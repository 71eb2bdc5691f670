"""The one pool of threads, which batches and rollouts share."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

__all__ = ["for_each", "together"]

_PATIENCE = 100  # times to look whether a worker has ended: it has little left to do, and to be woken takes longer


class _Job:
    """A call that a worker may take, or its giver may take back, whoever comes first."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._taken, self._ended = threading.Lock(), threading.Lock()
        self._result: Any = None
        self._error: BaseException | None = None
        self._ended.acquire()

    def run(self) -> None:
        if self._taken.acquire(blocking=False):
            try:
                self._result = self._function(*self._arguments)
            except BaseException as error:  # which is the giver's
                self._error = error
            finally:
                self._ended.release()

    def take_back(self) -> bool:
        """Whether nobody has begun it; then nobody will."""
        return self._taken.acquire(blocking=False)

    def wait(self) -> None:
        """Waits for its end, and if that is interrupted, waits on and passes the interruption on afterwards."""
        for _ in range(_PATIENCE):
            if self._ended.acquire(blocking=False):
                return
            time.sleep(0)
        interruption: KeyboardInterrupt | None = None
        while True:
            try:
                self._ended.acquire()
                break
            except KeyboardInterrupt as caught:
                interruption = caught
        if interruption is not None:
            raise interruption

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


_JOBS: SimpleQueue[_Job] = SimpleQueue()
_WORKERS: list[threading.Thread] = []  # made when they are first needed

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKERS.clear)  # threads do not survive a fork


def together(function: Callable[..., Any], arguments: tuple[Any, ...], threads: int) -> list[Any]:
    """Calls the function with the same arguments in several threads, one of them this one; returns all results.

    A call that has not begun when this thread's has ended is not made. Returns, or raises, only when all calls have
    ended: they work in memory that the caller is free to give up then.
    """
    others = [_Job(function, arguments) for _ in range(threads - 1)]
    while len(_WORKERS) < len(others):
        _WORKERS.append(threading.Thread(target=_work, args=(_JOBS,), name="coupler", daemon=True))
        _WORKERS[-1].start()
    for job in others:
        _JOBS.put(job)
    try:
        results = [function(*arguments)]
    finally:
        begun = [job for job in others if not job.take_back()]
        for job in begun:
            job.wait()
    return results + [job.result() for job in begun]


def for_each(function: Callable[[Any], Any], items: Iterable[Any], threads: int) -> None:
    """Calls the function with each item, in several threads, one of them this one.

    After an error no more items are begun. As they are begun in their order, the error that is raised is that of the
    first item which has one, whichever thread was faster.
    """
    waiting, errors = deque(enumerate(items)), {}

    def work() -> None:
        while waiting:
            try:
                number, item = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                function(item)
            except BaseException as error:
                waiting.clear()
                errors[number] = error

    together(work, (), min(threads, len(waiting)))
    if errors:
        raise errors[min(errors)]


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().run()
