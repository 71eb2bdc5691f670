"""Columns of forces that climb from contacts and joints to the ground, cluster by cluster.

A unit of force at a contact, or at a joint, is felt by every cluster on its way to the ground as forces P on bodies and
z = Sᵀ P at joints. With y = D⁻¹ z, two groups of columns meet in A = Σ zᵀ y over the clusters that both pass: blocks of
J H⁻¹ Jᵀ [003, eq. 27], without H and without a way back outwards. Each group may start on several bodies, as a contact
between two of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.graph import Buffer, Slot, View, fields
from coupler.passes import Cluster, ClusterRecord, ClusterWindows, Record, Shape, Sweep, provided

__all__ = ["ColumnBody", "ColumnCluster", "Columns", "Passage", "Start"]


class ColumnBody(Record):
    P = provided()  # 6 × width: forces on a body


class ColumnCluster(ClusterRecord):
    z, y = provided(), provided()  # freedoms × width: forces at joints, and D⁻¹ of them
    factors = provided()  # width: a factor for each column


@dataclass(frozen=True)
class Start:
    """Where a group of columns starts.

    Attributes:
        width: how many columns.
        links: the links on which they are forces, which somebody writes (see `Columns.at_link`).
        joint: or the link whose joint they push, and which entry of its velocity.
    """

    width: int
    links: tuple[int, ...] = ()
    joint: tuple[int, int] | None = None


@dataclass(frozen=True)
class Passage:
    """How columns pass a cluster; bodies are numbered within it.

    Attributes:
        active: bodies on which the columns are felt.
        begins: for each output body whether nothing has been felt there before.
        entry: the velocity of the cluster that the columns push, where they start at a joint.
    """

    active: tuple[int, ...]
    begins: tuple[bool, ...]
    entry: int | None


class Columns:
    """The ways of groups of columns to the ground.

    Each cluster on a way has z and y in its memory, and each body on which columns are felt P.
    """

    def __init__(self, sweep: Sweep[Any, Any], starts: Sequence[Start]) -> None:
        self.sweep, self.starts = sweep, starts
        self._ways = [self._way(start) for start in starts]
        self._P, self._z, self._y = (sweep.store(f"column_{name}") for name in "Pzy")
        for group, (start, way) in enumerate(zip(starts, self._ways, strict=True)):
            for k, passage in way.items():
                for i in passage.active:
                    self._P.add((group, k, i), (6, start.width))
                for store in (self._z, self._y):
                    store.add((group, k), (self._freedoms(k), start.width))
        self.firsts = np.cumsum([0, *(start.width for start in starts)])  # the first column of each group, and all

    def at_link(self, groups: Sequence[int], links: Sequence[int]) -> Slot:
        """Where each group's forces on a link are, that it starts on."""
        keys = [(group, *self.sweep.number_in_cluster(link)) for group, link in zip(groups, links, strict=True)]
        return self._P.at(keys)

    def climb(
        self, function: Callable[[Cluster[Any, Any], Passage], None], groups: range, factors: Buffer | None = None
    ) -> None:
        """Runs a pass over all clusters on the ways of some groups, towards the ground.

        Args:
            function: of a cluster, and of how columns pass it.
            groups: which of them.
            factors: a vector over all columns, of which clusters see their part.
        """

        def provide(windows: ClusterWindows, shape: Shape, steps: list[tuple[int, int]]) -> None:
            self._provide(windows, steps, factors)

        schedule = self.sweep.schedule()
        for group in groups:
            for k, passage in self._ways[group].items():
                self.sweep.visit(
                    schedule,
                    function,
                    k,
                    passage,
                    key=(passage, self.starts[group].width),
                    row=(group, k),
                    provide=provide,
                )
        schedule.run()

    def meet(self, output: Buffer, count: int) -> None:
        """Writes A = Σ zᵀ y of every two of the first groups into a symmetric matrix."""
        groups: dict[Any, list[tuple[int, int, list[int]]]] = {}
        for one in range(count):
            for other in range(one, count):
                common = [k for k in self._ways[one] if k in self._ways[other]]
                widths = self.starts[one].width, self.starts[other].width
                key = widths, tuple(self._freedoms(k) for k in common), one == other
                groups.setdefault(key, []).append((one, other, common))
        size = int(self.firsts[count])
        for (widths, freedoms, same), pairs in groups.items():
            z = [self._z.at([(one, common[i]) for one, _, common in pairs]) for i in range(len(freedoms))]
            y = [self._y.at([(other, common[i]) for _, other, common in pairs]) for i in range(len(freedoms))]
            upper, lower = [], []
            for row in range(widths[0]):
                at = [(self.firsts[one] + row) * size + self.firsts[other] for one, other, _ in pairs]
                upper.append(fields(x=output.at(at, widths[1])))
            for row in () if same else range(widths[1]):
                at = [(self.firsts[other] + row) * size + self.firsts[one] for one, other, _ in pairs]
                lower.append(fields(x=output.at(at, widths[0])))
            common = [fields(z=own, y=other) for own, other in zip(z, y, strict=True)]
            self.sweep.builder.loop(_product, common=common, upper=upper, lower=lower)

    def _freedoms(self, cluster: int) -> int:
        return self.sweep.shapes[self.sweep.shape_of[cluster]][0].freedoms

    def _way(self, start: Start) -> dict[int, Passage]:
        """The clusters on the way of columns, outermost first."""
        felt: dict[int, set[int]] = {}
        for link in start.links:
            k, i = self.sweep.number_in_cluster(link)
            felt.setdefault(k, set()).add(i)
        entry = None
        if start.joint is not None:
            own, i = self.sweep.number_in_cluster(start.joint[0])
            felt.setdefault(own, set())
            entry = own, int(self.sweep.shapes[self.sweep.shape_of[own]][0].starts[i]) + start.joint[1]
        way: dict[int, Passage] = {}
        while felt:
            k = max(felt)  # carriers have lower numbers
            active, begins = tuple(sorted(felt.pop(k))), []
            for output in self.sweep.instances[k].outputs:
                above, i = self.sweep.number_in_cluster(output) if output else (0, 0)
                begins.append(bool(above) and i not in felt.setdefault(above, set()))
                if above:
                    felt[above].add(i)
            way[k] = Passage(active, tuple(begins), entry[1] if entry is not None and entry[0] == k else None)
        return way

    def _provide(self, windows: ClusterWindows, steps: Sequence[tuple[int, int]], factors: Buffer | None) -> None:
        group, k = steps[0]
        for i in self._ways[group][k].active:
            windows.bodies[i]["P"] = self._P.at([(group, k, i) for group, k in steps])
        windows.cluster |= {"z": self._z.at(steps), "y": self._y.at(steps)}
        if factors is not None:
            firsts = [self.firsts[group] for group, _ in steps]
            windows.cluster["factors"] = factors.at(firsts, self.starts[group].width)
        for j, output in enumerate(self.sweep.instances[k].outputs):
            if output:
                outputs = [self.sweep.instances[k].outputs[j] for _, k in steps]
                above = zip(steps, outputs, strict=True)
                keys = [(group, *self.sweep.number_in_cluster(link)) for (group, _), link in above]
                windows.outputs[j]["P"] = self._P.at(keys)


def _product(common: list[View], upper: list[View], lower: list[View]) -> None:
    """Σ zᵀ y, by rows, and its transpose unless it is symmetric."""
    zero = np.zeros((len(upper), np.size(upper[0].x)))
    total: Any = reduce(add, (here.z.T @ here.y for here in common), zero)
    for row, here in enumerate(upper):
        here.x = total[row] if lower else np.array([total[min(row, j), max(row, j)] for j in range(len(upper))])
    for row, here in enumerate(lower):
        here.x = total[:, row]
