"""Bodies: their inertia, and the named frames and contact points on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import LARGEST, numbers
from coupler.model.real_inertias import nearest_inertia
from coupler.model.tolerances import ROUNDED
from coupler.spatial import RigidInertia, Transform


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body.

    Attributes:
        name: unique in its robot.
        mass: kg; zero for a body without inertia.
        centre: 3, the centre of mass in the body's frame, m.
        inertia: 3 × 3, the rotational inertia about the centre of mass along the axes of the body's frame, kg m²; three
            numbers are its moments about these axes.
        frames: by name, transforms from the body's frame to frames on the body.
        contacts: by name, contact points in the body's frame, 3 each, m.
        ideal: whether to accept an inertia that no real body has, as in planar models, or for a rotor of which only the
            inertia about its axis matters. It must not be negative even so.
    """

    name: str
    mass: float = 0.0
    centre: Any = (0.0, 0.0, 0.0)
    inertia: Any = field(default_factory=lambda: np.zeros((3, 3)))
    frames: Mapping[str, Transform] = field(default_factory=dict)
    contacts: Mapping[str, Any] = field(default_factory=dict)
    ideal: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ModelError(f"a body needs a name, got {self.name!r}")
        what = f"body {self.name!r}: its"
        mass = float(numbers(f"{what} mass", self.mass, (), least=0.0))
        centre, inertia = numbers(f"{what} centre", self.centre, (3,)), _matrix(f"{what} inertia", self.inertia)
        largest = max(mass, np.abs(centre).max(), np.abs(inertia).max())
        if largest > LARGEST:
            raise ModelError(f"{what} numbers reach {largest:g}: products of such overflow; is there a misprint?")
        check_inertia(self.name, mass, inertia, self.ideal)
        inertia = (inertia + inertia.T) / 2  # equal up to rounding, and from here on exactly
        inertia.setflags(write=False)
        for name, frame in self.frames.items():
            if not isinstance(frame, Transform):
                raise ModelError(f"{what} frame {name!r} must be a Transform, got {type(frame).__name__}")
        points = {name: numbers(f"{what} contact point {name!r}", p, (3,)) for name, p in self.contacts.items()}
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "inertia", inertia)
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))
        object.__setattr__(self, "contacts", MappingProxyType(points))

    @property
    def massless(self) -> bool:
        """Whether the body has neither mass nor inertia."""
        return self.mass == 0.0 and not self.inertia.any()

    def spatial_inertia(self) -> RigidInertia:
        """The body's spatial inertia about the origin of its frame."""
        return RigidInertia.from_centre(self.mass, self.centre, self.inertia)


def _matrix(what: str, inertia: Any) -> np.ndarray:
    """The inertia as a 3 × 3 matrix, given in full or by its three moments."""
    try:
        return np.diag(numbers(what, inertia, (3,)))
    except ModelError:
        return numbers(f"{what}, if not given by its three moments,", inertia, (3, 3))


def _offered(inertia: np.ndarray) -> str:
    """A hint, for a message, at the nearest inertia that a body can have."""
    near = nearest_inertia((inertia + inertia.T) / 2)
    entries = (f"I{'xyz'[i]}{'xyz'[j]} = {near[i, j]:.4g}" for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    return f"the nearest that a body can have: {', '.join(entries)} kg m²"


def possible_inertias(inertias: np.ndarray, ideal: bool = False) -> np.ndarray:
    """For inertias of bodies with mass, (..., 3, 3), whether `check_inertia` would accept each: (...)."""
    scale = np.abs(inertias).max(axis=(-2, -1))
    mirrored = np.swapaxes(inertias, -1, -2)
    moments = _principal_moments((inertias + mirrored) / 2)
    symmetric = np.abs(inertias - mirrored).max(axis=(-2, -1)) <= ROUNDED * scale
    excess = 0.0 if ideal else moments[..., 2] - moments[..., 0] - moments[..., 1]
    return symmetric & (moments[..., 0] >= -ROUNDED * scale) & (excess <= ROUNDED * scale)


def _principal_moments(inertias: np.ndarray) -> np.ndarray:
    """Principal moments, (..., 3), ascending. Most matrices are diagonal and need no eigenvalue problem."""
    moments = np.sort(np.diagonal(inertias, axis1=-2, axis2=-1), axis=-1)
    full = inertias[..., *np.triu_indices(3, 1)].any(axis=-1)
    moments[full] = np.linalg.eigvalsh(inertias[full])
    return moments


def check_inertia(name: str, mass: float, inertia: np.ndarray, ideal: bool = False) -> None:
    """Raises a ModelError for an inertia that no distribution of mass can have.

    Principal moments about the centre of mass are not negative, and none is larger than the sum of the other two,
    because each is the sum of two of the integrals of x², y² and z² over the mass. Without mass all are zero. An ideal
    inertia only has to have moments that are not negative.

    Raises:
        ModelError: naming the body, what is wrong, and by how much.
    """
    scale = np.abs(inertia).max()
    if np.abs(inertia - inertia.T).max() > ROUNDED * scale:
        raise ModelError(f"body {name!r}: its inertia is not symmetric:\n{inertia}")
    moments = np.linalg.eigvalsh((inertia + inertia.T) / 2)
    too_large = not ideal and moments[2] - moments[0] - moments[1] > ROUNDED * scale
    without_mass = not ideal and mass == 0.0 and scale > 0.0
    if moments[0] >= -ROUNDED * scale and not too_large and not without_mass:
        return
    values = ", ".join(f"{moment:.6g}" for moment in moments)
    if moments[0] < -ROUNDED * scale:
        raise ModelError(
            f"body {name!r}: its principal moments are {values} kg m²; none can be negative; {_offered(inertia)}"
        )
    if too_large:
        raise ModelError(
            f"body {name!r}: its principal moments are {values} kg m²; the largest exceeds the sum of the other two, "
            "which no body can have: is the inertia given about the centre of mass, in the axes of the body's frame? "
            f"If this is intended, pass ideal=True; {_offered(inertia)}"
        )
    raise ModelError(
        f"body {name!r}: it has an inertia (moments {values} kg m²) but no mass; if this is intended, pass ideal=True"
    )
