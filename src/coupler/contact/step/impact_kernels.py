"""Kernels of impact.py: of the state, which counts rounds, and of contacts and joints that take part in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.restitution import (
    RESTING_SPEED,
    Restitution,
    can_rebound,
    energy_parts,
    energy_scale,
    hits,
    impact_coefficients,
    impact_impulse,
    takes_part,
)
from coupler.contact.step.blocks import OwnKernel
from coupler.graph import View

MOST_ROUNDS = 60  # of a step, the last one without restitution: 60 balls in a row hand an impact on
_UNLIMITED = 1e10  # rad/s or m/s: stands for a limit that is not reached, so that all numbers stay finite

# Kernels of a state


def nothing_hits(state: View) -> Any:
    return state.hit <= 0.0


def begin_rounds(state: View) -> None:
    state.first, state.rounds, state.settling = np.array(1.0), np.array(0.0), np.array(0.0)


def clear_findings(state: View) -> None:
    state.hit = state.approaching = np.array(0.0)


def decide(state: View) -> None:
    """Whether the next round settles: it does, as the last one, when nothing rebounds any more or rounds are spent."""
    state.approaching = np.where(state.settling > 0.0, 0.0, state.approaching)
    late = state.rounds >= MOST_ROUNDS - 1.0
    state.settling = np.where((state.hit <= 0.0) | late, 1.0, 0.0)
    state.first, state.rounds = np.where(state.rounds > 0.0, 0.0, 1.0), state.rounds + 1.0


def find_scale(state: View) -> None:
    state.scale = energy_scale(state.energy)


def adds_no_energy(state: View) -> Any:
    return state.scale >= 1.0


def clear_scale(state: View) -> None:
    state.scale = np.array(1.0)


def nothing_approaches(state: View) -> Any:
    return state.approaching <= 0.0


def keep_worst(residuals: View) -> None:
    residuals.worst = np.maximum(residuals.worst, residuals.round)


def part_jump(row: View) -> None:
    """Velocities after impacts become those with which positions move, and a jump."""
    row.jump, row.v = row.v - row.position_v, row.position_v


# Kernels of joints


def hold_at_limits(own: View) -> None:
    """A joint that the step takes to a limit must not go beyond it; limits that it does not reach play no part."""
    w, own.impulse = own.w[0], 0.0 * own.impulse
    own.low = np.where(w > own.low + RESTING_SPEED, -_UNLIMITED, 0.0)
    own.high = np.where(w < own.high - RESTING_SPEED, _UNLIMITED, 0.0)


# Kernels of contacts


def clear_impulse(own: View) -> None:
    own.impulse = 0.0 * own.impulse


def pressing(law: Restitution) -> OwnKernel:
    def press(own: View) -> None:
        """Whether a contact has pressed, and whether it is an impact.

        Of λ_n ⊥ w_n one is zero, to rounding: the contact has pressed if that is w_n.
        """
        pressed = own.A[0, 0] * own.impulse[0] > own.w[0]
        own.pressed = np.where(pressed, 1.0, 0.0)
        if law.elastic:
            fast = hits(own.threshold, own.free[0], own.free[0] - own.approach[0])
            hit = pressed & (own.joining <= 0.0) & fast & can_rebound(own.normal, own.tangential)
            own.hit = np.maximum(own.hit, np.where(hit, 1.0, 0.0))

    return press


def looking(law: Restitution) -> OwnKernel:
    def look(own: View) -> None:
        """The velocity with which a contact comes to the next round, and whether it hits."""
        own.came = own.free + own.dw[:3]
        own.approaching = np.maximum(own.approaching, np.where(own.came[0] < -RESTING_SPEED, 1.0, 0.0))
        if law.elastic:
            fast = hits(own.threshold, own.came[0], own.free[0] - own.approach[0])
            hit = fast & can_rebound(own.normal, own.tangential)
            own.hit = np.maximum(own.hit, np.where(hit, 1.0, 0.0))

    return look


def choosing(law: Restitution) -> OwnKernel:
    def choose(own: View) -> None:
        """Whether a contact takes part in a round, and with which coefficients."""
        settling, w, change = own.settling > 0.0, own.came[0], own.free[0] - own.approach[0]
        elastic = can_rebound(own.normal, own.tangential) if law.elastic else False
        own.active = np.where(takes_part(elastic, w, settling), 1.0, 0.0)
        own.e, own.last, own.before = np.zeros(3), 0.0 * own.last, own.came
        target = own.free
        if law.elastic:
            closure, approach = own.gap * own.pace, own.approach[0]
            first = impact_coefficients(own.normal, own.tangential, w, approach, change, closure, own.lag)
            e = np.where(own.first > 0.0, first, np.stack([own.normal, own.tangential, own.tangential]))
            own.e = np.where(np.logical_not(settling) & hits(own.threshold, w, change), e, 0.0)
            if law.form == "velocity":
                target = own.free + own.e * own.came
        own.b = np.concatenate([target, own.b[3:]])  # rows of torsion and rolling have no gap, and do not rebound

    return choose


def taking(law: Restitution) -> OwnKernel:
    def take(own: View) -> None:
        """The impulse of a round is given to the rounds that follow."""
        straight = impact_impulse(law.form, own.friction[0], own.e, own.impulse[:3], own.w[:3], own.came)
        own.last = np.concatenate([straight, own.impulse[3:]])
        own.given, own.impulse = own.given + own.last, 0.0 * own.impulse

    return take


def add_energy(own: View) -> None:
    own.energy = own.energy + energy_parts(own.e[0], own.last[:3], own.before, own.came)


def scale_down(own: View) -> None:
    own.given = own.given - (1.0 - own.scale) * own.last


def sum_up(own: View) -> None:
    own.impulse = own.given
