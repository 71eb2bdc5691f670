"""Sine, cosine, tangent, their inverses, exponential and logarithm, written as nodes of the primitive operations.

A back end that has no fast vector library traces these once per number format. There are no branches: every argument
takes the same path, and selects choose. Sums that must not lose their low part are kept as a leading part and a
small correction, which asks for strict arithmetic: a back end must neither reorder sums nor fuse a product and a sum
that are written apart. The polynomials and split constants are printed by tools/minimax.py.

Errors are in units in the last place of the result (ulp): the largest measured, in single precision over all
arguments (atan2: many), in double precision over some ten million.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from coupler.graph.expr import Node, apply, as_node, constant, where


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """A number format: its constants, and polynomials (constant coefficient first) that are exact enough for it.

    Attributes:
        trig_limit: the largest |x| for which sincos and tan hold their error.
        exp_floor: an argument so small that its exponential rounds to zero.
        exp_ceiling: a whole n so large that 2^n times the exponential of a reduced argument overflows.
        two_over_pi: 2/pi.
        half_pi: pi/2 as a sum of three floats.
        log2_e: 1 / ln 2.
        ln2: ln 2 as a sum of two floats; the first is short, so that its product with any exponent is exact.
        sine: sin r = r + r z p(z), where z = r^2 here and below.
        cosine: cos r = 1 - z/2 + z^2 p(z).
        cotangent: r cot r = 1 + z p(z).
        arcsine: asin r = r + r z p(z).
        arctangent: atan r = r + r z p(z).
        exponential: exp r = 1 + r + r^2 p(r).
        logarithm: log((1 + r) / (1 - r)) = 2 r + r z p(z).
    """

    trig_limit: float
    exp_floor: float
    exp_ceiling: float
    two_over_pi: float
    half_pi: tuple[float, float, float]
    log2_e: float
    ln2: tuple[float, float]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    cotangent: tuple[float, ...]
    arcsine: tuple[float, ...]
    arctangent: tuple[float, ...]
    exponential: tuple[float, ...]
    logarithm: tuple[float, ...]


# fmt: off
DOUBLE = Precision(
    trig_limit=1e9,
    exp_floor=-746.0,
    exp_ceiling=1025.0,
    two_over_pi=0.6366197723675814,
    half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    log2_e=1.4426950408889634,
    ln2=(0.6931471805598903, 5.497923018708371e-14),
    sine=(-0.1666666666666662, 0.008333333333319839, -0.00019841269827727747, 2.7557312964871377e-06,
        -2.5050643583942687e-08, 1.589012465111355e-10),
    cosine=(0.041666666666666574, -0.0013888888888869805, 2.4801587286802596e-05, -2.755731358305344e-07,
        2.087561933122638e-09, -1.1354297452487341e-11),
    cotangent=(-0.333333333333335, -0.02222222222211992, -0.0021164021185601607, -0.00021164018929850761,
        -2.137792996689538e-05, -2.1639426228991983e-06, -2.2025825357837213e-07, -2.0927292603844024e-08,
        -3.1401990376967526e-09),
    arcsine=(0.1666666666666676, 0.07499999999970805, 0.04464285717460704, 0.030381942708019218, 0.02237221498098981,
        0.017351612132810175, 0.013980819130817248, 0.011398923656995501, 0.010780189902016013, 0.0037066411544273157,
        0.021706894344598545, -0.020998297770902296, 0.032628155818499024),
    arctangent=(-0.3333333333333307, 0.19999999999951462, -0.1428571428257522, 0.11111111007029653, -0.0909090700305795,
        0.07692279840114019, -0.06666404064542403, 0.05880527857093659, -0.05253518745059799, 0.047223228755666605,
        -0.042191806902964056, 0.036641946281006206, -0.02990391447228713, 0.02198492194632477, -0.013900624531885397,
        0.007196548716248294, -0.0028849418559264584, 0.0008313301029747095, -0.00015216265238312846,
        1.3225254470365015e-05),
    exponential=(0.5000000000000011, 0.16666666666666413, 0.04166666666653019, 0.008333333333494291,
        0.0013888888943619912, 0.00019841269506924925, 2.4801493110720227e-05, 2.755758608964637e-06,
        2.763024379250074e-07, 2.5000143010215447e-08),
    logarithm=(0.6666666666666734, 0.39999999999414254, 0.2857142874253649, 0.22222198552726183, 0.18183565643265098,
        0.1531401067423542, 0.14796407851031745),
)

SINGLE = Precision(
    trig_limit=1e5,
    exp_floor=-104.0,
    exp_ceiling=129.0,
    two_over_pi=0.6366197466850281,
    half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    log2_e=1.4426950216293335,
    ln2=(0.693145751953125, 1.428606765330187e-06),
    sine=(-0.16666653752326965, 0.008332070894539356, -0.00019503086514305323),
    cosine=(0.04166664183139801, -0.0013887194218114018, 2.4419239707640372e-05),
    cotangent=(-0.3333333432674408, -0.022222056984901428, -0.0021175541914999485, -0.00020815935567952693,
        -2.607072747196071e-05),
    arcsine=(0.16666752099990845, 0.07495298236608505, 0.04547027498483658, 0.02418000064790249, 0.04216548427939415),
    arctangent=(-0.33333298563957214, 0.19998548924922943, -0.14264243841171265, 0.10952197015285492,
        -0.08403481543064117, 0.05795811116695404, -0.031178344041109085, 0.010914863087236881, -0.0017936774529516697),
    exponential=(0.4999999403953552, 0.1666652113199234, 0.04166838526725769, 0.008368712849915028,
        0.0013814651174470782),
    logarithm=(0.6666677594184875, 0.3997754752635956, 0.2987172603607178),
)
# fmt: on


def sincos(x: Node, precision: Precision) -> tuple[Node, Node]:
    """sin x and cos x for |x| <= trig_limit.

    |x| = n pi/2 + r with |r| <= pi/4; the quarter turn n mod 4 says which of ±sin r, ±cos r are meant.
    Error: 0.89 ulp (double), 0.90 ulp (single), also next to the zeros.
    """
    n, r, low = _quarter_turns(abs(x), precision)
    z = r * r
    sine = r + _fma(r * z, _polynomial(precision.sine, z), low)
    # 1 - r^2/2 rounded, then what the rounding took away; low would change the cosine by less than 0.2 ulp.
    leading = _fma(-0.5 * r, r, 1.0)
    cosine = leading + _fma(z * z, _polynomial(precision.cosine, z), _fma(-0.5 * r, r, 1.0 - leading))
    # n mod 4 = 0, 1, 2, 3 make turn = 1/8, 3/8, -3/8, -1/8 and side = 1/8, -1/8, -1/8, 1/8.
    eighths = _fma(n, 0.25, 0.125)
    turn = eighths - apply("round", eighths)
    side = 0.25 - abs(turn)
    odd = turn * side < 0
    sine_sign, cosine_sign = _copysign(1.0, turn * x), _copysign(1.0, side)
    return where(odd, cosine, sine) * sine_sign, where(odd, sine, cosine) * cosine_sign


def tan(x: Node, precision: Precision) -> Node:
    """tan x for |x| <= trig_limit.

    |x| = n pi/2 + r as in sincos. With c = r cot r, tan x is r / c for even n and -c / r for odd n: one quotient,
    whose rounding is undone by its residual. Error: 1.12 ulp (double), 0.96 ulp (single), also next to the zeros and
    poles.
    """
    n, near, far = _quarter_turns(abs(x), precision)
    r = near + far  # again, since next to n pi/2 the first low part may be no rounding error
    low = (near - r) + far
    z = r * r
    p = _polynomial(precision.cotangent, z)
    c = _fma(z, p, 1.0)
    c_low = _fma(r * low, -0.6875, _fma(z, p, 1.0 - c))  # dc/dr is near -0.69 r
    half = 0.5 * n
    even = half == apply("round", half)
    above, above_low = where(even, r, c), where(even, low, c_low)
    below, below_low = where(even, c, -r), where(even, c_low, -low)
    reciprocal = 1.0 / below
    quotient = above * reciprocal
    residual = _fma(-quotient, below_low, _fma(-quotient, below, above) + above_low)
    return _fma(residual, reciprocal, quotient) * _copysign(1.0, x)


def asin(x: Node, precision: Precision) -> Node:
    """asin x; NaN outside [-1, 1].

    asin |x| = pi/2 - 2 asin(sqrt((1 - |x|) / 2)) where |x| > 1/2. Error: 1.13 ulp (double), 1.16 ulp (single).
    """
    large, root, tail = _arcsine(x, precision)
    result = _angle(where(large, 1.0, 0.0), where(large, -2.0, 1.0), root, tail, precision)
    return _copysign(result, x)


def acos(x: Node, precision: Precision) -> Node:
    """acos x; NaN outside [-1, 1].

    acos x = pi/2 - asin x where |x| <= 1/2; else with a = 2 asin(sqrt((1 - |x|) / 2)) it is a, or pi - a for x < 0.
    Error: 1.09 ulp (double), 1.15 ulp (single).
    """
    large, root, tail = _arcsine(x, precision)
    sign = _copysign(1.0, x)
    return _angle(where(large, 1.0 - sign, 1.0), where(large, 2.0, -1.0) * sign, root, tail, precision)


def atan2(y: Node, x: Node, precision: Precision) -> Node:
    """The angle of the point (x, y), in [-pi, pi]; zeros and infinities as in C99.

    With t the smaller of |x|, |y| over the larger, the angle is a multiple of pi/2 plus or minus atan t.
    Error: 1.58 ulp (double), 1.54 ulp (single), of which the rounding of t makes up to 1.
    """
    steep = abs(x) < abs(y)
    smaller, larger = where(steep, abs(x), abs(y)), where(steep, abs(y), abs(x))
    quotient = smaller / where(larger == 0, 1.0, larger)
    t = where((smaller == math.inf) & (larger == math.inf), 1.0, quotient)
    z = t * t
    tail = t * z * _polynomial(precision.arctangent, z)
    sign = _copysign(1.0, x)
    result = _angle(where(steep, 1.0, 1.0 - sign), where(steep, -1.0, 1.0) * sign, t, tail, precision)
    return _copysign(result, y)


def exp(x: Node, precision: Precision) -> Node:
    """exp x.

    x = n ln 2 + r with |r| <= (ln 2) / 2, so exp x = 2^n exp r; 2^n in two factors, because the result may be
    subnormal. Error: 1.04 ulp (double), 1.01 ulp (single).
    """
    x = apply("max", x, constant(precision.exp_floor))
    n = apply("round", x * precision.log2_e)
    n = where(n < precision.exp_ceiling, n, precision.exp_ceiling)  # for NaN, too: r will be NaN or large, and tell
    ln2, ln2_low = precision.ln2
    r = _fma(n, -ln2_low, _fma(n, -ln2, x))
    result = 1.0 + _fma(r * r, _polynomial(precision.exponential, r), r)
    first = apply("round", 0.5 * n)
    return result * apply("power_of_two", first) * apply("power_of_two", n - first)


def log(x: Node, precision: Precision) -> Node:
    """The natural logarithm; -inf at zero, NaN below.

    x = 2^n (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), so log x = n ln 2 + log(1 + f). With s = f / (2 + f),
    log(1 + f) = log((1 + s) / (1 - s)) = 2 s + s^3 p(s^2), and 2 s = f - f^2/2 + s f^2/2 shows that f leads.
    Error: 0.89 ulp (double), 0.91 ulp (single).
    """
    positive, finite = x > 0, x < math.inf
    # Multiplied to where x, x/sqrt(2) and the power of two that brings x back to 1 are all normal.
    small = x < 1
    scaled = where(positive & finite, x * where(small, 2.0**60, 2.0**-4), 1.0)
    exponent = apply("exponent", scaled * (181 / 256))  # nearly sqrt(1/2)
    n = exponent + where(small, -59.0, 5.0)
    f = _fma(scaled * apply("power_of_two", -exponent), 0.5, -1.0)
    s = f / (2.0 + f)
    z = s * s
    half_square = f * (0.5 * f)
    rest = half_square - s * _fma(z, _polynomial(precision.logarithm, z), half_square)
    ln2, ln2_low = precision.ln2
    leading = _fma(n, ln2, f)
    low = _fma(n, ln2, -leading) + f
    result = leading + (_fma(n, ln2_low, low) - rest)
    return where(positive, where(finite, result, x), where(x == 0, -math.inf, math.nan))


def _quarter_turns(x: Node, precision: Precision) -> tuple[Node, Node, Node]:
    """n, r and low with x = n pi/2 + r + low for x >= 0, |r| <= pi/4 (nearly), low small against r."""
    n = apply("round", x * precision.two_over_pi)
    first, second, third = precision.half_pi
    near = _fma(n, -first, x)  # exact: x and n pi/2 cancel
    # The second product is rounded before it is subtracted, so that the difference's error is a float.
    r = near - n * second
    return n, r, _fma(n, -third, _fma(n, -second, near - r))


def _arcsine(x: Node, precision: Precision) -> tuple[Node, Node, Node]:
    """Whether |x| > 1/2, and asin r as r + tail; r is sqrt((1 - |x|) / 2) if so and else |x|."""
    size = abs(x)
    large = size > 0.5
    z = where(large, _fma(size, -0.5, 0.5), size * size)
    r = where(large, apply("sqrt", z), size)
    return large, r, r * z * _polynomial(precision.arcsine, z)


def _angle(quarters: Node, factor: Node, r: Node, tail: Node, precision: Precision) -> Node:
    """quarters pi/2 + factor (r + tail), summed without loss before the last rounding.

    For 0, 1 or 2 quarters, and a factor that is plus or minus a power of two.
    """
    half_pi, half_pi_low, _ = precision.half_pi
    r = factor * r
    leading = _fma(quarters, half_pi, r)
    low = _fma(quarters, half_pi, -leading) + r
    return leading + (low + _fma(quarters, half_pi_low, factor * tail))


def _polynomial(coefficients: tuple[float, ...], z: Node) -> Node:
    result = constant(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = _fma(result, z, coefficient)
    return result


def _fma(x: Node | float, y: Node | float, z: Node | float) -> Node:
    return apply("fma", as_node(x), as_node(y), as_node(z))


def _copysign(size: Node | float, sign: Node) -> Node:
    return apply("copysign", as_node(size), sign)
