"""Loops whose numbers are rounded: rows that would follow from others, if the numbers were exact, are dropped.

A file has four to seven digits. Axes that are parallel in the robot are then parallel to 1e-5, and a planar loop, of
whose five rows three follow from the others, has five that are independent, strictly speaking: it cannot move. Or
rows follow, but do not close: lengths along the axes miss each other by half a millimetre. What the robot is, is seen
in the singular values of K at configurations that nearly close: those of real constraints are of the order of one, once
rows are seen relative to the size of their loop, those of rounding are of its order, and there is a gap in between. As
many rows are kept as there are singular values above the gap. That the others do follow from those is then tried out:
where the kept rows close, near and far from where joints start, the others must close as well, but for the rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coupler.model.embedding.choice import pivots
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.model.loop_kind import LoopKind
from coupler.model.tolerances import CLOSED, RANK
from coupler.model.wording import counted, listed
from coupler.spatial import Transform

_MANY = 20.0  # singular values below so many times the precision may be rounding
_GAP = 10.0  # by which the singular values of real constraints are larger than those of rounding, at least
_MISSES = 20.0  # so many times the precision, relative to the size of a loop, may rows that follow from others miss
_WAYS = (0.0, 0.05, 0.2, 0.4, 0.7, 1.0)  # how far samples are from where joints start, of the way to random


@dataclass(frozen=True, eq=False)
class Some(LoopKind):
    """Some rows of a kind of loop.

    Attributes:
        whole: the kind.
        rows: the numbers of its rows.
    """

    whole: LoopKind
    rows: tuple[int, ...]

    def residual(self, X: Transform) -> Any:
        return self.whole.residual(X)[list(self.rows)]

    def form(self) -> Any:
        return Some, self.whole.form(), self.rows


@dataclass(frozen=True, eq=False)
class Rounded:
    """Constraints without the rows that nearly follow from others.

    Attributes:
        constraints: what is left of them.
        dropped: how many rows are dropped, by the name of the constraint.
        misses: by how much they miss being closed where the others are, at the most, m or rad.
    """

    constraints: list[Constraint]
    dropped: dict[str, int]
    misses: float

    def warning(self) -> str:
        """The warning that rows were dropped."""
        count = sum(self.dropped.values())
        rows = f"{counted(count, 'row')} of {listed(self.dropped)} {'follows' if count == 1 else 'follow'}"
        return (
            f"{rows} from others to {self.misses:.1g} (m or rad), which is how the numbers are rounded: dropped; "
            "precision=0 keeps them"
        )


def is_suspicious(closure: Closure, p: np.ndarray, precision: float) -> bool:
    """Whether some singular values at closed configurations p are neither of real constraints nor zero."""
    _, K, _ = closure.at(p)
    for i in range(len(closure.loops)):
        sigma = np.linalg.svd(_scaled(closure, i, K), compute_uv=False)
        if ((sigma > RANK * sigma[:, :1]) & (sigma < _MANY * precision)).any():
            return True
    return False


def loosened(
    closure: Closure, is_solved: Sequence[bool], precision: float, again: Callable[[list[Constraint]], Closure]
) -> Rounded | None:
    """The constraints of a robot without the rows that nearly follow from others, or None if there are no such rows.

    Args:
        closure: the loops.
        is_solved: for each loop whether couplings solve it; those are left as they are.
        precision: by how much numbers are rounded, m or rad.
        again: makes a closure of other constraints.
    """
    starts = _starts(closure)
    p = closure.assemble(starts, rank=_MANY * precision)
    phi, K, _ = closure.at(p)
    kept: dict[int, np.ndarray] = {}
    for i, loop in enumerate(closure.loops):
        size = _sizes(closure, i, K)
        near = (np.abs(phi[:, closure.places[i][0]]) / size).max(axis=-1) < _MISSES * precision
        rows = None if is_solved[i] or not near.any() else _kept(_scaled(closure, i, K)[near], precision)
        if rows is not None and len(rows) < loop.rows:
            kept[i] = rows
    while kept:
        rounded, wrong = _tried(closure, kept, starts, precision, again)
        if not wrong:
            return rounded
        kept = {i: rows for i, rows in kept.items() if i not in wrong}
    return None


def _starts(closure: Closure) -> np.ndarray:
    motion, start = closure.motion, closure.motion.start()
    rng = np.random.default_rng(0)
    goals = np.stack([motion.random(rng) for _ in _WAYS])
    return motion.integrate(start, np.array(_WAYS)[:, None] * motion.difference(start, goals))


def _sizes(closure: Closure, i: int, K: np.ndarray) -> np.ndarray:
    """For each row of a loop how large a residual would be plain: for turns one, for shifts the size of its loop, m.

    That is the largest entry of K in those rows of its constraint that are about shifts; or of the whole cluster, if
    there is only one, which may be across the loop. Rows of a coupling are as large as their own entries.
    """
    loop, entries = closure.loops[i], np.abs(K[:, closure.places[i][1]]).max(axis=(0, 2), initial=0.0)
    sizes, shifts = np.ones(loop.rows), np.zeros(loop.rows, bool)
    for constraint, rows in loop.parts():
        if isinstance(constraint, LoopConstraint):
            shifts[rows] = is_shift(constraint)
    for constraint, rows in loop.parts():
        if isinstance(constraint, LoopConstraint):
            own = np.flatnonzero(shifts[rows]) + rows.start
            sizes[own] = (entries[own] if len(own) > 1 else entries[shifts]).max(initial=0.0)
        else:
            sizes[rows] = entries[rows]
    return np.where(sizes > 0.0, sizes, 1.0)


def is_shift(constraint: LoopConstraint) -> np.ndarray:
    """For each row of a loop joint whether it is about the positions of points, and not about directions alone."""
    shifts = (0.3, -0.7, 0.5), (1.1, 0.4, -0.6)
    one, other = (constraint.kind.residual(Transform.translation(r)) for r in shifts)
    return np.asarray(one) != np.asarray(other)


def _scaled(closure: Closure, i: int, K: np.ndarray) -> np.ndarray:
    """K of a loop in each sample, with rows relative to their sizes."""
    own = K[:, closure.places[i][1]]
    return np.nan_to_num(own / _sizes(closure, i, K)[:, None])


def _kept(K: np.ndarray, precision: float) -> np.ndarray | None:
    """The rows that are as many as singular values above the gap, or None where there is no gap."""
    with_gap: list[tuple[int, float, int]] = []  # for samples with a gap: the rank, the value above the gap, the number
    for number, values in enumerate(np.linalg.svd(K, compute_uv=False)):
        strict = int((values > RANK * values[0]).sum())
        rank = int((values > _MANY * precision).sum())
        if rank and (rank >= strict or values[rank - 1] >= _GAP * values[rank]):
            with_gap.append((rank, float(values[rank - 1]), number))
    if not with_gap:
        return None
    rank, _, best = max(with_gap)
    return np.sort(pivots(K[best].T, rank))


def _tried(
    closure: Closure,
    kept: dict[int, np.ndarray],
    starts: np.ndarray,
    precision: float,
    again: Callable[[list[Constraint]], Closure],
) -> tuple[Rounded, set[int]]:
    """The constraints with only these rows, and the loops whose other rows do not follow from them after all."""
    constraints: list[Constraint] = []
    dropped: dict[str, int] = {}
    for i, loop in enumerate(closure.loops):
        for constraint, rows in loop.parts():
            own = kept[i][(kept[i] >= rows.start) & (kept[i] < rows.stop)] - rows.start if i in kept else None
            if own is None or len(own) == constraint.rows:
                constraints.append(constraint)
                continue
            dropped[constraint.name] = constraint.rows - len(own)
            if len(own):
                constraints.append(_reduced(constraint, tuple(own.tolist())))
    phi, K, _ = closure.at(again(constraints).assemble(starts))
    wrong, misses = set[int](), 0.0
    for i in kept:
        missed = np.abs(phi[:, closure.places[i][0]])
        closed = missed[:, kept[i]].max(axis=-1, initial=0.0) < CLOSED
        follow = closed & ((missed / _sizes(closure, i, K)).max(axis=-1) <= _MISSES * precision)
        if follow.sum() < 2 or (closed & ~follow).any():
            wrong.add(i)
        else:
            misses = max(misses, float(missed[follow].max()))
    return Rounded(constraints, dropped, misses), wrong


def _reduced(constraint: Constraint, rows: tuple[int, ...]) -> Constraint:
    every = tuple(range(len(rows)))
    if isinstance(constraint, LoopConstraint):
        return replace(constraint, kind=Some(constraint.kind, rows), rows=len(rows), kept=every)
    named = constraint.traced_as, rows
    function = partial(_some_rows, constraint.function, rows)
    return replace(constraint, function=function, rows=len(rows), kept=every, traced_as=named)


def _some_rows(function: Callable[[Any, Any], Any], rows: tuple[int, ...], q: Any, numbers: Any) -> Any:
    return function(q, numbers)[list(rows)]
