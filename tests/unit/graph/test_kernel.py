"""Tracing: what a kernel becomes, and what it may not do."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import Buffer, GraphError, View, constants, fields, symbol, symmetric
from coupler.graph.kernel import Location
from coupler.graph.measure import operations
from coupler.graph.tracing import trace

INPUT = Buffer("given", 12, "input")
SCRATCH = Buffer("work", 12, "scratch")


def add_one(a: View) -> None:
    a.y = a.x + 1.0


def windows(**slots):
    return {"a": fields(**slots)}


def test_a_kernel_is_loads_operations_and_stores() -> None:
    case = trace(add_one, windows(x=INPUT.at([3, 5]), y=SCRATCH.at([0, 1])))
    assert case.rows == 2
    assert case.buffers == (INPUT, SCRATCH)
    assert case.bases.tolist() == [[3, 0], [5, 1]]
    assert case.kernel.text == "%0 = add(p0[0], 1.0)\np1[0] = %0"


def test_constants_that_are_zero_or_one_in_every_row_are_part_of_the_kernel() -> None:
    def scale(a: View) -> None:
        a.y = a.c @ np.array([a.x, a.x, a.x, a.x])

    values = constants([[0.0, 1.0, -1.0, 5.0], [0.0, 1.0, -1.0, 6.0]])
    case = trace(scale, windows(x=INPUT.at([0, 1]), y=SCRATCH.at([0, 1]), c=values))
    assert case.constants.tolist() == [[5.0], [6.0]]
    assert operations(case.kernel.outputs) == {"mul": 1}  # x - x + c x


def test_kernels_that_differ_only_in_numbers_are_the_same() -> None:
    def scale(a: View) -> None:
        a.y = a.c * a.x

    texts = {
        trace(scale, windows(x=INPUT.at([i]), y=SCRATCH.at([i]), c=constants([2.0 + i]))).kernel.text for i in range(3)
    }
    assert len(texts) == 1


def test_a_constant_that_is_one_in_some_rows_only_stays_in_the_table() -> None:
    def scale(a: View) -> None:
        a.y = a.c * a.x

    case = trace(scale, windows(x=INPUT.at([0, 1]), y=SCRATCH.at([0, 1]), c=constants([1.0, 0.0])))
    assert case.constants.tolist() == [[1.0], [0.0]]


def test_what_is_not_used_is_not_loaded() -> None:
    def first_only(a: View) -> None:
        a.y = a.x[0] + 0.0 * a.x[1]

    case = trace(first_only, windows(x=INPUT.at([0], 3), y=SCRATCH.at([0]), unused=constants([3.0])))
    assert list(case.kernel.loads.values()) == [Location(0, 0)]
    assert case.constants.shape == (1, 0)


def test_a_field_written_back_unchanged_is_not_stored() -> None:
    def same(a: View) -> None:
        a.y = a.y
        a.z = a.y * 2.0

    case = trace(same, windows(y=SCRATCH.at([0]), z=SCRATCH.at([1])))
    assert len(case.kernel.stores) == 1


def test_reading_a_written_field_gives_the_written_value() -> None:
    def twice(a: View) -> None:
        a.y = a.x
        a.y += a.x
        a.y = a.y * a.y

    case = trace(twice, windows(x=INPUT.at([0]), y=SCRATCH.at([0])))
    assert case.kernel.text == "%0 = add(p0[0], p0[0])\n%1 = mul(%0, %0)\np1[0] = %1"


def test_a_symmetric_field_is_stored_once_and_mirrored() -> None:
    def mirror(a: View) -> None:
        assert a.S[0, 1] is a.S[1, 0]
        a.T = a.S * 2.0

    case = trace(mirror, windows(S=INPUT.at([0], symmetric(3)), T=SCRATCH.at([0], symmetric(3))))
    assert len(case.kernel.loads) == len(case.kernel.stores) == 6


def test_a_symmetric_field_reads_as_it_was_stored() -> None:
    def skewed(a: View) -> None:
        a.S = np.array([[1.0, 2.0], [3.0, 4.0]])
        assert a.S[1, 0] is a.S[0, 1]
        a.y = a.S[1, 0] * a.x

    trace(skewed, windows(S=SCRATCH.at([0], symmetric(2)), x=INPUT.at([0]), y=SCRATCH.at([6])))


def test_a_field_is_not_changed_in_part() -> None:
    def in_part(a: View) -> None:
        a.y[0] = a.x

    def by_addition(a: View) -> None:
        local = a.y
        local += a.x
        assert a.y[0].op == "symbol"  # the field is what it was
        a.y += a.x
        assert a.y[0] is local[0]

    slots = windows(x=INPUT.at([0]), y=SCRATCH.at([0], 2))
    with pytest.raises(GraphError, match="assigned as a whole"):
        trace(in_part, slots)
    trace(by_addition, slots)


def test_negative_zero_is_not_zero() -> None:
    def multiply(a: View) -> None:
        a.y = a.c * a.x

    case = trace(multiply, windows(x=INPUT.at([0, 1]), y=SCRATCH.at([0, 1]), c=constants([0.0, -0.0])))
    assert case.constants.shape == (2, 1)


def test_a_kernel_may_write_nothing() -> None:
    def idle(a: View) -> None:
        a.y = a.y

    case = trace(idle, windows(y=SCRATCH.at([0])))
    assert not case.kernel.outputs
    assert not case.kernel.is_condition


def test_windows_join() -> None:
    joined = fields(x=INPUT.at([0])) | fields(y=SCRATCH.at([0]))
    assert set(joined.fields) == {"x", "y"}
    with pytest.raises(GraphError, match="both windows have a field 'x'"):
        _ = joined | fields(x=SCRATCH.at([0]))


def unknown_field(a: View) -> None:
    a.y = a.nonsense


def unknown_target(a: View) -> None:
    a.nonsense = a.x


def writes_constant(a: View) -> None:
    a.c = a.x


def writes_input(a: View) -> None:
    a.x = a.x * 2.0


def wrong_shape(a: View) -> None:
    a.y = np.array([a.x, a.x])


def stores_truth(a: View) -> None:
    a.y = a.x < 0.0


def returns(a: View):
    return a.x


def uses_foreign_symbol(a: View) -> None:
    a.y = a.x + symbol("stray")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (unknown_field, "'a' has no field 'nonsense'; it has x, y, c"),
        (unknown_target, "'a' has no field 'nonsense'"),
        (writes_constant, "a.c is a constant"),
        (writes_input, "a.x lies in the input 'given'"),
        (wrong_shape, r"a.y has shape \(\); got a value of \(2,\)"),
        (stores_truth, "a.y holds numbers"),
        (returns, "'returns' returns a value"),
        (uses_foreign_symbol, "uses stray"),
    ],
)
def test_what_a_kernel_may_not_do(kernel, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        trace(kernel, windows(x=INPUT.at([0]), y=SCRATCH.at([0]), c=constants([3.0])))


def test_parameters_and_windows_must_match() -> None:
    good = fields(x=INPUT.at([0]), y=SCRATCH.at([0]))
    with pytest.raises(GraphError, match="needs a window for its parameter 'a'"):
        trace(add_one, {"b": good})
    with pytest.raises(GraphError, match="no parameter 'b'"):
        trace(add_one, {"a": good, "b": good})
    with pytest.raises(GraphError, match="no fields"):
        trace(add_one, {})
    with pytest.raises(GraphError, match=r"a.y has 1 rows, but a.x has 2"):
        trace(add_one, windows(x=INPUT.at([0, 1]), y=SCRATCH.at([0])))


@pytest.mark.parametrize("bases", [[0, 12], [-1, 0], [0, 11]])
def test_a_base_outside_its_buffer_is_refused(bases: list[int]) -> None:
    with pytest.raises(GraphError, match=r"row \d: a field of 2 elements at -?\d+ lies outside buffer 'given'"):
        INPUT.at(bases, 2)


def test_bases_are_whole_numbers() -> None:
    with pytest.raises(GraphError, match="whole numbers"):
        INPUT.at([0.5])


def test_constants_are_finite_and_one_per_row() -> None:
    with pytest.raises(GraphError, match="row 1 is not"):
        constants([1.0, np.nan])
    with pytest.raises(GraphError, match="one value per row"):
        constants(1.0)


def two_windows(a: View, b: View) -> None:
    a.x = a.x + b.x


def test_overlapping_windows_are_refused_where_one_is_written() -> None:
    def of(bases):
        return fields(x=SCRATCH.at(bases, 3))

    trace(two_windows, {"a": of([0, 3]), "b": of([3, 0])})  # in other rows they may meet
    with pytest.raises(GraphError, match="row 1: two windows meet at element 4 of buffer 'work'"):
        trace(two_windows, {"a": of([0, 4]), "b": of([3, 2])})


def test_the_same_place_under_two_names_is_refused_if_written() -> None:
    with pytest.raises(GraphError, match=r"writes a.x, which is the same place as b.x"):
        trace(two_windows, {"a": fields(x=SCRATCH.at([0])), "b": fields(x=SCRATCH.at([0]))})


def test_a_condition_returns_one_truth_value_and_writes_nothing() -> None:
    def good(a: View):
        return a.x < 1.0

    def number(a: View):
        return a.x

    def writer(a: View):
        a.y = a.x
        return a.x < 1.0

    slots = windows(x=INPUT.at([0]), y=SCRATCH.at([0]))
    assert trace(good, slots, condition=True).kernel.outputs[0].logical
    for bad in (number, writer, add_one):
        with pytest.raises(GraphError, match="must return one truth value"):
            trace(bad, slots, condition=True)


def test_a_table_without_rows_is_fine() -> None:
    none = np.empty(0, int)
    assert trace(two_windows, {"a": fields(x=SCRATCH.at(none)), "b": fields(x=SCRATCH.at(none))}).rows == 0
    case = trace(add_one, windows(x=INPUT.at(np.empty(0, int)), y=SCRATCH.at(np.empty(0, int)), c=constants([])))
    assert case.rows == 0
