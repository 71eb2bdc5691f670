"""Forks, interrupts, event loops and subinterpreters. What may hang or crash runs in a process of its own."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import coupler
from coupler import forks
from coupler.algorithms.aba import forward_dynamics_program
from coupler.forks import cached_property, held_at_fork, imports
from coupler.graph import GraphError
from coupler.graph.llvm import Native
from coupler.simulate import Log
from effort import samples, sweep

HANG = 120  # s: longer than anything here takes on a machine that is busy with other things

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
timed = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")


def output_of(script: str, *arguments: object, **environment: str) -> str:
    """What a script prints, if it ends well."""
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    variables = os.environ | {"COUPLER_THREADS": "2"} | environment
    return subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, text=True, timeout=5 * HANG, check=True
    ).stdout.strip()


# Forks

BUSY = """
import faulthandler, itertools, multiprocessing, os, sys, threading, time
import numpy as np
import coupler

count, pause = int(sys.argv[1]), np.random.default_rng(0)


def batch(name):
    robot = coupler.robots.load(name)
    q, zeros = np.repeat(robot.neutral()[None], 2000, axis=0), np.zeros((2000, robot.nv))
    return float(coupler.forward_dynamics(robot, q, zeros, zeros)[-1, 0])


def keep_busy():
    for name in itertools.cycle(["slider_crank", "four_bar", "planar_leg_linkage", "five_bar"]):
        if ending.is_set():
            return
        batch(name)


ending, busy = threading.Event(), [threading.Thread(target=keep_busy, daemon=True) for _ in range(2)]
for thread in busy:
    thread.start()
"""

# NumPy may abort a process that ends while daemon threads are in the midst of it, before Python 3.14.
ALONE = """
ending.set()
for thread in busy:
    thread.join()
"""

FORK = """
for _ in range(count):
    time.sleep(pause.uniform(0.0, 0.1))
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(120, exit=True)
        batch("four_bar")
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""

POOL = """
for _ in range(count // 3):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        names = ["four_bar", "slider_crank", "four_bar"]
        found = pool.map_async(batch, names).get(120)
        print(*(int(value != batch(name)) for name, value in zip(names, found)))
"""


@forking
@pytest.mark.sampled
@pytest.mark.parametrize("way", [FORK, POOL], ids=["os.fork", "multiprocessing"])
def test_children_answer_that_are_forked_while_others_build_and_compute(way: str) -> None:
    count = samples(6 if way == FORK else 3, 201)
    assert output_of(BUSY + way + ALONE, count).split() == ["0"] * count


FIRST = """
import faulthandler, os, sys, threading, time
import coupler


def first():
    robot = coupler.robots.load("four_bar")
    coupler.mass_matrix(robot, robot.neutral())


threading.Thread(target=first).start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(120, exit=True)
    first()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@forking
@pytest.mark.sampled
def test_children_answer_that_are_forked_while_another_thread_imports_and_compiles() -> None:
    for delay in np.linspace(0.01, 0.2, samples(3, 60)):
        assert output_of(FIRST, delay, COUPLER_CACHE="off") == "0"


@forking
def test_a_lock_that_is_registered_while_a_fork_waits_is_taken_as_well() -> None:
    script = """
import os, threading, time
from coupler.forks import held_at_fork, imports

ready = threading.Event()


def register():
    with imports():
        ready.set()
        time.sleep(0.3)  # the fork waits meanwhile
        late.append(held_at_fork(threading.Lock()))
    with late[0]:
        time.sleep(0.3)


late = []
threading.Thread(target=register).start()
ready.wait()
child = os.fork()
if child == 0:
    os._exit(0 if late[0].acquire(timeout=20) else 1)
print(os.waitpid(child, 0)[1])
"""
    assert output_of(script) == "0"


@pytest.mark.sampled
def test_a_process_ends_well_while_a_daemon_thread_compiles() -> None:
    script = """
import sys, threading, time
import coupler

robot = coupler.robots.load("four_bar")
threading.Thread(target=lambda: coupler.Simulation(robot).run(0.01), daemon=True).start()
time.sleep(float(sys.argv[1]))
"""
    for delay in (0.3, 0.2, 0.4)[: samples(1, 3)]:
        assert output_of(script, delay, COUPLER_CACHE="off") == ""


# What takes the place of functools


def test_properties_are_computed_once_and_kept() -> None:
    class Thing:
        calls = 0

        @cached_property
        def value(self) -> list[int]:
            """Its value."""
            self.calls += 1
            return [self.calls]

    thing = Thing()
    assert thing.value is thing.value and thing.value == [1]
    del thing.__dict__["value"]
    assert thing.value == [2]
    assert Thing.value.__doc__ == "Its value." and isinstance(vars(Thing)["value"], cached_property)


def test_threads_that_ask_at_once_get_the_same_object() -> None:
    class Thing:
        @cached_property
        def value(self) -> object:
            both.wait(60)
            return object()

    both, thing, found = threading.Barrier(2), Thing(), list[object]()
    asking = [threading.Thread(target=lambda: found.append(thing.value)) for _ in range(2)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert found[0] is found[1] is thing.value


def test_imports_may_be_nested_and_locks_come_back_as_they_were() -> None:
    with imports(), imports():
        pass
    lock = threading.Lock()
    try:
        assert held_at_fork(lock) is lock
        forks._take_locks()
        assert lock.locked()
        forks._give_locks_back()
        assert not lock.locked()
    finally:
        forks._LOCKS.remove(lock)


# Ctrl-C

INTERRUPTED = """
import signal, sys
import numpy as np
import coupler


