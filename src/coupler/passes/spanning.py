"""The spanning tree of a robot, in a program over its clusters: vectors of all joints, and algorithms on the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.graph import Buffer, fields
from coupler.passes.records import ClusterRecord, Record, provided
from coupler.passes.shape import Shape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows

__all__ = ["Spanning", "SpanningBody", "SpanningCluster"]


class SpanningBody(Record):
    """The part of a body's joint in vectors over all joints."""

    p, w, wd, f = provided(), provided(), provided(), provided()  # positions, velocities, accelerations, forces


class SpanningCluster(ClusterRecord):
    G, K, k = provided(), provided(), provided()


class Spanning:
    """A robot with its loops open, beside the robot itself.

    Every body has its joint's part of the vectors p (positions), w (velocities), wd (accelerations) and f (forces) of
    all joints in its memory, and every cluster its matrix G and its K and k, where they are asked for.

    Attributes:
        tree: the robot with its loops open.
        sizes: for each cluster how many velocities its joints have, how many are independent, and rows of K.
    """

    def __init__(self, sweep: Sweep[Any, Any], *, matrices: str = "") -> None:
        self.sweep, robot = sweep, sweep.robot
        self.tree = robot.spanning_tree()
        counts = {"p": self.tree.nq, "w": self.tree.nv, "wd": self.tree.nv, "f": self.tree.nv}
        self.vectors = {name: sweep.builder.scratch(name, size) for name, size in counts.items()}
        self.sizes = [(0, 0)] * len(sweep.instances)
        for shape, clusters in sweep.shapes:
            for k in clusters:
                self.sizes[k] = int(shape.starts[-1]), len(shape.independent)
        self.matrices: dict[str, tuple[Buffer, list[int]]] = {}
        for name in matrices:
            ends = np.cumsum([self._shape(name, k)[0] * self._shape(name, k)[1] for k in range(len(self.sizes))])
            self.matrices[name] = sweep.builder.scratch(f"all_{name}", int(ends[-1])), [0, *ends[:-1].tolist()]
        sweep.provide = self._provide

    def _shape(self, name: str, cluster: int) -> tuple[int, int]:
        """G has a row for each velocity, K and k a row for each that depends on others."""
        n, independent = self.sizes[cluster]
        return {"G": (n, independent), "K": (n - independent, n), "k": (n - independent, 1)}[name]

    def _provide(self, windows: ClusterWindows, shape: Shape, clusters: Sequence[int]) -> None:
        for i, kind in enumerate(shape.kinds):
            joints = [self.sweep.robot.tree.links[self.sweep.instances[k].links[i]].joint for k in clusters]
            for name, buffer in self.vectors.items():
                place = self.tree.q_slice if name == "p" else self.tree.v_slice
                starts = [place(joint).start for joint in joints]
                windows.bodies[i][name] = buffer.at(starts, kind.nq if name == "p" else kind.nv)
        for name, (buffer, starts) in self.matrices.items():
            size = self._shape(name, clusters[0])
            windows.cluster[name] = buffer.at([starts[k] for k in clusters], size)

    def call(self, program: Any, **bindings: Buffer) -> None:
        """Runs a program of the tree with its vectors bound to buffers."""
        self.sweep.builder.call(program, **bindings)

    def whole(self, kernel: Callable[..., None], **vectors: Buffer) -> None:
        """Runs a kernel once that sees whole vectors, and the matrices of all clusters one after the other."""
        buffers = {**vectors, **{name: buffer for name, (buffer, _) in self.matrices.items()}}
        self.sweep.builder.loop(kernel, here=fields(**{name: x.at(0, x.size) for name, x in buffers.items()}))

    def block(self, name: str, values: Any) -> list[Any]:
        """The matrices of all clusters from their elements in a row."""
        starts = self.matrices[name][1]
        shapes = [self._shape(name, k) for k in range(len(self.sizes))]
        pairs = list(zip(starts, shapes, strict=True))
        return [values[at : at + rows * columns].reshape(rows, columns) for at, (rows, columns) in pairs]
