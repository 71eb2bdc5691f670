"""Programs as C99: one source file and one header, for a controller.

The file allocates nothing, keeps no state between calls and needs no library but libm. A kernel becomes a static
function of pointers, a table a static array of constants, a program the one public function, for one state a call:

    void forward_dynamics(const double q[12], const double qd[12], double qdd[12], double work[FORWARD_DYNAMICS_WORK]);

Products and sums are not fused here, as fma() is a slow library call where the processor lacks it.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from coupler.files import whole_file
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node
from coupler.graph.kernel import Case, Kernel
from coupler.graph.program import Listing, Loop, Program, Step
from coupler.graph.rewrite import rewrite
from coupler.graph.table import Table
from coupler.graph.walk import topological
from coupler.graph.window import Buffer
from coupler.rows import RowCode

_WIDTH, _LONGEST = 110, 50  # characters of a line, and of an expression that is still written inside another one

# How each operation is written, and how tightly that binds. `!x` is put among the comparisons: it meets no arithmetic,
# and compilers warn of it beside == without parentheses.
_CHOICE, _LOGIC, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(7)
_BY_LEVEL = {
    _CHOICE: {"select": "{} ? {} : {}"},
    _LOGIC: {"and": "{} && {}", "or": "{} || {}"},
    _COMPARE: {"lt": "{} < {}", "le": "{} <= {}", "eq": "{} == {}", "not": "!{}"},
    _SUM: {"add": "{} + {}", "sub": "{} - {}"},
    _PRODUCT: {"mul": "{} * {}", "div": "{} / {}"},
    _UNARY: {"neg": "-{}"},
    _ATOM: {"fma": "fma{f}({}, {}, {})", "power_of_two": "ldexp{f}(1.0{f}, (int)({}))"}
    | {"abs": "fabs{f}({})", "round": "rint{f}({})", "exponent": "logb{f}({})"}
    | {op: f"{op}{{f}}({{}})" for op in ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log")}
    | {op: f"{op}{{f}}({{}}, {{}})" for op in ("atan2", "copysign")}
    | {"min": "minimum({}, {})", "max": "maximum({}, {})", "lookup": "looked_up({}, {})"},
}
_FORMS = {op: (form, level) for level, forms in _BY_LEVEL.items() for op, form in forms.items()}
# Not fmin and fmax: those drop a NaN, which must win here. Of two equal numbers (zeros of either sign) y is taken.
_HELPERS = {"min": ("minimum", "<"), "max": ("maximum", ">")}

# Words that no name of ours may be: those of C, of C++ for the header's sake, and functions that compilers and linkers
# know. Those of <math.h> exist for float (f) and long double (l), too.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast
    continue decltype default delete do double double_t dynamic_cast else enum explicit export extern false float
    float_t for friend goto if inline int int8_t int16_t int32_t int64_t long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast restrict return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    typeof uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile wchar_t while xor xor_eq abort
    abs calloc div errno exit free index labs linux main malloc memcpy memset printf puts rand realloc signal strlen
    system time unix HUGE_VAL I INFINITY NAN NULL"""
_MATH = """
    acos acosh asin asinh atan atan2 atanh cabs carg cbrt ceil cimag conj copysign cos cosh cproj creal drem erf erfc
    exp exp10 exp2 expm1 fabs fdim finite floor fma fmax fmin fmod fpclassify frexp gamma hypot ilogb isfinite isgreater
    isinf isless isnan isnormal j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
    nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalb scalbln scalbn signbit significand sin
    sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn"""
_RESERVED = {*_WORDS.split(), *(name + suffix for name in _MATH.split() for suffix in ("", "f", "l"))}


# Operations on rows; see coupler.rows for what each number means.
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


@dataclass(frozen=True)
class Source:
    """A rendered program: the name of its function and files, the text of <name>.h, and that of <name>.c."""

    name: str
    header: str
    source: str

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Writes <name>.h and <name>.c into a folder, each completely or not at all.

        Args:
            folder: where they go; it must exist.

        Returns:
            The paths of the header and of the source.

        Raises:
            GraphError: if there is no such folder, or it cannot be written to.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise GraphError(f"{folder}: there is no such folder; make it first")
        paths = folder / f"{self.name}.h", folder / f"{self.name}.c"
        for path, text in zip(paths, (self.header, self.source), strict=True):
            try:
                with whole_file(path) as file:
                    file.write(text.encode())
            except OSError as error:
                raise GraphError(f"{path}: it cannot be written: {error.strerror or error}") from None
        return paths


