"""The scheduler: rows are grouped by what one trace serves, and run in the order in which they are added."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.graph import Builder, compile, symmetric
from coupler.passes import Place, Places, Schedule, Store


def double(x: Any) -> Any:
    return 2.0 * x


def add(x: Any, y: Any) -> Any:
    return x + y


def test_rows_run_in_the_order_in_which_they_are_added() -> None:
    """x → 2 x → 2 x + 3 → 2 (2 x + 3), with two kernels that take turns."""
    b = Builder("turns")
    x, y, three = b.input("x", 1), b.output("y", 1), np.array(3.0)
    value = [Place.of(x, 0, ()), *(Place.of(b.scratch(f"s{i}", 1), 0, ()) for i in range(2)), Place.of(y, 0, ())]
    schedule = Schedule(b)
    schedule.call(double, value[0], out=value[1])
    schedule.call(add, value[1], three, out=value[2])
    schedule.call(double, value[2], out=value[3])
    schedule.run()
    program = b.build()
    assert sorted(kernel.name for kernel in program.kernels()) == ["add", "double"]
    np.testing.assert_array_equal(compile(program, backend="interpreter")([5.0]), [26.0])


def test_rows_in_the_same_buffers_are_one_kernel() -> None:
    b = Builder("table")
    x, y = b.input("x", 4), b.output("y", 4)
    schedule = Schedule(b)
    for i in range(4):
        schedule.call(add, Place.of(x, i, ()), np.array(float(i) + 5.0), out=Place.of(y, i, ()))
    schedule.run()
    (kernel,) = b.build().kernels()
    assert kernel.name == "add"
    np.testing.assert_array_equal(compile(b.build(), backend="python")([0.0, 0.0, 0.0, 1.0]), [5.0, 6.0, 7.0, 9.0])


def test_a_place_may_be_read_and_written() -> None:
    b = Builder("sum")
    x, y = b.input("x", 3), b.output("y", 1)
    total, schedule = Place.whole(y, ()), Schedule(b)
    schedule.clear(total)
    for i in range(3):
        schedule.call(add, total, Place.of(x, i, ()), out=total)
    schedule.run()
    np.testing.assert_array_equal(compile(b.build(), backend="interpreter")([1.0, 2.0, 4.0]), [7.0])


def test_places_are_cleared_and_copied() -> None:
    """One kernel clears all matrices of a shape, and one copies them."""
    b = Builder("copies")
    x, y = b.input("x", 6), b.output("y", 12)
    schedule = Schedule(b)
    for start in (0, 2):
        schedule.clear(Place.of(y, start, (1, 2)))
    for start in (0, 4):
        schedule.copy(Place.of(x, start, 2), out=Place.of(y, 8 + start // 2, 2))
    schedule.copy(Place.block(x, 0, (2, 2), 3), out=Place.of(y, 4, (2, 2)))
    schedule.run()
    program = b.build()
    assert [kernel.name for kernel in program.kernels()] == ["clear", "_copy", "_copy"]
    expected = [0, 0, 0, 0, 1, 2, 4, 5, 1, 2, 5, 6]
    np.testing.assert_array_equal(compile(program, backend="interpreter")(np.arange(1.0, 7.0)), expected)


def test_lists_of_places_are_lists_of_arrays_and_results_may_be_several() -> None:
    def split(parts: list[Any], factor: Any) -> Any:
        return sum(part[0] for part in parts), factor * parts[0][1]

    b = Builder("lists")
    x, y = b.input("x", 4), b.output("y", 2)
    schedule = Schedule(b)
    parts = [Place.of(x, 0, 2), Place.of(x, 2, 2)]
    schedule.call(split, parts, np.array(10.0), out=[Place.of(y, 0, ()), Place.of(y, 1, ())])
    schedule.run()
    np.testing.assert_array_equal(compile(b.build(), backend="python")([1.0, 2.0, 3.0, 4.0]), [4.0, 20.0])


def test_nothing_added_is_nothing_run() -> None:
    b = Builder("nothing")
    b.input("x", 1)
    Schedule(b).run()
    assert not b.build().steps


def test_a_matrix_may_be_seen_as_its_transpose() -> None:
    b = Builder("transpose")
    x, y = b.input("x", 6), b.output("y", 6)
    schedule = Schedule(b)
    schedule.call(lambda A: A, Place.of(x, 0, (2, 3)).transposed(), out=Place.of(y, 0, (3, 2)))
    schedule.run()
    np.testing.assert_array_equal(compile(b.build(), backend="interpreter")(np.arange(6.0)), [0, 3, 1, 4, 2, 5])


def test_a_store_has_room_for_each_key_once() -> None:
    b = Builder("store")
    store = Store(lambda size: b.output("M", size))
    for key, shape in (("a", (2, 2)), ("b", symmetric(3)), ("a", (2, 2)), ("c", 1)):
        store.add(key, shape)
    assert store.size == 4 + 6 + 1
    assert [store.place(key).start for key in "abc"] == [0, 4, 10]
    np.testing.assert_array_equal(store.at(["c", "c"]).bases, [10, 10])


def test_several_rows_at_once_are_those_one_by_one() -> None:
    """y_i += x₀ x_i, where all rows share x₀, between rows that are added one by one, under flags."""

    def add_product(y: Any, a: Any, x: Any) -> Any:
        return y + a * x

    def program(at_once: bool) -> Any:
        b, rows = Builder("rows"), np.arange(1, 5)
        x, flags, y = b.input("x", 5), b.input("flags", 5), b.output("y", 5)
        schedule = Schedule(b)
        for i in range(5):
            schedule.call(double, Place.of(x, i, ()), out=Place.of(y, i, ()))
        if at_once:
            own, x_rows, where = (Places.of(buffer, rows, ()) for buffer in (y, x, flags))
            schedule.call(add_product, own, Place.of(x, 0, ()), x_rows, out=own, where=where)
        for i in rows.tolist() if not at_once else ():
            own, where = Place.of(y, i, ()), Place.of(flags, i, ())
            schedule.call(add_product, own, Place.of(x, 0, ()), Place.of(x, i, ()), out=own, where=where)
        schedule.call(double, Place.of(y, 4, ()), out=Place.of(y, 4, ()))
        schedule.run()
        return b.build()

    given = [3.0, 1.0, 2.0, 4.0, 8.0], [0.0, 1.0, 0.0, 1.0, 1.0]
    for backend in ("interpreter", "llvm"):
        answers = [compile(program(at_once), backend=backend)(*given) for at_once in (True, False)]  # type: ignore[arg-type]
        np.testing.assert_array_equal(answers[0], answers[1])
        np.testing.assert_array_equal(answers[0], [6.0, 5.0, 4.0, 20.0, 80.0])
