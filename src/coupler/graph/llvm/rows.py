"""Operations on rows as LLVM IR: one loop over their table, and another that moves numbers to and from their memory.

Of a single state, numbers that lie side by side share a register; of many, each register holds one number of all.
Either way each number is computed alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph.expr import Node
from coupler.graph.kernel import Kernel
from coupler.graph.llvm.blocks import Blocks, function
from coupler.graph.llvm.functions import Functions
from coupler.rows import ADD, CLEAR, COPY, DOT, INVERT, REFLECT, SCALE, SUBTRACT, RowCode

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

_FEW = 8  # numbers that are moved one by one
_AT_ONCE = 4  # sums into the same row that are made in one go: it is loaded and stored once
_FIELDS = 3 + 2 * _AT_ONCE  # of an operation in a table: which one, t, w, and s and f of each sum


class RowFunctions:
    """The functions and tables that a module needs for operations on rows.

    The functions are a module of their own: they are compiled well even where kernels are too long for that.
    """

    def __init__(self, renderer: Renderer) -> None:
        self.r = renderer
        self._intrinsics = Functions(renderer)
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

    def move(self, masked: bool) -> str:
        """The function that copies runs of numbers, (from, to, how many) each; masked, in some lanes alone."""
        name = "@coupler.move.masked" if masked else "@coupler.move"
        if name not in self._defined:
            self._defined.add(name)
            r, code = self.r, Blocks()
            with code.count("0", "%n") as run:
                source, target, width = _numbers(code, "%runs", run, 3)

                def body(emit: Callable[[str], None], kind: str, c: str) -> None:
                    x = code.name("x")
                    value = self._load(emit, kind, "%from", source, c, x)
                    if masked:
                        old = self._load(emit, kind, "%to", target, c, f"{x}.o")
                        emit(f"{x}.n = select {r.mask} %mask, {kind} {value}, {kind} {old}")
                        value = f"{x}.n"
                    self._store(emit, kind, "%to", target, c, value, f"{x}.s")

                self._columns(code, width, body)
            mask = [f"{r.mask} %mask"] if masked else []
            self._define(name, ["ptr %to", "ptr %from", "ptr %runs", "i64 %n", *mask], code.lines())
        return name

    def run(self) -> str:
        """The function that runs a table of operations."""
        name = "@coupler.rows"
        if name not in self._defined:
            self._defined.add(name)
            code = Blocks()
            with code.count("0", "%n") as i:
                kind, t, w, *terms = _numbers(code, "%code", i, _FIELDS)
                after = code.new_label("after")
                labels = {operation: code.new_label("case") for operation in range(_SUBTRACT_SEVERAL + 1)}
                targets = " ".join(f"i64 {operation}, label %{label}" for operation, label in labels.items())
                code.emit(f"switch i64 {kind}, label %{after} [{targets}]")
                for operation, label in labels.items():
                    code.block(label)
                    if operation in (_ADD_SEVERAL, _SUBTRACT_SEVERAL):
                        self._several(code, operation, t, w, terms)
                    else:
                        self._operation(code, operation, t, terms[0], terms[1], w)
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
            self._reflect(code, t, s, f, w)
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

    def _several(self, code: Blocks, operation: int, t: str, w: str, terms: Sequence[str]) -> None:
        """Sums into one row, one after the other."""
        v, pairs = self.r.vector, list(zip(terms[::2], terms[1::2], strict=True))
        factors = [self._load(code.emit, v, "%m", f, "0", code.name("f")) for _, f in pairs]
        spread = [self._spread(code, factor) if self._wide > 1 else factor for factor in factors]
        one = ADD if operation == _ADD_SEVERAL else SUBTRACT

        def body(emit: Callable[[str], None], kind: str, c: str) -> None:
            total = self._load(emit, kind, "%m", t, c, code.name("o"))
            for (s, _), factor, wide in zip(pairs, factors, spread, strict=True):
                x = code.name("x")
                value = self._load(emit, kind, "%m", s, c, f"{x}.v")
                total = self._fused(emit, kind, one, wide if kind != v else factor, value, total, x)
            self._store(emit, kind, "%m", t, c, total, code.name("s"))

        self._columns(code, w, body)

    def _fused(
        self, emit: Callable[[str], None], kind: str, operation: int, factor: str, value: str, old: str, x: str
    ) -> str:
        """old ± factor · value, rounded once where the processor can."""
        if not self.r.fused:
            emit(f"{x}.p = fmul {kind} {factor}, {value}")
            emit(f"{x}.a = {'fadd' if operation == ADD else 'fsub'} {kind} {old}, {x}.p")
            return f"{x}.a"
        if operation == SUBTRACT:
            emit(f"{x}.g = fneg {kind} {factor}")
            factor = f"{x}.g"
        suffix = ("" if "<" not in kind else f"v{kind.split()[0][1:]}") + (
            "f64" if self.r.scalar == "double" else "f32"
        )
        self._intrinsics.declare(f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})")
        emit(f"{x}.a = call {kind} @llvm.fma.{suffix}({kind} {factor}, {kind} {value}, {kind} {old})")
        return f"{x}.a"

    def _reflect(self, code: Blocks, t: str, s: str, f: str, w: str) -> None:
        r, v, emit, x = self.r, self.r.vector, code.emit, code.name("x")
        first, square = self._load(emit, v, "%m", t, "0", f"{x}.f"), self._load(emit, v, "%m", s, "0", f"{x}.q")
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

    @property
    def _wide(self) -> int:
        """How many numbers of a single state share a register."""
        return self.r.register if self.r.lanes == 1 else 1

    def _spread(self, code: Blocks, factor: str) -> str:
        kind = f"<{self._wide} x {self.r.scalar}>"
        code.emit(f"{factor}.i = insertelement {kind} poison, {self.r.scalar} {factor}, i64 0")
        everywhere = f"<{self._wide} x i32> zeroinitializer"
        code.emit(f"{factor}.w = shufflevector {kind} {factor}.i, {kind} poison, {everywhere}")
        return f"{factor}.w"

    def _columns(self, code: Blocks, width: str, body: Callable[[Callable[[str], None], str, str], None]) -> None:
        """A loop over numbers that lie side by side, several at once where they may share a register."""
        first = "0"
        if self._wide > 1:
            first = code.name("whole")
            code.emit(f"{first} = and i64 {width}, -{self._wide}")
            with code.count("0", first, step=self._wide) as c:
                body(code.emit, f"<{self._wide} x {self.r.scalar}>", c)
        with code.count(first, width) as c:
            body(code.emit, self.r.vector, c)

    def _place(self, emit: Callable[[str], None], memory: str, at: str, c: str, x: str) -> str:
        emit(f"{x}.e = add i64 {at}, {c}")
        emit(f"{x}.p = getelementptr {self.r.vector}, ptr {memory}, i64 {x}.e")
        return f"{x}.p"

    def _load(self, emit: Callable[[str], None], kind: str, memory: str, at: str, c: str, x: str) -> str:
        emit(f"{x} = load {kind}, ptr {self._place(emit, memory, at, c, x)}, align {self.r.align}")
        return x

    def _store(self, emit: Callable[[str], None], kind: str, memory: str, at: str, c: str, value: str, x: str) -> None:
        emit(f"store {kind} {value}, ptr {self._place(emit, memory, at, c, x)}, align {self.r.align}")


_ADD_SEVERAL, _SUBTRACT_SEVERAL = DOT + 1, DOT + 2


def _grouped(code: np.ndarray) -> np.ndarray:
    """The table with sums into the same row, of rows that none of them changes, put together."""
    result, i, rows = list[list[int]](), 0, code.tolist()
    while i < len(rows):
        kind, t, s, f, w = rows[i]
        run = rows[i : i + _AT_ONCE]
        changed = range(t, t + w)
        alike = len(run) == _AT_ONCE and kind in (ADD, SUBTRACT)
        alike = alike and all(other[:2] == [kind, t] and other[4] == w for other in run)
        if alike and all(x[3] not in changed and (x[2] >= t + w or x[2] + w <= t) for x in run):
            several = _ADD_SEVERAL if kind == ADD else _SUBTRACT_SEVERAL
            result.append([several, t, w, *(place for x in run for place in (x[2], x[3]))])
            i += _AT_ONCE
        else:
            result.append([kind, t, w, s, f, *[0] * (_FIELDS - 5)])
            i += 1
    return np.array(result)


def _numbers(code: Blocks, table: str, row: str, count: int) -> list[str]:
    """The whole numbers of a row of a table."""
    x = code.name("row")
    code.emit(f"{x} = getelementptr [{count} x i32], ptr {table}, i64 {row}")
    for i in range(count):
        code.emit(f"{x}.p{i} = getelementptr i32, ptr {x}, i64 {i}")
        code.emit(f"{x}.i{i} = load i32, ptr {x}.p{i}")
        code.emit(f"{x}.{i} = sext i32 {x}.i{i} to i64")
    return [f"{x}.{i}" for i in range(count)]


class KernelRows:
    """The operations on rows of one kernel: where their memories are in its workspace %w, and how numbers get there."""

    def __init__(self, functions: RowFunctions, kernel: Kernel, lines: list[str]) -> None:
        self._functions, self._kernel, self._lines = functions, kernel, lines
        self._area: dict[Node, int] = {}
        self._size = 0

    def place(self, part: Node) -> int:
        """Where a number of a memory is in the workspace."""
        assert isinstance(part.value, int)
        return self._area[part.args[0]] + part.value

    def load(self, part: Node, x: str) -> None:
        r = self._functions.r
        self._lines.append(f"{x}p = getelementptr {r.vector}, ptr %w, i64 {self.place(part)}")
        self._lines.append(f"{x} = load {r.vector}, ptr {x}p, align {r.align}")

    def emit(self, node: Node, text: Callable[[Node], str]) -> None:
        """Fills the memory of a node, and runs its operations."""
        r, code = self._functions.r, node.table
        assert isinstance(code, RowCode)
        area = self._area[node] = self._size
        self._size += code.size
        moves: dict[str, list[tuple[int, int]]] = {}
        single: list[tuple[Node, int]] = []
        for i, arg in enumerate(node.args):
            if arg.op == "part":
                moves.setdefault("%w", []).append((self.place(arg), area + i))
            elif arg in self._kernel.loads:
                at = self._kernel.loads[arg]
                moves.setdefault(f"%p{at.pointer}", []).append((at.offset, area + i))
            else:
                single.append((arg, area + i))
        for arg, place in single:
            value, x = text(arg), f"%w{place}"
            self._lines.append(f"{x}p = getelementptr {r.vector}, ptr %w, i64 {place}")
            self._lines.append(f"store {r.vector} {value}, ptr {x}p, align {r.align}")
        for source, pairs in moves.items():
            self._move(source, "%w", pairs)
        x = f"%area{area}"
        self._lines.append(f"{x} = getelementptr {r.vector}, ptr %w, i64 {area}")
        operations = _grouped(code.code)
        table, run = self._functions.table(operations), self._functions.run()
        self._lines.append(f"call fastcc void {run}(ptr {x}, ptr {table}, i64 {len(operations)})")

    def stored(self, outputs: Sequence[Node]) -> dict[int, list[int]]:
        """Which of the kernel's results are moved to where they belong all at once, by pointer."""
        by_pointer: dict[int, list[int]] = {}
        for i, (node, at) in enumerate(zip(outputs, self._kernel.stores, strict=False)):
            if node.op == "part":
                by_pointer.setdefault(at.pointer, []).append(i)
        return {pointer: own for pointer, own in by_pointer.items() if len(own) > _FEW}

    def store(self, outputs: Sequence[Node], moved: dict[int, list[int]], masked: bool) -> None:
        """Moves those results."""
        for pointer, own in moved.items():
            pairs = [(self.place(outputs[i]), self._kernel.stores[i].offset) for i in own]
            self._move("%w", f"%p{pointer}", pairs, masked)

    def _move(self, source: str, target: str, pairs: Iterable[tuple[int, int]], masked: bool = False) -> None:
        runs: list[list[int]] = []
        for first, to in sorted(pairs, key=lambda pair: pair[1]):
            if runs and runs[-1][0] + runs[-1][2] == first and runs[-1][1] + runs[-1][2] == to:
                runs[-1][2] += 1
            else:
                runs.append([first, to, 1])
        table, move = self._functions.table(np.array(runs)), self._functions.move(masked)
        mask = f", {self._functions.r.mask} %mask" if masked else ""
        self._lines.append(f"call fastcc void {move}(ptr {target}, ptr {source}, ptr {table}, i64 {len(runs)}{mask})")
