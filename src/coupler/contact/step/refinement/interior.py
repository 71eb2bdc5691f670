"""An interior point method, which comes near a solution from anywhere: it presses all contacts at first.

Velocities have slacks s, each disc of friction has a further unknown φ, and a number κ goes to zero in

    λ s = κ;    ν φ + t·s = κ,    size² ν s + φ t = 0.

For κ = 0 these are the laws themselves: the first of a *normal*, that of a contact or of a joint's limit; the other two
of a *disc*, |t| ≤ size · ν, where ν is the normal impulse of a contact and size is µ, or ν = 1 and size is the largest
impulse of a joint's friction. Friction is not associated: slip does not open the contact. Each iteration predicts a
step for κ = 0, and corrects it for the part of κ that the prediction could not remove, with the prediction's
second-order terms (Mehrotra).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.rows import Layout
from coupler.contact.step.answers import SOFT, answer
from coupler.graph import View

Array = Any  # an ndarray of floats, or of nodes

_INSIDE = 0.995  # of the longest step that stays inside
_LEAST_SIGMA = 1e-3  # the smallest part of κ that a correction aims at
ENDLESS = 1e30  # a length, or a residual, that is above all others
_FAR_LIMIT = 1e4  # times the largest velocity: a joint's limit beyond that plays no part

# κ; Σ λ s and how many products it has; the part of κ to aim at; the length of the step; 1 if it only centres.
STATE = ("kappa", "products", "count", "sigma", "length", "centring")
# Fields of joints with three entries have one for friction, one for the lower limit and one for the upper limit.
JOINT: Layout = dict.fromkeys(("inner", "s", "d_inner", "d_s", "gap", "near", "part_p", "part_Q"), 3)
JOINT |= {"phi": (), "d_phi": (), "e0": ()}


def contact_layout(rows: int, discs: int) -> Layout:
    """The fields of a contact."""
    by_row: Layout = dict.fromkeys(("inner", "s", "d_inner", "d_s", "gap"), rows)
    return by_row | {"phi": discs, "d_phi": discs, "e0": discs}


# States


def average(state: View) -> None:
    state.kappa, state.sigma = state.products / np.maximum(state.count, 1.0), state.centring


def look_ahead(state: View) -> None:
    state.length, state.products = np.minimum(state.length, 1.0), np.array(0.0)


def center(state: View) -> None:
    part = state.products / (np.maximum(state.count, 1.0) * state.kappa + laws.TINY)
    state.sigma = np.where(state.centring > 0.0, 1.0, np.clip(part * part * part, _LEAST_SIGMA, 1.0))
    state.length = np.array(ENDLESS)


def stay_inside(state: View) -> None:
    state.length = np.minimum(_INSIDE * state.length, 1.0)


# Contacts


def root_masses(block: View) -> list[Any]:
    """1/√mobility of the normal and of each disc: in these units all contacts look alike."""
    return [np.sqrt(block.normal_step), *np.sqrt(block.disc_steps)]


def by_rows(block: View, values: list[Any]) -> Array:
    """Values of the normal and of each disc, repeated for each of their rows."""
    discs = zip(values[1:], _discs(block), strict=True)
    return np.stack([values[0], *(value for value, (_, _, rows) in discs for _ in range(rows.stop - rows.start))])


def _discs(block: View) -> list[tuple[int, Any, slice]]:
    """The number, the coefficient and the rows of each disc."""
    return [(k, size, rows) for k, (size, rows) in enumerate(laws.discs(block.friction))]


def root_mass(block: View) -> Any:
    """1/√mobility of a joint."""
    return 1.0 / np.sqrt(block.a + laws.TINY)


def start_contact(block: View) -> None:
    n, *others = root_masses(block)
    least = np.minimum(n, others[0])
    nothing = [0.0] * (len(block.inner) - 1)
    block.inner, block.s = (np.stack([x, *nothing]) for x in (least * block.scale, block.speed / least))
    block.phi = np.stack([block.speed / least] * len(others))


def multiply_contact(block: View) -> None:
    block.products = block.products + block.inner @ block.s
    for k in range(len(block.phi)):
        block.products = block.products + block.inner[0] * block.phi[k]
    block.count = block.count + (1.0 + len(block.phi))


def predict_contact(block: View) -> None:
    _interior_contact(block, 0.0, [(0.0, np.zeros(rows.stop - rows.start)) for _, _, rows in _discs(block)])


def correct_contact(block: View) -> None:
    dn, keep = block.d_inner[0], 1.0 - block.centring  # a step that only centres has no second order
    second = []
    for k, size, rows in _discs(block):
        dt, ds, dphi = block.d_inner[rows], block.d_s[rows], block.d_phi[k]
        second.append((keep * (dn * dphi + dt @ ds), keep * (size**2 * dn * ds + dphi * dt)))
    _interior_contact(block, keep * (dn * block.d_s[0]), second)


def _interior_contact(block: View, second_n: Any, second: list[tuple[Any, Any]]) -> None:
    """Computes p and Q of a contact, given second-order terms: one for the normal, two for each disc."""
    n, target = block.inner[0], block.sigma * block.kappa
    block.gap = gap = block.w - block.s
    normal = _normal(n, block.s[0], gap[0], target - n * block.s[0] - second_n)
    discs, missing = [], []
    for (k, size, rows), (second_0, second_t) in zip(_discs(block), second, strict=True):
        t, s, phi = block.inner[rows], block.s[rows], block.phi[k]
        e = -(size**2 * n * s + phi * t) - second_t
        e0 = target - (n * phi + t @ s) - second_0
        discs.append(_disc(size, n, phi, t, s, gap[rows], e0, e))
        missing.append(e0)
    block.p, block.Q = answer(*normal, discs)
    block.e0 = np.stack(missing)


def direct_contact(block: View) -> None:
    """Computes the direction of a contact's step, and how far the step may go to stay inside."""
    block.d_inner, block.d_s = block.p - block.Q @ block.dw, block.dw + block.gap
    n, dn = block.inner[0], block.d_inner[0]
    steps, changes = [_longest_positive(n, dn), _longest_positive(block.s[0], block.d_s[0])], []
    for k, size, rows in _discs(block):
        t, s, dt, ds = block.inner[rows], block.s[rows], block.d_inner[rows], block.d_s[rows]
        changes.append((block.e0[k] - block.phi[k] * dn - t @ ds - s @ dt) / n)
        steps.append(_longest_in_cone(size * n, size * dn, t, dt))
        steps.append(_longest_in_cone(block.phi[k], changes[k], size * s, size * ds))
    block.d_phi = np.stack(changes)
    for step in steps:
        block.length = np.minimum(block.length, step)


