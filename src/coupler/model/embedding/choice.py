"""Which joint velocities of a cluster are independent, and which rows of its constraints count.

With K w = 0 for joint velocities w, rows that follow from others are dropped, and as many columns as there are
remaining rows are dependent: K_D must be regular, so that w_D = −K_D⁻¹ K_I w_I. Rows and columns are chosen by pivoting
at several generic closed configurations; the choice that stays furthest from singular over all of them wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.tolerances import RANK, TINY

_CANDIDATES = 3  # samples that propose a choice; all samples rate it
_ABOUT_EQUAL = 0.5  # pivots above this part of the largest are as good as it
_POOR = 1e-3  # pivots below this part of the largest column are used only when no better ones are left
_BAD = 1e-5  # coordinates of a lower quality are used only where there are no others, whatever is preferred
_ROUNDING = 1e-16  # lower qualities are all equally bad
_NOTHING = 1e-9  # a sample's K is nothing below this part of the largest of all
_ZERO = 1e-12  # m, rad: what is below this is rounding, even if a cluster's K has nothing else


class Preference:
    """How strongly a joint velocity is preferred as independent, in ascending order.

    SOLVED velocities are determined by a coupling, PARTIAL ones belong to a joint of several freedoms.
    """

    SOLVED, PARTIAL, SINGLE, ACTUATED, MARKED = range(5)


@dataclass(frozen=True, eq=False)
class Choice:
    """The coordinates of a cluster.

    Attributes:
        rows: numbers of the rows that are kept, among those of its loop.
        dependent, independent: numbers of columns, among those of its loop, in ascending order.
        quality: how far they usually are from singular: the smallest singular value of K_D over the largest of K.
    """

    rows: np.ndarray
    dependent: np.ndarray
    independent: np.ndarray
    quality: float


def ranks(K: np.ndarray) -> np.ndarray:
    """The rank of K in each sample."""
    if not K.size:
        return np.zeros(len(K), int)
    sigma = np.linalg.svd(np.nan_to_num(K), compute_uv=False)
    largest = np.maximum(sigma[:, :1], _NOTHING * np.abs(K).max())
    return (sigma > np.maximum(RANK * largest, _ZERO)).sum(axis=1)


def choose(K: np.ndarray, preferences: np.ndarray, usable: np.ndarray) -> Choice:
    """The rows and columns of a cluster; their quality is left at zero.

    Args:
        K: samples × m × n, the Jacobians at generic closed configurations.
        preferences: for each column how much it should be independent; see `Preference`.
        usable: for each row whether it may be kept.
    """
    of_sample, allowed = ranks(K), np.flatnonzero(usable)
    K = K[of_sample == of_sample.max()]
    rank = int(of_sample.max() if usable.all() else ranks(K[:, allowed]).max())
    some = np.linspace(0, len(K) - 1, _CANDIDATES).astype(int)
    rows = best([allowed[pivots(A[allowed].T, rank)] for A in K[some]], lambda rows: qualities(K[:, rows], K).min())
    K = K[:, rows]

    def merit(columns: np.ndarray) -> tuple[float, ...]:
        worst = qualities(K[:, :, columns], K).min()
        magnitude = np.floor(np.log10(max(worst, _ROUNDING)))
        return worst > _BAD, -float(preferences[columns].sum()), magnitude, float(columns.sum())

    dependent = best([pivots(A, rank, preferences) for A in K[some]], merit)
    independent = np.setdiff1d(np.arange(K.shape[2]), dependent)
    return Choice(rows, dependent, independent, 0.0)


def equilibrated(K: np.ndarray) -> np.ndarray:
    """Jacobians, samples × m × n, whose rows and then columns are scaled to the same size in all samples."""
    for axes in ((0, 2), (0, 1)):
        size = np.abs(np.nan_to_num(K)).max(axis=axes, keepdims=True)
        K = K / np.where(size > _ZERO, size, 1.0)
    return K


def fitting(K: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """The samples at which the marked columns can be independent; all samples if there are none.

    A loop may have a branch on which some joints are at rest. A user who marks such a joint means another branch.
    """
    everything = np.arange(len(K))
    fits = ranks(K[:, :, ~marked]) == ranks(K) if marked.any() else everything >= 0
    return everything[fits] if fits.any() else everything


def best(candidates: Iterable[np.ndarray], merit: Callable[[np.ndarray], Any]) -> np.ndarray:
    """The candidate of the highest merit, in ascending order."""
    different = {tuple(sorted(candidate.tolist())) for candidate in candidates}
    return max((np.array(candidate, int) for candidate in sorted(different)), key=merit)


def qualities(part: np.ndarray, K: np.ndarray) -> np.ndarray:
    """In each sample, the smallest singular value of some rows and columns of K over the largest of K; 0 for a NaN."""
    if not part.size:
        return np.ones(K.shape[:-2])
    smallest = np.linalg.svd(np.nan_to_num(part), compute_uv=False)[..., -1]
    largest = np.linalg.norm(np.nan_to_num(K), 2, axis=(-2, -1))
    return np.where(np.isfinite(K).all(axis=(-2, -1)), smallest / np.maximum(largest, TINY), 0.0)


def pivots(A: np.ndarray, count: int, preferences: np.ndarray | None = None) -> np.ndarray:
    """Columns of A that are independent of each other, by pivoting.

    With preferences, columns of the lowest preference are chosen first unless they nearly depend on those chosen
    before; of columns that are about equally good, the last: joints far from the base then depend on those near it.
    """
    A = A.copy()
    classes = np.zeros(A.shape[1], int) if preferences is None else preferences
    slack = 1.0 if preferences is None else _ABOUT_EQUAL
    scale = np.linalg.norm(A, axis=0).max(initial=0.0)
    taken: list[int] = []
    for threshold in (_POOR, 0.0):
        for level in np.unique(classes):
            while len(taken) < count:
                length = np.linalg.norm(A, axis=0)
                length[taken] = -1.0
                length[classes != level] = -1.0
                if length.max() <= threshold * scale:
                    break
                best = int(np.flatnonzero(length >= slack * length.max())[-1])
                taken.append(best)
                direction = A[:, best] / length[best]
                A -= np.outer(direction, direction @ A)
    return np.array(taken, int)
