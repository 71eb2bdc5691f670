"""Programs in C: compiled with gcc, warnings being errors, and compared with the reference interpreter."""

import ctypes
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from coupler.graph import (
    Builder,
    GraphError,
    Interpreter,
    Program,
    View,
    Window,
    constant,
    constants,
    fields,
    symmetric,
)
from coupler.graph.c import Source, render
from coupler.graph.expr import Node, apply, where
from coupler.graph.operations import OPERATIONS, Operation
from samples import SAMPLES

GCC, GXX = shutil.which("gcc"), shutil.which("g++")
FLAGS = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-O2"]

gcc = pytest.mark.skipif(GCC is None, reason="gcc is not installed")
gxx = pytest.mark.skipif(GXX is None, reason="g++ is not installed")
both = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "float"])

# Of the largest result: a hundred or more rounding errors of either format. sin, cos, exp, ... of libm and of NumPy
# differ in the last bits, and x/d, y/d are computed as x·(1/d), y·(1/d) here.
TOLERANCE = {np.float64: 1e-13, np.float32: 1e-5}
ULPS = 4  # between the two libraries' elementary functions; all other operations agree exactly

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0]


class Compiled:
    """A program's C function, to be called with arrays like an executable; `work` may be given."""

    def __init__(self, program: Program, folder: Path, dtype: type = np.float64, name: str | None = None) -> None:
        self.program, self.dtype, self.text = program, dtype, render(program, dtype, name)
        _, source = self.text.save(folder)
        library = folder / f"{self.text.name}.so"
        command = [str(GCC), "-std=c99", *FLAGS, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not (done.returncode or done.stdout or done.stderr), done.stderr + self.text.source
        self.function = ctypes.CDLL(str(library))[self.text.name]
        size = re.search(r"_WORK (\d+)", self.text.header)
        self.work_size = int(size[1]) if size else 0

    def __call__(self, *inputs: Any, work: np.ndarray | None = None) -> Any:
        arrays = [np.ascontiguousarray(x, self.dtype) for x in inputs]
        assert [a.size for a in arrays] == [b.size for b in self.program.inputs]
        # A NaN behind the end of each array that a write would change.
        results = [np.full(b.size + 1, np.nan, self.dtype) for b in self.program.outputs]
        work = np.full(self.work_size + 1, np.nan, self.dtype) if work is None else work
        arguments = [*arrays, *results, *([work] if self.work_size else [])]
        self.function(*(ctypes.c_void_p(a.ctypes.data) for a in arguments))
        assert all(np.isnan(a[-1]) for a in (*results, work))
        outputs = [r[:-1] for r in results]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def assert_same(left, right) -> None:
    """Bit for bit the same, but for the bits of a NaN."""
    np.testing.assert_array_equal(left, right)
    known = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(left)[known], np.signbit(right)[known])


def assert_close(left, right, dtype) -> None:
    np.testing.assert_allclose(left, right, rtol=0, atol=TOLERANCE[dtype] * max(np.abs(right).max(), 1e-30))


def elementwise(name: str, function: Callable[..., object], rows: int, *inputs: str) -> Program:
    """result = function(inputs) for each of the rows."""
    b = Builder(name)
    x = fields(**{i: b.input(i, rows).at(range(rows)) for i in inputs})
    result = fields(value=b.output("result", rows).at(range(rows)))

    def kernel(x: View, result: View) -> None:
        result.value = function(*(getattr(x, i) for i in inputs))

    b.loop(kernel, x=x, result=result)
    return b.build()


# The chain of the example


