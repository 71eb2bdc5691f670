"""Programs that go over the clusters of a robot, outwards and inwards, one kernel for each shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic

import numpy as np

from coupler.graph import Buffer, Builder, Program, Slot, Vector, View, compile, constants, fields
from coupler.model import Robot
from coupler.model.embedding.constraint_steps import constant_fields
from coupler.model.tolerances import OPEN
from coupler.passes.body import B_co
from coupler.passes.cluster import C_co, Context, Visit
from coupler.passes.huge import tell_of_huge_clusters
from coupler.passes.memory import Memory
from coupler.passes.records import ClusterRecord, Record
from coupler.passes.schedule import Schedule, Store
from coupler.passes.shape import Clusters, Instance, Numbers, Shape
from coupler.passes.tree_loops import TreeLoops
from coupler.passes.windows import ClusterWindows, kernel_of

_AT_ONCE = 8  # entries of a result that one kernel makes NaN where a configuration is invalid


class Sweep(Generic[B_co, C_co]):
    """Writes a program of passes over a robot's clusters.

    Vectors are made by `inputs` and `output`; a cluster has its part of those over independent velocities in its
    memory. Bodies that carry others, pairs of bodies that feel each other's inertia, and clusters have memory for what
    their records declare.

    Attributes:
        robot: the robot.
        builder: what the program is written with.
        shapes: all shapes of clusters, each with the numbers of its clusters.
        instances: what is each cluster's own.
        shape_of: the number of each cluster's shape.
        links, bodies, place: the links that have memory, and where it is; see `Memory`.
        vectors: by name.
        provide: adds fields to what clusters of a shape see.
    """

    def __init__(
        self,
        robot: Robot,
        name: str,
        *,
        body: type[B_co] = Record,
        cluster: type[C_co] = ClusterRecord,
        paired: bool = False,
        loaded: bool = False,
        everybody: bool = False,
        remembering: bool = False,
        tangent: bool = False,
        looped: bool = False,
        only: Iterable[int] | None = None,
        oriented: Iterable[int] | None = None,
    ) -> None:
        """Begins a program.

        Args:
            name: of the program.
            body: the record of what bodies remember.
            cluster: the record of what clusters remember.
            paired: whether pairs of bodies remember articulated inertia.
            loaded: whether forces act on bodies from outside; all of them then have memory.
            everybody: whether bodies that carry nothing have memory, too.
            remembering: whether clusters that carry nothing remember what they know after the first pass, too.
            tangent: whether clusters of loops without a solution are seen along a basis of their own; see `Visit`.
            looped: whether large ones among those are seen by loops over their joints, which the program has to write:
                see `TreeLoops`.
            only: the clusters that passes go over, with each of them the one that it hangs on; all if not given.
            oriented: the links whose angles matter even where bodies are symmetric; all if not given.
        """
        self.robot, self.loaded, self.tangent = robot, loaded, tangent
        self.builder = Builder(name, robot.tree.parameters)
        clusters, everybody = Clusters(robot, oriented), everybody or loaded
        self.shapes, self.instances = clusters.shapes, clusters.instances
        self.shape_of = {k: i for i, (_, alike) in enumerate(self.shapes) for k in alike}
        self.vectors: dict[str, Vector] = {}
        self._only = None if only is None else set(only)
        self._context = Context(
            body=body,
            cluster=cluster,
            paired=paired,
            loaded=loaded,
            everybody=everybody,
            remembering=remembering,
            tangent=tangent,
            all_rows=robot.tree.all_rows,
            looped=looped,
        )
        if paired:
            tell_of_huge_clusters(robot, clusters)
        self._memory = memory = Memory(self.builder, robot, clusters, self._context)
        self.links, self.bodies, self.place = memory.links, memory.bodies, memory.place
        own = [k for shape, alike in self.shapes if shape.can_be_looped for k in alike] if looped and tangent else []
        self.trees = TreeLoops(self, own) if own else None
        self._first = True
        self.provide: Callable[[ClusterWindows, Shape, Sequence[int]], None] = lambda *_: None
        self._totals: dict[str, Buffer] = {}
        self.gap = self.builder.scratch("gap", 1) if any(shape.can_be_invalid for shape, _ in self.shapes) else None
        self._results: list[Buffer] = []
        if self.gap is not None:
            self.builder.loop(_clear, total=fields(x=self.gap.at(0)))

    # Vectors

    def inputs(self, *names: str) -> list[Buffer]:
        """Inputs of the program: q of nq entries; all others are over independent velocities, nv entries."""
        return [self.input(name, self.robot.nq if name == "q" else self.robot.nv) for name in names]

    def input(self, name: str, size: int) -> Buffer:
        """An input of another size."""
        self.vectors[name] = buffer = self.builder.input(name, size)
        return buffer

    def output(self, name: str) -> Buffer:
        """An output of the program, over independent velocities."""
        self.vectors[name] = buffer = self.result(name, self.robot.nv)
        return buffer

    def vector(self, name: str) -> Buffer:
        """A vector over independent velocities, for the program's own use."""
        self.vectors[name] = buffer = self.builder.scratch(name, self.robot.nv)
        return buffer

    def result(self, name: str, size: int) -> Buffer:
        """An output that is not a vector over independent velocities."""
        self._results.append(self.builder.output(name, size))
        return self._results[-1]

    def total(self, name: str, size: int) -> Buffer:
        """A vector that all clusters have in their memory, and may add to."""
        self._totals[name] = self.builder.scratch(name, size)
        self.builder.loop(_clear, total=fields(x=self._totals[name].at(0, size)))
        return self._totals[name]

    def finish(self, name: str, size: int, function: Callable[..., Any], total: Buffer, *numbers: Any) -> None:
        """An output that is a function of a total and of numbers of the robot, which may depend on parameters."""

        def kernel(entries: View) -> None:
            entries.y = function(entries.x, *(getattr(entries, name) for name in known))

        known = {f"number{i}": constants([value]) for i, value in enumerate(numbers)}
        output = self.result(name, size)
        self.builder.loop(kernel, entries=fields(x=total.at(0, total.size), y=output.at(0, size), **known))

    def store(self, name: str) -> Store:
        """Memory for matrices by key."""
        return Store(lambda size: self.builder.scratch(name, size))

    def result_store(self, name: str) -> Store:
        """An output that is made of matrices by key."""
        return Store(lambda size: self.result(name, size))

    def scratch(self, name: str, size: int) -> Buffer:
        """A vector for the program's own use."""
        return self.builder.scratch(name, size)

    # Passes

    def call(self, program: Program, **bindings: Buffer) -> None:
        """Runs another program in place, its inputs and outputs bound by name to vectors of this one."""
        self.builder.call(program, **bindings)

    def outward(
        self, function: Callable[[Visit[B_co, C_co]], object], *, carriers: bool = False, new_velocities: bool = False
    ) -> None:
        """Runs a pass over all clusters, parents first, or only over those that carry others.

        After the first pass, clusters load what they remember; with `new_velocities`, what follows from positions
        alone.
        """
        self._run(function, carriers, backwards=False, known_velocities=not new_velocities)

    def inward(self, function: Callable[[Visit[B_co, C_co]], object]) -> None:
        """Runs a pass over all clusters, children first."""
        self._run(function, False, backwards=True)

    def _run(
        self,
        function: Callable[[Visit[B_co, C_co]], object],
        carriers: bool,
        backwards: bool,
        known_velocities: bool = True,
    ) -> None:
        schedule = self.schedule(known_velocities)
        for k in sorted(self.shape_of, reverse=backwards):
            shape = self.shapes[self.shape_of[k]][0]
            if (any(shape.carries) or not carriers) and (self._only is None or k in self._only):
                self.visit(schedule, function, k)
        schedule.run()

    def forget(self) -> None:
        """Makes the next pass a first one: robots have moved, and clusters know nothing of what they remember."""
        self._first = True

    def schedule(self, known_velocities: bool = True) -> Schedule:
        """A new loop, in which clusters know the velocities that a pass before has stored, or not."""
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
        provide: Callable[[ClusterWindows, Shape, list[Any]], None] = lambda *_: None,
        where: Callable[[list[Any]], Slot] | None = None,
        among: Callable[[list[Any]], Slot] | None = None,
    ) -> None:
        """Adds a row to a schedule: a function of one cluster.

        Args:
            schedule: the loop.
            function: takes the cluster and the arguments.
            cluster: its number.
            arguments: further ones of the function, the same for all rows of a key.
            key: equal for clusters of a shape that one trace serves.
            row: what `provide` gets, if that is not the number of the cluster.
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

        def loop(rows: list[Any]) -> Any:
            windows, own = self.windows([k for k, _ in rows]), [row for _, row in rows]
            provide(windows, shape, own)
            kernel = kernel_of(lambda views: function(Visit(views, shape, context), *arguments), function.__name__)
            flags = {"where": where and where(own), "among": among and among(own)}
            return kernel, windows.windows() | flags

        schedule.add((function, number, key), (cluster, cluster if row is None else row), loop)

    def build(self) -> Program:
        """The program. Where a configuration is invalid (open, singular, not of unit length), its results are NaN."""
        for result in self._results if self.gap is not None else ():
            full = result.size - result.size % _AT_ONCE
            for starts, size in ((range(0, full, _AT_ONCE), _AT_ONCE), (range(full, result.size, 1), 1)):
                if starts:
                    gap = self.gap.at([0] * len(starts))  # type: ignore[union-attr]
                    self.builder.loop(_valid_or_nan, result=fields(x=result.at(starts, size), gap=gap))
        return self.builder.build()

    def evaluate(self, *inputs: Any) -> Any:
        """What the program gives, run once by NumPy: for decisions that are made before another program is written."""
        executable = compile(self.build(), backend="interpreter")
        return executable(*inputs, *self.robot.tree.inputs_of(executable))

    # Where things are

    def number_in_cluster(self, link: int) -> tuple[int, int]:
        """The cluster of a link, and its number in that."""
        k = self.robot.cluster_tree.cluster_of[link]
        return k, self.robot.cluster_tree.clusters[k].bodies.index(link)

    def windows(self, clusters: Sequence[int]) -> ClusterWindows:
        """Everything that clusters of one shape can see."""
        number = self.shape_of[clusters[0]]
        shape, instances = self.shapes[number][0], [self.instances[k] for k in clusters]
        carried = [[x.links[i] for x in instances] for i in range(len(shape.kinds))]
        carriers = [[x.outputs[j] for x in instances] for j in range(len(shape.grounded))]
        windows = ClusterWindows(
            cluster={"gravity": constants(np.stack([self.robot.gravity for _ in instances]))},
            models=tables([instance.models for instance in instances]),
            constraints=tables([instance.constraints for instance in instances]),
            joints=[self._joint(shape, i, instances) for i in range(len(shape.kinds))],
            bodies=[self._memory.of_links(own, has) for own, has in zip(carried, shape.carries, strict=True)],
            outputs=[self._memory.of_links(links, True) for links in carriers],
        )
        windows.cluster |= {name: total.at([0] * len(instances), total.size) for name, total in self._totals.items()}
        if self.gap is not None:
            windows.cluster["gap"] = self.gap.at([0] * len(instances))
        self._memory.add_clusters(windows, number, clusters)
        if self.trees and shape.can_be_looped:
            self.trees.provide(windows, clusters)
        self.provide(windows, shape, clusters)
        return windows

    def _joint(self, shape: Shape, i: int, instances: Sequence[Instance]) -> dict[str, Any]:
        """The position of a joint, and its parts of vectors over independent velocities."""
        tree, links, own = self.robot.tree, [instance.links[i] for instance in instances], {}
        if shape.stored[i] and "q" in self.vectors:
            own["q"] = self.vectors["q"].at(self.robot.embedding.q_place[tree.q_start[links]], shape.kinds[i].nq)
        if shape.free[i]:
            starts = self.robot.embedding.v_place[tree.v_start[links] + shape.free[i][0]]
            for name, buffer in self.vectors.items():
                if name != "q" and buffer.size == self.robot.nv:
                    own[name] = buffer.at(starts, len(shape.free[i]))
        return own


def tables(several: Sequence[Sequence[Numbers]]) -> list[dict[str, Any]]:
    """The numbers of each part of clusters, by name, a row for each cluster."""
    return [dict(constant_fields(part)) for part in zip(*several, strict=True)]


def _clear(total: View) -> None:
    total.x = np.zeros(np.shape(total.x))


def _valid_or_nan(result: View) -> None:
    result.x = np.where(result.gap < OPEN, result.x, np.nan)
