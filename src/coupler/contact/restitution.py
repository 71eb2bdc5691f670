"""Contacts that rebound. [002, §2.1]

The first phase of an impact is the inelastic law as published: the contact is stopped where its gap closes [002, eq.
2a], and positions move accordingly. At the end of the same step, velocities jump by a modified law:

    velocity (Newton)    w + e w⁻ takes the place of w, where w⁻ are the velocities of approach;
    impulse (Poisson)    λ = (1 + e) Λ, where Λ are the impulses that stop the contact;

with one e for the normal and one for the tangents. Impacts travel: a contact that the rebound of another one closes is
hit after it, with the velocities that the other left. So there are rounds. In each round, the contacts that approach
take part, w⁻ is what the previous round left, and contacts without restitution hold unless they open. Without friction,
a round cannot add energy: it changes by ½ Σ λ (w + w⁻) = ½ Σ (1 − e) λ w⁻ ≤ 0. A last round, without e and with all
contacts, stops what is too slow to rebound.

A contact's speed of approach is that where its gap closes, s² = w² − 2 a g, with its velocity w and acceleration a, not
that before or after the step: so a ball that falls and rebounds with e = 1 returns to its height.

With `in_place`, the gap counts in neither phase, and the second phase comes in the next step: a contact turns around
where it is when it would close. That was our earlier reading of [002, §2.1]. It keeps heights to the last digit, but
contacts turn around, or stop, up to h |w| too early, and such impacts do not travel.

The velocity that an acceleration gives a contact at rest within two steps is no impact; otherwise resting contacts
would jitter.

With friction, both laws can add energy if e differs between normal and tangents and A couples them, as Kane found; not
if e is the same for both, nor for balls. Rounds that would add energy are scaled down (`energy_scale`); impacts in
place are not.

Functions here take floats or nodes of a trace; vectors of a contact have 3 entries, for the normal and two tangents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.laws import inside_cone
from coupler.graph import may_differ
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers

Array = Any  # an ndarray of floats, or of nodes

_FORMS = ("velocity", "impulse")
_ROUNDING = 1e-6  # of an energy: how far solvers may be off in a round that conserves it
# The number of steps by which velocities are behind positions; Euler's method moves positions with the new velocities.
LAG = {"euler": 0.5, "midpoint": 0.0, "rk4": 0.0, "trapezoid": 0.0}
_RESTING_STEPS = 2.0  # velocities that an acceleration causes within this many steps do not rebound
RESTING_SPEED = 1e-6  # m/s: slower contacts do not rebound either; solvers leave such velocities to contacts at rest


@dataclass(frozen=True)
class Restitution:
    """A law by which contacts rebound.

    Attributes:
        normal: e of the normal: 0 (inelastic) to 1 (elastic).
        tangential: e of the tangents: 0 (a contact that sticks loses its slip) to 1 (it slips back as fast).
        form: "velocity" (Newton's law) or "impulse" (Poisson's law).
        threshold: m/s; slower contacts do not rebound. None: twice what an acceleration causes within a step.
        in_place: whether a contact turns around where it is when it would close, instead of where its gap closes.
    """

    normal: float
    tangential: float = 0.0
    form: str = "velocity"
    threshold: float | None = None
    in_place: bool = False

    def __post_init__(self) -> None:
        for name in ("normal", "tangential"):
            value = float(numbers(f"restitution: {name}", getattr(self, name), (), least=0.0))
            if value > 1.0:
                raise ModelError(f"restitution: {name} must be 0 to 1, got {value:g}: more would add energy")
            object.__setattr__(self, name, value)
        if self.form not in _FORMS:
            raise ModelError(f'restitution: form must be "velocity" or "impulse", got {self.form!r}')
        if self.threshold is not None:
            least = float(numbers("restitution: threshold", self.threshold, (), least=0.0))
            object.__setattr__(self, "threshold", least)
        object.__setattr__(self, "in_place", bool(self.in_place))

    @property
    def elastic(self) -> bool:
        """Whether contacts rebound at all."""
        return may_differ([self.normal, self.tangential])

    @classmethod
    def of_shapes(cls, normal: Any) -> Restitution:
        """The law with the coefficient that shapes give, a number or a node, which was checked there."""
        law = cls(0.0)
        object.__setattr__(law, "normal", normal)
        return law


# Impacts that close gaps, and travel


def can_rebound(normal: Any, tangential: Any) -> Any:
    """Whether a contact with these e, which may be parameters, rebounds at all."""
    return (normal > 0.0) | (tangential > 0.0)


def hits(least: Any, w: Any, change: Any) -> Any:
    """Whether a contact approaches fast enough to rebound.

    Args:
        least: m/s, the slowest that rebounds; negative for twice what an acceleration causes within a step.
        w: the contact's velocity along the normal, after the step without its impact, m/s.
        change: the part of w that accelerations have caused within the step, m/s.
    """
    caused = np.abs(change)
    return -w - caused > np.maximum(np.where(least < 0.0, _RESTING_STEPS * caused, least), RESTING_SPEED)


def takes_part(elastic: Any, w: Any, settling: Any) -> Any:
    """Whether a contact takes part in a round of impacts.

    Args:
        elastic: whether it can rebound. If not, it takes part unless it opens.
        w: its velocity along the normal before the round, m/s.
        settling: whether this is the last round, in which all contacts take part.
    """
    return settling | (w < np.where(elastic, -RESTING_SPEED, RESTING_SPEED))


def impact_coefficients(
    normal: Any, tangential: Any, w: Any, approach: Any, change: Any, closure: Any, lag: float
) -> Array:
    """3: the factors e on w⁻ of normal and tangents, for the first impact of a contact in a step.

    Here w⁻ is w after the step without impulses, so the factor of the normal must be e s / |w⁻|, s² = w² − 2 a g.

    Args:
        normal, tangential: e.
        w: the contact's velocity along the normal after the step without its impact, negative, m/s.
        approach: the contact's velocity along the normal before the step, m/s.
        change: the part of the difference that accelerations have caused, h a, m/s.
        closure: g/h, its gap over the step, m/s.
        lag: the number of steps by which velocities are behind positions.
    """
    late = lag * change
    came = approach + late
    speed = np.sqrt(np.maximum(came * came - 2.0 * change * np.maximum(closure, 0.0), 0.0))
    closes = w < -RESTING_SPEED
    e = np.maximum(normal * speed - late, 0.0) / np.where(closes, -w, 1.0)
    return np.stack([np.where(closes & (normal > 0.0), e, normal), tangential, tangential])


def impact_impulse(form: str, friction: Any, e: Array, impulse: Array, velocity: Array, came: Array) -> Array:
    """3: the whole impulse of a round at a contact, N s.

    Args:
        form: the form of the law; see `Restitution`.
        friction: µ.
        e: 3, of normal and tangents; zeros if the contact does not rebound.
        impulse: 3, the solution, N s: under Newton's law, or for Poisson's law under the inelastic one.
        velocity: 3, what that impulse leaves, m/s.
        came: 3, w⁻, m/s.
    """
    if form == "velocity":
        return impulse
    along = np.where(e[0] > 0.0, np.maximum(e[1], np.minimum(e[0], _sliding(velocity, came))), 0.0)
    return impulse + inside_cone([friction], np.stack([e[0], along, along]) * impulse)


def energy_parts(e: Any, impulse: Array, came: Array, after: Array) -> Array:
    """3: a contact's terms λ·w⁻ and λ·(w − w⁻) in a round, and the energy that λ_n may add, J: see `energy_scale`.

    Args:
        e: e of the contact's normal, above 1 where the gap closes faster than the round begins; see
            `impact_coefficients`.
        impulse: 3, λ of the round, N s.
        came, after: 3 each, velocities before and after the round, m/s.
    """
    allowed = impulse[0] * np.maximum(e - 1.0, 0.0) * np.maximum(-came[0], 0.0)
    return np.stack([impulse @ came, impulse @ (after - came), allowed])


def energy_scale(parts: Array) -> Any:
    """The factor on a round's impulses, 0 to 1, with which they add no more energy than allowed.

    With a factor σ on the impulses, the energy changes by σ a + σ² b/2, which may be at most c/2.

    Args:
        parts: 3, a, b and c: the sums of `energy_parts` over all contacts.
    """
    a, b, allowed = parts
    grows = 2.0 * a + b > allowed + _ROUNDING * b
    root = np.sqrt(np.maximum(a * a + b * allowed, 0.0))
    return np.where(grows, np.maximum(root - a, 0.0) / np.where(grows, b, 1.0), 1.0)


# Impacts in place, of two steps


@dataclass(frozen=True, eq=False)
class ReboundTerms:
    """The terms of a contact that can rebound in the problem of a step.

    Attributes:
        b: 3, its entries of b, m/s; A times all offsets is still to be added.
        offset: 3, impulses that act in advance, N s; those of the problem's solution are added to them.
        closing: whether it is to be stopped, to rebound in the next step.
    """

    b: Array
    offset: Array
    closing: Any


def rebound_terms(
    law: Restitution, friction: float, pending: Array, closure: Any, free: Array, approach: Array
) -> ReboundTerms:
    """The terms of a contact that can rebound in the problem of a step.

    Args:
        law: how it rebounds.
        friction: µ.
        pending: 3, what the previous step left (see `pending_rebound`); zeros for nothing.
        closure: g/h, its gap as it counts, over the step, m/s.
        free: 3, velocities after the step without impulses, J (v + h a), m/s.
        approach: 3, velocities before the step, J v, m/s.
    """
    rebounds = pending[0] != 0.0
    least = _RESTING_STEPS * np.abs(free[0] - approach[0]) if law.threshold is None else law.threshold
    closing = (approach[0] < -np.maximum(least, RESTING_SPEED)) & (free[0] + closure < 0.0) & np.logical_not(rebounds)
    counted = np.where(rebounds | closing, 0.0, closure)
    given = pending * np.array([law.normal, 1.0, 1.0])
    b = free + np.stack([counted, 0.0 * counted, 0.0 * counted])
    if law.form == "velocity":
        return ReboundTerms(b + given, 0.0 * given, closing)
    return ReboundTerms(b, inside_cone([friction], given), closing)


def pending_rebound(
    law: Restitution, closing: Any, mobility: Any, impulse: Array, velocity: Array, free: Array, approach: Array
) -> Array:
    """3: what a contact leaves to the next step, zeros for nothing: (w⁻_n, e w⁻_t) or (Λ_n, e Λ_t), by the form.

    Args:
        law: how it rebounds.
        closing: whether it was to be stopped; see `ReboundTerms`.
        mobility: A_nn, the diagonal entry of A of its normal, 1/kg.
        impulse: 3, the solution, N s.
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
    """The factor on tangential impulses that would end the slip they left: remaining slip over slip lost."""
    remaining, lost = velocity[1:], free[1:] - velocity[1:]
    remaining2, lost2 = remaining @ remaining, lost @ lost
    slides = (remaining2 > RESTING_SPEED**2) & (lost2 > RESTING_SPEED**2)
    return np.where(slides, np.sqrt(np.where(slides, remaining2, 1.0) / np.where(slides, lost2, 1.0)), 0.0)
