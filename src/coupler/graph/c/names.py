"""Names in C: which words are taken, and new names that are free."""

from __future__ import annotations

import re
from itertools import count

# Words that cannot be names: keywords of C, of C++ for the sake of the header, and functions that compilers and linkers
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
RESERVED = {*_WORDS.split(), *(name + suffix for name in _MATH.split() for suffix in ("", "f", "l"))}


class Names:
    """The names of one C file."""

    def __init__(self, *taken: str) -> None:
        """Args: names that are in use besides the reserved words."""
        self._taken = {*RESERVED, *taken}

    def new(self, wish: str) -> str:
        """A C identifier like `wish` that nothing else in the file is called."""
        stem = re.sub("[^A-Za-z0-9]+", "_", wish).strip("_")
        stem = stem if stem[:1].isalpha() else f"x{stem}"
        name = next(name for i in count(1) if (name := stem if i == 1 else f"{stem}_{i}") not in self._taken)
        self._taken.add(name)
        return name
