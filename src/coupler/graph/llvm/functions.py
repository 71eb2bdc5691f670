"""Operations as LLVM IR; elementary functions such as sine become functions of a whole register.

Elementary functions are traced from elementary.py and rendered like any kernel, so that one state and many states run
the same operations in the same order. Only angles too large for the argument reduction there go to the C library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph import elementary
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, symbol
from coupler.graph.llvm.blocks import function

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

_INSTRUCTION = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARISON = {"lt": "olt", "le": "ole", "eq": "oeq"}
_INTRINSIC = {"fma": "fma", "sqrt": "sqrt", "abs": "fabs", "copysign": "copysign", "round": "rint"}
_ELEMENTARY: dict[str, Callable[..., Node]] = {
    "tan": elementary.tan,
    "asin": elementary.asin,
    "acos": elementary.acos,
    "atan2": elementary.atan2,
    "exp": elementary.exp,
    "log": elementary.log,
}


class Functions:
    """Renders operations for one renderer and collects the functions that they call."""

    def __init__(self, renderer: Renderer) -> None:
        self.r = renderer
        double = renderer.dtype == np.float64
        self.precision = elementary.DOUBLE if double else elementary.SINGLE
        self.suffix = ("" if renderer.lanes == 1 else f"v{renderer.lanes}") + ("f64" if double else "f32")
        self.wide, self.exponent_shift, self.exponent_bias = ("i64", 52, 1023) if double else ("i32", 23, 127)
        self._declared: dict[str, None] = {}
        self._defined: dict[str, str] = {}

    def declarations(self) -> list[str]:
        return list(self._declared)

    def definitions(self) -> list[str]:
        return list(self._defined.values())

    def declare(self, declaration: str) -> None:
        """Adds the declaration of an intrinsic function."""
        self._declared[declaration] = None

    def emit(self, op: str, name: str, args: list[str], lines: list[str], called: set[str]) -> None:
        """Appends the operation under that name; `called` collects calls whose result another operation may share."""
        r, v, m = self.r, self.r.vector, self.r.mask
        if op in _INSTRUCTION:
            lines.append(f"{name} = {_INSTRUCTION[op]} {v} {args[0]}, {args[1]}")
        elif op == "neg":
            lines.append(f"{name} = fneg {v} {args[0]}")
        elif op in _COMPARISON:
            lines.append(f"{name} = fcmp {_COMPARISON[op]} {v} {args[0]}, {args[1]}")
        elif op in ("and", "or"):
            lines.append(f"{name} = {op} {m} {args[0]}, {args[1]}")
        elif op == "not":
            lines.append(f"{name} = xor {m} {args[0]}, {r.literal(True)}")
        elif op == "select":
            lines.append(f"{name} = select {m} {args[0]}, {v} {args[1]}, {v} {args[2]}")
        elif op in ("min", "max"):
            lines.append(f"{name}l = fcmp {'olt' if op == 'min' else 'ogt'} {v} {args[0]}, {args[1]}")
            lines.append(f"{name}u = fcmp uno {v} {args[0]}, {args[0]}")
            lines.append(f"{name}c = or {m} {name}l, {name}u")
            lines.append(f"{name} = select {m} {name}c, {v} {args[0]}, {v} {args[1]}")
        elif op in _INTRINSIC:
            lines.append(f"{name} = {self._intrinsic(_INTRINSIC[op], args)}")
        elif op == "exponent":
            self._emit_exponent(name, args[0], lines)
        elif op == "power_of_two":
            self._emit_power_of_two(name, args[0], lines)
        elif op in ("sin", "cos"):
            # Sine and cosine come from one call, which the first of them makes.
            pair = f"%sincos.{args[0].lstrip('%')}"
            if pair not in called:
                called.add(pair)
                lines.append(f"{pair} = call fastcc {{{v}, {v}}} {self._sincos()}({v} {args[0]})")
            lines.append(f"{name} = extractvalue {{{v}, {v}}} {pair}, {0 if op == 'sin' else 1}")
        elif op in _ELEMENTARY:
            lines.append(f"{name} = call fastcc {v} {self._function(op)}({', '.join(f'{v} {a}' for a in args)})")
        elif op == "lookup":
            self._emit_lookup(name, args[0], args[1], lines)
        else:
            raise GraphError(f"the LLVM back end cannot render operation {op!r}")

    def _intrinsic(self, stem: str, args: list[str]) -> str:
        v, full = self.r.vector, f"@llvm.{stem}.{self.suffix}"
        self._declared[f"declare {v} {full}({', '.join([v] * len(args))})"] = None
        return f"call {v} {full}({', '.join(f'{v} {arg}' for arg in args)})"

    def _emit_lookup(self, name: str, x: str, table: str, lines: list[str]) -> None:
        """Looks up a number, given the place and the table's name. The table starts with its last place."""
        r, v, m = self.r, self.r.vector, self.r.mask
        last, zero, places = f"{name}l", r.literal(0.0), "i32" if r.lanes == 1 else f"<{r.lanes} x i32>"
        lines.append(f"{name}s = load {r.scalar}, ptr {table}")
        if r.lanes > 1:
            lines.append(f"{name}j = insertelement {v} poison, {r.scalar} {name}s, i64 0")
            lines.append(f"{last} = shufflevector {v} {name}j, {v} poison, <{r.lanes} x i32> zeroinitializer")
        else:
            last = f"{name}s"
        lines.append(f"{name}a = fcmp ogt {v} {x}, {zero}")  # not NaN
        lines.append(f"{name}b = select {m} {name}a, {v} {x}, {v} {zero}")
        lines.append(f"{name}c = fcmp olt {v} {name}b, {last}")
        lines.append(f"{name}d = select {m} {name}c, {v} {name}b, {v} {last}")
        lines.append(f"{name}i = fptosi {v} {name}d to {places}")
        lines.append(f"{name}q = getelementptr {r.scalar}, ptr {table}, i64 1")
        lines.append(f"{name}p = getelementptr {r.scalar}, ptr {name}q, {places} {name}i")
        if r.lanes == 1:
            lines.append(f"{name} = load {r.scalar}, ptr {name}p")
            return
        full, pointers = f"@llvm.masked.gather.{self.suffix}.v{r.lanes}p0", f"<{r.lanes} x ptr>"
        self._declared[f"declare {v} {full}({pointers}, i32, {m}, {v})"] = None
        everywhere = f"i32 {r.dtype.itemsize}, {m} {r.literal(True)}"
        lines.append(f"{name} = call {v} {full}({pointers} {name}p, {everywhere}, {v} poison)")

    def _emit_exponent(self, name: str, x: str, lines: list[str]) -> None:
        wide, narrow = self._integers()
        lines.append(f"{name}b = bitcast {self.r.vector} {x} to {wide}")
        lines.append(f"{name}s = lshr {wide} {name}b, {self._integer(self.exponent_shift)}")
        lines.append(f"{name}e = and {wide} {name}s, {self._integer(2 * self.exponent_bias + 1)}")
        lines.append(f"{name}d = sub {wide} {name}e, {self._integer(self.exponent_bias)}")
        # By way of 32 bits, which every processor can convert.
        number = f"{name}d"
        if wide != narrow:
            lines.append(f"{name}t = trunc {wide} {number} to {narrow}")
            number = f"{name}t"
        lines.append(f"{name} = sitofp {narrow} {number} to {self.r.vector}")

    def _emit_power_of_two(self, name: str, n: str, lines: list[str]) -> None:
        wide, narrow = self._integers()
        lines.append(f"{name}i = fptosi {self.r.vector} {n} to {narrow}")
        number = f"{name}i"
        if wide != narrow:
            lines.append(f"{name}w = sext {narrow} {number} to {wide}")
            number = f"{name}w"
        lines.append(f"{name}e = add {wide} {number}, {self._integer(self.exponent_bias)}")
        lines.append(f"{name}b = shl {wide} {name}e, {self._integer(self.exponent_shift)}")
        lines.append(f"{name} = bitcast {wide} {name}b to {self.r.vector}")

    def _integers(self) -> tuple[str, str]:
        if self.r.lanes == 1:
            return self.wide, "i32"
        return f"<{self.r.lanes} x {self.wide}>", f"<{self.r.lanes} x i32>"

    def _integer(self, value: int) -> str:
        return str(value) if self.r.lanes == 1 else f"<{', '.join([f'{self.wide} {value}'] * self.r.lanes)}>"

    def _sincos(self) -> str:
        name, v = "@coupler.sincos", self.r.vector
        if name not in self._defined:
            x = symbol("x")
            lines, (sine, cosine) = self._body(elementary.sincos(x, self.precision), {x: "%x"})
            lines += self._large_angles({"sin": sine, "cos": cosine})
            lines.append(f"%pair = insertvalue {{{v}, {v}}} poison, {v} %sin, 0")
            lines.append(f"%both = insertvalue {{{v}, {v}}} %pair, {v} %cos, 1")
            lines.append(f"ret {{{v}, {v}}} %both")
            self._define(name, f"{{{v}, {v}}}", ["%x"], lines)
        return name

    def _function(self, op: str) -> str:
        name, v = f"@coupler.{op}", self.r.vector
        if name not in self._defined:
            parameters = [symbol(f"x{i}") for i in range(2 if op == "atan2" else 1)]
            names = {node: f"%{'x' if i == 0 else 'y'}" for i, node in enumerate(parameters)}
            lines, (result,) = self._body([_ELEMENTARY[op](*parameters, self.precision)], names)
            if op == "tan":
                lines += self._large_angles({"tan": result})
                result = "%tan"
            self._define(name, v, list(names.values()), [*lines, f"ret {v} {result}"])
        return name

    def _body(self, outputs: Sequence[Node], parameters: dict[Node, str]) -> tuple[list[str], list[str]]:
        lines: list[str] = ["entry:"]
        value = self.r.straight_line(outputs, parameters.__getitem__, lines)
        return lines, [value[node] for node in outputs]

    def _define(self, name: str, result: str, parameters: list[str], lines: list[str]) -> None:
        signature = f"internal fastcc {result} {name}({', '.join(f'{self.r.vector} {p}' for p in parameters)})"
        # Not inlined, because they would make up most of the program.
        self._defined[name] = function(signature, lines, "noinline")

    def _large_angles(self, results: dict[str, str]) -> list[str]:
        """Replaces each result by the C library's, in lanes whose angle is too large for the argument reduction."""
        r, v = self.r, self.r.vector
        lines = [f"%size = {self._intrinsic('fabs', ['%x'])}"]
        lines.append(f"%large = fcmp ugt {v} %size, {r.literal(self.precision.trig_limit)}")
        any_large = r.any_lane("%large", "%any", lines.append)
        lines += [f"br i1 {any_large}, label %slow, label %done", "slow:"]
        for op, fast in results.items():
            self._declared[f"declare double @{op}(double)"] = None
            previous = "poison"
            for lane in range(r.lanes):
                x = f"%{op}{lane}"
                scalar = "%x"
                if r.lanes > 1:
                    lines.append(f"{x}x = extractelement {v} %x, i64 {lane}")
                    scalar = f"{x}x"
                if r.scalar == "float":
                    lines.append(f"{x}d = fpext float {scalar} to double")
                    scalar = f"{x}d"
                lines.append(f"{x} = call double @{op}(double {scalar})")
                value = x
                if r.scalar == "float":
                    lines.append(f"{x}f = fptrunc double {x} to float")
                    value = f"{x}f"
                if r.lanes > 1:
                    lines.append(f"{x}v = insertelement {v} {previous}, {r.scalar} {value}, i64 {lane}")
                    value = f"{x}v"
                previous = value
            lines.append(f"%{op}.slow = select {r.mask} %large, {v} {previous}, {v} {fast}")
        lines += ["br label %done", "done:"]
        return lines + [f"%{op} = phi {v} [{fast}, %entry], [%{op}.slow, %slow]" for op, fast in results.items()]
