"""Calls of kernels as LLVM IR: where a row's numbers are, and which states run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph.kernel import Case, Flags, Kernel
from coupler.graph.llvm.blocks import Blocks
from coupler.graph.parameters import PARAMETERS
from coupler.graph.window import Buffer

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

_MANY_STORES = 3  # of a kernel, from which on a branch around masked stores pays off


class Calls(Blocks):
    """Code that calls kernels and reads its numbers from a list of tables.

    Attributes:
        tables: the contents of that list, in order: arrays (by address) and counts. It grows as code is written, so
            that code and list always agree.
    """

    def __init__(self, renderer: Renderer, places: Mapping[Buffer, tuple[str, int]]) -> None:
        """Args: the renderer, and for each buffer a pointer and its offset from there, in elements."""
        super().__init__()
        self.r, self.places = renderer, places
        self.tables: list[np.ndarray | int] = []
        self._rare = False  # whether the code being written is inside a rare repeat

    def _kernel(self, kernel: Kernel, masked: bool) -> str:
        """The name of a kernel's function."""
        return self.r.kernel(kernel, masked)

    @contextmanager
    def _where(self, flags: Buffer | None, element: str, mask: str | None) -> Iterator[str | None]:
        """The code written inside runs if a flag holds in any lane; yields the mask of these lanes.

        Args:
            flags: the buffer of the flag; None for code that always runs.
            element: the offset of the flag from the pointer of its buffer.
            mask: the lanes that may run the code.
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
        """Defines {mask}full: whether a mask holds in all lanes."""
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

    def _call_with(
        self, x: str, case: Case, bases: Sequence[str | int], constants: str, first: str, mask: str | None
    ) -> str:
        """Calls the case's kernel, given where its elements and its constants start."""
        arguments = []
        for i, (buffer, base) in enumerate(zip(case.buffers, bases, strict=True)):
            self.emit(f"{x}.p{i} = getelementptr {self.r.vector}, ptr {self.places[buffer][0]}, i64 {base}")
            arguments.append(f"ptr {x}.p{i}")
            if buffer.name == PARAMETERS and self.r.lanes > 1 and not self._rare:
                self._fetch_ahead(f"{x}.p{i}", case, i, base)
        self.emit(f"{x}.k = getelementptr {self.r.scalar}, ptr {constants}, i64 {first}")
        arguments.append(f"ptr {x}.k")
        arguments += [f"ptr {self._table(table.packed(self.r.dtype))}" for table in case.kernel.tables]
        if case.kernel.workspace:
            self.emit(f"{x}.w = getelementptr {self.r.vector}, ptr %scratch, i64 {self.r.workspace}")
            arguments.append(f"ptr {x}.w")
        if mask is not None and not self._rare and len(case.kernel.stores) >= _MANY_STORES:
            # A masked store loads, selects and stores. If all lanes take part, a plain store will do.
            whole, part, after = (self.new_label(stem) for stem in ("whole", "part", "after"))
            self.emit(f"br i1 {mask}full, label %{whole}, label %{part}")
            self.block(whole)
            self.emit(f"call fastcc void {self._kernel(case.kernel, False)}({', '.join(arguments)})")
            self.emit(f"br label %{after}")
            self.block(part)
            masked = ", ".join([*arguments, f"{self.r.mask} {mask}"])
            self.emit(f"call fastcc void {self._kernel(case.kernel, True)}({masked})")
            self.emit(f"br label %{after}")
            self.block(after)
            return x
        if mask is not None:
            arguments.append(f"{self.r.mask} {mask}")
        call = f"{self._kernel(case.kernel, mask is not None)}({', '.join(arguments)})"
        if case.kernel.is_condition:
            self.emit(f"{x} = call fastcc {self.r.mask} {call}")
        else:
            self.emit(f"call fastcc void {call}")
        return x

    def _fetch_ahead(self, place: str, case: Case, pointer: int, base: str | int) -> None:
        """Prefetches a row's parameters of the next states, where they are first read.

        A large robot has more parameters than memory can deliver at once, so they are fetched while others are in use.
        """
        rows, offsets = case.bases[:, pointer] if isinstance(base, str) else [base], case.kernel.loaded[pointer]
        read = {int(row) + offset for row in rows for offset in offsets}
        if read <= self.r.fetched:
            return
        self.r.fetched |= read
        size = self._table(case.buffers[pointer].size)
        self.emit(f"{place}.next = getelementptr {self.r.vector}, ptr {place}, i64 {size}")
        for offset in offsets:
            self.prefetch(f"getelementptr {self.r.vector}, ptr {place}.next, i64 {offset}")

    def _tables_of(self, case: Case) -> tuple[str, ...]:
        """The case's tables: bases, constants, and the places of its flags if it has some."""
        flags = []
        if case.where:
            offset = self.places[case.where.buffer][1]
            flags = [self._table(np.ascontiguousarray(case.where.elements + offset))]
        return self._table(np.ascontiguousarray(self._bases_of(case))), self._constants_of(case), *flags

    def _bases_of(self, case: Case) -> np.ndarray:
        """Where the elements of each row start, (rows, buffers), as offsets from the pointers of their buffers."""
        return case.bases + np.array([self.places[buffer][1] for buffer in case.buffers], np.int64)

    def _flag(self, flags: Flags | None, row: int) -> tuple[Buffer | None, str]:
        """The buffer of a row's flag, and its offset from the pointer of that buffer."""
        if flags is None:
            return None, ""
        return flags.buffer, str(flags.elements[row] + self.places[flags.buffer][1])

    def _start(self, buffer: Buffer) -> str:
        """A pointer to the start of a buffer."""
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
        """Adds an entry to the list of tables; returns its name."""
        t, kind = self.name("table"), "i64" if isinstance(value, int) else "ptr"
        self.emit(f"{t}p = getelementptr i64, ptr %tables, i64 {len(self.tables)}")
        self.emit(f"{t} = load {kind}, ptr {t}p")
        self.tables.append(value)
        return t


def as_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values in that type; those beyond the range of float32 become infinite, as in the interpreter."""
    with np.errstate(over="ignore"):
        return values.astype(dtype)
