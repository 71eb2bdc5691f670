"""Control flow as LLVM IR: a function body made of blocks, and a program's loops and repeats written into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph.kernel import Case
from coupler.graph.program import Loop, Repeat, Step
from coupler.graph.window import Buffer

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

__all__ = ["Blocks", "Steps", "as_type", "function"]

_MANY_STORES = 3  # of a kernel, that are worth a branch around masks
_SHORT_WITH_FLAGS = 12  # the same where turns are left out by flags: each of them branches, and compilers get slow
_SHORT_IF_RARE = 2  # the same where it hardly ever runs: there, what counts is how soon it is compiled
_SHORT = 64  # turns of a loop that are spelled out: to look up where a turn's numbers are costs some of its time


class Blocks:
    """The body of a function, written line by line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._allocated: list[str] = []
        self._names = 0
        self.label = "entry"  # of the block being written, which a phi must name

    def emit(self, line: str) -> None:
        self._lines.append(line)

    def name(self, stem: str) -> str:
        """A new name that starts like this."""
        self._names += 1
        return f"%{stem}{self._names}"

    def new_label(self, stem: str) -> str:
        return self.name(stem)[1:]

    def block(self, label: str) -> None:
        """What is written next belongs to the block with this label."""
        self.emit(f"{label}:")
        self.label = label

    def allocate(self, kind: str) -> str:
        """Memory for one value, taken once at the function's start and not each time this place is passed."""
        place = self.name("place")
        self._allocated.append(f"{place} = alloca {kind}")
        return place

    @contextmanager
    def count(self, first: str, last: str, step: int = 1) -> Iterator[str]:
        """A loop whose counter, which is handed out, goes from first to last, exclusive."""
        head, body, latch, after = map(self.new_label, ("head", "body", "latch", "after"))
        i, before = self.name("i"), self.label
        self.emit(f"br label %{head}")
        self.block(head)
        self.emit(f"{i} = phi i64 [{first}, %{before}], [{i}n, %{latch}]")
        self.emit(f"{i}go = icmp slt i64 {i}, {last}")
        self.emit(f"br i1 {i}go, label %{body}, label %{after}")
        self.block(body)
        yield i
        self.emit(f"br label %{latch}")
        self.block(latch)
        self.emit(f"{i}n = add i64 {i}, {step}")
        self.emit(f"br label %{head}")
        self.block(after)

    def lines(self) -> list[str]:
        return ["entry:", *self._allocated, *self._lines]


