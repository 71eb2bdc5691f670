"""The options of a simulation: their names, defaults and checks, all in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coupler.contact.laws import RECOVERY, gap_seen
from coupler.contact.pairs import FRICTION, Turning
from coupler.contact.restitution import Restitution
from coupler.contact.scene import ContactScene
from coupler.contact.scheme import SCHEMES
from coupler.model import ModelError
from coupler.model.numbers import numbers, positive_integer, switch
from coupler.model.wording import clipped, listed

INTEGRATORS = ("midpoint", "euler", *SCHEMES)

Rebound = Restitution | float | Mapping[str, Restitution | float] | None


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """How a robot is simulated. Equal options give equal steps, to the last bit.

    Attributes:
        step: the length of a step, h, s.
        contacts: names of shapes, contact points or pairs that may touch, or patterns such as "*foot*" and "*foot* on
            floor".
        integrator: "midpoint", of second order while nothing touches, which conserves energy; "euler", of first order;
            "rk4", of fourth order while nothing touches, third at contacts without friction, and second with it; or
            "trapezoid", of second order in all of these cases.
        friction: the coefficient of pairs in which neither shape has one.
        restitution: how contacts rebound; None if they do not. A number is the coefficient of the normal velocity. Or a
            mapping from patterns such as "*ball*" and "*ball* on floor", of which the first that matches a pair counts.
        torsion: how contacts resist spin about their normals: the largest moment over the normal force, m; None leaves
            it to their shapes. Or a mapping from patterns, like restitution.
        rolling: how contacts resist rolling, rotation about their tangents, likewise.
        penetration: how overlaps count: "position", "velocity", "limited" or a depth; see `gap_seen`. None: "position";
            but for "rk4" and "trapezoid", which leave more overlap, at most g h²; see `ContactScene.seen`.
        recovery: the largest speed at which overlapping shapes at rest part, m/s; see `let_out`. Revolute joints return
            from beyond a limit ten times as fast, rad/s. Infinite for no bound.
        limits: whether joints stop at their limits.
        tolerance: how exactly contacts satisfy their laws, m/s: what the solver aims at; see `StepStatus.solved`.
        sweeps: the largest number of sweeps of the contact solver in a step.
    """

    step: float = 1e-3
    contacts: str | Iterable[str] = "*"
    integrator: str = "midpoint"
    friction: float = FRICTION
    restitution: Rebound = None
    torsion: Turning = None
    rolling: Turning = None
    penetration: str | float | None = None
    recovery: float = RECOVERY
    limits: bool = True
    tolerance: float = ContactScene.tolerance
    sweeps: int = ContactScene.sweeps

    def __post_init__(self) -> None:
        """Checks all values and brings each to one form, so that options compare and hash by value.

        Raises:
            ModelError: for an impossible value, naming the option.
        """
        step = float(numbers("step", self.step, ()))
        if step <= 0.0:
            raise ModelError(f"step must be above zero, got {step:g} s")
        contacts, integrator, penetration = self.contacts, _known_integrator(self.integrator), self.penetration
        names = (contacts,) if isinstance(contacts, str) or not isinstance(contacts, Iterable) else tuple(contacts)
        if not all(isinstance(name, str) for name in names):
            raise ModelError(f"contacts must be a name or a list of names, got {contacts!r}")
        if penetration is None and integrator not in SCHEMES:
            penetration = "position"
        elif penetration is not None:
            gap_seen(0.0, penetration)  # raises an error for an unknown name
        values = {
            "step": step,
            "contacts": names,
            "integrator": integrator,
            "friction": float(numbers("friction", self.friction, (), least=0.0)),
            "restitution": _one_form(self.restitution, _law),
            "torsion": _one_form(self.torsion, lambda arm: float(numbers("torsion", arm, (), least=0.0))),
            "rolling": _one_form(self.rolling, lambda arm: float(numbers("rolling", arm, (), least=0.0))),
            "penetration": float(penetration) if isinstance(penetration, int | float | np.number) else penetration,
            "recovery": float(numbers("recovery", self.recovery, (), least=0.0, finite=False)),
            "limits": switch("limits", self.limits),
            "tolerance": float(numbers("tolerance", self.tolerance, (), least=0.0)),
            "sweeps": positive_integer("sweeps", self.sweeps),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> SimulationOptions:
        """The options among the arguments of a function, by name; all must be there."""
        return cls(**{option.name: given[option.name] for option in fields(cls)})

    @property
    def laws(self) -> dict[str, Any]:
        """The options that are laws of contact, as keyword arguments of `pairs_of`."""
        given: dict[str, Any] = {name: getattr(self, name) for name in ("restitution", "torsion", "rolling")}
        by_pattern = {name: dict(law) if isinstance(law, tuple) else law for name, law in given.items()}
        return {"friction": self.friction, **by_pattern}


def _one_form(given: Any, checked: Callable[[Any], Any]) -> Any:
    """A checked value for all contacts; a mapping from patterns becomes a tuple of pairs, which can be hashed."""
    if isinstance(given, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in given):
        given = dict(given)  # which is in this form already
    if isinstance(given, Mapping):
        return tuple((str(pattern), _one_form(value, checked)) for pattern, value in given.items())
    return None if given is None else checked(given)


def _law(restitution: Any) -> Restitution:
    """The law of restitution with this coefficient, if it is a number."""
    return restitution if isinstance(restitution, Restitution) else Restitution(restitution)


def _known_integrator(name: Any) -> str:
    if not isinstance(name, str) or name not in INTEGRATORS:
        raise ModelError(f"integrator must be one of {listed(INTEGRATORS, like=name)}, got {clipped(name)}")
    return str(name)
