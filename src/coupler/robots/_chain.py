"""Common parts of chains of links and rotors, either all identical or random."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from coupler.model import ModelError, Revolute, RobotBuilder
from coupler.rotation import matrix_from_quaternion, normalize_quaternion

_LINK = {"mass": 1.0, "centre": (0.5, 0.0, 0.0), "inertia": (0.0, 0.0, 1.0), "ideal": True}
_ROTOR = {"inertia": (0.0, 0.0, 1e-4), "ideal": True}


class Chain:
    """A chain under construction.

    Without a seed it is planar and its parts are identical: links of 1 m along x and 1 kg, rotors with a moment of
    inertia about z only, and gravity along x. With a seed, numbers and frames are random, axes are x, y or z, and
    gravity is along −z; a longer chain begins like a shorter one of the same seed.

    Attributes:
        b: the builder of the robot.
    """

    def __init__(self, name: str, seed: int | None) -> None:
        self._rng = None if seed is None else np.random.default_rng(whole("seed", seed, least=0))
        self._points = _scattered()
        self.b = RobotBuilder(name, (9.81, 0.0, 0.0) if self._rng is None else (0.0, 0.0, -9.81))

    def add_link(self, name: str, joint: str, parent: str, contact: str) -> None:
        """Adds a link with a contact point, on an actuated joint."""
        self._add(name, joint, parent, _LINK, scale=1.0, actuated=True)
        self.b.contact(contact, name, next(self._points) if self._rng is None else self._rng.uniform(-1.0, 1.0, 3))

    def add_rotor(self, name: str, joint: str, parent: str) -> None:
        """Adds a rotor on its joint."""
        self._add(name, joint, parent, _ROTOR, scale=1e-4)

    def ratio(self, uniform: float) -> float:
        """The ratio of gears or pulleys: the given one, or a random one from 1 to 5."""
        return uniform if self._rng is None else float(self._rng.integers(1, 6))

    def _add(
        self, name: str, joint: str, parent: str, uniform: dict[str, Any], scale: float, actuated: bool = False
    ) -> None:
        """Adds a body on its joint, with the uniform numbers or with random ones of a given scale."""
        if self._rng is None:
            body, axis, at, turned = uniform, (0, 0, 1), (0.0 if parent == "ground" else 1.0, 0.0, 0.0), None
        else:
            body, axis = _random_body(self._rng, scale), np.eye(3)[self._rng.integers(3)]
            at, turned = self._rng.uniform(-1.0, 1.0, 3), _random_rotation(self._rng)
        self.b.body(name, **body)
        self.b.joint(joint, Revolute(axis=axis), parent, name, at, turned, actuated=actuated)


def whole(what: str, value: Any, least: int) -> int:
    """The value as a whole number.

    Raises:
        ModelError: if it is not a whole number, or below the least.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ModelError(f"{what} must be a whole number of at least {least}, got {value!r}")
    return number


def _random_body(rng: np.random.Generator, scale: float) -> dict[str, Any]:
    """Random mass, centre and inertia of a real body."""
    spread, axes = rng.uniform(0.1, 1.0, 3), _random_rotation(rng)  # ∫x², ∫y², ∫z² over the mass, and principal axes
    inertia = axes @ np.diag(spread.sum() - spread) @ axes.T
    mass, centre = rng.uniform(0.1, 1.0), rng.uniform(-1.0, 1.0, 3)
    return {"mass": scale * mass, "centre": scale * centre, "inertia": scale * inertia}


def _random_rotation(rng: np.random.Generator) -> np.ndarray:
    return matrix_from_quaternion(normalize_quaternion(rng.normal(size=4)))


def _scattered() -> Iterator[tuple[float, float, float]]:
    """Points in the cube [−1, 1]³ as `rand` of the GNU C library gives them: contact points of the reference chain."""
    numbers = deque((pow(16807, i, 2**31 - 1) for i in range(31)), maxlen=31)
    numbers.rotate(-3)

    def draw() -> float:
        numbers.append((numbers[0] + numbers[-3]) % 2**32)
        return 2.0 * (numbers[-1] >> 1) / (2**31 - 1) - 1.0

    for _ in range(310):
        draw()
    while True:
        yield draw(), draw(), draw()
