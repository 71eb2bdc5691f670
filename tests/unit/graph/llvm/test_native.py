"""The CPU back end beyond its results: compilation, cache, threads, and what it is handed."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import llvmlite.binding as binding
import numpy as np
import pytest

import coupler
from coupler.graph import Builder, GraphError, View, cache, fields
from coupler.graph.llvm import Native, Target, host
from coupler.graph.llvm.entry import array_layout_is_known, batch_entry, one_state_entry
from coupler.graph.llvm.render import Renderer
from geared_chain import forward_dynamics, random_chain
from samples import four_bar, runge_kutta

DOUBLE = np.dtype(np.float64)


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("COUPLER_CACHE", str(folder))
    return folder


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.coupler"))


def output_of(script: str, **environment: str) -> str:
    """What a script prints in a process of its own, which finds the tests' modules and the same coupler."""
    tests = Path(__file__).parents[3]
    path = os.pathsep.join(map(str, (tests, tests.parent / "examples", Path(coupler.__file__).parents[1])))
    command, environment = [sys.executable, "-c", script], {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.check_output(command, env=environment, text=True, timeout=120).strip()


def scaled(factor: float):
    """A program that nobody else compiles: the factor is part of its kernel."""

    def kernel(s: View) -> None:
        s.y = s.x * factor

    b = Builder("scaled")
    b.loop(kernel, s=fields(x=b.input("x", 2).at(0, 2), y=b.output("y", 2).at(0, 2)))
    return b.build()


@pytest.mark.parametrize("lanes", [1, 8])
def test_the_code_does_not_depend_on_numbers_or_lengths(lanes: int) -> None:
    """Of short loops, whose turns are spelled out, not on numbers."""
    for chains in (((3, 0), (3, 1)), ((70, 0), (70, 1), (90, 2))):
        programs = [forward_dynamics(random_chain(n, seed)) for n, seed in chains]
        assert len({Renderer(program, DOUBLE, lanes, True).text for program in programs}) == 1


@pytest.mark.skipif(Native(scaled(1.0)).lanes < 4, reason="the stack is aligned to registers of 16 bytes anyway")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_spilled_registers_of_a_batch_are_aligned(dtype: type) -> None:
    """Else they would lie across cache lines, and by chance across pages, depending on the caller's stack."""
    target, program = host(), forward_dynamics(random_chain(3, 0))
    renderer = Renderer(program, np.dtype(dtype), target.lanes(np.dtype(dtype)), target.fused)
    module = binding.parse_assembly(renderer.text + batch_entry(renderer))
    module.triple = target.triple
    assembly = target.machine().emit_assembly(module)
    stores = re.findall(r"(vmov[au]p[sd])\s+%[yz]mm\d+, -?\d*\(%rsp\)", assembly)
    assert len(stores) > 10
    assert {store[:5] for store in stores} == {"vmova"}


def test_compiled_code_is_read_back_from_the_cache(cache_folder: Path) -> None:
    x = np.array([1.0, 2.0])
    first = Native(scaled(3.25))
    assert not first.prepare().from_cache
    assert len(entries(cache_folder)) == 1
    np.testing.assert_array_equal(first(x), 3.25 * x)
    del first
    gc.collect()
    again = Native(scaled(3.25))
    assert again.prepare().from_cache
    np.testing.assert_array_equal(again(x), 3.25 * x)


def test_a_large_kernel_is_compiled_quickly_for_a_single_state_and_gives_the_same_bits(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = forward_dynamics(random_chain(4, 0))
    inputs = np.random.default_rng(0).normal(size=(3, 4))
    well = Native(program)
    expected = well(*inputs)
    monkeypatch.setattr("coupler.graph.llvm.native._LARGE", 100)
    quick = Native(program)
    np.testing.assert_array_equal(quick(*inputs), expected)
    assert quick.prepare().address != well.prepare().address
    assert len(entries(cache_folder)) == 2


def test_code_in_use_is_shared_within_the_process(cache_folder: Path) -> None:
    first, second = Native(scaled(3.5)), Native(scaled(3.5))
    assert first.prepare() is second.prepare()


@pytest.mark.parametrize("damage", ["truncated", "foreign", "garbage", "swapped"])
def test_a_damaged_cache_means_a_recompile(cache_folder: Path, damage: str) -> None:
    x = np.array([1.0, 2.0])
    for factor in (4.25, 4.5):
        Native(scaled(factor)).prepare()
    gc.collect()
    first, second = entries(cache_folder)
    content = first.read_bytes()
    if damage == "truncated":
        first.write_bytes(content[: len(content) // 2])
    elif damage == "foreign":
        (cache_folder / "secret").write_bytes(os.urandom(32))
    elif damage == "garbage":
        first.write_bytes(os.urandom(len(content)))
    else:
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
    for factor in (4.25, 4.5):
        np.testing.assert_array_equal(Native(scaled(factor))(x), factor * x)


def test_the_cache_can_be_unwritable_or_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1.0, 2.0])
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for value, factor in ((str(blocked), 5.25), ("off", 5.5)):
        monkeypatch.setenv("COUPLER_CACHE", value)
        native = Native(scaled(factor))
        assert not native.prepare().from_cache
        np.testing.assert_array_equal(native(x), factor * x)
    assert blocked.read_text() == "not a folder"


def test_the_cache_key_tells_processors_apart(cache_folder: Path) -> None:
    if not host().triple.startswith("x86_64"):
        pytest.skip("compares two x86-64 processors")
    for cpu in ("x86-64", "nehalem"):
        Native(scaled(6.25), target=Target(host().triple, cpu, "", register_bytes=16, fused=False)).prepare()
    assert len(entries(cache_folder)) == 2


def test_another_process_finds_the_code(cache_folder: Path) -> None:
    script = (
        "from coupler.graph.llvm import Native; from samples import runge_kutta;"
        "print(Native(runge_kutta().program).prepare().from_cache)"
    )
    assert [output_of(script) for _ in range(2)] == ["False", "True"]


def test_code_is_freed_with_its_last_user() -> None:
    native = Native(scaled(7.25))
    native(np.ones(2))
    native(np.ones((9, 2)))
    code = weakref.ref(native.prepare())
    del native
    gc.collect()
    assert code() is None


@pytest.mark.parametrize("states", [(), (100,)])
def test_many_python_threads_may_call_at_once(states: tuple[int, ...]) -> None:
    sample = four_bar()
    native = Native(sample.program, threads=2)
    rng = np.random.default_rng(0)
    work = [sample.draw(rng, 100) for _ in range(8)]
    if not states:
        work = [[x[0] for x in inputs] for inputs in work]
    expected = [native(*inputs) for inputs in work]
    wrong: list[int] = []

    def repeat(i: int) -> None:
        for _ in range(50):
            if not all(np.array_equal(a, b) for a, b in zip(native(*work[i]), expected[i], strict=True)):
                wrong.append(i)

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_python_threads_run_while_a_program_does() -> None:
    """A long call releases the interpreter lock: a second thread gets something done before it returns."""
    native = Native(forward_dynamics(random_chain(300)))
    states = np.random.default_rng(0).normal(size=(3, 4000, 300))
    native(*states[:, :16])
    started, ticks = threading.Event(), []
    running = True

    def tick() -> None:
        started.set()
        while running:
            ticks.append(None)
            time.sleep(0)

    other = threading.Thread(target=tick)
    other.start()
    started.wait()
    sys_interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1000.0)  # the other thread runs only if this one gives way of its own accord
        before = len(ticks)
        native(*states)
        during = len(ticks) - before
    finally:
        sys.setswitchinterval(sys_interval)
        running = False
        other.join()
    assert during > 0


def test_a_batch_alone_compiles_nothing_else() -> None:
    native = Native(scaled(9.25))
    native(np.ones((3, 2)))
    assert native._one is None


def test_the_short_way_for_one_state() -> None:
    native, x = Native(scaled(9.5)), np.array([1.0, 2.0])
    assert native.one(x) is None  # not compiled yet
    native(x)
    result = native.one(x)
    assert result is not None
    np.testing.assert_array_equal(result, [9.5, 19.0])
    for other in (x.astype(np.float32), x[:1], x[None], np.ones((2, 2))[:, 0], [1.0, 2.0], None):
        assert native.one(other) is None
    for value in (np.nan, np.inf, -np.inf):
        assert native.one(np.array([1.0, value])) is None
    one = native.one
    del native
    gc.collect()
    np.testing.assert_array_equal(one(x), [9.5, 19.0])  # it keeps the code alive


@pytest.mark.parametrize("size", [1, 3, 8, 19, 32, 63, 513])
def test_the_short_way_is_for_results_that_are_known_to_be_finite(size: int) -> None:
    b = Builder("copy")
    x, y = b.input("x", size), b.output("y", size)
    b.loop(lambda here: setattr(here, "y", here.x + 1.0), here=fields(x=x.at(0, size), y=y.at(0, size)))
    native, values = Native(b.build()), np.arange(size, dtype=float)
    native(values)
    assert native.one(values) is not None
    for i in range(size):
        values[i], kept = np.nan, values[i]
        assert native.one(values) is None
        values[i] = kept


def test_short_programs_keep_the_interpreter_lock_and_long_ones_release_it() -> None:
    for links, release in ((4, False), (300, True)):
        renderer = Renderer(forward_dynamics(random_chain(links)), DOUBLE, 1, True)
        assert ("call ptr @PyEval_SaveThread" in one_state_entry(renderer)) == release
    assert "call ptr @PyEval_SaveThread" in one_state_entry(Renderer(four_bar().program, DOUBLE, 1, True))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("states", [2, 7, 8, 9, 1000, 100_001])
def test_every_state_of_a_batch_is_computed_once(threads: int, states: int) -> None:
    x = np.arange(2.0 * states).reshape(states, 2)
    native, out = Native(scaled(3.5), threads=threads), np.full((states, 2), np.nan)
    native(x, out=out)
    np.testing.assert_array_equal(out, 3.5 * x)
    np.testing.assert_array_equal(native(x[::-1]), out[::-1])


def test_whether_a_batch_is_finite_is_told() -> None:
    native, x = Native(scaled(3.75), threads=2), np.ones((10_000, 2))
    assert not native.answer(x)[1]  # the first call compiles, and tells nothing
    assert native.answer(x)[1]
    for state in (0, 5001, 9999):
        x[state, 1] = np.inf
        assert not native.answer(x)[1]
        x[state, 1] = 1.0
    assert native.answer(x)[1]


@pytest.mark.parametrize("states", [1, 8, 21])
def test_large_states_are_run_where_they_lie(states: int) -> None:
    """Memory of `room` has states innermost; a part of it, and plain arrays, give the same numbers."""
    size, rng = 1500, np.random.default_rng(0)

    def kernel(s: View) -> None:
        s.y, s.z = 2.0 * s.x + s.u[0], s.x

    b = Builder("large")
    x, u, y = b.input("x", size), b.input("u", 2), b.output("y", 2 * size)
    rows = np.arange(size)
    b.loop(kernel, s=fields(x=x.at(rows), u=u.at(0 * rows, 2), y=y.at(rows), z=y.at(size + rows)))
    native = Native(b.build())
    given, small = rng.normal(size=(states, size)), rng.normal(size=(states, 2))
    plain = np.empty((states, 2 * size))
    assert native.fill(plain, given, small)
    np.testing.assert_array_equal(plain, np.hstack([2.0 * given + small[:, :1], given]))
    rooms = [native.room(states, 2 * size) for _ in range(2)]
    lanes = rooms[0].shape[:-1]
    last = np.minimum(np.arange(np.prod(lanes)), states - 1)
    large, inputs = given[last].reshape(*lanes, size), small[last].reshape(*lanes, 2)
    for result in rooms:
        native.fill(result, large, inputs)
        np.testing.assert_array_equal(result.reshape(-1, 2 * size)[:states], plain)
        large = result[..., size:]  # the same numbers, as they lie in a part of the result
    np.testing.assert_array_equal(native(given, small), plain)
    plain[0, 0] = given[0, 0] = np.nan
    assert not native.fill(plain, given, small)


def test_a_batch_may_be_filled_into_what_it_reads() -> None:
    values = np.arange(16.0).reshape(8, 2)
    Native(scaled(-3.25)).fill(values, values)
    np.testing.assert_array_equal(values, -3.25 * np.arange(16.0).reshape(8, 2))


def test_a_million_rounds_need_no_more_memory_than_one() -> None:
    """Interleaved loops inside a repeat: their counters are taken from the stack once, not in every round."""

    def start(s: View) -> None:
        s.n = np.array(0.0)

    def up(s: View) -> None:
        s.n += 1.0

    def up_again(s: View) -> None:
        s.n = s.n + 1.0 + 0.0 * s.goal

    b = Builder("count")
    s = fields(goal=b.input("goal", 1).at(0), n=b.output("n", 1).at(0))
    b.loop(start, s=s)
    with b.repeat(until=lambda s: s.n >= s.goal, at_most=2_000_000, s=s), b.interleave([0, 1]):
        b.loop(up, s=s)
        b.loop(up_again, s=s)
    native = Native(b.build())
    assert native(np.array([2e6]))[0] == 2e6
    np.testing.assert_array_equal(native(np.array([[2e6], [10.0]]))[:, 0], [2e6, 10.0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_threads_work_in_a_forked_process() -> None:
    # In a process of its own, which forks with a pool of threads alive.
    script = """
import os, warnings, numpy as np
from samples import runge_kutta
from coupler.graph.llvm import Native
sample = runge_kutta()
native = Native(sample.program, threads=2)
inputs = sample.draw(np.random.default_rng(0), 64)
expected = native(*inputs)
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads, which is the point
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(native(*inputs), expected) else 1)
print(os.waitpid(child, 0)[1])
"""
    assert output_of(script) == "0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_a_compilation_under_way() -> None:
    script = """
import os, threading, time, warnings, numpy as np
from geared_chain import forward_dynamics, random_chain
from samples import runge_kutta
from coupler.graph import unroll
from coupler.graph.llvm import Native
import coupler.graph.llvm.jit as jit
warnings.simplefilter("ignore", DeprecationWarning)
sample, slow = runge_kutta(), unroll(forward_dynamics(random_chain(8)))
compiling = threading.Thread(target=lambda: Native(slow).prepare())
compiling.start()
while jit._LOCK.acquire(blocking=False) and compiling.is_alive():
    jit._LOCK.release()
    time.sleep(0.001)
child = os.fork()
if child == 0:
    Native(sample.program)(*sample.draw(np.random.default_rng(0), 1))
    os._exit(0)
compiling.join()
for _ in range(300):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        print(status)
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
"""
    assert output_of(script, COUPLER_CACHE="off") == "0"


@pytest.mark.parametrize("threads", [1, 2])
def test_the_fast_path_takes_plain_arrays_for_which_there_is_code(threads: int) -> None:
    native, one = Native(scaled(3.5), threads=threads), np.array([1.0, -2.0])
    many = np.arange(4000.0).reshape(2000, 2)
    assert native.fast(one) is None
    assert native.fast(many) is None
    native.prepare(batch=True)
    np.testing.assert_array_equal(native.fast(many), 3.5 * many)
    assert native.fast(one) is None
    native.prepare()
    for given in (one, many, many[::3, ::-1], many[:0]):
        np.testing.assert_array_equal(native.fast(given), 3.5 * given)
    for other in ([1.0, 2.0], many.tolist(), many[:, :1], many[None], many.astype(np.float32), many * np.nan):
        assert native.fast(other) is None


class Impostor:
    """Looks like an array, but is none."""

    dtype, shape, strides, ndim = DOUBLE, (2,), (8,), 1


@pytest.mark.parametrize("argument", [Impostor(), None, "ab", 3, [1.0], object(), np.zeros(3), np.zeros((2, 2, 3))])
def test_strange_arguments_are_refused_not_read(argument: object) -> None:
    with pytest.raises(GraphError, match="input 'x'"):
        Native(scaled(2.5))(argument)


def test_array_objects_are_laid_out_as_the_code_reads_them() -> None:
    assert array_layout_is_known()


def test_without_that_layout_a_single_state_is_a_batch_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coupler.graph.llvm.native._ARRAYS_ARE_READABLE", False)
    native = Native(scaled(2.75), threads=2)
    np.testing.assert_array_equal(native(np.array([1.0, 2.0])), [2.75, 5.5])
    assert native._one is None
    many = np.arange(4000).reshape(2000, 2)
    for _ in range(2):  # compiled before, it is still told where arrays are, and of what type
        np.testing.assert_array_equal(native(many), 2.75 * many)
    with pytest.raises(GraphError, match="expected"):
        native(many[:, :1])


def test_thread_counts_are_checked() -> None:
    with pytest.raises(GraphError, match="threads must be 1 or more, got 0"):
        Native(scaled(2.5), threads=0)


def test_operations_that_cannot_be_rendered_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from coupler.graph import operations

    monkeypatch.setitem(operations.OPERATIONS, "gamma", operations.Operation(1, np.abs))
    from coupler.graph.expr import apply

    b = Builder("unknown")
    b.loop(lambda s: setattr(s, "y", apply("gamma", s.x)), s=fields(x=b.input("x", 1).at(0), y=b.output("y", 1).at(0)))
    with pytest.raises(GraphError, match="the LLVM back end cannot render operation 'gamma'"):
        Native(b.build())(np.ones(1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neon_code_uses_its_registers(dtype: type) -> None:
    """NEON cannot be run here; that it is generated, in whole registers and with fused operations, can be seen."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = Target("aarch64-unknown-linux-gnu", "generic", "+neon", register_bytes=16, fused=True)
    renderer = Renderer(runge_kutta().program, np.dtype(dtype), target.lanes(np.dtype(dtype)), target.fused)
    module = binding.parse_assembly(renderer.text + batch_entry(renderer))
    module.triple = target.triple
    assembly = target.machine().emit_assembly(module)
    arrangement = "2d" if dtype == np.float64 else "4s"
    assert f"fmla\tv0.{arrangement}" in assembly or f".{arrangement}, v" in assembly
    assert assembly.count("fmla\t") > 20


def test_the_disk_cache_is_not_consulted_for_code_in_memory(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Native(scaled(8.25))
    first.prepare()
    monkeypatch.setattr(cache, "load", lambda key: pytest.fail("the disk was read"))
    assert Native(scaled(8.25)).prepare() is first.prepare()
