"""Linear algebra on one thread: for as long as robots are built or closed, whoever else does so, and no longer."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from coupler import blas, robots
from coupler.blas import one_thread

LIBRARY = blas._openblas()

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="NumPy has another library than OpenBLAS")


@pytest.fixture(autouse=True)
def two():
    assert LIBRARY is not None
    before = LIBRARY.get()
    LIBRARY.set(2)
    yield
    LIBRARY.set(before)


def count() -> int:
    assert LIBRARY is not None
    return LIBRARY.get()


def test_blocks_within_blocks() -> None:
    with one_thread():
        with one_thread():
            assert count() == 1
        assert count() == 1
    assert count() == 2


def test_an_error_ends_a_block() -> None:
    with pytest.raises(ArithmeticError), one_thread():
        raise ArithmeticError
    assert count() == 2


def test_the_last_of_several_threads_sets_it_back() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        with one_thread():
            begun.set()
            assert may_end.wait(10)
        ended.append(count())

    other = threading.Thread(target=work)
    with one_thread():
        other.start()
        assert begun.wait(10)
    assert count() == 1
    may_end.set()
    other.join(10)
    assert ended == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("within", [False, True])
def test_a_child_does_not_wait_for_threads_of_its_parent(within: bool) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        with one_thread():
            begun.set()
            may_end.wait(10)

    other = threading.Thread(target=work)
    other.start()
    assert begun.wait(10)
    if within:
        with one_thread():
            child = os.fork()
    else:
        child = os.fork()
    if not child:
        os._exit(count())
    may_end.set()
    other.join(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert count() == 2


def test_robots_are_built_and_closed_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, svd = set[int](), np.linalg.svd

    def watched(*arguments, **options):
        seen.add(count())
        return svd(*arguments, **options)

    monkeypatch.setattr(np.linalg, "svd", watched)
    robot = robots.load("six_bar")
    robot.states.closure.assemble(robot.neutral() + 0.01)
    assert seen == {1}
    assert count() == 2
