"""The laws of contacts and joints, each written once: on floats, on arrays of many contacts, or on nodes of a trace.

Impulses λ and velocities w of a contact have their components in the first dimension: the normal n; the two tangents t;
if the contact resists spin, the spin s about the normal; and if it resists rolling, the rotation r about the two
tangents. Friction follows Coulomb's law with a round cone: 0 ≤ w_n ⊥ λ_n ≥ 0, and λ_t dissipates as much as possible
subject to |λ_t| ≤ µ λ_n. ([002, eq. 1, 2] has a polygon in place of the circle.) Likewise λ_s dissipates as much as
possible subject to |λ_s| ≤ τ λ_n, and λ_r subject to |λ_r| ≤ ρ λ_n. Each of these three bounds is a *disc*, of two, one
and two rows; the three are independent of each other. The coefficients µ, τ and ρ of a contact, one for each of its
discs, are its `friction`.

The law of a block can be written λ = P(λ − r w), where P projects onto the admissible impulses and r > 0 is the inverse
of a mobility. The projections, residuals and projected steps below are exactly that, and all solvers share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import inf
from operator import add
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.wording import listed

Array = Any  # an ndarray of floats, or of nodes
Friction = Sequence[Any] | np.ndarray  # the coefficient of each disc: numbers, arrays of many contacts, or nodes

PENETRATION = {"position": -inf, "velocity": 0.0, "limited": -1e-5}  # the deepest gap that counts, m [002, §4.1]

RECOVERY = 0.1  # m/s: overlapping shapes part at most this fast, so that a body then rises by at most v²/2g = 0.5 mm

SOFTENING = 1e-6  # of a block's mobility, added to it, so that directions that no impulse moves get no impulse
TINY = 1e-60  # added to divisors that may be zero (1/kg, or squares of impulses): far below anything that matters

_DISCS = slice(1, 3), slice(3, 4), slice(4, 6)  # the rows of tangents, spin and rolling


def discs(friction: Friction) -> list[tuple[Any, slice]]:
    """The coefficient of each disc of a contact, and the slice of the contact's rows that the disc bounds."""
    return list(zip(friction, _DISCS, strict=False))


def row_count(friction: Friction) -> int:
    """The number of rows of a contact: 3, 4 or 6."""
    return _DISCS[len(friction) - 1].stop


# Gaps and limits


def gap_seen(gap: Any, penetration: str | float = "position") -> Any:
    """The gap as the contact law sees it, on floats or nodes, m. [002, §4.1]

    Args:
        gap: g_N, m.
        penetration: how overlaps count. "position": at their full depth; "velocity": as touching, so that they do not
            grow; "limited": at most as 1e-5 m, so that they shrink slowly; or another such limit as a number, m, 0 or
            less.
    """
    deepest = _deepest(penetration)
    return gap if deepest == -inf else np.maximum(gap, deepest)


def _deepest(penetration: str | float) -> float:
    if isinstance(penetration, str):
        if penetration not in PENETRATION:
            raise ModelError(f"penetration must be one of {listed(PENETRATION)}, or a number, got {penetration!r}")
        return PENETRATION[penetration]
    deepest = float(numbers("penetration", penetration, (), finite=False))
    if deepest > 0.0:
        raise ModelError(f"penetration must be 0 m or less, because it is a gap, got {deepest:g}")
    return deepest


def let_out(closure: Any, w: Any, recovery: Any) -> Any:
    """The gap over the step, m/s, limited so that overlapping shapes part at a bounded speed.

    Shapes that approach each other may part faster by their speed of approach. So an overlap that arises within one
    step is undone in the next: sliding at speed s along a surface of curvature κ makes overlaps of κ s² h² / 2,
    approached at κ s² h. What counts is the speed before the step: forces that press shapes together, however strong,
    do not let them part faster.

    Args:
        closure: g/h, negative for an overlap, m/s.
        w: the velocity of the gap before the step, m/s.
        recovery: the bound on the speed, m/s, for all gaps or for each; infinite for no bound.
    """
    return closure if np.all(recovery == inf) else np.maximum(closure, np.minimum(w, 0.0) - recovery)


def limit_velocities(
    lower: Any,
    upper: Any,
    q: Any,
    step: Any,
    w: Any = 0.0,
    recovery: Any = None,
    seen: Callable[[Any], Any] = lambda gap: gap,
) -> tuple[Any, Any]:
    """The velocities that take a joint from q to its lower and upper limit within a step, rad/s or m/s.

    Args:
        lower, upper: the joint's limits, rad or m.
        q, step: the joint's position, rad or m, and the length of the step, h, s.
        w: its velocity before the step, rad/s or m/s.
        recovery: the speed at which a joint returns from beyond a limit at most; see `let_out`. None for no bound.
        seen: returns how much of a distance to a limit, or beyond it, counts.
    """
    low, high = -seen(q - lower) / step, seen(upper - q) / step
    if recovery is None:
        return low, high
    return np.minimum(low, recovery - np.minimum(w, 0.0)), np.maximum(high, -recovery - np.maximum(w, 0.0))


