"""Copies arrays of many states between the caller's layout and that of registers, whose lanes are states."""

from __future__ import annotations

from coupler.graph.llvm.blocks import Blocks
from coupler.graph.llvm.render import Renderer

IN_LANES = -(2**62)  # as the stride between elements: marks an array in the layout of registers
LARGE = 1024  # numbers of a state, from which on inputs and outputs may be in the layout of registers, and not copied


def copy_unless_in_lanes(renderer: Renderer, code: Blocks, number: int, size: int, place: str, state: str) -> str:
    """Copies one array into lanes, unless it has that layout; returns where the elements of the given states are."""
    emit, (a, in_lanes) = code.emit, _read_whether_in_lanes(code, number, state)
    ready, copy, done = map(code.new_label, ("ready", "copy", "done"))
    emit(f"br i1 {in_lanes}, label %{ready}, label %{copy}")
    code.block(ready)
    after_ready = code.label
    emit(f"br label %{done}")
    code.block(copy)
    copy_array(renderer, code, number, size, place, inwards=True)
    after_copy = code.label
    emit(f"br label %{done}")
    code.block(done)
    emit(f"{a} = phi ptr [{a}.own, %{after_ready}], [{place}, %{after_copy}]")
    return a


def written_to(code: Blocks, number: int, place: str, state: str) -> tuple[str, str]:
    """The place where elements of the given states are written, and whether it is in the caller's array."""
    a, in_lanes = _read_whether_in_lanes(code, number, state)
    code.emit(f"{a} = select i1 {in_lanes}, ptr {a}.own, ptr {place}")
    return a, in_lanes


def _read_whether_in_lanes(code: Blocks, number: int, state: str) -> tuple[str, str]:
    """Reads an array from the list; returns the stem of its names, and whether it has the layout of registers."""
    a = _read_array(code, number)
    code.emit(f"{a}.in_lanes = icmp eq i64 {a}.element, {IN_LANES}")
    code.emit(f"{a}.offset = mul i64 {state}, {a}.state")
    code.emit(f"{a}.own = getelementptr i8, ptr {a}.address, i64 {a}.offset")
    return a, f"{a}.in_lanes"


def copy_array(renderer: Renderer, code: Blocks, number: int, size: int, place: str, inwards: bool) -> None:
    """Copies one array between the caller's layout and lanes, element by element."""
    vector, scalar, emit = renderer.vector, renderer.scalar, code.emit
    a = _read_array(code, number)
    for lane in range(renderer.lanes):
        emit(f"{a}.offset{lane} = mul i64 %state{lane}, {a}.state")
        emit(f"{a}.lane{lane} = getelementptr i8, ptr {a}.address, i64 {a}.offset{lane}")
    with code.count(_copy_squares(renderer, code, a, size, place, inwards), str(size)) as i:
        x = code.name("x")
        emit(f"{x}.offset = mul i64 {i}, {a}.element")
        emit(f"{x}.p = getelementptr {vector}, ptr {place}, i64 {i}")
        if not inwards:
            emit(f"{x} = load {vector}, ptr {x}.p, align {renderer.align}")
        gathered = "poison"
        for lane in range(renderer.lanes):
            emit(f"{x}.p{lane} = getelementptr i8, ptr {a}.lane{lane}, i64 {x}.offset")
            if inwards:
                emit(f"{x}.s{lane} = load {scalar}, ptr {x}.p{lane}, align 1")
                emit(f"{x}.v{lane} = insertelement {vector} {gathered}, {scalar} {x}.s{lane}, i64 {lane}")
                gathered = f"{x}.v{lane}"
            else:  # lanes that repeat the last state write the same value once more
                emit(f"{x}.s{lane} = extractelement {vector} {x}, i64 {lane}")
                emit(f"store {scalar} {x}.s{lane}, ptr {x}.p{lane}, align 1")
        if inwards:
            emit(f"store {vector} {gathered}, ptr {x}.p, align {renderer.align}")


def _copy_squares(renderer: Renderer, code: Blocks, a: str, size: int, place: str, inwards: bool) -> str:
    """Copies squares of as many elements as lanes, if elements of a state are contiguous; returns how many elements."""
    lanes, emit = renderer.lanes, code.emit
    whole = size - size % lanes
    if not whole:
        return "0"
    dense, copied = code.name("dense"), code.name("copied")
    squares, rest, before = code.new_label("squares"), code.new_label("rest"), code.label
    emit(f"{dense} = icmp eq i64 {a}.element, {renderer.dtype.itemsize}")
    emit(f"br i1 {dense}, label %{squares}, label %{rest}")
    code.block(squares)
    with code.count("0", str(whole), step=lanes) as i:
        _copy_square(renderer, code, a, i, place, inwards)
    after = code.label
    emit(f"br label %{rest}")
    code.block(rest)
    emit(f"{copied} = phi i64 [0, %{before}], [{whole}, %{after}]")
    return copied


def _copy_square(renderer: Renderer, code: Blocks, a: str, i: str, place: str, inwards: bool) -> None:
    """Copies elements i and following of all lanes, transposed."""
    n, vector, emit = renderer.lanes, renderer.vector, code.emit
    x = code.name("square")
    emit(f"{x}.offset = mul i64 {i}, {renderer.dtype.itemsize}")
    for k in range(n):
        emit(f"{x}.outside{k} = getelementptr i8, ptr {a}.lane{k}, i64 {x}.offset")
        emit(f"{x}.i{k} = add i64 {i}, {k}")
        emit(f"{x}.inside{k} = getelementptr {vector}, ptr {place}, i64 {x}.i{k}")
    (of, of_align), (to, to_align) = ("outside", 1), ("inside", renderer.align)
    if not inwards:
        (of, of_align), (to, to_align) = (to, to_align), (of, of_align)
    for k in range(n):
        emit(f"{x}.r0.{k} = load {vector}, ptr {x}.{of}{k}, align {of_align}")
    if inwards:  # prefetch those of the next states
        emit(f"{x}.far = mul i64 {n}, {a}.state")
        for k in range(n):
            code.prefetch(f"getelementptr i8, ptr {x}.outside{k}, i64 {x}.far")
    step, rows = 1, "r0"
    while step < n:  # transpose: in each two rows, swap blocks of `step` elements, upper right with lower left
        for k in range(n):
            one = k & ~step
            first = [j if not j & step else n + j - step for j in range(n)]
            second = [j + step if not j & step else n + j for j in range(n)]
            mask = ", ".join(f"i32 {j}" for j in (second if k & step else first))
            pair = f"{vector} {x}.{rows}.{one}, {vector} {x}.{rows}.{one + step}"
            emit(f"{x}.r{step}.{k} = shufflevector {pair}, <{n} x i32> <{mask}>")
        step, rows = 2 * step, f"r{step}"
    for k in range(n):
        emit(f"store {vector} {x}.{rows}.{k}, ptr {x}.{to}{k}, align {to_align}")


def _read_array(code: Blocks, number: int) -> str:
    """Reads the address and strides of an array from the list; returns the stem of their names."""
    a = code.name("array")
    for j, (part, kind) in enumerate((("address", "ptr"), ("state", "i64"), ("element", "i64"))):
        code.emit(f"{a}.{part}.p = getelementptr i64, ptr %arrays, i64 {3 * number + j}")
        code.emit(f"{a}.{part} = load {kind}, ptr {a}.{part}.p")
    return a
