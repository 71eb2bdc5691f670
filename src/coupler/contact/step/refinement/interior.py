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
_LEAST_SIGMA = 1e-3  # of κ, which a correction aims at least at
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


def root_masses(own: View) -> list[Any]:
    """1/√mobility of the normal and of each disc: in these units all contacts look alike."""
    return [np.sqrt(own.normal_step), *np.sqrt(own.disc_steps)]


def by_rows(own: View, values: list[Any]) -> Array:
    """Values of the normal and of each disc, repeated for each of their rows."""
    discs = zip(values[1:], _discs(own), strict=True)
    return np.stack([values[0], *(value for value, (_, _, rows) in discs for _ in range(rows.stop - rows.start))])


def _discs(own: View) -> list[tuple[int, Any, slice]]:
    """The number, the coefficient and the rows of each disc."""
    return [(k, size, rows) for k, (size, rows) in enumerate(laws.discs(own.friction))]


def root_mass(own: View) -> Any:
    """1/√mobility of a joint."""
    return 1.0 / np.sqrt(own.a + laws.TINY)


def start_contact(own: View) -> None:
    n, *others = root_masses(own)
    least = np.minimum(n, others[0])
    nothing = [0.0] * (len(own.inner) - 1)
    own.inner, own.s = (np.stack([x, *nothing]) for x in (least * own.scale, own.speed / least))
    own.phi = np.stack([own.speed / least] * len(others))


def multiply_contact(own: View) -> None:
    own.products = own.products + own.inner @ own.s
    for k in range(len(own.phi)):
        own.products = own.products + own.inner[0] * own.phi[k]
    own.count = own.count + (1.0 + len(own.phi))


def predict_contact(own: View) -> None:
    _interior_contact(own, 0.0, [(0.0, np.zeros(rows.stop - rows.start)) for _, _, rows in _discs(own)])


def correct_contact(own: View) -> None:
    dn, keep = own.d_inner[0], 1.0 - own.centring  # a step that only centres has no second order
    second = []
    for k, size, rows in _discs(own):
        dt, ds, dphi = own.d_inner[rows], own.d_s[rows], own.d_phi[k]
        second.append((keep * (dn * dphi + dt @ ds), keep * (size**2 * dn * ds + dphi * dt)))
    _interior_contact(own, keep * (dn * own.d_s[0]), second)


def _interior_contact(own: View, second_n: Any, second: list[tuple[Any, Any]]) -> None:
    """p and Q of a contact, given the second-order terms of the normal's equation and of each disc's two."""
    n, target = own.inner[0], own.sigma * own.kappa
    own.gap = gap = own.w - own.s
    normal = _normal(n, own.s[0], gap[0], target - n * own.s[0] - second_n)
    discs, missing = [], []
    for (k, size, rows), (second_0, second_t) in zip(_discs(own), second, strict=True):
        t, s, phi = own.inner[rows], own.s[rows], own.phi[k]
        e = -(size**2 * n * s + phi * t) - second_t
        e0 = target - (n * phi + t @ s) - second_0
        discs.append(_disc(size, n, phi, t, s, gap[rows], e0, e))
        missing.append(e0)
    own.p, own.Q = answer(*normal, discs)
    own.e0 = np.stack(missing)


def direct_contact(own: View) -> None:
    """The direction of the step, and how far it may go to stay inside."""
    own.d_inner, own.d_s = own.p - own.Q @ own.dw, own.dw + own.gap
    n, dn = own.inner[0], own.d_inner[0]
    steps, changes = [_longest_positive(n, dn), _longest_positive(own.s[0], own.d_s[0])], []
    for k, size, rows in _discs(own):
        t, s, dt, ds = own.inner[rows], own.s[rows], own.d_inner[rows], own.d_s[rows]
        changes.append((own.e0[k] - own.phi[k] * dn - t @ ds - s @ dt) / n)
        steps.append(_longest_in_cone(size * n, size * dn, t, dt))
        steps.append(_longest_in_cone(own.phi[k], changes[k], size * s, size * ds))
    own.d_phi = np.stack(changes)
    for step in steps:
        own.length = np.minimum(own.length, step)


def foresee_contact(own: View) -> None:
    """Adds up the products that the predicted step would leave."""
    inner, s, phi = (x + own.length * dx for x, dx in _inside(own))
    own.products = own.products + inner @ s
    for k in range(len(phi)):
        own.products = own.products + inner[0] * phi[k]


def _inside(own: View) -> list[tuple[Any, Any]]:
    """The unknowns of a block, and their changes."""
    return [(own.inner, own.d_inner), (own.s, own.d_s), (own.phi, own.d_phi)]


