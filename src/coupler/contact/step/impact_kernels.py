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
from coupler.contact.step.blocks import BlockKernel
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
    """Decides whether the next round is the last, which settles: nothing rebounds any more, or rounds are used up."""
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
    """Splits velocities after impacts into those with which positions move, and a jump."""
    row.jump, row.v = row.v - row.position_v, row.position_v


# Kernels of joints


def hold_at_limits(block: View) -> None:
    """Sets the limits of a joint in impacts: it must not pass a limit that the step takes it to; others are ignored."""
    w, block.impulse = block.w[0], 0.0 * block.impulse
    block.low = np.where(w > block.low + RESTING_SPEED, -_UNLIMITED, 0.0)
    block.high = np.where(w < block.high - RESTING_SPEED, _UNLIMITED, 0.0)


# Kernels of contacts


def clear_impulse(block: View) -> None:
    block.impulse = 0.0 * block.impulse


def pressing(law: Restitution) -> BlockKernel:
    def press(block: View) -> None:
        """Notes whether a contact has pressed, and whether it is an impact.

        Of λ_n ⊥ w_n one is zero, to rounding: the contact has pressed if w_n is the one.
        """
        pressed = block.A[0, 0] * block.impulse[0] > block.w[0]
        block.pressed = np.where(pressed, 1.0, 0.0)
        if law.elastic:
            fast = hits(block.threshold, block.free[0], block.free[0] - block.approach[0])
            hit = pressed & (block.joining <= 0.0) & fast & can_rebound(block.normal, block.tangential)
            block.hit = np.maximum(block.hit, np.where(hit, 1.0, 0.0))

    return press


def looking(law: Restitution) -> BlockKernel:
    def look(block: View) -> None:
        """Stores the velocity with which a contact enters the next round, and whether it hits."""
        block.came = block.free + block.dw[:3]
        block.approaching = np.maximum(block.approaching, np.where(block.came[0] < -RESTING_SPEED, 1.0, 0.0))
        if law.elastic:
            fast = hits(block.threshold, block.came[0], block.free[0] - block.approach[0])
            hit = fast & can_rebound(block.normal, block.tangential)
            block.hit = np.maximum(block.hit, np.where(hit, 1.0, 0.0))

    return look


def choosing(law: Restitution) -> BlockKernel:
    def choose(block: View) -> None:
        """Chooses whether a contact takes part in a round, and with which coefficients."""
        settling, w, change = block.settling > 0.0, block.came[0], block.free[0] - block.approach[0]
        elastic = can_rebound(block.normal, block.tangential) if law.elastic else False
        block.active = np.where(takes_part(elastic, w, settling), 1.0, 0.0)
        block.e, block.last, block.before = np.zeros(3), 0.0 * block.last, block.came
        target = block.free
        if law.elastic:
            closure, approach = block.gap * block.pace, block.approach[0]
            first = impact_coefficients(block.normal, block.tangential, w, approach, change, closure, block.lag)
            e = np.where(block.first > 0.0, first, np.stack([block.normal, block.tangential, block.tangential]))
            block.e = np.where(np.logical_not(settling) & hits(block.threshold, w, change), e, 0.0)
            if law.form == "velocity":
                target = block.free + block.e * block.came
        block.b = np.concatenate([target, block.b[3:]])  # rows of torsion and rolling have no gap, and do not rebound

    return choose


def taking(law: Restitution) -> BlockKernel:
    def take(block: View) -> None:
        """Passes the impulse of a round on to the rounds that follow."""
        straight = impact_impulse(law.form, block.friction[0], block.e, block.impulse[:3], block.w[:3], block.came)
        block.last = np.concatenate([straight, block.impulse[3:]])
        block.given, block.impulse = block.given + block.last, 0.0 * block.impulse

    return take


def add_energy(block: View) -> None:
    block.energy = block.energy + energy_parts(block.e[0], block.last[:3], block.before, block.came)


def scale_down(block: View) -> None:
    block.given = block.given - (1.0 - block.scale) * block.last


def sum_up(block: View) -> None:
    block.impulse = block.given
