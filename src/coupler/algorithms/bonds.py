"""What holds a cluster together as it is built: loop joints and couplings, which transmit forces.

Clusters are embedded by whatever constrains them best, a formula perhaps that solves a loop. Forces are transmitted by
the loop joints themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coupler.model import Robot
from coupler.model.embedding.choice import pivots, qualities
from coupler.model.embedding.constraints import Constraint, LoopConstraint

_SAMPLES = 6  # configurations at which rows are compared
_CANDIDATES = 3  # of which so many propose rows


def bonds_of_clusters(robot: Robot) -> list[Sequence[Constraint]]:
    """The loop joints and couplings that hold each cluster of a robot together as it is built, by numbers of bodies.

    Rows that follow from others do not count. A formula that solves loops stands for them and holds nothing itself,
    unless it says more than they do; one that was found never does, and is left out.
    """
    closure, choices, formulas = robot.embedding.closure, robot.embedding.choices, _formulas(robot)
    bonds: list[Sequence[Constraint]] = [()] * len(robot.cluster_tree.clusters)
    samples = None
    for at, loop in enumerate(closure.loops):
        kept = choices[at].rows
        stands_for = [_stands_for_loops(c, formulas) for c in loop.constraints for _ in range(c.rows)]
        if any(stands_for):
            samples = _sampled(robot) if samples is None else samples
            kept = _most_independent(samples[:, closure.places[at][1]], len(choices[at].dependent), stands_for)
        own = {link: i for i, link in enumerate(loop.links)}
        built = [c for c in loop.keeping(kept).constraints if isinstance(c, LoopConstraint) or not c.recognised]
        bonds[loop.cluster] = [constraint.within(own) for constraint in built]
    return bonds


def with_every_row(robot: Robot, bonds: Sequence[Constraint]) -> list[Constraint]:
    """The bonds of a cluster with all rows that can transmit a force, those that follow from others too."""
    formulas = _formulas(robot)
    return [bond if bond.name in formulas else replace(bond, kept=tuple(range(bond.rows))) for bond in bonds]


def _formulas(robot: Robot) -> set[str]:
    """Names of the couplings that solve others."""
    return {coupling.name for coupling in robot.couplings if coupling.solves}


def _stands_for_loops(constraint: Constraint, formulas: set[str]) -> bool:
    """Whether a constraint is a formula for loops, given by the user or found."""
    return not isinstance(constraint, LoopConstraint) and (constraint.recognised or constraint.name in formulas)


def _sampled(robot: Robot) -> np.ndarray:
    """All entries of K at some closed configurations."""
    rng = np.random.default_rng(0)
    p = [robot.states.neutral, *(robot.states.random(rng) for _ in range(_SAMPLES - 1))]
    return robot.embedding.closure.at(np.stack(p))[1]


def _most_independent(K: np.ndarray, count: int, last: Sequence[bool]) -> np.ndarray:
    """So many rows of K that do not follow from each other at any of some configurations; some are taken last."""
    proposed = [np.sort(pivots(A.T, count, np.array(last, int))) for A in K[:_CANDIDATES]]
    return max(proposed, key=lambda rows: qualities(K[:, rows], K).min())
