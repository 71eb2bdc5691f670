"""The laws of contacts and joints, each written once: on floats, on arrays of many contacts, or on nodes of a trace.

Impulses λ and velocities w of a contact come components first: the normal n; two tangents t; where it resists turning,
the spin s about the normal; and where it resists rolling, the turning r about the two tangents. Friction is Coulomb's
with a round cone: 0 ≤ w_n ⊥ λ_n ≥ 0, and λ_t dissipates most among |λ_t| ≤ µ λ_n; [002, eq. 1, 2] have a polygon in
place of the circle. Likewise λ_s dissipates most among |λ_s| ≤ τ λ_n, and λ_r among |λ_r| ≤ ρ λ_n. Each of the three
is a *disc*, of two, one and two rows, and none takes anything from the bounds of the others. The coefficients µ, τ and
ρ of a contact, as many as it has discs, are its `friction`.

The law of a block can be written λ = P(λ − r w), where P gives the nearest admissible impulses and r > 0 is the inverse
of a mobility. Projections, residuals and projected steps say just that, and all solvers share them.
"""

from __future__ import annotations

from collections.abc import Sequence
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

RECOVERY = 0.1  # m/s: what starts overlapped is let out so fast, and then rises by no more than v²/2g = 0.5 mm

SOFTENING = 1e-6  # of a block's mobility, added to it: directions that no impulse moves get no impulse
TINY = 1e-60  # added to divisors that may be zero (1/kg, or squares of impulses): far below all that matters

_DISCS = slice(1, 3), slice(3, 4), slice(4, 6)  # the rows of tangents, spin and rolling


def discs(friction: Friction) -> list[tuple[Any, slice]]:
    """The coefficient and the rows of each disc of a contact."""
    return list(zip(friction, _DISCS, strict=False))


def row_count(friction: Friction) -> int:
    """How many rows a contact has: 3, 4 or 6."""
    return _DISCS[len(friction) - 1].stop


# Gaps and limits


def gap_seen(gap: Any, penetration: str | float = "position") -> Any:
    """The gap that counts, of floats or nodes, m. [002, §4.1]

    Args:
        gap: g_N, m.
        penetration: "position": as it is; "velocity": what overlaps counts as touching, so that it is kept from going
            deeper; "limited": depths count up to 1e-5 m, so that they shrink slowly; or another such limit, m, 0 or
            less.
    """
    deepest = _deepest(penetration)
    return gap if deepest == -inf else np.maximum(gap, deepest)


def _deepest(penetration: str | float) -> float:
    if isinstance(penetration, str):
        if penetration not in PENETRATION:
            raise ModelError(f"penetration: there is no {penetration!r}; there are {listed(PENETRATION)}, or a number")
        return PENETRATION[penetration]
    deepest = float(numbers("penetration", penetration, (), finite=False))
    if deepest > 0.0:
        raise ModelError(f"penetration must be 0 m or less, a gap's, got {deepest:g}")
    return deepest


def let_out(closure: Any, w: Any, recovery: Any) -> Any:
    """A gap over the step, as it counts: what overlaps is parted with a bounded speed, m/s.

    What comes with a speed may be parted with that more. So overlaps that a motion makes within a step are undone in
    the next: along a surface of curvature κ at a speed s they are κ s² h² / 2 deep, and come with κ s² h.

    Args:
        closure: g/h, below zero for an overlap, m/s.
        w: the velocity of the gap after the step without impulses, m/s.
        recovery: the bound, a number, or one for each gap; infinite for none.
    """
    return closure if np.all(recovery == inf) else np.maximum(closure, np.minimum(w, 0.0) - recovery)


def limit_velocities(
    lower: Any,
    upper: Any,
    q: Any,
    step: Any,
    w: Any = 0.0,
    recovery: Any = None,
    penetration: str | float = "position",
) -> tuple[Any, Any]:
    """The velocities that take a joint from q to its lower and upper limit within a step, rad/s or m/s.

    Args:
        lower, upper: the limits.
        q, step: where it is, and h.
        w: its velocity after the step without impulses.
        recovery: what is beyond a limit is let out no faster; see `let_out`. None for no bound.
        penetration: how what is beyond a limit counts; see `gap_seen`.
    """
    low, high = -gap_seen(q - lower, penetration) / step, gap_seen(upper - q, penetration) / step
    if recovery is None:
        return low, high
    return np.minimum(low, recovery - np.minimum(w, 0.0)), np.maximum(high, -recovery - np.maximum(w, 0.0))


