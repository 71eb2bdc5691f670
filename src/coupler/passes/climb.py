"""From every cluster to the ground: what couples a cluster with those that carry it, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from coupler.graph import View, fields
from coupler.model import Robot
from coupler.passes.records import ClusterRecord, Record, provided
from coupler.passes.shape import Shape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows

__all__ = ["Climb", "ClimbingBody", "ClimbingCluster", "CoupledClusters", "velocities_of"]


class ClimbingBody(Record):
    """What a body remembers: its subspace, and the momenta of a cluster that it carries as an output body."""

    S = provided()  # 6 × freedoms of its own cluster
    F = provided()  # 6 × freedoms of the cluster that it carries


class ClimbingCluster(ClusterRecord):
    H = provided()  # its own block of the matrix


class CoupledClusters:
    """Which clusters are coupled in a symmetric matrix over independent velocities: each with those that carry it.

    Attributes:
        columns: for each cluster where its velocities are in v.
        cluster_of: the cluster of each link.
        steps: ways of clusters to the ground: carrying cluster, cluster, its body, F, and the F that it is added to.
        pairs: clusters that are coupled, each pair once.
    """

    def __init__(self, robot: Robot) -> None:
        self._clusters = clusters = robot.cluster_tree.clusters
        self.columns = [velocities_of(robot, k) for k in range(len(clusters))]
        self.cluster_of = robot.cluster_tree.cluster_of
        self._output = {link: out for own in clusters for link, out in zip(own.bodies, own.outputs, strict=True)}
        self.steps = [step for k in range(1, len(clusters)) for step in self._steps(k)]
        alone = ((k, k) for k in range(1, len(clusters)))
        self.pairs = list(dict.fromkeys(chain(alone, ((step[0], step[1]) for step in self.steps))))

    @property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the elements of the matrix that are not zero by structure, pair by pair."""
        first, second = np.array(self.pairs, int).reshape(-1, 2).T
        sizes = np.array([len(columns) for columns in self.columns])
        starts = np.concatenate([[0], np.cumsum(sizes[first] * sizes[second])])
        rows, columns = np.empty((2, starts[-1]), int)
        for m, n in {*zip(sizes[first].tolist(), sizes[second].tolist(), strict=True)}:
            own = np.flatnonzero((sizes[first] == m) & (sizes[second] == n))
            places = starts[own, None] + np.arange(m * n)
            rows[places] = np.repeat([self.columns[j] for j in first[own]], n, axis=1)
            columns[places] = np.tile([self.columns[k] for k in second[own]], m)
        return rows, columns

    def _steps(self, k: int) -> list[tuple[int, int, int, Hashable, Hashable]]:
        """The way of one cluster."""
        steps = list[tuple[int, int, int, Hashable, Hashable]]()
        active: dict[int, Hashable] = {
            output: (k, output) for output in sorted(set(self._clusters[k].outputs)) if output
        }
        while len(active) > 1:
            above: dict[int, Hashable] = {}
            for link, momenta in active.items():
                output = self._output[link]
                steps.append((self.cluster_of[link], k, link, momenta, above.get(output)))
                above.setdefault(output, momenta)
            active = {output: momenta for output, momenta in above.items() if output}
        for link, momenta in active.items():  # one, the rule: there is nothing to add up
            while link:
                steps.append((self.cluster_of[link], k, link, momenta, None))
                link = self._output[link]
        return steps


class Climb:
    """Rows and columns of a symmetric matrix over independent velocities, as far as it is not zero by structure.

    In passes, memory has the fields of `ClimbingCluster` and `ClimbingBody`.

    Attributes:
        matrix: the result, of which those elements are stored that are not zero by structure; see `CoupledClusters`.
    """

    def __init__(self, sweep: Sweep[Any, Any]) -> None:
        self.sweep, self._coupled = sweep, CoupledClusters(sweep.robot)
        sizes = [len(columns) for columns in self._coupled.columns]
        self._S, self._F, self._H = sweep.store("S"), sweep.store("F"), sweep.result_store("H")
        for link in sweep.links:
            self._S.add(link, (6, sizes[self._coupled.cluster_of[link]]))
        for k, cluster in enumerate(sweep.robot.cluster_tree.clusters[1:], 1):
            for output in sorted(set(cluster.outputs)):
                self._F.add((k, output), (6, sizes[k]))
        for j, k in self._coupled.pairs:
            self._H.add((j, k), (sizes[j], sizes[k]))
        self.matrix = self._H.buffer
        sweep.provide = self._provide

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
        seen, sizes = set[tuple[int, int]](), [len(columns) for columns in self._coupled.columns]
        schedule = self.sweep.schedule()
        for step in self._coupled.steps:
            j, k, _, _, merged = step
            key = sizes[j], sizes[k], (j, k) in seen, merged is not None
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
