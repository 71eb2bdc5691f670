"""The motion and force subspaces of a cluster joint, in numbers [001, §V-C, V-D]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.model.clusters import ClusterTree
from coupler.model.embedding.coordinates import Embedding
from coupler.spatial import ClusterTransform, Remap, Transform, block


@dataclass(frozen=True, eq=False)
class ClusterSubspaces:
    """The motions and forces of a cluster of b links with n freedoms, stacked in the frames of its links.

    Freedoms come in the order of its links.

    Together Tᵃ and Tᶜ span all forces, SᵀTᵃ = 1 and SᵀTᶜ = 0. [001, eq. 9, 31]

    Attributes:
        S: 6b × n, motions relative to the output bodies by unit of v. [001, eq. 24]
        Ta: 6b × n, forces that unit forces at the independent joints transmit. [001, eq. 30, P selects those joints]
        Tc: 6b × (6b − n), forces that tree joints and loops transmit without doing work. [001, eq. 30, with the forces
            of loops, block(Tᵃ) Kᵀ, which its second line lacks]
    """

    S: np.ndarray
    Ta: np.ndarray
    Tc: np.ndarray


class ClusterJoint:
    """A cluster at given positions of all joints."""

    def __init__(self, clusters: ClusterTree, embedding: Embedding, p: np.ndarray, number: int) -> None:
        """Args: a robot's clusters and embedding, positions p of all joints (one state), and a cluster's number."""
        tree, cluster = embedding.tree, clusters.clusters[number]
        self.links, self._clusters, self._cluster = cluster.bodies, clusters, cluster
        self._joints = [(tree.links[link].kind, p[tree.positions(link)]) for link in self.links]
        self._step = [
            kind.transform(q) @ tree.links[link].placement
            for link, (kind, q) in zip(self.links, self._joints, strict=True)
        ]
        place = {link: i for i, link in enumerate(self.links)}
        self._parents = [place.get(tree.parent[link]) for link in self.links]
        self.columns = tree.velocities_of(self.links)
        self.independent = np.isin(self.columns, embedding.v_index)
        self.K, self.G = embedding.of_cluster(p, number, self.columns)

    @property
    def _remap(self) -> Remap:
        return Remap(self._step, self._parents)

    def motion_subspace(self) -> np.ndarray:
        """S = ᴸX_λ block(Sᵢ) G. [001, eq. 24]"""
        subspaces = block([np.asarray(kind.subspace(q), float) for kind, q in self._joints])
        return self._remap.motion(subspaces @ self.G)

    def subspaces(self) -> ClusterSubspaces:
        """S, Tᵃ and Tᶜ."""
        active = block([kind.active_force_subspace(q) for kind, q in self._joints])
        constraint = block([kind.constraint_force_subspace(q) for kind, q in self._joints])
        Tc = self._remap.force(np.concatenate([constraint, active @ self.K.T], axis=1))
        return ClusterSubspaces(self.motion_subspace(), self._remap.force(active[:, self.independent]), Tc)

    def transform(self) -> ClusterTransform:
        """The transform from the links of the parent cluster to those of this one. [001, eq. 16-18]"""
        done: list[Transform] = []
        for step, parent in zip(self._step, self._parents, strict=True):
            done.append(step if parent is None else step @ done[parent])
        above = self._clusters.clusters[self._cluster.parent].bodies
        return ClusterTransform(done, [above.index(link) for link in self._cluster.outputs], len(above))
