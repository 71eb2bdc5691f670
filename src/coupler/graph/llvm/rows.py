"""Operations on rows as LLVM IR: one loop over their table, and another that moves numbers to and from their memory.

For a single state, numbers that lie side by side share a register; for many states, a register holds one number of
each. Either way each number is computed by the same operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph.llvm.blocks import Blocks, function
from coupler.graph.llvm.row_access import RowAccess
from coupler.graph.llvm.row_table import ALL, FIELDS, FROM_ZERO, MIRROR, NORMAL, SCALES, SPREADS, SUMS
from coupler.rows import ADD, CLEAR, COPY, DOT, INVERT, REFLECT, SCALE, SUBTRACT

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

_Places = tuple[str, str]  # evenly spaced places: the first, and the distance to the next


class RowFunctions(RowAccess):
    """The functions and tables that a module needs for operations on rows.

    The functions are a module of their own: they are compiled well even where kernels are too long for that.
    """

    def __init__(self, renderer: Renderer) -> None:
        super().__init__(renderer)
        self._tables: dict[bytes, str] = {}
        self._text: list[str] = []
        self._functions: list[str] = []
        self._defined: set[str] = set()

    def text(self) -> list[str]:
        """The tables, and declarations of the functions."""
        return self._text

    def library(self) -> str:
        """The module with the functions; empty if there are none."""
        return "\n".join([*self._intrinsics.declarations(), *self._functions]) if self._functions else ""

    def _define(self, name: str, parameters: Sequence[str], lines: Sequence[str]) -> None:
        self._text.append(f"declare fastcc void {name}({', '.join(p.rsplit(' ', 1)[0] for p in parameters)})")
        self._functions.append(function(f"fastcc void {name}({', '.join(parameters)})", [*lines, "ret void"]))

    def table(self, values: np.ndarray) -> str:
        """The name of a table of whole numbers."""
        flat = np.ascontiguousarray(values, np.int32).ravel()
        name = self._tables.setdefault(flat.tobytes(), f"@rows{len(self._tables)}")
        if name not in self._defined:
            self._defined.add(name)
            numbers = ", ".join([f"i32 {value}" for value in flat.tolist()])
            self._text.append(f"{name} = internal constant [{flat.size} x i32] [{numbers}]")
        return name

    def move(self, single: bool, masked: bool) -> str:
        """The name of the function that copies single numbers, (from, to) each, or runs of numbers, (from, to, count).

        If masked, it changes only some lanes.
        """
        name = f"@coupler.move{'.single' if single else ''}{'.masked' if masked else ''}"
        if name not in self._defined:
            self._defined.add(name)
            r, code = self.r, Blocks()

            def body(emit: Callable[[str], None], kind: str, c: str) -> None:
                x = code.name("x")
                value = self._load(emit, kind, "%from", source, c, x)
                if masked:
                    old = self._load(emit, kind, "%to", target, c, f"{x}.o")
                    emit(f"{x}.n = select {r.mask} %mask, {kind} {value}, {kind} {old}")
                    value = f"{x}.n"
                self._store(emit, kind, "%to", target, c, value, f"{x}.s")

            with code.count("0", "%n") as i:
                source, target, *width = _numbers(code, "%numbers", i, 2 if single else 3)
                if single:
                    body(code.emit, r.vector, "0")
                else:
                    self._columns(code, width[0], body)
            mask = [f"{r.mask} %mask"] if masked else []
            self._define(name, ["ptr %to", "ptr %from", "ptr %numbers", "i64 %n", *mask], code.lines())
        return name

    def run(self) -> str:
        """The name of the function that runs a table of instructions."""
        name = "@coupler.rows"
        if name not in self._defined:
            self._defined.add(name)
            code = Blocks()
            with code.count("0", "%n") as i:
                kind, t, w, s, f, n, d, e, x, y = _numbers(code, "%code", i, FIELDS)
                after = code.new_label("after")
                labels = {operation: code.new_label("case") for operation in ALL}
                targets = " ".join(f"i64 {operation}, label %{label}" for operation, label in labels.items())
                code.emit(f"switch i64 {kind}, label %{after} [{targets}]")
                for operation, label in labels.items():
                    code.block(label)
                    if operation in (*SUMS.values(), FROM_ZERO):
                        self._sum(code, operation, t, w, (s, d), (f, e), n)
                    elif operation == MIRROR:
                        self._mirror(code, (x, y), (t, d), w, s, (f, e), n)
                    elif operation == NORMAL:
                        self._normal(code, x, (t, d), n, f, w)
                    elif operation == SCALES:
                        self._each(code, SCALE, (t, d), w, (s, e), (f, "0"), n)
                    elif operation in SPREADS.values():
                        one = SUBTRACT if operation == SPREADS[SUBTRACT] else ADD
                        self._each(code, one, (t, d), w, (s, "0"), (f, e), n)
                    else:
                        self._operation(code, operation, t, s, f, w)
                    code.emit(f"br label %{after}")
                code.block(after)
            self._define(name, ["ptr noalias %m", "ptr noalias readonly %code", "i64 %n"], code.lines())
        return name

    def _operation(self, code: Blocks, operation: int, t: str, s: str, f: str, w: str) -> None:
        v, emit = self.r.vector, code.emit
        if operation == INVERT:
            x = self._load(emit, v, "%m", s, "0", code.name("x"))
            emit(f"{x}.i = fdiv {v} {self.r.literal(1.0)}, {x}")
            self._store(emit, v, "%m", t, "0", f"{x}.i", f"{x}.s")
        elif operation == REFLECT:
            self._reflect(code, t, self._load(emit, v, "%m", s, "0", code.name("q")), f, w)
        elif operation == DOT:
            self._dot(code, t, s, f, w)
        else:
            factor = self._load(emit, v, "%m", f, "0", code.name("f"))
            spread = self._spread(code, factor) if self._wide > 1 else factor

            def body(emit: Callable[[str], None], kind: str, c: str) -> None:
                x, zero = code.name("x"), "zeroinitializer" if "<" in kind else "0.0"
                if operation == CLEAR:
                    self._store(emit, kind, "%m", t, c, zero, f"{x}.s")
                    return
                value = self._load(emit, kind, "%m", s, c, f"{x}.v")
                scale = spread if kind != v else factor
                if operation == SCALE:
                    emit(f"{x}.p = fmul {kind} {scale}, {value}")
                    value = f"{x}.p"
                elif operation != COPY:
                    old = self._load(emit, kind, "%m", t, c, f"{x}.o")
                    value = self._fused(emit, kind, operation, scale, value, old, x)
                self._store(emit, kind, "%m", t, c, value, f"{x}.s")

            self._columns(code, w, body)

    def _sum(self, code: Blocks, operation: int, t: str, w: str, sources: _Places, factors: _Places, n: str) -> None:
        """Code that adds multiples of several rows to one row, one after the other."""
        one = SUBTRACT if operation == SUMS[SUBTRACT] else ADD

        def body(emit: Callable[[str], None], kind: str, c: str) -> None:
            x, zero = code.name("x"), "zeroinitializer" if "<" in kind else "0.0"
            old = zero if operation == FROM_ZERO else self._load(emit, kind, "%m", t, c, f"{x}.o")
            total = self._total(code, kind, one, old, sources, factors, n, c)
            self._store(emit, kind, "%m", t, c, total, f"{x}.w")

        self._columns(code, w, body)

    def _total(
        self, code: Blocks, kind: str, one: int, old: str, sources: _Places, factors: _Places, n: str, c: str
    ) -> str:
        """The name of `old` plus multiples of numbers of other rows, in one column or in several at once."""
        emit, x = code.emit, code.name("x")
        head, again, after, before = *map(code.new_label, ("head", "body", "after")), code.label
        emit(f"br label %{head}")
        code.block(head)
        emit(f"{x}.i = phi i64 [0, %{before}], [{x}.in, %{again}]")
        emit(f"{x}.t = phi {kind} [{old}, %{before}], [{x}.a, %{again}]")
        for name, (first, _) in (("s", sources), ("f", factors)):
            emit(f"{x}.{name} = phi i64 [{first}, %{before}], [{x}.{name}n, %{again}]")
        for name, (_, step) in (("s", sources), ("f", factors)):
            emit(f"{x}.{name}n = add i64 {x}.{name}, {step}")
        emit(f"{x}.in = add i64 {x}.i, 1")
        emit(f"{x}.go = icmp slt i64 {x}.i, {n}")
        emit(f"br i1 {x}.go, label %{again}, label %{after}")
        code.block(again)
        value = self._load(emit, kind, "%m", f"{x}.s", c, f"{x}.v")
        factor = self._factor(code, kind, f"{x}.f")
        self._fused(emit, kind, one, factor, value, f"{x}.t", x)
        emit(f"br label %{head}")
        code.block(after)
        return f"{x}.t"

    def _factor(self, code: Blocks, kind: str, at: str) -> str:
        """The name of a number of the memory, repeated for every number of a register."""
        factor = self._load(code.emit, self.r.vector, "%m", at, "0", code.name("f"))
        return factor if kind == self.r.vector else self._spread(code, factor)

    def _mirror(
        self, code: Blocks, first: _Places, targets: _Places, w: str, scale: str, normal: _Places, n: str
    ) -> None:
        """Code that reflects rows. The first row comes with its entry of the normal; the others are evenly spaced."""

        def body(emit: Callable[[str], None], kind: str, c: str) -> None:
            zero, x = "zeroinitializer" if "<" in kind else "0.0", code.name("x")
            entry = self._load(emit, kind, "%m", first[0], c, f"{x}.v")
            factor = self._factor(code, kind, first[1])
            start = self._fused(emit, kind, ADD, factor, entry, zero, f"{x}.b")
            total = self._total(code, kind, ADD, start, targets, normal, n, c)
            emit(f"{x} = fmul {kind} {self._factor(code, kind, scale)}, {total}")
            self._store(emit, kind, "%m", first[0], c, self._fused(emit, kind, SUBTRACT, factor, x, entry, x), f"{x}.s")
            with code.count("0", n) as i:
                t, f = self._at(code, targets, i), self._at(code, normal, i)
                old, y = self._load(emit, kind, "%m", t, c, code.name("o")), code.name("y")
                value = self._fused(emit, kind, SUBTRACT, self._factor(code, kind, f), x, old, y)
                self._store(emit, kind, "%m", t, c, value, code.name("s"))

        self._columns(code, w, body)

    def _normal(self, code: Blocks, first: str, others: _Places, n: str, scale: str, length: str) -> None:
        """Code for the normal of the reflection that maps a vector of numbers onto its first axis."""
        v, emit, x = self.r.vector, code.emit, code.name("x")
        value = self._load(emit, v, "%m", first, "0", f"{x}.v")
        start = self._fused(emit, v, ADD, value, value, self.r.literal(0.0), f"{x}.b")
        self._reflect(code, first, self._total(code, v, ADD, start, others, others, n, "0"), scale, length)

    def _at(self, code: Blocks, places: _Places, i: str) -> str:
        """The name of the i-th of several evenly spaced places."""
        x, (first, step) = code.name("at"), places
        code.emit(f"{x}.d = mul i64 {i}, {step}")
        code.emit(f"{x} = add i64 {first}, {x}.d")
        return x

    def _each(self, code: Blocks, operation: int, t: _Places, w: str, s: _Places, f: _Places, n: str) -> None:
        """A loop that repeats an operation at evenly spaced places."""
        with code.count("0", n) as i:
            target, source, factor = (self._at(code, places, i) for places in (t, s, f))
            self._operation(code, operation, target, source, factor, w)

    def _reflect(self, code: Blocks, t: str, square: str, f: str, w: str) -> None:
        r, v, emit, x = self.r, self.r.vector, code.emit, code.name("x")
        first = self._load(emit, v, "%m", t, "0", f"{x}.f")
        self._intrinsics.emit("sqrt", f"{x}.l", [square], code._lines, set())
        emit(f"{x}.n = fneg {v} {x}.l")
        emit(f"{x}.c = fcmp olt {v} {first}, {r.literal(0.0)}")
        emit(f"{x}.a = select {r.mask} {x}.c, {v} {x}.n, {v} {x}.l")
        emit(f"{x}.b = fadd {v} {first}, {x}.a")
        emit(f"{x}.p = fmul {v} {x}.a, {x}.b")
        emit(f"{x}.z = fcmp oeq {v} {x}.p, {r.literal(0.0)}")
        emit(f"{x}.d = select {r.mask} {x}.z, {v} {r.literal(1.0)}, {v} {x}.p")
        emit(f"{x}.i = fdiv {v} {r.literal(1.0)}, {x}.d")
        emit(f"{x}.r = select {r.mask} {x}.z, {v} {r.literal(0.0)}, {v} {x}.i")
        emit(f"{x}.m = fneg {v} {x}.a")
        for place, value in ((t, f"{x}.b"), (f, f"{x}.r"), (w, f"{x}.m")):
            self._store(emit, v, "%m", place, "0", value, code.name("s"))

    def _dot(self, code: Blocks, t: str, s: str, f: str, w: str) -> None:
        v, emit, x = self.r.vector, code.emit, code.name("x")
        old, before = self._load(emit, v, "%m", t, "0", f"{x}.o"), code.label
        head, body, after = map(code.new_label, ("head", "body", "after"))
        emit(f"br label %{head}")
        code.block(head)
        emit(f"{x}.c = phi i64 [0, %{before}], [{x}.n, %{body}]")
        emit(f"{x}.t = phi {v} [{old}, %{before}], [{x}.a, %{body}]")
        emit(f"{x}.go = icmp slt i64 {x}.c, {w}")
        emit(f"br i1 {x}.go, label %{body}, label %{after}")
        code.block(body)
        one, other = (self._load(emit, v, "%m", at, f"{x}.c", f"{x}.{at[1:]}") for at in (f, s))
        self._fused(emit, v, ADD, one, other, f"{x}.t", x)  # as {x}.a
        emit(f"{x}.n = add i64 {x}.c, 1")
        emit(f"br label %{head}")
        code.block(after)
        self._store(emit, v, "%m", t, "0", f"{x}.t", code.name("s"))


def _numbers(code: Blocks, table: str, row: str, count: int) -> list[str]:
    """The whole numbers of a row of a table."""
    x = code.name("row")
    code.emit(f"{x} = getelementptr [{count} x i32], ptr {table}, i64 {row}")
    for i in range(count):
        code.emit(f"{x}.p{i} = getelementptr i32, ptr {x}, i64 {i}")
        code.emit(f"{x}.i{i} = load i32, ptr {x}.p{i}")
        code.emit(f"{x}.{i} = sext i32 {x}.i{i} to i64")
    return [f"{x}.{i}" for i in range(count)]