class Steps(Blocks):
    """A program's steps as code that reads its numbers from a list of tables.

    Attributes:
        tables: what that list must hold, in order: arrays (by address) and counts. It grows as code is written, so that
            the code and the list cannot disagree.
    """

    def __init__(self, renderer: Renderer, places: Mapping[Buffer, tuple[str, int]]) -> None:
        """Args: the renderer, and for each buffer a pointer and how many elements after it the buffer begins."""
        super().__init__()
        self.r, self.places = renderer, places
        self.tables: list[np.ndarray | int] = []
        self._rare = False  # whether what is written is inside a rare repeat

    def run(self, steps: Sequence[Step], mask: str | None = None) -> None:
        """Writes the steps; where there is a mask, only its lanes are changed."""
        for step in steps:
            if isinstance(step, Repeat):
                self._repeat(step, mask)
            elif len(step.order) <= self._short(step):
                self._spelled_out(step, mask)
            elif len(step.cases) == 1:
                rows, tables = self._table(len(step.order)), self._tables_of(step.cases[0])
                with self.count("0", rows) as row:
                    self._call(step.cases[0], tables, row, mask)
            else:
                self._interleaved(step, mask)

    def _short(self, loop: Loop) -> int:
        """How many turns a loop may have to be spelled out."""
        if self._rare:
            return _SHORT_IF_RARE
        return _SHORT_WITH_FLAGS if any(case.where for case in loop.cases) else _SHORT

    def _spelled_out(self, loop: Loop, mask: str | None) -> None:
        constants = [self._constants_of(case) for case in loop.cases]
        for case, row in loop.turns():
            x = self.name("call")
            bases = [
                str(base + self.places[buffer][1]) for buffer, base in zip(case.buffers, case.bases[row], strict=True)
            ]
            flag = str(self._flags_of(case)[row]) if case.where else None
            with self._where(case, flag, mask) as mask_of_row:
                first = str(row * case.constants.shape[1])
                self._call_with(x, case, bases, constants[loop.cases.index(case)], first, mask_of_row)

    def _interleaved(self, loop: Loop, mask: str | None) -> None:
        turns, order = self._table(len(loop.order)), self._table(np.ascontiguousarray(loop.order, dtype=np.int32))
        tables = [self._tables_of(case) for case in loop.cases]
        counters = [self.allocate("i64") for _ in loop.cases]
        for counter in counters:
            self.emit(f"store i64 0, ptr {counter}")
        with self.count("0", turns) as turn:
            which, after = self.name("which"), self.new_label("after")
            labels = [self.new_label("case") for _ in loop.cases]
            self.emit(f"{which}p = getelementptr i32, ptr {order}, i64 {turn}")
            self.emit(f"{which} = load i32, ptr {which}p")
            targets = " ".join(f"i32 {i}, label %{label}" for i, label in enumerate(labels))
            self.emit(f"switch i32 {which}, label %{after} [{targets}]")
            for case, table, counter, label in zip(loop.cases, tables, counters, labels, strict=True):
                self.block(label)
                row = self.name("row")
                self.emit(f"{row} = load i64, ptr {counter}")
                self._call(case, table, row, mask)
                self.emit(f"{row}n = add i64 {row}, 1")
                self.emit(f"store i64 {row}n, ptr {counter}")
                self.emit(f"br label %{after}")
            self.block(after)

    def _repeat(self, step: Repeat, mask: str | None) -> None:
        r = self.r
        at_most, tables = self._table(step.at_most), self._tables_of(step.until)
        head, body, latch, after = map(self.new_label, ("head", "body", "latch", "after"))
        i, active, before = self.name("i"), self.name("active"), self.label
        self.emit(f"br label %{head}")
        self.block(head)
        self.emit(f"{i} = phi i64 [0, %{before}], [{i}n, %{latch}]")
        self.emit(f"{active} = phi {r.mask} [{mask or r.literal(True)}, %{before}], [{active}n, %{latch}]")
        done = self._call(step.until, tables, "0", None)
        self.emit(f"{active}d = xor {r.mask} {done}, {r.literal(True)}")
        self.emit(f"{active}n = and {r.mask} {active}, {active}d")
        left = r.any_lane(f"{active}n", f"{active}any", self.emit)
        self.emit(f"{i}more = icmp slt i64 {i}, {at_most}")
        self.emit(f"{i}go = and i1 {i}more, {left}")
        self.emit(f"br i1 {i}go, label %{body}, label %{after}")
        self.block(body)
        self._note_whether_full(f"{active}n")
        outside, self._rare = self._rare, self._rare or step.rare
        self.run(step.body, f"{active}n" if r.lanes > 1 else None)  # a single state needs no mask: it is here or not
        self._rare = outside
        self.emit(f"br label %{latch}")
        self.block(latch)
        self.emit(f"{i}n = add i64 {i}, 1")
        self.emit(f"br label %{head}")
        self.block(after)

    @contextmanager
    def _where(self, case: Case, flag: str | None, mask: str | None) -> Iterator[str | None]:
        """What is written inside runs if the flag, an element of a buffer, holds in any lane; hands out that mask."""
        if case.where is None:
            yield mask
            return
        r, x = self.r, self.name("flag")
        run, after = self.new_label("run"), self.new_label("after")
        self.emit(f"{x}p = getelementptr {r.vector}, ptr {self.places[case.where.buffer][0]}, i64 {flag}")
        self.emit(f"{x}v = load {r.vector}, ptr {x}p, align {r.align}")
        self.emit(
            f"{x}m = fcmp une {r.vector} {x}v, zeroinitializer"
            if r.lanes > 1
            else f"{x}m = fcmp une {r.vector} {x}v, 0.0"
        )
        held = f"{x}m"
        if mask is not None:
            self.emit(f"{x}b = and {r.mask} {x}m, {mask}")
            held = f"{x}b"
        self.emit(f"br i1 {r.any_lane(held, f'{x}any', self.emit)}, label %{run}, label %{after}")
        self.block(run)
        self._note_whether_full(held)
        yield held if r.lanes > 1 else None
        self.emit(f"br label %{after}")
        self.block(after)

    def _note_whether_full(self, mask: str) -> None:
        """Writes under {mask}full whether a mask holds in all lanes."""
        if self.r.lanes > 1:
            self.emit(f"{mask}full = call i1 @llvm.vector.reduce.and.v{self.r.lanes}i1({self.r.mask} {mask})")

    def _call(self, case: Case, tables: tuple[str, ...], row: str, mask: str | None) -> str:
        """Calls the case's kernel on one row and returns the name of its result."""
        bases, constants, *flags = tables
        x, flag = self.name("call"), None
        if flags:
            flag = self.name("element")
            self.emit(f"{flag}p = getelementptr i64, ptr {flags[0]}, i64 {row}")
            self.emit(f"{flag} = load i64, ptr {flag}p")
        with self._where(case, flag, mask) as mask_of_row:
            return self._call_row(x, case, bases, constants, row, mask_of_row)

    def _call_row(self, x: str, case: Case, bases: str, constants: str, row: str, mask: str | None) -> str:
        self.emit(f"{x}.r = getelementptr [{len(case.buffers)} x i64], ptr {bases}, i64 {row}")
        for i in range(len(case.buffers)):
            self.emit(f"{x}.q{i} = getelementptr i64, ptr {x}.r, i64 {i}")
            self.emit(f"{x}.b{i} = load i64, ptr {x}.q{i}")
        self.emit(f"{x}.c = mul i64 {row}, {case.constants.shape[1]}")
        return self._call_with(x, case, [f"{x}.b{i}" for i in range(len(case.buffers))], constants, f"{x}.c", mask)

    def _call_with(self, x: str, case: Case, bases: Sequence[str], constants: str, first: str, mask: str | None) -> str:
        """Calls the case's kernel, told where its buffers' elements and its constants begin."""
        arguments = []
        for i, (buffer, base) in enumerate(zip(case.buffers, bases, strict=True)):
            self.emit(f"{x}.p{i} = getelementptr {self.r.vector}, ptr {self.places[buffer][0]}, i64 {base}")
            arguments.append(f"ptr {x}.p{i}")
        self.emit(f"{x}.k = getelementptr {self.r.scalar}, ptr {constants}, i64 {first}")
        arguments.append(f"ptr {x}.k")
        arguments += [f"ptr {self._table(table.packed(self.r.dtype))}" for table in case.kernel.tables]
        if case.kernel.workspace:
            self.emit(f"{x}.w = getelementptr {self.r.vector}, ptr %scratch, i64 {self.r.workspace}")
            arguments.append(f"ptr {x}.w")
        if mask is not None and not self._rare and len(case.kernel.stores) >= _MANY_STORES:
            # A masked store loads, selects and stores: where all lanes take part, it need not.
            whole, part, after = (self.new_label(stem) for stem in ("whole", "part", "after"))
            self.emit(f"br i1 {mask}full, label %{whole}, label %{part}")
            self.block(whole)
            self.emit(f"call fastcc void {self.r.kernel(case.kernel, False)}({', '.join(arguments)})")
            self.emit(f"br label %{after}")
            self.block(part)
            masked = ", ".join([*arguments, f"{self.r.mask} {mask}"])
            self.emit(f"call fastcc void {self.r.kernel(case.kernel, True)}({masked})")
            self.emit(f"br label %{after}")
            self.block(after)
            return x
        if mask is not None:
            arguments.append(f"{self.r.mask} {mask}")
        call = f"{self.r.kernel(case.kernel, mask is not None)}({', '.join(arguments)})"
        if case.kernel.is_condition:
            self.emit(f"{x} = call fastcc {self.r.mask} {call}")
        else:
            self.emit(f"call fastcc void {call}")
        return x

    def _tables_of(self, case: Case) -> tuple[str, ...]:
        """The case's bases and constants, and where its flags are, if it has some."""
        flags = [self._table(self._flags_of(case))] if case.where else []
        bases = case.bases + np.array([self.places[buffer][1] for buffer in case.buffers], np.int64)
        return self._table(np.ascontiguousarray(bases)), self._constants_of(case), *flags

    def _flags_of(self, case: Case) -> np.ndarray:
        """Where the flag of each row is, counted from the pointer of its buffer."""
        assert case.where is not None
        return np.ascontiguousarray(case.where.elements + self.places[case.where.buffer][1])

    def _constants_of(self, case: Case) -> str:
        return self._table(np.ascontiguousarray(as_type(case.constants, self.r.dtype)))

    def _table(self, value: np.ndarray | int) -> str:
        """The name of a new entry of the list of tables."""
        t, kind = self.name("table"), "i64" if isinstance(value, int) else "ptr"
        self.emit(f"{t}p = getelementptr i64, ptr %tables, i64 {len(self.tables)}")
        self.emit(f"{t} = load {kind}, ptr {t}p")
        self.tables.append(value)
        return t


def function(signature: str, lines: Sequence[str], attributes: str = "") -> str:
    """The definition of a function with this body."""
    return f"define {signature} nounwind {attributes} {{\n" + "\n".join(lines) + "\n}\n"


def as_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values in that type; what is beyond the range of float32 becomes infinite, as in the interpreter."""
    with np.errstate(over="ignore"):
        return values.astype(dtype)