# Projections


def nearest_in_disc(radius: Any, x: Sequence[Any]) -> list[Any]:
    """The point nearest to x, which has one or two components, in the disc of this radius (≥ 0) about the origin."""
    if len(x) == 1:
        return [np.clip(x[0], -radius, radius)]
    length = np.hypot(*x)
    outside = length > radius
    scale = np.where(outside, radius / np.where(outside, length, 1.0), 1.0)
    return [scale * component for component in x]


def inside_cone(friction: Friction, lam: Array) -> Array:
    """Impulses moved into a contact's cone: λ_n ≥ 0 first, then less friction. Arguments are those of `cone_error`."""
    normal = np.maximum(lam[0], 0.0)
    tangential = [nearest_in_disc(coefficient * normal, lam[rows]) for coefficient, rows in discs(friction)]
    return np.array([normal, *(x for disc in tangential for x in disc)])


def nearest_in_cone(friction: Friction, lam: Array) -> Array:
    """The impulses in a contact's cone at the least Euclidean distance; arguments are those of `cone_error`.

    In a disc with coefficient µ, they have the length min(T, µ n), where T is the length of the argument's part, and n
    is the root of n − λ_n − Σ µ max(T − µ n, 0). That function is the least of several rising lines, one for each set
    of discs that are at their bounds, so its root is the largest of the lines' roots.
    """
    lines = [(lam[0], 1.0)]
    for coefficient, rows in discs(friction):
        pull = coefficient * _length(lam[rows])
        lines += [(value + pull, slope + coefficient**2) for value, slope in lines]
    normal = reduce(np.maximum, [value / slope for value, slope in lines])
    return inside_cone(friction, np.array([normal, *lam[1:]]))


def _length(x: Sequence[Any]) -> Any:
    return np.abs(x[0]) if len(x) == 1 else np.hypot(*x)


def de_saxce_shift(friction: Friction, w: Array) -> Any:
    """De Saxcé's s(w) = Σ µ |w_t| over the discs, m/s: added to w_n, it turns the law into that of a convex problem."""
    return reduce(add, [coefficient * _length(w[rows]) for coefficient, rows in discs(friction)])


def mobilities(A: Array, friction: Friction) -> list[Any]:
    """How easily impulses move each disc of a contact with the block A, 1/kg; 1/(kg m²) for spin and rolling."""
    return [tangential_mobility(A), *(_rotational_mobility(A, rows) for _, rows in discs(friction)[1:])]


def _rotational_mobility(A: Array, rows: slice) -> Any:
    i, j = rows.start, rows.stop - 1
    mobility = A[i, i] if i == j else larger_eigenvalue(A[i, i], A[i, j], A[j, j])
    return mobility + SOFTENING * A[0, 0] + TINY  # A_nn with an arm of a metre: above zero even if nothing can turn


def tangential_mobility(A: Array) -> Any:
    """How easily impulses move a contact with the block A sideways, 1/kg: A_tt's larger eigenvalue, kept above zero."""
    return larger_eigenvalue(A[1, 1], A[1, 2], A[2, 2]) + SOFTENING * A[0, 0] + TINY


def larger_eigenvalue(xx: Any, xy: Any, yy: Any) -> Any:
    """The larger eigenvalue of a symmetric 2 × 2 matrix."""
    return 0.5 * (xx + yy) + np.hypot(0.5 * (xx - yy), xy)


# Residuals: (λ − P(λ − r w)) / r, zero where a law holds, as velocities


def interval_error(mobility: Any, lower: Any, upper: Any, lam: Any, w: Any) -> Any:
    """How far a row with lower ≤ λ ≤ upper is from its law: w = 0 in between, w ≥ 0 at lower, w ≤ 0 at upper.

    The bounds may be infinite; the other arguments are those of `cone_error`, for one row.
    """
    return np.clip(w, mobility * (lam - upper), mobility * (lam - lower))


def cone_error(friction: Friction, mobility: Sequence[Any], lam: Array, w: Array) -> Array:
    """How far each row of a contact is from its law; the bounds of friction are those of the present λ_n.

    Args:
        friction: the contact's coefficients: µ; with torsion also τ, m; with rolling friction also ρ, m.
        mobility: 1/r of the normal and of each disc, 1/kg; 1/(kg m²) for spin and rolling.
        lam, w: 3, 4 or 6 entries each: impulses, N s (N m s), and velocities, m/s (rad/s).
    """
    normal = np.maximum(lam[0], 0.0)
    errors = [np.minimum(mobility[0] * lam[0], w[0])]
    for (coefficient, rows), m in zip(discs(friction), mobility[1:], strict=True):
        wanted = [m * x for x in lam[rows]]
        target = [x - y for x, y in zip(wanted, w[rows], strict=True)]
        errors += [x - y for x, y in zip(wanted, nearest_in_disc(m * coefficient * normal, target), strict=True)]
    return np.array(errors)


