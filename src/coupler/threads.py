"""The one pool of threads, which batches and rollouts share."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

_PATIENCE = 100  # polls before sleeping: a worker has little left to do by then, and being woken takes longer


class _Job:
    """A call that a worker begins, or that its owner takes back, whichever comes first."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._taken, self._ended = threading.Lock(), threading.Lock()
        self._result: Any = None
        self._error: BaseException | None = None
        self._over = False
        self._ended.acquire()

    def run(self) -> None:
        if self._taken.acquire(blocking=False):
            try:
                self._result = self._function(*self._arguments)
            except BaseException as error:  # raised again in the owner's thread
                self._error = error
            finally:
                self._over = True
                self._ended.release()

    def take_back(self) -> bool:
        """Takes the call back; false if a worker has begun it."""
        return self._taken.acquire(blocking=False)

    def wait(self) -> None:
        """Waits for its end; may be called again after an interrupt."""
        for _ in range(_PATIENCE):
            if self._over:
                return
            time.sleep(0)
        while not self._over:  # an interrupt may come at any moment, and then this is called once more
            self._ended.acquire()

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class _Pool:
    """Threads that are started when they are first needed, and wait for jobs."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._workers: list[threading.Thread] = []

    def hand_over(self, jobs: list[_Job]) -> None:
        """Gives jobs to the workers; each goes to the first that is free."""
        while len(self._workers) < len(jobs):
            self._workers.append(threading.Thread(target=_work, args=(self._jobs,), name="coupler", daemon=True))
            self._workers[-1].start()
        for job in jobs:
            self._jobs.put(job)


_POOL = _Pool()


def _renew_pool() -> None:
    global _POOL
    _POOL = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_pool)  # threads do not survive a fork, and its jobs are not the child's


def together(
    function: Callable[..., Any], arguments: tuple[Any, ...], threads: int, stop: Callable[[], None] | None = None
) -> list[Any]:
    """Calls a function with the same arguments in several threads, this one included; returns all results.

    A call that has not begun when this thread's call has ended is not made. Returns, or raises, only when all calls
    have ended, because they use memory that the caller may release then.

    Args:
        function: what to call.
        arguments: the arguments of each call.
        threads: the number of calls.
        stop: called when Ctrl-C interrupts the waiting, to make the calls end soon.
    """
    others = [_Job(function, arguments) for _ in range(threads - 1)]
    _POOL.hand_over(others)
    interruption: KeyboardInterrupt | None = None
    try:
        results = [function(*arguments)]
    finally:
        begun = [job for job in others if not job.take_back()]
        waiting = list(begun)
        while waiting:
            try:
                waiting[-1].wait()
                waiting.pop()
            except KeyboardInterrupt as caught:
                interruption = caught
                if stop is not None:
                    stop()
    if interruption is not None:
        raise interruption
    return results + [job.result() for job in begun]


def for_each(function: Callable[[Any], Iterable[Any] | None], items: Iterable[Any], threads: int) -> None:
    """Calls a function with each item, in several threads, this one included.

    After an error no more items are begun. Items are begun in order, so that the error that is raised is that of the
    first item that has one, whichever thread was faster. A function that takes long is a generator that yields now and
    then: after Ctrl-C, no thread continues beyond the next yield.
    """
    waiting, errors, interruptions = deque(enumerate(items)), dict[int, BaseException](), list[BaseException]()

    def stop(error: BaseException | None = None) -> None:
        waiting.clear()
        interruptions.append(error or KeyboardInterrupt())

    def work() -> None:
        while waiting:
            try:
                number, item = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                for _ in function(item) or ():
                    if interruptions:
                        return
            except Exception as error:
                waiting.clear()
                errors[number] = error
            except BaseException as error:
                stop(error)

    together(work, (), min(threads, len(waiting)), stop)
    if interruptions:
        raise interruptions[0]
    if errors:
        raise errors[min(errors)]


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().run()
