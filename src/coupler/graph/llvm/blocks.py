"""The body of a function in LLVM IR, made of blocks: lines, names, labels, memory and counted loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

PREFETCH = "void @llvm.prefetch.p0(ptr, i32, i32, i32)"


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
        """A new name with this stem."""
        self._names += 1
        return f"%{stem}{self._names}"

    def new_label(self, stem: str) -> str:
        return self.name(stem)[1:]

    def block(self, label: str) -> None:
        """Starts the block with this label."""
        self.emit(f"{label}:")
        self.label = label

    def allocate(self, kind: str) -> str:
        """Memory for one value, allocated once at the start of the function, even if this is inside a loop."""
        place = self.name("place")
        self._allocated.append(f"{place} = alloca {kind}")
        return place

    def prefetch(self, place: str) -> None:
        """Prefetches a cache line into the second-level cache; the address need not be valid."""
        p = self.name("ahead")
        self.emit(f"{p} = {place}")
        self.emit(f"call void @llvm.prefetch.p0(ptr {p}, i32 0, i32 2, i32 1)")

    @contextmanager
    def count(self, first: str, last: str, step: int = 1) -> Iterator[str]:
        """A loop whose counter, which is yielded, runs from first to last, exclusive."""
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


def function(signature: str, lines: Sequence[str], attributes: str = "") -> str:
    """The definition of a function with this body."""
    return f"define {signature} nounwind {attributes} {{\n" + "\n".join(lines) + "\n}\n"
