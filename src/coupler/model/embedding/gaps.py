"""Loops in messages: what they are called, and how far they are from closed, in units that a user can check."""

from __future__ import annotations

import numpy as np

from coupler.graph import is_known
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Loop, LoopConstraint, RelationConstraint
from coupler.model.embedding.rounding_limits import is_shift
from coupler.model.loops import Rod
from coupler.model.tolerances import CLOSED
from coupler.model.tree import Tree
from coupler.model.wording import listed


def described(loop: Loop, tree: Tree) -> str:
    """A description of a loop for messages: its constraints, as the user described them, and its joints."""
    kind = "loop" if any(isinstance(constraint, LoopConstraint) for constraint in loop.constraints) else "coupling"
    return f"the {kind} {names_of(loop)} of joints {listed(tree.links[link].joint for link in loop.links)}"


def names_of(loop: Loop) -> str:
    """The names of a loop's constraints that the user described; recognised closed forms are left out."""
    return listed(c.name for c in loop.constraints if isinstance(c, LoopConstraint) or not c.recognised)


def what_is_open(closure: Closure, i: int, phi: np.ndarray) -> str:
    """A phrase that says how far open the worst constraint of a loop is, in units that a user can check.

    Args:
        closure: all loops.
        i: the number of the loop.
        phi: the residuals of all loops, in one state.
    """
    first_row = int(closure.places[i][0][0])
    parts = closure.loops[i].parts(first_row)
    constraint, rows = max(parts, key=lambda part: np.abs(phi[part[1]]).max(initial=0.0))
    if isinstance(constraint, RelationConstraint):
        off = np.abs(phi[rows]).max()
        return f"{constraint.name!r} is off by {off:.3g} (rad or m, or what its function gives)"
    ends = f"{constraint.name!r} has its two ends"
    if isinstance(constraint.kind, Rod):
        length = constraint.kind.length
        if not is_known(length):  # a parameter
            return f"{ends} too {'far apart' if phi[rows][0] > 0.0 else 'near'}: (r² - L²) / 2L is {phi[rows][0]:.3g} m"
        return f"{ends} {_span(length, phi[rows][0]):.3g} m apart instead of {length:.3g} m"
    distance, angle = apart(constraint, phi[rows])
    shift, turn = f"{distance:.3g} m apart", f"turned by about {angle:.3g} rad"
    return f"{ends} {shift if angle < CLOSED else turn if distance < CLOSED else f'{shift} and {turn}'}"


def apart(constraint: LoopConstraint, phi: np.ndarray) -> tuple[float, float]:
    """How far the two ends of a loop joint are apart, m, and by about which angle they are rotated, rad.

    Args:
        constraint: the loop joint.
        phi: its residuals, in one state.
    """
    if isinstance(constraint.kind, Rod):
        return float(abs(_span(constraint.kind.length, phi[0]) - constraint.kind.length)), 0.0
    in_metres = is_shift(constraint)
    turn = np.linalg.norm(phi[~in_metres])
    return float(np.linalg.norm(phi[in_metres])), float(2.0 * np.arctan(turn / 2.0))  # φ = 2 tan(θ/2), see axes.py


def _span(length: float, phi: float) -> float:
    """The distance r between the two ends of a rod, m: φ = (r² − L²) / 2L."""
    return float(np.sqrt(length**2 + 2.0 * length * phi))