def foresee_contact(block: View) -> None:
    """Adds the products of complementarity that the predicted step would leave."""
    inner, s, phi = (x + block.length * dx for x, dx in _inside(block))
    block.products = block.products + inner @ s
    for k in range(len(phi)):
        block.products = block.products + inner[0] * phi[k]


def _inside(block: View) -> list[tuple[Any, Any]]:
    """The unknowns of a block, and their changes."""
    return [(block.inner, block.d_inner), (block.s, block.d_s), (block.phi, block.d_phi)]


def advance_contact(block: View) -> None:
    block.inner, block.s, block.phi = (x + block.length * dx for x, dx in _inside(block))
    block.impulse = laws.inside_cone(block.friction, block.inner)


# Joints: friction is a disc of one row, and limits are normals, of which the upper one pushes back.


def together(parts: Any) -> Any:
    """The impulse of a joint, from those of its friction, its lower limit and its upper limit."""
    return np.array([parts[0] + parts[1] - parts[2]])


def near_parts(block: View) -> Any:
    """1 for friction and each limit that matters, 0 for others; none matters where limits leave a joint no freedom."""
    reach = _FAR_LIMIT * block.speed * np.sqrt(block.a + laws.TINY)
    apart = np.stack([np.where(block.bound > 0.0, -1.0, 1.0) * reach, block.b[0] - block.low, block.high - block.b[0]])
    return np.where((apart < reach) & (block.low < block.high), 1.0, 0.0)


def start_joint(block: View) -> None:
    mass, near = root_mass(block), near_parts(block)
    block.near, block.inner = near, near * np.stack([0.0, mass * block.scale, mass * block.scale])
    block.s = np.stack([0.0, block.speed / mass, block.speed / mass])
    block.phi = block.scale * block.speed


def multiply_joint(block: View) -> None:
    block.products = block.products + (block.near * block.inner) @ block.s + block.near[0] * block.phi
    block.count = block.count + block.near[0] + block.near[1] + block.near[2]


def predict_joint(block: View) -> None:
    _interior_joint(block, block.w[0], np.zeros(3), 0.0)


def correct_joint(block: View) -> None:
    keep, (dt, _, _), (ds, _, _) = 1.0 - block.centring, block.d_inner, block.d_s
    second = block.d_inner * block.d_s
    second = keep * np.stack([dt * ds, second[1], second[2]])
    _interior_joint(block, block.w[0], second, keep * block.d_phi * dt)


