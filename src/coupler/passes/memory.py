"""Where a program stores the records of bodies, pairs of bodies and clusters between passes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from coupler.graph import Builder, Field, Records, Window
from coupler.model import Robot
from coupler.passes.cluster_store import BodyPair
from coupler.passes.context import Context
from coupler.passes.records import numbered
from coupler.passes.schedule import Place
from coupler.passes.shape import Clusters, ClusterShape
from coupler.passes.windows import ClusterWindows


class Memory:
    """The memory of a program for the records that it declares.

    Attributes:
        links: the links that have memory.
    """

    def __init__(self, builder: Builder, robot: Robot, clusters: Clusters, program: Context) -> None:
        self._builder, self._clusters, self._program = builder, clusters, program
        self.links = [i for i in range(1, len(robot.tree.links)) if program.leaf_bodies or robot.tree.children[i]]
        self._row = {link: i for i, link in enumerate(self.links)}
        world = {"E": (3, 3), "r": 3, "load": 6} if program.loaded else {}
        self._bodies = builder.records("body", max(len(self.links), 1), **(program.body.layout("kept") | world))
        self._slot = _collecting_slots(robot)
        self._collected, self._afterwards = self._shared_records()
        pairs = [pair for pairs in clusters.couples for pair in pairs]
        self._pair = {both: i for i, both in enumerate(pairs)}
        layout = BodyPair.layout("kept")
        self._pairs = builder.records("pair", len(pairs), **layout) if pairs and program.paired else None
        self._of_shape = [self._cluster_records(i) for i in range(len(clusters.shapes))]

    def bodies(self, links: Sequence[int] | np.ndarray) -> Window:
        """The memory of some links, without collected fields."""
        rows = np.zeros(max(self.links, default=0) + 1, int)
        rows[self.links] = np.arange(len(self.links))
        return self._bodies[rows[links]]

    def place(self, link: int, name: str) -> Place:
        """The place of one field of a link's memory, which is not a collected one."""
        slot = self.bodies([link]).fields[name]
        return Place(self._bodies.buffer, int(slot.bases[0]) + slot.offset, slot.field)  # type: ignore[union-attr]

    def of_links(self, links: Sequence[int], carries: bool) -> dict[str, Any]:
        """The fields of bodies, one of each cluster of a shape. The ground has none."""
        fields: dict[str, Any] = {}
        if not links[0]:
            return fields
        if carries or self._program.leaf_bodies:
            fields |= self._bodies[[self._row[link] for link in links]].fields
        if carries and self._collected is not None:
            fields |= self._collected[[self._slot[link] for link in links]].fields
        if carries and self._afterwards is not None:
            fields |= self._afterwards[[self._row[link] for link in links]].fields
        return fields

    def add_clusters(self, windows: ClusterWindows, number: int, clusters: Sequence[int]) -> None:
        """Adds the fields of some clusters of a shape, and of pairs of their bodies and output bodies."""
        shape, members = self._clusters.shapes[number]
        if self._pairs is not None:
            instances = [self._clusters.instances[k] for k in clusters]
            inside = [[(x.links[a], x.links[b]) for x in instances] for a, b in shape.couples]
            couples = combinations(range(len(shape.grounded)), 2)
            outside = [[(x.outputs[a], x.outputs[b]) for x in instances] for a, b in couples]
            windows.pairs, windows.output_pairs = (
                [dict(self._pairs[[self._pair[pair] for pair in pairs]].fields) for pairs in columns]
                for columns in (inside, outside)
            )
        records = self._of_shape[number]
        if records is not None:
            row_of = {k: row for row, k in enumerate(members)}
            fields = dict(records[[row_of[k] for k in clusters]].fields)
            for i, joint in enumerate(windows.joints):
                if (name := numbered("kept", i)) in fields:
                    joint["kept"] = fields.pop(name)
            windows.cluster |= fields

    def _shared_records(self) -> tuple[Records | None, Records | None]:
        """Memory for collected fields, and in the same place for those that are written afterwards."""
        slots, rows = max(self._slot.values(), default=0) + 1, max(len(self.links), 1)
        collected, afterwards = (
            {name: Field.of(size) for name, size in self._program.body.layout(lifetime).items()}
            for lifetime in ("collected", "afterwards")
        )
        sizes = [n * sum(x.size for x in layout.values()) for n, layout in ((slots, collected), (rows, afterwards))]
        memory = self._builder.scratch("collected", max(sizes))
        first = Records(memory, slots, collected) if collected else None
        return first, Records(memory, rows, afterwards) if afterwards else None

    def _cluster_records(self, number: int) -> Records | None:
        """The records of clusters of a shape: what the algorithm declares, and what `ClusterStore` has."""
        shape, clusters = self._clusters.shapes[number]
        layout = self._program.cluster.layout("kept", shape)
        if self._program.remembers(shape):
            moving = [i for i, steady in enumerate(shape.steady) if not steady]
            layout |= {numbered("kept", i): _size_of_kept(shape, i) for i in moving}
            joints, freedoms = int(shape.starts[-1]), shape.freedoms
            if self._program.tangent and not shape.solved:
                layout |= {"N": (joints, freedoms), "K_inverse": (joints, joints - freedoms), "g": joints}
                if shape.is_large:  # see `Visit.remember_positions`
                    layout |= {"N": int(shape.null_space.basis.sum()), "K_inverse": shape.null_space.size}
            elif not shape.linear:
                layout |= {"GD": (len(shape.dependent), len(shape.independent)), "gD": len(shape.dependent)}
        return self._builder.records(f"shape{number}", len(clusters), **layout) if layout else None


def _collecting_slots(robot: Robot) -> dict[int, int]:
    """The slot in which each body collects; a slot is reused once the body's own cluster has been visited."""
    slots: dict[int, int] = {0: -1}  # the ground collects nothing
    free, count = [], 0
    for cluster in reversed(robot.cluster_tree.clusters[1:]):
        for output in cluster.outputs:
            if output not in slots:
                if not free:
                    free, count = [count], count + 1
                slots[output] = free.pop()
        free += [slots[link] for link in cluster.bodies if link in slots]
    return slots


def _size_of_kept(shape: ClusterShape, i: int) -> int:
    """The number of numbers that a joint stores of its position."""
    kind = shape.kinds[i]
    return len(kind.keep(kind.neutral()))
