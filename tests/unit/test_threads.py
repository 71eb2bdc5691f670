"""The pool of threads: calls are waited for, errors are raised, and which one does not depend on who was faster."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from coupler.threads import for_each, together


def test_workers_are_waited_for_even_if_this_thread_fails() -> None:
    here, begun, ended = threading.current_thread(), threading.Event(), threading.Event()

    def work() -> None:
        if threading.current_thread() is here:
            assert begun.wait(10)
            raise KeyboardInterrupt
        begun.set()
        time.sleep(0.2)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        together(work, (), 2)
    assert ended.is_set()


def test_what_a_worker_raises_is_raised() -> None:
    here, begun = threading.current_thread(), threading.Event()

    def work() -> int:
        if threading.current_thread() is here:
            assert begun.wait(10)
            return 1
        begun.set()
        raise ArithmeticError("in a worker")

    with pytest.raises(ArithmeticError, match="in a worker"):
        together(work, (), 2)


def test_a_call_that_no_worker_has_begun_is_not_waited_for() -> None:
    busy, calls = threading.Event(), []
    blocked = [threading.Thread(target=together, args=(busy.wait, (), 2)) for _ in range(2)]
    for thread in blocked:
        thread.start()  # the first of them occupies the worker
    assert together(lambda: calls.append(None), (), 2) == [None] * len(calls)
    busy.set()
    for thread in blocked:
        thread.join()


def test_an_interrupt_stops_what_yields_in_all_threads() -> None:
    """Items never end by themselves. This thread is interrupted; whichever items it has, the others end as well."""
    here, begun = threading.current_thread(), threading.Barrier(3)

    def work(item: int) -> Iterator[None]:
        begun.wait(60)
        while True:
            yield
            if threading.current_thread() is here:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        for_each(work, range(3), 3)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_an_interrupt_while_waiting_stops_the_others() -> None:
    here, begun = threading.current_thread(), threading.Event()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def work(item: int) -> Iterator[None]:
        if threading.current_thread() is here:
            assert begun.wait(60)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            return
        begun.set()
        while True:
            yield

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            for_each(work, range(2), 2)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 1000])
def test_each_item_is_taken_once(threads: int, count: int) -> None:
    taken: list[int] = []
    for_each(taken.append, range(count), threads)
    assert sorted(taken) == list(range(count))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_error_of_the_first_item_that_has_one_is_raised(threads: int) -> None:
    """Later items fail sooner, and those after them are not begun."""
    taken: list[int] = []

    def work(item: int) -> None:
        taken.append(item)
        if item >= 3:
            time.sleep(0.05 if item == 3 else 0.0)
            raise ArithmeticError(f"item {item}")

    with pytest.raises(ArithmeticError, match="item 3"):
        for_each(work, range(1000), threads)
    assert len(taken) < 1000
