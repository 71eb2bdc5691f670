"""Products of matrices of floats or nodes, of which only some entries are needed, and numbers that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.rows import has_unknown, is_long_product, product

Array = Any  # an ndarray of floats, or of nodes


def known_value(x: Any) -> float | None:
    """The value of a number or of a constant node; None for a node whose value is known only at run time."""
    if hasattr(x, "op"):
        return x.value if x.op == "constant" else None
    return float(x)


def symmetric_product(A: Array, B: Array) -> Array:
    """The upper triangle of a symmetric product A B, with zeros below."""
    if is_long_product(A, B) and has_unknown(A, B):
        return product(A, B, ~np.tri(len(A), k=-1, dtype=bool))
    n = len(A)
    return np.array([[A[i] @ B[:, j] if i <= j else 0.0 for j in range(n)] for i in range(n)])


def product_where(A: Array, B: Array, wanted: np.ndarray) -> Array:
    """The entries of A B that are wanted, with zeros in place of the others."""
    if has_unknown(A, B):
        return product(A, B, wanted)
    return np.where(wanted, A @ B, 0.0)
