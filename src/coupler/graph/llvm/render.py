"""Programs as LLVM IR, for one state or for as many states as a register has lanes.

A buffer holds `size` vectors of `lanes` states each, lanes innermost. A kernel becomes a function of pointers, and a
program a function of its buffers and a list of tables. So the text depends on the shape of the program only: not on the
numbers in its tables, nor on the numbers of rows, except for short loops, which are spelled out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from coupler.graph.expr import Node
from coupler.graph.kernel import Kernel
from coupler.graph.llvm.blocks import function
from coupler.graph.llvm.calls import as_type
from coupler.graph.llvm.control import Steps
from coupler.graph.llvm.functions import Functions
from coupler.graph.llvm.kernel_rows import KernelRows
from coupler.graph.llvm.rows import RowFunctions
from coupler.graph.program import Program
from coupler.graph.rewrite import rewrite
from coupler.graph.table import Table
from coupler.graph.walk import topological

_LONG, _BLOCK = 7_500, 500  # lines of a kernel from which on it is cut into blocks, and lines of a block
_FAR = 50  # operations after which a number is loaded again, as keeping it would cost a register or a spill


class Renderer:
    """Renders one program for one number format and lane count.

    Attributes:
        text: the module: elementary functions, kernels, parts of the program, and the program as @program(inputs and
            outputs..., scratch, tables). All scratch is one block, because registers do not suffice for many pointers.
        library: another module, with functions that the first one calls; empty if it calls none.
        pointers: the names of these parameters, without the tables.
        tables: the contents of the list of tables; see `Calls`.
        largest: the number of lines of the longest kernel.
        fetched: the parameters that are prefetched for the next states while these states are computed.
    """

    def __init__(self, program: Program, dtype: np.dtype, lanes: int, fused: bool, register: int = 1) -> None:
        """Args: the program, number format and lanes; whether there is a fused multiply-add; numbers in a register."""
        self.program, self.dtype, self.lanes, self.fused = program, dtype, lanes, fused
        self.register = register
        self.scalar = "double" if dtype == np.float64 else "float"
        self.vector = self.scalar if lanes == 1 else f"<{lanes} x {self.scalar}>"
        self.mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.align = lanes * dtype.itemsize if lanes > 1 else 1  # a single state is computed in the caller's arrays
        self.functions, self._rows = Functions(self), RowFunctions(self)
        self._kernels: dict[tuple[str, bool], str] = {}
        self._parts: dict[tuple[str, bool], str] = {}
        self._defined: list[str] = []
        self.largest, self.fetched = 0, set[int]()
        places = {b: (f"%b{i}", 0) for i, b in enumerate((*program.inputs, *program.outputs))}
        self.pointers = [*(name for name, _ in places.values()), "%scratch"]
        offset = 0
        for buffer in program.scratch:
            places[buffer], offset = ("%scratch", offset), offset + buffer.size
        self.workspace = offset  # behind the scratch
        steps = Steps(self, places)
        steps.run(program.steps)
        self._define_part("@program", steps.lines())
        functions = [*self.functions.declarations(), *self.functions.definitions()]
        self.text, self.library = "\n".join([*functions, *self._rows.text(), *self._defined]), self._rows.library()
        self.tables = steps.tables

    def kernel(self, kernel: Kernel, masked: bool) -> str:
        """The name of a kernel's function, which is rendered on first use."""
        key = (kernel.text, masked)
        if key not in self._kernels:
            self._kernels[key] = f"@k{len(self._kernels)}"
            text = self._kernel_text(self._kernels[key], kernel, masked)
            self._defined.append(text)
            self.largest = max(self.largest, text.count("\n"))
        return self._kernels[key]

    def part(self, lines: Sequence[str], kernels: int, masked: bool) -> str:
        """The name of a function with this body; pointers, tables, kernels and a mask are its parameters."""
        key = ("\n".join(lines), masked)
        if key not in self._parts:
            self._parts[key] = f"@part{len(self._parts)}"
            parameters = [f"ptr %k{i}" for i in range(kernels)] + ([f"{self.mask} %mask"] if masked else [])
            self._define_part(self._parts[key], lines, parameters)
        return self._parts[key]

    def _define_part(self, name: str, lines: Sequence[str], further: Sequence[str] = ()) -> None:
        parameters = [*(f"ptr noalias {pointer}" for pointer in self.pointers), "ptr noalias readonly %tables"]
        signature = f"internal fastcc void {name}({', '.join([*parameters, *further])})"
        self._defined.append(function(signature, [*lines, "ret void"]))

    def _kernel_text(self, name: str, kernel: Kernel, masked: bool) -> str:
        passes = ["spare_sines", "share_reciprocals", *(["fuse_multiply_add"] if self.fused else [])]
        outputs = rewrite(kernel.outputs, passes, kernel.nodes)
        lines: list[str] = []

        def load(node: Node) -> str:
            x = f"%l{len(lines)}"
            if node in kernel.constants:
                one = x if self.lanes == 1 else f"{x}s"
                lines.append(f"{x}p = getelementptr {self.scalar}, ptr %c, i64 {kernel.constants[node]}")
                lines.append(f"{one} = load {self.scalar}, ptr {x}p")
                if self.lanes > 1:  # the same in every lane
                    lines.append(f"{x}i = insertelement {self.vector} poison, {self.scalar} {one}, i64 0")
                    everywhere = f"<{self.lanes} x i32> zeroinitializer"
                    lines.append(f"{x} = shufflevector {self.vector} {x}i, {self.vector} poison, {everywhere}")
            else:
                at = kernel.loads[node]
                lines.append(f"{x}p = getelementptr {self.vector}, ptr %p{at.pointer}, i64 {at.offset}")
                lines.append(f"{x} = load {self.vector}, ptr {x}p, align {self.align}")
            return x

        def store(i: int, x: str) -> None:
            at = kernel.stores[i]
            lines.append(f"%s{i}p = getelementptr {self.vector}, ptr %p{at.pointer}, i64 {at.offset}")
            if masked:
                lines.append(f"%s{i}o = load {self.vector}, ptr %s{i}p, align {self.align}")
                lines.append(f"%s{i} = select {self.mask} %mask, {self.vector} {x}, {self.vector} %s{i}o")
                x = f"%s{i}"
            lines.append(f"store {self.vector} {x}, ptr %s{i}p, align {self.align}")

        loaded = {at: node for node, at in kernel.loads.items()}
        overwritten, tables = (
            [loaded.get(at) for at in kernel.stores],
            {t: f"%t{i}" for i, t in enumerate(kernel.tables)},
        )
        rows = KernelRows(self._rows, kernel, lines)
        moved = rows.stored(outputs)
        value = self.straight_line(outputs, load, lines, store, overwritten, tables, rows, moved)
        rows.store(outputs, moved, masked)
        lines.append(f"ret {self.mask} {value[outputs[0]]}" if kernel.is_condition else "ret void")
        parameters = [f"ptr noalias %p{i}" for i in range(kernel.pointers)] + ["ptr noalias readonly %c"]
        parameters += [f"ptr noalias readonly {table}" for table in tables.values()]
        parameters += ["ptr noalias %w"] if kernel.workspace else []
        parameters += [f"{self.mask} %mask"] if masked else []
        result = self.mask if kernel.is_condition else "void"
        # Aligned to a cache line, as else the speed of short kernels would vary by some percent with where they lie.
        signature = f"internal fastcc {result} {name}({', '.join(parameters)})"
        return function(signature, [f"; {kernel.name}", *_in_blocks(lines)], "align 64")

    def straight_line(
        self,
        outputs: Sequence[Node],
        leaf: Callable[[Node], str],
        lines: list[str],
        store: Callable[[int, str], None] | None = None,
        overwritten: Sequence[Node | None] = (),
        tables: Mapping[Table, str] | None = None,
        rows: KernelRows | None = None,
        moved: Mapping[int, Sequence[int]] | None = None,
    ) -> dict[Node, str]:
        """Appends the operations that the outputs depend on; returns the text of each node's value.

        Args:
            leaf: appends the load of a symbol and returns its name. It is called when a symbol is first needed, and
                again if it has not been used for long.
            lines: the text so far.
            store: appends the store of an output, given its number and its value's name, as early as possible.
            overwritten: for each store the symbol that cannot be loaded any more after it.
            tables: the names of lookup tables.
            rows: runs operations on rows.
            moved: the outputs that `rows` stores, at the end.
        """
        order = list(topological(outputs))
        due = _due(order, outputs, overwritten)
        value: dict[Node, str] = {}
        used: dict[Node, int] = {}
        called: set[str] = set()
        waiting = {i for numbers in (moved or {}).values() for i in numbers}
        parts: dict[Node, list[int]] = {}  # the numbers that are wanted of operations on rows
        for node in order if rows is not None else ():
            if node.op == "part":
                parts.setdefault(node.args[0], []).append(node.value)  # type: ignore[arg-type]

        def text(node: Node, now: int, again: bool = True) -> str:
            if node.op in ("symbol", "part"):
                if node not in used or (again and now - used[node] > _FAR):
                    value[node] = leaf(node) if node.op == "symbol" else part(node)
                used[node] = now
            return value[node]

        def part(node: Node) -> str:
            assert rows is not None
            x = f"%l{len(lines)}"
            rows.load(node, x)
            return x

        for node in outputs:
            if node.op == "symbol":  # which may be overwritten
                text(node, 0)
        for now, node in enumerate(order):
            if node.op == "constant":
                value[node] = self.literal(node.value)  # type: ignore[arg-type]
            elif node.op == "rows":
                assert rows is not None
                rows.emit(node, parts.get(node, ()), lambda arg, now=now: text(arg, now))
            elif node.op not in ("symbol", "part"):
                again = node.op not in ("sin", "cos")  # which share a call, by the name of their argument
                arguments = [text(arg, now, again) for arg in node.args]
                arguments += [] if node.table is None else [(tables or {})[node.table]]
                value[node] = f"%n{now}"
                self.functions.emit(node.op, value[node], arguments, lines, called)
            if store is not None:
                for i in due.get(now, ()):
                    if i not in waiting:
                        store(i, text(outputs[i], now, again=False))
        return value

    def literal(self, number: float | bool) -> str:
        """A constant in every lane."""
        if isinstance(number, bool):
            one, kind = ("true" if number else "false"), "i1"
        else:
            # LLVM writes a float, too, as the bits of the double that it equals.
            rounded = float(as_type(np.array(number), self.dtype))
            one, kind = f"0x{struct.pack('>d', rounded).hex().upper()}", self.scalar
        return one if self.lanes == 1 else f"<{', '.join([f'{kind} {one}'] * self.lanes)}>"

    def any_lane(self, mask: str, name: str, emit: Callable[[str], None]) -> str:
        """The name of a truth value: whether the mask holds in any lane."""
        if self.lanes == 1:
            return mask
        emit(f"{name} = call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.mask} {mask})")
        return name


def _in_blocks(lines: list[str]) -> list[str]:
    """Straight-line code, cut into blocks if it is very long: compile time grows faster than the size of a block."""
    if len(lines) <= _LONG:
        return lines
    cut = []
    for i in range(0, len(lines), _BLOCK):
        cut += [*([f"br label %block{i}", f"block{i}:"] if i else []), *lines[i : i + _BLOCK]]
    return cut


def _due(order: Sequence[Node], outputs: Sequence[Node], overwritten: Sequence[Node | None]) -> dict[int, list[int]]:
    """By turn, the outputs that can be stored after it: they are computed, and what they overwrite is not needed."""
    turn = {node: now for now, node in enumerate(order)}
    last = {arg: now for now, node in enumerate(order) for arg in node.args}
    due: dict[int, list[int]] = {}
    for i, old in enumerate(overwritten):
        due.setdefault(max(turn[outputs[i]], last.get(old, 0) if old is not None else 0), []).append(i)
    return due
