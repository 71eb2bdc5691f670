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
from coupler.model.loop_kind import LoopKind
from coupler.model.tolerances import CLOSED, MADE_CLOSED, RANK
from coupler.model.tree import Tree
from coupler.model.wording import counted, listed
from coupler.spatial import Transform

_ZERO = 1e-12  # singular values below this part of the largest are zero but for the rounding of double precision
_MANY = 20.0  # singular values below this multiple of the precision may be rounding
_GAP = 10.0  # the smallest ratio of singular values of real constraints to those of rounding
_MISSES = 20.0  # by this multiple of the precision, relative to the size of a loop, rows that follow may fail to close
_SMALL = 0.25  # m: loops smaller than this are less precise, since their lengths are rounded by more relative to them
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
    phi, K, _ = closure.at(p)
    if (closure.gaps(phi) > MADE_CLOSED).any():
        return True
    for i in range(len(closure.loops)):
        sigma = np.linalg.svd(_scaled(closure, i, K, precision), compute_uv=False)
        relative = precision * _smallness(closure, i, K, precision)
        if ((sigma > _ZERO * np.maximum(sigma[:, :1], 1.0)) & (sigma < _MANY * relative)).any():
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
    p = closure.assemble(_starts(closure), rank=_MANY * precision)
    phi, K, _ = closure.at(p)
    kept: dict[int, _Kept] = {}
    for i, loop in enumerate(closure.loops):
        relative = precision * _smallness(closure, i, K, precision)
        near = _misses(closure, i, K, phi[:, closure.places[i][0]], precision) < _MISSES * relative
        found = None if is_solved[i] else _kept(_scaled(closure, i, K, precision), near, relative)
        if found is not None and len(found.rows) < loop.rows:
            kept[i] = found
    while kept:
        rounded, wrong = _tried(closure, kept, p, precision, again)
        if not wrong:
            return rounded
        kept = {i: found for i, found in kept.items() if i not in wrong}
    return None


def _starts(closure: Closure) -> np.ndarray:
    motion, start = closure.motion, closure.motion.start()
    rng = np.random.default_rng(0)
    goals = np.stack([motion.random(rng) for _ in _WAYS])
    return motion.integrate(start, np.array(_WAYS)[:, None] * motion.difference(start, goals))


def _sizes(closure: Closure, i: int, K: np.ndarray, precision: float) -> np.ndarray:
    """For each row of a loop the scale of its residual: one for rotations, the size of the loop, m, for translations.

    The size of the loop is the largest entry of K in the translational rows of the constraint. A single such row may
    point across the loop, so that all of the cluster count then. The scale of a coupling's row is its largest entry.

    No motion of a door moves its second hinge, whose entries of K are but rounding. There the size is how far the loop
    reaches, which is what turns rounded directions into lengths.
    """
    loop, entries = closure.loops[i], np.abs(K[:, closure.places[i][1]]).max(axis=(0, 2), initial=0.0)
    sizes, shifts = np.ones(loop.rows), np.zeros(loop.rows, bool)
    for constraint, rows in loop.parts():
        if isinstance(constraint, LoopConstraint):
            shifts[rows] = is_shift(constraint)
    for constraint, rows in loop.parts():
        if isinstance(constraint, LoopConstraint):
            lengths = np.flatnonzero(shifts[rows]) + rows.start
            size = (entries[lengths] if len(lengths) > 1 else entries[shifts]).max(initial=0.0)
            reach = _reach(constraint, closure.tree)
            sizes[lengths] = size if size > _MANY * precision * max(reach, _SMALL) else reach
        else:
            sizes[rows] = entries[rows]
    return np.where(sizes > 0.0, sizes, 1.0)


def _reach(constraint: LoopConstraint, tree: Tree) -> float:
    """How far apart two joints of a loop can be, m: half of the way around it, from joint to joint.

    Joints are taken to be at the frames of the bodies that they carry; frames of links may have been slid along axes.
    """
    way, starts = 0.0, []
    for links, frame in zip(constraint.ways, constraint.frames, strict=True):
        end = frame.r  # in the frame of the link on which it is, from the outside in
        for link in links:
            joint, placement = tree.place[tree.links[link].name][1].r, tree.links[link].placement
            way += float(np.linalg.norm(end - joint))
            end = placement.r + placement.E.T @ joint
        starts.append(end)
    return 0.5 * (way + float(np.linalg.norm(starts[0] - starts[1])))


def _misses(closure: Closure, i: int, K: np.ndarray, residuals: np.ndarray, precision: float) -> np.ndarray:
    """In each sample the largest residual of a loop, relative to the scales of its rows."""
    return (np.abs(residuals) / _sizes(closure, i, K, precision)).max(axis=-1, initial=0.0)


def _smallness(closure: Closure, i: int, K: np.ndarray, precision: float) -> float:
    """By how much the rounding of lengths counts for more in a loop than in larger ones."""
    sizes, least = _sizes(closure, i, K, precision), np.inf
    for constraint, rows in closure.loops[i].parts():
        shifts = is_shift(constraint) if isinstance(constraint, LoopConstraint) else np.zeros(0, bool)
        if shifts.any():
            least = min(least, float(sizes[rows][shifts].max()))
    return max(1.0, _SMALL / least)


def is_shift(constraint: LoopConstraint) -> np.ndarray:
    """For each row of a loop joint, whether it depends on translations, and not on rotations alone."""
    shifts = (0.3, -0.7, 0.5), (1.1, 0.4, -0.6)
    one, other = (constraint.kind.residual(Transform.translation(r)) for r in shifts)
    return np.asarray(one) != np.asarray(other)


def _scaled(closure: Closure, i: int, K: np.ndarray, precision: float) -> np.ndarray:
    """K of a loop in each sample, with rows divided by their scales."""
    K_loop = K[:, closure.places[i][1]]
    return np.nan_to_num(K_loop / _sizes(closure, i, K, precision)[:, None])


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
        rank = int((values > _MANY * precision).sum())
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
    phi, K, _ = closure.at(again(constraints).assemble(moved))
    wrong, misses = set[int](), 0.0
    for i, found in kept.items():
        samples = np.add.outer(len(p) * np.arange(len(_MOVES)), found.samples).ravel()
        missed = np.abs(phi[np.ix_(samples, closure.places[i][0])])
        closed = missed[:, found.rows].max(axis=-1, initial=0.0) < CLOSED
        K_i = _scaled(closure, i, K, precision)[samples]
        quality = qualities(K_i[:, found.rows], K_i)
        regular = closed & (quality > _REGULAR * np.median(quality))  # where the rows hardly count, errors grow
        relative = precision * _smallness(closure, i, K, precision)
        follow = regular & (_misses(closure, i, K, missed, precision) <= _MISSES * relative)
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


def _some_rows(function: Callable[[Any, Any], Any], rows: tuple[int, ...], q: Any, numbers: Any) -> Any:
    return function(q, numbers)[list(rows)]
