"""Operations on rows, put together into fewer instructions, each of which does what many do one after the other.

To look an instruction up costs more than to compute a short row. So sums into the same row become one instruction, and
so do multiples of one row that are added to several, wherever their places are evenly spaced. Every number is computed
by the same operations in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coupler.rows import ADD, CLEAR, COPY, DOT, INVERT, REFLECT, SCALE, SUBTRACT, RowCode

FIELDS = 8  # of an instruction: which one, t, w, s, f, how many n, and distances d and e from one to the next
SUMS = {ADD: DOT + 1, SUBTRACT: DOT + 2}  # m[t + c] ±= m[f + i e] m[s + i d + c], for all i < n
FROM_ZERO = DOT + 3  # m[t + c] = Σ m[f + i e] m[s + i d + c]
SPREADS = {ADD: DOT + 4, SUBTRACT: DOT + 5}  # m[t + i d + c] ±= m[f + i e] m[s + c], for all i < n
SCALES = DOT + 6  # m[t + i d + c] = m[f] m[s + i e + c], for all i < n
MIRROR = DOT + 7  # m[t + i d + c] −= m[f + i e] x[c] for all i < n, with x[c] = m[s] Σ m[f + i e] m[t + i d + c]
ALL = range(DOT + 8)

Operation = Sequence[int]  # a row of `RowCode.code`


class Instructions(NamedTuple):
    """What a list of operations does, in the order in which this is done.

    Attributes:
        cleared: runs of the memory that are set to zero first: where they start, and how long they are.
        moved: which of the given numbers are then put where.
        table: the instructions, one a row.
    """

    cleared: list[tuple[int, int]]
    moved: list[tuple[int, int]]
    table: np.ndarray


def instructions(code: RowCode, wanted: Iterable[int]) -> Instructions:
    """The instructions that do what a list of operations does.

    It starts with all of its memory set to zero, and with copies of given numbers to where they are needed. Of the
    first, only that part is done which counts, and the numbers are put there at once.

    Args:
        code: the list.
        wanted: which numbers of the memory are needed afterwards.
    """
    operations, moved, first = code.code.tolist(), list[tuple[int, int]](), 1
    for kind, t, s, _, w in operations[1:]:
        if kind != COPY or s >= code.inputs:
            break
        moved += [(s + c, t + c) for c in range(w)]
        first += 1
    plain = _grouped(operations[first:])
    table, passed_by = _mirrored(plain)
    needed = _zeros_read(table, code.size, moved, wanted)
    if any(needed[place] for place in passed_by):
        table, needed = plain, _zeros_read(plain, code.size, moved, wanted)
    moved += [(place, place) for place in range(code.inputs) if needed[place]]  # given numbers that are read as such
    cleared = [run for run in _runs(needed) if run[0] >= code.inputs]
    return Instructions(cleared, moved, np.array(table, np.int64).reshape(-1, FIELDS))


def _zeros_read(
    table: Sequence[list[int]], size: int, moved: Iterable[tuple[int, int]], wanted: Iterable[int]
) -> bytearray:
    """Where instructions, or who wants numbers afterwards, read what nobody has written.

    Sums into rows that nobody has written become such that start from zero.
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
    kind, t, w, s, f, n, d, e = instruction
    if kind == MIRROR:
        yield s, 1
        for i in range(n):
            yield f + i * e, 1
            yield t + i * d, w
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
    kind, t, w, _, f, n, d, _ = instruction
    if kind in SPREADS.values() or kind in (SCALES, MIRROR):
        for i in range(n):
            yield t + i * d, w
    elif kind == REFLECT:
        yield from ((t, 1), (f, 1), (w, 1))
    else:
        yield t, 1 if kind in (DOT, INVERT) else w


def _grouped(operations: Sequence[Operation]) -> list[list[int]]:
    """Instructions, of which each is as many operations as can be put together."""
    result, i = list[list[int]](), 0
    while i < len(operations):
        kind, t, s, f, w = operations[i]
        if kind == SCALE:
            count, distances = _evenly_scaled(operations, i)
            result.append([SCALES, t, w, s, f, count, *distances])
            i += count
            continue
        if kind not in SUMS:
            result.append([kind, t, w, s, f, 1, 0, 0])
            i += 1
            continue
        summed = _evenly_spaced(operations, i, 2, _may_be_summed)
        spread = _evenly_spaced(operations, i, 1, lambda first, other: True)
        count = max(summed[0], spread[0])
        if spread[0] > summed[0] or not _may_be_summed(operations[i], operations[i]):
            result.append([SPREADS[kind], t, w, s, f, *spread])
        else:
            result.append([SUMS[kind], t, w, s, f, *summed])
            if kind == ADD and len(result) > 1 and result[-2][:3] == [CLEAR, t, w]:
                result[-2:] = [[FROM_ZERO, *result[-1][1:]]]
        i += count
    return result


def _mirrored(table: Sequence[list[int]]) -> tuple[list[list[int]], set[int]]:
    """The same, where the three instructions of a reflection are one.

    Returns:
        The instructions, and the places that they no longer write: what rows were shifted by, which nothing else reads.
    """
    result, passed_by = list[list[int]](), set[int]()
    for instruction in table:
        result.append(instruction)
        if len(result) < 3:
            continue
        (summed, x, w, t, f, n, d, e), scaled, spread = result[-3:]
        alike = spread == [SPREADS[SUBTRACT], t, w, x, f, n, d, e] and scaled[:4] == [SCALES, x, w, x]
        if summed != FROM_ZERO or not alike or scaled[5] > 1 or abs(d) < w:
            continue
        read = {scaled[4], *(f + i * e for i in range(n))}
        if not any(t + i * d <= place < t + i * d + w for place in read for i in range(n)):
            result[-3:] = [[MIRROR, t, w, scaled[4], f, n, d, e]]
            passed_by |= {*range(x, x + w)}
    return result, passed_by


def _evenly_spaced(
    operations: Sequence[Operation], first: int, place: int, may: Callable[[Operation, Operation], bool]
) -> tuple[int, int, int]:
    """How many operations from one on are alike but for a place and the factor's, and how far apart these are."""
    start, count, distance, of_factor = operations[first], 1, 0, 0
    same = [k for k in (0, 1, 2, 4) if k != place]
    while first + count < len(operations):
        own = operations[first + count]
        if any(own[k] != start[k] for k in same) or not may(start, own):
            break
        if count == 1:
            distance, of_factor = own[place] - start[place], own[3] - start[3]
        elif own[place] - start[place] != count * distance or own[3] - start[3] != count * of_factor:
            break
        count += 1
    return count, distance, of_factor


def _evenly_scaled(operations: Sequence[Operation], first: int) -> tuple[int, tuple[int, int]]:
    """How many operations from one on scale by the same factor, evenly spaced, and how far apart they are."""
    _, t, s, f, w = operations[first]
    count, distances = 1, (0, 0)
    while first + count < len(operations):
        kind, *places, factor, width = operations[first + count]
        if kind != SCALE or factor != f or width != w:
            break
        found = places[0] - t, places[1] - s
        distances = found if count == 1 else distances
        if found != (count * distances[0], count * distances[1]):
            break
        count += 1
    return count, distances


def _may_be_summed(first: Operation, other: Operation) -> bool:
    """Whether the row that is summed into is none of those that are read."""
    _, t, _, _, w = first
    _, _, s, f, _ = other
    return not t <= f < t + w and (s >= t + w or s + w <= t)
