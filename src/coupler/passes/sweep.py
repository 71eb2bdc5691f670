"""Programs that go over the clusters of a robot, outwards and inwards, one kernel for each shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Generic

import numpy as np

from coupler.graph import (
    Buffer,
    Builder,
    Field,
    Program,
    Records,
    Slot,
    Vector,
    View,
    Window,
    compile,
    constants,
    fields,
)
from coupler.model import Robot
from coupler.model.embedding.scene import constant_fields
from coupler.model.tolerances import OPEN
from coupler.passes.body import B_co
from coupler.passes.cluster import C_co, Context, Pair, Visit
from coupler.passes.records import ClusterRecord, Record, numbered
from coupler.passes.schedule import Place, Schedule, Store
from coupler.passes.shape import Clusters, Instance, Numbers, Shape
from coupler.passes.windows import ClusterWindows, kernel_of

__all__ = ["Sweep", "tables"]

_AT_ONCE = 8  # entries of a result that one kernel makes NaN where a configuration is invalid


class Sweep(Generic[B_co, C_co]):
    """Writes a program of passes over a robot's clusters.

    Vectors are made by `inputs` and `output`; a cluster has its part of those over independent velocities in its memory.
    Bodies that carry others, pairs of bodies that feel each other's inertia, and clusters have memory for what their
    records declare.

    Attributes:
        robot: the robot.
        builder: what the program is written with.
        shapes: all shapes of clusters, each with the numbers of its clusters.
        instances: what is each cluster's own.
        shape_of: the number of each cluster's shape.
        links: the links that have memory.
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
        only: Iterable[int] | None = None,
        oriented: Iterable[int] | None = None,
    ) -> None:
        """Begins a program.

        Args:
            robot: the robot.
            name: of the program.
            body: the record of what bodies remember.
            cluster: the record of what clusters remember.
            paired: whether pairs of bodies remember articulated inertia.
            loaded: whether forces act on bodies from outside; all of them then have memory.
            everybody: whether bodies that carry nothing have memory, too.
            remembering: whether clusters that carry nothing remember what they know after the first pass, too.
            tangent: whether clusters of loops without a solution are seen along a basis of their own; see `Visit`.
            only: the clusters that passes go over, with each of them the one that it hangs on; all if not given.
            oriented: the links whose angles matter even where bodies are symmetric; all if not given.
        """
        self.robot, self.loaded, self.builder = robot, loaded, Builder(name, robot.tree.parameters)
        self._body, self._cluster, self._remembering, self.tangent = body, cluster, remembering, tangent
        clusters = Clusters(robot, oriented)
        self.shapes, self.instances = clusters.shapes, clusters.instances
        self.shape_of = {k: i for i, (_, alike) in enumerate(self.shapes) for k in alike}
        self.vectors: dict[str, Vector] = {}
        self._everybody, self._only = everybody or loaded, None if only is None else set(only)
        self.links = [i for i in range(1, len(robot.tree.links)) if self._everybody or robot.tree.children[i]]
        self._row = {link: i for i, link in enumerate(self.links)}
        world = {"E": (3, 3), "r": 3, "load": 6} if loaded else {}
        layout = body.layout("kept") | world
        self._bodies = self.builder.records("body", max(len(self.links), 1), **layout)
        self._slot = _collecting_slots(robot)
        self._collected, self._afterwards = self._shared_records()
        pairs = [pair for pairs in clusters.couples for pair in pairs]
        self._pair = {both: i for i, both in enumerate(pairs)}
        self._pairs = self.builder.records("pair", len(pairs), **Pair.layout("kept")) if pairs and paired else None
        self._clusters = [self._cluster_records(i) for i in range(len(self.shapes))]
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
        self, function: Callable[[Visit[B_co, C_co]], None], *, carriers: bool = False, new_velocities: bool = False
    ) -> None:
        """Runs a pass over all clusters, parents first, or only over those that carry others.

        After the first pass, clusters load what they remember; with `new_velocities`, what follows from positions
        alone.
        """
        self._run(function, carriers, backwards=False, known_velocities=not new_velocities)

    def inward(self, function: Callable[[Visit[B_co, C_co]], None]) -> None:
        """Runs a pass over all clusters, children first."""
        self._run(function, False, backwards=True)

    def _run(
        self,
        function: Callable[[Visit[B_co, C_co]], None],
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
        function: Callable[..., None],
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
        context = Context(
            body=self._body,
            cluster=self._cluster,
            remembers=self._remembering or any(shape.carries),
            seen_before=schedule.seen_before,
            moving="v" in self.vectors,
            loaded=self.loaded,
            everybody=self._everybody,
            known_velocities=schedule.known_velocities,
            tangent=self.tangent,
            all_rows=self.robot.tree.all_rows,
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

    def bodies(self, links: Sequence[int] | np.ndarray) -> Window:
        """The memory of links, apart from what is collected."""
        rows = np.zeros(max(self.links, default=0) + 1, int)
        rows[self.links] = np.arange(len(self.links))
        return self._bodies[rows[links]]

    def place(self, link: int, name: str) -> Place:
        """One field of a link's memory, apart from what is collected."""
        slot = self.bodies([link]).fields[name]
        return Place(self._bodies.buffer, int(slot.bases[0]) + slot.offset, slot.field)  # type: ignore[union-attr]

    def number_in_cluster(self, link: int) -> tuple[int, int]:
        """The cluster of a link, and its number in that."""
        k = self.robot.cluster_tree.cluster_of[link]
        return k, self.robot.cluster_tree.clusters[k].bodies.index(link)

    def windows(self, clusters: Sequence[int]) -> ClusterWindows:
        """Everything that clusters of one shape can see."""
        number = self.shape_of[clusters[0]]
        shape, of_shape = self.shapes[number]
        instances = [self.instances[k] for k in clusters]
        windows = ClusterWindows(
            cluster={"gravity": constants(np.stack([self.robot.gravity for _ in instances]))},
            models=tables([instance.models for instance in instances]),
            constraints=tables([instance.constraints for instance in instances]),
            joints=[self._joint(shape, i, instances) for i in range(len(shape.kinds))],
            bodies=[self._memory([x.links[i] for x in instances], has) for i, has in enumerate(shape.carries)],
            outputs=[self._memory([x.outputs[j] for x in instances], True) for j in range(len(shape.grounded))],
        )
        windows.cluster |= {name: total.at([0] * len(instances), total.size) for name, total in self._totals.items()}
        if self.gap is not None:
            windows.cluster["gap"] = self.gap.at([0] * len(instances))
        if self._pairs is not None:
            couples = combinations(range(len(shape.grounded)), 2)
            inside = [[(x.links[a], x.links[b]) for x in instances] for a, b in shape.couples]
            outside = [[(x.outputs[a], x.outputs[b]) for x in instances] for a, b in couples]
            windows.pairs, windows.output_pairs = (
                [dict(self._pairs[[self._pair[pair] for pair in pairs]].fields) for pairs in both]
                for both in (inside, outside)
            )
        records = self._clusters[number]
        if records is not None:
            at = {k: row for row, k in enumerate(of_shape)}
            own = dict(records[[at[k] for k in clusters]].fields)
            for i, joint in enumerate(windows.joints):
                if (name := numbered("kept", i)) in own:
                    joint["kept"] = own.pop(name)
            windows.cluster |= own
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

    def _memory(self, links: Sequence[int], carries: bool) -> dict[str, Any]:
        """What bodies remember; the ground remembers nothing."""
        own: dict[str, Any] = {}
        if not links[0]:
            return own
        if carries or self._everybody:
            own |= self._bodies[[self._row[link] for link in links]].fields
        if carries and self._collected is not None:
            own |= self._collected[[self._slot[link] for link in links]].fields
        if carries and self._afterwards is not None:
            own |= self._afterwards[[self._row[link] for link in links]].fields
        return own

    def _shared_records(self) -> tuple[Records | None, Records | None]:
        """Memory for what is collected on the way inwards, and for what comes afterwards, in the same place."""
        slots, rows = max(self._slot.values(), default=0) + 1, max(len(self.links), 1)
        collected, afterwards = (
            {name: Field.of(size) for name, size in self._body.layout(lifetime).items()}
            for lifetime in ("collected", "afterwards")
        )
        sizes = [n * sum(x.size for x in own.values()) for n, own in ((slots, collected), (rows, afterwards))]
        memory = self.builder.scratch("collected", max(sizes))
        first = Records(memory, slots, collected) if collected else None
        return first, Records(memory, rows, afterwards) if afterwards else None

    def _cluster_records(self, number: int) -> Records | None:
        shape, clusters = self.shapes[number]
        own = self._cluster.layout("kept", shape)
        if any(shape.carries) or self._remembering:
            own |= {numbered("kept", i): _size_of_kept(shape, i) for i, steady in enumerate(shape.steady) if not steady}
            joints, freedoms = int(shape.starts[-1]), shape.freedoms
            if self.tangent and not shape.solved:
                own |= {"N": (joints, freedoms), "K_inverse": (joints, joints - freedoms), "g": joints}
            elif not shape.linear:
                own |= {"GD": (len(shape.dependent), len(shape.independent)), "gD": len(shape.dependent)}
        return self.builder.records(f"shape{number}", len(clusters), **own) if own else None


def _collecting_slots(robot: Robot) -> dict[int, int]:
    """Where each body collects: places are used again once a body's own cluster has been passed."""
    slots: dict[int, int] = {0: -1}  # the ground needs nothing
    free, places = [], 0
    for cluster in reversed(robot.cluster_tree.clusters[1:]):
        for output in cluster.outputs:
            if output not in slots:
                if not free:
                    free, places = [places], places + 1
                slots[output] = free.pop()
        free += [slots[link] for link in cluster.bodies if link in slots]
    return slots


def tables(several: Sequence[Sequence[Numbers]]) -> list[dict[str, Any]]:
    """The numbers of each part of clusters, by name, a row for each cluster."""
    return [dict(constant_fields(part)) for part in zip(*several, strict=True)]


def _clear(total: View) -> None:
    total.x = np.zeros(np.shape(total.x))


def _valid_or_nan(result: View) -> None:
    result.x = np.where(result.gap < OPEN, result.x, np.nan)


def _size_of_kept(shape: Shape, i: int) -> int:
    kind = shape.kinds[i]
    return len(kind.keep(kind.neutral()))
