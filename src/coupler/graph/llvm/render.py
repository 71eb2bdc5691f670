"""Programs as LLVM IR, for one state or for as many states as a register has lanes.

A buffer holds `size` vectors of `lanes` states each, lanes innermost. A kernel becomes a function of pointers; a
program becomes a function of its buffers and of a list of tables (`table_entries`), so the text depends on the shape
of the program alone: not on the numbers in its tables, nor on how many rows they have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.graph.expr import Node, topological
from coupler.graph.kernel import Case, Kernel
from coupler.graph.llvm.functions import Functions
from coupler.graph.program import Loop, Program, Step
from coupler.graph.rewrite import rewrite

__all__ = ["Renderer", "Steps", "function", "table_entries"]


def table_entries(program: Program, dtype: np.dtype) -> list[np.ndarray | int]:
    """What the rendered program reads from its list of tables, in order: arrays (by address) and counts."""

    def of_case(case: Case) -> list[np.ndarray | int]:
        return [np.ascontiguousarray(case.bases), np.ascontiguousarray(_as_type(case.constants, dtype))]

    def of_steps(steps: Sequence[Step]) -> Iterator[np.ndarray | int]:
        for step in steps:
            if isinstance(step, Loop):
                yield len(step.order)
                yield np.ascontiguousarray(step.order, dtype=np.int32)
                for case in step.cases:
                    yield from of_case(case)
            else:
                yield step.at_most
                yield from of_case(step.until)
                yield from of_steps(step.body)

    return list(of_steps(program.steps))


def _as_type(values: Any, dtype: np.dtype) -> Any:
    with np.errstate(over="ignore"):  # beyond the range of float32 is infinity, as in the interpreter
        return values.astype(dtype)


class Renderer:
    """Renders one program for one number format and lane count. `text` is the module."""

    def __init__(self, program: Program, dtype: np.dtype, lanes: int, fused: bool) -> None:
        self.program, self.dtype, self.lanes, self.fused = program, dtype, lanes, fused
        self.scalar = "double" if dtype == np.float64 else "float"
        self.vector = self.scalar if lanes == 1 else f"<{lanes} x {self.scalar}>"
        self.mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.align = lanes * dtype.itemsize if lanes > 1 else 1  # one state works in the caller's own arrays
        self.functions = Functions(self)
        self._kernels: dict[tuple[str, bool], str] = {}
        self._defined: list[str] = []

    # Kernels

    def kernel(self, kernel: Kernel, masked: bool) -> str:
        """The name of the kernel's function, which is rendered on first use."""
        key = (kernel.text, masked)
        if key not in self._kernels:
            self._kernels[key] = f"@k{len(self._kernels)}"
            self._defined.append(self._kernel_text(self._kernels[key], kernel, masked))
        return self._kernels[key]

    def _kernel_text(self, name: str, kernel: Kernel, masked: bool) -> str:
        passes = ["share_reciprocals", *(["fuse_multiply_add"] if self.fused else [])]
        outputs = rewrite(kernel.outputs, passes)
        lines: list[str] = []
        value: dict[Node, str] = {}

        def load(node: Node) -> str:
            x = f"%l{len(value)}"
            if node in kernel.constants:
                lines.append(f"{x}p = getelementptr {self.scalar}, ptr %c, i64 {kernel.constants[node]}")
                lines.append(f"{x}s = load {self.scalar}, ptr {x}p")
                lines.extend(self._splat(x, f"{x}s"))
            else:
                at = kernel.loads[node]
                lines.append(f"{x}p = getelementptr {self.vector}, ptr %p{at.pointer}, i64 {at.offset}")
                lines.append(f"{x} = load {self.vector}, ptr {x}p, align {self.align}")
            return x

        self.straight_line(outputs, load, lines, value)
        for i, (at, node) in enumerate(zip(kernel.stores, outputs, strict=not kernel.is_condition)):
            lines.append(f"%s{i}p = getelementptr {self.vector}, ptr %p{at.pointer}, i64 {at.offset}")
            x = value[node]
            if masked:
                lines.append(f"%s{i}o = load {self.vector}, ptr %s{i}p, align {self.align}")
                lines.append(f"%s{i} = select {self.mask} %mask, {self.vector} {x}, {self.vector} %s{i}o")
                x = f"%s{i}"
            lines.append(f"store {self.vector} {x}, ptr %s{i}p, align {self.align}")
        lines.append(f"ret {self.mask} {value[outputs[0]]}" if kernel.is_condition else "ret void")
        parameters = [f"ptr noalias %p{i}" for i in range(kernel.pointers)] + ["ptr noalias readonly %c"]
        parameters += [f"{self.mask} %mask"] if masked else []
        result = self.mask if kernel.is_condition else "void"
        return function(f"internal fastcc {result} {name}({', '.join(parameters)})", [f"; {kernel.name}", *lines])

    def straight_line(
        self,
        outputs: Sequence[Node],
        leaf: Callable[[Node], str],
        lines: list[str],
        value: dict[Node, str],
    ) -> None:
        """Appends the operations that the outputs need; `value` gets the text of each node."""
        for node in topological(outputs):
            if node in value:
                continue
            if node.op == "constant":
                value[node] = self.literal(node.value)  # type: ignore[arg-type]
            elif node.op == "symbol":
                value[node] = leaf(node)
            else:
                name = f"%n{len(value)}"
                args = [value[arg] for arg in node.args]
                value[node] = self.functions.emit(node, name, args, lines)

    def literal(self, number: float | bool) -> str:
        """A constant in every lane."""
        if isinstance(number, bool):
            one, kind = ("true" if number else "false"), "i1"
        else:
            # LLVM writes a float, too, as the bits of the double that it equals.
            rounded = float(_as_type(np.float64(number), self.dtype))
            one, kind = f"0x{struct.pack('>d', rounded).hex().upper()}", self.scalar
        return one if self.lanes == 1 else f"<{', '.join([f'{kind} {one}'] * self.lanes)}>"

    def _splat(self, name: str, scalar: str) -> list[str]:
        if self.lanes == 1:
            return [f"{name} = select i1 true, {self.scalar} {scalar}, {self.scalar} {scalar}"]
        return [
            f"{name}i = insertelement {self.vector} poison, {self.scalar} {scalar}, i64 0",
            f"{name} = shufflevector {self.vector} {name}i, {self.vector} poison, <{self.lanes} x i32> zeroinitializer",
        ]

    # Programs

    def text(self) -> str:
        """The module: elementary functions, kernels, and the program as @program(buffers..., tables)."""
        program = self._program_text()
        return "\n".join([*self.functions.declarations(), *self.functions.definitions(), *self._defined, program])

    def _program_text(self) -> str:
        steps = Steps(self)
        steps.run(self.program.steps, {b: f"%b{i}" for i, b in enumerate(self.program.buffers)}, None)
        parameters = [f"ptr noalias %b{i}" for i in range(len(self.program.buffers))] + ["ptr noalias readonly %tables"]
        return function(f"internal fastcc void @program({', '.join(parameters)})", [*steps.lines, "ret void"])


