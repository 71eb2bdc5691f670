"""Arms: the joints of a leg whose positions are not known, with their axes where the arm is bent for reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.closed_forms.chains import snapped
from coupler.model.joints import Prismatic, Revolute
from coupler.model.tree import Tree
from coupler.spatial import Transform, cross

_ALIGNED = 1e-12  # the sine of an angle, or its cosine, below which axes are parallel or at right angles
_QUARTER = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))  # cosine and sine of so many right angles


@dataclass(frozen=True, eq=False)
class Arm:
    """Joints that follow each other from a link outwards, each turning about or sliding along an axis, and their end.

    For reference the arm is bent by right angles only, to the middle of its limits or as it is assembled, and not slid.
    All vectors are as the link sees them that carries it.

    Attributes:
        joints: their numbers in the mechanism.
        kinds: "R" for each that turns and "P" for each that slides.
        references: their positions for reference, rad or m.
        axes: joints × 3, unit vectors.
        points: joints × 3, on the axes, m.
        end: 3, the point by which the last link is held, m.
        end_axis: 3, the axis of what holds it.
    """

    joints: tuple[int, ...]
    kinds: str
    references: tuple[float, ...]
    axes: np.ndarray
    points: np.ndarray
    end: np.ndarray
    end_axis: np.ndarray

    @classmethod
    def of(cls, tree: Tree, links: Sequence[int], numbers: Sequence[int], p: np.ndarray, held: Transform) -> Arm | None:
        """The arm of some links, or None if one of its joints neither turns nor slides.

        Args:
            tree: all links.
            links: those of the arm, outwards.
            numbers: of their joints in the mechanism.
            p: positions of all joints, as they are assembled.
            held: transform from the frame of the last link, or of what carries the arm, to the frame that is held.
        """
        kinds, references, axes, points = "", [], [], []
        X = Transform.identity()
        for link in links:
            kind, q = tree.links[link].kind, float(p[tree.q_start[link]])
            X = tree.links[link].placement @ X
            axes.append(X.E.T @ np.array([0.0, 0.0, 1.0]))
            points.append(X.r)
            if isinstance(kind, Revolute):
                quarters = _quarters(q, float(np.max(kind.lower)), float(np.min(kind.upper)))
                kinds, reference = kinds + "R", 0.5 * np.pi * quarters
                X = kind.placed(np.array(_QUARTER[quarters % 4])) @ X
            elif isinstance(kind, Prismatic):
                kinds, reference = kinds + "P", 0.0
            else:
                return None
            references.append(reference)
        X = held @ X
        lines = np.reshape(axes, (-1, 3)), np.reshape(points, (-1, 3))
        end_axis = X.E.T @ np.array([0.0, 0.0, 1.0])
        return cls(tuple(numbers), kinds, tuple(references), *map(snapped, (*lines, X.r, end_axis)))


def _quarters(q: float, lower: float, upper: float) -> int:
    """By how many right angles a joint is turned for reference: such that its limits, or q, are within half a turn."""
    if upper - lower < np.inf:
        q = 0.5 * (lower + upper)
        is_near_zero = -np.pi <= lower and upper <= np.pi
    else:
        is_near_zero = abs(q) < 0.5 * np.pi
    return 0 if is_near_zero else round(q / (0.5 * np.pi))  # a trace is shorter without zeros


def is_parallel(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two directions are the same or opposite."""
    return bool(np.linalg.norm(cross(a, b)) < _ALIGNED)


def is_square(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two directions are at right angles."""
    return bool(abs(a @ b) < _ALIGNED)


def across(vector: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The part of a vector at right angles to an axis."""
    return vector - (vector @ axis) * axis


def frame_of(z: np.ndarray, x: Any, origin: np.ndarray) -> Transform:
    """Transform to the frame with this z axis, whose x axis is as near to the given direction as can be."""
    x = across(np.asarray(x, float), z)
    if np.linalg.norm(x) < _ALIGNED:  # any direction does
        x = across(np.eye(3)[np.argmin(np.abs(z))], z)
    x = x / np.linalg.norm(x)
    return Transform(snapped([x, cross(z, x), z]), snapped(origin))
