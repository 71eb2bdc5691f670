"""Columns of unit forces that climb from contacts and joints to the ground, cluster by cluster.

Every cluster on the way to the ground feels a unit force at a contact, or at a joint, as forces P on bodies and
z = Sᵀ P at joints. With y = D⁻¹ z, two groups of columns interact through A = Σ zᵀ y over the clusters that both pass:
these are the blocks of J H⁻¹ Jᵀ = Z D⁻¹ Zᵀ [003, eq. 27], found without H and without a pass back outwards. A group may
start on several bodies, as a contact between two of them does. Of a cluster with many freedoms, columns see less: see
gates.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coupler.contact.rows import Indices
from coupler.contact.step.gates import GatedCluster, Gates
from coupler.graph import Buffer, Slot, Window, constants, fields
from coupler.passes import ClusterShape, ClusterWindows, Record, Store, Sweep, Visit, provided

_NODE = 6  # freedoms of a node at most, unless a single cluster has more: as many as a floating body has


class ColumnBody(Record):
    P = provided()  # 6 × width: forces on a body


class ColumnCluster(GatedCluster):
    z, y = provided(), provided()  # freedoms × width: forces at joints, and D⁻¹ of them
    gears = provided()  # one for each velocity that columns push, where they start at several joints
    factor = provided()  # on these gears, where they are measured


@dataclass(frozen=True)
class Start:
    """The start of a group of columns.

    Attributes:
        width: the number of columns of the group.
        links: the links on which the columns are forces; their values are written at `Columns.at_link`.
        joint: or else the link whose joint the columns push, and the entry of its velocity.
        geared: or else several such joints, each with a gear: the force there for a unit force of the column.
        measured: the number of an actuator and a factor on its gears, if these are measured; see `MeasuredGears`.
        soft: whether the columns also have a mobility of their own, in a node that no other group passes.
    """

    width: int
    links: tuple[int, ...] = ()
    joint: tuple[int, int] | None = None
    geared: tuple[tuple[int, int, float], ...] = ()
    measured: tuple[int, float] | None = None
    soft: bool = False


@dataclass(frozen=True)
class Passage:
    """How a group of columns passes a cluster; bodies are numbered within the cluster.

    Attributes:
        active: the bodies that feel the columns.
        begins: for each output body whether it feels them for the first time, so that there is nothing to add to.
        entry: the velocity of the cluster that the columns push, if they start at a joint of it.
        geared: the velocities that they push with gears.
        measured: whether these gears are measured, and have a factor.
        gates: the bodies that the cluster is seen through, if it has gates.
    """

    active: tuple[int, ...]
    begins: tuple[bool, ...]
    entry: int | None
    geared: tuple[int, ...] = ()
    measured: bool = False
    gates: tuple[int, ...] = ()


@dataclass(frozen=True)
class Node:
    """A chain of clusters that carry each other, whose parts of x are taken together; see `Columns`."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


