"""The solver of the compiled step, on random problems that sweeps do not solve: it ends, with the laws kept.

Of 7,600 problems, 400 of each family, 6 were not solved: 3 stacks of 20 boxes, one of 4 boxes of very unequal masses, a
plate on 64 points and a heap of unequal bodies. So a few may be missed here.
"""

from __future__ import annotations

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
    count, first = samples(16, 5500), make(family, 0)
    bodies = first.Z.shape[1] // 6
    discs = [len(cone.coefficients) for cone in first.cones]
    program = cascade_program(discs, len(first.blocks), 6 * bodies, 1e-9, seen=first.seen)
    solver, missed = compile(program), []
    for start in range(0, count, BATCH):
        problems = [make(family, seed) for seed in range(start, min(start + BATCH, count))]
        given = [
            [problem.Z.ravel(), problem.Y.ravel(), problem.b, problem.friction, row_limits(problem.blocks)[0].ravel()]
            for problem in problems
        ]
        inputs = [np.array(values, float) for values in zip(*given, strict=True)]
        impulses, _ = solver(*inputs, np.zeros((len(problems), len(first.b))))
        for seed, (problem, own) in enumerate(zip(problems, impulses, strict=True), start):
            error = residual(problem.as_matrix(), own).total
            if not error <= 1e-8 * max(1.0, np.abs(problem.b).max()):
                missed.append((seed, error))
    assert len(missed) <= 1 + count // 200, f"{len(missed)} of {count}: {missed[:10]}"
