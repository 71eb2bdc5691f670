"""A path to a solution: laws are smoothed, and become sharp again along a path that may turn back on its way.

Friction is not associated. So the way of an interior point can fold, and end there. Here the path is followed by its
length, past folds. With impulses and velocities in units of unit mobility, and θ = τ θ₀,

    λ = P_θ(λ − w − τ c),    P_θ(z) = (z + √(z² + 4 θ²)) / 2 of a normal,    k z of a disc, with |k z| below its bound:

at τ = 1 any point is on the path, with a c that makes up for what is missing; at τ = 0 this is the law itself. One
linear system gives the tangent of the path and a correction across it. The sign of its determinant tells which way is
onwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.rows import Layout
from coupler.contact.step.answers import SOFT, answer
from coupler.contact.step.refinement.interior import ENDLESS, by_rows, near_parts, root_mass, root_masses, together
from coupler.graph import View

Array = Any  # an ndarray of floats, or of nodes

_GOOD, _BAD = (
    0.3,
    0.8,
)  # of the step: after a smaller correction the path goes on, after a larger one the step is undone
_GROWTH, _SHRINKAGE = 3.0, 0.25  # of steps: at most, when all is well; and when a step is undone
_FIRST = 0.5  # of θ₀ √(number of normals): the first step
_NEARER = 0.5  # of τ where Newton's method was tried last: it is tried again only so much nearer to the end
_EVERY = 3.0  # steps after which it is tried, if the end is not in reach before
_SHORT_OF_END = 0.9  # of the way to τ = 0 along the tangent: the longest step
_LEAST_LEFT = 0.1  # of τ: what a correction leaves at least

STATE = (
    *("theta", "tau", "step", "home", "tried_at", "base_tau", "since"),
    *("ss", "st", "tt"),  # squares and product of correction and tangent
    *("retreat", "rebase"),  # flags: undo the step; keep this point to go back to
    *("slide", "hop", "reach"),  # how far to go along the tangent: to correct, to go on, and to the end
    "tries",  # flag: try Newton's method
)
_FIELDS = ("track", "base", "c", "move", "tangent", "rate")
JOINT: Layout = dict.fromkeys((*_FIELDS, "part_rate"), 3)


def contact_layout(rows: int) -> Layout:
    """The fields of a contact."""
    return dict.fromkeys(_FIELDS, rows)


# States


def clear_sums(state: View) -> None:
    state.ss = state.st = state.tt = np.array(0.0)


def begin(state: View) -> None:
    state.tau = state.home = state.base_tau = np.array(1.0)
    state.step = _FIRST * state.theta * np.sqrt(state.normals)
    state.tried_at, state.since = np.array(ENDLESS), np.array(0.0)


def decide(state: View, sign: Any) -> None:
    """Decides whether to correct, undo or follow the path, and whether to try Newton's method from its end."""
    theta, step, tau = state.theta, state.step, state.tau
    square = state.tt + theta * theta
    length = np.sqrt(square)
    size = np.sqrt(np.maximum(state.ss - state.st * state.st / square, 0.0))
    home = state.home > 0.0
    retreat = np.logical_not(size <= _BAD * step) & np.logical_not(home)
    retreat = retreat | np.logical_not(size < ENDLESS)  # where numbers are not finite
    corrected = np.maximum(tau - state.st / square, _LEAST_LEFT * tau)
    good = np.logical_not(retreat) & (size <= _GOOD * step)
    grown = step * np.clip(np.sqrt(0.5 * _GOOD * step / (size + laws.TINY)), 0.5, _GROWTH)
    falls = good & (sign > 0.0)  # along the tangent, τ goes down
    full = corrected * length
    since = state.since + np.where(good, 1.0, 0.0)
    tries = falls & ((grown >= full) | (since >= _EVERY)) & (corrected < _NEARER * state.tried_at)
    taken = np.where(falls, np.minimum(grown, _SHORT_OF_END * full), grown)
    state.retreat, state.tries = np.where(retreat, 1.0, 0.0), np.where(tries, 1.0, 0.0)
    state.rebase = np.where(good | (home & np.logical_not(retreat)), 1.0, 0.0)
    state.slide = -state.st / square
    state.hop = np.where(good, -sign * taken / length, 0.0)
    state.reach = np.where(tries, -sign * full / length, 0.0)
    state.tried_at = np.where(tries, corrected, state.tried_at)
    state.since = np.where(tries, 0.0, since)
    state.step = np.where(retreat, _SHRINKAGE * step, np.where(good, taken, step))
    state.home = np.where(retreat, 1.0, np.where(good, 0.0, state.home))
    after = np.where(good, corrected - sign * taken / length, corrected)
    state.tau = np.where(retreat, state.base_tau, after)
    state.base_tau = np.where(state.rebase > 0.0, corrected, state.base_tau)


