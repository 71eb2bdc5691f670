"""The bonds of a cluster: the loop joints and couplings that hold it together and transmit forces.

A cluster may be embedded by other constraints, such as a formula that solves a loop. Forces, however, are transmitted
by the loop joints themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coupler.model import Robot
from coupler.model.embedding.choice import pivots, qualities
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.model.embedding.rounding import whole

_SAMPLES = 6  # configurations in which choices of rows are compared
_CANDIDATES = 3  # of these, how many propose a choice


def bonds_of_clusters(robot: Robot) -> list[Sequence[Constraint]]:
    """For each cluster its loop joints and couplings, with bodies by their numbers, and without redundant rows.

    A formula that solves loops stands for them: its rows are kept only if the loops do not imply them. Formulas that
    were found automatically are implied by the loops and are left out.
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
        number_of = {link: i for i, link in enumerate(loop.links)}
        built = [c for c in loop.keeping(kept).constraints if isinstance(c, LoopConstraint) or not c.recognised]
        bonds[loop.cluster] = [constraint.within(number_of) for constraint in built]
    return bonds


def with_every_row(robot: Robot, bonds: Sequence[Constraint]) -> list[Constraint]:
    """The bonds of a cluster with all rows that can transmit a force, redundant ones included.

    These are also the rows of loop joints that were dropped since they follow from others but for rounding.
    """
    formulas = _formulas(robot)
    every = [bond if bond.name in formulas else whole(bond) for bond in bonds]
    return [bond if bond.name in formulas else replace(bond, kept=tuple(range(bond.rows))) for bond in every]


def _formulas(robot: Robot) -> set[str]:
    """The names of couplings that are formulas for loops."""
    return {coupling.name for coupling in robot.couplings if coupling.solves}


def _stands_for_loops(constraint: Constraint, formulas: set[str]) -> bool:
    """Whether a constraint is a formula for loops, given by the user or found."""
    return not isinstance(constraint, LoopConstraint) and (constraint.recognised or constraint.name in formulas)


def _sampled(robot: Robot) -> np.ndarray:
    """All entries of K in some closed configurations."""
    rng = np.random.default_rng(0)
    p = [robot.states.neutral, *(robot.states.random(rng) for _ in range(_SAMPLES - 1))]
    return robot.embedding.closure.at(np.stack(p))[1]


def _most_independent(K: np.ndarray, count: int, last: Sequence[bool]) -> np.ndarray:
    """So many rows of K, chosen to be far from dependent in all samples; rows marked as `last` are chosen last."""
    proposed = [np.sort(pivots(A.T, count, np.array(last, int))) for A in K[:_CANDIDATES]]
    return max(proposed, key=lambda rows: qualities(K[:, rows], K).min())
