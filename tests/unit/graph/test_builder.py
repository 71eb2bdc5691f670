"""Building programs: what is checked before a program is handed out."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import Builder, GraphError, Program, View, compile, constants, fields, state_by_state, unroll
from coupler.graph.window import Slot
from samples import double_pendulum, gauss_seidel


def copy(a: View) -> None:
    a.y = a.x


def accumulate(a: View, b: View) -> None:
    b.y = b.y + a.y


def ready(a: View):
    return a.x > 0.0


def test_what_is_read_must_have_been_written() -> None:
    b = Builder("p")
    work, out = b.scratch("work", 3), b.output("out", 2)
    b.loop(copy, a=fields(x=work.at([1, 2]), y=out.at([0, 1])))
    with pytest.raises(
        GraphError, match=r"'copy' reads element 1 of buffer 'work' before it is written \(turn 1 of its loop\)"
    ):
        b.build()


def test_the_order_of_rows_decides_what_is_written_before() -> None:
    def chain(**options) -> Program:
        b = Builder("p")
        x, out = b.input("x", 1), b.output("out", 4)
        b.loop(copy, a=fields(x=x.at([0]), y=out.at([0])))
        b.loop(copy, a=fields(x=out.at([0, 1, 2]), y=out.at([1, 2, 3])), **options)
        return b.build()

    chain()
    with pytest.raises(GraphError, match="reads element 2 of buffer 'out' before"):
        chain(backwards=True)


def test_reading_what_the_same_row_writes_is_too_early() -> None:
    b = Builder("p")
    out = b.output("out", 1)
    b.loop(lambda a: setattr(a, "y", a.y + 1.0), a=fields(y=out.at([0])))
    with pytest.raises(GraphError, match="reads element 0 of buffer 'out' before"):
        b.build()


def test_every_output_is_written_in_all_cases() -> None:
    b = Builder("p")
    x, out = b.input("x", 1), b.output("out", 2)
    b.loop(copy, a=fields(x=x.at([0]), y=out.at([0])))
    with pytest.raises(GraphError, match="without having written element 1 of its output 'out'"):
        b.build()
    with b.repeat(until=ready, at_most=3, a=fields(x=x.at([0]))):
        b.loop(copy, a=fields(x=x.at([0]), y=out.at([1])))
    with pytest.raises(GraphError, match="element 1"):  # a repeat may end before its first round
        b.build()
    b.loop(copy, a=fields(x=x.at([0]), y=out.at([1])))
    b.build()


def test_what_a_repeat_writes_may_be_read_inside_it_but_not_by_its_condition() -> None:
    b = Builder("p")
    x, work, out = b.input("x", 1), b.scratch("work", 1), b.output("out", 1)
    b.loop(copy, a=fields(x=x.at([0]), y=out.at([0])))
    with b.repeat(until=ready, at_most=3, a=fields(x=x.at([0]))):
        b.loop(copy, a=fields(x=x.at([0]), y=work.at([0])))
        b.loop(copy, a=fields(x=work.at([0]), y=out.at([0])))
    b.build()
    with b.repeat(until=ready, at_most=3, a=fields(x=work.at([0]))):
        b.loop(copy, a=fields(x=x.at([0]), y=work.at([0])))
    with pytest.raises(GraphError, match="'ready' reads element 0 of buffer 'work'"):
        b.build()


def test_interleaved_rows_are_checked_in_their_order() -> None:
    def alternate(order: list[int]) -> Program:
        b = Builder("p")
        x, out = b.input("x", 2), b.output("out", 4)
        with b.interleave(order):
            b.loop(copy, a=fields(x=x.at([0, 1]), y=out.at([0, 2])))
            b.loop(copy, a=fields(x=out.at([0, 2]), y=out.at([1, 3])))
        return b.build()

    alternate([0, 1, 0, 1])
    alternate([0, 0, 1, 1])
    with pytest.raises(GraphError, match="reads element 0"):
        alternate([1, 0, 0, 1])


def interleave_unknown(b: Builder, a) -> None:
    with b.interleave([0, 1]):
        b.loop(copy, a=a)


def interleave_miscounted(b: Builder, a) -> None:
    with b.interleave([0, 0]):
        b.loop(copy, a=a)


def interleave_repeat(b: Builder, a) -> None:
    with b.interleave([0]), b.repeat(until=ready, at_most=1, a=a):
        b.loop(copy, a=a)


def repeat_never(b: Builder, a) -> None:
    with b.repeat(until=ready, at_most=0, a=a):
        pass


def repeat_on_rows(b: Builder, a) -> None:
    with b.repeat(until=lambda a: a.z > 0.0, at_most=1, a=fields(z=constants([1.0, 2.0]))):
        pass


def same_name(b: Builder, a) -> None:
    b.scratch("x", 3)


def odd_name(b: Builder, a) -> None:
    b.scratch("not a name", 3)


def empty_name(b: Builder, a) -> None:
    b.scratch("", 3)


def negative_size(b: Builder, a) -> None:
    b.scratch("more", -1)


def row_outside(b: Builder, a) -> None:
    _ = b.records("r", 3, v=2)[[0, 3]]


def row_negative(b: Builder, a) -> None:
    _ = b.records("r", 3, v=2)[-1]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (interleave_unknown, "its order names loop 1"),
        (interleave_miscounted, r"loop 0 \(copy\) has 1 rows, but comes 2 times"),
        (interleave_repeat, "interleave joins plain loops"),
        (repeat_never, "at_most of a repeat must be 1 or more, got 0"),
        (repeat_on_rows, "must look at one row, got 2"),
        (same_name, "has a buffer 'x' already"),
        (odd_name, "must be an identifier without leading underscore, got 'not a name'"),
        (empty_name, "must be an identifier without leading underscore, got ''"),
        (negative_size, "the size of 'more' must be 0 or more, got -1"),
        (row_outside, "row 3 is outside records 'r' of 3 rows"),
        (
            lambda b, a: b.loop(copy, a=b.records("r", 3, v=2)),
            "must be a window, got Records: take its rows, as in links",
        ),
        (
            lambda b, a: fields(x=b.scratch("whole", 1)),
            "field 'x' is the whole buffer 'whole'; say where it lies, with .at",
        ),
        (lambda b, a: fields(x=b.name), "field 'x' must be buffer.at"),
        (lambda b, a: fields(_x=constants([1.0])), "a name that starts with an underscore"),
        (lambda b, a: b.input("_x", 1), "without leading underscore, got '_x'"),
        (lambda b, a: b.input("check", 1), "an input cannot be called 'check'"),
        (lambda b, a: b.input("y", 3.0), "the size of 'y' must be a whole number, got 3.0"),
        (lambda b, a: b.call(double_pendulum(), y=b.records("r", 2, v=2)), "'y' must be a buffer, got Records"),
        (lambda b, a: b.records("r", 3, v=2)[[0.5]], "the rows of records 'r' must be a list of whole numbers"),
        (lambda b, a: b.records("r", 3, v=2)[[True, False]], "must be a list of whole numbers, got bool"),
        (row_negative, "row -1 is outside records 'r'"),
    ],
)
def test_mistakes_are_named(mistake, message: str) -> None:
    b = Builder("p")
    x, out = b.input("x", 1), b.output("out", 1)
    with pytest.raises(GraphError, match=message):
        mistake(b, fields(x=x.at([0]), y=out.at([0])))


def test_records_take_a_mask() -> None:
    records = Builder("p").records("r", 4, v=2)
    slot = records[np.array([False, True, True, False])].fields["v"]
    assert isinstance(slot, Slot)
    assert slot.bases.tolist() == [2, 4]


def test_the_order_of_interleave_is_a_vector() -> None:
    b = Builder("p")
    with (
        pytest.raises(GraphError, match="the order of interleave must be a list of whole numbers"),
        b.interleave([[0]]),
    ):
        pass


def test_a_program_is_built_outside_of_its_blocks() -> None:
    b = Builder("p")
    x, out = b.input("x", 1), b.output("out", 1)
    b.loop(copy, a=fields(x=x.at([0]), y=out.at([0])))
    block = b.repeat(until=ready, at_most=2, a=fields(x=x.at([0])))
    with block, pytest.raises(GraphError, match="inside a repeat or interleave that is still open"):
        b.build()
    b.build()


def test_a_program_needs_a_name() -> None:
    with pytest.raises(GraphError, match="must be an identifier"):
        Builder("two words")


def test_a_call_binds_every_input_and_output_once() -> None:
    pendulum = double_pendulum()

    def call(**bindings: str) -> None:
        b = Builder("p")
        other = Builder("q").scratch("foreign", 4)
        known = {"y": b.input("y", 4), "rate": b.output("rate", 4), "short": b.scratch("short", 3), "foreign": other}
        b.call(pendulum, **{name: known[value] for name, value in bindings.items()})
        b.build()

    call(y="y", rate="rate")
    with pytest.raises(GraphError, match="'rate' is not bound"):
        call(y="y")
    with pytest.raises(GraphError, match="'short' is unknown"):
        call(y="y", rate="rate", short="short")
    with pytest.raises(GraphError, match="'rate' has 4 elements"):
        call(y="y", rate="short")
    with pytest.raises(GraphError, match="overwrite the input 'y'"):
        call(y="rate", rate="y")
    with pytest.raises(GraphError, match="'rate' is bound twice"):
        call(y="rate", rate="rate")
    with pytest.raises(GraphError, match="not a buffer of program 'p'"):
        call(y="foreign", rate="rate")


def test_buffers_of_another_program_are_refused() -> None:
    b = Builder("p")
    foreign = Builder("q").input("x", 1)
    with pytest.raises(GraphError, match=r"kernel 'copy': input x\[1\] is not a buffer of program 'p'"):
        b.loop(copy, a=fields(x=foreign.at([0]), y=b.output("out", 1).at([0])))


def test_a_failed_block_leaves_the_builder_as_it_was() -> None:
    b = Builder("p")
    x, out = b.input("x", 1), b.output("out", 1)
    with pytest.raises(GraphError), b.repeat(until=ready, at_most=2, a=fields(x=x.at([0]))):
        b.loop(copy, a=fields(x=x.at([0])))  # y is missing
    b.loop(copy, a=fields(x=x.at([0]), y=out.at([0])))
    assert len(b.build().steps) == 1


def test_a_program_prints_as_an_outline() -> None:
    text = str(gauss_seidel(2).program)
    assert text.splitlines()[0].startswith("program gauss_seidel: input a[4], input b[2], output x[2]")
    assert "  repeat until _settled, at most 500 times" in text
    assert "      loop _product over 4 rows, 2 operations each" in text


def test_operations_are_counted_over_all_rows() -> None:
    b = Builder("p")
    x, out = b.input("x", 3), b.output("out", 3)
    b.loop(lambda a: setattr(a, "y", a.x * a.x + 1.0), a=fields(x=x.at(range(3)), y=out.at(range(3))))
    assert b.build().operations() == {"mul": 3, "add": 3}


def test_programs_that_repeat_cannot_be_unrolled() -> None:
    with pytest.raises(GraphError, match="'gauss_seidel' cannot be unrolled: it repeats until _settled"):
        unroll(gauss_seidel(2).program)


def test_unrolling_folds_the_tables_in() -> None:
    b = Builder("p")
    x, work, out = b.input("x", 1), b.scratch("work", 3), b.output("out", 1)
    b.loop(copy, a=fields(x=x.at([0]), y=work.at([0])))
    model = fields(c=constants([2.0, 0.5]))
    b.loop(lambda a, c: setattr(a, "y", c.c * a.x), a=fields(x=work.at([0, 1]), y=work.at([1, 2])), c=model)
    b.loop(copy, a=fields(x=work.at([2]), y=out.at([0])))
    (loop,) = unroll(b.build()).steps
    (case,) = loop.cases  # type: ignore[union-attr]
    assert case.kernel.text == "%0 = mul(2.0, p0[0])\n%1 = mul(0.5, %0)\np1[0] = %1"


def test_kernels_are_shared_between_loops() -> None:
    b = Builder("p")
    x, out = b.input("x", 4), b.output("out", 4)
    for i in range(4):
        b.loop(copy, a=fields(x=x.at([i]), y=out.at([i])))
    assert len(b.build().kernels()) == 1


def test_tables_cannot_be_changed_afterwards() -> None:
    b = Builder("p")
    x, out = b.input("x", 1), b.output("out", 1)
    values = np.array([2.0])
    b.loop(lambda a: setattr(a, "y", a.c * a.x), a=fields(x=x.at([0]), y=out.at([0]), c=constants(values)))
    values[0] = 3.0
    (case,) = b.build().cases()
    assert case.constants[0, 0] == 2.0
    with pytest.raises(ValueError, match="read-only"):
        case.constants[0, 0] = 1.0


def test_flags_must_fit_the_rows_and_hinder_unrolling() -> None:
    def double(row: View) -> None:
        row.y = 2.0 * row.x

    b = Builder("flagged")
    x, y = b.input("x", 3), b.output("y", 3)
    rows = fields(x=x.at(range(3)), y=y.at(range(3)))
    with pytest.raises(GraphError, match="runs over 3 rows and needs as many flags, each a number; got 2"):
        b.loop(double, row=rows, where=x.at(range(2)))
    with pytest.raises(GraphError, match="not a buffer of program"):
        b.loop(double, row=rows, where=Builder("other").input("x", 3).at(range(3)))
    b.loop(double, row=rows, where=x.at(range(3)))
    program = b.build()
    assert "over 3 rows, 1 operations each, where x holds" in str(program)
    with pytest.raises(GraphError, match="cannot be unrolled: states leave out double"):
        unroll(program)


def test_flags_must_be_written_before_they_are_read() -> None:
    def double(row: View) -> None:
        row.y = 2.0 * row.x

    b = Builder("flagged")
    x, y, flags = b.input("x", 1), b.output("y", 1), b.scratch("flags", 1)
    b.loop(double, row=fields(x=x.at(0), y=y.at(0)), where=flags.at(0))
    with pytest.raises(GraphError, match="reads element 0 of buffer 'flags' before it is written"):
        b.build()


def _clear(row: View) -> None:
    row.y = 0.0 * row.y


def test_loops_among_flags_need_their_list_as_the_flags_are() -> None:
    b = Builder("listed")
    flags, y = b.input("flags", 3), b.output("y", 3)
    b.loop(lambda row: setattr(row, "y", row.x), row=fields(x=flags.at(range(3)), y=y.at(range(3))))
    b.list_flags(y)
    b.loop(_clear, row=fields(y=y.at(range(3))), among=y.at(range(3)))
    assert "list where y holds" in str(b.build())
    b.loop(_clear, row=fields(y=y.at(range(3))), among=y.at(range(3)))
    with pytest.raises(GraphError, match="runs among the flags 'y', which are not listed, or have been written since"):
        b.build()


def test_what_a_round_writes_makes_lists_of_the_round_before_stale() -> None:
    b = Builder("listed")
    flags, y, n = b.input("flags", 2), b.output("y", 2), b.output("n", 1)
    b.loop(lambda row: setattr(row, "y", row.x), row=fields(x=flags.at(range(2)), y=y.at(range(2))))
    b.loop(lambda row: setattr(row, "n", np.array(1.0)), row=fields(n=n.at(0)))
    b.list_flags(y)
    with b.repeat(until=lambda row: row.n <= 0.0, at_most=2, row=fields(n=n.at(0))):
        b.loop(lambda row: setattr(row, "n", row.n - 1.0), row=fields(n=n.at([0, 0])), among=y.at(range(2)))
        b.loop(_clear, row=fields(y=y.at(range(2))))
    with pytest.raises(GraphError, match="or have been written since"):
        b.build()


def test_rows_among_flags_come_in_the_order_of_the_flags() -> None:
    b = Builder("listed")
    flags, y = b.input("flags", 3), b.output("y", 3)
    with pytest.raises(GraphError, match="kernel '_clear': rows among flags must come in the order of the flags"):
        b.loop(_clear, row=fields(y=y.at(range(3))), among=flags.at([0, 2, 1]))
    mixed = b.interleave([0, 1])
    mixed.__enter__()
    b.loop(_clear, row=fields(y=y.at(0)), among=flags.at(0))
    b.loop(_clear, row=fields(y=y.at(1)))
    with pytest.raises(GraphError, match="all among the same flags, or all among none"):
        mixed.__exit__(None, None, None)
    b.list_flags(b.scratch("z", 1))
    with pytest.raises(GraphError, match="element 0 of the flags 'z' is listed before it is written"):
        b.build()


def test_recorded_steps_are_written_once_more() -> None:
    b = Builder("twice")
    x, y = b.input("x", 1), b.output("y", 1)
    b.loop(lambda here: setattr(here, "y", here.x), here=fields(x=x.at(0), y=y.at(0)))
    with b.recorded() as steps:
        b.loop(lambda here: setattr(here, "y", 2.0 * here.y), here=fields(y=y.at(0)))
    b.replay(steps)
    program = b.build()
    assert len(program.steps) == 3
    np.testing.assert_array_equal(compile(program, backend="interpreter")(np.array([3.0])), [12.0])


def test_steps_with_a_key_are_traced_once() -> None:
    traced = 0

    def double(row: View) -> None:
        nonlocal traced
        traced += 1
        row.y = 2.0 * row.y

    b = Builder("twice")
    x, y = b.input("x", 1), b.output("y", 1)
    b.loop(copy, a=fields(x=x.at(0), y=y.at(0)))
    for key in ("one", "one", "other"):
        b.once(key, lambda: b.loop(double, row=fields(y=y.at(0))))
    assert traced == 2
    np.testing.assert_array_equal(compile(b.build(), backend="interpreter")([3.0]), [24.0])


def test_batches_run_state_by_state_where_that_is_asked_for() -> None:
    """The code for batches is not made then, and results are the same to the last bit."""
    b = Builder("squares")
    x, y = b.input("x", 1), b.output("y", 1)

    def square(row: View) -> None:
        row.y = np.sin(row.x) / (row.x * row.x + 0.3)

    b.loop(square, row=fields(x=x.at(0), y=y.at(0)))
    executable, given = compile(b.build()), np.linspace(-2.0, 2.0, 21)[:, None]
    with state_by_state():
        one_by_one = executable(given)
    assert executable._batch is None  # type: ignore[attr-defined]
    np.testing.assert_array_equal(one_by_one, executable(given))
    assert executable._batch is not None  # type: ignore[attr-defined]
