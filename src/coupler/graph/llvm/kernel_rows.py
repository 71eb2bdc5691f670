"""The operations on rows of a kernel as LLVM IR: where their memories are, and how numbers get there and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from coupler.graph.expr import Node
from coupler.graph.kernel import Kernel
from coupler.graph.llvm.row_table import FIELDS, instructions
from coupler.graph.llvm.rows import RowFunctions
from coupler.grouping import grouped
from coupler.rows import CLEAR, RowCode

_FEW = 8  # results that are stored one by one
_SHORT = 8  # a run of numbers that are moved one by one: to begin another run takes as long


class KernelRows:
    """The operations on rows of one kernel: where their memories are in its workspace %w, and how numbers get there."""

    def __init__(self, functions: RowFunctions, kernel: Kernel, lines: list[str]) -> None:
        self._functions, self._kernel, self._lines = functions, kernel, lines
        self._area: dict[Node, int] = {}
        self._size = 0

    def place(self, part: Node) -> int:
        """The index in the workspace of one number of an operation's memory."""
        assert isinstance(part.value, int)
        return self._area[part.args[0]] + part.value

    def load(self, part: Node, x: str) -> None:
        r = self._functions.r
        self._lines.append(f"{x}p = getelementptr {r.vector}, ptr %w, i64 {self.place(part)}")
        self._lines.append(f"{x} = load {r.vector}, ptr {x}p, align {r.align}")

    def emit(self, node: Node, wanted: Iterable[int], text: Callable[[Node], str]) -> None:
        """Fills the memory of a node, and runs its operations, for some numbers of it."""
        r, code = self._functions.r, node.table
        assert isinstance(code, RowCode)
        area = self._area[node] = self._size
        self._size += code.size
        cleared, moved, table = instructions(code, wanted)
        if cleared:
            self._run(area, np.array([[CLEAR, at, width, *[0] * (FIELDS - 3)] for at, width in cleared]))
        moves: dict[str, list[tuple[int, int]]] = {}
        for i, place in moved:
            arg = node.args[i]
            if arg.op == "part":
                moves.setdefault("%w", []).append((self.place(arg), area + place))
            elif arg in self._kernel.loads:
                at = self._kernel.loads[arg]
                moves.setdefault(f"%p{at.pointer}", []).append((at.offset, area + place))
            else:
                value, x = text(arg), f"%w{area + place}"
                self._lines.append(f"{x}p = getelementptr {r.vector}, ptr %w, i64 {area + place}")
                self._lines.append(f"store {r.vector} {value}, ptr {x}p, align {r.align}")
        for source, pairs in moves.items():
            self._move(source, "%w", pairs)
        self._run(area, table)

    def _run(self, area: int, operations: np.ndarray) -> None:
        x = f"%run{len(self._lines)}"
        self._lines.append(f"{x} = getelementptr {self._functions.r.vector}, ptr %w, i64 {area}")
        table, run = self._functions.table(operations), self._functions.run()
        self._lines.append(f"call fastcc void {run}(ptr {x}, ptr {table}, i64 {len(operations)})")

    def stored(self, outputs: Sequence[Node]) -> dict[int, list[int]]:
        """Numbers of the outputs that one copy can store all at once, by the pointer they are stored to."""
        parts = [i for i, node in enumerate(outputs) if node.op == "part"]
        by_pointer = grouped(parts, lambda i: self._kernel.stores[i].pointer)
        return {pointer: numbers for pointer, numbers in by_pointer.items() if len(numbers) > _FEW}

    def store(self, outputs: Sequence[Node], moved: dict[int, list[int]], masked: bool) -> None:
        """Copies the outputs that `stored` found to where they belong."""
        for pointer, numbers in moved.items():
            pairs = [(self.place(outputs[i]), self._kernel.stores[i].offset) for i in numbers]
            self._move("%w", f"%p{pointer}", pairs, masked)

    def _move(self, source: str, target: str, pairs: Iterable[tuple[int, int]], masked: bool = False) -> None:
        runs: list[list[int]] = []
        for first, to in sorted(pairs, key=lambda pair: pair[1]):
            if runs and runs[-1][0] + runs[-1][2] == first and runs[-1][1] + runs[-1][2] == to:
                runs[-1][2] += 1
            else:
                runs.append([first, to, 1])
        single = [[first + i, to + i] for first, to, width in runs if width < _SHORT for i in range(width)]
        mask = f", {self._functions.r.mask} %mask" if masked else ""
        for moves in (single, [run for run in runs if run[2] >= _SHORT]):
            if moves:
                table = self._functions.table(np.array(moves))
                move = self._functions.move(moves is single, masked)
                arguments = f"ptr {target}, ptr {source}, ptr {table}, i64 {len(moves)}{mask}"
                self._lines.append(f"call fastcc void {move}({arguments})")
