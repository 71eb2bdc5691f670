"""Programs over the constraints of a robot: φ, K and k at any state, and Newton's way to a closed configuration.

Everything is relative to the cluster: the pose of a link is seen from its output body, outside of the cluster, so that
a loop closes as well far from the origin as near it. K has a column for each joint velocity of a cluster. A loop joint
sees the motion s of a joint as ± T s, where T is the rate of its residual; a relation is differentiated directly.

Kernels are small, one for each kind of joint and of constraint, and looped over tables: a ring of a thousand bodies
takes no longer to compile than one of three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.graph import Builder, Program, View, constants, fields
from coupler.model.embedding import kernels
from coupler.model.embedding.constraints import Loop, Solution
from coupler.model.embedding.scene import Scene, Solver, by_kind, grouped
from coupler.model.tolerances import CLOSED_BY_NEWTON, SETTLED
from coupler.model.tree import Tree

__all__ = ["newton_program", "rates_program", "spread_program"]

ROUNDS = 40  # or until it has taken so many


def rates_program(tree: Tree, loops: Sequence[Loop]) -> Program:
    """(p, w) → φ, K, k, s, T of all constraints.

    These are the residuals, the entries of ∂φ/∂w cluster by cluster and column by column, the biases −K̇ w, and what
    they are made of: the motion of each joint (6 for each entry of w) and the rates of loop joints (6 for each row).
    """
    b = Builder("rates")
    p, w = b.input("p", tree.nq), b.input("w", tree.nv)
    rows = sum(loop.rows for loop in loops)
    phi, K = b.output("phi", rows), b.output("K", sum(loop.rows * len(loop.columns) for loop in loops))
    k, s, T = b.output("k", rows), b.output("s", 6 * w.size), b.output("T", 6 * rows)
    b.loop(kernels.clear, here=fields(K=s.at(range(s.size), 1)))  # joints that nothing constrains keep zeros
    b.loop(kernels.clear, here=fields(K=T.at(range(T.size), 1)))  # and so do relations
    scene = Scene(b, tree, loops, np.ones(rows, bool), p, None, p, phi, K, s, T)
    scene.place()
    scene.measure()
    scene.columns()
    scene.bias(w, k)
    return b.build()


def newton_program(tree: Tree, loops: Sequence[Loop], kept: np.ndarray) -> Program:
    """(p, step, weight) → q, φ: positions that close the loops, and what is left of their residuals.

    Positions are q = integrate(p, x), and x = step + d. Each round takes d to −W Kᵀ (K W Kᵀ + φᵀφ)⁻¹ (φ − K d), with
    K = ∂φ/∂x. This ends where φ = 0 and W⁻¹ d has no part along the loops' freedoms: for weights of one, at the nearest
    closed configuration. Joints of weight zero stay where the step takes them. The term φᵀφ tames singular poses and
    vanishes faster than φ, as in Levenberg's and Marquardt's method.

    Args:
        tree: the links.
        loops: what to close.
        kept: for each row of φ, whether it is used; the others must follow from those.
    """
    b = Builder("newton")
    p, n = b.input("p", tree.nq), tree.nv
    step, weight, x = b.input("step", n), b.input("weight", n), b.scratch("x", n)
    q, phi = b.output("q", p.size), b.output("phi", len(kept))
    b.loop(kernels.copy, here=fields(source=step.at(range(n)), target=x.at(range(n))))
    scene = Scene(b, tree, loops, kept, p, x, q, phi)
    free = [link for link in range(1, len(tree.links)) if link not in scene.row]
    for kind, links in by_kind(tree, free):
        b.loop(kernels.advance(kind), joint=scene.joint(links))
    scene.place()
    scene.measure()
    solver = Solver(scene, step, weight)
    solver.measure()
    with b.repeat(until=_closed, at_most=ROUNDS, here=solver.here()):
        scene.columns()
        solver.step()
        scene.place()
        scene.measure()
        solver.measure()
    return b.build()


def spread_program(tree: Tree, q_index: np.ndarray, solutions: Sequence[Solution]) -> Program:
    """q → p: positions of all joints, the dependent ones by the solutions, which are evaluated in this order."""
    b = Builder("spread")
    q, p = b.input("q", len(q_index)), b.output("p", tree.nq)
    b.loop(kernels.copy, here=fields(source=q.at(range(q.size)), target=p.at(q_index)))
    for alike in grouped(solutions, lambda solution: (solution.level, solution.function.text, *solution.slots)):
        first = alike[0]
        here = fields(numbers=constants([solution.function.numbers for solution in alike]))
        for j in range(len(first.inputs)):
            here |= fields(**{f"y{j}": p.at(tree.q_start[[solution.inputs[j] for solution in alike]])})
        for j in first.slots:
            here |= fields(**{f"p{j}": p.at(tree.q_start[[solution.outputs[j] for solution in alike]])})
        b.loop(kernels.spread(first.function, len(first.inputs), first.slots), here=here)
    return b.build()


def _closed(here: View) -> Any:
    return (here.worst < CLOSED_BY_NEWTON) & (here.longest < SETTLED)
