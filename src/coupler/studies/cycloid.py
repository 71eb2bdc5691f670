"""The cycloid, along which studies move joints: from 0 to 1, at rest at both ends."""

from __future__ import annotations

import numpy as np


def cycloid(t: np.ndarray, duration: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity (1/s) and acceleration (1/s²) at times t, s.

    Args:
        t: any shape, s; after the duration, the motion goes on to 2, 3, ...
        duration: from 0 to 1, s.
    """
    phase = 2 * np.pi * t / duration
    position = (phase - np.sin(phase)) / (2 * np.pi)
    return position, (1 - np.cos(phase)) / duration, 2 * np.pi * np.sin(phase) / duration**2
