"""Links without shapes of their own, drawn as rods between their joints, plates, discs and cylinders.

All that is known of such a link is where its joints, loops and contact points are, and its inertia. So a link with
two such points is drawn as a tapered rod, one with more as a plate or a body around them, a rotor as a disc on its
axis, and a sliding joint as a rod in a barrel, or a sleeve on a rail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coupler.model import Cylinder, Robot, Shape
from coupler.model.loops import Rod
from coupler.model.tree import GROUND, TreeJoint
from coupler.view.figure.inertia_boxes import inertia_box, principal
from coupler.view.figure.surface import Surface, ball, bar, box, cylinder, joined, rod, rounded_hull, turned_to
from coupler.view.skeleton import Skeleton, link_transforms

Tone = Literal["body", "shade", "metal", "loop"]  # the body's colour, a darker one, that of joints, that of loops

_THICKNESS = 0.09  # the radius of a rod over its length
_THIN, _THICK = 0.009, 0.028  # its least and largest, over the robot's size
_TAPER = 0.62  # the radius at the far end over that at the joint
_HUB, _HUB_LENGTH = 1.3, 2.9  # of a joint, over the rod's radius
_DISC = 0.02, 0.055  # the least and largest radius of a rotor, over the robot's size
_FLAT = 0.32  # the thickness of a rotor over its radius
_BOLTS = 3  # on a rotor, by which one sees it turn
_NO_LENGTH = 1e-9  # of the robot's size
_ALONG = 1e-6  # rad, or of the robot's size: what lies so near to an axis is along it
_STROKE = 0.25  # half the range of a slide without limits, over its length or the robot's size


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of a link.

    Attributes:
        link: the number of the link.
        surface: its surface, in the link's frame.
        tone: its colour.
    """

    link: int
    surface: Surface
    tone: Tone = "body"


