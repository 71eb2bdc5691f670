"""The laws of contacts and joints, each written once: on floats, on arrays of many contacts, or on nodes of a trace.

Impulses λ and velocities w of a contact come components first: the normal n, two tangents t and, with torsion, the spin
s about the normal. Friction is Coulomb's with a round cone: 0 ≤ w_n ⊥ λ_n ≥ 0, and λ_t dissipates most among
|λ_t| ≤ µ λ_n; [002, eq. 1, 2] have a polygon in place of the circle. With torsion, λ_s dissipates most among
|λ_s| ≤ τ λ_n.

The law of a block can be written λ = P(λ − r w), where P gives the nearest admissible impulses and r > 0 is the inverse
of a mobility. Projections, residuals and projected steps say just that, and all solvers share them.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.wording import listed

__all__ = [
    "PENETRATION",
    "RECOVERY",
    "SOFTENING",
    "TINY",
    "cone_error",
    "cone_residual",
    "de_saxce_shift",
    "gap_seen",
    "inside_cone",
    "interval_error",
    "joint_parts",
    "joint_regime",
    "joint_update",
    "larger_eigenvalue",
    "let_out",
    "limit_velocities",
    "nearest_in_cone",
    "nearest_in_disc",
    "projected_step",
    "tangential_mobility",
    "unprojected_step",
]

Array = Any  # an ndarray of floats, or of nodes

PENETRATION = {"position": -inf, "velocity": 0.0, "limited": -1e-5}  # the deepest gap that counts, m [002, §4.1]

RECOVERY = 0.1  # m/s: what starts overlapped is let out so fast, and then rises by no more than v²/2g = 0.5 mm

SOFTENING = 1e-6  # of a block's mobility, added to it: directions that no impulse moves get no impulse
TINY = 1e-60  # added to divisors that may be zero (1/kg, or squares of impulses): far below all that matters


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


def nearest_in_disc(radius: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The point nearest to (x, y) of the disc with a radius ≥ 0 about the origin."""
    length = np.hypot(x, y)
    outside = length > radius
    scale = np.where(outside, radius / np.where(outside, length, 1.0), 1.0)
    return scale * x, scale * y


def inside_cone(friction: Any, lam: Array, torsion: Any = None) -> Array:
    """Impulses brought into a contact's cone: λ_n ≥ 0, and less friction; arguments as for `cone_error`."""
    normal = np.maximum(lam[0], 0.0)
    rows = [normal, *nearest_in_disc(friction * normal, lam[1], lam[2])]
    return np.array(rows if torsion is None else [*rows, np.clip(lam[3], -torsion * normal, torsion * normal)])


def nearest_in_cone(friction: Any, lam: Array, torsion: Any = None) -> Array:
    """The nearest impulses in a contact's cone, by Euclid's distance; arguments as for `cone_error`.

    They have |λ_t| = min(T, µ n) and |λ_s| = min(S, τ n), with T and S those of the arguments, where n is the root of
    n − λ_n − µ max(T − µ n, 0) − τ max(S − τ n, 0): the least of four rising lines, hence the largest of their roots.
    """
    n, along = lam[0], lam[0] + friction * np.hypot(lam[1], lam[2])
    normal = np.maximum(n, along / (1.0 + friction**2))
    if torsion is not None:
        spin = torsion * np.abs(lam[3])
        normal = np.maximum(normal, (n + spin) / (1.0 + torsion**2))
        normal = np.maximum(normal, (along + spin) / (1.0 + friction**2 + torsion**2))
    return inside_cone(friction, np.array([normal, *lam[1:]]), torsion)


def de_saxce_shift(friction: Any, w: Array, torsion: Any = None) -> Any:
    """De Saxcé's s(w) = µ |w_t| + τ |w_s|, m/s: added to w_n, it makes a contact's law that of a convex problem."""
    shift = friction * np.hypot(w[1], w[2])
    return shift if torsion is None else shift + torsion * np.abs(w[3])


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


def cone_error(friction: Any, mobility: Array, lam: Array, w: Array, torsion: Any = None) -> Array:
    """How far a contact is from its law, row by row; friction is judged by the bounds that λ_n, as it is, gives it.

    Args:
        friction: µ.
        mobility: 3 or 4, 1/r of each row, 1/kg (of the spin: 1/(kg m²)); the two tangents have the same.
        lam, w: 3 or 4 each, impulses, N s (N m s), and velocities, m/s (rad/s).
        torsion: τ, m; None for contacts without a row of spin.
    """
    normal, m = np.maximum(lam[0], 0.0), mobility[1]
    x, y = nearest_in_disc(m * friction * normal, m * lam[1] - w[1], m * lam[2] - w[2])
    rows = [np.minimum(mobility[0] * lam[0], w[0]), m * lam[1] - x, m * lam[2] - y]
    if torsion is not None:
        rows.append(interval_error(mobility[3], -torsion * normal, torsion * normal, lam[3], w[3]))
    return np.array(rows)


def cone_residual(A: Array, friction: Any, lam: Array, w: Array) -> Any:
    """How far a contact with the block A, 3 × 3, is from its law, m/s: of normal and tangents the larger."""
    m = tangential_mobility(A)
    n, x, y = cone_error(friction, [A[0, 0], m, m], lam, w)
    return np.maximum(np.abs(n), np.hypot(x, y))


# Steps


def projected_step(A: Array, steps: Array, friction: Any, lam: Array, w: Array, torsion: Any = None) -> Array:
    """λ ← P(λ − r w) of a contact: normal, tangents, spin, each with the velocities that those before it leave.

    Args:
        A: its block, 3 × 3 or 4 × 4.
        steps: r of each row, kg; the two tangents have the same.
        friction, lam, w, torsion: as for `cone_error`.
    """
    n, x, y = unprojected_step(A, steps[0], steps[1], lam, w)
    x, y = nearest_in_disc(friction * n, x, y)
    if torsion is None:
        return np.array([n, x, y])
    spin = w[3] + A[3][0] * (n - lam[0]) + A[3][1] * (x - lam[1]) + A[3][2] * (y - lam[2])
    return np.array([n, x, y, np.clip(lam[3] - steps[3] * spin, -torsion * n, torsion * n)])


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
