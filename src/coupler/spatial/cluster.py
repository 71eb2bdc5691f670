"""Spatial vector algebra for clusters of bodies [001, §V].

A cluster's motion, force or momentum stacks those of its bodies (`stack`); its inertia and the subspaces of its joints
are block diagonal (`block`). Two kinds of transforms act on them. A `ClusterTransform` goes from the bodies of the
parent cluster to those of this one: every body hangs on one *output body*, the nearest body outside the cluster that
carries it. A `Remap` turns quantities relative to parent bodies into quantities relative to output bodies. Both store
one transform per body, never a matrix, so that their cost grows with the number of bodies and not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.spatial.body import Transform

Array = Any  # an ndarray of floats, or of nodes


def stack(parts: Sequence[Array]) -> Array:
    """The vectors (or equally wide matrices) of a cluster's bodies, one below the other. [001, eq. 11-13]"""
    return np.concatenate(list(parts))


def split(stacked: Array) -> list[Array]:
    """The inverse of `stack`: six rows for each body."""
    return [stacked[i : i + 6] for i in range(0, len(stacked), 6)]


def block(parts: Sequence[Array]) -> Array:
    """The block diagonal matrix of the bodies' matrices, which need not be square. [001, eq. 14]"""
    widths = [part.shape[1] for part in parts]
    rows = []
    for i, part in enumerate(parts):
        left, right = sum(widths[:i]), sum(widths[i + 1 :])
        height = part.shape[0]
        rows.append(np.concatenate([np.zeros((height, left)), part, np.zeros((height, right))], axis=1))
    return np.concatenate(rows)


@dataclass(frozen=True, eq=False)
class ClusterTransform:
    """ᵏX_λ: from the bodies of a parent cluster to those of a cluster. [001, eq. 16-18]

    Attributes:
        transforms: for each body, the transform from its output body's frame to its own.
        outputs: for each body, which body of the parent cluster its output body is.
        size: number of bodies in the parent cluster.
    """

    transforms: Sequence[Transform]
    outputs: Sequence[int]
    size: int

    def __post_init__(self) -> None:
        if len(self.transforms) != len(self.outputs) or not all(0 <= j < self.size for j in self.outputs):
            raise ValueError(f"each body needs one of the {self.size} bodies of the parent cluster, got {self.outputs}")

    def __matmul__(self, m: Array) -> Array:
        """ᵏX_λ m: motions of the parent cluster's bodies (6 · size rows) in the frames of this cluster's bodies."""
        parent = split(m)
        return stack([X @ parent[j] for X, j in zip(self.transforms, self.outputs, strict=True)])

    def transform_force(self, f: Array) -> Array:
        """(ᵏX_λ)ᵀ f: forces on this cluster's bodies, collected on their output bodies. [001, eq. 18]"""
        collected: list[Any] = [np.zeros((6, *f.shape[1:]))] * self.size
        for X, j, force in zip(self.transforms, self.outputs, split(f), strict=True):
            collected[j] = collected[j] + X.transform_force(force)
        return stack(collected)

    def transform_inertia(self, inertia: Array) -> Array:
        """(ᵏX_λ)ᵀ I (ᵏX_λ): a symmetric inertia of this cluster, collected on the output bodies."""
        n = len(self.transforms)
        rows: list[list[Any]] = [[np.zeros((6, 6))] * self.size for _ in range(self.size)]
        for i in range(n):
            for j in range(i, n):
                part = inertia[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                a, b, X, Y = self.outputs[i], self.outputs[j], self.transforms[i], self.transforms[j]
                if i == j:
                    rows[a][a] = rows[a][a] + X.transform_inertia(part)
                    continue
                coupled = Y.transform_force(X.transform_force(part).T).T  # Xᵀ part Y
                rows[a][b] = rows[a][b] + coupled
                rows[b][a] = rows[b][a] + coupled.T
        return np.block(rows)

    def matrix(self) -> Array:
        """The transform as a matrix of 6 × 6 blocks."""
        rows = []
        for X, j in zip(self.transforms, self.outputs, strict=True):
            rows.append([X.matrix() if k == j else np.zeros((6, 6)) for k in range(self.size)])
        return np.block(rows)


@dataclass(frozen=True, eq=False)
class Remap:
    """ᴸX_λ of a cluster: from quantities relative to parent bodies to those relative to output bodies. [001, eq. 19-23]

    Attributes:
        transforms: for each body, the transform from its parent body's frame to its own.
        parents: for each body, which body of the same cluster is its parent, or None if the parent is outside. Parents
            come before their children.
    """

    transforms: Sequence[Transform]
    parents: Sequence[int | None]

    def __post_init__(self) -> None:
        if len(self.transforms) != len(self.parents) or any(
            j is not None and not 0 <= j < i for i, j in enumerate(self.parents)
        ):
            raise ValueError(f"the parent of each body must come before it in the cluster, got {self.parents}")

    def motion(self, m: Array) -> Array:
        """ᴸX_λ m: motions relative to the output bodies, from motions relative to the parents."""
        summed: list[Array] = []
        for X, j, motion in zip(self.transforms, self.parents, split(m), strict=True):
            summed.append(motion if j is None else motion + X @ summed[j])
        return stack(summed)

    def inverse_motion(self, m: Array) -> Array:
        """The inverse of `motion`: motions relative to the parents, from motions relative to the output bodies."""
        motions = split(m)
        bodies = zip(self.transforms, self.parents, motions, strict=True)
        return stack([motion if j is None else motion - X @ motions[j] for X, j, motion in bodies])

    def force(self, f: Array) -> Array:
        """ᴸX*_λ f: forces across the cluster joint, from forces across its tree joints. [001, eq. 22, 27]

        What a tree joint transmits to bodies further out in the same cluster is subtracted.
        """
        across_tree = split(f)
        across_cluster = list(across_tree)
        for X, j, force in zip(self.transforms, self.parents, across_tree, strict=True):
            if j is not None:
                across_cluster[j] = across_cluster[j] - X.transform_force(force)
        return stack(across_cluster)

    def inverse_force(self, f: Array) -> Array:
        """The inverse of `force`, transpose of `motion`: a tree joint carries all bodies of the cluster beyond it."""
        carried = split(f)
        for i in reversed(range(len(carried))):
            j = self.parents[i]
            if j is not None:
                carried[j] = carried[j] + self.transforms[i].transform_force(carried[i])
        return stack(carried)

    def matrix(self) -> Array:
        """ᴸX_λ as a matrix, unit lower triangular in 6 × 6 blocks. [001, eq. 20]"""
        return self.motion(np.eye(6 * len(self.parents)))

    def force_matrix(self) -> Array:
        """ᴸX*_λ as a matrix, the transposed inverse of `matrix`. [001, eq. 21, whose second identity lacks a star]"""
        return self.force(np.eye(6 * len(self.parents)))
