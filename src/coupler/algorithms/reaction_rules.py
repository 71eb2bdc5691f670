"""Rules for statically indeterminate forces: how the joints of an over-constrained loop share its load.

In a planar four-bar with four hinges, a door on two hinges or a table on four legs, the motion does not determine the
forces in the joints. In reality the elasticity and tolerances of the parts decide, which a model of rigid bodies does
not have. A rule says what to assume. Under every rule statics hold exactly, and determinate forces are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.model import ModelError
from coupler.model.wording import clipped

COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")  # of a spatial force: moment, then force
_WHOLE = 1e-9  # by how much the sum of parts may differ from one


@dataclass(frozen=True)
class MinimumNorm:
    """The smallest loads: minimises Σ |f|² + |m / length|² over all joints and loop joints of a cluster.

    The load of a joint is taken about the point and along the axes of the frame in which it ends, for tree joints and
    loop joints alike, so the result does not depend on where loops are cut. Rows of couplings count as forces.

    Attributes:
        length: m, the lever arm at which a moment counts as much as a force.
    """

    length: float = 1.0

    def __post_init__(self) -> None:
        _check_positive("MinimumNorm: length", self.length)
        object.__setattr__(self, "length", float(np.ravel(self.length)[0]) if np.size(self.length) == 1 else None)
        if self.length is None:
            raise ModelError("MinimumNorm: length must be one number")


@dataclass(frozen=True)
class StiffnessWeighted:
    """The loads of elastic joints without play: minimises the elastic energy Σ f² / k + Σ m² / k (Castigliano).

    Attributes:
        stiffness: by joint, loop joint or coupling. One number, N/m, with moments at a lever arm of 1 m; or six,
            N m/rad about and N/m along the axes in which the joint ends; or one for each row of a coupling.
        others: the stiffness of all that are not named, N/m.
    """

    stiffness: Mapping[str, float | Sequence[float]] = field(compare=False)
    others: float = 1.0
    rows: tuple[tuple[str, tuple[float, ...]], ...] = field(init=False, repr=False)  # stiffness, to be compared

    def __post_init__(self) -> None:
        if not isinstance(self.stiffness, Mapping):
            raise ModelError(f"StiffnessWeighted takes stiffness by name of joint or loop, got {self.stiffness!r}")
        _check_positive("StiffnessWeighted: others", self.others)
        rows = []
        for name, values in self.stiffness.items():
            _check_positive(f"StiffnessWeighted: the stiffness of {name!r}", values)
            rows.append((name, tuple(np.atleast_1d(np.asarray(values, float)).tolist())))
        object.__setattr__(self, "rows", tuple(rows))


@dataclass(frozen=True)
class Share:
    """How joints share the load that they put on a body along some of its axes.

    The load of a joint is taken about its own point: where a tree joint ends on its child, and a loop joint on its
    successor. Forces that do work, such as those of an actuator along the joint, do not count.

    Attributes:
        body: the name of the body.
        parts: by joint or loop joint on that body, its part of the sum over all that are named; together 1. A joint
            with part 0 takes nothing.
        along: some of "mx my mz fx fy fz", moments about and forces along the body's axes.
    """

    body: str
    parts: Mapping[str, float] = field(compare=False)
    along: str | Sequence[str] = field(compare=False)
    rows: tuple[Any, ...] = field(init=False, repr=False)  # parts and along, to be compared

    def __post_init__(self) -> None:
        what = f"Share on {self.body!r}"
        if not isinstance(self.parts, Mapping) or len(self.parts) < 2:
            raise ModelError(f"{what}: parts must be given by name, of two joints at least, got {self.parts!r}")
        values = _numbers(f"{what}: parts", [*self.parts.values()])
        if not np.isfinite(values).all() or abs(values.sum() - 1.0) > _WHOLE:
            raise ModelError(f"{what}: parts must add up to 1, got {values.sum():g}")
        along = tuple(self.along.replace(",", " ").split() if isinstance(self.along, str) else self.along)
        if not along or any(x not in COMPONENTS for x in along):
            raise ModelError(f"{what}: along must be some of {' '.join(COMPONENTS)}, got {self.along!r}")
        object.__setattr__(self, "rows", (tuple(zip(self.parts, values.tolist(), strict=True)), along))


@dataclass(frozen=True)
class Shares:
    """Given shares, and a rule for what they leave open.

    Attributes:
        shares: the given shares.
        otherwise: the rule for the rest.
    """

    shares: Sequence[Share]
    otherwise: MinimumNorm | StiffnessWeighted = field(default_factory=MinimumNorm)

    def __post_init__(self) -> None:
        shares = tuple(self.shares) if isinstance(self.shares, Iterable) else (None,)
        if not all(isinstance(share, Share) for share in shares):
            raise ModelError(f"Shares takes a list of Share, got {clipped(self.shares)}")
        if not isinstance(self.otherwise, MinimumNorm | StiffnessWeighted):
            raise ModelError(f"Shares: otherwise must be another rule, got {clipped(self.otherwise)}")
        object.__setattr__(self, "shares", shares)


Rule = MinimumNorm | StiffnessWeighted | Shares


def rule_of(given: Any) -> Rule | None:
    """The rule that a user's argument means; None for "kept_rows", where redundant rows transmit nothing.

    Raises:
        ModelError: if it means no rule.
    """
    if isinstance(given, str) and given in ("kept_rows", "minimum_norm"):
        return MinimumNorm() if given == "minimum_norm" else None
    if isinstance(given, MinimumNorm | StiffnessWeighted | Shares):
        return given
    if isinstance(given, Share):
        return Shares([given])
    if isinstance(given, Sequence) and given and all(isinstance(share, Share) for share in given):
        return Shares(given)
    raise ModelError(
        'rule must be "kept_rows", "minimum_norm", MinimumNorm(...), StiffnessWeighted(...), Shares(...) or a list of '
        f"Share(...), got {clipped(given)}"
    )


def _check_positive(what: str, values: Any) -> None:
    numbers = _numbers(what, values)
    if numbers.size not in range(1, 7) or numbers.ndim > 1 or not (np.isfinite(numbers) & (numbers > 0.0)).all():
        raise ModelError(f"{what} must be positive, got {values!r}")


def _numbers(what: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be numbers, got {values!r}") from None