# Blocks of both kinds


def follow(block: View) -> None:
    """Moves on along the path, or back to its last good point."""
    corrected = block.track + block.move + block.slide * block.tangent
    block.ahead = corrected + block.reach * block.tangent
    block.track = np.where(block.retreat > 0.0, block.base, corrected + block.hop * block.tangent)
    block.base = np.where(block.rebase > 0.0, corrected, block.base)


def measure_move(block: View) -> None:
    block.ss = block.ss + block.move @ block.move


def measure_tangent(block: View) -> None:
    block.st, block.tt = block.st + block.move @ block.tangent, block.tt + block.tangent @ block.tangent


# Contacts


def _units(block: View) -> Array:
    return by_rows(block, root_masses(block))


def place_contact(block: View) -> None:
    """Places a contact on the path at τ = 1, from start impulses; c still lacks the velocities of that point."""
    d = _units(block)
    z = block.origin / d - d * block.w
    n = _smooth(block.theta, z[0])[0]
    parts = [np.array([n])]
    for size, rows in laws.discs(block.friction):
        k = _shrinkage(block.theta, size * d[0] / d[rows.start] * n, z[rows])[0]
        parts.append(k * z[rows])
    block.track = block.base = np.concatenate(parts)
    block.c = block.track - z


def complete_contact(block: View) -> None:
    block.c = block.c - _units(block) * block.w


def impulses_of_contact(block: View) -> Array:
    """λ of a contact at the present point of the path."""
    return _units(block) * block.track


def push_contact(block: View) -> None:
    block.pushed = impulses_of_contact(block)


def linearise_contact(block: View) -> None:
    d = _units(block)
    w = d * block.w + block.tau * block.c
    theta = block.tau * block.theta
    P, p, q, rate = _normal(theta, block.theta, block.c[0], block.track[0], w[0])
    discs, rates = [], [np.array([rate])]
    for coefficient, rows in laws.discs(block.friction):
        size = coefficient * d[0] / d[rows.start]
        pt, g, Qt, rate_t = _disc(theta, block.theta, size, P, block.c[rows], block.track[rows], w[rows])
        discs.append((pt + (block.track[0] - P) * g, g, Qt))
        rates.append(rate_t + rate * g)
    p, Q = answer(p, q, discs)
    block.p, block.Q, block.rate = d * p, d[:, None] * Q * d, d * np.concatenate(rates)


def move_contact(block: View) -> None:
    block.move = (block.p - block.Q @ block.dw) / _units(block)
    measure_move(block)
    block.p = block.rate


def turn_contact(block: View) -> None:
    block.tangent = (block.p - block.Q @ block.dw) / _units(block)
    measure_tangent(block)


def end_contact(block: View) -> None:
    follow(block)
    ahead = laws.inside_cone(block.friction, _units(block) * block.ahead)
    block.impulse = np.where(block.tries > 0.0, ahead, block.best)


# Joints: friction, lower and upper limit


def _slacks(block: View, w: Any) -> Array:
    return root_mass(block) * np.stack([w, w - block.low, block.high - w])


def place_joint(block: View) -> None:
    d, start = root_mass(block), block.origin[0]
    block.near = near = near_parts(block)
    parts = np.stack([start, 0.0, 0.0]) / d
    parts = np.where(block.bound > 0.0, parts, np.stack([0.0, np.maximum(start, 0.0), np.maximum(-start, 0.0)]) / d)
    z = parts - _slacks(block, block.w[0])
    k = _shrinkage(block.theta, block.bound / d, z[:1])[0]
    smooth = np.stack([k * z[0], _smooth(block.theta, z[1])[0], _smooth(block.theta, z[2])[0]])
    block.track = block.base = np.where(block.low < block.high, near * smooth, parts)
    block.c = near * (block.track - z)


def complete_joint(block: View) -> None:
    block.c = block.c - block.near * _slacks(block, block.w[0])


def impulse_of_joint(block: View) -> Array:
    """λ of a joint at the present point of the path."""
    return root_mass(block) * together(block.track)


def push_joint(block: View) -> None:
    block.pushed = impulse_of_joint(block)