# Projections


def nearest_in_disc(radius: Any, x: Sequence[Any]) -> list[Any]:
    """The point nearest to x, of one component or two, in the disc with a radius ≥ 0 about the origin."""
    if len(x) == 1:
        return [np.clip(x[0], -radius, radius)]
    length = np.hypot(*x)
    outside = length > radius
    scale = np.where(outside, radius / np.where(outside, length, 1.0), 1.0)
    return [scale * own for own in x]


def inside_cone(friction: Friction, lam: Array) -> Array:
    """Impulses brought into a contact's cone: λ_n ≥ 0, and less friction; arguments as for `cone_error`."""
    normal = np.maximum(lam[0], 0.0)
    rows = [nearest_in_disc(size * normal, lam[own]) for size, own in discs(friction)]
    return np.array([normal, *(x for own in rows for x in own)])


def nearest_in_cone(friction: Friction, lam: Array) -> Array:
    """The nearest impulses in a contact's cone, by Euclid's distance; arguments as for `cone_error`.

    Those of a disc of coefficient µ have the length min(T, µ n), with T that of the argument's, where n is the root of
    n − λ_n − Σ µ max(T − µ n, 0): the least of some rising lines, one for each choice of discs that are at their
    bounds, hence the largest of their roots.
    """
    lines = [(lam[0], 1.0)]
    for size, own in discs(friction):
        pull = size * _length(lam[own])
        lines += [(value + pull, slope + size**2) for value, slope in lines]
    normal = reduce(np.maximum, [value / slope for value, slope in lines])
    return inside_cone(friction, np.array([normal, *lam[1:]]))


def _length(x: Sequence[Any]) -> Any:
    return np.abs(x[0]) if len(x) == 1 else np.hypot(*x)


def de_saxce_shift(friction: Friction, w: Array) -> Any:
    """De Saxcé's s(w) = Σ µ |w_t|, m/s, over discs: added to w_n, it makes a contact's law that of a convex problem."""
    return reduce(add, [size * _length(w[own]) for size, own in discs(friction)])


def mobilities(A: Array, friction: Friction) -> list[Any]:
    """How easily each disc of a contact with the block A is moved, 1/kg, or of what turns 1/(kg m²)."""
    turning = [_turning_mobility(A, own) for _, own in discs(friction)[1:]]
    return [tangential_mobility(A), *turning]


def _turning_mobility(A: Array, own: slice) -> Any:
    i, j = own.start, own.stop - 1
    own_mobility = A[i, i] if i == j else larger_eigenvalue(A[i, i], A[i, j], A[j, j])
    return own_mobility + SOFTENING * A[0, 0] + TINY  # with an arm of a metre: not zero where nothing can turn


def tangential_mobility(A: Array) -> Any:
    """How easily a contact with the block A is moved sideways, 1/kg: A_tt's larger eigenvalue, never quite zero."""
    return larger_eigenvalue(A[1, 1], A[1, 2], A[2, 2]) + SOFTENING * A[0, 0] + TINY


def larger_eigenvalue(xx: Any, xy: Any, yy: Any) -> Any:
    """The larger eigenvalue of a symmetric 2 × 2 matrix."""
    return 0.5 * (xx + yy) + np.hypot(0.5 * (xx - yy), xy)


# Residuals: (λ − P(λ − r w)) / r, zero where a law holds, as velocities


def interval_error(mobility: Any, lower: Any, upper: Any, lam: Any, w: Any) -> Any:
    """How far a row with lower ≤ λ ≤ upper is from its law: w = 0 in between, w ≥ 0 at lower, w ≤ 0 at upper.

    The bounds may be infinite; other arguments are as for `cone_error`, of a row.
    """
    return np.clip(w, mobility * (lam - upper), mobility * (lam - lower))


def cone_error(friction: Friction, mobility: Sequence[Any], lam: Array, w: Array) -> Array:
    """How far a contact is from its law, row by row; friction is judged by the bounds that λ_n, as it is, gives it.

    Args:
        friction: its coefficients: µ; with torsion τ, m; with rolling ρ, m.
        mobility: 1/r of the normal and of each disc, 1/kg (of what turns: 1/(kg m²)).
        lam, w: 3, 4 or 6 each, impulses, N s (N m s), and velocities, m/s (rad/s).
    """
    normal = np.maximum(lam[0], 0.0)
    rows = [np.minimum(mobility[0] * lam[0], w[0])]
    for (size, own), m in zip(discs(friction), mobility[1:], strict=True):
        wanted = [m * x for x in lam[own]]
        target = [x - y for x, y in zip(wanted, w[own], strict=True)]
        rows += [x - y for x, y in zip(wanted, nearest_in_disc(m * size * normal, target), strict=True)]
    return np.array(rows)