class Columns:
    """The ways of groups of columns to the ground.

    Each cluster on a way has z and y in its memory, and each body that feels the columns has P. z and y of the clusters
    of a node lie below each other, so that blocks see whole nodes.

    Attributes:
        sweep: the program.
        starts: the start of each group.
        x: Σ y λ for each cluster: the change of its joint velocities by impulses, if everything that carries it stays
            at rest; or the impulses on its gates.
        gates: the gates of clusters that columns enter at few bodies.
        nodes: the parts of x.
    """

    def __init__(self, sweep: Sweep[Any, Any], starts: Sequence[Start]) -> None:
        self.sweep, self.starts = sweep, starts
        self._gears: dict[tuple[int, int], list[float]] = {}  # by group and cluster
        ways = [self._way(start, group) for group, start in enumerate(starts)]
        self.gates = Gates(sweep, ways)
        self._ways = [{k: replace(passage, gates=self.gates.of(k)) for k, passage in way.items()} for way in ways]
        self.nodes, self._place, self._node_of = self._numbered()
        self._soft = {group: len(self.nodes) + i for i, group in enumerate(g for g, x in enumerate(starts) if x.soft)}
        self.nodes += [Node(self.nodes[-1].stop + i, self.nodes[-1].stop + i + 1) for i in range(len(self._soft))]
        self.x = sweep.builder.scratch("answers", self.nodes[-1].stop)
        self._parts = [self._parts_of(way) for way in self._ways]
        for group, node in self._soft.items():
            self._parts[group][node] = 1
        self._P, self._z, self._y = (sweep.store(f"column_{name}") for name in "Pzy")
        for group, (start, way) in enumerate(zip(starts, self._ways, strict=True)):
            for k, passage in way.items():
                for i in passage.active:
                    self._P.add((group, k, i), (6, start.width))
            for node, size in self._parts[group].items():
                for store in (self._z, self._y):
                    store.add((group, node), (size, start.width))

    def at_link(self, groups: Indices, links: Sequence[int]) -> Slot:
        """The places for the forces of groups on links that they start on."""
        keys = [(group, *self.sweep.number_in_cluster(link)) for group, link in zip(groups, links, strict=True)]
        return self._P.at(keys)

    def climb(self, function: Callable[[Visit[Any, Any], Passage], None], flags: Buffer) -> None:
        """Runs a pass over all clusters on the ways of some groups, towards the ground.

        Args:
            function: takes a cluster, and how columns pass it.
            flags: for each group whether it climbs; the flags have been listed.
        """

        def provide(windows: ClusterWindows, shape: ClusterShape, steps: list[tuple[int, int]]) -> None:
            self._provide(windows, steps)

        schedule = self.sweep.schedule()
        for group, way in enumerate(self._ways):
            for k, passage in way.items():
                self.sweep.visit(
                    schedule,
                    function,
                    k,
                    passage,
                    key=(passage, self.starts[group].width),
                    row=(group, k),
                    provide=provide,
                    among=lambda steps: flags.at([group for group, _ in steps]),
                )
        schedule.run()

    def parts_of_way(self, group: int) -> dict[int, int]:
        """The nodes on a group's way, and the number of freedoms of each that are on the way, from the first one on."""
        return self._parts[group]

    def way(self, groups: Sequence[int], nodes: Sequence[int]) -> Window:
        """z, y and the part of x for groups and one node each, all of the same shape."""
        steps = list(zip(groups, nodes, strict=True))
        x = self.x.at([self.nodes[node].start for node in nodes], self._parts[groups[0]][nodes[0]])
        return fields(z=self._z.at(steps), y=self._y.at(steps), x=x)

    def soft_nodes(self, groups: Sequence[int]) -> Window:
        """z and y of the nodes that belong to soft groups alone; zᵀ y is a group's own mobility."""
        return self.way(groups, [self._soft[group] for group in groups])

    def answers(self, clusters: Sequence[int]) -> Slot:
        """The parts of x of clusters of one shape."""
        return self.x.at([self._place[k] for k in clusters], self._size(clusters[0]))

    def _parts_of(self, way: Iterable[int]) -> dict[int, int]:
        parts: dict[int, int] = {}
        for k in sorted(way, reverse=True):
            parts[self._node_of[k]] = parts.get(self._node_of[k], 0) + self._size(k)
        return parts

    def _numbered(self) -> tuple[list[Node], dict[int, int], dict[int, int]]:
        """The nodes, the place of each cluster's part of x, and the number of each cluster's node.

        A cluster shares a node with its carrier if the carrier carries no other cluster on any way, and if the node
        stays small. A way that passes a cluster passes all its carriers: of a node, it passes the first clusters.
        """
        carried: dict[int, list[int]] = {}
        for k in sorted({k for way in self._ways for k in way}):
            for link in self.sweep.instances[k].outputs:
                carried.setdefault(self.sweep.number_in_cluster(link)[0] if link else 0, []).append(k)
        nodes, place, node_of, stop = list[Node](), dict[int, int](), dict[int, int](), 0
        for first in sorted(self.sweep.shape_of):
            if first in place:
                continue
            start, chain = stop, [first]
            while chain:
                k = chain.pop()
                place[k], node_of[k], stop = stop, len(nodes), stop + self._size(k)
                outer = carried.get(k, [])
                if len(outer) == 1 and len(self.sweep.instances[outer[0]].outputs) == 1:
                    chain = [*outer] if stop - start + self._size(outer[0]) <= _NODE else []
            nodes.append(Node(start, stop))
        return nodes, place, node_of

    def _size(self, cluster: int) -> int:
        """The number of entries of x that belong to a cluster."""
        return 6 * len(self.gates.of(cluster)) or self.sweep.shapes[self.sweep.shape_of[cluster]][0].freedoms

    def _way(self, start: Start, group: int) -> dict[int, Passage]:
        """The clusters on the way of a group, outermost first, and how the group passes each."""
        felt: dict[int, set[int]] = {}  # bodies of clusters that are still to be passed
        for link in start.links:
            k, i = self.sweep.number_in_cluster(link)
            felt.setdefault(k, set()).add(i)
        entry = None
        if start.joint is not None:
            entry = self._velocity_in_cluster(*start.joint)
            felt.setdefault(entry[0], set())
        geared: dict[int, list[int]] = {}
        for link, j, gear in start.geared:
            k, velocity = self._velocity_in_cluster(link, j)
            felt.setdefault(k, set())
            geared.setdefault(k, []).append(velocity)
            self._gears.setdefault((group, k), []).append(gear)
        way: dict[int, Passage] = {}
        while felt:
            k = max(felt)  # carriers have lower numbers
            active, begins = tuple(sorted(felt.pop(k))), []
            for output in self.sweep.instances[k].outputs:
                above, i = self.sweep.number_in_cluster(output) if output else (0, 0)
                begins.append(bool(above) and i not in felt.setdefault(above, set()))
                if above:
                    felt[above].add(i)
            pushed = entry[1] if entry is not None and entry[0] == k else None
            measured = start.measured is not None and k in geared
            way[k] = Passage(active, tuple(begins), pushed, tuple(geared.get(k, ())), measured)
        return way

    def _velocity_in_cluster(self, link: int, j: int) -> tuple[int, int]:
        """The cluster of a link, and the index of entry j of the link's joint velocity in the cluster's velocities."""
        k, i = self.sweep.number_in_cluster(link)
        return k, int(self.sweep.shapes[self.sweep.shape_of[k]][0].starts[i]) + j

    def _of_cluster(self, store: Store, steps: Sequence[tuple[int, int]]) -> Slot:
        """The rows of clusters within the rows of their nodes."""
        width, starts = self.starts[steps[0][0]].width, []
        for group, k in steps:
            node = self._node_of[k]
            starts.append(store.starts[group, node] + width * (self._place[k] - self.nodes[node].start))
        return store.buffer.at(starts, (self._size(steps[0][1]), width))

    def _provide(self, windows: ClusterWindows, steps: Sequence[tuple[int, int]]) -> None:
        group, k = steps[0]
        for i in self._ways[group][k].active:
            windows.bodies[i]["P"] = self._P.at([(group, k, i) for group, k in steps])
        windows.cluster |= {"z": self._of_cluster(self._z, steps), "y": self._of_cluster(self._y, steps)}
        if self._ways[group][k].measured and self.sweep.gears:
            measured = [(start, k) for group, k in steps if (start := self.starts[group].measured)]
            windows.cluster["gears"] = self.sweep.gears.of_clusters([(number, k) for (number, _), k in measured])
            windows.cluster["factor"] = constants([factor for (_, factor), _ in measured])
        elif self._ways[group][k].geared:
            windows.cluster["gears"] = constants(np.array([self._gears[step] for step in steps]))
        for j, output in enumerate(self.sweep.instances[k].outputs):
            if output:
                outputs = [self.sweep.instances[k].outputs[j] for _, k in steps]
                above = zip(steps, outputs, strict=True)
                keys = [(group, *self.sweep.number_in_cluster(link)) for (group, _), link in above]
                windows.outputs[j]["P"] = self._P.at(keys)
