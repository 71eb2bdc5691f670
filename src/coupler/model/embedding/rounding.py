"""Loops with rounded numbers: rows that would follow from others if the numbers were exact are dropped.

Files have four to seven digits. Axes that are parallel in the robot are then parallel to 1e-5. A planar loop, three of
whose five rows follow from the others, strictly speaking has five independent rows and cannot move. Or rows do follow
from others but do not close, because lengths along the axes differ by half a millimetre.

What was meant shows in the singular values of K at configurations that nearly close. With rows relative to the size of
their loop, those of real constraints are of the order of one, those of rounding are of its order, and there is a gap in
between. As many rows are kept as there are singular values above the gap, where the loop moves as it does at the start:
it may have other assemblies. Then a test shows whether the others really follow: wherever the kept rows let the loop
move from there, the others must stay closed up to the rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coupler.model.embedding.choice import best, pivots, qualities
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.model.embedding.rounding_limits import MANY, LoopSamples
from coupler.model.loop_kind import LoopKind
from coupler.model.tolerances import CLOSED, MADE_CLOSED, RANK
from coupler.model.wording import counted, listed
from coupler.spatial import Transform

_ZERO = 1e-12  # singular values below this part of the largest are zero but for the rounding of double precision
_GAP = 10.0  # the smallest ratio of singular values of real constraints to those of rounding
_REGULAR = 0.3  # rows are judged where their quality is above this part of its median
_WAYS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # fractions of the way from where joints start to random positions
_MOVES = (0.1, 0.25)  # rad or m: how far a loop is moved on to see whether rows follow there


@dataclass(frozen=True, eq=False)
class Some(LoopKind):
    """A kind of loop of which only some rows are kept.

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
    """Whether loops hardly close at p, or have singular values too small for real constraints, and not zero."""
    if (closure.gaps(closure.at(p)[0]) > MADE_CLOSED).any():
        return True
    for samples in LoopSamples.of_all(closure, p, precision):
        sigma = np.linalg.svd(samples.scaled, compute_uv=False)
        real = sigma > _ZERO * np.maximum(sigma[:, :1], 1.0)
        if (real & (sigma < MANY * samples.relative)).any():
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
    p = _nearly_closed(closure, precision)
    kept: dict[int, _Kept] = {}
    for i, samples in enumerate(LoopSamples.of_all(closure, p, precision)):
        if is_solved[i]:
            continue
        near = np.asarray((np.abs(samples.phi) <= samples.limits(np.zeros(0, int))).all(axis=1))
        found = _kept(samples.scaled, near, samples.relative)
        if found is not None and len(found.rows) < samples.loop.rows:
            kept[i] = found
    while kept:
        rounded, wrong = _tried(closure, kept, p, precision, again)
        if not wrong:
            return rounded
        kept = {i: found for i, found in kept.items() if i not in wrong}
    return None


def _nearly_closed(closure: Closure, precision: float) -> np.ndarray:
    """Configurations in which loops are as closed as they can be, the first nearest to where joints start.

    Loops that nothing closes further, but for rounding, stay where they are: a drawer would slide for miles in order to
    bring its second rail, which is hardly inclined, nearer by a millimetre.
    """
    motion, start = closure.motion, closure.motion.start()
    rng = np.random.default_rng(0)
    goals = np.stack([motion.random(rng) for _ in _WAYS])
    starts = motion.integrate(start, np.array(_WAYS)[:, None] * motion.difference(start, goals))
    p = closure.assemble(starts, rank=MANY * precision)
    for samples in LoopSamples.of_all(closure, starts, precision):
        if samples.still.all():
            entries = closure.tree.positions_of(samples.loop.links)
            p[:, entries] = starts[:, entries]
    return p


@dataclass(frozen=True, eq=False)
class _Kept:
    """The rows of a loop that are kept.

    Attributes:
        rows: the numbers of these rows.
        samples: the numbers of the samples in which the loop nearly closes and these rows have full rank.
        motions: for each sample a velocity of size one that the rows allow.
    """

    rows: np.ndarray
    samples: np.ndarray
    motions: np.ndarray


