"""A robot as a stick figure: for each link the points that matter on it, seen from the side.

The points of a link are where its joints and loops are, and where it touches something. A stick is what they span: a
line between two, an outline around more. Rotors sit beside the links that they drive, have no points of their own, and
are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.model.tree import TreeJoint
from coupler.spatial import Transform

_CENTRED = 1e-6  # m: a link whose centre of mass is this near to its axis counts as balanced, as rotors are


@dataclass(frozen=True, eq=False)
class View:
    """The direction from which the robot is seen.

    Attributes:
        axes: 3 × 3, unit vectors in the world that point to the right, up, and away from the viewer, as rows.
    """

    axes: np.ndarray

    @classmethod
    def of(cls, robot: Robot) -> View:
        """The view along y, with x to the right and z up; if gravity acts along another axis, that one is up."""
        gravity = robot.gravity if robot.gravity.any() else np.array([0.0, 0.0, -1.0])
        k = int(np.abs(gravity).argmax())
        up, right = -np.sign(gravity[k]) * np.eye(3)[k], np.eye(3)[0 if k else 1]
        return cls(np.stack([right, up, np.cross(up, right)]))

    @property
    def names(self) -> tuple[str, str]:
        """Names of the axes that point to the right and up."""
        right, up = (f"{'−' if row.sum() < 0 else ''}{'xyz'[int(np.abs(row).argmax())]}" for row in self.axes[:2])
        return right, up

    def __call__(self, points: Any) -> np.ndarray:
        """Points of the world, (..., 3), in the view's coordinates: right, up and away, m."""
        return np.asarray(points, dtype=float) @ self.axes.T


@dataclass(frozen=True, eq=False)
class Pose:
    """A stick figure in one configuration. Points are in the view's coordinates: right, up and away, m.

    Attributes:
        links: the points of each link, n × 3.
        connections: pairs of points on two links that a joint or loop connects, 2 × 3.
        joints: positions of joints, n × 3.
        anchors: positions of joints and loops on the ground, n × 3.
        base: 3, the position of the robot's base if it floats, or zero.
    """

    links: list[np.ndarray]
    connections: list[np.ndarray]
    joints: np.ndarray
    anchors: np.ndarray
    base: np.ndarray

    def points(self) -> np.ndarray:
        """All points, n × 3."""
        return np.concatenate([*self.links, *self.connections, self.anchors])


class Skeleton:
    """The stick figure of a robot: the points of links that are drawn.

    Attributes:
        robot: the robot that is drawn.
        view: the direction from which it is seen.
        points: for each link the points to draw, in the link's frame, m.
        rotors: links that only turn about their own centre.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.view = robot, View.of(robot)
        self.points: list[list[np.ndarray]] = [[] for _ in robot.tree.links]
        self._joints: list[tuple[int, np.ndarray]] = []
        self._connections: list[tuple[int, np.ndarray, int, np.ndarray]] = []
        self._floating = [robot.tree.number[joint.name] for joint in robot.joints if joint.kind.floats]
        for body in robot.bodies.values():
            for point in body.contacts.values():
                self._add(body.name, point)
        for loop in robot.loops:
            predecessor = self._add(loop.predecessor, loop.predecessor_frame.r)
            successor = self._add(loop.successor, loop.successor_frame.r)
            if loop.kind.connects:
                self._connections.append((*predecessor, *successor))
        self.rotors = self._rotors()
        for joint in robot.joints:
            if joint.name in robot.tree.number and robot.tree.number[joint.name] not in self.rotors:
                self._add_joint(joint)
        self._add_tips()

    def at(self, q: np.ndarray) -> Pose:
        """The figure at a configuration."""
        X = link_transforms(self.robot, q)

        def seen(link: int, points: Any) -> np.ndarray:
            return self.view(np.reshape(points, (-1, 3)) @ X[link].E + X[link].r)

        return Pose(
            [seen(i, points) for i, points in enumerate(self.points) if i and points],
            [np.concatenate([seen(i, a), seen(j, b)]) for i, a, j, b in self._connections],
            np.concatenate([np.zeros((0, 3)), *(seen(i, point) for i, point in self._joints)]),
            seen(0, self.points[0]),
            seen(self._floating[0], np.zeros(3))[0] if self._floating else np.zeros(3),
        )

    def _add(self, body: str, point: Any) -> tuple[int, np.ndarray]:
        """Adds a point of a body; returns the body's link, and the point in the link's frame."""
        link, X = self.robot.tree.place[body]
        on_link = X.E.T @ np.asarray(point, dtype=float) + X.r
        self.points[link].append(on_link)
        return link, on_link

    def _add_joint(self, joint: TreeJoint) -> None:
        child = self._add(joint.child, np.zeros(3) if joint.meets is None else joint.meets.r)
        if joint.kind.floats:
            self.points[child[0]].pop()  # the origin of a floating body is an arbitrary point of it
            return
        parent = self._add(joint.parent, joint.placement.r)
        self._joints.append(child)
        self._connections.append((*parent, *child))

    def _rotors(self) -> set[int]:
        """Links that carry nothing, touch nothing, close no loop, and turn about their own centre."""
        robot, tree = self.robot, self.robot.tree
        used = {tree.place[shape.body][0] for shape in robot.shapes if shape.touches}
        used |= {i for i, points in enumerate(self.points) if points} | set(self._floating)
        return {
            i
            for i, link in enumerate(tree.links)
            if i not in used and not tree.children[i] and np.abs(self._centre(i)[:2]).max() < _CENTRED
        }

    def _centre(self, i: int) -> np.ndarray:
        """The centre of a link's mass, in its frame, whose z is the axis of its joint."""
        inertia = self.robot.tree.links[i].inertia
        return np.asarray(inertia.h) / inertia.m if inertia.m else np.zeros(3)

    def _add_tips(self) -> None:
        """Adds a second point to links that have one: the frame furthest from it, or the centre of mass."""
        tree = self.robot.tree
        for i, points in enumerate(self.points):
            if i in self._floating and len(points) < 3:
                points.append(self._centre(i))
            if not i or i in self.rotors or len(points) > 1:
                continue
            places = [(tree.place[name][1], self.robot.bodies[name].frames) for name in tree.links[i].bodies]
            ends = [X.E.T @ frame.r + X.r for X, frames in places for frame in frames.values()] or [self._centre(i)]
            start = points[0] if points else np.zeros(3)
            points.append(max(ends, key=lambda end: float(np.linalg.norm(end - start))))


def link_transforms(robot: Robot, q: np.ndarray) -> list[Transform]:
    """The transforms from the world to all links, the ground first, at a configuration."""
    tree, p = robot.tree, robot.embedding.positions(np.asarray(q, dtype=float))
    X = [Transform.identity()]
    for i, link in enumerate(tree.links[1:], 1):
        X.append(link.kind.transform(p[tree.positions(i)]) @ link.placement @ X[link.parent])
    return X


def outline(points: np.ndarray) -> np.ndarray:
    """The corners of the convex outline of points in the plane, n × 2, in order; of points on a line, its two ends."""
    ordered = sorted({(float(x), float(y)) for x, y in points})
    if len(ordered) < 3:
        return np.array(ordered)
    sides: list[list[tuple[float, float]]] = []
    for side in (ordered, ordered[::-1]):  # the lower and the upper side; both turn to the left only
        kept: list[tuple[float, float]] = []
        for point in side:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0.0:
                kept.pop()
            kept.append(point)
        sides.append(kept[:-1])
    return np.array([*sides[0], *sides[1]])


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
