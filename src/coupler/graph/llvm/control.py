"""Control flow as LLVM IR: a program's loops and repeats, written into the body of a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph.kernel import Case, Flags
from coupler.graph.llvm.blocks import Blocks
from coupler.graph.program import Listing, Loop, Repeat, Step
from coupler.graph.window import Buffer

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

__all__ = ["Steps", "as_type"]

_MANY_STORES = 3  # of a kernel, that are worth a branch around masks
_SHORT_WITH_FLAGS = 12  # the same where turns are left out by flags: each of them branches, and compilers get slow
_SHORT_IF_RARE = 2  # the same where it hardly ever runs: there, what counts is how soon it is compiled
_AT_ONCE = 8  # flags that are looked at together
_SHORT = 64  # turns of a loop that are spelled out: to look up where a turn's numbers are costs some of its time


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
        self._lists: dict[Buffer, Buffer] = {}  # of flags, where they are listed: how many, and which, in 32 bits each

    def run(self, steps: Sequence[Step], mask: str | None = None) -> None:
        """Writes the steps; where there is a mask, only its lanes are changed."""
        for step in steps:
            if isinstance(step, Repeat):
                self._repeat(step, mask)
            elif isinstance(step, Listing):
                self._list(step)
            elif len(step.order) <= self._short(step):
                self._spelled_out(step, mask)
            elif step.among is not None:
                self._among_listed(step, mask)
            else:
                self._turns(step, "0", self._table(len(step.order)), self._tables_of_turns(step), mask)

    def _short(self, loop: Loop) -> int:
        """How many turns a loop may have to be spelled out."""
        if self._rare:
            return _SHORT_IF_RARE
        return _SHORT_WITH_FLAGS if any(case.flags for case in loop.cases) else _SHORT

    def _spelled_out(self, loop: Loop, mask: str | None) -> None:
        constants = [self._constants_of(case) for case in loop.cases]
        for (flags, element), turns in groupby(loop.turns(), lambda turn: self._flag(turn[0].among, turn[1])):
            with self._where(flags, element, mask) as mask_of_group:
                for case, row in turns:
                    x = self.name("call")
                    bases = [str(base) for base in self._bases_of(case)[row]]
                    with self._where(*self._flag(case.where, row), mask_of_group) as mask_of_row:
                        first = str(row * case.constants.shape[1])
                        self._call_with(x, case, bases, constants[loop.cases.index(case)], first, mask_of_row)

    def _list(self, step: Listing) -> None:
        """Lists flags that hold in any lane, also in those that are done: they may count on the list later."""
        self._lists[step.flags] = step.listed
        x, listed, offset = self.name("listed"), self._start(step.listed), self._table(self.places[step.flags][1])
        self.emit(f"store i32 0, ptr {listed}")
        with self._each_flag(step.flags) as i, self._where(step.flags, self._sum(i, offset), None):
            self.emit(f"{x}before = load i32, ptr {listed}")
            self.emit(f"{x}count = add i32 {x}before, 1")
            self.emit(f"store i32 {x}count, ptr {listed}")
            self.emit(f"{x}p = getelementptr i32, ptr {listed}, i32 {x}count")
            self.emit(f"{x}flag = trunc i64 {i} to i32")
            self.emit(f"store i32 {x}flag, ptr {x}p")

    @contextmanager
    def _each_flag(self, flags: Buffer) -> Iterator[str]:
        """A loop over all flags, of which several that are zero are passed by at once."""
        size, r = self._table(flags.size), self.r
        if flags.size < _AT_ONCE:
            with self.count("0", size) as i:
                yield i
            return
        x, start, at_once = self.name("several"), self._start(flags), _AT_ONCE * r.lanes
        vector, bits = f"<{at_once} x {r.scalar}>", f"<{at_once} x i1>"
        run, after = self.new_label("run"), self.new_label("after")
        with self.count("0", size, _AT_ONCE) as first:
            self.emit(f"{x}end = add i64 {first}, {_AT_ONCE}")
            self.emit(f"{x}over = icmp sgt i64 {x}end, {size}")
            self.emit(f"{x}last = select i1 {x}over, i64 {size}, i64 {x}end")
            self.emit(f"{x}b = sub i64 {x}last, {_AT_ONCE}")  # the last ones overlap with those before
            self.emit(f"{x}p = getelementptr {r.vector}, ptr {start}, i64 {x}b")
            self.emit(f"{x}v = load {vector}, ptr {x}p, align {r.align}")
            self.emit(f"{x}m = fcmp une {vector} {x}v, zeroinitializer")
            self.emit(f"{x}any = call i1 @llvm.vector.reduce.or.v{at_once}i1({bits} {x}m)")
            self.emit(f"br i1 {x}any, label %{run}, label %{after}")
            self.block(run)
            with self.count(first, f"{x}last") as i:
                yield i
            self.emit(f"br label %{after}")
            self.block(after)

    def _among_listed(self, loop: Loop, mask: str | None) -> None:
        """A loop over the flags that are listed, and for each over its turns."""
        assert loop.among is not None
        flags, elements, tables = loop.among.buffer, loop.among.elements, self._tables_of_turns(loop)
        sign = -1 if elements[0] > elements[-1] else 1  # -1 if they come backwards
        ends = [np.searchsorted(sign * elements, sign * np.arange(flags.size), side) for side in ("left", "right")]
        listed, turns = self._start(self._lists[flags]), self._table(np.stack(ends, axis=1).astype(np.int64))
        x, offset = self.name("among"), self._table(self.places[flags][1])
        self.emit(f"{x}n = load i32, ptr {listed}")
        self.emit(f"{x}count = zext i32 {x}n to i64")
        with self.count("0", f"{x}count") as i:
            self.emit(f"{x}i = add i64 {i}, 1" if sign > 0 else f"{x}i = sub i64 {x}count, {i}")
            self.emit(f"{x}p = getelementptr i32, ptr {listed}, i64 {x}i")
            self.emit(f"{x}flag = load i32, ptr {x}p")
            self.emit(f"{x} = zext i32 {x}flag to i64")
            self.emit(f"{x}first.p = getelementptr [2 x i64], ptr {turns}, i64 {x}")
            self.emit(f"{x}last.p = getelementptr i64, ptr {x}first.p, i64 1")
            self.emit(f"{x}first = load i64, ptr {x}first.p")
            self.emit(f"{x}last = load i64, ptr {x}last.p")
            asked, flag = (flags, self._sum(x, offset)) if self.r.lanes > 1 else (None, x)
            with self._where(asked, flag, mask) as mask_of_group:
                self._turns(loop, f"{x}first", f"{x}last", tables, mask_of_group)

    def _turns(self, loop: Loop, first: str, last: str, tables: Sequence[tuple[str, ...]], mask: str | None) -> None:
        """Runs the turns of a loop from first to last, exclusive."""
        with self.count(first, last) as turn:
            if len(loop.cases) == 1:
                self._call(loop.cases[0], tables[0], turn, mask)
                return
            x, after = self.name("turn"), self.new_label("after")
            labels = [self.new_label("case") for _ in loop.cases]
            self.emit(f"{x}p = getelementptr [2 x i32], ptr {tables[-1][0]}, i64 {turn}")
            self.emit(f"{x}q = getelementptr i32, ptr {x}p, i64 1")
            self.emit(f"{x}case = load i32, ptr {x}p")
            self.emit(f"{x}row = load i32, ptr {x}q")
            self.emit(f"{x} = zext i32 {x}row to i64")
            targets = " ".join(f"i32 {i}, label %{label}" for i, label in enumerate(labels))
            self.emit(f"switch i32 {x}case, label %{after} [{targets}]")
            for case, table, label in zip(loop.cases, tables, labels, strict=False):
                self.block(label)
                self._call(case, table, x, mask)
                self.emit(f"br label %{after}")
            self.block(after)

    def _tables_of_turns(self, loop: Loop) -> list[tuple[str, ...]]:
        """The tables of all cases of a loop, and, if there are several, which case each turn is, and its row."""
        tables = [self._tables_of(case) for case in loop.cases]
        if len(tables) > 1:
            rows = np.empty(len(loop.order), np.int32)
            for i in range(len(loop.cases)):
                own = np.flatnonzero(loop.order == i)
                rows[own] = np.arange(len(own))
            tables.append((self._table(np.ascontiguousarray(np.stack([loop.order, rows], axis=1), dtype=np.int32)),))
        return tables

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
        any_active = r.any_lane(f"{active}n", f"{active}any", self.emit)
        self.emit(f"{i}more = icmp slt i64 {i}, {at_most}")
        self.emit(f"{i}go = and i1 {i}more, {any_active}")
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
    def _where(self, flags: Buffer | None, element: str, mask: str | None) -> Iterator[str | None]:
        """What is written inside runs if a flag holds in any lane; hands out that mask.

        Args:
            flags: the buffer that the flag is in; None for what always runs.
            element: where the flag is, counted from the pointer of its buffer.
            mask: the lanes that may take part.
        """
        if flags is None:
            yield mask
            return
        r, x = self.r, self.name("flag")
        run, after, zero = self.new_label("run"), self.new_label("after"), "zeroinitializer" if r.lanes > 1 else "0.0"
        self.emit(f"{x}p = getelementptr {r.vector}, ptr {self.places[flags][0]}, i64 {element}")
        self.emit(f"{x}v = load {r.vector}, ptr {x}p, align {r.align}")
        self.emit(f"{x}m = fcmp une {r.vector} {x}v, {zero}")
        held = f"{x}m"
        if mask is not None:
            self.emit(f"{x}b = and {r.mask} {held}, {mask}")
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
        x, flag = self.name("call"), self.name("element")
        if flags:
            self.emit(f"{flag}p = getelementptr i64, ptr {flags[0]}, i64 {row}")
            self.emit(f"{flag} = load i64, ptr {flag}p")
        with self._where(case.where and case.where.buffer, flag, mask) as mask_of_row:
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
        flags = []
        if case.where:
            offset = self.places[case.where.buffer][1]
            flags = [self._table(np.ascontiguousarray(case.where.elements + offset))]
        return self._table(np.ascontiguousarray(self._bases_of(case))), self._constants_of(case), *flags

    def _bases_of(self, case: Case) -> np.ndarray:
        """Where the elements of each row begin, (rows, buffers), counted from the pointers of their buffers."""
        return case.bases + np.array([self.places[buffer][1] for buffer in case.buffers], np.int64)

    def _flag(self, flags: Flags | None, row: int) -> tuple[Buffer | None, str]:
        """The buffer of a row's flag, and where it is, counted from the pointer of that buffer."""
        if flags is None:
            return None, ""
        return flags.buffer, str(flags.elements[row] + self.places[flags.buffer][1])

    def _start(self, buffer: Buffer) -> str:
        """A pointer to where a buffer begins."""
        x, (pointer, offset) = self.name("start"), self.places[buffer]
        if not offset:
            return pointer
        self.emit(f"{x} = getelementptr {self.r.vector}, ptr {pointer}, i64 {self._table(offset)}")
        return x

    def _sum(self, one: str, other: str) -> str:
        x = self.name("sum")
        self.emit(f"{x} = add i64 {one}, {other}")
        return x

    def _constants_of(self, case: Case) -> str:
        return self._table(np.ascontiguousarray(as_type(case.constants, self.r.dtype)))

    def _table(self, value: np.ndarray | int) -> str:
        """The name of a new entry of the list of tables."""
        t, kind = self.name("table"), "i64" if isinstance(value, int) else "ptr"
        self.emit(f"{t}p = getelementptr i64, ptr %tables, i64 {len(self.tables)}")
        self.emit(f"{t} = load {kind}, ptr {t}p")
        self.tables.append(value)
        return t


def as_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values in that type; what is beyond the range of float32 becomes infinite, as in the interpreter."""
    with np.errstate(over="ignore"):
        return values.astype(dtype)
