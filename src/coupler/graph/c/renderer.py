"""Renders a program as C99; see __init__.py for what the files are like."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from coupler.graph.c.expressions import ATOM, Expressions
from coupler.graph.c.names import RESERVED, Names
from coupler.graph.c.source import WIDTH, Source, function, wrapped
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node
from coupler.graph.kernel import Case, Kernel
from coupler.graph.program import Loop, Program, Repeat, Step
from coupler.graph.rewrite import rewrite
from coupler.graph.table import Table
from coupler.graph.walk import topological
from coupler.graph.window import Buffer
from coupler.rows import RowCode

_LONGEST = 50  # characters of an expression that is still written inside another one

# Runs operations on rows; coupler.rows defines the codes.
_ROWS = """for (int i = 0; i < count; i++) {
    const int32_t t = code[i][1], s = code[i][2], f = code[i][3], w = code[i][4];
    const NUMBER x = code[i][0] >= 5 ? 0 : m[f];
    NUMBER l;
    switch (code[i][0]) {
    case 0: for (int c = 0; c < w; c++) m[t + c] = 0; break;
    case 1: for (int c = 0; c < w; c++) m[t + c] = m[s + c]; break;
    case 2: for (int c = 0; c < w; c++) m[t + c] += x * m[s + c]; break;
    case 3: for (int c = 0; c < w; c++) m[t + c] -= x * m[s + c]; break;
    case 4: for (int c = 0; c < w; c++) m[t + c] = x * m[s + c]; break;
    case 5: m[t] = 1 / m[s]; break;
    case 7: for (int c = 0; c < w; c++) m[t] += m[f + c] * m[s + c]; break;
    default:
        l = SQRT(m[s]);
        l = m[t] < 0 ? -l : l;
        m[t] += l;
        m[w] = l * m[t];
        m[f] = m[w] == 0 ? 0 : 1 / m[w];
        m[w] = -l;
    }
}"""


class Renderer:
    """Renders one program in one number format."""

    def __init__(self, program: Program, dtype: np.dtype, name: str) -> None:
        if dtype not in (np.float64, np.float32):
            raise GraphError(f"programs are rendered in float64 or float32, not {dtype}")
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or name in RESERVED:
            raise GraphError(f"a C function cannot be called {name!r}: render the program under another name")
        self.program, self.name, self.dtype = program, name, dtype
        self._definitions: dict[str, str] = {}  # helpers, kernels and tables by name, in order of first use
        self._expressions = Expressions(dtype, self._definitions)
        self.number = self._expressions.number
        self.guard, self.macro = f"{name.upper()}_H", f"{name.upper()}_WORK"
        self._names = Names(name, self.guard, self.macro, "minimum", "maximum", "looked_up", "run_rows")
        self._places = {buffer: self._names.new(buffer.name) for buffer in program.buffers}
        self._work, self._row, self._turn = map(self._names.new, ("work", "row", "turn"))
        self._used: set[Buffer] = set()
        self._functions: dict[str, tuple[str, list[int], bool]] = {}  # by the kernel's text; see _kernel
        self._lookups: dict[Table, str] = {}
        self._row_codes: dict[RowCode, str] = {}

    def source(self) -> Source:
        steps = self._steps(self.program.steps)
        arguments = (*self.program.inputs, *self.program.outputs)
        lines = [f"(void){self._places[buffer]};" for buffer in arguments if buffer not in self._used]
        size = max((case.kernel.workspace for case in self.program.cases()), default=0)  # which comes first
        for buffer in self.program.scratch:
            if buffer in self._used:
                lines.append(f"{self.number} *const {self._places[buffer]} = {self._work} + {size};")
                size += buffer.size
        parameters = list(map(self._parameter, arguments))
        parameters += [f"{self.number} {self._work}[{self.macro}]"] if size else []
        prototype = f"void {self.name}({', '.join(parameters) or 'void'})"
        includes = f'/* See {self.name}.h. */\n#include "{self.name}.h"\n\n#include <math.h>\n#include <stdint.h>\n'
        source = [includes, *self._definitions.values(), function(prototype, lines + steps)]
        return Source(self.name, self._header(prototype, size), "\n".join(source))

    def _parameter(self, buffer: Buffer) -> str:
        kind, name = f"const {self.number}" if buffer.role == "input" else self.number, self._places[buffer]
        return f"{kind} {name}[{buffer.size}]" if buffer.size else f"{kind} *{name}"  # C has no arrays of size 0

    def _header(self, prototype: str, size: int) -> str:
        def sizes(role: str) -> str:
            return ", ".join(f"{place}[{b.size}]" for b, place in self._places.items() if b.role == role) or "none"

        text = [
            f"{self.name}: the program {self.program.name!r} for one state a call, in {self.number} precision.",
            "Units are not known here: they are those in which the program and its constants were written down.",
            f"Inputs: {sizes('input')}. Outputs: {sizes('output')}. Numbers of scratch: {size or 'none'}.",
            "No array may overlap an output or the scratch, whose contents mean nothing before and after a call. An "
            "array of no elements may be NULL. Nothing is allocated and no state is kept: threads may call at the same "
            "time, each with outputs and scratch of its own. Link with libm.",
        ]
        comment = [line for part in text for line in textwrap.wrap(part, WIDTH, subsequent_indent="  ")]
        lines = ["/* " + "\n * ".join(comment), " */", f"#ifndef {self.guard}", f"#define {self.guard}", ""]
        lines += [f"#define {self.macro} {size} /* numbers of scratch space */", ""] if size else []
        lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", *wrapped(f"{prototype};"), ""]
        return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])

    def _steps(self, steps: Sequence[Step]) -> list[str]:
        lines: list[str] = []
        for step in steps:
            if isinstance(step, Loop):
                lines += self._loop(step)
                continue
            if not isinstance(step, Repeat):
                continue  # flags are asked row by row: lists have no part in results
            i = self._names.new("i")
            body = [f"if ({self._call(step.until)}) {{", "    break;", "}", *self._steps(step.body)]
            lines += [f"for (int64_t {i} = 0; {i} < {step.at_most}; {i}++) {{", *(f"    {line}" for line in body), "}"]
        return lines

    def _loop(self, loop: Loop) -> list[str]:
        # What has no rows would need empty tables, and what stores nothing does nothing.
        cases = {i: case for i, case in enumerate(loop.cases) if case.rows and case.kernel.stores}
        if not cases or (len(loop.cases) == 1 and cases[0].rows == 1):
            return [f"{self._call(case)};" for case in cases.values()]
        turn, row = self._turn, self._row
        if len(loop.cases) == 1:
            call = self._call(cases[0], row)
            return [f"for (int {row} = 0; {row} < {cases[0].rows}; {row}++) {{", f"    {call};", "}"]
        next_row = {i: count() for i in cases}
        order = np.array([(i, next(next_row[i])) for i in loop.order.tolist() if i in cases])
        table = self._table("order", order)
        lines = [f"for (int {turn} = 0; {turn} < {len(order)}; {turn}++) {{"]
        lines += [f"    const uint32_t {row} = {table}[{turn}][1];", f"    switch ({table}[{turn}][0]) {{"]
        for i, case in cases.items():
            lines += [f"    case {i}:", f"        {self._call(case, row)};", "        break;"]
        return [*lines, "    }", "}"]

    def _call(self, case: Case, row: str = "") -> str:
        """The call of a case's kernel for the row, or for its only one, whose bases are then written as numbers."""
        name, pointers, has_constants = self._kernel(case.kernel)
        stem = name.removeprefix("kernel_")
        buffers = [case.buffers[pointer] for pointer in pointers]
        bases = case.bases[:, pointers]
        self._used.update(buffers)
        if row:
            table = self._table(f"bases_{stem}", bases)
            arguments = [f"{self._places[buffer]} + {table}[{row}][{j}]" for j, buffer in enumerate(buffers)]
        else:
            arguments = [f"{self._places[buffer]} + {base}" for buffer, base in zip(buffers, bases[0], strict=True)]
        if has_constants:
            arguments.append(f"{self._table(f'constants_{stem}', case.constants)}[{row or 0}]")
        for table in case.kernel.tables:
            if table not in self._lookups:
                self._lookups[table] = self._table("table", table.packed(self.dtype)[None])
            arguments.append(f"{self._lookups[table]}[0]")
        arguments += [self._work] if case.kernel.workspace else []
        call = f"{name}({', '.join(arguments)})"
        asked = []
        for flags in case.flags:
            self._used.add(flags.buffer)
            table = self._table(f"flags_{stem}", flags.elements[:, None])
            asked.append(f"{self._places[flags.buffer]}[{table}[{row or 0}][0]] != 0")
        return f"if ({' && '.join(asked)}) {call}" if asked else call

    def _table(self, wish: str, values: np.ndarray, whole: str = "") -> str:
        """The name of a new table of these values; whole numbers get the smallest type that holds them, or this."""
        name, kind, text = self._names.new(wish), self.number, self._expressions.literal
        if values.dtype.kind == "i":
            smallest = np.result_type(*map(np.min_scalar_type, (values.min(), values.max())))
            kind, text = whole or f"{smallest}_t", str
        rows = [line for row in values.tolist() for line in wrapped(f"    {{{', '.join(map(text, row))}}},")]
        head = f"static const {kind} {name}[{values.shape[0]}][{values.shape[1]}] = {{"
        self._definitions[name] = "\n".join([head, *rows, "};", ""])
        return name

    def _kernel(self, kernel: Kernel) -> tuple[str, list[int], bool]:
        """The kernel's function: its name, which pointers it takes, whether it takes a row of constants."""
        if known := self._functions.get(kernel.text):
            return known
        outputs = rewrite(kernel.outputs, ["spare_sines", "share_reciprocals"], kernel.nodes)
        needed = set(topological(outputs))  # a graph that is folded anew may need less
        written = {at.pointer for at in kernel.stores}
        pointers = sorted(written | {at.pointer for node, at in kernel.loads.items() if node in needed})
        has_constants = bool(needed & kernel.constants.keys())
        name = self._names.new(f"kernel_{kernel.name}")
        parameters = [f"{'' if i in written else 'const '}{self.number} *restrict p{i}" for i in pointers]
        parameters += [f"const {self.number} *restrict c"] if has_constants else []
        parameters += [f"const {self.number} *restrict t{i}" for i in range(len(kernel.tables))]
        parameters += [f"{self.number} *restrict w"] if kernel.workspace else []
        head = f"static {'void' if kernel.stores else 'int'} {name}({', '.join(parameters) or 'void'})"
        comment = f"/* {re.sub('[/*]', '', kernel.name)} */\n"
        self._definitions[name] = comment + function(head, self._statements(kernel, outputs))
        return self._functions.setdefault(kernel.text, (name, pointers, has_constants))

    def _statements(self, kernel: Kernel, outputs: Sequence[Node]) -> Iterator[str]:
        """Loads, operations and stores. What is needed once is written where it is needed, unless it is long."""
        nodes = topological(outputs)
        users = Counter([*outputs, *(arg for node in nodes for arg in node.args)])
        value = {node: (f"c[{column}]", ATOM) for node, column in kernel.constants.items()}
        stored, names = set(kernel.stores), (f"n{i}" for i in count())
        areas, size = dict[Node, int](), 0  # of operations on rows, in the workspace
        for node in nodes:
            named = False
            if node.op == "rows":
                areas[node], size = size, size + node.table.size
                yield from (f"w[{areas[node] + i}] = {value[arg][0]};" for i, arg in enumerate(node.args))
                yield self._run_rows(node.table, areas[node])
                continue
            if node.op == "part":
                assert isinstance(node.value, int)
                value[node] = f"w[{areas[node.args[0]] + node.value}]", ATOM
                continue
            if node.op == "constant":
                text = str(int(node.value)) if isinstance(node.value, bool) else self._expressions.literal(node.value)
                value[node] = text, ATOM  # a minus binds tightly enough, as that of a constant is folded
            elif node in kernel.loads:
                at = kernel.loads[node]
                value[node] = f"p{at.pointer}[{at.offset}]", ATOM
                named = at in stored  # read now, for a store changes it
            elif node.args:
                table = [] if node.table is None else [(f"t{kernel.tables.index(node.table)}", ATOM)]
                value[node] = self._expressions.expression(node.op, [*table, *(value[arg] for arg in node.args)])
                named = users[node] > 1 or len(value[node][0]) > _LONGEST
            if named:
                name = next(names)
                yield f"const {'int' if node.logical else self.number} {name} = {value[node][0]};"
                value[node] = name, ATOM
        targets = [f"p{at.pointer}[{at.offset}] =" for at in kernel.stores] or ["return"]
        yield from (f"{target} {value[node][0]};" for target, node in zip(targets, outputs, strict=True))

    def _run_rows(self, code: RowCode, area: int) -> str:
        """The statement that runs operations on rows."""
        if "run_rows" not in self._definitions:
            head = f"static void run_rows({self.number} *m, const int32_t (*code)[5], int count)"
            self._definitions["run_rows"] = function(
                head,
                _ROWS.replace("NUMBER", self.number).replace("SQRT", f"sqrt{self._expressions.suffix}").splitlines(),
            )
        if code not in self._row_codes:
            self._row_codes[code] = self._table("rows", code.code, "int32_t")
        return f"run_rows(w + {area}, {self._row_codes[code]}, {len(code.code)});"
