"""From every cluster to the ground: what couples a cluster with those that carry it, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.graph import View, fields
from coupler.model import Robot
from coupler.passes.records import ClusterRecord, Record, provided
from coupler.passes.shape import Shape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows

__all__ = ["Climb", "ClimbingBody", "ClimbingCluster", "velocities_of"]


class ClimbingBody(Record):
    """What a body remembers: its subspace, and the momenta of a cluster that it carries as an output body."""

    S = provided()  # 6 × freedoms of its own cluster
    F = provided()  # 6 × freedoms of the cluster that it carries


class ClimbingCluster(ClusterRecord):
    H = provided()  # its own block of the matrix


class Climb:
    """Rows and columns of a symmetric matrix over independent velocities, as far as it is not zero by structure.

    In passes, memory has the fields of `ClimbingCluster` and `ClimbingBody`.

    Attributes:
        entries: rows and columns of the result's elements.
    """

    def __init__(self, sweep: Sweep[Any, Any]) -> None:
        self.sweep, robot = sweep, sweep.robot
        tree, clusters, builder = robot.tree, robot.cluster_tree.clusters, sweep.builder
        self.columns = [velocities_of(robot, k) for k in range(len(clusters))]
        self.cluster_of = robot.cluster_tree.cluster_of
        sizes = [len(columns) for columns in self.columns]
        self.S, at = {}, 0
        for link in sweep.links:
            self.S[link], at = at, at + 6 * sizes[self.cluster_of[link]]
        self.motions = builder.scratch("S", max(at, 1))
        self.F, at = {}, 0
        for k, cluster in enumerate(clusters[1:], 1):
            for output in sorted(set(cluster.outputs)):
                self.F[k, output], at = at, at + 6 * sizes[k]
        self.momenta = builder.scratch("F", max(at, 1))
        self.steps = [step for k in range(1, len(clusters)) for step in self._steps(k)]
        none = np.zeros(0, int)
        self.H, at, rows, columns = {}, 0, [none], [none]
        for j, k in [(k, k) for k in range(1, len(clusters))] + [(j, k) for j, k, *_ in self.steps]:
            if (j, k) not in self.H:
                self.H[j, k], at = at, at + sizes[j] * sizes[k]
                rows.append(np.repeat(self.columns[j], sizes[k]))
                columns.append(np.tile(self.columns[k], sizes[j]))
        self.matrix = sweep.result("H", at)
        self.entries = np.concatenate(rows), np.concatenate(columns)
        self.tree = tree
        sweep.provide = self._provide

    def _steps(self, k: int) -> list[tuple[int, int, int, int, bool]]:
        """The way of a cluster to the ground: carrying cluster, cluster, its body, place of F, and what is merged."""
        clusters, steps = self.sweep.robot.cluster_tree.clusters, []
        active = {output: self.F[k, output] for output in sorted(set(clusters[k].outputs)) if output}
        while active:
            above: dict[int, int] = {}
            for link, place in active.items():
                j = self.cluster_of[link]
                output = clusters[j].outputs[clusters[j].bodies.index(link)]
                steps.append((j, k, link, place, above.get(output, -1)))
                above.setdefault(output, place)
            active = {output: place for output, place in above.items() if output}
        return steps

    def _provide(self, windows: ClusterWindows, shape: Shape, clusters: Sequence[int]) -> None:
        n, instances = shape.freedoms, [self.sweep.instances[k] for k in clusters]
        windows.cluster["H"] = self.matrix.at([self.H[k, k] for k in clusters], (n, n))
        for i, carries in enumerate(shape.carries):
            if carries:
                windows.bodies[i]["S"] = self.motions.at([self.S[x.links[i]] for x in instances], (6, n))
        for j, grounded in enumerate(shape.grounded):
            if not grounded:
                places = [self.F[k, x.outputs[j]] for k, x in zip(clusters, instances, strict=True)]
                windows.outputs[j]["F"] = self.momenta.at(places, (6, n))

    def run(self, kernel: Callable[..., Any]) -> None:
        """Runs a kernel over all pairs of clusters, each on its way to the ground.

        Args:
            kernel: a function of the body in the carrying cluster and the momenta of the carried one. It moves these on
                and gives what is added to the block of H.
        """
        seen: set[tuple[int, int]] = set()
        schedule = self.sweep.schedule()
        for step in self.steps:
            j, k, _, _, merged = step
            key = len(self.columns[j]), len(self.columns[k]), (j, k) in seen, merged >= 0
            seen.add((j, k))
            schedule.add(key, step, lambda steps, key=key: self._loop(kernel, key, steps))
        schedule.run()

    def _loop(self, kernel: Callable[..., Any], key: tuple[int, int, bool, bool], steps: Sequence[Any]) -> Any:
        rows, columns, again, merges = key
        body = self.sweep.bodies([step[2] for step in steps])
        body |= fields(S=self.motions.at([self.S[step[2]] for step in steps], (6, rows)))
        F = self.momenta.at([step[3] for step in steps], (6, columns))
        H = self.matrix.at([self.H[step[0], step[1]] for step in steps], (rows, columns))
        windows: dict[str, Any] = {"body": body, "momentum": fields(F=F), "block": fields(H=H)}
        if merges:
            windows["merged"] = fields(F=self.momenta.at([step[4] for step in steps], (6, columns)))
        return _step(kernel, again, merges, rows, columns), windows


def velocities_of(robot: Robot, cluster: int) -> np.ndarray:
    """Where a cluster's independent velocities are in v, in the order of its links."""
    links = robot.cluster_tree.clusters[cluster].bodies
    places = robot.embedding.v_place[robot.tree.velocities_of(links)]
    return places[places >= 0]


def _step(kernel: Callable[..., Any], again: bool, merges: bool, rows: int, columns: int) -> Callable[..., None]:
    def climb(body: View, momentum: View, block: View) -> None:
        block.H = kernel(body, momentum) + (block.H if again else np.zeros((rows, columns)))

    def merge(body: View, momentum: View, block: View, merged: View) -> None:
        climb(body, momentum, block)
        merged.F += momentum.F

    return merge if merges else climb
