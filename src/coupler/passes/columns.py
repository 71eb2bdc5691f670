"""Columns of forces that climb from contacts and joints to the ground, cluster by cluster.

A unit of force at a contact, or at a joint, is felt by every cluster on its way to the ground as forces P on bodies and
z = Sᵀ P at joints. With y = D⁻¹ z, two groups of columns meet in A = Σ zᵀ y over the clusters that both pass: blocks of
J H⁻¹ Jᵀ [003, eq. 27], without H and without a way back outwards. Each group may start on several bodies, as a contact
between two of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.graph import Buffer, Slot, View, fields
from coupler.passes.cluster import Cluster
from coupler.passes.sweep import Sweep

__all__ = ["Columns", "Rise", "Start"]


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
class Rise:
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

    Each cluster on a way has z and y in its memory, n × width, and each body on which columns are felt P, 6 × width.
    """

    def __init__(self, sweep: Sweep, starts: Sequence[Start]) -> None:
        self.sweep, self.starts = sweep, starts
        self._shape = {k: i for i, (_, clusters) in enumerate(sweep.shapes) for k in clusters}
        self._ways = [self._way(start) for start in starts]
        self._places: dict[str, dict[Hashable, int]] = {"P": {}, "z": {}, "y": {}}
        sizes = dict.fromkeys(self._places, 0)
        for group, (start, way) in enumerate(zip(starts, self._ways, strict=True)):
            for k, rise in way.items():
                keys = {"P": [(group, k, i) for i in rise.active], "z": [(group, k)], "y": [(group, k)]}
                for name, own in keys.items():
                    for key in own:
                        self._places[name][key] = sizes[name]
                        sizes[name] += start.width * (6 if name == "P" else self._freedoms(k))
        self._buffers = {name: sweep.builder.scratch(f"column_{name}", max(n, 1)) for name, n in sizes.items()}
        self.firsts = np.cumsum([0, *(start.width for start in starts)])  # the first column of each group, and all

    def at_link(self, groups: Sequence[int], links: Sequence[int]) -> Slot:
        """Where each group's forces on a link are, that it starts on."""
        keys = [(group, *self._body(link)) for group, link in zip(groups, links, strict=True)]
        return self._buffers["P"].at([self._places["P"][key] for key in keys], (6, self.starts[groups[0]].width))

    def climb(self, function: Callable[[Cluster, Rise], None], groups: range) -> None:
        """Runs a pass over all clusters on the ways of some groups, towards the ground."""
        self._run(function, groups, {})

    def settle(self, function: Callable[[Cluster, Any], None], count: int, factors: Buffer) -> None:
        """Runs a pass over all clusters on the ways of the first groups, with their parts of a vector."""
        self._run(lambda cluster, _: function(cluster, cluster.here.factors), range(count), {"factors": factors})

    def meet(self, output: Buffer, count: int) -> None:
        """Writes A = Σ zᵀ y of every two of the first groups into a symmetric matrix."""
        groups: dict[Hashable, list[tuple[int, int, list[int]]]] = {}
        for one in range(count):
            for other in range(one, count):
                common = [k for k in self._ways[one] if k in self._ways[other]]
                widths = self.starts[one].width, self.starts[other].width
                key = widths, tuple(self._freedoms(k) for k in common), one == other
                groups.setdefault(key, []).append((one, other, common))
        size = int(self.firsts[count])
        for (widths, freedoms, same), pairs in groups.items():  # type: ignore[misc]
            window: dict[str, Slot] = {}
            for i, n in enumerate(freedoms):
                window[f"z{i}"] = self._at("z", [(one, common[i]) for one, _, common in pairs], (n, widths[0]))
                window[f"y{i}"] = self._at("y", [(other, common[i]) for _, other, common in pairs], (n, widths[1]))
            for row in range(widths[0]):
                at = [(self.firsts[one] + row) * size + self.firsts[other] for one, other, _ in pairs]
                window[f"upper{row}"] = output.at(at, widths[1])
            for row in () if same else range(widths[1]):
                at = [(self.firsts[other] + row) * size + self.firsts[one] for one, other, _ in pairs]
                window[f"lower{row}"] = output.at(at, widths[0])
            self.sweep.builder.loop(_product(len(freedoms), widths, same), here=fields(**window))

    def _freedoms(self, cluster: int) -> int:
        return len(self.sweep.shapes[self._shape[cluster]][0].independent)

    def _body(self, link: int) -> tuple[int, int]:
        """The cluster of a link, and its number in it."""
        k = self.sweep.robot.cluster_tree.cluster_of[link]
        return k, self.sweep.robot.cluster_tree.clusters[k].bodies.index(link)

    def _way(self, start: Start) -> dict[int, Rise]:
        """The clusters on the way of columns, outermost first."""
        felt: dict[int, set[int]] = {}
        for link in start.links:
            k, i = self._body(link)
            felt.setdefault(k, set()).add(i)
        entry = None
        if start.joint is not None:
            own, i = self._body(start.joint[0])
            felt.setdefault(own, set())
            entry = own, int(self.sweep.shapes[self._shape[own]][0].starts[i]) + start.joint[1]
        way: dict[int, Rise] = {}
        while felt:
            k = max(felt)  # carriers have lower numbers
            active, begins = tuple(sorted(felt.pop(k))), []
            for output in self.sweep.instances[k].outputs:
                above, i = self._body(output) if output else (0, 0)
                begins.append(bool(above) and i not in felt.setdefault(above, set()))
                if above:
                    felt[above].add(i)
            way[k] = Rise(active, tuple(begins), entry[1] if entry is not None and entry[0] == k else None)
        return way

    def _at(self, name: str, keys: Sequence[Hashable], shape: tuple[int, int]) -> Slot:
        return self._buffers[name].at([self._places[name][key] for key in keys], shape)

    def _run(self, function: Callable[[Cluster, Rise], None], chosen: range, vectors: dict[str, Buffer]) -> None:
        order = [(group, k) for group in chosen for k in self._ways[group]]
        groups: dict[Hashable, list[tuple[int, int]]] = {}
        for group, k in order:
            key = self._shape[k], self._ways[group][k], self.starts[group].width
            groups.setdefault(key, []).append((group, k))
        turn = {step: i for i, steps in enumerate(groups.values()) for step in steps}
        with self.sweep.builder.interleave([turn[step] for step in order]):
            for (number, rise, width), steps in groups.items():  # type: ignore[misc]
                window = self.sweep.window(number, [k for _, k in steps]) | self._fields(rise, width, steps)
                for name, buffer in vectors.items():
                    window |= fields(**{name: buffer.at([self.firsts[group] for group, _ in steps], width)})
                self.sweep.builder.loop(self._kernel(function, self.sweep.shapes[number][0], rise), here=window)

    def _kernel(self, function: Callable[[Cluster, Rise], None], shape: Any, rise: Rise) -> Callable[[View], None]:
        def kernel(here: View) -> None:
            function(Cluster(here, shape, self.sweep.remembering or any(shape.carries), later=True, moving=False), rise)

        kernel.__name__ = getattr(function, "__name__", "columns").strip("<>")
        return kernel

    def _fields(self, rise: Rise, width: int, steps: Sequence[tuple[int, int]]) -> Any:
        n = self._freedoms(steps[0][1])
        own = {f"b{i}_P": self._at("P", [(group, k, i) for group, k in steps], (6, width)) for i in rise.active}
        own |= {f"c_{name}": self._at(name, steps, (n, width)) for name in ("z", "y")}
        for j, output in enumerate(self.sweep.instances[steps[0][1]].outputs):
            if output:
                above = [(group, *self._body(self.sweep.instances[k].outputs[j])) for group, k in steps]
                own[f"o{j}_P"] = self._at("P", above, (6, width))
        return fields(**own)


def _product(count: int, widths: tuple[int, int], same: bool) -> Callable[[View], None]:
    def product(here: View) -> None:
        total: Any = np.zeros(widths)
        for i in range(count):
            total = total + getattr(here, f"z{i}").T @ getattr(here, f"y{i}")
        for row in range(widths[0]):
            values = [total[min(row, j), max(row, j)] for j in range(widths[0])] if same else total[row]
            setattr(here, f"upper{row}", np.array(values))
        for row in () if same else range(widths[1]):
            setattr(here, f"lower{row}", total[:, row])

    return product
