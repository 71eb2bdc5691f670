"""From every cluster to the ground: what couples a cluster with those that carry it, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
        matrix: the result, of whose elements only those that are not zero by structure are stored.
        entries: rows and columns of those.
    """

    def __init__(self, sweep: Sweep[Any, Any]) -> None:
        self.sweep, robot = sweep, sweep.robot
        clusters = robot.cluster_tree.clusters
        self.columns = [velocities_of(robot, k) for k in range(len(clusters))]
        self.cluster_of = robot.cluster_tree.cluster_of
        sizes = [len(columns) for columns in self.columns]
        self._S, self._F, self._H = sweep.store("S"), sweep.store("F"), sweep.result_store("H")
        for link in sweep.links:
            self._S.add(link, (6, sizes[self.cluster_of[link]]))
        for k, cluster in enumerate(clusters[1:], 1):
            for output in sorted(set(cluster.outputs)):
                self._F.add((k, output), (6, sizes[k]))
        self.steps = [step for k in range(1, len(clusters)) for step in self._steps(k)]
        none = np.zeros(0, int)
        rows, columns = [none], [none]
        pairs = [(k, k) for k in range(1, len(clusters))] + [(j, k) for j, k, *_ in self.steps]
        for j, k in dict.fromkeys(pairs):
            self._H.add((j, k), (sizes[j], sizes[k]))
            rows.append(np.repeat(self.columns[j], sizes[k]))
            columns.append(np.tile(self.columns[k], sizes[j]))
        self.entries = np.concatenate(rows), np.concatenate(columns)
        self.matrix = self._H.buffer
        sweep.provide = self._provide

    def _steps(self, k: int) -> list[tuple[int, int, int, Hashable, Hashable]]:
        """The way of a cluster to the ground: carrying cluster, cluster, its body, F, and the F that it is added to."""
        clusters, steps = self.sweep.robot.cluster_tree.clusters, []
        active: dict[int, Hashable] = {output: (k, output) for output in sorted(set(clusters[k].outputs)) if output}
        while active:
            above: dict[int, Hashable] = {}
            for link, momenta in active.items():
                j = self.cluster_of[link]
                output = clusters[j].outputs[clusters[j].bodies.index(link)]
                steps.append((j, k, link, momenta, above.get(output)))
                above.setdefault(output, momenta)
            active = {output: momenta for output, momenta in above.items() if output}
        return steps

    def _provide(self, windows: ClusterWindows, shape: Shape, clusters: Sequence[int]) -> None:
        instances = [self.sweep.instances[k] for k in clusters]
        windows.cluster["H"] = self._H.at([(k, k) for k in clusters])
        for i, carries in enumerate(shape.carries):
            if carries:
                windows.bodies[i]["S"] = self._S.at([x.links[i] for x in instances])
        for j, grounded in enumerate(shape.grounded):
            if not grounded:
                outputs = [x.outputs[j] for x in instances]
                windows.outputs[j]["F"] = self._F.at(list(zip(clusters, outputs, strict=True)))

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
            key = len(self.columns[j]), len(self.columns[k]), (j, k) in seen, merged is not None
            seen.add((j, k))
            schedule.add(key, step, lambda steps, key=key: self._loop(kernel, *key[2:], steps))
        schedule.run()

    def _loop(self, kernel: Callable[..., Any], again: bool, merges: bool, steps: Sequence[Any]) -> Any:
        j, k, links, momenta, merged = map(list, zip(*steps, strict=True))
        body, block = self.sweep.bodies(links) | fields(S=self._S.at(links)), self._H.at(list(zip(j, k, strict=True)))
        sums = [fields(F=self._F.at(merged))] if merges else []

        def climb(body: View, momentum: View, block: View, sums: list[View]) -> None:
            block.H = kernel(body, momentum) + (block.H if again else np.zeros(block.H.shape))
            for total in sums:
                total.F += momentum.F

        return climb, {"body": body, "momentum": fields(F=self._F.at(momenta)), "block": fields(H=block), "sums": sums}


def velocities_of(robot: Robot, cluster: int) -> np.ndarray:
    """Where a cluster's independent velocities are in v, in the order of its links."""
    links = robot.cluster_tree.clusters[cluster].bodies
    places = robot.embedding.v_place[robot.tree.velocities_of(links)]
    return places[places >= 0]
