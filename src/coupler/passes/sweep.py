"""Programs that pass over the clusters of a robot, outward and inward, with one kernel for each shape of cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from coupler.graph import Program, Slot, View, compile, constants, fields
from coupler.model import Robot
from coupler.model.embedding.constraint_steps import constant_fields
from coupler.model.tolerances import OPEN
from coupler.passes.body import B_co
from coupler.passes.cluster import C_co, Visit
from coupler.passes.context import Context
from coupler.passes.huge import warn_of_huge_clusters
from coupler.passes.memory import Memory
from coupler.passes.records import ClusterRecord, Record
from coupler.passes.schedule import Schedule
from coupler.passes.shape import Clusters, ClusterShape, Instance, Numbers
from coupler.passes.tree_loops import TreeLoops
from coupler.passes.vectors import ProgramVectors
from coupler.passes.windows import ClusterWindows, kernel_of

if TYPE_CHECKING:
    from coupler.passes.transmissions import MeasuredGears

_NAN_BLOCK = 8  # entries of a result that one row of the last loop sets to NaN


class Sweep(ProgramVectors, Generic[B_co, C_co]):
    """Writes a program of passes over a robot's clusters.

    Bodies that carry others, pairs of bodies that share an articulated inertia, and clusters have memory for what their
    records declare. A cluster also sees its part of every vector over independent velocities there.

    Args:
        name: the name of the program.
        body: the record of what bodies remember.
        cluster: the record of what clusters remember.
        loaded: whether forces act on bodies from outside. All bodies then have memory.
        leaf_bodies: whether bodies that carry nothing have memory, too.
        leaf_clusters: whether clusters that carry nothing store what follows from their positions, too.
        tangent: whether loops without a solution are seen along an orthonormal basis of their own; see `Visit`.
        looped: whether large clusters with such loops are treated by loops over their joints, which the program has to
            write: see `TreeLoops`.
        oriented: the links whose angles matter even if they are symmetric rotors; all links by default. Links that
            springs between points pull at are added if the program is loaded, and those that cables act on.

    Attributes:
        loaded: whether forces act on bodies from outside.
        shapes: all shapes of clusters, each with the numbers of its clusters.
        instances: for each cluster its links, output links and numbers.
        shape_of: for each cluster the index of its shape.
        links, bodies, place: the links that have memory, and where it is; see `Memory`.
        gears: the gears of actuators that depend on poses, once they are measured; see `measure_gears`.
        provide: adds fields to what clusters of a shape see.
    """

    def __init__(
        self,
        robot: Robot,
        name: str,
        *,
        body: type[B_co] = Record,
        cluster: type[C_co] = ClusterRecord,
        loaded: bool = False,
        leaf_bodies: bool = False,
        leaf_clusters: bool = False,
        tangent: bool = False,
        looped: bool = False,
        oriented: Iterable[int] | None = None,
    ) -> None:
        super().__init__(robot, name)
        self.loaded, self.tangent = loaded, tangent
        if oriented is not None:
            oriented = {*oriented, *(_links_with_springs(robot) if loaded else ()), *_links_of_transmissions(robot)}
        clusters = Clusters(robot, oriented)
        self.shapes, self.instances = clusters.shapes, clusters.instances
        self.shape_of = {k: i for i, (_, members) in enumerate(self.shapes) for k in members}
        self._context = Context(
            body=body,
            cluster=cluster,
            loaded=loaded,
            leaf_bodies=leaf_bodies or loaded,
            leaf_clusters=leaf_clusters,
            tangent=tangent,
            all_rows=robot.tree.all_rows,
            looped=looped,
        )
        if self._context.paired:
            warn_of_huge_clusters(robot, clusters)
        self._memory = memory = Memory(self.builder, robot, clusters, self._context)
        self.links, self.bodies, self.place = memory.links, memory.bodies, memory.place
        large = [k for shape, alike in self.shapes if shape.can_be_looped for k in alike] if looped and tangent else []
        self.trees = TreeLoops(self, large) if large else None
        self._first = True
        self.gears: MeasuredGears | None = None
        self.provide: Callable[[ClusterWindows, ClusterShape, Sequence[int]], None] = lambda *_: None
        self.gap = self.builder.scratch("gap", 1) if any(shape.can_be_invalid for shape, _ in self.shapes) else None
        if self.gap is not None:
            self.clear(self.gap, 1)

    # Passes

    def outward(
        self, function: Callable[[Visit[B_co, C_co]], object], *, carriers: bool = False, new_velocities: bool = False
    ) -> None:
        """Runs a pass over all clusters, parents first.

        Args:
            function: the function to run at each cluster.
            carriers: whether only clusters that carry others are visited.
            new_velocities: whether velocities have changed since earlier passes stored them. Clusters then load only
                what follows from positions.
        """
        self._run(function, self.clusters(), carriers, known_velocities=not new_velocities)

    def inward(self, function: Callable[[Visit[B_co, C_co]], object]) -> None:
        """Runs a pass over all clusters, children first."""
        self._run(function, self.clusters()[::-1])

    def clusters(self) -> Sequence[int]:
        """The numbers of the clusters that passes visit, parents first."""
        return range(1, len(self.instances))

    def _run(
        self,
        function: Callable[[Visit[B_co, C_co]], object],
        clusters: Sequence[int],
        carriers: bool = False,
        known_velocities: bool = True,
    ) -> None:
        schedule = self.schedule(known_velocities)
        for k in clusters:
            if not carriers or any(self.shapes[self.shape_of[k]][0].carries):
                self.visit(schedule, function, k)
        schedule.run()

    def forget(self) -> None:
        """Makes the next pass a first one: the robot has moved, and what clusters stored is out of date."""
        self._first = True

    def schedule(self, known_velocities: bool = True) -> Schedule:
        """A new loop, in which clusters may load the velocities that an earlier pass stored, or may not."""
        seen_before, self._first = not self._first, False
        return Schedule(self.builder, seen_before, known_velocities)

    def visit(
        self,
        schedule: Schedule,
        function: Callable[..., object],
        cluster: int,
        *arguments: Any,
        key: Any = (),
        row: Any = None,
        provide: Callable[[ClusterWindows, ClusterShape, list[Any]], None] = lambda *_: None,
        where: Callable[[list[Any]], Slot] | None = None,
        among: Callable[[list[Any]], Slot] | None = None,
    ) -> None:
        """Adds a row to a schedule: a function of one cluster.

        Args:
            function: takes the cluster and the arguments.
            cluster: the number of the cluster.
            arguments: further arguments of the function, the same for all rows of a key.
            key: equal for clusters of a shape that share a trace.
            row: what `provide` gets for this row; the number of the cluster by default.
            provide: adds to what clusters of a shape see, given all rows of a key.
            where, among: the flags of all rows of a key; see `Builder.loop`.
        """
        number = self.shape_of[cluster]
        shape, _ = self.shapes[number]
        context = replace(
            self._context,
            moving="v" in self.vectors,
            seen_before=schedule.seen_before,
            known_velocities=schedule.known_velocities,
        )

        def loop(added: list[Any]) -> Any:
            windows, rows = self.windows([k for k, _ in added]), [row for _, row in added]
            provide(windows, shape, rows)
            kernel = kernel_of(lambda views: function(Visit(views, shape, context), *arguments), function.__name__)
            flags = {"where": where and where(rows), "among": among and among(rows)}
            return kernel, windows.windows() | flags

        schedule.add((function, number, key), (cluster, cluster if row is None else row), loop)

    def build(self) -> Program:
        """The program. Its results are NaN in invalid configurations: open, singular, quaternion not of unit length."""
        for result in self.results if self.gap is not None else ():
            full = result.size - result.size % _NAN_BLOCK
            for starts, size in ((range(0, full, _NAN_BLOCK), _NAN_BLOCK), (range(full, result.size, 1), 1)):
                if starts:
                    gap = self.gap.at([0] * len(starts))  # type: ignore[union-attr]
                    self.builder.loop(_valid_or_nan, result=fields(x=result.at(starts, size), gap=gap))
        return self.builder.build()

    def evaluate(self, *inputs: Any) -> Any:
        """The program's results, computed once without machine code: for decisions that shape another program."""
        executable = compile(self.build(), backend="python" if self.robot.backend == "python" else "interpreter")
        return executable(*inputs, *self.robot.tree.inputs_of(executable))

    # What clusters see

    def number_in_cluster(self, link: int) -> tuple[int, int]:
        """The cluster of a link, and the link's number in it."""
        k = self.robot.cluster_tree.cluster_of[link]
        return k, self.robot.cluster_tree.clusters[k].bodies.index(link)

    def windows(self, clusters: Sequence[int]) -> ClusterWindows:
        """Everything that clusters of one shape can see."""
        number = self.shape_of[clusters[0]]
        shape, instances = self.shapes[number][0], [self.instances[k] for k in clusters]
        links = [[instance.links[i] for instance in instances] for i in range(len(shape.kinds))]
        output_links = [[instance.outputs[j] for instance in instances] for j in range(len(shape.grounded))]
        windows = ClusterWindows(
            cluster={"gravity": constants(np.stack([self.robot.gravity for _ in instances]))},
            models=tables([instance.models for instance in instances]),
            constraints=tables([instance.constraints for instance in instances]),
            joints=[self._joint(shape, i, instances) for i in range(len(shape.kinds))],
            bodies=[self._memory.of_links(column, has) for column, has in zip(links, shape.carries, strict=True)],
            outputs=[self._memory.of_links(column, True) for column in output_links],
        )
        windows.cluster |= {name: total.at([0] * len(instances), total.size) for name, total in self.totals.items()}
        if self.gap is not None:
            windows.cluster["gap"] = self.gap.at([0] * len(instances))
        self._memory.add_clusters(windows, number, clusters)
        if self.trees and shape.can_be_looped:
            self.trees.provide(windows, clusters)
        self.provide(windows, shape, clusters)
        return windows

    def _joint(self, shape: ClusterShape, i: int, instances: Sequence[Instance]) -> dict[str, Any]:
        """The position of a joint, and its parts of vectors over independent velocities."""
        tree, links = self.robot.tree, [instance.links[i] for instance in instances]
        parts: dict[str, Any] = {}
        if shape.stored[i] and "q" in self.vectors:
            parts["q"] = self.vectors["q"].at(self.robot.embedding.q_place[tree.q_start[links]], shape.kinds[i].nq)
        if shape.free[i]:
            starts = self.robot.embedding.v_place[tree.v_start[links] + shape.free[i][0]]
            for name, buffer in self.vectors.items():
                if name != "q" and buffer.size == self.robot.nv:
                    parts[name] = buffer.at(starts, len(shape.free[i]))
        return parts


def tables(several: Sequence[Sequence[Numbers]]) -> list[dict[str, Any]]:
    """The numbers of each part of clusters by name, with a row for each cluster."""
    return [dict(constant_fields(part)) for part in zip(*several, strict=True)]


def _links_with_springs(robot: Robot) -> set[int]:
    """The links that springs between points pull at: their angles matter, even if they are symmetric rotors."""
    return {robot.tree.place[body][0] for spring in robot.elements for body in (spring.first, spring.second)}


def _links_of_transmissions(robot: Robot) -> set[int]:
    """The links at which transmissions act whose gear depends on the pose."""
    transmissions = [actuator.along for actuator in robot.actuators if actuator.along is not None]
    return {robot.tree.place[end.body][0] for transmission in transmissions for end in transmission.ends}


def _valid_or_nan(result: View) -> None:
    result.x = np.where(result.gap < OPEN, result.x, np.nan)
