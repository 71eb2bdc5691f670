"""Programs as C99: one source file and one header, for a controller.

The file allocates nothing, keeps no state between calls and needs no library but libm. A kernel becomes a static
function of pointers, a table a static array of constants, a program the one public function:

    void forward_dynamics(const double q[12], const double qd[12], double qdd[12], double work[FORWARD_DYNAMICS_WORK]);

Every call computes one state. Rounding is that of the graph with shared reciprocals; multiplications and additions
are not fused here, as fma() is a slow call where the processor lacks it.
"""

from __future__ import annotations

import os
import re
import secrets
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, topological
from coupler.graph.kernel import Case, Kernel
from coupler.graph.program import Loop, Program, Step
from coupler.graph.rewrite import rewrite
from coupler.graph.window import Buffer

__all__ = ["Source", "render"]

_WIDTH = 110  # of a line of C
_LONGEST = 50  # characters of an expression that is still written inside another one

# How tightly an expression binds. A truth value never meets an arithmetic operator, so `!x` may bind loosely, which
# spares us the cases that compilers warn about.
_ATOM, _UNARY, _PRODUCT, _SUM, _COMPARE, _LOGIC, _CHOICE = range(6, -1, -1)

_FORMS = {
    "add": ("{} + {}", _SUM),
    "sub": ("{} - {}", _SUM),
    "mul": ("{} * {}", _PRODUCT),
    "div": ("{} / {}", _PRODUCT),
    "neg": ("-{}", _UNARY),
    "fma": ("fma{f}({}, {}, {})", _ATOM),
    "sqrt": ("sqrt{f}({})", _ATOM),
    "abs": ("fabs{f}({})", _ATOM),
    "copysign": ("copysign{f}({}, {})", _ATOM),
    "min": ("minimum({}, {})", _ATOM),
    "max": ("maximum({}, {})", _ATOM),
    "sin": ("sin{f}({})", _ATOM),
    "cos": ("cos{f}({})", _ATOM),
    "tan": ("tan{f}({})", _ATOM),
    "asin": ("asin{f}({})", _ATOM),
    "acos": ("acos{f}({})", _ATOM),
    "atan2": ("atan2{f}({}, {})", _ATOM),
    "exp": ("exp{f}({})", _ATOM),
    "log": ("log{f}({})", _ATOM),
    "round": ("rint{f}({})", _ATOM),
    "exponent": ("logb{f}({})", _ATOM),
    "power_of_two": ("ldexp{f}(1.0{f}, (int)({}))", _ATOM),
    "lt": ("{} < {}", _COMPARE),
    "le": ("{} <= {}", _COMPARE),
    "eq": ("{} == {}", _COMPARE),
    "and": ("{} && {}", _LOGIC),
    "or": ("{} || {}", _LOGIC),
    "not": ("!{}", _COMPARE),
    "select": ("{} ? {} : {}", _CHOICE),
}

# Not fmin and fmax: those drop a NaN, which must win here. Of two equal numbers (zeros of either sign) y is taken.
_HELPERS = {"minimum": "<", "maximum": ">"}

_MATH = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cabs",
    "carg",
    "cbrt",
    "ceil",
    "cimag",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "cproj",
    "creal",
    "drem",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "finite",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gamma",
    "hypot",
    "ilogb",
    "j0",
    "j1",
    "jn",
    "ldexp",
    "lgamma",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "modf",
    "nan",
    "nearbyint",
    "nextafter",
    "nexttoward",
    "pow",
    "pow10",
    "remainder",
    "remquo",
    "rint",
    "round",
    "scalb",
    "scalbln",
    "scalbn",
    "significand",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "y0",
    "y1",
    "yn",
]

