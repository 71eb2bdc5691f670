"""Common parts of legged robots: left and right sides, rotors, and the corners of a torso."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from coupler.model import RobotBuilder

BASE = "Floating Base"
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)

Point = tuple[float, float, float]


def on_side(side: int, point: Point) -> Point:
    """A point, given for the left side, on the left (1) or right (−1) side, which are mirror images in y."""
    x, y, z = point
    return x, side * y, z


def inertia_matrix(moments: Sequence[float], side: int = 1) -> np.ndarray:
    """3 × 3, kg m², from xx, yy, zz, xy, xz, yz in mg m² (1e-6 kg m²) of the left side."""
    xx, yy, zz, xy, xz, yz = moments
    xy, yz = side * xy, side * yz
    return 1e-6 * np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def rotor_inertia(axis: Sequence[int], spin: float, across: float) -> list[float]:
    """The three principal moments of a rotor: `spin` about its axis and `across` about the other two, kg m²."""
    return [spin if along else across for along in axis]


def foot_point(b: RobotBuilder, name: str, body: str, at: Point, again: bool) -> None:
    """Adds a contact point of a foot; `again` adds a frame there, as the reference data have an end effector, too."""
    b.contact(name, body, at)
    if again:
        b.frame(f"{name}__ee", body, at)


def torso_contacts(b: RobotBuilder, half: Point) -> None:
    """Adds contact points at the eight corners of a box with these half lengths, numbered with x changing fastest."""
    for number, (z, y, x) in enumerate(product((1, -1), repeat=3), 1):
        b.contact(f"torso-contact-{number}", BASE, (x * half[0], y * half[1], z * half[2]))