def render(program: Program, dtype: Any = np.float64, name: str | None = None) -> Source:
    """The program in C99, in float64 (double) or float32 (float), under its own name if no other is given."""
    return _Renderer(program, np.dtype(dtype), program.name if name is None else name).source()


class _Renderer:
    def __init__(self, program: Program, dtype: np.dtype, name: str) -> None:
        if dtype not in (np.float64, np.float32):
            raise GraphError(f"programs are rendered in float64 or float32, not {dtype}")
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or name in _RESERVED:
            raise GraphError(f"a C function cannot be called {name!r}: render the program under another name")
        self.program, self.name, self.round_to = program, name, dtype.type
        self.number, self.suffix = ("double", "") if dtype == np.float64 else ("float", "f")
        self.guard, self.macro = f"{name.upper()}_H", f"{name.upper()}_WORK"
        self._taken = {*_RESERVED, name, self.guard, self.macro, "minimum", "maximum", "looked_up", "run_rows"}
        self._places = {buffer: self._new_name(buffer.name) for buffer in program.buffers}
        self._work, self._row, self._turn = map(self._new_name, ("work", "row", "turn"))
        self._used: set[Buffer] = set()
        self._functions: dict[str, tuple[str, list[int], bool]] = {}  # by the kernel's text; see _kernel
        self._definitions: dict[str, str] = {}  # helpers, kernels and tables by name, in order of first use
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
        source = [includes, *self._definitions.values(), _function(prototype, lines + steps)]
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
        comment = [line for part in text for line in textwrap.wrap(part, _WIDTH, subsequent_indent="  ")]
        lines = ["/* " + "\n * ".join(comment), " */", f"#ifndef {self.guard}", f"#define {self.guard}", ""]
        lines += [f"#define {self.macro} {size} /* numbers of scratch space */", ""] if size else []
        lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", *_wrapped(f"{prototype};"), ""]
        return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])

    def _steps(self, steps: Sequence[Step]) -> list[str]:
        lines: list[str] = []
        for step in steps:
            if isinstance(step, Loop):
                lines += self._loop(step)
                continue
            if isinstance(step, Listing):  # flags are asked row by row: lists have no part in results
                lines += self._forget_unowned(step) if step.owners else []
                continue
            i = self._new_name("i")
            body = [f"if ({self._call(step.until)}) {{", "    break;", "}", *self._steps(step.body)]
            lines += [f"for (int64_t {i} = 0; {i} < {step.at_most}; {i}++) {{", *(f"    {line}" for line in body), "}"]
        return lines

    def _forget_unowned(self, step: Listing) -> list[str]:
        """Flags become zero whose owners are."""
        assert step.owners is not None
        flags, owners, row = self._places[step.flags], self._places[step.owners.flags], self._row
        self._used.update((step.flags, step.owners.flags))
        table = self._table(f"owners_of_{step.flags.name}", step.owners.of_flags[:, None])
        test = f"if ({owners}[{table}[{row}][0]] == 0) {flags}[{row}] = 0;"
        return [f"for (int {row} = 0; {row} < {step.flags.size}; {row}++) {{", f"    {test}", "}"]

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
                self._lookups[table] = self._table("table", table.packed(np.dtype(self.round_to))[None])
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
        name, kind, text = self._new_name(wish), self.number, self._literal
        if values.dtype.kind == "i":
            smallest = np.result_type(*map(np.min_scalar_type, (values.min(), values.max())))
            kind, text = whole or f"{smallest}_t", str
        rows = [line for row in values.tolist() for line in _wrapped(f"    {{{', '.join(map(text, row))}}},")]
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
        name = self._new_name(f"kernel_{kernel.name}")
        parameters = [f"{'' if i in written else 'const '}{self.number} *restrict p{i}" for i in pointers]
        parameters += [f"const {self.number} *restrict c"] if has_constants else []
        parameters += [f"const {self.number} *restrict t{i}" for i in range(len(kernel.tables))]
        parameters += [f"{self.number} *restrict w"] if kernel.workspace else []
        head = f"static {'void' if kernel.stores else 'int'} {name}({', '.join(parameters) or 'void'})"
        comment = f"/* {re.sub('[/*]', '', kernel.name)} */\n"
        self._definitions[name] = comment + _function(head, self._statements(kernel, outputs))
        return self._functions.setdefault(kernel.text, (name, pointers, has_constants))

    def _statements(self, kernel: Kernel, outputs: Sequence[Node]) -> Iterator[str]:
        """Loads, operations and stores. What is needed once is written where it is needed, unless it is long."""
        nodes = topological(outputs)
        users = Counter([*outputs, *(arg for node in nodes for arg in node.args)])
        value = {node: (f"c[{column}]", _ATOM) for node, column in kernel.constants.items()}
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
                value[node] = f"w[{areas[node.args[0]] + node.value}]", _ATOM
                continue
            if node.op == "constant":
                text = str(int(node.value)) if isinstance(node.value, bool) else self._literal(node.value)
                value[node] = text, _ATOM  # a minus binds tightly enough, as that of a constant is folded
            elif node in kernel.loads:
                at = kernel.loads[node]
                value[node] = f"p{at.pointer}[{at.offset}]", _ATOM
                named = at in stored  # read now, for a store changes it
            elif node.args:
                table = [] if node.table is None else [(f"t{kernel.tables.index(node.table)}", _ATOM)]
                value[node] = self._expression(node.op, [*table, *(value[arg] for arg in node.args)])
                named = users[node] > 1 or len(value[node][0]) > _LONGEST
            if named:
                name = next(names)
                yield f"const {'int' if node.logical else self.number} {name} = {value[node][0]};"
                value[node] = name, _ATOM
        targets = [f"p{at.pointer}[{at.offset}] =" for at in kernel.stores] or ["return"]
        yield from (f"{target} {value[node][0]};" for target, node in zip(targets, outputs, strict=True))

    def _run_rows(self, code: RowCode, area: int) -> str:
        """The statement that runs operations on rows."""
        if "run_rows" not in self._definitions:
            head = f"static void run_rows({self.number} *m, const int32_t (*code)[5], int count)"
            self._definitions["run_rows"] = _function(
                head, _ROWS.replace("NUMBER", self.number).replace("SQRT", f"sqrt{self.suffix}").splitlines()
            )
        if code not in self._row_codes:
            self._row_codes[code] = self._table("rows", code.code, "int32_t")
        return f"run_rows(w + {area}, {self._row_codes[code]}, {len(code.code)});"

    def _expression(self, op: str, args: Sequence[tuple[str, int]]) -> tuple[str, int]:
        """The operation on arguments of which each comes with how tightly it binds; the result comes likewise."""
        if op not in _FORMS:
            raise GraphError(f"the C back end cannot render operation {op!r}")
        if op in _HELPERS:
            name, before = _HELPERS[op]
            head = f"static inline {self.number} {name}({self.number} x, {self.number} y)"
            self._definitions[name] = _function(head, [f"return x {before} y || x != x ? x : y;"])
        if op == "lookup":  # the first number of a table is its last place
            head = f"static inline {self.number} looked_up(const {self.number} *t, {self.number} x)"
            place = "x > 0 ? (x < t[0] ? x : t[0]) : 0"  # NaN is 0
            self._definitions["looked_up"] = _function(head, [f"return t[1 + (int32_t)({place})];"])
        form, level = _FORMS[op]
        # A call takes anything. Sums and products group from the left by themselves.
        least = [_CHOICE if level == _ATOM else level + 1] * len(args)
        least[0] -= level in (_PRODUCT, _SUM)
        texts = [text if binds >= need else f"({text})" for (text, binds), need in zip(args, least, strict=True)]
        return form.format(*texts, f=self.suffix), level

    def _literal(self, value: Any) -> str:
        """A constant: the shortest text that is read back as exactly this number."""
        with np.errstate(over="ignore"):
            number = self.round_to(value)
        if not np.isfinite(number):
            return "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
        forms = (np.format_float_positional, np.format_float_scientific)
        return min((form(number, trim="0") for form in forms), key=len) + self.suffix

    def _new_name(self, wish: str) -> str:
        """A C identifier like `wish` that nothing else in the file is called."""
        stem = re.sub("[^A-Za-z0-9]+", "_", wish).strip("_")
        stem = stem if stem[:1].isalpha() else f"x{stem}"
        name = next(name for i in count(1) if (name := stem if i == 1 else f"{stem}_{i}") not in self._taken)
        self._taken.add(name)
        return name


def _function(head: str, lines: Iterable[str]) -> str:
    body = [part for line in lines for part in _wrapped(f"    {line}")]
    return "\n".join([*_wrapped(head), "{", *body, "}", ""])


def _wrapped(line: str) -> list[str]:
    """The line, broken after commas where it is too long."""
    if len(line) <= _WIDTH:
        return [line]
    indent = "    " + line[: len(line) - len(line.lstrip())]
    glued = re.sub("(?<!,) ", "\xa0", line)
    parts = textwrap.wrap(glued, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\xa0", " ") for part in parts]