# Words that a name of ours must not be, because C, C++ (for the header), <math.h> or the C library has them.
_RESERVED = {f"{name}{suffix}" for name in _MATH for suffix in ("", "f", "l")} | set(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "asm",
        "typeof",
        "alignas",
        "alignof",
        "and",
        "and_eq",
        "bitand",
        "bitor",
        "bool",
        "catch",
        "char8_t",
        "char16_t",
        "char32_t",
        "class",
        "co_await",
        "co_return",
        "co_yield",
        "compl",
        "concept",
        "consteval",
        "constexpr",
        "constinit",
        "const_cast",
        "decltype",
        "delete",
        "dynamic_cast",
        "explicit",
        "export",
        "false",
        "friend",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "not_eq",
        "nullptr",
        "operator",
        "or",
        "or_eq",
        "private",
        "protected",
        "public",
        "reinterpret_cast",
        "requires",
        "static_assert",
        "static_cast",
        "template",
        "this",
        "thread_local",
        "throw",
        "true",
        "try",
        "typeid",
        "typename",
        "using",
        "virtual",
        "wchar_t",
        "xor",
        "xor_eq",
        "fpclassify",
        "isfinite",
        "isgreater",
        "isgreaterequal",
        "isinf",
        "isless",
        "islessequal",
        "islessgreater",
        "isnan",
        "isnormal",
        "isunordered",
        "signbit",
        "signgam",
        "float_t",
        "double_t",
        "NAN",
        "INFINITY",
        "HUGE_VAL",
        "HUGE_VALF",
        "HUGE_VALL",
        "NULL",
        "I",
        "errno",
        "linux",
        "unix",
        "main",
        "abort",
        "abs",
        "atexit",
        "atof",
        "atoi",
        "atol",
        "bsearch",
        "calloc",
        "clock",
        "div",
        "exit",
        "fclose",
        "fopen",
        "fputs",
        "fread",
        "free",
        "fwrite",
        "getenv",
        "index",
        "labs",
        "ldiv",
        "llabs",
        "lldiv",
        "malloc",
        "memchr",
        "memcmp",
        "memcpy",
        "memmove",
        "memset",
        "printf",
        "putchar",
        "puts",
        "qsort",
        "raise",
        "rand",
        "realloc",
        "remove",
        "rename",
        "scanf",
        "signal",
        "sprintf",
        "srand",
        "strcat",
        "strchr",
        "strcmp",
        "strcpy",
        "strlen",
        "strtod",
        "system",
        "time",
        "tolower",
        "toupper",
    ]
)


@dataclass(frozen=True)
class Source:
    """A rendered program.

    Attributes:
        name: of the public function, and of the files.
        header: the text of <name>.h.
        source: the text of <name>.c, which includes the header.
    """

    name: str
    header: str
    source: str

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Writes <name>.h and <name>.c into the folder, each completely or not at all, and returns their paths."""
        header, source = (Path(folder) / f"{self.name}{suffix}" for suffix in (".h", ".c"))
        for path, text in ((header, self.header), (source, self.source)):
            temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
            try:
                temporary.write_text(text, encoding="utf-8", newline="\n")
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        return header, source


def render(program: Program, dtype: Any = np.float64, name: str | None = None) -> Source:
    """The program in C99.

    Args:
        program: what the public function computes.
        dtype: float64 (double) or float32 (float).
        name: of the function and the files; the program's own if not given.
    """
    return _Renderer(program, np.dtype(dtype), name or program.name).source()


@dataclass(frozen=True)
class _Function:
    """A kernel in C: its name, the kernel's pointers that it takes, and whether it takes a row of constants."""

    name: str
    pointers: list[int]
    constants: bool


