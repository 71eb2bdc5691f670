"""The paths of frames to the ground, and passes along them, cluster by cluster, for one frame after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from operator import add
from typing import Any

import numpy as np

from coupler.graph import Buffer, View, constants, fields
from coupler.grouping import grouped
from coupler.passes.cluster import Visit
from coupler.passes.records import ClusterRecord, Record, provided
from coupler.passes.schedule import Place
from coupler.passes.shape import ClusterShape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows
from coupler.spatial import Transform


class PathBody(Record):
    """What a body on the path of a frame remembers for that frame."""

    chiT = provided()  # χᵀ, 6 × 6: the force on it per unit force at the frame
    Omega = provided()  # Ω, 6 × 6: its acceleration per unit force at the frame


class PathCluster(ClusterRecord):
    y = provided()  # freedoms × 6: accelerations of its joints per unit force, with the output bodies at rest


@dataclass(frozen=True)
class _Step:
    """A step of a frame's path: the crossing of one cluster.

    Attributes:
        frame: the number of the frame.
        cluster: the number of the cluster.
        active: the numbers of the cluster's bodies that feel forces at the frame.
    """

    frame: int
    cluster: int
    active: tuple[int, ...]


class Paths:
    """The paths of frames to the ground.

    In the passes, bodies that feel forces at the step's frame have χᵀ in their memory, bodies that feel forces at any
    frame have Ω, and clusters have y; see `PathBody` and `PathCluster`.

    Attributes:
        frames: for each frame the number of its link, and the transform from the link's frame to the frame.
        steps: the steps of all paths, frame by frame, each from the frame to the ground.
        felt: for each cluster on a path the bodies that feel forces at any frame.
    """

    def __init__(self, sweep: Sweep[Any, Any], frames: Sequence[tuple[int, Transform]]) -> None:
        self.sweep, self.frames, builder = sweep, frames, sweep.builder
        self.steps = [step for e, (link, _) in enumerate(frames) for step in self._path(e, link)]
        self.felt: dict[int, tuple[int, ...]] = {}
        for step in self.steps:
            self.felt[step.cluster] = tuple(sorted({*self.felt.get(step.cluster, ()), *step.active}))
        self._chiT, self._Omega, self._y = (sweep.store(name) for name in ("chiT", "Omega", "y"))
        for step in self.steps:
            for i in step.active:
                self._chiT.add((step.frame, step.cluster, i), (6, 6))
            for i in self.felt[step.cluster]:
                self._Omega.add((step.frame, step.cluster, i), (6, 6))
            shape = sweep.shapes[sweep.shape_of[step.cluster]][0]
            self._y.add((step.frame, step.cluster), (shape.freedoms, 6))
        links = [(e, *sweep.number_in_cluster(link)) for e, (link, _) in enumerate(frames)]
        first = [(e, k, i) for e, k, i in links if k]
        if first:
            start = fields(chiT=self._chiT.at(first), X=constants([frames[e][1].matrix() for e, _, _ in first]))
            builder.loop(_begin, frame=start)

    def _path(self, frame: int, link: int) -> list[_Step]:
        clusters, steps = self.sweep.robot.cluster_tree.clusters, []
        k, body = self.sweep.number_in_cluster(link)
        active = (body,)
        while k:
            steps.append(_Step(frame, k, active))
            outputs = sorted(set(clusters[k].outputs))
            k = clusters[k].parent
            active = tuple(clusters[k].bodies.index(output) for output in outputs)
        return steps

    def start(self, frame: int) -> Place:
        """The place of χᵀ of the link that carries a frame."""
        return self._chiT.place((frame, *self.sweep.number_in_cluster(self.frames[frame][0])))

    def clusters(self, frame: int) -> list[int]:
        """The clusters on the path of a frame."""
        return [step.cluster for step in self.steps if step.frame == frame]

    def answer(self, frame: int, cluster: int) -> Place:
        """The place of y of a cluster for a frame."""
        return self._y.place((frame, cluster))

    def inward(self, function: Callable[..., None]) -> None:
        """Runs a pass over all steps, from frames to the ground."""
        self._run(function, self.steps)

    def outward(self, function: Callable[..., None]) -> None:
        """Runs a pass over all steps, from the ground to frames."""
        self._run(function, self.steps[::-1])

    def _run(self, function: Callable[..., None], steps: Sequence[_Step]) -> None:
        def visited(cluster: Visit[Any, Any], active: Sequence[int], felt: Sequence[int]) -> None:
            function(cluster, [cluster.bodies[i] for i in active], [cluster.bodies[i] for i in felt])

        visited.__name__ = function.__name__
        schedule = self.sweep.schedule()
        for step in steps:
            key = step.active, self.felt[step.cluster]
            self.sweep.visit(schedule, visited, step.cluster, *key, key=key, row=step, provide=self._provide)
        schedule.run()

    def _provide(self, windows: ClusterWindows, shape: ClusterShape, steps: Sequence[_Step]) -> None:
        for i in steps[0].active:
            windows.bodies[i]["chiT"] = self._chiT.at([(step.frame, step.cluster, i) for step in steps])
        for i in self.felt[steps[0].cluster]:
            windows.bodies[i]["Omega"] = self._Omega.at([(step.frame, step.cluster, i) for step in steps])
        windows.cluster["y"] = self._y.at([(step.frame, step.cluster) for step in steps])
        for j, grounded in enumerate(shape.grounded):
            if not grounded:
                outputs = [self.sweep.instances[step.cluster].outputs[j] for step in steps]
                output_keys = [(s.frame, *self.sweep.number_in_cluster(x)) for s, x in zip(steps, outputs, strict=True)]
                windows.outputs[j] |= {"chiT": self._chiT.at(output_keys), "Omega": self._Omega.at(output_keys)}

    def multiply_pairs(self, output: Buffer) -> None:
        """Writes Ω_ee′ = χ_e Ω_e′ of every two frames, at the nearest cluster that carries both. [001, §VIII-D]

        Args:
            output: Ω of all frames, a symmetric matrix with 6 rows for each.
        """
        step_at = {e: {s.cluster: s for s in self.steps if s.frame == e} for e in range(len(self.frames))}
        size, builder = 6 * len(self.frames), self.sweep.builder
        couples: list[tuple[int, int, int | None, tuple[int, ...]]] = []
        for one, other in combinations_with_replacement(range(len(self.frames)), 2):
            common = max((k for k in step_at[one] if k in step_at[other]), default=None)
            couples.append((one, other, common, step_at[other][common].active if common is not None else ()))
        for (count, same), pairs in grouped(couples, lambda pair: (len(pair[3]), pair[0] == pair[1])).items():
            chiT = [self._chiT.at([(other, k, active[i]) for _, other, k, active in pairs]) for i in range(count)]
            Omega = [self._Omega.at([(one, k, active[i]) for one, _, k, active in pairs]) for i in range(count)]
            common = [fields(chiT=chiT[i], Omega=Omega[i]) for i in range(count)]
            lower = [fields(x=output.at([(6 * b + row) * size + 6 * a for a, b, *_ in pairs], 6)) for row in range(6)]
            upper = [fields(x=output.at([(6 * a + row) * size + 6 * b for a, b, *_ in pairs], 6)) for row in range(6)]
            builder.loop(_product, common=common, lower=lower, upper=[] if same else upper)


def _begin(frame: View) -> None:
    frame.chiT = frame.X.T


def _product(common: list[View], lower: list[View], upper: list[View]) -> None:
    """Stores Σ χ Ω, by rows, and its transpose; a block on the diagonal is symmetric and is written once."""
    total: Any = reduce(add, (body.chiT.T @ body.Omega for body in common), np.zeros((6, 6)))
    for row, target in enumerate(lower):
        target.x = total[row] if upper else np.array([total[min(row, j), max(row, j)] for j in range(6)])
    for row, target in enumerate(upper):
        target.x = total[:, row]
