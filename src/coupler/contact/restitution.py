"""Contacts that rebound, in two steps. [002, §2.1]

In the step in which a contact closes, the inelastic law stops it. In the next one it rebounds, by a modified law:

    velocity (Newton)    w + e w⁻ takes the place of w, with the velocities w⁻ with which it came;
    impulse (Poisson)    λ = e Λ + λ', with the impulses Λ that stopped it, and λ' under the ordinary law;

where e is one number for the normal and one for the tangents: a shift of b, or impulses given in advance. If a contact
that is stopped still slides, friction is given in advance as well, for as long as it slides.

The gap counts in neither step. If the first closed it, a part of the approach would be left to the second, another one
for each place of the impact within its step, and Λ would lack it. So a contact turns where it is when it would close,
and a ball that falls under gravity and rebounds with e = 1 reaches the same height for ever.

What an acceleration makes of a contact at rest within two steps is no impact, or resting contacts would jitter.

With friction both laws can feed energy where e differs between normal and tangents and A couples them, as Kane found;
not where it is the same, nor for balls.

Functions here take floats or nodes of a trace: vectors of a contact have 3 entries, of the normal and two tangents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.laws import inside_cone
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers

__all__ = ["ReboundTerms", "Restitution", "pending_rebound", "rebound_terms"]

Array = Any  # an ndarray of floats, or of nodes

_FORMS = ("velocity", "impulse")
_RESTING_STEPS = 2.0  # velocities that an acceleration makes within so many steps do not rebound
_RESTING_SPEED = 1e-6  # m/s; nor do smaller ones: solvers leave such velocities to contacts at rest


@dataclass(frozen=True)
class Restitution:
    """How contacts rebound.

    Attributes:
        normal: e of the normal: 0 (inelastic) to 1 (elastic).
        tangential: e of the tangents: 0 (a contact that sticks has lost its slip) to 1 (it slips back as fast).
        form: of "velocity" (Newton) or of "impulse" (Poisson).
        threshold: m/s; slower contacts do not rebound. For None, what an acceleration makes within two steps.
    """

    normal: float
    tangential: float = 0.0
    form: str = "velocity"
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name in ("normal", "tangential"):
            value = float(numbers(f"restitution: {name}", getattr(self, name), (), least=0.0))
            if value > 1.0:
                raise ModelError(f"restitution: {name} must be 0 to 1, got {value:g}: more would feed energy")
            object.__setattr__(self, name, value)
        if self.form not in _FORMS:
            raise ModelError(f'restitution: form must be "velocity" or "impulse", got {self.form!r}')
        if self.threshold is not None:
            least = float(numbers("restitution: threshold", self.threshold, (), least=0.0))
            object.__setattr__(self, "threshold", least)


@dataclass(frozen=True, eq=False)
class ReboundTerms:
    """What a contact that can rebound brings into the problem of a step.

    Attributes:
        b: 3, its entries of b, m/s; A times all offsets is still to be added.
        offset: 3, impulses that act in advance, N s; the problem's are added to them.
        closing: whether it is to be stopped, to rebound in the next step.
    """

    b: Array
    offset: Array
    closing: Any


def rebound_terms(
    law: Restitution, friction: float, pending: Array, closure: Any, free: Array, approach: Array
) -> ReboundTerms:
    """What a contact that can rebound brings into the problem of a step.

    Args:
        law: how it rebounds.
        friction: µ.
        pending: 3, what the step before left (see `pending_rebound`); zeros for nothing.
        closure: g/h, its gap as it counts, over the step, m/s.
        free: 3, velocities after the step without impulses, J (v + h a), m/s.
        approach: 3, velocities before the step, J v, m/s.
    """
    rebounds = pending[0] != 0.0
    least = _RESTING_STEPS * np.abs(free[0] - approach[0]) if law.threshold is None else law.threshold
    closing = (approach[0] < -np.maximum(least, _RESTING_SPEED)) & (free[0] + closure < 0.0) & np.logical_not(rebounds)
    counted = np.where(rebounds | closing, 0.0, closure)
    given = pending * np.array([law.normal, 1.0, 1.0])
    b = free + np.stack([counted, 0.0 * counted, 0.0 * counted])
    if law.form == "velocity":
        return ReboundTerms(b + given, 0.0 * given, closing)
    return ReboundTerms(b, inside_cone(friction, given), closing)


def pending_rebound(
    law: Restitution, closing: Any, mobility: Any, impulse: Array, velocity: Array, free: Array, approach: Array
) -> Array:
    """What a contact leaves to the next step, 3, zeros for nothing: (w⁻_n, e w⁻_t) or (Λ_n, e Λ_t), by the form.

    Args:
        law: how it rebounds.
        closing: whether it was to be stopped; see `ReboundTerms`.
        mobility: A_nn, the diagonal entry of A of its normal, 1/kg.
        impulse: 3, what was solved for, N s.
        velocity: 3, its entries of A λ + b, m/s.
        free, approach: as in `rebound_terms`.
    """
    stopped = closing & (mobility * impulse[0] > velocity[0])  # of λ_n ⊥ w_n, to rounding, it is w_n that is zero
    if law.form == "velocity":
        kept, e = approach, law.tangential
    else:
        kept, e = impulse, np.maximum(law.tangential, np.minimum(law.normal, _sliding(velocity, free)))
    return np.where(stopped, np.stack([kept[0], e * kept[1], e * kept[2]]), 0.0)


def _sliding(velocity: Array, free: Array) -> Any:
    """The part of the tangential impulses that would end the slip which they left: slip that is left over slip lost."""
    left, lost = velocity[1:], free[1:] - velocity[1:]
    left2, lost2 = left @ left, lost @ lost
    slides = (left2 > _RESTING_SPEED**2) & (lost2 > _RESTING_SPEED**2)
    return np.where(slides, np.sqrt(np.where(slides, left2, 1.0) / np.where(slides, lost2, 1.0)), 0.0)