def linearise_joint(block: View) -> None:
    d, w = root_mass(block), block.w[0]
    slacks, theta = _slacks(block, w) + block.tau * block.c, block.tau * block.theta
    pt, _, Qt, rate_t = _disc(theta, block.theta, block.bound / d, 1.0, block.c[:1], block.track[:1], slacks[:1])
    parts = [(pt[0], Qt[0, 0], rate_t[0])]
    parts += [_normal(theta, block.theta, block.c[k], block.track[k], slacks[k])[1:] for k in (1, 2)]
    stiff = np.where(block.low < block.high, 0.0, 1.0 / SOFT)  # of a joint that cannot move
    p, Q, rate = (block.near * np.stack(values) for values in zip(*parts, strict=True))
    block.part_p = p - stiff * np.stack([0.0, slacks[1], 0.0])
    block.part_Q, block.part_rate = Q + stiff * np.array([0.0, 1.0, 0.0]), rate
    block.p, block.Q = (
        d * together(block.part_p),
        d * d * np.array([[block.part_Q[0] + block.part_Q[1] + block.part_Q[2]]]),
    )


def _answers(block: View) -> Array:
    return block.part_p - block.part_Q * (root_mass(block) * block.dw[0]) * np.array([1.0, 1.0, -1.0])


def move_joint(block: View) -> None:
    block.move = _answers(block)
    measure_move(block)
    block.part_p = block.part_rate
    block.p = root_mass(block) * together(block.part_p)


def turn_joint(block: View) -> None:
    block.tangent = _answers(block)
    measure_tangent(block)


def end_joint(block: View) -> None:
    follow(block)
    block.impulse = np.where(block.tries > 0.0, root_mass(block) * together(block.ahead), block.best)


# How smoothed laws answer: Δλ = p − Q Δw + rate Δτ


def _smooth(theta: Any, z: Any) -> tuple[Any, Any]:
    """The smoothed positive part P of z, with P (P − z) = θ², and √(z² + 4 θ²)."""
    root = np.sqrt(z * z + 4.0 * theta * theta) + laws.TINY
    return np.where(z > 0.0, 0.5 * (z + root), 2.0 * theta * theta / (root + np.abs(z))), root


def _normal(theta: Any, theta0: Any, c: Any, lam: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """P, p, Q and the derivative by τ of a normal."""
    P, root = _smooth(theta, lam - w)
    slope = P / root
    soft = 1.0 / (1.0 - (1.0 - SOFT) * slope)
    return P, soft * (P - lam), soft * slope, soft * (2.0 * theta / root * theta0 - slope * c)


def _shrinkage(theta: Any, radius: Any, z: Array) -> tuple[Any, Any, Any, Any]:
    """k of a disc, t = k z with |t| below the radius, and its derivatives by z (times 1/z), radius and θ."""
    a = np.sqrt(z @ z + theta * theta) + laws.TINY
    root = np.sqrt((a - radius) ** 2 + 4.0 * theta * theta) + laws.TINY
    larger = 0.5 * (a + radius + root)
    by_a, by_radius = 0.5 * (1.0 + (a - radius) / root), 0.5 * (1.0 - (a - radius) / root)
    k = radius / larger
    rate = -k * by_a / larger
    by_theta = -k * (2.0 * theta / root) / larger + rate * theta / a
    return k, rate / a, (1.0 - k * by_radius) / larger, by_theta


def _disc(
    theta: Any, theta0: Any, size: Any, nu: Any, c: Array, t: Array, w: Array
) -> tuple[Array, Array, Array, Array]:
    """p, its derivative by ν, Q, and the derivative by τ, of a disc."""
    z, firm = t - w, 1.0 - SOFT
    k, kz, by_radius, by_theta = _shrinkage(theta, size * nu, z)
    one = 1.0 / (1.0 - firm * k)
    two = firm * kz * one / np.maximum(1.0 - firm * k - firm * kz * (z @ z), laws.TINY)

    def solved(x: Array) -> Array:
        """(1 − (1 − ε) P')⁻¹ x, after Sherman and Morrison."""
        return one * x + (two * (z @ x)) * z

    slopes = k * np.eye(len(z)) + kz * z[:, None] * z
    Q = np.stack([solved(slopes[:, j]) for j in range(len(z))], axis=1)
    rate = solved(by_theta * theta0 * z - slopes @ c)
    return solved(k * z - t), solved(by_radius * size * z), Q, rate
