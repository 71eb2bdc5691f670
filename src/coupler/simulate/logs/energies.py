"""Energies of logged states, some of which a robot may not be able to have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.model import ModelError, Robot


def energies_of(energy: Callable[..., np.ndarray], robot: Robot, *state: np.ndarray) -> np.ndarray:
    """(T,), the energies of states, given by q or by q and v; NaN where a state is not finite or not possible."""
    energies = np.full(len(state[0]), np.nan)
    finite = np.flatnonzero(np.all([np.isfinite(part).all(axis=1) for part in state], axis=0))
    waiting = [finite] if finite.size else []
    while waiting:
        rows = waiting.pop()
        try:
            energies[rows] = energy(robot, *(part[rows] for part in state))
        except ModelError:  # for one impossible state: halve the rows until it is found
            waiting += np.array_split(rows, 2) if len(rows) > 1 else []
    return energies