def interrupt(*_):
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, interrupt)
"""

BATCH = """
from coupler.algorithms.aba import forward_dynamics_program
from coupler.graph import compile

robot = coupler.robots.load("tello")
executable = compile(forward_dynamics_program(robot), threads=int(sys.argv[1]))
q, zeros = robot.neutral(), np.zeros(robot.nv)
executable(*(np.broadcast_to(x, (64, len(x))) for x in (q, zeros, zeros)))
states = 100_000
while True:  # until it takes so long that an interrupt comes in its midst
    out = np.full((states, robot.nv), np.nan)
    inputs = [np.broadcast_to(x, (states, len(x))) for x in (q, zeros, zeros)]
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        executable(*inputs, out=out)
        signal.pause()
    except KeyboardInterrupt:
        pass
    done = np.isfinite(out[:, 0]).mean()
    if done < 1.0 or states >= 1_600_000:
        break
    states *= 2
print(done < 1.0)
"""

ROLLOUT = """
robot = coupler.robots.load("four_bar")
q0, controls = np.repeat(robot.neutral()[None], 512, axis=0), np.zeros((100, robot.nv))
coupler.rollout(robot, q0[:1], None, controls[:1])
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    coupler.rollout(robot, q0, None, controls, hold=10**9)  # which takes years
except KeyboardInterrupt:
    print(True)
"""


@timed
@pytest.mark.parametrize(("work", "threads"), sweep([("b", 1), ("b", 2), ("r", 1), ("r", 2)], [("b", 1), ("r", 2)]))
def test_an_interrupt_is_answered_before_the_work_is_done(work: str, threads: int) -> None:
    script = INTERRUPTED + {"b": BATCH, "r": ROLLOUT}[work]
    assert output_of(script, threads, COUPLER_THREADS=str(threads)) == "True"


def test_parts_of_a_batch_are_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each part took too long, so that they are as small as can be."""
    robot, rng = coupler.robots.load("four_bar"), np.random.default_rng(0)
    program = forward_dynamics_program(robot)
    states = [np.array(part) for part in zip(*(robot.random_state(rng) for _ in range(8)), strict=True)]
    q, v = (np.tile(part, (5000, 1)) for part in states)
    tau = rng.normal(size=v.shape)
    whole = Native(program, threads=2)
    whole._calm = 10**9
    for threads in (1, 2):
        parted = Native(program, threads=threads)
        monkeypatch.setattr(parted, "_states_in", lambda _, own=parted._piece: own)
        parted._calm = parted._piece
        assert len(q) > 3 * parted._piece
        for arrays in ((q, v, tau), (q[::-1], v[::-1], tau[::-1]), (q, v[0], tau), (q, v, tau[:1])):
            np.testing.assert_array_equal(parted(*arrays), whole(*arrays))
        with pytest.raises(GraphError, match="do not fit together"):
            parted(q, np.tile(v, (2, 1)), tau)


# Event loops and subinterpreters


def accelerations(states: int) -> np.ndarray:
    robot = coupler.robots.load("four_bar")
    q, zeros = np.repeat(robot.neutral()[None], states, axis=0), np.zeros((states, robot.nv))
    return coupler.forward_dynamics(robot, q, zeros, zeros)


def test_an_event_loop_goes_on_while_threads_compute() -> None:
    async def ticking() -> int:
        computing = [asyncio.create_task(asyncio.to_thread(accelerations, 50_000)) for _ in range(3)]
        ticks = 0
        while not all(task.done() for task in computing):
            await asyncio.sleep(0)
            ticks += 1
        for task in computing:
            np.testing.assert_array_equal(task.result(), accelerations(1)[[0] * 50_000])
        return ticks

    assert asyncio.run(ticking()) > 0


def test_an_event_loop_in_another_thread() -> None:
    async def run() -> Log:
        return coupler.Simulation(coupler.robots.load("four_bar")).run(0.02)

    found = list[Log]()
    thread = threading.Thread(target=lambda: found.append(asyncio.run(run())))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0].q, asyncio.run(run()).q)


def test_a_robot_made_in_one_thread_serves_all() -> None:
    robot, results = coupler.robots.load("five_bar"), list[np.ndarray]()
    q, v = robot.random_state(0)
    threads = [
        threading.Thread(target=lambda: results.append(coupler.forward_dynamics(robot, q, v, np.zeros(robot.nv))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    assert pickle.loads(pickle.dumps(robot)).name == robot.name


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import coupler

interpreters.run_string(interpreters.create(), f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import coupler
except ImportError as error:
    print(error, flush=True)
''')
"""


def test_subinterpreters_are_refused_clearly() -> None:
    try:
        told = output_of(SUBINTERPRETER)
    except subprocess.CalledProcessError:
        pytest.skip("this Python has no subinterpreters")
    assert told == "coupler does not run in a subinterpreter, because NumPy does not; use threads or processes instead"