def _interior_joint(block: View, w: Any, second: Any, second_disc: Any) -> None:
    """Computes p and Q of a joint, given second-order terms; a joint without freedom is held."""
    target, near = block.sigma * block.kappa, block.near
    block.gap = gap = near * (np.stack([w, w - block.low, block.high - w]) - block.s)
    t, s = block.inner[:1], block.s[:1]
    block.e0 = near[0] * (target - block.phi - t @ s - second[0])
    e = -(block.bound**2 * s + block.phi * t) - np.array([second_disc])
    p, _, Q = _disc(block.bound, 1.0, block.phi, t, s, gap[:1], block.e0, e)
    parts = [(near[0] * p[0], near[0] * Q[0, 0])]
    for k in (1, 2):
        each = _normal(block.inner[k], block.s[k], gap[k], target - block.inner[k] * block.s[k] - second[k])
        parts.append((near[k] * each[0], near[k] * each[1]))
    stiff = np.where(block.low < block.high, 0.0, 1.0 / (SOFT * (block.a + laws.TINY)))
    parts[1] = parts[1][0] + stiff * (block.low - w), parts[1][1] + stiff
    block.part_p, block.part_Q = (np.stack(values) for values in zip(*parts, strict=True))
    block.p, block.Q = together(block.part_p), np.array([[parts[0][1] + parts[1][1] + parts[2][1]]])


def direct_joint(block: View) -> None:
    change = block.dw[0] * np.array([1.0, 1.0, -1.0])
    block.d_inner, block.d_s = block.part_p - block.part_Q * change, block.near * (change + block.gap)
    t, s, dt, ds = block.inner[:1], block.s[:1], block.d_inner[:1], block.d_s[:1]
    block.d_phi = block.near[0] * (block.e0 - t @ ds - s @ dt)
    for step in (
        *(_longest_positive(x[k], block.near[k] * dx[k]) for x, dx in _inside(block)[:2] for k in (1, 2)),
        _longest_in_cone(block.bound, 0.0, t, dt),
        _longest_in_cone(block.phi, block.d_phi, block.bound * s, block.bound * ds),
    ):
        block.length = np.minimum(block.length, step)


def foresee_joint(block: View) -> None:
    inner, s, phi = (x + block.length * dx for x, dx in _inside(block))
    block.products = block.products + (block.near * inner) @ s + block.near[0] * phi


def advance_joint(block: View) -> None:
    block.inner, block.s, block.phi = (x + block.length * dx for x, dx in _inside(block))
    block.impulse = together(block.inner)


# How laws answer: Δλ = p − Q Δw


def _normal(lam: Any, s: Any, gap: Any, e: Any) -> tuple[Any, Any]:
    """p and Q of a normal, for λ Δs + s Δλ = e and Δs = Δw + gap."""
    q = lam / s
    return e / s - q * gap, q


def _disc(
    size: Any, nu: Any, phi: Any, t: Array, s: Array, gap: Array, e0: Any, e: Array
) -> tuple[Array, Array, Array]:
    """p (2), its derivative by ν (2), and Q (2 × 2) of a disc, for Δs = Δw + gap, its equations changing by e0 and e.

    Without Δφ: (ν φ − t sᵀ) Δt = ν e − t e0 − (size² ν² − t tᵀ) Δs − (size² ν s − φ t) Δν.
    """
    area, whole = size * size * nu, nu * phi
    one = 1.0 / whole
    two = one / (whole - s @ t)

    def solved(x: Array) -> Array:
        """(ν φ − t sᵀ)⁻¹ x, after Sherman and Morrison."""
        return one * x + (two * (s @ x)) * t

    columns = area * nu * np.eye(len(t)) - t[:, None] * t
    Q = np.stack([solved(columns[:, j]) for j in range(len(t))], axis=1)
    return solved(nu * e - e0 * t) - Q @ gap, solved(phi * t - area * s), Q


def _longest_positive(value: Any, change: Any) -> Any:
    """The longest step along a change that keeps a value ≥ 0."""
    falls = change < 0.0
    return np.where(falls, -value / np.where(falls, change, -1.0), ENDLESS)


def _longest_in_cone(c: Any, dc: Any, t: Array, dt: Array) -> Any:
    """The longest step along (dc, dt) that keeps |t| ≤ c, from inside."""
    a, h = dc * dc - dt @ dt, c * dc - t @ dt
    f = np.maximum(c * c - t @ t, 0.0)
    square = h * h - a * f
    ends = ((a < 0.0) | (h < 0.0)) & (square >= 0.0)
    divisor = np.sqrt(np.maximum(square, 0.0)) - h  # of the least root of a x² + 2 h x + f
    return np.where(ends & (divisor > 0.0), f / np.where(divisor > 0.0, divisor, 1.0), ENDLESS)
