"""From frames to the ground and back: what acts at a frame, cluster by cluster on its way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.graph import Buffer, View, constants, fields
from coupler.passes.cluster import Cluster
from coupler.passes.sweep import Sweep
from coupler.spatial import Transform

__all__ = ["Paths"]


@dataclass(frozen=True)
class _Step:
    """A frame on its way through a cluster; bodies are numbered within it.

    Attributes:
        frame: number of the frame.
        cluster: number of the cluster.
        active: bodies on which what acts at the frame is felt.
    """

    frame: int
    cluster: int
    active: tuple[int, ...]


class Paths:
    """The ways of frames to the ground.

    Each step has, for each body on which its frame is felt, a 6 × 6 matrix P, the force there by unit of force at the
    frame, and for each body on which any frame is felt a matrix A, its acceleration; and y, 6 columns for the cluster.
    """

    def __init__(self, sweep: Sweep, frames: Sequence[tuple[int, Transform]]) -> None:
        self.sweep, self.frames, builder = sweep, frames, sweep.builder
        self.steps = [step for e, (link, _) in enumerate(frames) for step in self._way(e, link)]
        self.felt: dict[int, tuple[int, ...]] = {}
        for step in self.steps:
            self.felt[step.cluster] = tuple(sorted({*self.felt.get(step.cluster, ()), *step.active}))
        self._shape = {k: i for i, (_, clusters) in enumerate(sweep.shapes) for k in clusters}
        places: dict[str, dict[Hashable, int]] = {"P": {}, "A": {}, "y": {}}
        sizes = dict.fromkeys(places, 0)
        for step in self.steps:
            keys = {"P": [(step.frame, step.cluster, i) for i in step.active], "y": [(step.frame, step.cluster)]}
            keys["A"] = [(step.frame, step.cluster, i) for i in self.felt[step.cluster]]
            for name, own in keys.items():
                for key in own:
                    places[name][key] = sizes[name]
                    sizes[name] += 6 * self._freedoms(step.cluster) if name == "y" else 36
        self._places = places
        self._buffers = {name: builder.scratch(name, max(size, 1)) for name, size in sizes.items()}
        first = [(e, k, i) for e, (link, _) in enumerate(frames) for k, i in [self._body(link)] if k]
        if first:
            start = fields(P=self._at("P", first), X=constants([frames[e][1].matrix() for e, _, _ in first]))
            builder.loop(_begin, here=start)

    def _freedoms(self, cluster: int) -> int:
        return len(self.sweep.shapes[self._shape[cluster]][0].independent)

    def _body(self, link: int) -> tuple[int, int]:
        """The cluster of a link, and its number in it."""
        k = self.sweep.robot.cluster_tree.cluster_of[link]
        return k, self.sweep.robot.cluster_tree.clusters[k].bodies.index(link)

    def _way(self, frame: int, link: int) -> list[_Step]:
        clusters, steps = self.sweep.robot.cluster_tree.clusters, []
        k, body = self._body(link)
        active = (body,)
        while k:
            steps.append(_Step(frame, k, active))
            outputs = sorted(set(clusters[k].outputs))
            k = clusters[k].parent
            active = tuple(clusters[k].bodies.index(output) for output in outputs)
        return steps

    def _at(self, name: str, keys: Sequence[Hashable]) -> Any:
        return self._buffers[name].at([self._places[name][key] for key in keys], (6, 6))

    def start(self, frame: int) -> Any:
        """Where P of a frame's own link is."""
        return self._at("P", [(frame, *self._body(self.frames[frame][0]))])

    def inward(self, function: Callable[..., None]) -> None:
        """Runs a pass over all steps, from frames to the ground."""
        self._run(function, self.steps)

    def outward(self, function: Callable[..., None]) -> None:
        """Runs a pass over all steps, from the ground to frames."""
        self._run(function, self.steps[::-1])

    def _run(self, function: Callable[..., None], steps: Sequence[_Step]) -> None:
        groups: dict[Any, list[_Step]] = {}
        for step in steps:
            groups.setdefault((self._shape[step.cluster], step.active, self.felt[step.cluster]), []).append(step)
        turn = {id(step): i for i, group in enumerate(groups.values()) for step in group}
        with self.sweep.builder.interleave([turn[id(step)] for step in steps]):
            for (number, active, felt), group in groups.items():
                shape = self.sweep.shapes[number][0]
                window = self.sweep.window(number, [step.cluster for step in group]) | self._fields(shape, group)
                self.sweep.builder.loop(self._kernel(function, shape, active, felt), here=window)

    def _kernel(self, function: Callable[..., None], shape: Any, active: Sequence[int], felt: Sequence[int]) -> Any:
        def kernel(here: View) -> None:
            cluster = Cluster(here, shape, any(shape.carries), later=True, moving=False)
            function(cluster, [cluster.bodies[i] for i in active], [cluster.bodies[i] for i in felt])

        kernel.__name__ = function.__name__
        return kernel

    def _fields(self, shape: Any, steps: Sequence[_Step]) -> Any:
        own: dict[str, Any] = {}
        n = len(shape.independent)
        for name, bodies in (("P", steps[0].active), ("A", self.felt[steps[0].cluster])):
            for i in bodies:
                own[f"b{i}_{name}"] = self._at(name, [(step.frame, step.cluster, i) for step in steps])
        own["c_y"] = self._buffers["y"].at([self._places["y"][step.frame, step.cluster] for step in steps], (n, 6))
        for j, grounded in enumerate(shape.grounded):
            if not grounded:
                above = []
                for step in steps:
                    k, i = self._body(self.sweep.instances[step.cluster].outputs[j])
                    above.append((step.frame, k, i))
                own |= {f"o{j}_P": self._at("P", above), f"o{j}_A": self._at("A", above)}
        return fields(**own)

    def meet(self, output: Buffer) -> None:
        """Writes Pᵀ A of every two frames into a symmetric matrix, at the nearest cluster that carries both.

        [001, §VIII-D]
        """
        ways = {e: {s.cluster: s for s in self.steps if s.frame == e} for e in range(len(self.frames))}
        size, builder = 6 * len(self.frames), self.sweep.builder
        groups: dict[Any, list[tuple[int, int, int | None, tuple[int, ...]]]] = {}
        for one in range(len(self.frames)):
            for other in range(one, len(self.frames)):
                common = max((k for k in ways[one] if k in ways[other]), default=None)
                active = ways[other][common].active if common is not None else ()
                groups.setdefault((len(active), one == other), []).append((one, other, common, active))
        for (count, same), pairs in groups.items():
            window: dict[str, Any] = {}
            for i in range(count):
                window[f"P{i}"] = self._at("P", [(other, k, active[i]) for _, other, k, active in pairs])
                window[f"A{i}"] = self._at("A", [(one, k, active[i]) for one, _, k, active in pairs])
            for name, places in (("lower", [(b, a) for a, b, *_ in pairs]), ("upper", [(a, b) for a, b, *_ in pairs])):
                for row in range(6) if name == "lower" or not same else ():
                    window[f"{name}{row}"] = output.at([(6 * i + row) * size + 6 * j for i, j in places], 6)
            builder.loop(_product(count, same), here=fields(**window))


def _begin(here: View) -> None:
    here.P = here.X.T


def _product(count: int, same: bool) -> Callable[[View], None]:
    def product(here: View) -> None:
        total: Any = np.zeros((6, 6))
        for i in range(count):
            total = total + getattr(here, f"P{i}").T @ getattr(here, f"A{i}")
        for row in range(6):
            if same:
                setattr(here, f"lower{row}", np.array([total[min(row, j), max(row, j)] for j in range(6)]))
            else:
                setattr(here, f"lower{row}", total[row])
                setattr(here, f"upper{row}", total[:, row])

    return product