class _Renderer:
    def __init__(self, program: Program, dtype: np.dtype, name: str) -> None:
        if dtype not in (np.float64, np.float32):
            raise GraphError(f"programs are rendered in float64 or float32, not {dtype}")
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or _is_reserved(name):
            raise GraphError(f"{name!r} cannot be the name of a C function: give another name")
        self.program, self.name, self.type = program, name, dtype.type
        self.number, self.f = ("double", "") if dtype == np.float64 else ("float", "f")
        self.macro = f"{name.upper()}_WORK"
        self._taken = {*_RESERVED, *_HELPERS, name, self.macro, f"{name.upper()}_H"}
        self._places = {buffer: self._new_name(buffer.name) for buffer in program.buffers}
        self._used: set[Buffer] = set()
        self._functions: dict[str, _Function] = {}
        self._helpers: set[str] = set()
        self._definitions: list[str] = []  # kernels and tables, in order of first use

    def source(self) -> Source:
        steps = self._steps(self.program.steps)
        lines = [f"(void){self._places[b]};" for b in self._arguments() if b not in self._used]
        scratch = [b for b in self.program.scratch if b in self._used]
        work, size = self._new_name("work"), 0
        for buffer in scratch:
            lines.append(f"{self.number} *const {self._places[buffer]} = {_plus(work, size)};")
            size += buffer.size
        parameters = [self._parameter(b) for b in self._arguments()]
        parameters += [f"{self.number} {work}[{self.macro}]"] if size else []
        prototype = f"void {self.name}({', '.join(parameters) or 'void'})"
        parts = [f'/* See {self.name}.h. */\n#include "{self.name}.h"\n\n#include <math.h>\n#include <stdint.h>\n']
        for helper in sorted(self._helpers):
            body = [f"return x {_HELPERS[helper]} y || x != x ? x : y;"]
            parts.append(_function(f"static inline {self.number} {helper}({self.number} x, {self.number} y)", body))
        parts += [*self._definitions, _function(prototype, lines + steps)]
        return Source(self.name, self._header(prototype, work, size), "\n".join(parts))

    # The interface

    def _arguments(self) -> tuple[Buffer, ...]:
        return self.program.inputs + self.program.outputs

    def _parameter(self, buffer: Buffer) -> str:
        const = "const " if buffer.role == "input" else ""
        place = self._places[buffer]
        return f"{const}{self.number} " + (f"{place}[{buffer.size}]" if buffer.size else f"*{place}")  # no [0] in C

    def _header(self, prototype: str, work: str, size: int) -> str:
        def names(buffers: Sequence[Buffer]) -> str:
            return ", ".join(f"{self._places[b]}[{b.size}]" for b in buffers) or "none"

        guard = f"{self.name.upper()}_H"
        text = [
            f"{self.name}: the program {self.program.name!r} in C99, one state a call, in {self.number} precision.",
            f"Inputs: {names(self.program.inputs)}.",
            f"Outputs: {names(self.program.outputs)}.",
            *([f"Scratch: {work}[{self.macro}], whose contents mean nothing before and after a call."] if size else []),
            "Units are not known here: they are those in which the program and its constants were written down.",
            "Arrays must not overlap, save that inputs may be one array. An array of no elements may be NULL. Nothing "
            "is allocated and no state is kept: threads may call it at once, each with its own outputs"
            + (" and scratch." if size else "."),
            "Link with libm (-lm).",
        ]
        comment = [line for part in text for line in textwrap.wrap(part, 110, subsequent_indent="  ")]
        lines = ["/* " + "\n * ".join(comment), " */", f"#ifndef {guard}", f"#define {guard}", ""]
        lines += [f"#define {self.macro} {size} /* numbers of scratch space */", ""] if size else []
        lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", *_wrapped(f"{prototype};"), ""]
        return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])

    # Steps

    def _steps(self, steps: Sequence[Step]) -> list[str]:
        lines: list[str] = []
        for step in steps:
            if not isinstance(step, Loop):
                i = self._new_name("round")
                lines.append(f"for (int64_t {i} = 0; {i} < {step.at_most}; {i}++) {{")
                lines += [f"    if ({self._call(step.until, None)}) {{", "        break;", "    }"]
                lines += [*_indented(self._steps(step.body)), "}"]
                continue
            # What has no rows would need empty tables, and what stores nothing does nothing.
            cases = {i: case for i, case in enumerate(step.cases) if case.rows and case.kernel.stores}
            if len(step.cases) == 1:
                lines += [line for case in cases.values() for line in self._plain(case)]
            elif cases:
                lines += self._interleaved(step, cases)
        return lines

    def _plain(self, case: Case) -> list[str]:
        if case.rows == 1:
            return [f"{self._call(case, None)};"]
        row = self._new_name("row")
        call = f"{self._call(case, row)};"
        return [f"for (int {row} = 0; {row} < {case.rows}; {row}++) {{", f"    {call}", "}"]

    def _interleaved(self, loop: Loop, cases: dict[int, Case]) -> list[str]:
        turn, row = self._new_name("turn"), self._new_name("row")
        next_row = {i: count() for i in cases}
        order = np.array([(i, next(next_row[i])) for i in loop.order.tolist() if i in cases])
        table = self._table("order", order)
        lines = [f"for (int {turn} = 0; {turn} < {len(order)}; {turn}++) {{"]
        lines += [f"    const uint32_t {row} = {table}[{turn}][1];", f"    switch ({table}[{turn}][0]) {{"]
        for i, case in cases.items():
            lines += [f"    case {i}:", f"        {self._call(case, row)};", "        break;"]
        return [*lines, "    }", "}"]

    def _call(self, case: Case, row: str | None) -> str:
        """The call of a case's kernel for one row; None is the only row, whose bases are written as numbers."""
        function = self._kernel(case.kernel)
        stem = function.name.removeprefix("kernel_")
        bases = case.bases[:, function.pointers]
        places = [self._places[case.buffers[pointer]] for pointer in function.pointers]
        self._used |= {case.buffers[pointer] for pointer in function.pointers}
        if row is None:
            arguments = [_plus(place, int(base)) for place, base in zip(places, bases[0], strict=True)]
        else:
            table = self._table(f"bases_{stem}", bases)
            arguments = [f"{place} + {table}[{row}][{j}]" for j, place in enumerate(places)]
        if function.constants:
            arguments.append(f"{self._table(f'constants_{stem}', case.constants)}[{row or 0}]")
        return f"{function.name}({', '.join(arguments)})"

    def _table(self, name: str, values: np.ndarray) -> str:
        """The name of a new table of these values: numbers, or whole numbers in the smallest type that holds them."""
        name = self._new_name(name)
        if values.dtype.kind == "f":
            kind, text = self.number, [[self._literal(x) for x in row] for row in values.tolist()]
        else:
            low, high = (np.min_scalar_type(int(x)) for x in (values.min(), values.max()))
            kind, text = f"{np.result_type(low, high)}_t", [[str(x) for x in row] for row in values.tolist()]
        rows = [line for row in text for line in _wrapped(f"    {{{', '.join(row)}}},")]
        head = f"static const {kind} {name}[{len(values)}][{values.shape[1]}] = {{"
        self._definitions.append("\n".join([head, *rows, "};", ""]))
        return name

    # Kernels

    def _kernel(self, kernel: Kernel) -> _Function:
        """The kernel's function, which is rendered on first use."""
        if kernel.text in self._functions:
            return self._functions[kernel.text]
        outputs = rewrite(kernel.outputs, ["share_reciprocals"])
        needed = set(topological(outputs))  # a rewritten graph may need less
        written = {at.pointer for at in kernel.stores}
        pointers = sorted(written | {at.pointer for node, at in kernel.loads.items() if node in needed})
        constants = any(node in needed for node in kernel.constants)
        function = _Function(self._new_name(f"kernel_{kernel.name}"), pointers, constants)
        parameters = [f"{'' if i in written else 'const '}{self.number} *restrict p{i}" for i in pointers]
        parameters += [f"const {self.number} *restrict c"] if constants else []
        head = f"static {'void' if kernel.stores else 'int'} {function.name}({', '.join(parameters) or 'void'})"
        comment = re.sub(r"[/*\n]", "", kernel.name)
        self._definitions.append(f"/* {comment} */\n{_function(head, self._statements(kernel, outputs))}")
        self._functions[kernel.text] = function
        return function

    def _statements(self, kernel: Kernel, outputs: Sequence[Node]) -> Iterator[str]:
        """Loads, operations and stores. What is needed once is written where it is needed, unless it is long."""
        nodes = topological(outputs)
        users = Counter([*outputs, *(arg for node in nodes for arg in node.args)])
        stored = set(kernel.stores)
        value: dict[Node, tuple[str, int]] = {}  # how each node is written, and how tightly that binds
        names = (f"n{i}" for i in count())
        for node in nodes:
            named = False
            if node.op == "constant":
                text = self._literal(node.value)
                value[node] = text, _UNARY if text.startswith("-") else _ATOM
            elif node in kernel.constants:
                value[node] = f"c[{kernel.constants[node]}]", _ATOM
            elif node in kernel.loads:
                at = kernel.loads[node]
                value[node] = f"p{at.pointer}[{at.offset}]", _ATOM
                named = at in stored  # read now: later a store has changed it
            else:
                value[node] = self._expression(node.op, [value[arg] for arg in node.args])
                named = users[node] > 1 or len(value[node][0]) > _LONGEST
            if named:
                name = next(names)
                yield f"const {'int' if node.logical else self.number} {name} = {value[node][0]};"
                value[node] = name, _ATOM
        if not kernel.stores:
            yield f"return {value[outputs[0]][0]};"
        for at, node in zip(kernel.stores, outputs, strict=bool(kernel.stores)):
            yield f"p{at.pointer}[{at.offset}] = {value[node][0]};"

    def _expression(self, op: str, args: Sequence[tuple[str, int]]) -> tuple[str, int]:
        if op not in _FORMS:
            raise GraphError(f"the C back end cannot render operation {op!r}")
        form, level = _FORMS[op]
        self._helpers |= {helper for helper in _HELPERS if form.startswith(helper)}
        # Sums and products group from the left; a call takes anything.
        least = [level + 1 if level < _ATOM else _CHOICE] * len(args)
        if level in (_SUM, _PRODUCT):
            least[0] = level
        texts = [text if binds >= need else f"({text})" for (text, binds), need in zip(args, least, strict=True)]
        return form.format(*texts, f=self.f), level

    def _literal(self, value: Any) -> str:
        """A constant: the shortest text that is read back as exactly this number."""
        if isinstance(value, bool):
            return str(int(value))
        with np.errstate(over="ignore"):
            number = self.type(value)
        if np.isfinite(number):
            forms = (np.format_float_positional, np.format_float_scientific)
            return min((form(number, trim="0") for form in forms), key=len) + self.f
        return "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"

    def _new_name(self, wish: str) -> str:
        """A C identifier like `wish` that nothing else in the file is called."""
        stem = re.sub("[^A-Za-z0-9]+", "_", wish).strip("_")
        stem = stem if stem[:1].isalpha() else f"x{stem}"
        stem = f"{stem}_" if _is_reserved(stem) else stem
        name = next(name for i in count(1) if (name := stem if i == 1 else f"{stem}_{i}") not in self._taken)
        self._taken.add(name)
        return name


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or re.fullmatch(r"u?int\w*_t", name) is not None


def _plus(place: str, offset: int) -> str:
    return f"{place} + {offset}" if offset else place


def _function(head: str, lines: Iterable[str]) -> str:
    body = [part for line in _indented(lines) for part in _wrapped(line)]
    return "\n".join([*_wrapped(head), "{", *body, "}", ""])


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _wrapped(line: str) -> list[str]:
    """A line broken between words where it is too long; C takes any white space for a space."""
    if len(line) <= _WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line, _WIDTH, subsequent_indent=f"{indent}    ", break_on_hyphens=False, break_long_words=False
    )
