"""Operations as C expressions, with parentheses only where they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.graph.c.source import function
from coupler.graph.errors import GraphError

# How each operation is written, by how tightly it binds. `!x` is among the comparisons: it never meets arithmetic, and
# compilers warn of it beside == without parentheses.
_CHOICE, _LOGIC, _COMPARE, _SUM, _PRODUCT, _UNARY, ATOM = range(7)
_BY_LEVEL = {
    _CHOICE: {"select": "{} ? {} : {}"},
    _LOGIC: {"and": "{} && {}", "or": "{} || {}"},
    _COMPARE: {"lt": "{} < {}", "le": "{} <= {}", "eq": "{} == {}", "not": "!{}"},
    _SUM: {"add": "{} + {}", "sub": "{} - {}"},
    _PRODUCT: {"mul": "{} * {}", "div": "{} / {}"},
    _UNARY: {"neg": "-{}"},
    ATOM: {"fma": "fma{f}({}, {}, {})", "power_of_two": "ldexp{f}(1.0{f}, (int)({}))"}
    | {"abs": "fabs{f}({})", "round": "rint{f}({})", "exponent": "logb{f}({})"}
    | {op: f"{op}{{f}}({{}})" for op in ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log")}
    | {op: f"{op}{{f}}({{}}, {{}})" for op in ("atan2", "copysign")}
    | {"min": "minimum({}, {})", "max": "maximum({}, {})", "lookup": "looked_up({}, {})"},
}
_FORMS = {op: (form, level) for level, forms in _BY_LEVEL.items() for op, form in forms.items()}
# Not fmin and fmax: those drop a NaN, which must win here. Of two equal numbers (zeros of either sign) y is taken.
_HELPERS = {"min": ("minimum", "<"), "max": ("maximum", ">")}

Expression = tuple[str, int]  # the text, and how tightly it binds


class Expressions:
    """Renders operations in one number format.

    Attributes:
        number: the C type of numbers.
        suffix: the suffix of functions and literals of that type.
        helpers: definitions of the functions that expressions call, by name.
    """

    def __init__(self, dtype: np.dtype, helpers: dict[str, str]) -> None:
        """Args: float64 or float32, and where helper functions are defined."""
        self.number, self.suffix = ("double", "") if dtype == np.float64 else ("float", "f")
        self.helpers, self._round_to = helpers, dtype.type

    def expression(self, op: str, args: Sequence[Expression]) -> Expression:
        """An operation on arguments."""
        if op not in _FORMS:
            raise GraphError(f"the C back end cannot render operation {op!r}")
        if op in _HELPERS:
            name, before = _HELPERS[op]
            head = f"static inline {self.number} {name}({self.number} x, {self.number} y)"
            self.helpers[name] = function(head, [f"return x {before} y || x != x ? x : y;"])
        if op == "lookup":  # the first number of a table is its last place
            head = f"static inline {self.number} looked_up(const {self.number} *t, {self.number} x)"
            place = "x > 0 ? (x < t[0] ? x : t[0]) : 0"  # NaN is 0
            self.helpers["looked_up"] = function(head, [f"return t[1 + (int32_t)({place})];"])
        form, level = _FORMS[op]
        # A call takes anything. Sums and products group from the left by themselves.
        least = [_CHOICE if level == ATOM else level + 1] * len(args)
        least[0] -= level in (_PRODUCT, _SUM)
        texts = [text if binds >= need else f"({text})" for (text, binds), need in zip(args, least, strict=True)]
        return form.format(*texts, f=self.suffix), level

    def literal(self, value: Any) -> str:
        """A number: the shortest text that is read back as exactly this number."""
        with np.errstate(over="ignore"):
            number = self._round_to(value)
        if not np.isfinite(number):
            return "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
        forms = (np.format_float_positional, np.format_float_scientific)
        return min((form(number, trim="0") for form in forms), key=len) + self.suffix
