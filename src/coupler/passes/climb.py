"""From every cluster to the ground: the blocks of a symmetric matrix for each cluster and those that carry it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.graph import View, fields
from coupler.model import Robot
from coupler.passes.records import ClusterRecord, Record, provided
from coupler.passes.shape import ClusterShape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows


class ClimbingBody(Record):
    """What a body remembers: its subspace, and as an output body the momenta of a cluster that it carries."""

    S = provided()  # 6 × freedoms of the body's cluster
    F = provided()  # 6 × freedoms of the carried cluster


class ClimbingCluster(ClusterRecord):
    H = provided()  # the cluster's diagonal block


@dataclass(frozen=True, eq=False)
class Steps:
    """The paths of all clusters to the ground, as arrays with one entry for each step.

    Attributes:
        carrier: the cluster that the step crosses.
        carried: the cluster whose path it is.
        link: the body of the carrier that the step crosses.
        momenta: the number of the F that the step takes on.
        sum: the number of the F that it is added to afterwards, or −1.
        pair: the number of (carrier, carried) among all pairs.
        again: whether an earlier step had the same pair.
    """

    carrier: np.ndarray
    carried: np.ndarray
    link: np.ndarray
    momenta: np.ndarray
    sum: np.ndarray
    pair: np.ndarray
    again: np.ndarray


class CoupledClusters:
    """The pairs of clusters coupled in a symmetric matrix over independent velocities: each with those that carry it.

    A chain of 1,500 links has a million such pairs, so they are arrays and not lists.

    Attributes:
        columns: for each cluster the entries of v that are its velocities.
        sizes: for each cluster the number of its velocities.
        momenta: for each F its cluster and the output body that it is seen from.
        steps: the paths of clusters to the ground.
        pairs: coupled clusters, each pair once, (..., 2); those of each cluster with itself come first.
    """

    def __init__(self, robot: Robot) -> None:
        self._clusters = clusters = robot.cluster_tree.clusters
        self.columns = [velocities_of(robot, k) for k in range(len(clusters))]
        self.sizes = np.array([len(columns) for columns in self.columns])
        self._output = {link: output for c in clusters for link, output in zip(c.bodies, c.outputs, strict=True)}
        self.momenta = [(k, output) for k in range(1, len(clusters)) for output in sorted(set(clusters[k].outputs))]
        self._number = {key: i for i, key in enumerate(self.momenta)}
        self._to_ground: dict[int, np.ndarray] = {0: np.empty(0, int)}
        paths = [self._path(k) for k in range(1, len(clusters))]
        link, momenta, total = (np.concatenate([path[i] for path in paths] or [np.empty(0, int)]) for i in range(3))
        cluster_of = robot.cluster_tree.cluster_of
        carrier = np.array([cluster_of.get(i, 0) for i in range(len(robot.tree.links))])[link]
        carried = np.repeat(np.arange(1, len(paths) + 1), [len(path[0]) for path in paths])
        _, first, same = np.unique(carrier * len(clusters) + carried, return_index=True, return_inverse=True)
        order = np.argsort(first)
        pair = len(paths) + np.argsort(order)[same]
        again = first[same] != np.arange(len(same))
        self.steps = Steps(carrier, carried, link, momenta, total, pair, again)
        coupled = np.stack([carrier, carried], axis=1)[first[order]]
        self.pairs = np.concatenate([np.arange(1, len(clusters))[:, None].repeat(2, axis=1), coupled])

    @property
    def starts(self) -> np.ndarray:
        """Where the block of each pair starts in the matrix's elements, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.sizes[self.pairs].prod(axis=1))])

    @property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the elements of the matrix that are not zero by structure, pair by pair."""
        first, second = self.pairs.T
        sizes, starts = self.sizes, self.starts
        rows, columns = np.empty((2, starts[-1]), int)
        for m, n in {*zip(sizes[first].tolist(), sizes[second].tolist(), strict=True)}:
            pairs = np.flatnonzero((sizes[first] == m) & (sizes[second] == n))
            places = starts[pairs, None] + np.arange(m * n)
            rows[places] = np.repeat(self._columns_of(first[pairs], m), n, axis=1)
            columns[places] = np.tile(self._columns_of(second[pairs], n), m)
        return rows, columns

    def _columns_of(self, clusters: np.ndarray, size: int) -> np.ndarray:
        """The columns of clusters that have so many each."""
        distinct, number = np.unique(clusters, return_inverse=True)
        return np.array([self.columns[k] for k in distinct.tolist()], int).reshape(-1, size)[number]

    def _path(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The path of one cluster: bodies, the numbers of the F there, and of those that these are added to."""
        steps = list[tuple[int, int, int]]()
        active = {output: self._number[k, output] for output in sorted(set(self._clusters[k].outputs)) if output}
        while len(active) > 1:
            above: dict[int, int] = {}
            for link, momenta in active.items():
                output = self._output[link]
                steps.append((link, momenta, above.get(output, -1)))
                above.setdefault(output, momenta)
            active = {output: momenta for output, momenta in above.items() if output}
        several = np.array(steps, int).reshape(-1, 3)
        for link, momenta in active.items():  # at most one is left, as in most robots from the start: nothing to add up
            rest = self._links_to_ground(link)
            alone = np.stack([rest, np.full_like(rest, momenta), np.full_like(rest, -1)], axis=1)
            several = np.concatenate([several, alone])
        link, momenta, total = several.T
        return link, momenta, total

    def _links_to_ground(self, link: int) -> np.ndarray:
        """A body, its output body, and so on."""
        missing = list[int]()
        while link not in self._to_ground:
            missing.append(link)
            link = self._output[link]
        for body in reversed(missing):
            self._to_ground[body] = np.concatenate([[body], self._to_ground[self._output[body]]])
        return self._to_ground[missing[0] if missing else link]