class Steps:
    """Emits the control flow of a program: loops over tables, and repeats."""

    def __init__(self, renderer: Renderer) -> None:
        self.r = renderer
        self.lines: list[str] = ["entry:"]
        self._label = "entry"  # of the block being written, which a phi must name
        self._names = 0
        self._tables = 0

    def name(self, stem: str) -> str:
        self._names += 1
        return f"%{stem}{self._names}"

    def block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._label = label

    def run(self, steps: Sequence[Step], buffers: Mapping[object, str], mask: str | None) -> None:
        for step in steps:
            if not isinstance(step, Loop):
                self._repeat(step, buffers, mask)
            elif len(step.cases) == 1:
                rows, _ = self._table("i64"), self._table("ptr")
                tables = self._table("ptr"), self._table("ptr")
                with self.count("0", rows) as row:
                    self._call(step.cases[0], tables, row, buffers, mask)
            else:
                self._interleaved(step, buffers, mask)

    def _interleaved(self, loop: Loop, buffers: Mapping[object, str], mask: str | None) -> None:
        turns, order = self._table("i64"), self._table("ptr")
        tables = [(self._table("ptr"), self._table("ptr")) for _ in loop.cases]
        counters = [self.name("counter") for _ in loop.cases]
        for counter in counters:
            self.lines += [f"{counter} = alloca i64", f"store i64 0, ptr {counter}"]
        with self.count("0", turns) as turn:
            which, after = self.name("which"), self.name("after")[1:]
            labels = [self.name("case")[1:] for _ in loop.cases]
            self.lines.append(f"{which}p = getelementptr i32, ptr {order}, i64 {turn}")
            self.lines.append(f"{which} = load i32, ptr {which}p")
            targets = " ".join(f"i32 {i}, label %{label}" for i, label in enumerate(labels))
            self.lines.append(f"switch i32 {which}, label %{after} [{targets}]")
            for case, table, counter, label in zip(loop.cases, tables, counters, labels, strict=True):
                self.block(label)
                row = self.name("row")
                self.lines.append(f"{row} = load i64, ptr {counter}")
                self._call(case, table, row, buffers, mask)
                self.lines.append(f"{row}n = add i64 {row}, 1")
                self.lines.append(f"store i64 {row}n, ptr {counter}")
                self.lines.append(f"br label %{after}")
            self.block(after)

    def _repeat(self, step: Step, buffers: Mapping[object, str], mask: str | None) -> None:
        assert not isinstance(step, Loop)
        r = self.r
        at_most, tables = self._table("i64"), (self._table("ptr"), self._table("ptr"))
        head, body, after = (self.name(stem)[1:] for stem in ("head", "body", "after"))
        i, active = self.name("i"), self.name("active")
        start = mask or r.literal(True)
        before = self._label
        self.lines.append(f"br label %{head}")
        self.block(head)
        latch = self.name("latch")[1:]
        self.lines.append(f"{i} = phi i64 [0, %{before}], [{i}n, %{latch}]")
        self.lines.append(f"{active} = phi {r.mask} [{start}, %{before}], [{active}n, %{latch}]")
        done = self._call(step.until, tables, "0", buffers, None)
        self.lines.append(f"{active}d = xor {r.mask} {done}, {r.literal(True)}")
        self.lines.append(f"{active}n = and {r.mask} {active}, {active}d")
        any_left = f"{active}n"
        if r.lanes > 1:
            any_left = f"{active}any"
            self.lines.append(f"{any_left} = call i1 @llvm.vector.reduce.or.v{r.lanes}i1({r.mask} {active}n)")
        self.lines.append(f"{i}more = icmp slt i64 {i}, {at_most}")
        self.lines.append(f"{i}go = and i1 {i}more, {any_left}")
        self.lines.append(f"br i1 {i}go, label %{body}, label %{after}")
        self.block(body)
        self.run(step.body, buffers, f"{active}n" if r.lanes > 1 else None)
        self.lines.append(f"br label %{latch}")
        self.block(latch)
        self.lines.append(f"{i}n = add i64 {i}, 1")
        self.lines.append(f"br label %{head}")
        self.block(after)

    def _call(
        self, case: Case, tables: tuple[str, str], row: str, buffers: Mapping[object, str], mask: str | None
    ) -> str:
        """Calls the case's kernel on one row and returns the name of its result."""
        bases, constants = tables
        x = self.name("call")
        arguments = []
        for i, buffer in enumerate(case.buffers):
            self.lines.append(f"{x}.r{i} = mul i64 {row}, {len(case.buffers)}")
            self.lines.append(f"{x}.n{i} = add i64 {x}.r{i}, {i}")
            self.lines.append(f"{x}.q{i} = getelementptr i64, ptr {bases}, i64 {x}.n{i}")
            self.lines.append(f"{x}.b{i} = load i64, ptr {x}.q{i}")
            self.lines.append(f"{x}.p{i} = getelementptr {self.r.vector}, ptr {buffers[buffer]}, i64 {x}.b{i}")
            arguments.append(f"ptr {x}.p{i}")
        self.lines.append(f"{x}.c = mul i64 {row}, {case.constants.shape[1]}")
        self.lines.append(f"{x}.k = getelementptr {self.r.scalar}, ptr {constants}, i64 {x}.c")
        arguments.append(f"ptr {x}.k")
        if mask is not None:
            arguments.append(f"{self.r.mask} {mask}")
        call = f"{self.r.kernel(case.kernel, mask is not None)}({', '.join(arguments)})"
        if case.kernel.is_condition:
            self.lines.append(f"{x} = call fastcc {self.r.mask} {call}")
        else:
            self.lines.append(f"call fastcc void {call}")
        return x

    def _table(self, kind: str) -> str:
        """The next entry of the list of tables; the order is that of `table_entries`."""
        t = self.name("table")
        self.lines.append(f"{t}p = getelementptr i64, ptr %tables, i64 {self._tables}")
        self.lines.append(f"{t} = load {kind}, ptr {t}p")
        self._tables += 1
        return t

    def count(self, first: str, last: str, step: int = 1) -> _Count:
        """A block that is run for a counter from first to last, exclusive."""
        return _Count(self, first, last, step)