def cone_residual(friction: Friction, mobility: Sequence[Any], lam: Array, w: Array) -> Any:
    """The largest error of a contact's normal and discs, m/s (rad/s). Arguments are those of `cone_error`."""
    error = cone_error(friction, mobility, lam, w)
    return reduce(np.maximum, [np.abs(error[0]), *(_length(error[rows]) for _, rows in discs(friction))])


# Steps


def projected_step(A: Array, steps: Sequence[Any], friction: Friction, lam: Array, w: Array) -> Array:
    """λ ← P(λ − r w) of a contact: normal, tangents, spin, rolling, each with the velocities that those before leave.

    Args:
        A: the contact's block, 3 × 3, 4 × 4 or 6 × 6.
        steps: r of the normal and of each disc, kg (kg m²).
        friction, lam, w: as for `cone_error`.
    """
    n, x, y = unprojected_step(A, steps[0], steps[1], lam, w)
    new = [n, *nearest_in_disc(friction[0] * n, [x, y])]
    return turning_step(A, steps[2:], friction, lam, w, new)


def turning_step(A: Array, steps: Sequence[Any], friction: Friction, lam: Array, w: Array, new: Sequence[Any]) -> Array:
    """The second half of `projected_step`: spin and rolling, given the new impulses of the normal and tangents."""
    new = list(new)
    for (coefficient, rows), step in zip(discs(friction)[1:], steps, strict=True):
        changes = [x - y for x, y in zip(new, lam, strict=False)]
        present = [w[i] + sum(A[i][j] * dx for j, dx in enumerate(changes)) for i in range(rows.start, rows.stop)]
        target = [x - step * y for x, y in zip(lam[rows], present, strict=True)]
        new += nearest_in_disc(coefficient * new[0], target)
    return np.array(new)


def unprojected_step(A: Array, normal_step: Any, tangent_step: Any, lam: Array, w: Array) -> tuple[Any, Any, Any]:
    """λ_n of a projected step, and the two entries of λ_t − r w_t with the velocities that λ_n leaves."""
    normal = np.maximum(lam[0] - w[0] * normal_step, 0.0)
    x = lam[1] - (w[1] + A[0][1] * (normal - lam[0])) * tangent_step
    y = lam[2] - (w[2] + A[0][2] * (normal - lam[0])) * tangent_step
    return normal, x, y


# Joints


def joint_update(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> Any:
    """The new impulse of a joint whose velocity must lie between two values, and which dry friction brakes.

    Args:
        a: the joint's mobility, its diagonal entry of A.
        low, high: the velocities that take it to its limits within the step, rad/s or m/s.
        bound: the largest impulse of friction, N m s or N s.
        lam, w: its present impulse and velocity.
    """
    free, step = w - a * lam, 1.0 / (a + TINY)
    brake, braked = _braked(a, bound, free)
    return np.where(braked < low, (low - free) * step, np.where(braked > high, (high - free) * step, brake))


def joint_regime(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> tuple[Any, Any, Any]:
    """The branch of its law that a joint is on; arguments are those of `joint_update`.

    Returns:
        The velocity that the joint is held at, whether it is held, and the impulse of friction if it is not.
    """
    brake, braked = _braked(a, bound, w - a * lam)
    stopped = (braked < low) | (braked > high)
    target = np.where(braked < low, low, np.where(braked > high, high, 0.0))
    return target, stopped | (np.abs(brake) < bound), brake


def joint_parts(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> tuple[Any, Any]:
    """The shares of limits and of friction in the impulse of a joint that obeys its law.

    Arguments are those of `joint_update`.
    """
    _, braked = _braked(a, bound, w - a * lam)
    rest = lam - np.where(w > 0.0, -bound, np.where(w < 0.0, bound, np.copysign(bound, lam)))
    pushed = np.where(braked > high, np.minimum(rest, 0.0), 0.0)
    limit = np.where(braked < low, np.maximum(rest, 0.0), pushed)  # of the right sign where w is rounding alone
    return limit, lam - limit


def _braked(a: Any, bound: Any, free: Any) -> tuple[Any, Any]:
    """The impulse of friction on a joint without limits, and the velocity that it leaves."""
    brake = np.clip(-free / (a + TINY), -bound, bound)
    return brake, free + a * brake
