"""The options of a simulation, in one place: their names, defaults and checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.pairs import FRICTION
from coupler.contact.restitution import Restitution
from coupler.contact.stepping import gap_seen
from coupler.model import ModelError
from coupler.model.numbers import numbers
from coupler.model.wording import listed

__all__ = ["INTEGRATORS", "SimulationOptions", "positive_integer"]


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """How a robot is simulated. Equal options give equal steps, to the last bit.

    Attributes:
        step: the length of a step, h, s.
        contacts: names of shapes, contact points or pairs that may touch, or patterns such as "*foot*" and
            "*foot* on floor".
        integrator: "midpoint", of second order while nothing touches, which keeps energy; or "euler", of first order.
        friction: the coefficient of pairs of which neither shape has one.
        restitution: how contacts rebound; None if they do not. A number is the coefficient of the normal velocity.
        penetration: how overlaps count: "position", "velocity", "limited" or a depth; see `gap_seen`.
        limits: whether joints stop at their limits.
        tolerance: how exactly contacts keep their laws, m/s.
        sweeps: the most that the contact solver makes in a step.
    """

    step: float = 1e-3
    contacts: str | Iterable[str] = "*"
    integrator: str = "midpoint"
    friction: float = FRICTION
    restitution: Restitution | float | None = None
    penetration: str | float = "position"
    limits: bool = True
    tolerance: float = 1e-9
    sweeps: int = 10

    def __post_init__(self) -> None:
        """Checks all values and brings each into one form, so that options compare and hash by value.

        Raises:
            ModelError: for a value that cannot be, naming the option.
        """
        step = float(numbers("step", self.step, ()))
        if step <= 0.0:
            raise ModelError(f"step must be above zero, got {step:g} s")
        contacts, restitution, penetration = self.contacts, self.restitution, self.penetration
        names = (contacts,) if isinstance(contacts, str) or not isinstance(contacts, Iterable) else tuple(contacts)
        if not all(isinstance(name, str) for name in names):
            raise ModelError(f"contacts must be a name or a list of names, got {contacts!r}")
        if restitution is not None and not isinstance(restitution, Restitution):
            restitution = Restitution(restitution)
        gap_seen(0.0, penetration)  # which refuses what it does not know
        values = {
            "step": step,
            "contacts": names,
            "integrator": _known_integrator(self.integrator),
            "friction": float(numbers("friction", self.friction, (), least=0.0)),
            "restitution": restitution,
            "penetration": penetration if isinstance(penetration, str) else float(penetration),
            "limits": bool(self.limits),
            "tolerance": float(numbers("tolerance", self.tolerance, (), least=0.0)),
            "sweeps": positive_integer("sweeps", self.sweeps),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


INTEGRATORS = ("midpoint", "euler")


def _known_integrator(name: Any) -> str:
    if name not in INTEGRATORS:
        raise ModelError(f"integrator: there is no {name!r}; there are {listed(INTEGRATORS)}")
    return str(name)


def positive_integer(what: str, value: Any) -> int:
    """The value, refused unless it is a whole number from 1 on."""
    if not isinstance(value, int | np.integer) or value < 1:
        raise ModelError(f"{what} must be a whole number from 1 on, got {value!r}")
    return int(value)
