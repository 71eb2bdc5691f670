"""Arms: the joints of a leg whose positions are unknown, with their axes in a reference pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.closed_forms.chains import snapped
from coupler.model.joints import Prismatic, Revolute
from coupler.model.tree import Tree
from coupler.spatial import Transform, cross

_ALIGNED = 1e-12  # axes are parallel, or at right angles, if the sine, or the cosine, of their angle is smaller
_QUARTER = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))  # cosine and sine of 0, 1, 2 and 3 right angles


@dataclass(frozen=True, eq=False)
class Arm:
    """A chain of joints that starts on a link, each rotating about or sliding along an axis, and its end.

    In the reference pose, rotations are multiples of right angles, near the middle of the joint's limits or near the
    assembled pose, and slides are zero. All vectors are in the frame of the link that carries the arm.

    Attributes:
        joints: the numbers of its joints in the mechanism.
        kinds: "R" for each joint that rotates and "P" for each that slides.
        references: the joint positions in the reference pose, rad or m.
        axes: joints × 3, unit vectors along the axes.
        points: joints × 3, points on the axes, m.
        end: 3, the point at which the last link is held, m.
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
        """The arm formed by some links; None if one of its joints neither rotates nor slides.

        Args:
            tree: all links of the robot.
            links: the links of the arm, from its carrier outwards.
            numbers: the numbers of their joints in the mechanism.
            p: positions of all joints in the assembled pose.
            held: transform from the frame of the last link, or of the carrier if there is none, to the held frame.
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
    """The reference angle of a joint, counted in right angles: its limits, or q, are within half a turn of it."""
    if upper - lower < np.inf:
        q = 0.5 * (lower + upper)
        is_near_zero = -np.pi <= lower and upper <= np.pi
    else:
        is_near_zero = abs(q) < 0.5 * np.pi
    return 0 if is_near_zero else round(q / (0.5 * np.pi))  # zeros make traces shorter


def is_parallel(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two directions are equal or opposite."""
    return bool(np.linalg.norm(cross(a, b)) < _ALIGNED)


def is_square(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two directions are at right angles."""
    return bool(abs(a @ b) < _ALIGNED)


def across(vector: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The component of a vector at right angles to an axis."""
    return vector - (vector @ axis) * axis


def frame_of(z: np.ndarray, x: Any, origin: np.ndarray) -> Transform:
    """Transform to the frame with this z axis whose x axis is closest to the given direction."""
    x = across(np.asarray(x, float), z)
    if np.linalg.norm(x) < _ALIGNED:  # any direction does
        x = across(np.eye(3)[np.argmin(np.abs(z))], z)
    x = x / np.linalg.norm(x)
    return Transform(snapped([x, cross(z, x), z]), snapped(origin))