def cone_residual(friction: Friction, mobility: Sequence[Any], lam: Array, w: Array) -> Any:
    """How far a contact is from its law, m/s (rad/s): of normal and discs the most. Arguments as for `cone_error`."""
    error = cone_error(friction, mobility, lam, w)
    return reduce(np.maximum, [np.abs(error[0]), *(_length(error[own]) for _, own in discs(friction))])


# Steps


def projected_step(A: Array, steps: Sequence[Any], friction: Friction, lam: Array, w: Array) -> Array:
    """λ ← P(λ − r w) of a contact: normal, tangents, spin, rolling, each with the velocities that those before leave.

    Args:
        A: its block, 3 × 3, 4 × 4 or 6 × 6.
        steps: r of the normal and of each disc, kg (kg m²).
        friction, lam, w: as for `cone_error`.
    """
    n, x, y = unprojected_step(A, steps[0], steps[1], lam, w)
    new = [n, *nearest_in_disc(friction[0] * n, [x, y])]
    return turning_step(A, steps[2:], friction, lam, w, new)


def turning_step(A: Array, steps: Sequence[Any], friction: Friction, lam: Array, w: Array, new: Sequence[Any]) -> Array:
    """The last half of `projected_step`: spin and rolling, with new impulses of normal and tangents."""
    new = list(new)
    for (size, own), step in zip(discs(friction)[1:], steps, strict=True):
        own_w = [w[i] + sum(A[i][j] * (new[j] - lam[j]) for j in range(len(new))) for i in range(own.start, own.stop)]
        target = [x - step * y for x, y in zip(lam[own], own_w, strict=True)]
        new += nearest_in_disc(size * new[0], target)
    return np.array(new)


def unprojected_step(A: Array, normal_step: Any, tangent_step: Any, lam: Array, w: Array) -> tuple[Any, Any, Any]:
    """λ_n of a projected step, and λ_t − r w_t with what that leaves."""
    normal = np.maximum(lam[0] - w[0] * normal_step, 0.0)
    x = lam[1] - (w[1] + A[0][1] * (normal - lam[0])) * tangent_step
    y = lam[2] - (w[2] + A[0][2] * (normal - lam[0])) * tangent_step
    return normal, x, y


# Joints


def joint_update(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> Any:
    """The impulse of a joint that may move with velocities between low and high, and is braked by dry friction.

    Args:
        a: its mobility, the diagonal entry of A.
        low, high: the velocities that take it to its limits within the step, rad/s or m/s.
        bound: the largest impulse of friction, N m s or N s.
        lam, w: impulse and velocity as they are.
    """
    free, step = w - a * lam, 1.0 / (a + TINY)
    brake, braked = _braked(a, bound, free)
    return np.where(braked < low, (low - free) * step, np.where(braked > high, (high - free) * step, brake))


def joint_regime(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> tuple[Any, Any, Any]:
    """Where a joint is on its law: the velocity that it is held at, whether it is held, and what friction does if not.

    Arguments are those of `joint_update`.
    """
    brake, braked = _braked(a, bound, w - a * lam)
    stopped = (braked < low) | (braked > high)
    target = np.where(braked < low, low, np.where(braked > high, high, 0.0))
    return target, stopped | (np.abs(brake) < bound), brake


def joint_parts(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> tuple[Any, Any]:
    """What limits and friction do of the impulse of a joint that obeys its law; arguments as for `joint_update`."""
    _, braked = _braked(a, bound, w - a * lam)
    rest = lam - np.where(w > 0.0, -bound, np.where(w < 0.0, bound, np.copysign(bound, lam)))
    pushed = np.where(braked > high, np.minimum(rest, 0.0), 0.0)
    limit = np.where(braked < low, np.maximum(rest, 0.0), pushed)  # of the right sign where w is rounding alone
    return limit, lam - limit


def _braked(a: Any, bound: Any, free: Any) -> tuple[Any, Any]:
    """The impulse of friction on a joint by itself, and the velocity that it leaves."""
    brake = np.clip(-free / (a + TINY), -bound, bound)
    return brake, free + a * brake
