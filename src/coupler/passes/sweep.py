"""Programs that go over the clusters of a robot, outwards and inwards, one kernel for each shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from coupler.graph import Buffer, Builder, Field, Program, Records, View, Window, constants, fields
from coupler.model import Robot
from coupler.passes.cluster import Cluster
from coupler.passes.shape import Clusters, Shape

__all__ = ["Sweep"]

_OPEN = 1e-5  # from here on a loop counts as open, and a quaternion as of wrong length; m or rad

_AT_ONCE = 8  # results that are judged together

Pass = Callable[[Cluster], None]
Layout = Mapping[str, Any]


class Sweep:
    """Writes a program of passes over a robot's clusters.

    Vectors are made by `input` and `output`; a cluster reads and writes its part of them by name. There is memory for
    each body that carries others, with the fields of `body`, for each pair of bodies that feel each other's inertia,
    with those of `pair`, and for each cluster, with those that `cluster` gives for its shape. Where forces act from
    outside, or where that is asked for, `everybody` has memory. Clusters that carry nothing remember nothing, unless
    all are `remembering`. Passes go over all clusters or `only` over some, with each of them the one it hangs on.

    The fields of `left` are for what clusters leave for the bodies that carry them, on the way inwards: from the first
    cluster on a body to the body's own, and then for others. Those of `after` are for what bodies need once all that is
    left has been taken, in the same place. So little memory stays in the processor's first cache.
    """

    def __init__(
        self,
        robot: Robot,
        name: str,
        *,
        body: Layout,
        left: Layout | None = None,
        after: Layout | None = None,
        pair: Layout | None = None,
        cluster: Callable[[Shape], Layout] = lambda shape: {},
        loaded: bool = False,
        everybody: bool = False,
        remembering: bool = False,
        only: Iterable[int] | None = None,
        turning: Iterable[int] | None = None,
    ) -> None:
        """Args: see above, and the links whose angles matter even where bodies are symmetric; all if not given."""
        self.robot, self.loaded, self.remembering, self.builder = robot, loaded, remembering, Builder(name)
        clusters = Clusters(robot, turning)
        self.shapes, self.instances = clusters.shapes, clusters.instances
        self.vectors: dict[str, Buffer] = {}
        self._everybody, self._only = everybody or loaded, None if only is None else set(only)
        self.links = [i for i in range(1, len(robot.tree.links)) if self._everybody or robot.tree.children[i]]
        self._row = {link: i for i, link in enumerate(self.links)}
        world = {"E": (3, 3), "r": 3, "load": 6} if loaded else {}
        self._bodies = self.builder.records("body", max(len(self.links), 1), **body, **world)
        self._slot = _slots(robot)
        self._left, self._after = self._shared_records(left or {}, after or {})
        pairs = [pair for pairs in clusters.couples for pair in pairs]
        self._pair = {both: i for i, both in enumerate(pairs)}
        self._pairs = self.builder.records("pair", len(pairs), **pair) if pairs and pair else None
        self._clusters = [self._cluster_records(i, cluster) for i in range(len(self.shapes))]
        self._q_place = np.full(robot.tree.nq, -1)
        self._q_place[robot.embedding.q_index] = np.arange(robot.nq)
        self._first = True
        self.extra: Callable[..., dict[str, Any]] = lambda *_: {}  # further fields of clusters
        self._totals: dict[str, Buffer] = {}
        self.gap = self.builder.scratch("gap", 1) if any(shape.judged for shape, _ in self.shapes) else None
        self.results: list[Buffer] = []
        if self.gap is not None:
            self.builder.loop(_no_gap, here=fields(gap=self.gap.at(0)))

    def input(self, name: str, size: int) -> Buffer:
        self.vectors[name] = self.builder.input(name, size)
        return self.vectors[name]

    def output(self, name: str, size: int) -> Buffer:
        self.vectors[name] = self.result(name, size)
        return self.vectors[name]

    def vector(self, name: str) -> Buffer:
        """A vector over independent velocities, for the program's own use."""
        self.vectors[name] = self.builder.scratch(name, self.robot.nv)
        return self.vectors[name]

    def result(self, name: str, size: int) -> Buffer:
        """An output that is not a vector over independent velocities."""
        self.results.append(self.builder.output(name, size))
        return self.results[-1]

    def outward(self, function: Pass, *, carriers: bool = False) -> None:
        """Runs a pass over all clusters, parents first, or only over those that carry others.

        After the first pass, clusters load what they remember.
        """
        self._run(function, carriers, backwards=False)

    def inward(self, function: Pass) -> None:
        """Runs a pass over all clusters, children first."""
        self._run(function, False, backwards=True)

    def total(self, name: str, size: int) -> Buffer:
        """A vector that all clusters see, and may add to."""
        self._totals[name] = self.builder.scratch(name, size)
        self.builder.loop(_clear, here=fields(x=self._totals[name].at(0, size)))
        return self._totals[name]

    def finish(self, name: str, size: int, function: Callable[[Any], Any], total: Buffer) -> None:
        """An output that is a function of a total."""

        def kernel(here: View) -> None:
            here.y = function(here.x)

        output = self.result(name, size)
        self.builder.loop(kernel, here=fields(x=total.at(0, total.size), y=output.at(0, size)))

    def bodies(self, links: Sequence[int]) -> Window:
        """The memory of links."""
        return self._bodies[[self._row[link] for link in links]]

    def build(self) -> Program:
        """The program. Where a configuration is invalid (open, singular, not of unit length), its results are NaN."""
        for result in self.results if self.gap is not None else ():
            full = result.size - result.size % _AT_ONCE
            for starts, size in ((range(0, full, _AT_ONCE), _AT_ONCE), (range(full, result.size, 1), 1)):
                if starts:
                    gap = self.gap.at([0] * len(starts))  # type: ignore[union-attr]
                    self.builder.loop(_judge, here=fields(x=result.at(starts, size), gap=gap))
        return self.builder.build()

    def _shared_records(self, left: Layout, after: Layout) -> tuple[Records | None, Records | None]:
        """Memory for what is left on the way inwards, and for what comes after that, in the same place."""
        slots, rows = max(self._slot.values(), default=0) + 1, max(len(self.links), 1)
        on_way = {name: Field.of(shape) for name, shape in left.items()}
        behind = {name: Field.of(shape) for name, shape in after.items()}
        sizes = [n * sum(field.size for field in own.values()) for n, own in ((slots, on_way), (rows, behind))]
        memory = self.builder.scratch("left", max(sizes))
        return Records(memory, slots, on_way) if left else None, Records(memory, rows, behind) if after else None

    def _cluster_records(self, number: int, layout: Callable[[Shape], Layout]) -> Records | None:
        shape, clusters = self.shapes[number]
        own = dict(layout(shape))
        if any(shape.carries) or self.remembering:
            own |= {f"kept{i}": _size_of_kept(shape, i) for i, steady in enumerate(shape.steady) if not steady}
            if not shape.linear:
                own |= {"GD": (len(shape.dependent), len(shape.independent)), "gD": len(shape.dependent)}
        return self.builder.records(f"shape{number}", len(clusters), **own) if own else None

    def _run(self, function: Pass, carriers: bool, backwards: bool) -> None:
        later, self._first = not self._first, False
        active = [i for i, (shape, _) in enumerate(self.shapes) if any(shape.carries) or not carriers]
        visited = {i: [k for k in self.shapes[i][1] if self._only is None or k in self._only] for i in active}
        active = [i for i in active if visited[i]]
        turn = {k: at for at, i in enumerate(active) for k in visited[i]}
        with self.builder.interleave([turn[k] for k in sorted(turn, reverse=backwards)]):
            for i in active:
                kernel = self._kernel(function, self.shapes[i][0], later)
                self.builder.loop(kernel, here=self.window(i, visited[i][::-1] if backwards else visited[i]))

    def _kernel(self, function: Pass, shape: Shape, later: bool) -> Callable[[View], None]:
        moving, remembers = "v" in self.vectors, any(shape.carries) or self.remembering

        def kernel(here: View) -> None:
            function(
                Cluster(
                    here,
                    shape,
                    remembers,
                    later=later,
                    moving=moving,
                    loaded=self.loaded,
                    everybody=self._everybody,
                )
            )

        kernel.__name__ = function.__name__
        return kernel

    def window(self, number: int, clusters: Sequence[int]) -> Window:
        """Everything that the clusters of a shape can see."""
        shape, of_shape = self.shapes[number]
        at = {k: row for row, k in enumerate(of_shape)}
        robot, tree, place = self.robot, self.robot.tree, self.robot.embedding.v_place
        instances = [self.instances[k] for k in clusters]
        window: dict[str, Any] = {}
        for name in instances[0].numbers:
            window[name] = constants(np.stack([instance.numbers[name] for instance in instances]) + 0.0)
        window["gravity"] = constants(np.stack([robot.gravity for _ in instances]))
        window |= {name: total.at([0] * len(instances), total.size) for name, total in self._totals.items()}
        if self.gap is not None:
            window["gap"] = self.gap.at([0] * len(instances))
        for i, kind in enumerate(shape.kinds):
            links = [instance.links[i] for instance in instances]
            if shape.stored[i] and "q" in self.vectors:
                window[f"q{i}"] = self.vectors["q"].at(self._q_place[tree.q_start[links]], kind.nq)
            for name, buffer in self.vectors.items():
                if shape.free[i] and name != "q" and buffer.size == robot.nv:
                    starts = place[tree.v_start[links] + shape.free[i][0]]
                    window[f"{name}{i}"] = buffer.at(starts, len(shape.free[i]))
            if shape.carries[i] or self._everybody:
                window |= _prefixed(f"b{i}_", self._bodies[[self._row[link] for link in links]])
            if shape.carries[i] and self._left is not None:
                window |= _prefixed(f"b{i}_", self._left[[self._slot[link] for link in links]])
            if shape.carries[i] and self._after is not None:
                window |= _prefixed(f"b{i}_", self._after[[self._row[link] for link in links]])
        for j, grounded in enumerate(shape.grounded):
            above = [instance.outputs[j] for instance in instances]
            if not grounded:
                window |= _prefixed(f"o{j}_", self._bodies[[self._row[link] for link in above]])
            if not grounded and self._left is not None:
                window |= _prefixed(f"o{j}_", self._left[[self._slot[link] for link in above]])
            if not grounded and self._after is not None:
                window |= _prefixed(f"o{j}_", self._after[[self._row[link] for link in above]])
        if self._pairs is not None:
            for a, b in shape.couples:
                own = self._pairs[[self._pair[x.links[a], x.links[b]] for x in instances]]
                window |= _prefixed(f"p{a}_{b}_", own)
            for a, b in combinations(range(len(shape.grounded)), 2):
                outside = self._pairs[[self._pair[x.outputs[a], x.outputs[b]] for x in instances]]
                window |= _prefixed(f"q{a}_{b}_", outside)
        records = self._clusters[number]
        if records is not None:
            for name, slot in records[[at[k] for k in clusters]].fields.items():
                window[name if name.startswith("kept") else f"c_{name}"] = slot
        return fields(**window, **self.extra(shape, instances, clusters))


def _slots(robot: Robot) -> dict[int, int]:
    """Where each body finds what clusters leave for it: places are used again once a body's own cluster has passed."""
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


def _no_gap(here: View) -> None:
    here.gap = np.array(0.0)


def _clear(here: View) -> None:
    here.x = np.zeros(np.shape(here.x))


def _judge(here: View) -> None:
    here.x = np.where(here.gap < _OPEN, here.x, np.nan)


def _size_of_kept(shape: Shape, i: int) -> int:
    kind = shape.kinds[i]
    return len(kind.keep(kind.neutral()))


def _prefixed(prefix: str, window: Window) -> dict[str, Any]:
    return {prefix + name: slot for name, slot in window.fields.items()}
