"""Operations on rows, put together into fewer instructions, each of which does what many do one after the other.

To look an instruction up costs more than to compute a short row. So sums into the same row become one instruction, and
so do multiples of one row that are added to several, wherever their places are evenly spaced. Every number is computed
by the same operations in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coupler.rows import ADD, CLEAR, COPY, DOT, INVERT, REFLECT, SCALE, SUBTRACT, RowCode

FIELDS = 10  # of an instruction: which one, t, w, s, f, how many n, distances d and e from one to the next, and x, y
SUMS = {ADD: DOT + 1, SUBTRACT: DOT + 2}  # m[t + c] ±= m[f + i e] m[s + i d + c], for all i < n
FROM_ZERO = DOT + 3  # m[t + c] = Σ m[f + i e] m[s + i d + c]
SPREADS = {ADD: DOT + 4, SUBTRACT: DOT + 5}  # m[t + i d + c] ±= m[f + i e] m[s + c], for all i < n
SCALES = DOT + 6  # m[t + i d + c] = m[f] m[s + i e + c], for all i < n
# Of reflections, with a first row at x and others at t + i d for i < n, of which m[y] and m[f + i e] are the normal:
MIRROR = DOT + 7  # of each row c, m[row + c] −= m[its normal] m[s] Σ m[normal] m[row + c]
NORMAL = DOT + 8  # of single numbers: REFLECT of the first one, with the sum of their squares; 1 / (l (x₀ + l)) in m[f]
ALL = range(DOT + 9)

Operation = Sequence[int]  # a row of `RowCode.code`


class Instructions(NamedTuple):
    """The instructions for a list of operations, in the order in which they run.

    Attributes:
        cleared: runs of the memory that are set to zero first: where they start, and how long they are.
        moved: the given numbers that are then put into the memory, and their places.
        table: the instructions, one a row.
    """

    cleared: list[tuple[int, int]]
    moved: list[tuple[int, int]]
    table: np.ndarray


def instructions(code: RowCode, wanted: Iterable[int]) -> Instructions:
    """The instructions that do what a list of operations does.

    A list of operations starts with all of its memory set to zero, and copies given numbers to where they are needed.
    Here only memory that is read before it is written is set to zero, and given numbers are put in place at once.

    Args:
        code: the list.
        wanted: the numbers of the memory that are needed afterwards.
    """
    operations, moved, first = code.code.tolist(), list[tuple[int, int]](), 1
    for kind, t, s, _, w in operations[1:]:
        if kind != COPY or s >= code.inputs:
            break
        moved += [(s + c, t + c) for c in range(w)]
        first += 1
    table, passed_by = _grouped(operations[first:])
    needed = _zeros_read(table, code.size, moved, wanted)
    if any(needed[place] for place in passed_by):
        table, _ = _grouped(operations[first:], reflections=False)
        needed = _zeros_read(table, code.size, moved, wanted)
    moved += [(place, place) for place in range(code.inputs) if needed[place]]  # given numbers that are read as such
    cleared = [run for run in _runs(needed) if run[0] >= code.inputs]
    return Instructions(cleared, moved, np.array(table, np.int64).reshape(-1, FIELDS))


def _zeros_read(
    table: Sequence[list[int]], size: int, moved: Iterable[tuple[int, int]], wanted: Iterable[int]
) -> bytearray:
    """Flags for places that are read, by instructions or afterwards, though nothing was written there.

    Sums into rows that nothing has written become sums that start from zero.
    """
    touched, needed = bytearray(size), bytearray(size)
    for _, place in moved:
        touched[place] = 1
    for instruction in table:
        if instruction[0] == SUMS[ADD] and not any(touched[instruction[1] : instruction[1] + instruction[2]]):
            instruction[0] = FROM_ZERO
        for at, width in _read(instruction):
            _note_zeros(touched, needed, at, width)
        for at, width in _written(instruction):
            touched[at : at + width] = b"\1" * width
    for place in wanted:
        _note_zeros(touched, needed, place, 1)
    return needed


def _note_zeros(touched: bytearray, needed: bytearray, at: int, width: int) -> None:
    if 0 in touched[at : at + width]:
        for place in range(at, at + width):
            if not touched[place]:
                needed[place] = touched[place] = 1


def _runs(flags: bytearray) -> list[tuple[int, int]]:
    places = np.flatnonzero(np.frombuffer(bytes(flags), np.uint8))
    parts = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if places.size else []
    return [(int(part[0]), len(part)) for part in parts]


def _read(instruction: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of the memory that an instruction reads: where they start, and how long they are."""
    kind, t, w, s, f, n, d, e, x, y = instruction
    if kind == MIRROR:
        yield from ((s, 1), (y, 1), (x, w))
        for i in range(n):
            yield f + i * e, 1
            yield t + i * d, w
    elif kind == NORMAL:
        yield x, 1
        for i in range(n):
            yield t + i * d, 1
    elif kind in SUMS.values() or kind == FROM_ZERO:
        if kind != FROM_ZERO:
            yield t, w
        for i in range(n):
            yield f + i * e, 1
            yield s + i * d, w
    elif kind in SPREADS.values():
        yield s, w
        for i in range(n):
            yield f + i * e, 1
            yield t + i * d, w
    elif kind == SCALES:
        yield f, 1
        for i in range(n):
            yield s + i * e, w
    elif kind == DOT:
        yield from ((t, 1), (s, w), (f, w))
    elif kind == REFLECT:
        yield from ((t, 1), (s, 1))
    elif kind != CLEAR:
        yield s, 1 if kind == INVERT else w


