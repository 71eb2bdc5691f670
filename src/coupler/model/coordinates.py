"""Which joint velocities of a cluster are independent, and which rows of its constraints count.

With K w = 0 for joint velocities w, rows that follow from others are dropped, and as many columns as rows are left are
dependent: K_D must be regular, so that w_D = −K_D⁻¹ K_I w_I. Both choices are made at generic closed configurations, by
pivoting, and the choice that stays furthest from singular over all of them is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.closure import RANK

__all__ = ["Choice", "Preference", "choose", "conditioning", "generic_rank", "pivots"]

_CANDIDATES = 3  # samples that propose a choice; all of them judge it
_POOR = 1e-3  # a pivot below this part of the largest column is passed over while there are better ones


class Preference:
    """Why a joint velocity would rather be independent; the larger, the stronger."""

    SOLVED, NONE, ACTUATED, MARKED = range(4)


@dataclass(frozen=True, eq=False)
class Choice:
    """The coordinates of a cluster.

    Attributes:
        rows: numbers of the rows that are kept, among those of its loop.
        dependent, independent: numbers of columns, among those of its loop, in ascending order.
        quality: the smallest singular value of K_D over the largest of K, in the worst of the configurations.
    """

    rows: np.ndarray
    dependent: np.ndarray
    independent: np.ndarray
    quality: float


def generic_rank(K: np.ndarray) -> int:
    """The rank of K, samples × m × n, at most of the samples: where it is largest."""
    return int(_ranks(K).max(initial=0))


def _ranks(K: np.ndarray) -> np.ndarray:
    if not K.size:
        return np.zeros(len(K), int)
    sigma = np.linalg.svd(K, compute_uv=False)
    return (sigma > RANK * np.maximum(sigma[:, :1], _smallest(K))).sum(axis=1)


def _smallest(K: np.ndarray) -> float:
    """What counts as nothing beside the largest entry in any sample: a K that is zero has no rank."""
    return float(1e-9 * np.abs(K).max(initial=0.0) + 1e-12)


def choose(K: np.ndarray, preferences: np.ndarray, usable: np.ndarray) -> Choice:
    """Rows and columns of a cluster.

    Args:
        K: samples × m × n, the Jacobians at generic closed configurations.
        preferences: for each column how much it should be independent; see `Preference`.
        usable: for each row whether it may be kept.
    """
    K = K[_ranks(K) == generic_rank(K)]
    allowed = np.flatnonzero(usable)
    rank = generic_rank(K[:, allowed])
    some = np.linspace(0, len(K) - 1, _CANDIDATES).astype(int)
    rows = _best([allowed[pivots(A[allowed].T, rank)] for A in K[some]], lambda rows: conditioning(K[:, rows], K))
    kept = K[:, rows]

    def merit(columns: np.ndarray) -> tuple[float, float]:
        quality = conditioning(kept[:, :, columns], kept)
        return -float(preferences[columns].sum()) if quality > _POOR * 1e-2 else -np.inf, quality

    dependent = _best([pivots(A, rank, preferences) for A in kept[some]], merit)
    independent = np.setdiff1d(np.arange(K.shape[2]), dependent)
    return Choice(rows, dependent, independent, conditioning(kept[:, :, dependent], kept))


def _best(candidates: Iterable[np.ndarray], merit: Callable[[np.ndarray], Any]) -> np.ndarray:
    """The candidate of the highest merit, in ascending order."""
    different = {tuple(sorted(candidate.tolist())) for candidate in candidates}
    return max((np.array(candidate, int) for candidate in sorted(different)), key=merit)


def conditioning(part: np.ndarray, whole: np.ndarray) -> float:
    """The smallest singular value of a part of K over the largest of K, in the worst of the samples."""
    if not part.size:
        return 1.0
    smallest = np.linalg.svd(part, compute_uv=False)[..., -1]
    return float((smallest / np.linalg.norm(whole, 2, axis=(-2, -1))).min())


def pivots(A: np.ndarray, count: int, preferences: np.ndarray | None = None) -> np.ndarray:
    """Columns of A that are independent of each other, by pivoting.

    Those of the lowest preference are taken first, as long as they do not nearly depend on what has been taken.
    """
    A = A.copy()
    classes = np.zeros(A.shape[1], int) if preferences is None else preferences
    scale = np.linalg.norm(A, axis=0).max(initial=0.0)
    taken: list[int] = []
    for threshold in (_POOR, 0.0):
        for level in np.unique(classes):
            while len(taken) < count:
                length = np.linalg.norm(A, axis=0)
                length[taken] = -1.0
                length[classes != level] = -1.0
                best = int(np.argmax(length))
                if length[best] <= threshold * scale:
                    break
                taken.append(best)
                direction = A[:, best] / length[best]
                A -= np.outer(direction, direction @ A)
    return np.array(taken[:count], int)