def advance_contact(own: View) -> None:
    own.inner, own.s, own.phi = (x + own.length * dx for x, dx in _inside(own))
    own.impulse = laws.inside_cone(own.friction, own.inner)


# Joints: friction is a disc of one row, and limits are normals, of which the upper one pushes back.


def together(parts: Any) -> Any:
    """The impulse of a joint, from those of its friction, its lower limit and its upper limit."""
    return np.array([parts[0] + parts[1] - parts[2]])


def near_parts(own: View) -> Any:
    """1 for friction and limits that play a part, 0 for others; none does where limits leave a joint no freedom."""
    reach = _FAR_LIMIT * own.speed * np.sqrt(own.a + laws.TINY)
    apart = np.stack([np.where(own.bound > 0.0, -1.0, 1.0) * reach, own.b[0] - own.low, own.high - own.b[0]])
    return np.where((apart < reach) & (own.low < own.high), 1.0, 0.0)


def start_joint(own: View) -> None:
    mass, near = root_mass(own), near_parts(own)
    own.near, own.inner = near, near * np.stack([0.0, mass * own.scale, mass * own.scale])
    own.s = np.stack([0.0, own.speed / mass, own.speed / mass])
    own.phi = own.scale * own.speed


def multiply_joint(own: View) -> None:
    own.products = own.products + (own.near * own.inner) @ own.s + own.near[0] * own.phi
    own.count = own.count + own.near[0] + own.near[1] + own.near[2]


def predict_joint(own: View) -> None:
    _interior_joint(own, own.w[0], np.zeros(3), 0.0)


def correct_joint(own: View) -> None:
    keep, (dt, _, _), (ds, _, _) = 1.0 - own.centring, own.d_inner, own.d_s
    second = own.d_inner * own.d_s
    second = keep * np.stack([dt * ds, second[1], second[2]])
    _interior_joint(own, own.w[0], second, keep * own.d_phi * dt)


def _interior_joint(own: View, w: Any, second: Any, second_disc: Any) -> None:
    """p and Q of a joint, given the second-order terms of its equations; a joint without freedom is held."""
    target, near = own.sigma * own.kappa, own.near
    own.gap = gap = near * (np.stack([w, w - own.low, own.high - w]) - own.s)
    t, s = own.inner[:1], own.s[:1]
    own.e0 = near[0] * (target - own.phi - t @ s - second[0])
    e = -(own.bound**2 * s + own.phi * t) - np.array([second_disc])
    p, _, Q = _disc(own.bound, 1.0, own.phi, t, s, gap[:1], own.e0, e)
    parts = [(near[0] * p[0], near[0] * Q[0, 0])]
    for k in (1, 2):
        each = _normal(own.inner[k], own.s[k], gap[k], target - own.inner[k] * own.s[k] - second[k])
        parts.append((near[k] * each[0], near[k] * each[1]))
    stiff = np.where(own.low < own.high, 0.0, 1.0 / (SOFT * (own.a + laws.TINY)))
    parts[1] = parts[1][0] + stiff * (own.low - w), parts[1][1] + stiff
    own.part_p, own.part_Q = (np.stack(values) for values in zip(*parts, strict=True))
    own.p, own.Q = together(own.part_p), np.array([[parts[0][1] + parts[1][1] + parts[2][1]]])


def direct_joint(own: View) -> None:
    change = own.dw[0] * np.array([1.0, 1.0, -1.0])
    own.d_inner, own.d_s = own.part_p - own.part_Q * change, own.near * (change + own.gap)
    t, s, dt, ds = own.inner[:1], own.s[:1], own.d_inner[:1], own.d_s[:1]
    own.d_phi = own.near[0] * (own.e0 - t @ ds - s @ dt)
    for step in (
        *(_longest_positive(x[k], own.near[k] * dx[k]) for x, dx in _inside(own)[:2] for k in (1, 2)),
        _longest_in_cone(own.bound, 0.0, t, dt),
        _longest_in_cone(own.phi, own.d_phi, own.bound * s, own.bound * ds),
    ):
        own.length = np.minimum(own.length, step)


def foresee_joint(own: View) -> None:
    inner, s, phi = (x + own.length * dx for x, dx in _inside(own))
    own.products = own.products + (own.near * inner) @ s + own.near[0] * phi


def advance_joint(own: View) -> None:
    own.inner, own.s, own.phi = (x + own.length * dx for x, dx in _inside(own))
    own.impulse = together(own.inner)


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
