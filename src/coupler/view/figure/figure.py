"""A robot as solids that move with its bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.grouping import grouped
from coupler.kinematics import body_poses
from coupler.model import Cable, Mesh, Plane, Robot, SliderCrank
from coupler.model.loops import Rod
from coupler.model.transmissions import End
from coupler.model.tree import GROUND
from coupler.model.wording import counted
from coupler.view.figure.colours import ACCENT, METAL, Colouring, body_colours
from coupler.view.figure.links import LinkShapes, Part, Tone
from coupler.view.figure.shapes import readable
from coupler.view.figure.surface import Surface
from coupler.view.skeleton import View

_SHADE = 0.62  # how bright a rotor is beside its link
_COVERED = 0.3  # of a link's extent: points so near to its shapes are covered by them
_AROUND = 0.2  # of the robot's extent: how much of the ground, tables and terrain counts as near it
_SMALLEST = 1e-6  # m: the size of a robot of points
_NO_LENGTH = 1e-9  # m: a shorter spring has no direction
_COILS, _PER_COIL = 9, 10  # of a spring, and lines that make one


@dataclass(frozen=True, eq=False)
class Solid:
    """A piece of a body that is drawn.

    Attributes:
        body: the name of its body; "ground" is one.
        surface: its surface, in the body's frame.
        tone: what decides its colour: its body, or what kind of part it is.
        colour: red, green, blue and opacity from 0 to 1, where the file gives one.
        flat: whether each triangle is shaded by itself, as for meshes from files.
    """

    body: str
    surface: Surface
    tone: Tone = "body"
    colour: np.ndarray | None = None
    flat: bool = False


class Figure:
    """The solids by which a robot is drawn.

    Each link is drawn by its visible shapes, or if it has none by its collision shapes. Where these do not reach its
    joints, rods, plates, discs and cylinders are added.

    Attributes:
        robot: the robot.
        solids: all that is drawn, in no particular order.
        bodies: names of bodies, "ground" first, in the order of `poses`.
        planes: shapes that have no end, such as floors.
        notes: what could not be drawn, and why.
        size: the approximate extent of the robot, m.
        up: 3, the direction against gravity, along one of the world's axes.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.up = robot, View.of(robot).axes[1]
        self.bodies = (GROUND, *robot.bodies)
        self.notes: list[str] = []
        self.planes = [shape for shape in robot.shapes if isinstance(shape.geometry, Plane)]
        links = LinkShapes(robot)
        shown = self._shapes()
        for link in links.struts(lambda link: [s for s in robot.shapes if robot.tree.place[s.body][0] == link]):
            shown.pop(link, None)
        bare = {i for i in range(1, len(robot.tree.links)) if not self._covered(links, i, shown)}
        self.solids = [solid for solids in shown.values() for solid in solids]
        whole = {link for link, solids in shown.items() if any(solid.flat for solid in solids)}
        grounded = {solid.body for solid in shown.get(0, [])}
        parts = [
            *links.joints(bare, whole),
            *links.stands(grounded),
            *(part for i in sorted(bare) for part in links.of(i)),
        ]
        self.solids += [self._solid(part) for part in parts]
        self._index = {body: i for i, body in enumerate(self.bodies)}
        low, high = self.bounds(self.poses(robot.neutral()))
        self.size = max(float(np.linalg.norm(high - low)), _SMALLEST)

    def _shapes(self) -> dict[int, list[Solid]]:
        """Solids from shapes, by link: visible shapes, or else collision shapes."""
        solids_of: dict[int, list[Solid]] = {}
        bounded = (shape for shape in self.robot.shapes if not isinstance(shape.geometry, Plane))
        lost = 0
        for link, shapes in grouped(bounded, lambda shape: self.robot.tree.place[shape.body][0]).items():
            for choice in ([s for s in shapes if s.visible], [s for s in shapes if not s.visible]):
                solids = list[Solid]()
                for shape in choice:
                    surface, why = readable(shape)
                    if why:
                        lost += 1
                        self.notes += [why] * (lost == 1)
                    if surface is not None and len(surface.triangles):
                        flat = isinstance(shape.geometry, Mesh)
                        solids.append(Solid(shape.body, surface, "body", shape.colour, flat))
                if solids:
                    solids_of[link] = solids
                    break
        if lost > 1:
            self.notes.append(f"{counted(lost, 'mesh', 'meshes')} cannot be read, and simpler shapes are drawn instead")
        return solids_of

    def _covered(self, links: LinkShapes, link: int, shown: dict[int, list[Solid]]) -> bool:
        """Whether shapes of a link reach all its joints, so that nothing need be added."""
        if link not in shown:
            return False
        if any(solid.flat for solid in shown[link]):
            return True  # a mesh shows the link as it is
        place, points = self.robot.tree.place, links.extent(link)
        vertices = [s.surface.vertices @ place[s.body][1].E + place[s.body][1].r for s in shown[link]]
        low, high = np.min([v.min(axis=0) for v in vertices], axis=0), np.max([v.max(axis=0) for v in vertices], axis=0)
        extent = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
        out = np.linalg.norm(np.maximum(np.maximum(low - points, points - high), 0.0), axis=1)
        return bool((out <= _COVERED * max(extent, float(np.linalg.norm(high - low)))).all())

    def _solid(self, part: Part) -> Solid:
        """A piece of a link on the body that its joint carries."""
        name = self.robot.tree.links[part.link].name
        X = self.robot.tree.place[name][1]
        return Solid(name, part.surface.moved(X.E, -X.E @ X.r), part.tone)

    # Where things are

    def poses(self, q: Any) -> np.ndarray:
        """The poses of all bodies, the ground first, (..., 1 + bodies, 4, 4), for closed configurations (..., nq)."""
        T = body_poses(self.robot, q)
        return np.concatenate([np.broadcast_to(np.eye(4), (*T.shape[:-3], 1, 4, 4)), T], axis=-3)

    def pose(self, poses: np.ndarray, body: str) -> np.ndarray:
        """The pose of one body among all, (..., 4, 4)."""
        return poses[..., self._index[body], :, :]

    def bounds(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest coordinates of the robot and the ground around it, 3 each, m."""
        corners: dict[bool, list[np.ndarray]] = {True: [], False: []}
        for solid in self.solids:
            T = self.pose(poses, solid.body)
            points = solid.surface.vertices @ T[:3, :3].T + T[:3, 3]
            corners[self.robot.tree.place[solid.body][0] == 0] += [points.min(axis=0), points.max(axis=0)]
        ground, moving = corners[True], corners[False] or corners[True] or [np.full(3, -0.5), np.full(3, 0.5)]
        low, high = np.min(moving, axis=0), np.max(moving, axis=0)
        margin = _AROUND * float(np.linalg.norm(high - low))
        near = np.clip(ground, low - margin, high + margin) if ground else np.zeros((0, 3))
        return np.min([low, *near], axis=0), np.max([high, *near], axis=0)

    def loop_ends(self, poses: np.ndarray) -> np.ndarray:
        """The origins of the two frames of each loop that connects points, (loops, 2, 3), m."""
        ends = [np.zeros((0, 2, 3))]
        for loop in self.robot.loops:
            if loop.kind.connects:
                sides = ((loop.predecessor, loop.predecessor_frame.r), (loop.successor, loop.successor_frame.r))
                ends.append(np.array([[self.at(poses, body, point) for body, point in sides]]))
        return np.concatenate(ends)

    def rod_ends(self, poses: np.ndarray) -> np.ndarray:
        """The ends of rods without mass that close loops, (rods, 2, 3), m."""
        kept = [isinstance(loop.kind, Rod) for loop in self.robot.loops if loop.kind.connects]
        return self.loop_ends(poses)[np.array(kept, dtype=bool)]

    def springs(self, poses: np.ndarray) -> np.ndarray:
        """Lines that make coils between the ends of springs and dampers, (lines, 2, 3), m."""
        coils = [np.zeros((0, 2, 3))]
        for element in self.robot.elements:
            start = self.at(poses, element.first, element.first_point)
            end = self.at(poses, element.second, element.second_point)
            coils.append(_coil(start, end, 0.012 * self.size))
        return np.concatenate(coils)

    def cables(self, poses: np.ndarray) -> np.ndarray:
        """The straight ways of cables and rods between the points of bodies, (lines, 2, 3), m.

        A cable around a shape is drawn straight.
        """
        lines = [np.zeros((0, 2, 3))]
        for actuator in self.robot.actuators:
            along = actuator.along
            if isinstance(along, Cable):
                corners = [end for end in along.parts if isinstance(end, End)]
                shown = along.shares != 0.0
            elif isinstance(along, SliderCrank):
                corners, shown = list(along.ends), np.array([True])
            else:
                continue
            points = np.array([self.at(poses, end.body, end.at.r) for end in corners])
            lines.append(np.stack([points[:-1], points[1:]], axis=1)[shown])
        return np.concatenate(lines)

    def at(self, poses: np.ndarray, body: str, point: Any) -> np.ndarray:
        """A point of a body, given in its frame (3), in the world, m."""
        T = self.pose(poses, body)
        return T[:3, :3] @ np.asarray(point, dtype=float) + T[:3, 3]

    # Colours

    def default_colouring(self) -> Colouring:
        """The default colouring: by the file if it gives colours, else by cluster, or by body for a single cluster."""
        if any(solid.colour is not None for solid in self.solids if solid.body != GROUND):
            return "file"
        return "cluster" if len(self.robot.cluster_tree.clusters) > 2 else "body"

    def colours(self, colouring: Colouring) -> list[np.ndarray]:
        """Red, green, blue and opacity of each solid, from 0 to 1."""
        of_body = body_colours(self.robot, colouring)
        return [_colour(solid, of_body[solid.body], colouring) for solid in self.solids]


def _colour(solid: Solid, of_body: np.ndarray, colouring: Colouring) -> np.ndarray:
    if solid.colour is not None and (colouring == "file" or solid.body == GROUND):
        return solid.colour
    fixed = {"metal": METAL, "loop": ACCENT}.get(solid.tone)
    rgb = np.array(fixed) if fixed else of_body * (_SHADE if solid.tone == "shade" else 1.0)
    return np.append(rgb, 1.0)


def _coil(start: np.ndarray, end: np.ndarray, radius: float) -> np.ndarray:
    """A coil from one point to another as lines, with straight ends."""
    along = end - start
    length = float(np.linalg.norm(along))
    if length < _NO_LENGTH:
        return np.zeros((0, 2, 3))
    t = np.linspace(0.0, 1.0, _COILS * _PER_COIL + 1)
    angle, z = 2.0 * np.pi * _COILS * t, along / length
    x = np.cross(np.eye(3)[int(np.abs(z).argmin())], z)
    x /= np.linalg.norm(x)
    turns = np.cos(angle)[:, None] * x + np.sin(angle)[:, None] * np.cross(z, x)
    points = start + (0.12 + 0.76 * t)[:, None] * along + radius * turns
    points = np.concatenate([start[None], points, end[None]])
    return np.stack([points[:-1], points[1:]], axis=1)
