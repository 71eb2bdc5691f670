"""Numbers that a user gives, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.errors import ModelError

__all__ = ["numbers"]


def numbers(
    what: str,
    value: Any,
    shape: tuple[int, ...],
    *,
    finite: bool = True,
    least: float = -np.inf,
    spread: bool = False,
) -> np.ndarray:
    """The value as a read-only copy of that shape.

    Args:
        what: how the value is called in an error.
        value: what the user gave.
        shape: what it must have.
        finite: whether it must be finite; NaN is never taken.
        least: what it must not be below.
        spread: whether a single number stands for equal ones.

    Raises:
        ModelError: naming what is wanted and what was given.
    """
    kind = "finite " if finite else ""
    wanted = f"{' × '.join(map(str, shape))} {kind}numbers" if np.prod(shape) > 1 else f"a {kind}number"
    wanted += f", {least:g} or more" if least > -np.inf else ""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be {wanted}, got {value!r}") from None
    if spread and array.ndim == 0:
        array = np.full(shape, array)
    if array.shape != shape or np.isnan(array).any() or (finite and np.isinf(array).any()) or (array < least).any():
        raise ModelError(f"{what} must be {wanted}, got {value!r}")
    array.setflags(write=False)
    return array
