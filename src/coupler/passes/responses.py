"""What forces at the joints of each cluster do at the joints of all others, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from coupler.graph import Buffer, View, fields
from coupler.passes.climb import velocities_of
from coupler.passes.shape import Instance, Shape
from coupler.passes.sweep import Sweep

__all__ = ["Responses"]

Step = tuple[tuple[str, int, int], dict[str, Hashable]]  # what is done, with how many matrices, and where those are


class Responses:
    """A symmetric matrix over independent velocities, one block for each two clusters that feel each other.

    What forces at the joints of a cluster do to the bodies that carry it climbs to the ground as P, 6 × n on each body.
    Clusters are passed from the tips inwards, and each of them by all that it carries: two that meet there, coming from
    different sides, make their block, and each makes one with the cluster that it passes. So P needs memory for the one
    place where it is.

    In passes, a cluster's memory has its own block H, and that of a body that carries others
      - A, 6 × n: its acceleration by unit of force at the joints of its cluster,
      - Omega and the number of a body of its cluster, 6 × 6: its acceleration by unit of force on that body,
      - T and the number of an output body, 6 × 6: its acceleration by unit of acceleration of that one.
    An output body has its Omega with itself and the others, and P of the cluster.

    Attributes:
        entries: rows and columns of the result's elements, one of two that are equal by symmetry.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep, clusters = sweep, range(len(sweep.instances))
        self._parent = [cluster.parent for cluster in sweep.robot.cluster_tree.clusters]
        self._outputs = [instance.outputs for instance in sweep.instances]
        self._carriers: list[list[int]] = [[] for _ in clusters]
        for shape, alike in sweep.shapes:
            for k in alike:
                self._carriers[k] = [sweep.instances[k].links[i] for i in np.flatnonzero(shape.carries)]
        self._sides: list[list[list[int]]] = [[] for _ in clusters]  # of each cluster all that it carries, by child
        for k in reversed(clusters[1:]):
            self._sides[self._parent[k]].append([k, *(i for side in self._sides[k] for i in side)])
        self._stores = {name: _Store() for name in ("A", "Omega", "T", "P", "R", "H")}  # R: accelerations for a meeting
        columns = [velocities_of(sweep.robot, k) for k in clusters]
        self._sizes = [len(own) for own in columns]
        for k in clusters[1:]:
            self._make_room(k)
        self._steps = [step for j in reversed(clusters[1:]) for step in (*self._meetings(j), *self._climbs(j))]
        blocks: Any = list(self._stores["H"].start)
        rows = [np.repeat(columns[j], self._sizes[k]) for j, k in blocks]
        tiles, none = [np.tile(columns[k], self._sizes[j]) for j, k in blocks], np.zeros(0, int)
        self.entries = np.concatenate([none, *rows]), np.concatenate([none, *tiles])
        for name, store in self._stores.items():
            store.buffer = sweep.result(name, store.size) if name == "H" else sweep.builder.scratch(name, store.size)
        sweep.extra = self._window

    def _make_room(self, k: int) -> None:
        """For what is a cluster's own."""
        add = {name: store.add for name, store in self._stores.items()}
        add["H"]((k, k), self._sizes[k], self._sizes[k])
        for link in self._carriers[k]:
            add["A"](link, 6, self._sizes[k])
            for other in self._carriers[k]:
                add["Omega"]((link, other), 6, 6)
            for output in self._outputs[k] if self._parent[k] else ():
                add["T"]((link, output), 6, 6)
        j, width = k, 0
        while self._parent[j]:
            width, j = max(width, len(self._outputs[j])), self._parent[j]
        for i in range(width):
            add["P"]((k, i), 6, self._sizes[k])

    def _meetings(self, j: int) -> Iterator[Step]:
        """Blocks of clusters that come to a cluster from different sides."""
        for number, side in enumerate(self._sides[j]):
            bodies = self._outputs[side[0]]
            others = [(c, self._outputs[other[0]]) for other in self._sides[j][:number] for c in other]
            moved = sorted({link for _, links in others for link in links})
            for k in side if others else ():
                for link in moved:
                    there: dict[str, Hashable] = {f"P{i}": (k, i) for i in range(len(bodies))}
                    there |= {f"Omega{i}": (link, body) for i, body in enumerate(bodies)}
                    there["R"] = self._stores["R"].add((self._sizes[k], moved.index(link)), 6, self._sizes[k])
                    yield ("reach", len(bodies), 0), there
                for c, links in others:
                    there = {f"P{i}": (c, i) for i in range(len(links))}
                    there |= {f"R{i}": (self._sizes[k], moved.index(link)) for i, link in enumerate(links)}
                    there["H"] = self._stores["H"].add((c, k), self._sizes[c], self._sizes[k])
                    yield ("meet", len(links), 0), there

    def _climbs(self, j: int) -> Iterator[Step]:
        """Blocks of a cluster with all that it carries; P goes from its bodies to its output bodies."""
        above = self._outputs[j] if self._parent[j] else ()
        for side in self._sides[j]:
            bodies = self._outputs[side[0]]
            places: dict[str, Hashable] = {f"A{i}": link for i, link in enumerate(bodies)}
            places |= {f"T{i}_{o}": (link, out) for i, link in enumerate(bodies) for o, out in enumerate(above)}
            for k in side:
                there = places | {f"P{i}": (k, i) for i in range(max(len(bodies), len(above)))}
                there["H"] = self._stores["H"].add((j, k), self._sizes[j], self._sizes[k])
                yield ("climb", len(bodies), len(above)), there

    def _window(self, shape: Shape, instances: Sequence[Instance], clusters: Sequence[int]) -> dict[str, Any]:
        at = {name: store.at for name, store in self._stores.items()}
        window = {"c_H": at["H"]([(k, k) for k in clusters])}
        carriers = [i for i, carries in enumerate(shape.carries) if carries]
        outputs = [i for i, grounded in enumerate(shape.grounded) if not grounded]
        for i in carriers:
            window[f"b{i}_A"] = at["A"]([x.links[i] for x in instances])
            for j in carriers:
                window[f"b{i}_Omega{j}"] = at["Omega"]([(x.links[i], x.links[j]) for x in instances])
            for o in outputs:
                window[f"b{i}_T{o}"] = at["T"]([(x.links[i], x.outputs[o]) for x in instances])
        for o in outputs:
            window[f"o{o}_P"] = at["P"]([(k, o) for k in clusters])
            for p in outputs:
                window[f"o{o}_Omega{p}"] = at["Omega"]([(x.outputs[o], x.outputs[p]) for x in instances])
        return window

    def run(self, climb: Callable[..., Any], reach: Callable[..., Any], meet: Callable[..., Any]) -> None:
        """Makes all blocks, but for clusters' own.

        Args:
            climb: gives the block of a passed cluster and one that it carries, and P on its output bodies, from A and
                T (a list for each) of its bodies and P on them.
            reach: gives the acceleration of a body from its Omega with some bodies and P on these.
            meet: gives the block of two clusters from P of the one and accelerations by the other of the same bodies.
        """
        groups: dict[Any, list[dict[str, Hashable]]] = {}
        order = []
        for what, there in self._steps:
            key = what, tuple((field, self._stores[_name(field)].shape[at]) for field, at in there.items())
            groups.setdefault(key, []).append(there)
            order.append(key)
        turn, kernels = {key: i for i, key in enumerate(groups)}, {"climb": climb, "reach": reach, "meet": meet}
        with self._sweep.builder.interleave([turn[key] for key in order]):
            for ((what, bodies, above), layout), steps in groups.items():
                window = {f: self._stores[_name(f)].at([there[f] for there in steps]) for f, _ in layout}
                kernel = _KERNELS[what](kernels[what], bodies, above)
                self._sweep.builder.loop(kernel, here=fields(**window))


