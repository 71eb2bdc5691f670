"""Control flow as LLVM IR: the loops and repeats of a program, as the body of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph.kernel import Kernel
from coupler.graph.llvm.calls import Calls
from coupler.graph.program import Listing, Loop, Repeat, Step
from coupler.graph.window import Buffer

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

_SHORT = 64  # turns of a loop that is spelled out, because looking up the places of a turn's numbers takes time
_SHORT_WITH_FLAGS = 12  # turns of a spelled-out loop with flags, in which each turn branches: these compile slowly
_SHORT_IF_RARE = 2  # turns of a spelled-out loop that hardly ever runs, where compile time counts
_AT_ONCE = 8  # flags of a single state that are tested together
_LONG = 2_000  # lines of a function: compile time grows faster than its length


class Steps(Calls):
    """The steps of a program. If there are many, they become several functions, called *parts*."""

    def __init__(
        self, renderer: Renderer, places: Mapping[Buffer, tuple[str, int]], within: Steps | None = None
    ) -> None:
        """Args: the renderer, the places of buffers (see `Calls`), and for a part the steps that it belongs to."""
        super().__init__(renderer, places)
        self._rare = within is not None and within._rare
        # By flags, the buffer that lists them: their count, and their indices in 32 bits each.
        self._lists: dict[Buffer, Buffer] = within._lists if within else {}
        self._given: dict[str, str] | None = None  # by kernel, the parameter that it is passed as, if kernels are

    def run(self, steps: Sequence[Step], mask: str | None = None) -> None:
        """Writes the steps. With a mask, only its lanes are changed."""
        groups: list[list[Step]] = []
        room = 0  # lines that the last group may still take
        for step in steps:
            lines = self._lines_of(step)
            if not groups or lines > room:
                groups.append([])
                room = _LONG
            groups[-1].append(step)
            room -= lines
        for group in groups:
            if len(groups) == 1:
                self._write(group, mask)
            else:
                self._part(mask, lambda part, part_mask, group=group: part._write(group, part_mask))

    def _lines_of(self, step: Step) -> int:
        """The approximate number of lines of a step."""
        if isinstance(step, Repeat):
            return 30 + sum(map(self._lines_of, step.body))
        if isinstance(step, Listing):
            return 30
        if len(step.order) <= self._short(step):
            return sum((len(case.buffers) + 3 + 8 * len(case.flags)) * case.rows for case in step.cases)
        return 20 if self._rare else sum(4 * len(case.buffers) + 40 for case in step.cases)

    def _write(self, steps: Sequence[Step], mask: str | None) -> None:
        """Writes the steps into this function, except for long loops inside rare repeats, which become parts."""
        for step in steps:
            if isinstance(step, Repeat):
                self._repeat(step, mask)
            elif isinstance(step, Listing):
                self._list(step)
            elif len(step.order) <= self._short(step):
                self._spelled_out(step, mask)
            elif self._rare:
                self._part(mask, lambda part, part_mask, step=step: part._looked_up(step, part_mask), kernels={})
            else:
                self._looked_up(step, mask)

    def _part(
        self, mask: str | None, write: Callable[[Steps, str | None], None], kernels: dict[str, str] | None = None
    ) -> None:
        """Writes a part, and a call of it.

        Args:
            mask: the lanes that are changed.
            write: writes the part's body, given the part and the name of the mask there.
            kernels: an empty dictionary, if kernels are to be parameters of the part, so that loops that differ only in
                tables and kernels share it. It gets the kernels' names with those of the parameters.
        """
        part, part_mask = Steps(self.r, self.places, self), mask and "%mask"
        part._given = kernels
        if part_mask:
            part._note_whether_full(part_mask)
        write(part, part_mask)
        tables = self.name("tables")
        self.emit(f"{tables} = getelementptr i64, ptr %tables, i64 {len(self.tables)}")
        self.tables += part.tables
        arguments = [f"ptr {name}" for name in (*self.r.pointers, tables, *(kernels or ()))]
        arguments += [f"{self.r.mask} {mask}"] if mask else []
        name = self.r.part(part.lines(), len(kernels or ()), mask is not None)
        self.emit(f"call fastcc void {name}({', '.join(arguments)})")

    def _kernel(self, kernel: Kernel, masked: bool) -> str:
        name = super()._kernel(kernel, masked)
        return name if self._given is None else self._given.setdefault(name, f"%k{len(self._given)}")

    def _short(self, loop: Loop) -> int:
        """The largest number of turns for which a loop is spelled out."""
        if self._rare:
            return _SHORT_IF_RARE
        return _SHORT_WITH_FLAGS if any(case.flags for case in loop.cases) else _SHORT

    def _spelled_out(self, loop: Loop, mask: str | None) -> None:
        numbers = {id(case): (self._constants_of(case), self._bases_of(case).tolist()) for case in loop.cases}
        for (flags, element), turns in groupby(loop.turns(), lambda turn: self._flag(turn[0].among, turn[1])):
            with self._where(flags, element, mask) as mask_of_group:
                for case, row in turns:
                    x, (constants, bases) = self.name("call"), numbers[id(case)]
                    with self._where(*self._flag(case.where, row), mask_of_group) as mask_of_row:
                        first = str(row * case.constants.shape[1])
                        self._call_with(x, case, bases[row], constants, first, mask_of_row)

    def _looked_up(self, loop: Loop, mask: str | None) -> None:
        """Writes a loop that looks its turns up in tables."""
        if loop.among is not None:
            self._among_listed(loop, mask)
        else:
            self._turns(loop, "0", self._table(len(loop.order)), self._tables_of_turns(loop), mask)

    def _list(self, step: Listing) -> None:
        """Lists the flags that hold in any lane, finished lanes included, as these may use the list later."""
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
        """A loop over all flags, which skips several zero flags at once."""
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
            self.emit(f"{x}b = sub i64 {x}last, {_AT_ONCE}")  # the last group overlaps with the one before
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
        """Writes a loop over the listed flags, and for each of them over its turns."""
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
        """Writes a loop over the turns from first to last, exclusive."""
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
        """The tables of all cases of a loop; and if there are several, a table with the case and row of each turn."""
        tables = [self._tables_of(case) for case in loop.cases]
        if len(tables) > 1:
            rows = np.empty(len(loop.order), np.int32)
            for i in range(len(loop.cases)):
                turns = np.flatnonzero(loop.order == i)
                rows[turns] = np.arange(len(turns))
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
        self.run(
            step.body, f"{active}n" if r.lanes > 1 else None
        )  # a single state needs no mask, as it runs the round or does not
        self._rare = outside
        self.emit(f"br label %{latch}")
        self.block(latch)
        self.emit(f"{i}n = add i64 {i}, 1")
        self.emit(f"br label %{head}")
        self.block(after)
