"""Programs run in Python: what a debugger sees, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import Builder, GraphError, View, compile, constants, fields, symmetric


def test_kernels_see_floats_row_by_row_in_order() -> None:
    seen: list[tuple[float, float]] = []

    def add(item: View, total: View) -> None:
        if isinstance(item.x, float):  # not while it is traced
            seen.append((item.x, item.weight[0]))
        total.sum += item.weight[0] * item.x

    b = Builder("weighted_sum")
    x, total = b.input("x", 3), b.output("total", 1)
    b.loop(lambda total: setattr(total, "sum", np.array(0.0)), total=fields(sum=total.at(0)))
    weights = constants([[1.0], [10.0], [100.0]])
    b.loop(add, item=fields(x=x.at(range(3)), weight=weights), total=fields(sum=total.at([0, 0, 0])), backwards=True)
    run = compile(b.build(), backend="python")
    np.testing.assert_array_equal(run([1.0, 2.0, 3.0]), [321.0])
    assert seen == [(3.0, 100.0), (2.0, 10.0), (1.0, 1.0)]
    np.testing.assert_array_equal(run([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), [[1.0], [10.0]])


def test_of_a_symmetric_pair_the_first_counts_as_in_a_trace() -> None:
    def square(here: View) -> None:
        here.S = np.array([[here.x, 2.0 * here.x], [5.0 * here.x, 3.0 * here.x]])
        here.y = here.S.ravel()

    b = Builder("mirrored")
    x, y, S = b.input("x", 1), b.output("y", 4), b.scratch("S", 3)
    b.loop(square, here=fields(x=x.at(0), y=y.at(0, 4), S=S.at(0, symmetric(2))))
    program = b.build()
    for backend in ("interpreter", "python"):
        np.testing.assert_array_equal(compile(program, backend=backend)([1.0]), [1.0, 2.0, 2.0, 3.0])


def test_a_list_of_windows_is_a_list_of_parameters() -> None:
    def total(parts: list[View], whole: View) -> None:
        whole.y = sum((part.x for part in parts), np.zeros(2))
        parts[0].twice = 2.0 * parts[0].x

    b = Builder("parts")
    x, y, twice = b.input("x", 6), b.output("y", 2), b.output("twice", 2)
    parts = [fields(x=x.at(2 * i, 2)) for i in range(3)]
    parts[0] |= fields(twice=twice.at(0, 2))
    b.loop(total, parts=parts, whole=fields(y=y.at(0, 2)))
    program = b.build()
    for backend in ("interpreter", "python", "llvm"):
        found = compile(program, backend=backend)(np.arange(6.0))
        np.testing.assert_array_equal(found[0], [6.0, 9.0])
        np.testing.assert_array_equal(found[1], [0.0, 2.0])
    with pytest.raises(GraphError, match=r"parameter 'parts\[1\]' must be a window"):
        b.loop(total, parts=[parts[0], 3], whole=fields(y=y.at(0, 2)))  # type: ignore[list-item]


def test_a_called_program_and_a_repeat_run_too() -> None:
    inner = Builder("double")
    a, c = inner.input("a", 1), inner.output("c", 1)
    inner.loop(lambda here: setattr(here, "c", 2.0 * here.a), here=fields(a=a.at(0), c=c.at(0)))
    double = inner.build()
    b = Builder("grow")
    x, y, z = b.input("x", 1), b.output("y", 1), b.scratch("z", 1)
    b.loop(lambda here: setattr(here, "y", here.x), here=fields(x=x.at(0), y=y.at(0)))
    with b.repeat(until=lambda here: here.y > 100.0, at_most=50, here=fields(y=y.at(0))):
        b.call(double, a=y, c=z)
        b.loop(lambda here: setattr(here, "y", here.z), here=fields(y=y.at(0), z=z.at(0)))
    np.testing.assert_array_equal(compile(b.build(), backend="python")([[3.0], [101.0]]), [[192.0], [101.0]])


def test_what_cannot_be_written_is_refused() -> None:
    state = {"floats": False}

    def wrong(here: View) -> None:
        here.y = np.zeros(3) if state["floats"] else np.zeros(2)

    b = Builder("wrong")
    y = b.output("y", 2)
    b.loop(wrong, here=fields(y=y.at(0, 2)))
    run = compile(b.build(), backend="python")
    state["floats"] = True
    with pytest.raises(GraphError, match=r"here.y has shape \(2,\); got a value of \(3,\)"):
        run()
    with pytest.raises(GraphError, match="there are 'llvm', 'interpreter' and 'python'"):
        compile(run.program, backend="fortran")  # type: ignore[arg-type]
