"""What holds a cluster together as it is built: loop joints and couplings, which transmit forces.

Clusters are embedded by whatever constrains them best, a formula perhaps that solves a loop. Forces are transmitted by
the loop joints themselves.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from coupler.model import Robot
from coupler.model.embedding.choice import pivots, qualities
from coupler.model.embedding.constraints import Constraint, Loop, LoopConstraint

__all__ = ["Bonds", "bonds_of_clusters"]

_SAMPLES = 6  # configurations at which rows are compared
_CANDIDATES = 3  # of which so many propose rows


@dataclass(frozen=True, eq=False)
class Bonds:
    """The loop joints and couplings that hold a cluster together as it is built.

    A formula that solves loops stands for them and holds nothing itself, unless it says more than they do.

    Attributes:
        constraints: of all of them, with those of their rows that do not follow from others.
        numbers: of each, by name, what goes into tables.
        form: equal for those that one trace serves.
    """

    constraints: tuple[Constraint, ...] = ()
    numbers: tuple[dict[str, np.ndarray], ...] = ()
    form: Hashable = ()


def bonds_of_clusters(robot: Robot) -> list[Bonds]:
    """What holds each cluster of a robot together."""
    closure, choices = robot.embedding.closure, robot.embedding.choices
    formulas = {coupling.name for coupling in robot.couplings if coupling.solves}
    bonds, samples = [Bonds()] * len(robot.cluster_tree.clusters), None
    for at, loop in enumerate(closure.loops):
        kept = choices[at].rows
        if any(constraint.name in formulas for constraint in loop.constraints):
            samples = _sampled(robot) if samples is None else samples
            stands_for = [c.name in formulas for c in loop.constraints for _ in range(c.rows)]
            kept = _most_independent(samples[:, closure.places[at][1]], len(choices[at].dependent), stands_for)
        bonds[loop.cluster] = _bonds(robot, loop, kept)
    return bonds


def _sampled(robot: Robot) -> np.ndarray:
    """All entries of K at some closed configurations."""
    rng = np.random.default_rng(0)
    p = [robot.states.neutral, *(robot.states.random(rng) for _ in range(_SAMPLES - 1))]
    return robot.embedding.closure.at(np.stack(p))[1]


def _most_independent(K: np.ndarray, count: int, last: Sequence[bool]) -> np.ndarray:
    """So many rows of K that do not follow from each other at any of some configurations; some are taken last."""
    proposed = [np.sort(pivots(A.T, count, np.array(last, int))) for A in K[:_CANDIDATES]]
    return max(proposed, key=lambda rows: qualities(K[:, rows], K).min())


def _bonds(robot: Robot, loop: Loop, kept: np.ndarray) -> Bonds:
    """The constraints of a cluster with the rows that are kept."""
    own = {link: i for i, link in enumerate(loop.links)}
    kinds = {joint.name: joint.kind for joint in robot.loops}
    constraints = tuple(constraint.within(own) for constraint in loop.keeping(kept).constraints)
    numbers = tuple(constraint.constants for constraint in constraints)
    for constraint, constants in zip(constraints, numbers, strict=True):
        if isinstance(constraint, LoopConstraint):
            constants["turn"] = kinds[constraint.name].aligned()[0].T
    form = tuple((constraint.form, constraint.connection) for constraint in constraints)
    return Bonds(constraints, numbers, form)
