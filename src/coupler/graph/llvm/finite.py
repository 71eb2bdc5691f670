"""Checks in LLVM IR whether all inputs and outputs of a program are finite, so that Python need not look at them."""

from __future__ import annotations

from collections.abc import Sequence

from coupler.graph.llvm.blocks import Blocks
from coupler.graph.llvm.render import Renderer
from coupler.graph.parameters import PARAMETERS
from coupler.graph.window import Buffer

_CHECKED = 32  # numbers that one round of the loop over a buffer checks
_CHECKED_OF_MANY = 256  # likewise for a single state with many numbers, since each round waits for the sum so far


def note_not_finite(
    renderer: Renderer, places: dict[Buffer, str], code: Blocks, wrong: str, in_lanes: Sequence[str]
) -> None:
    """Stores in `wrong` whether some number is not finite, or not known to be: the caller checks arrays in lanes."""
    emit, check, after = code.emit, code.new_label("check"), code.new_label("after")
    if in_lanes:
        emit(f"%known = load i1, ptr {wrong}")
        emit(f"%unknown = or i1 %known, {in_lanes[0]}")
        emit(f"store i1 %unknown, ptr {wrong}")
        emit(f"br i1 %unknown, label %{after}, label %{check}")
        code.block(check)
    in_block = not_finite(renderer, places, code)
    emit(f"%before = load i1, ptr {wrong}")
    emit(f"%sofar = or i1 %before, {in_block}")
    emit(f"store i1 %sofar, ptr {wrong}")
    if in_lanes:
        emit(f"br label %{after}")
        code.block(after)


def not_finite(renderer: Renderer, places: dict[Buffer, str], code: Blocks) -> str:
    """Whether the sum of all inputs and outputs is not finite. It is if one of them is not, and hardly ever else.

    Parameters are left out: they were checked when they were given.
    """
    v, emit = renderer.vector, code.emit
    buffers = [b for b in (*renderer.program.inputs, *renderer.program.outputs) if b.name != PARAMETERS]
    total, many_at_once = _Total(renderer, code, v), None
    if renderer.lanes == 1 < renderer.register and any(b.size >= _CHECKED for b in buffers):
        many_at_once = _Total(renderer, code, f"<{renderer.register} x {renderer.scalar}>")
    for buffer in buffers:
        first = 0
        for count in (_CHECKED_OF_MANY, _CHECKED) if many_at_once else (_CHECKED,):
            last = buffer.size - (buffer.size - first) % count
            if last > first:
                with code.count(str(first), str(last), step=count) as i:
                    (many_at_once or total).add(places[buffer], i, count)
            first = last
        total.add(places[buffer], str(first), buffer.size - first)
    emit(f"%check.all = {total.text}")
    found = "%check.all"
    if many_at_once:
        found, name = "%check.sum", f"@llvm.vector.reduce.fadd.v{renderer.register}{renderer.functions.suffix}"
        emit(f"%check.wide = {many_at_once.text}")
        emit(f"{found} = call {v} {name}({v} %check.all, {many_at_once.vector} %check.wide)")
    emit(f"%check.zero = fsub {v} {found}, {found}")
    emit(f"%check.nan = fcmp uno {v} %check.zero, {renderer.literal(0.0)}")
    return renderer.any_lane("%check.nan", "%check.any", emit)


class _Total:
    """A running sum of numbers in buffers, several at a time.

    Attributes:
        vector: the type of what is added at a time.
        text: the instruction that loads the sum.
    """

    def __init__(self, renderer: Renderer, code: Blocks, vector: str) -> None:
        self.vector, self._renderer, self._code, self._place = vector, renderer, code, code.allocate(vector)
        self._zero = "zeroinitializer" if "<" in vector else "0.0"
        self._at_once = renderer.register if vector != renderer.vector else 1
        self.text = f"load {vector}, ptr {self._place}"
        code.emit(f"store {vector} {self._zero}, ptr {self._place}")

    def add(self, buffer: str, first: str, count: int) -> None:
        """Adds `count` numbers of a buffer, from the first on."""
        v, emit = self.vector, self._code.emit
        sums = [self._zero] * 4  # four independent sums, which need not wait for each other
        for k in range(0, count, self._at_once):
            x = self._code.name("seen")
            emit(f"{x}.at = add i64 {first}, {k}")
            emit(f"{x}.p = getelementptr {self._renderer.vector}, ptr {buffer}, i64 {x}.at")
            emit(f"{x} = load {v}, ptr {x}.p, align {self._renderer.align}")
            emit(f"{x}.sum = fadd {v} {sums[0]}, {x}")
            sums = [*sums[1:], f"{x}.sum"]
        x = self._code.name("summed")
        emit(f"{x}.a = fadd {v} {sums[0]}, {sums[1]}")
        emit(f"{x}.b = fadd {v} {sums[2]}, {sums[3]}")
        emit(f"{x}.c = fadd {v} {x}.a, {x}.b")
        emit(f"{x}.before = {self.text}")
        emit(f"{x} = fadd {v} {x}.before, {x}.c")
        emit(f"store {v} {x}, ptr {self._place}")