def _kept(K: np.ndarray, near: np.ndarray, precision: float) -> _Kept | None:
    """As many independent rows as there are singular values above the gap; None where there is no gap.

    Args:
        K: samples × m × n, scaled; the first sample is the one nearest to where joints start.
        near: for each sample, whether the loop nearly closes there.
    """
    with_gap = dict[int, int]()  # the ranks of samples with a gap
    for number in np.flatnonzero(near).tolist():
        values = np.linalg.svd(K[number], compute_uv=False)
        strict = int((values > RANK * max(values[0], 1.0)).sum())
        rank = int((values > MANY * precision).sum())
        least = values[rank - 1] if rank else 1.0  # of the order of which those of real constraints are
        if rank >= strict or least >= _GAP * values[rank]:
            with_gap[number] = rank
    if not with_gap:
        return None
    ranks = list(with_gap.values())
    rank = ranks[0] if ranks.count(ranks[0]) > 1 else max(ranks)
    samples = [number for number, its_rank in with_gap.items() if its_rank == rank]
    rows = best(
        [pivots(K[number].T, rank) for number in samples], lambda rows: qualities(K[samples][:, rows], K[samples]).min()
    )
    rng = np.random.default_rng(0)
    motions = [_motion(K[number][rows], rng) for number in samples]
    return _Kept(rows, np.array(samples), np.array(motions))


def _motion(K: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A velocity v with K v = 0 whose largest entry is one; zero if there is none."""
    free = np.linalg.svd(K)[2][len(K) :]
    v = rng.standard_normal(len(free)) @ free
    return v / np.abs(v).max() if len(free) else np.zeros(K.shape[1])


def _tried(
    closure: Closure,
    kept: dict[int, _Kept],
    p: np.ndarray,
    precision: float,
    again: Callable[[list[Constraint]], Closure],
) -> tuple[Rounded, set[int]]:
    """The constraints with only the kept rows, and the loops whose other rows turn out not to follow from them.

    Args:
        p: the samples, in which all rows nearly close.
    """
    constraints: list[Constraint] = []
    dropped: dict[str, int] = {}
    for i, loop in enumerate(closure.loops):
        for constraint, rows in loop.parts():
            enough = kept[i].rows if i in kept else np.arange(loop.rows)
            remaining = enough[(enough >= rows.start) & (enough < rows.stop)] - rows.start
            if len(remaining) == constraint.rows:
                constraints.append(constraint)
                continue
            dropped[constraint.name] = constraint.rows - len(remaining)
            constraints.append(_reduced(constraint, tuple(remaining.tolist())))  # also without rows: its joint is there
    moves = np.zeros((len(_MOVES), len(p), closure.tree.nv))
    for i, found in kept.items():
        moves[:, found.samples[:, None], closure.loops[i].columns] = np.multiply.outer(_MOVES, found.motions)
    moved = closure.motion.integrate(np.tile(p, (len(_MOVES), 1)), moves.reshape(-1, closure.tree.nv))
    seen = LoopSamples.of_all(closure, again(constraints).assemble(moved), precision)
    wrong, misses = set[int](), 0.0
    for i, found in kept.items():
        samples = np.add.outer(len(p) * np.arange(len(_MOVES)), found.samples).ravel()
        missed, K = np.abs(seen[i].phi[samples]), seen[i].scaled[samples]
        closed = missed[:, found.rows].max(axis=-1, initial=0.0) < CLOSED
        quality = qualities(K[:, found.rows], K)
        regular = closed & (quality > _REGULAR * np.median(quality))  # where the rows hardly count, errors grow
        follow = regular & (seen[i].misses() <= seen[i].limits(found.rows))[samples].all(axis=1)
        if follow.sum() < 2 or (regular & ~follow).any():
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


def whole(constraint: Constraint) -> Constraint:
    """A loop joint with all of its rows again, of which the same ones count. Couplings stay as they are."""
    if not isinstance(constraint, LoopConstraint) or not isinstance(constraint.kind, Some):
        return constraint
    kind, rows = constraint.kind.whole, constraint.kind.rows
    count, kept = len(kind.residual(Transform.identity())), tuple(rows[row] for row in constraint.kept)
    return replace(constraint, kind=kind, rows=count, kept=kept)


def _some_rows(function: Callable[[Any, Any], Any], rows: tuple[int, ...], q: Any, numbers: Any) -> Any:
    return function(q, numbers)[list(rows)]
