"""Lower bounds of the distances of shapes in many configurations at once.

Two convex shapes are at least as far apart as along any direction. The directions tried here are the one between their
centres, their axes, and the cross products of an axis of each: for boxes these are all there are, for others they
suffice to tell what is far. Balls around the shapes are checked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.convex import cores
from coupler.contact.collision.forms import Point, is_endless
from coupler.contact.collision.geometry import Contact, contacts
from coupler.contact.collision.terrain.surface import highest
from coupler.contact.pairs import Pair
from coupler.kinematics import body_poses
from coupler.model import Robot, Shape
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Sphere
from coupler.spatial import Transform

_NO_DIRECTION = 1e-9  # m, or the sine of an angle: what separates shapes is not looked for along shorter vectors


class Proximity:
    """Pairs of shapes in configurations of their robot.

    Attributes:
        pairs: the pairs.
        sizes: (pairs,), the sum of the radii of the balls around both shapes, m; a plane adds nothing.
    """

    def __init__(self, robot: Robot, pairs: Sequence[Pair], q: Any) -> None:
        """Places the shapes of the pairs in configurations q, (states, nq), of the robot."""
        self.pairs = tuple(pairs)
        poses = body_poses(robot, q)
        rows = {body: i for i, body in enumerate(robot.bodies)}
        ground = np.broadcast_to(np.eye(4), (len(poses), 4, 4))
        self._shapes: dict[int, _Placed] = {}
        for shape in (shape for pair in pairs for shape in (pair.one, pair.other)):
            if id(shape) not in self._shapes:
                poses_of_body = poses[:, rows[shape.body]] if shape.body in rows else ground
                self._shapes[id(shape)] = _Placed(shape, poses_of_body)
        self.sizes = np.array([sum(poses_of_body.radius for poses_of_body in self._both(i)) for i in range(len(pairs))])

    def _both(self, pair: int) -> tuple[_Placed, _Placed]:
        return self._shapes[id(self.pairs[pair].one)], self._shapes[id(self.pairs[pair].other)]

    def nearest(self, pair: int, enough: float) -> float:
        """A lower bound of the distance of a pair over all configurations, m; negative if the shapes may overlap.

        Args:
            pair: the number of the pair.
            enough: if balls around the shapes are further apart, nothing else is checked, m.
        """
        one, other = self._both(pair)
        if other.is_ground:
            return float((one.height_over(other.R[0], other.centre[0]) - other.top).min())
        between = one.centre - other.centre
        length = np.linalg.norm(between, axis=1)
        apart = length - one.radius - other.radius
        close = np.flatnonzero(apart < enough)
        if close.size:
            apart[close] = np.maximum(apart[close], _separation(one.some(close), other.some(close), between[close]))
        return float(apart.min())

    def height(self, pair: int) -> float:
        """A lower bound of a shape's height over the highest ground straight below it, in the first state, m.

        It is infinite beside a field.
        """
        one, other = self._both(pair)
        top = other.top
        if isinstance(other.geometry, HeightField):
            place = (other.R[0].T @ (one.centre[0] - other.origin[0]))[:2]
            top = highest(other.geometry, place - one.radius, place + one.radius)
        return float(one.height_over(other.R[0], other.origin[0])[0] - top)

    def gaps(self, pair: int, state: int) -> list[float]:
        """The exact gaps of all candidate contacts of a pair in a configuration, m."""
        return [float(contact.gap) for contact in self.contacts(pair, state)]

    def contacts(self, pair: int, state: int) -> list[Contact]:
        """All candidate contacts of a pair in a configuration."""
        one, other = self._both(pair)
        return contacts(one.geometry, other.geometry, one.transform(state), other.transform(state))


class _Placed:
    """A shape in many configurations: its centre and axes in the world."""

    def __init__(self, shape: Shape, poses: np.ndarray) -> None:
        """Places a shape, given the poses of its body, (states, 4, 4)."""
        self.geometry = shape.geometry
        R, at = poses[:, :3, :3], shape.at
        self.R = R @ at.E.T
        self.origin = poses[:, :3, 3] + R @ at.r
        self.centre = self.origin + self.R @ cores.centre(self.geometry)
        self.is_ground = is_endless(self.geometry)
        self.radius = 0.0 if self.is_ground else cores.radius(self.geometry)
        self.top = float(np.max(self.geometry.heights)) if isinstance(self.geometry, HeightField) else 0.0

    def some(self, states: np.ndarray) -> _Placed:
        """This shape in some of the configurations."""
        placed = object.__new__(_Placed)
        placed.__dict__.update(self.__dict__)
        placed.R, placed.origin, placed.centre = self.R[states], self.origin[states], self.centre[states]
        return placed

    def transform(self, state: int) -> Transform:
        """The transform from the world to its frame, in a configuration."""
        return Transform(self.R[state].T, self.origin[state])

    def height_over(self, R: np.ndarray, point: np.ndarray) -> np.ndarray:
        """(states,): the height of its lowest point along the z axis of a frame R, above a point of the frame, m."""
        down = np.broadcast_to(-R[:, 2], self.centre.shape)
        return (self.centre - point) @ R[:, 2] - self.reach(down[:, None])[:, 0]

    def reach(self, directions: np.ndarray) -> np.ndarray:
        """(states, n): how far it extends from its centre along unit vectors, (states, n, 3), m."""
        return _reach(self.geometry, directions @ self.R)


def _reach(geometry: Geometry, d: np.ndarray) -> np.ndarray:
    """How far a shape extends from its centre along directions in its own frame, (..., 3), m."""
    match geometry:
        case Hull():
            return (d @ (geometry.vertices - cores.centre(geometry)).T).max(axis=-1)
        case Box():
            return np.abs(d) @ (0.5 * geometry.size)
        case Cylinder():
            return geometry.radius * np.hypot(d[..., 0], d[..., 1]) + 0.5 * geometry.length * np.abs(d[..., 2])
        case Ellipsoid():
            return np.linalg.norm(d * geometry.radii, axis=-1)
        case Capsule():
            return geometry.radius + 0.5 * geometry.length * np.abs(d[..., 2])
        case Sphere() | Point():
            return np.full(d.shape[:-1], float(cores.margin(geometry)))
    reach = [float(cores.extent(geometry, direction)) for direction in d.reshape(-1, 3)]
    return np.reshape(reach, d.shape[:-1]) + cores.margin(geometry)


def _separation(one: _Placed, other: _Placed, between: np.ndarray) -> np.ndarray:
    """(states,): the distance of two shapes along the best of some directions, m."""
    axes = [np.swapaxes(shape.R, 1, 2) for shape in (one, other)]
    across = np.cross(axes[0][:, :, None], axes[1][:, None]).reshape(len(between), 9, 3)
    directions = np.concatenate([between[:, None], *axes, across], axis=1)
    length = np.linalg.norm(directions, axis=-1, keepdims=True)
    d = np.where(length > _NO_DIRECTION, directions / np.maximum(length, _NO_DIRECTION), np.array([0.0, 0.0, 1.0]))
    along = np.einsum("ski,si->sk", d, between)
    d = d * np.where(along < 0.0, -1.0, 1.0)[:, :, None]
    return (np.abs(along) - one.reach(-d) - other.reach(d)).max(axis=1)
