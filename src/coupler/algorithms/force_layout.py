"""The layout of forces of joints, loops and couplings in the result of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.passes import ClusterWindows, numbered, tables

Places = Mapping[str, Any]  # by name, the place of a force in a vector: a slice, or an index for a single number


@dataclass(frozen=True, eq=False)
class ForceLayout:
    """The places of forces in the result of the program.

    Attributes:
        joints: by tree joint its total force, 6.
        constraints: by tree joint the part of that force that does no work, 6.
        actuators: by driven joint the forces of actuators, one for each freedom.
        passive: by tree joint the forces of springs, dampers and armatures, one for each freedom.
        loops: by loop joint its force, 6.
        couplings: by coupling and joint the forces of the coupling, one for each freedom.
        size: the size of the result.
    """

    joints: Places
    constraints: Places
    actuators: Places
    passive: Places
    loops: Places
    couplings: Mapping[str, Places]
    size: int


class ForcePlaces:
    """Lays out the forces of links and bonds, one cluster after the other."""

    def __init__(self, robot: Robot, driven: np.ndarray, bonds: Sequence[Sequence[Constraint]]) -> None:
        self.robot, self.driven, self.bonds, self.size = robot, driven, bonds, 0
        self.links: dict[int, dict[str, slice]] = {}
        self.bond_forces: dict[tuple[int, int, int | None], slice] = {}  # by cluster, bond, and body of a coupling
        for k, cluster in enumerate(robot.cluster_tree.clusters):
            for link in cluster.bodies if k else ():
                nv = robot.tree.links[link].kind.nv
                sizes = {"total": 6, "constraint": 6, "actuator": nv, "passive": nv}
                self.links[link] = {name: self._take(size) for name, size in sizes.items()}
            for i, constraint in enumerate(bonds[k]):
                if isinstance(constraint, LoopConstraint):
                    self.bond_forces[k, i, None] = self._take(6)
                    continue
                for j in constraint.links:
                    self.bond_forces[k, i, j] = self._take(robot.tree.links[cluster.bodies[j]].kind.nv)

    def _take(self, size: int) -> slice:
        self.size += size
        return slice(self.size - size, self.size)

    def provide(self, windows: ClusterWindows, forces: Any, clusters: Sequence[int]) -> None:
        """Adds the fields of the result, of bonds and of bodies' frames, for clusters that share a trace."""
        tree, of_robot, first = self.robot.tree, self.robot.cluster_tree.clusters, clusters[0]

        def at(places: Sequence[slice]) -> Any:
            return forces.at([place.start for place in places], places[0].stop - places[0].start)

        windows.bonds = tables([[bond.constants for bond in self.bonds[k]] for k in clusters])
        for i in range(len(of_robot[first].bodies)):
            links = [of_robot[k].bodies[i] for k in clusters]
            frames = [tree.place[tree.links[link].name][1] for link in links]
            windows.bodies[i] |= tables([[{"axes": X.E, "origin": X.r}] for X in frames])[0]
            windows.bodies[i] |= {x: at([self.links[link][x] for link in links]) for x in self.links[links[0]]}
        for k, i, j in self.bond_forces:
            if k == first:
                name = "force" if j is None else numbered("force_on", j)
                windows.bonds[i][name] = at([self.bond_forces[other, i, j] for other in clusters])

    def layout(self) -> ForceLayout:
        """The places by name, with joints in the order of the robot's description."""
        tree, of_robot = self.robot.tree, self.robot.cluster_tree.clusters
        number = {joint.name: tree.number[joint.name] for joint in self.robot.joints if joint.name in tree.number}
        by_joint = {
            name: {joint: self.links[link][name] for joint, link in number.items()}
            for name in ("total", "constraint", "actuator", "passive")
        }
        drives = {joint for joint, link in number.items() if self.driven[tree.velocities(link)].any()}
        loops: dict[str, Any] = {}
        couplings: dict[str, dict[str, Any]] = {}
        for (k, i, j), place in self.bond_forces.items():
            name = self.bonds[k][i].name
            if j is None:
                loops[name] = place
            else:
                couplings.setdefault(name, {})[tree.links[of_robot[k].bodies[j]].joint] = _single(place)
        return ForceLayout(
            joints=by_joint["total"],
            constraints=by_joint["constraint"],
            actuators={joint: _single(place) for joint, place in by_joint["actuator"].items() if joint in drives},
            passive={joint: _single(place) for joint, place in by_joint["passive"].items()},
            loops={loop.name: loops[loop.name] for loop in self.robot.loops},
            couplings=couplings,
            size=self.size,
        )


def _single(place: slice) -> Any:
    """The slice, or the index if it has a single entry."""
    return place.start if place.stop - place.start == 1 else place