@pytest.fixture(scope="module")
def chains() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "geared_chain.py"
    spec = importlib.util.spec_from_file_location("geared_chain", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@gcc
@both
@pytest.mark.parametrize("n", [1, 5, 12])
def test_chain(chains, tmp_path, n, dtype):
    program = chains.forward_dynamics(chains.random_chain(n))
    run, reference = Compiled(program, tmp_path, dtype), Interpreter(program, dtype)
    for state in np.random.default_rng(n).normal(size=(10, 3, n)).astype(dtype):
        assert_close(run(*state), reference(*state), dtype)


# Operations

ARGUMENTS = {
    "asin": [[-1.0, -0.4, 0.0, 0.9, 1.0]],
    "acos": [[-1.0, -0.4, 0.0, 0.9, 1.0]],
    "exp": [[-40.0, -1.0, 0.0, 0.3, 40.0, np.inf, -np.inf]],
    "log": [[1e-30, 0.5, 1.0, 3.0, 1e30, 0.0, -1.0]],
    "round": [[-2.5, -1.5, -0.4, -0.0, 0.5, 1.5, 2.5, 1e9]],
    "exponent": [[1.0, -1.5, 1e-30, 3e30, 0.99999, 8.0]],
    "power_of_two": [[-126.0, -3.0, 0.0, 1.0, 127.0]],
    "fma": [[1.1, -3.0, 1e8], [1.3, 7.1, 1e-8], [-1.43, 21.3, -1.0]],
    "sin": [[-3.0, -0.0, 0.7, 100.0]],
    "cos": [[-3.0, -0.0, 0.7, 100.0]],
    "tan": [[-3.0, -0.0, 0.7, 100.0]],
}
INEXACT = {"sin", "cos", "tan", "asin", "acos", "atan2", "exp", "log"}


@gcc
@both
@pytest.mark.parametrize("op", OPERATIONS)
def test_operation(tmp_path, op, dtype):
    operation = OPERATIONS[op]
    takes_truth = op in ("and", "or", "not")
    values = ARGUMENTS.get(op, [SPECIAL] * (2 if op == "select" else operation.arity))
    columns = np.array(list(itertools.product(*values))).T

    def function(*args: Node) -> Node:
        if takes_truth:
            args = tuple(x < 1.0 for x in args)
        if op == "select":
            args = (args[0] < args[1], *args)
        result = apply(op, *args)
        return where(result, 1.0, -0.0) if operation.logical else result

    program = elementwise(f"test_{op}", function, columns.shape[1], *"xyz"[: len(columns)])
    result, expected = Compiled(program, tmp_path, dtype)(*columns), Interpreter(program, dtype)(*columns.astype(dtype))
    assert np.asarray(result).dtype == dtype
    if op in INEXACT:
        finite = np.isfinite(expected)
        assert_same(result[~finite], expected[~finite])
        np.testing.assert_array_max_ulp(result[finite], expected[finite], ULPS, dtype)
    else:
        assert_same(result, expected)


@gcc
@both
@pytest.mark.parametrize("value", [0.1, -0.1, 1 / 3, 1e-30, 1e22, 3e38, 5e-324, np.pi, np.inf, -np.inf, np.nan])
def test_constants_are_exact(tmp_path, value, dtype):
    program = elementwise("literal", lambda x, y: where(x < y, value, constant(-0.0)), 1, "x", "y")
    run, reference = Compiled(program, tmp_path, dtype), Interpreter(program, dtype)
    for x, y in ((0.0, 1.0), (1.0, 0.0)):
        assert_same(run([x], [y]), reference(np.array([x], dtype), np.array([y], dtype)))


@gcc
@both
def test_parentheses(tmp_path, dtype):
    """Rounding shows every wrong grouping, and -Wall every pair of parentheses that a reader would miss."""

    def results(x: Any, y: Any, z: Any) -> Any:
        truth = ((x < y) | (y < z)) & ~((x == z) | ~(z <= y)) | ((x < y) == (y < z))
        numbers = [x - (y - z), x - y - z, x + (y + z), x * (y * z), x / (y / z), x / y / z, x / (y * z), x * (y + z)]
        numbers += [-(x * y) * z, -x - y, x - (-0.3) * y, x * -0.3, -abs(-x), -(x + y) / z, x + -(y * z), -(x / 3.0)]
        numbers += [where(x < y, where(y < z, x, y), z) - where(truth, x, y), where(x + y < z, x, y) * z, -(-x - -0.1)]
        numbers += [
            apply("min", x + y, where(x < y, y, z)),
            where(~truth, x, y) / (x + 0.1),
            x * x * x - (y - z) * (x - y),
        ]
        return np.array(numbers)

    b = Builder("grouping")
    x = fields(**{i: b.input(i, 1).at(0) for i in "xyz"})
    y = fields(y=b.output("result", 22).at(0, 22))

    def kernel(x, y):
        y.y = results(x.x, x.y, x.z)

    b.loop(kernel, x=x, y=y)
    program = b.build()
    run, reference = Compiled(program, tmp_path, dtype), Interpreter(program, dtype)
    assert "--" not in run.text.source
    for state in np.random.default_rng(0).normal(size=(50, 3, 1)).astype(dtype):
        # Not all exactly: quotients with a common divisor are products with its reciprocal.
        np.testing.assert_allclose(run(*state), reference(*state), rtol=8 * np.finfo(dtype).eps)


@gcc
def test_long_expressions_are_cut_and_shared(tmp_path):
    def polynomial(x):
        result = x * 0.123456789
        for i in range(60):
            result = (result + i * 0.987654321) * x - np.sin(result)
        return result

    program = elementwise("long_one", polynomial, 3, "x")
    run = Compiled(program, tmp_path)
    assert max(map(len, run.text.source.splitlines())) <= 120
    x = np.array([0.1, -0.2, 0.3])
    np.testing.assert_allclose(run(x), Interpreter(program)(x), rtol=1e-11)


def test_unknown_operation_is_refused(monkeypatch):
    monkeypatch.setitem(OPERATIONS, "cbrt", Operation(1, np.cbrt))
    program = elementwise("p", lambda x: apply("cbrt", x), 1, "x")
    with pytest.raises(GraphError, match="the C back end cannot render operation 'cbrt'"):
        render(program)


# Loops, repeats and calls


@gcc
def test_a_row_is_read_before_it_is_written(tmp_path):
    """Loads of places that the kernel writes, in every order of use."""
    b = Builder("rotate")
    x, y = b.input("x", 3), b.output("y", 3)

    def copy(a, b):
        b.v = a.v

    def rotate(b):
        first, second, third = b.v
        b.v = np.array([second, third, first])

    def swap_sum(b):
        b.v = np.array([b.v[1] + b.v[2], b.v[0] - b.v[1], b.v[0] * 2.0])

    b.loop(copy, a=fields(v=x.at(0, 3)), b=fields(v=y.at(0, 3)))
    b.loop(rotate, b=fields(v=y.at(0, 3)))
    b.loop(swap_sum, b=fields(v=y.at(0, 3)))
    assert_same(Compiled(b.build(), tmp_path)([1.0, 2.0, 4.0]), [5.0, -2.0, 4.0])


def interleaved() -> Program:
    """Two kernels that pass a value along in turn, so that their order shows; a third has no rows."""
    b = Builder("interleaved")
    x, y = b.input("x", 1), b.output("y", 1)
    s = b.scratch("s", 8)

    def start(x, s):
        s.v = x.v

    def scale(before, here, model):
        here.v = before.v * model.k

    def shift(before, here):
        here.v = before.v + 1.0

    def end(s, y):
        y.v = s.v

    def at(*places: int) -> Window:
        return fields(v=s.at(np.array(places, int)))

    b.loop(start, x=fields(v=x.at(0)), s=at(0))
    with b.interleave([0, 1, 1, 0, 1, 0, 0]):
        b.loop(scale, before=at(0, 3, 5, 6), here=at(1, 4, 6, 7), model=fields(k=constants([2.0, 3.0, 5.0, 0.1])))
        b.loop(shift, before=at(1, 2, 4), here=at(2, 3, 5))
        b.loop(end, s=at(), y=fields(v=y.at(np.array([], int))))
    b.loop(end, s=at(7), y=fields(v=y.at(0)))
    return b.build()


@gcc
@both
def test_interleave(tmp_path, dtype):
    program = interleaved()
    run, reference = Compiled(program, tmp_path, dtype), Interpreter(program, dtype)
    for x in (0.0, 1.7, -3.1):
        assert_same(run([x]), reference(np.array([x], dtype)))


def newton(at_most: int = 50) -> Program:
    """The square root of x, and how many rounds it took."""
    b = Builder("newton")
    x, y, rounds = b.input("x", 1), b.output("y", 1), b.output("rounds", 1)
    state = fields(x=x.at(0), y=y.at(0), rounds=rounds.at(0))

    def start(s):
        s.y, s.rounds = s.x, constant(0.0)

    def close(s):
        return abs(s.y * s.y - s.x) <= 1e-5 * s.x

    def improve(s):
        s.y = 0.5 * (s.y + s.x / s.y)
        s.rounds += 1.0

    b.loop(start, s=state)
    with b.repeat(until=close, at_most=at_most, s=state):
        b.loop(improve, s=state)
    return b.build()


@gcc
@both
@pytest.mark.parametrize("at_most", [1, 4, 50])
def test_repeat(tmp_path, at_most, dtype):
    program = newton(at_most)
    run, reference = Compiled(program, tmp_path, dtype), Interpreter(program, dtype)
    for expected_rounds, x in enumerate((1.0, 1.001, 1.1, 1.5, 4.0, 10.0)):
        y, rounds = run([x])
        assert rounds == [min(expected_rounds, at_most)]
        for result, expected in zip((y, rounds), reference(np.array([x], dtype)), strict=True):
            assert_same(result, expected)


@gcc
def test_nested_repeat(tmp_path):
    """Counts the rounds of an inner loop whose length depends on the outer one's round."""
    b = Builder("nested")
    x, count = b.input("x", 1), b.output("count", 1)
    s = b.records("s", 1, i=(), j=())
    state = s[0] | fields(x=x.at(0), count=count.at(0))

    def start(s):
        s.i = s.j = s.count = constant(0.0)

    def outer_done(s):
        return s.x <= s.i

    def inner_done(s):
        return s.i < s.j

    def inner(s):
        s.j += 1.0
        s.count += 1.0

    def outer(s):
        s.i += 1.0
        s.j = constant(0.0)

    b.loop(start, s=state)
    with b.repeat(until=outer_done, at_most=6, s=state):
        with b.repeat(until=inner_done, at_most=4, s=state):
            b.loop(inner, s=state)
        b.loop(outer, s=state)
    program = b.build()
    run, reference = Compiled(program, tmp_path), Interpreter(program)
    for x in range(9):
        assert_same(run([x]), reference(np.array([float(x)])))
    assert run([8.0]) == [1 + 2 + 3 + 4 + 4 + 4]


@gcc
@pytest.mark.parametrize("truth", [True, False])
def test_condition_that_is_known(tmp_path, truth):
    b = Builder("known")
    y = b.output("y", 1)
    window = fields(y=y.at(0))

    def start(s):
        s.y = constant(0.0)

    def until(s):
        return constant(truth)

    def add(s):
        s.y += 1.0

    b.loop(start, s=window)
    with b.repeat(until=until, at_most=3, s=window):
        b.loop(add, s=window)
    assert Compiled(b.build(), tmp_path)() == [0.0 if truth else 3.0]


def called_twice() -> Program:
    sub = Builder("sub")
    x, y, t = sub.input("x", 2), sub.output("y", 2), sub.scratch("t", 2)

    def square(a, b):
        b.v = a.v * a.v

    def add(a, b):
        b.v = a.v + np.sqrt(a.v) + 0.5

    sub.loop(square, a=fields(v=x.at([0, 1])), b=fields(v=t.at([0, 1])))
    sub.loop(add, a=fields(v=t.at([0, 1])), b=fields(v=y.at([0, 1])))
    b = Builder("twice")
    x, y, middle = b.input("x", 2), b.output("y", 2), b.scratch("middle", 2)
    b.call(sub.build(), x=x, y=middle)
    b.call(sub.build(), x=middle, y=y)
    return b.build()


@gcc
@both
def test_program_called_twice(tmp_path, dtype):
    program = called_twice()
    run = Compiled(program, tmp_path, dtype)
    assert len(re.findall("^static void", run.text.source, re.M)) == 2  # each kernel once, though called twice
    x = np.array([1.3, -0.7], dtype)
    assert_same(run(x), Interpreter(program, dtype)(x))


@gcc
def test_symmetric_fields(tmp_path):
    b = Builder("mirror")
    x, y = b.input("x", 9), b.output("y", 9)
    store = b.records("store", 1, S=symmetric(3))

    def fill(x, store):
        store.S = x.X @ x.X.T

    def use(x, store, y):
        y.Y = store.S @ x.X

    b.loop(fill, x=fields(X=x.at(0, (3, 3))), store=store[0])
    b.loop(use, x=fields(X=x.at(0, (3, 3))), store=store[0], y=fields(Y=y.at(0, (3, 3))))
    program = b.build()
    run = Compiled(program, tmp_path)
    assert run.work_size == 6
    X = np.random.default_rng(0).normal(size=(3, 3))
    assert_same(run(X), Interpreter(program)(X.ravel()))
    np.testing.assert_allclose(run(X).reshape(3, 3), X @ X.T @ X, rtol=1e-13)


@gcc
def test_quotients_that_fold_away(tmp_path):
    """Sharing reciprocals makes two results equal, so that their difference needs nothing any more."""
    b = Builder("folded")
    x, d, y = b.input("x", 1), b.input("d", 1), b.output("y", 2)

    def kernel(x, y, model):
        r = model.k / x.d
        y.y = np.array([x.x / x.d - x.x * (1.0 / x.d), 2.0 * (r - model.k * (1.0 / x.d))])

    b.loop(kernel, x=fields(x=x.at(0), d=d.at(0)), y=fields(y=y.at(0, 2)), model=fields(k=constants([0.7])))
    assert_same(Compiled(b.build(), tmp_path)([1.0], [3.0]), [0.0, 0.0])


# Shapes of programs


@gcc
def test_nothing_to_do(tmp_path):
    """No rows, no elements, kernels that change nothing, inputs and scratch that nobody reads."""
    b = Builder("idle")
    empty, unused, x = b.input("empty", 0), b.input("unused", 3), b.input("x", 1)
    y, none = b.output("y", 1), b.output("none", 0)
    b.scratch("s", 5)

    def copy(x, y):
        y.v = x.v

    def keep(y):
        y.v = y.v

    nowhere = np.array([], int)
    b.loop(copy, x=fields(v=empty.at(nowhere)), y=fields(v=none.at(nowhere)))
    b.loop(copy, x=fields(v=x.at(0)), y=fields(v=y.at(0)))
    b.loop(keep, y=fields(v=y.at(0)))
    with b.interleave([1, 0]):
        b.loop(keep, y=fields(v=y.at(0)))
        b.loop(copy, x=fields(v=unused.at(0)), y=fields(v=y.at(0)))
    with b.interleave([0]):
        b.loop(keep, y=fields(v=y.at(0)))
        b.loop(copy, x=fields(v=empty.at(nowhere)), y=fields(v=none.at(nowhere)))
    program = b.build()
    run = Compiled(program, tmp_path)
    assert "const double *empty" in run.text.header and "work" not in run.text.header
    for result, expected in zip(run([], [1.0, 2.0, 3.0], [7.0]), ([1.0], []), strict=True):
        assert_same(result, np.array(expected))


@gcc
def test_program_without_anything(tmp_path):
    text = Compiled(Builder("nothing").build(), tmp_path).text
    assert "void nothing(void);" in text.header


@gcc
def test_wide_tables(tmp_path):
    """Bases need types of their own width."""
    size = 70000
    program_input = np.arange(float(size))
    b = Builder("wide")
    x, y = b.input("x", size), b.output("y", 4)

    def copy(x, y):
        y.v = x.v

    b.loop(copy, x=fields(v=x.at([0, 300, 65535, size - 1])), y=fields(v=y.at(range(4))))
    run = Compiled(b.build(), tmp_path)
    assert "uint32_t" in run.text.source
    assert_same(run(program_input), [0.0, 300.0, 65535.0, size - 1.0])


@gcc
def test_re_entrant(chains, tmp_path):
    """Two scratch spaces, calls in turn; what is left in one changes nothing."""
    run = Compiled(chains.forward_dynamics(chains.random_chain(5)), tmp_path)
    states = np.random.default_rng(3).normal(size=(2, 3, 5))
    works = [np.full(run.work_size + 1, np.nan), np.append(np.full(run.work_size, 1e30), np.nan)]
    first = [run(*state) for state in states]
    for _ in range(3):
        for state, work, expected in zip(states, works, first, strict=True):
            assert_same(run(*state, work=work), expected)
    writable = subprocess.run(["nm", str(tmp_path / "forward_dynamics.so")], capture_output=True, text=True).stdout
    assert not [line for line in writable.splitlines() if re.search(r" [bBdD] (kernel|bases|constants|order)", line)]


# Names and files


@gcc
@gxx
def test_names(tmp_path):
    """Names that C, C++, <math.h> or the file itself use for something else."""
    b = Builder("names")
    wishes = [
        "int",
        "double",
        "class",
        "sin",
        "work",
        "row",
        "names",
        "NAMES_WORK",
        "NAMES_H",
        "kernel_copy",
        "θ",
    ]
    wishes += ["a.b", "a_b", "minimum", "bases_copy", "uint8_t", "NAN", "I", "n0", "p0", "c", "order", "turn"]
    inputs = [b.input(name, 2) for name in wishes]
    y, s = b.output("restrict", 2 * len(wishes)), b.scratch("while.scratch", 2)

    def copy(x, s):
        s.v = x.v

    def double(s, y):
        y.v = np.minimum(2.0 * s.v, 1e9)

    for i, x in enumerate(inputs):
        b.loop(copy, x=fields(v=x.at([0, 1])), s=fields(v=s.at([0, 1])))
        b.loop(double, s=fields(v=s.at([0, 1])), y=fields(v=y.at([2 * i, 2 * i + 1])))
    run = Compiled(b.build(), tmp_path)
    x = np.arange(2.0 * len(wishes))
    assert_same(run(*x.reshape(-1, 2)), 2.0 * x)
    check_cplusplus(run.text, tmp_path)


@gcc
@gxx
def test_header_in_cplusplus(chains, tmp_path):
    check_cplusplus(Compiled(chains.forward_dynamics(chains.random_chain(2)), tmp_path).text, tmp_path)


def check_cplusplus(text: Source, folder: Path) -> None:
    main = folder / "main.cpp"
    name = text.name
    main.write_text(f'#include "{name}.h"\n#include "{name}.h"\nint main() {{ return &{name} == nullptr; }}\n')
    command = [str(GXX), "-std=c++11", *FLAGS, "-Wno-address", str(main), str(folder / f"{name}.so")]
    done = subprocess.run([*command, "-o", str(folder / "main")], capture_output=True, text=True)
    assert not (done.returncode or done.stdout or done.stderr), done.stderr


@pytest.mark.parametrize("name", ["int", "double", "sin", "sinf", "class", "main", "_f", "θ", "uint8_t", "a b", ""])
def test_function_names_that_are_refused(name):
    with pytest.raises(GraphError, match=re.escape(repr(name))):
        render(newton(), name=name)


def test_program_named_like_a_keyword_is_refused_and_can_be_renamed():
    program = Builder("int").build()
    with pytest.raises(GraphError, match="'int'"):
        render(program)
    assert render(program, name="integer").name == "integer"


@gcc
def test_odd_function_names(tmp_path):
    """A kernel's name comes from Python, which takes any text."""
    b = Builder("odd")
    y = b.output("y", 3)
    for i, name in enumerate(["<lambda>", "*/ error /*", "Größe"]):

        def kernel(y, i=i):
            y.v = constant(i + 1.0)

        kernel.__name__ = name
        b.loop(kernel, y=fields(v=y.at(i)))
    assert_same(Compiled(b.build(), tmp_path)(), [1.0, 2.0, 3.0])


def test_types_that_are_refused():
    with pytest.raises(GraphError, match="float16"):
        render(newton(), np.float16)


def test_text_is_deterministic(chains):
    texts = [render(chains.forward_dynamics(chains.random_chain(3))) for _ in range(2)]
    assert texts[0] == texts[1]


def test_float_text_has_no_double(chains):
    text = render(chains.forward_dynamics(chains.random_chain(2)), np.float32)
    assert "double" not in text.header + text.source
    assert not re.search(r"\b(sin|cos|sqrt)\(", text.source)
    assert not re.search(r"\d\.\d+\b(?!f)", re.sub(r"\d\.\d+(e[-+]\d+)?f", "", text.source))


def test_save(tmp_path):
    text = render(newton(), name="root")
    (tmp_path / "root.h").write_text("old")
    assert text.save(tmp_path) == (tmp_path / "root.h", tmp_path / "root.c")
    assert (tmp_path / "root.h").read_text() == text.header
    assert (tmp_path / "root.c").read_text() == text.source
    assert {path.name for path in tmp_path.iterdir()} == {"root.h", "root.c"}


def test_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "newton.h").write_text("old")

    def fail(file):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(GraphError, match=r"newton.h: it cannot be written: disk full"):
        render(newton()).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["newton.h"]
    assert (tmp_path / "newton.h").read_text() == "old"


def test_save_names_a_folder_that_is_missing(tmp_path):
    with pytest.raises(GraphError, match="nowhere: there is no such folder; make it first"):
        render(newton()).save(tmp_path / "nowhere")


@gcc
@both
@pytest.mark.parametrize("name", ["lookups", "sieve", "listed"])
def test_tables_and_flags(tmp_path, dtype, name):
    sample = SAMPLES[name]()
    run = Compiled(sample.program, tmp_path, dtype)
    for state in zip(*sample.draw(np.random.default_rng(5), 30), strict=True):
        assert_same(run(*state), np.asarray(Interpreter(sample.program, dtype)(*(x.astype(dtype) for x in state))))
