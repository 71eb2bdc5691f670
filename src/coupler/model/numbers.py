"""Checking the numbers that a user gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.wording import clipped, in_state

LARGEST = 1e30  # in any unit: more than any robot has, and small enough that products of several do not overflow

_FEW = 36  # the most numbers of an array that a message shows


def numbers(
    what: str,
    value: Any,
    shape: tuple[int, ...],
    *,
    finite: bool = True,
    least: float = -np.inf,
    spread: bool = False,
    batch: bool = False,
) -> np.ndarray:
    """The value as a read-only array of that shape.

    Args:
        what: what to call the value in an error.
        value: what the user gave.
        shape: the shape that it must have.
        finite: whether it must be finite; NaN is never accepted.
        least: the smallest value that is accepted.
        spread: whether one number stands for an array of equal ones.
        batch: whether it may have leading dimensions.

    Raises:
        ModelError: saying what is wanted and what was given.
    """

    def refused(got: str) -> ModelError:
        wanted = _wanted(() if spread and shape == (1,) else shape, finite, least, batch)
        return ModelError(f"{what} must be {wanted}, {got}")

    check_unmasked(what, value)
    try:
        given = np.asarray(value)
    except ValueError:
        raise refused(f"got {_shown(value)}") from None
    if given.dtype.kind not in "fiu" or (given.shape != shape and not (batch or (spread and given.ndim == 0))):
        raise refused(f"got {_shown(value)}")
    array = np.array(given, dtype=float)
    if spread and array.ndim == 0:
        array = np.full(shape, array)
    if batch and (array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape):
        raise refused(f"got the shape {array.shape}")
    right = np.isfinite(array) if finite else ~np.isnan(array)
    if least > -np.inf:
        right &= array >= least
    if not right.all():
        got = f"got {_shown(value)}"
        if batch or array.size > _FEW:
            at = tuple(int(i) for i in np.argwhere(~right)[0])
            state, entry = at[: len(at) - len(shape)], at[len(at) - len(shape) :]
            if entry:
                got = f"entry {', '.join(map(str, entry))}{in_state(state)} is {array[at]}"
            elif array.size > _FEW:
                got = f"got {array[at]}{in_state(state)}"
        raise refused(got)
    array.setflags(write=False)
    return array


def positive_integer(what: str, value: Any) -> int:
    """The value, refused unless it is a whole number from 1 on."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ModelError(f"{what} must be a whole number from 1 on, got {value!r}")
    return int(value)


def switch(what: str, value: Any) -> bool:
    """The value, refused unless it is True or False: a text such as "no" would count as True."""
    if not isinstance(value, bool | np.bool):
        raise ModelError(f"{what} must be True or False, got {clipped(value)}")
    return bool(value)


def as_array(what: str, value: Any) -> np.ndarray:
    """The value as an array of any shape and type; rows of different lengths and masked entries raise a ModelError."""
    check_unmasked(what, value)
    try:
        return np.asarray(value)
    except ValueError:
        raise ModelError(f"{what} must be an array, got {clipped(value)}, whose rows have different lengths") from None


def check_unmasked(what: str, value: Any) -> None:
    """Raises a ModelError for an array with masked entries: what is under a mask is not a number to compute with."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ModelError(f"{what} has masked entries, which have no value; give them one, as .filled(0.0) does")


def _shown(value: Any) -> str:
    """A value for messages: a small array as lists, which are easier to read, and a large one by its shape."""
    if not isinstance(value, np.ndarray | np.generic):
        return clipped(value)
    return repr(value.tolist()) if value.size <= _FEW else f"an array of the shape {value.shape}"


def _wanted(shape: tuple[int, ...], finite: bool, least: float, batch: bool) -> str:
    kind = "finite " if finite else ""
    wanted = f"{' × '.join(map(str, shape))} {kind}numbers" if np.prod(shape) != 1 else f"a {kind}number"
    wanted = f"an array of one {kind}number" if shape == (1,) else wanted
    wanted += f", {least:g} or more" if least > -np.inf else ""
    return wanted + (" (with leading dimensions for a batch)" if batch else "")


def shaped(joint: str, value: Any, size: int) -> np.ndarray:
    """A user's positions or velocities of a joint, (..., size); a joint of size 1 takes plain numbers."""
    array = numbers(f"joint {joint!r}: what it is given", value, () if size == 1 else (size,), batch=True)
    return array[..., None] if size == 1 else array


def batch_of(values: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """The common leading dimensions of arrays, given by name; a ModelError if they do not fit together."""
    try:
        return np.broadcast_shapes(*(value.shape[:-1] for value in values.values()))
    except ValueError:
        shapes_by_name = ", ".join(f"{name}: {value.shape[:-1]}" for name, value in values.items())
        raise ModelError(f"leading (batch) dimensions do not fit together: {shapes_by_name}") from None