class _Store:
    """Matrices of any size, one after the other in a buffer."""

    def __init__(self) -> None:
        self.size, self.start, self.shape = 0, dict[Hashable, int](), dict[Hashable, tuple[int, int]]()
        self.buffer: Buffer | None = None

    def add(self, key: Hashable, rows: int, columns: int) -> Hashable:
        """Room for one more, if there is none yet."""
        if key not in self.start:
            self.start[key], self.shape[key] = self.size, (rows, columns)
            self.size += rows * columns
        return key

    def at(self, keys: Sequence[Hashable]) -> Any:
        assert self.buffer is not None
        return self.buffer.at([self.start[key] for key in keys], self.shape[keys[0]])


def _name(field: str) -> str:
    return field.rstrip("_0123456789")


def _climb(function: Callable[..., Any], bodies: int, above: int) -> Callable[[View], None]:
    def climb(here: View) -> None:
        T = [[getattr(here, f"T{i}_{o}") for o in range(above)] for i in range(bodies)]
        here.H, passed = function(_listed(here, "A", bodies), T, _listed(here, "P", bodies))
        for o in range(above):
            setattr(here, f"P{o}", passed[o])

    return climb


def _reach(function: Callable[..., Any], bodies: int, _: int) -> Callable[[View], None]:
    def reach(here: View) -> None:
        here.R = function(_listed(here, "Omega", bodies), _listed(here, "P", bodies))

    return reach


def _meet(function: Callable[..., Any], bodies: int, _: int) -> Callable[[View], None]:
    def meet(here: View) -> None:
        here.H = function(_listed(here, "P", bodies), _listed(here, "R", bodies))

    return meet


_KERNELS = {"climb": _climb, "reach": _reach, "meet": _meet}


def _listed(here: View, name: str, count: int) -> list[Any]:
    return [getattr(here, f"{name}{i}") for i in range(count)]