class Climb:
    """Computes a symmetric matrix over independent velocities, block by block, without structural zeros.

    In passes, memory has the fields of `ClimbingCluster` and `ClimbingBody`.

    Attributes:
        matrix: the output with the elements that are not zero by structure; see `CoupledClusters`.
    """

    def __init__(self, sweep: Sweep[Any, Any]) -> None:
        self.sweep, self._coupled = sweep, CoupledClusters(sweep.robot)
        sizes, cluster_of = self._coupled.sizes, sweep.robot.cluster_tree.cluster_of
        self._S, self._F = sweep.store("S"), sweep.store("F")
        for link in sweep.links:
            self._S.add(link, (6, int(sizes[cluster_of[link]])))
        for k, output in self._coupled.momenta:
            self._F.add((k, output), (6, int(sizes[k])))
        self._blocks = self._coupled.starts
        self.matrix = sweep.result("H", int(self._blocks[-1]))
        sweep.provide = self._provide

    def _provide(self, windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        instances = [self.sweep.instances[k] for k in clusters]
        size = shape.freedoms
        windows.cluster["H"] = self.matrix.at(self._blocks[np.array(clusters) - 1], (size, size))
        for i, carries in enumerate(shape.carries):
            if carries:
                windows.bodies[i]["S"] = self._S.at([x.links[i] for x in instances])
        for j, grounded in enumerate(shape.grounded):
            if not grounded:
                outputs = [x.outputs[j] for x in instances]
                windows.outputs[j]["F"] = self._F.at(list(zip(clusters, outputs, strict=True)))

    def run(self, kernel: Callable[..., Any]) -> None:
        """Runs a kernel over all steps, in the order in which clusters' paths lead to the ground.

        Args:
            kernel: a function of a body of the carrying cluster and of the momenta of the carried one. It takes these
                one step on, and returns what is added to the block of H.
        """
        steps, sizes = self._coupled.steps, self._coupled.sizes
        traits = (sizes[steps.carrier], sizes[steps.carried], steps.again, steps.sum >= 0)
        code = np.ravel_multi_index(traits, (sizes.max() + 1,) * 2 + (2, 2))  # one number, as np.unique is slow on rows
        _, first, order = np.unique(code, return_index=True, return_inverse=True)
        if not len(order):
            return
        with self.sweep.builder.interleave(order):
            for i, step in enumerate(first.tolist()):
                rows, columns, again, merges = (int(trait[step]) for trait in traits)
                self._loop(kernel, np.flatnonzero(order == i), (rows, columns), bool(again), bool(merges))

    def _loop(
        self, kernel: Callable[..., Any], chosen: np.ndarray, shape: tuple[int, int], again: bool, merges: bool
    ) -> None:
        """Writes the loop over some steps, by their numbers, between clusters with the freedoms of `shape`."""
        steps, momenta = self._coupled.steps, np.array([self._F.starts[key] for key in self._coupled.momenta])
        places = np.zeros(max(self.sweep.links, default=0) + 1, int)
        places[self.sweep.links] = [self._S.starts[link] for link in self.sweep.links]
        links, F = steps.link[chosen], (6, shape[1])
        body = self.sweep.bodies(links) | fields(S=self._S.buffer.at(places[links], (6, shape[0])))
        momentum = fields(F=self._F.buffer.at(momenta[steps.momenta[chosen]], F))
        block = fields(H=self.matrix.at(self._blocks[steps.pair[chosen]], shape))
        sums = [fields(F=self._F.buffer.at(momenta[steps.sum[chosen]], F))] if merges else []

        def climb(body: View, momentum: View, block: View, sums: list[View]) -> None:
            block.H = kernel(body, momentum) + (block.H if again else np.zeros(block.H.shape))
            for total in sums:
                total.F += momentum.F

        self.sweep.builder.loop(climb, body=body, momentum=momentum, block=block, sums=sums)


def velocities_of(robot: Robot, cluster: int) -> np.ndarray:
    """The entries of v that are a cluster's independent velocities, in the order of its links."""
    links = robot.cluster_tree.clusters[cluster].bodies
    places = robot.embedding.v_place[robot.tree.velocities_of(links)]
    return places[places >= 0]
