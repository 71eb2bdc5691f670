"""Loops with rounded numbers: rows that would follow from others if the numbers were exact are dropped.

Files have four to seven digits. Axes that are parallel in the robot are then parallel to 1e-5. A planar loop, three of
whose five rows follow from the others, strictly speaking has five independent rows and cannot move. Or rows do follow
from others but do not close, because lengths along the axes differ by half a millimetre.

What was meant shows in the singular values of K at configurations that nearly close. With rows relative to the size of
their loop, those of real constraints are of the order of one, those of rounding are of its order, and there is a gap in
between. As many rows are kept as there are singular values above the gap. Then a test shows whether the others really
follow: wherever the kept rows close, near and far from where joints start, the others must close up to the rounding.
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

_MANY = 20.0  # singular values below this multiple of the precision may be rounding
_GAP = 10.0  # the smallest ratio of singular values of real constraints to those of rounding
_MISSES = 20.0  # by this multiple of the precision, relative to the size of a loop, rows that follow may fail to close
_WAYS = (0.0, 0.05, 0.2, 0.4, 0.7, 1.0)  # fractions of the way from where joints start to random positions


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
        constraints: the remaining constraints.
        dropped: the number of dropped rows, by the name of the constraint.
        misses: the largest residual of dropped rows where all others are closed, m or rad.
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
    """Whether some singular values at closed configurations p are too small for real constraints, and not zero."""
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
        is_solved: for each loop, whether it has a solution γ; such loops are left alone.
        precision: the rounding of numbers, m or rad.
        again: returns the closure of other constraints.
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
    """For each row of a loop the scale of its residual: one for rotations, the size of the loop, m, for translations.

    The size of the loop is the largest entry of K in the translational rows of the constraint. A single such row may
    point across the loop, so that all of the cluster count then. The scale of a coupling's row is its largest entry.
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
    """For each row of a loop joint, whether it depends on translations, and not on rotations alone."""
    shifts = (0.3, -0.7, 0.5), (1.1, 0.4, -0.6)
    one, other = (constraint.kind.residual(Transform.translation(r)) for r in shifts)
    return np.asarray(one) != np.asarray(other)


def _scaled(closure: Closure, i: int, K: np.ndarray) -> np.ndarray:
    """K of a loop in each sample, with rows divided by their scales."""
    own = K[:, closure.places[i][1]]
    return np.nan_to_num(own / _sizes(closure, i, K)[:, None])


def _kept(K: np.ndarray, precision: float) -> np.ndarray | None:
    """As many independent rows as there are singular values above the gap; None where there is no gap."""
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
    """The constraints with only the kept rows, and the loops whose other rows turn out not to follow from them."""
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
