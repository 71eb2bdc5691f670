"""Instructions made of operations on rows do what these do one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import Backend, Builder, View, compile, fields
from coupler.graph.llvm.row_table import FROM_ZERO, MIRROR, instructions
from coupler.rows import RowCode, Rows

SIZE = 40  # numbers that are given, and as many that are not


def written(rng: np.random.Generator, rows: Rows, start: int) -> None:
    """Operations at random places, many of them evenly spaced, which read what others have just written."""
    for _ in range(40):
        width, count = int(rng.integers(1, 12)), int(rng.integers(1, 6))
        write = (rows.add, rows.subtract, rows.scale)[int(rng.integers(3))]
        places, steps = rng.integers(0, 2 * SIZE - 40, 3), rng.integers(0, 8, 3) * rng.integers(0, 2, 3)
        for i in range(count):
            t, s, f = (start + places + i * steps).tolist()
            if abs(t - s) >= width and not t <= f < t + width:  # an operation does not read what it writes itself
                write(t, f, s, width)
        if rng.random() < 0.4:
            rows.clear(start + int(rng.integers(0, SIZE)), width)


@pytest.mark.parametrize("seed", range(6))
def test_operations_that_overlap(seed: int) -> None:
    """Compiled and interpreted, with what is read before it is written, and written where it is read."""

    def kernel(x: View) -> None:
        rows, rng = Rows(), np.random.default_rng(seed)
        start = rows.take(2 * SIZE)
        for i in range(SIZE):
            rows.put(start + 2 * i if seed % 2 else start + i, x.given[i])
        written(rng, rows, start)
        x.after = rows.run().matrix(start, 1, 2 * SIZE, 2 * SIZE)[0]

    b = Builder("overlapping")
    given, after = b.input("given", SIZE), b.output("after", 2 * SIZE)
    b.loop(kernel, x=fields(given=given.at([0], SIZE), after=after.at([0], 2 * SIZE)))
    program, states = b.build(), np.random.default_rng(seed).normal(scale=0.3, size=(9, SIZE))
    backends: list[Backend] = ["llvm", "interpreter"]
    found, wanted = (compile(program, backend=backend)(states) for backend in backends)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(compile(program)(states[3]), found[3])


def reflection(rows: Rows, shift_is_read: bool = False) -> RowCode:
    """That of three rows by a normal beside them."""
    at, shift, result = rows.take(3 * 8), rows.take(8), rows.take(8)
    for i in range(24):
        rows.put(at + i, float(i))
    rows.clear(shift, 7)
    for i in range(3):
        rows.add(shift, at + 8 * i, at + 8 * i + 1, 7)
    rows.scale(shift, at, shift, 7)
    for i in range(3):
        rows.subtract(at + 8 * i + 1, at + 8 * i, shift, 7)
    if shift_is_read:
        rows.add(result, at, shift, 7)
    code = np.array(rows._code)
    given = code[:, 2] < 0
    code[:, 1:4] += 24
    code[given, 2] = ~(code[given, 2] - 24)
    return RowCode(np.concatenate([[[0, 24, 0, 0, 40]], code]), 24, 64)


def test_a_reflection_is_one_instruction() -> None:
    cleared, moved, table = instructions(reflection(Rows()), range(24, 48))
    assert not cleared
    assert len(moved) == 24
    assert table[:, 0].tolist() == [MIRROR]


def test_what_rows_are_shifted_by_is_kept_where_it_is_read() -> None:
    _, _, table = instructions(reflection(Rows(), shift_is_read=True), range(24, 64))
    assert MIRROR not in table[:, 0]
    assert FROM_ZERO in table[:, 0]