def _written(instruction: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of the memory that an instruction writes."""
    kind, t, w, _, f, n, d, _, x, _ = instruction
    if kind in SPREADS.values() or kind in (SCALES, MIRROR):
        if kind == MIRROR:
            yield x, w
        for i in range(n):
            yield t + i * d, w
    elif kind in (REFLECT, NORMAL):
        yield from ((t if kind == REFLECT else x, 1), (f, 1), (w, 1))
    else:
        yield t, 1 if kind in (DOT, INVERT) else w


def _grouped(operations: Sequence[Operation], reflections: bool = True) -> tuple[list[list[int]], set[int]]:
    """The instructions for a list of operations: each combines as many operations as it can.

    Args:
        operations: the operations.
        reflections: whether the operations of a reflection may become one instruction, or two.

    Returns:
        The instructions, and the places that they no longer write: sums that only reflections need.
    """
    result, passed_by, i = list[list[int]](), set[int](), 0
    while i < len(operations):
        kind, t, s, f, w = operations[i]
        if kind == CLEAR and reflections:
            reflection = _reflection(operations, i)
            if reflection is not None:
                instruction, count = reflection
                result.append(instruction)
                passed_by |= {*range(t, t + w)}
                i += count
                continue
        if kind == SCALE:
            count, distances = _evenly_scaled(operations, i)
            result.append([SCALES, t, w, s, f, count, *distances, 0, 0])
            i += count
            continue
        if kind not in SUMS:
            result.append([kind, t, w, s, f, 1, 0, 0, 0, 0])
            i += 1
            continue
        summed = _evenly_spaced(operations, i, 2, _may_be_summed)
        spread = _evenly_spaced(operations, i, 1, lambda first, other: True)
        count = max(summed[0], spread[0])
        if spread[0] > summed[0] or not _may_be_summed(operations[i], operations[i]):
            result.append([SPREADS[kind], t, w, s, f, *spread, 0, 0])
        else:
            result.append([SUMS[kind], t, w, s, f, *summed, 0, 0])
            if kind == ADD and len(result) > 1 and result[-2][:3] == [CLEAR, t, w]:
                result[-2:] = [[FROM_ZERO, *result[-1][1:]]]
        i += count
    return result, passed_by


def _reflection(operations: Sequence[Operation], first: int) -> tuple[list[int], int] | None:
    """The instruction for operations from `first` on that are a reflection, or its normal; and how many they are."""
    _, sum_at, _, _, w = operations[first]
    last = first + 1
    while last < len(operations) and tuple(operations[last][k] for k in (0, 1, 4)) == (ADD, sum_at, w):
        last += 1
    rows = [(s, f) for _, _, s, f, _ in operations[first + 1 : last]]  # each with its part of the normal
    if not rows or last == len(operations):
        return None
    (x, y), others = rows[0], rows[1:]
    (t, f), (d, e) = (others or rows)[0], (0, 0)
    if len(others) > 1:
        d, e = others[1][0] - t, others[1][1] - f
    if others != [(t + i * d, f + i * e) for i in range(len(others))]:
        return None
    kind, *places, factor, width = operations[last]
    if kind == REFLECT and places == [x, sum_at] and w == 1 and all(s == f for s, f in rows):
        return [NORMAL, t, width, 0, factor, len(others), d, 0, x, 0], last + 1 - first
    spread = [[SUBTRACT, s, sum_at, f, w] for s, f in rows]
    if [kind, *places, width] != [SCALE, sum_at, sum_at, w] or not _are(operations, last + 1, spread):
        return None
    written = sorted([sum_at, *(s for s, _ in rows)])
    apart = all(b - a >= w for a, b in pairwise(written))
    if not apart or any(a <= place < a + w for place in (factor, *(f for _, f in rows)) for a in written):
        return None
    return [MIRROR, t, w, factor, f, len(others), d, e, x, y], last + 1 + len(rows) - first


def _are(operations: Sequence[Operation], first: int, wanted: Sequence[Operation]) -> bool:
    return [[*operation] for operation in operations[first : first + len(wanted)]] == wanted


def _evenly_spaced(
    operations: Sequence[Operation], first: int, place: int, may: Callable[[Operation, Operation], bool]
) -> tuple[int, int, int]:
    """Number of operations from `first` on that differ only in a place and the factor's place, and the two spacings."""
    start, count, distance, of_factor = operations[first], 1, 0, 0
    same = [k for k in (0, 1, 2, 4) if k != place]
    while first + count < len(operations):
        operation = operations[first + count]
        if any(operation[k] != start[k] for k in same) or not may(start, operation):
            break
        if count == 1:
            distance, of_factor = operation[place] - start[place], operation[3] - start[3]
        elif operation[place] - start[place] != count * distance or operation[3] - start[3] != count * of_factor:
            break
        count += 1
    return count, distance, of_factor


def _evenly_scaled(operations: Sequence[Operation], first: int) -> tuple[int, tuple[int, int]]:
    """Number of operations from `first` on that scale evenly spaced rows by one factor, and the spacing of the rows."""
    _, t, s, f, w = operations[first]
    count, distances = 1, (0, 0)
    while first + count < len(operations):
        kind, *places, factor, width = operations[first + count]
        if kind != SCALE or factor != f or width != w:
            break
        distance = places[0] - t, places[1] - s
        distances = distance if count == 1 else distances
        if distance != (count * distances[0], count * distances[1]):
            break
        count += 1
    return count, distances


def _may_be_summed(first: Operation, other: Operation) -> bool:
    """Whether the row that is summed into differs from all rows that are read."""
    _, t, _, _, w = first
    _, _, s, f, _ = other
    return not t <= f < t + w and (s >= t + w or s + w <= t)
