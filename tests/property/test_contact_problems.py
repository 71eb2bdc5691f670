"""The solver of the compiled step, on random problems that sweeps do not solve: it ends, with the laws kept.

Of 121,000 problems, 5,500 of each family, 8 were not solved: 2 stacks of 20 boxes, and 6 stacks and heaps, most of them
of very unequal masses. So a few may be missed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from contact_problems import FAMILIES, make
from coupler.contact import residual
from coupler.contact.solvers.cascade import cascade_program, row_limits
from coupler.graph import compile
from effort import samples

BATCH = 500


@pytest.mark.sampled
@pytest.mark.parametrize("family", FAMILIES)
def test_problems_are_solved(family: str) -> None:
    """To 1e-8 m/s, or that part of the largest velocity without impulses, as judged by NumPy on A itself."""
    count = samples(16, 5500)
    missed = unsolved(family, range(count))
    assert len(missed) <= 1 + count // 1000, f"{len(missed)} of {count}: {missed[:10]}"


@pytest.mark.parametrize(("family", "seeds"), [("4 boxes of unequal mass", [8, 542, 1147, 1457])])
def test_a_contact_that_opens_lets_go_of_its_tangents(family: str, seeds: list[int]) -> None:
    """Here light boxes tilt under heavy ones: contacts that open have been pressed, but hardly."""
    assert unsolved(family, seeds) == []


def unsolved(family: str, seeds: Sequence[int]) -> list[tuple[int, float]]:
    """Seeds of the problems that the solver misses by more than 1e-8 m/s, and by how much, m/s."""
    first, missed = make(family, 0), []
    bodies = first.Z.shape[1] // 6
    discs = [len(cone.coefficients) for cone in first.cones]
    solver = compile(cascade_program(discs, len(first.blocks), 6 * bodies, 1e-9, seen=first.seen))
    for start in range(0, len(seeds), BATCH):
        some = seeds[start : start + BATCH]
        problems = [make(family, seed) for seed in some]
        given = [
            [problem.Z.ravel(), problem.Y.ravel(), problem.b, problem.friction, row_limits(problem.blocks)[0].ravel()]
            for problem in problems
        ]
        inputs = [np.array(values, float) for values in zip(*given, strict=True)]
        impulses, _ = solver(*inputs, np.zeros((len(problems), len(first.b))))
        for seed, problem, own in zip(some, problems, impulses, strict=True):
            error = residual(problem.as_matrix(), own).total
            if not error <= 1e-8 * max(1.0, np.abs(problem.b).max()):
                missed.append((seed, error))
    return missed