class _Count:
    def __init__(self, steps: Steps, first: str, last: str, step: int) -> None:
        self.steps, self.first, self.last, self.step = steps, first, last, step
        self.head, self.body, self.latch, self.after = (steps.name(s)[1:] for s in ("head", "body", "latch", "after"))
        self.i = steps.name("i")

    def __enter__(self) -> str:
        s = self.steps
        before = s._label
        s.lines.append(f"br label %{self.head}")
        s.block(self.head)
        s.lines.append(f"{self.i} = phi i64 [{self.first}, %{before}], [{self.i}n, %{self.latch}]")
        s.lines.append(f"{self.i}go = icmp slt i64 {self.i}, {self.last}")
        s.lines.append(f"br i1 {self.i}go, label %{self.body}, label %{self.after}")
        s.block(self.body)
        return self.i

    def __exit__(self, *_: object) -> None:
        s = self.steps
        s.lines.append(f"br label %{self.latch}")
        s.block(self.latch)
        s.lines.append(f"{self.i}n = add i64 {self.i}, {self.step}")
        s.lines.append(f"br label %{self.head}")
        s.block(self.after)


def function(signature: str, lines: Sequence[str]) -> str:
    return f"define {signature} nounwind {{\n" + "\n".join(lines) + "\n}\n"