class LinkShapes:
    """The looks of links that have no shapes.

    Attributes:
        size: the size of the robot in its neutral configuration, m.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._skeleton = robot, Skeleton(robot)
        self._joints = {joint.name: joint for joint in robot.joints}
        self._neutral = link_transforms(robot, robot.neutral())
        points = self._skeleton.at(robot.neutral()).points()
        self.size = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
        if self.size <= 0.0:
            boxes = [inertia_box(link.inertia) for link in robot.tree.links[1:]]
            self.size = max((float(np.linalg.norm(sides)) for sides in boxes), default=0.0) or 1.0
        self._taken: list[np.ndarray] = []  # middles of discs and hubs in the neutral configuration
        self._barrels: set[int] = set()  # links that are barrels of slides
        self._carriages = {i for i in range(1, len(robot.tree.links)) if self._is_carriage(i)}

    def _is_carriage(self, link: int) -> bool:
        """Whether a link only joins two joints: it slides, has no mass, and no length or a sliding link after it."""
        tree = self._robot.tree
        if tree.links[link].inertia.m > 0.0 or not _slides(self._joint(link)):
            return False
        return self._length(link) < _NO_LENGTH * self.size or all(_slides(self._joint(i)) for i in tree.children[link])

    def _joint(self, link: int) -> TreeJoint:
        return self._joints[self._robot.tree.links[link].joint]

    def extent(self, link: int) -> np.ndarray:
        """The points of a link, n × 3, in its frame."""
        return np.reshape(self._skeleton.points[link], (-1, 3))

    def struts(self, shown: Callable[[int], Sequence[Shape]]) -> set[int]:
        """Sliding links whose shapes are bars along the slide: a rod in a barrel looks better, as its bars never part.

        Args:
            shown: the shapes by which a link is drawn.
        """
        drawn_by_bars = set[int]()
        for joint in self._robot.joints:
            link = self._robot.tree.number.get(joint.name, 0)
            parent = self._robot.tree.links[link].parent
            if link and parent and _slides(joint):
                X = self._robot.tree.links[link].placement
                axes = {parent: (X.E[2], X.r), link: (np.eye(3)[2], self._own_joint(link))}
                if all(self._are_bars(shown(i), *axes[i]) for i in (parent, link)):
                    drawn_by_bars |= {parent, link}
        return drawn_by_bars

    def _are_bars(self, shapes: Sequence[Shape], axis: np.ndarray, point: np.ndarray) -> bool:
        """Whether all shapes (at least one) are bars along an axis through a point, in their link's frame."""
        return bool(shapes) and all(self._is_bar(shape, axis, point) for shape in shapes)

    def _is_bar(self, shape: Shape, axis: np.ndarray, point: np.ndarray) -> bool:
        if shape.touches or not isinstance(shape.geometry, Cylinder):
            return False
        X = shape.at @ self._robot.tree.place[shape.body][1]
        return bool(
            np.abs(np.cross(axis, X.E[2])).max() < _ALONG
            and np.linalg.norm(np.cross(axis, X.r - point)) < _ALONG * self.size
        )

    def radius(self, link: int) -> float:
        """The radius of a link's rods, m."""
        return float(np.clip(_THICKNESS * self._length(link), _THIN * self.size, _THICK * self.size))

    def _length(self, link: int) -> float:
        """The largest distance between points of a link, m; 0 for the ground."""
        points = self.extent(link)
        return float(np.linalg.norm(points[:, None] - points[None], axis=-1).max(initial=0.0)) if link else 0.0

    def of(self, link: int) -> list[Part]:
        """The pieces of a link, without its joints."""
        if link in self._carriages:
            return []
        if link in self._skeleton.rotors:
            return self._rotor(link)
        points, r = _apart(self.extent(link), 0.5 * self.radius(link)), self.radius(link)
        if len(points) < 2:
            return [] if link in self._barrels else self._lump(link, points)
        spread = points - points.mean(axis=0)
        if np.linalg.svd(spread, compute_uv=False)[1] > r:
            return [Part(link, rounded_hull(points, 0.9 * r))]
        if link in self._barrels:
            return []
        start = points[np.argmin(np.linalg.norm(points, axis=1))]  # nearest to its joint
        far = points[np.argsort(np.linalg.norm(points - start, axis=1))[1:]]
        before = [p for p in far if (p - start) @ (far[-1] - start) < 0.0]
        ends = [far[-1], *before[-1:]]
        return [Part(link, rod(start, end, r, _TAPER * r)) for end in ends]

    def _lump(self, link: int, points: np.ndarray) -> list[Part]:
        """A link with one point as a ball, and a link without points as the box with its mass and inertia."""
        inertia = self._robot.tree.links[link].inertia
        size = inertia_box(inertia)
        if len(points) or not size.any():
            middle = points[0] if len(points) else np.zeros(3)
            return [Part(link, ball(1.2 * self.radius(link)).moved(np.eye(3), middle))]
        centre = np.asarray(inertia.h, dtype=float) / inertia.m
        return [Part(link, box(np.maximum(size, _THIN * self.size)).moved(principal(inertia)[1], centre))]

    # Rotors

    def _rotor(self, link: int) -> list[Part]:
        """A rotor as a disc with bolts on its axis, placed beside other parts there."""
        inertia = self._robot.tree.links[link].inertia
        spin = np.sqrt(2.0 * principal(inertia)[0].max() / inertia.m) if inertia.m > 0.0 else 0.0
        radius = float(np.clip(spin, _DISC[0] * self.size, _DISC[1] * self.size))
        thickness = _FLAT * radius
        middle = self._beside(link, thickness)
        disc = cylinder(radius, thickness).moved(np.eye(3), middle)
        angle = 2.0 * np.pi * np.arange(_BOLTS) / _BOLTS
        places = 0.62 * radius * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1) + middle
        bolts = [cylinder(0.16 * radius, 1.25 * thickness).moved(np.eye(3), place) for place in places]
        return [Part(link, disc, "shade"), Part(link, joined(bolts), "metal")]

    def _beside(self, link: int, thickness: float) -> np.ndarray:
        """The point on its axis where a rotor finds room, in its link's frame."""
        middle = self._own_joint(link)
        X, taken = self._neutral[link], np.reshape(self._taken, (-1, 3))
        for shift in (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0):
            step = shift * (thickness + _HUB_LENGTH * 0.5 * _THICK * self.size)
            place = middle + np.array([0.0, 0.0, step])
            world = X.E.T @ place + X.r
            if (np.linalg.norm(world - taken, axis=1) > 0.9 * thickness).all():
                self._taken.append(world)
                return place
        return middle

    def _own_joint(self, link: int) -> np.ndarray:
        """The described place of a link's joint, in the link's frame."""
        joint = self._joint(link)
        X = self._robot.tree.place[joint.child][1]
        return X.E.T @ (np.zeros(3) if joint.meets is None else joint.meets.r) + X.r

    # Joints

    def joints(self, links: set[int], whole: set[int]) -> list[Part]:
        """Hubs of joints and loops, barrels and rails of slides.

        Args:
            links: the links that are drawn here, with their joints.
            whole: links that are shown by a mesh; loops between two of them are part of it.
        """
        parts = list[Part]()
        for joint in self._robot.joints:
            number = self._robot.tree.number.get(joint.name)
            if number is None or number not in links or joint.kind.floats or number in self._skeleton.rotors:
                continue
            if not _slides(joint):
                parts += self._hub(joint, number)
            elif not {number, self._robot.tree.links[number].parent} & self._carriages:
                parts += self._slide(joint, number)
        for loop in self._robot.loops:
            link, X = self._robot.tree.place[loop.predecessor]
            other = self._robot.tree.place[loop.successor][0]
            if loop.kind.connects and not isinstance(loop.kind, Rod) and not {link, other} <= whole | {0}:
                radii = [self.radius(i) if i in links else _THIN * self.size for i in (link, other) if i]
                r = 1.08 * _HUB * min(radii)
                axis = getattr(loop.kind, "axis", None)
                form = ball(r)
                if axis is not None:
                    form = cylinder(r, 1.1 * _HUB_LENGTH * r / _HUB).moved(turned_to(axis), np.zeros(3))
                frame = loop.predecessor_frame
                on_body = form.moved(frame.E.T, frame.r)
                parts.append(Part(link, on_body.moved(X.E.T, X.r), "loop"))
        return parts

    def stands(self, shown: set[str]) -> list[Part]:
        """Rods from bodies that are welded to the ground to the joints on them, unless the bodies are shown already."""
        parts = list[Part]()
        for joint in self._robot.joints:
            link, X = self._robot.tree.place[joint.parent]
            if link or joint.parent in {GROUND, *shown} or joint.name not in self._robot.tree.number:
                continue
            end, r = X.E.T @ joint.placement.r + X.r, 0.75 * _THICK * self.size
            if np.linalg.norm(end - X.r) > r:
                parts.append(Part(0, rod(np.asarray(X.r, dtype=float), end, r, r)))
        return parts

    def _hub(self, joint: TreeJoint, link: int) -> list[Part]:
        place, r = self._own_joint(link), _HUB * self.radius(link)
        X = self._neutral[link]
        self._taken.append(X.E.T @ place + X.r)
        form = cylinder(r, _HUB_LENGTH * r / _HUB) if joint.kind.axial else ball(1.1 * r)
        parts = [Part(link, form.moved(np.eye(3), place), "metal")]
        if self._robot.tree.links[link].parent == 0 and joint.kind.axial:  # what holds it on the ground
            foot = cylinder(1.5 * r, 0.75 * _HUB_LENGTH * r / _HUB).moved(np.eye(3), place)
            parts.append(Part(0, self._before(link, foot)))
        return parts

    def _slide(self, joint: TreeJoint, link: int) -> list[Part]:
        """A slide as a rod in a barrel that reaches back to the parent's joint, or else as a sleeve on a rail."""
        parent, place, axis = self._robot.tree.links[link].parent, self._own_joint(link), np.array([0.0, 0.0, 1.0])
        X = self._robot.tree.links[link].placement
        on_parent = (self.extent(parent) - X.r) @ X.E.T - place  # its points, in the joint's predecessor frame
        tree, r = self._robot.tree, self.radius(parent if parent else link)
        now = float(self._robot.embedding.positions(self._robot.neutral())[tree.positions(link)][-1])
        now = float(np.clip(now, joint.kind.lower[-1], joint.kind.upper[-1]))
        behind = on_parent[np.linalg.norm(on_parent[:, :2], axis=1) < r, 2]
        start = float(behind.min(initial=np.inf))
        if parent and now - start > 4.0 * r:
            low, high = _range(joint, now, _STROKE * (now - start), now - start)
            low = max(low, start + 2.0 * r)
            barrel = bar(place + start * axis, place + low * axis, 1.2 * r)
            inner = bar(place - (max(high - low, now - low) + r) * axis, place, 0.62 * r)
            self._barrels.add(parent)
            return [Part(parent, self._before(link, barrel)), Part(link, inner, "metal")]
        around = max(self._length(parent), self._length(link)) if parent else self.size
        low, high = _range(joint, now, _STROKE * (around or self.size), 0.5 * self.size)
        wide = 0.7 * (_THICK * self.size if not parent else r)
        rail = bar(place + (low - 2.0 * wide) * axis, place + (high + 2.0 * wide) * axis, 0.4 * wide)
        sleeve = cylinder(1.2 * wide, 3.2 * wide).moved(np.eye(3), place)
        return [Part(parent, self._before(link, rail), "metal"), Part(link, sleeve)]

    def _before(self, link: int, surface: Surface) -> Surface:
        """A surface in the predecessor frame of a link's joint, moved to the parent link's frame."""
        X = self._robot.tree.links[link].placement
        return surface.moved(X.E.T, X.r)


def _range(joint: TreeJoint, now: float, half: float, reach: float) -> tuple[float, float]:
    """The range of a slide, m: its limits if they are within reach, or else a range around its present position."""
    lower, upper = float(joint.kind.lower[-1]), float(joint.kind.upper[-1])
    return (lower if now - lower <= reach else now - half), (upper if upper - now <= reach else now + half)


def _slides(joint: TreeJoint) -> bool:
    """Whether a joint shifts along its axis, turning or not."""
    S = np.asarray(joint.kind.subspace(joint.kind.neutral()), dtype=float)
    return joint.kind.axial and bool(S[3:].any())


def _apart(points: np.ndarray, least: float) -> np.ndarray:
    """Points, without those nearer than `least`, m, to an earlier one."""
    kept = list[np.ndarray]()
    for point in points:
        if all(np.linalg.norm(point - other) > least for other in kept):
            kept.append(point)
    return np.reshape(kept, (-1, 3))
