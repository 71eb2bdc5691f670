"""Whether the masses of a robot suffice: every motion of its joints must move some inertia.

A body without mass is no trouble where what it carries, or what moves with it, has some. Otherwise the articulated
inertia SᵀIᴬS of its cluster is singular, and a force on it would have no finite answer.
"""

from __future__ import annotations

import numpy as np

from coupler.model.clusters import ClusterTree
from coupler.model.embedding import Embedding
from coupler.model.errors import ModelError
from coupler.model.subspaces import ClusterJoint
from coupler.model.tree import Tree, listed
from coupler.spatial import block

__all__ = ["check_masses"]

_NOTHING = 1e-12  # eigenvalues below this part of the largest count as zero


def check_masses(clusters: ClusterTree, embedding: Embedding, p: np.ndarray) -> None:
    """Refuses a robot whose articulated inertia is singular at positions p.

    The backward pass of the articulated-body algorithm, in numbers. [001, eq. 49, 56]

    Raises:
        ModelError: naming the joints that nothing resists, and the bodies without mass there.
    """
    tree = embedding.tree
    if all(_regular(link.inertia.matrix()) for link in tree.links[1:]):
        return
    inertia = [block([tree.links[i].inertia.matrix() for i in cluster.bodies]) for cluster in clusters.clusters]
    for k in reversed(range(1, len(clusters.clusters))):
        joint = ClusterJoint(clusters, embedding, p, k)
        S, G = joint.motion_subspace(), joint.G
        armature = np.concatenate([tree.links[link].kind.armature for link in joint.links])
        U = inertia[k] @ S
        D = S.T @ U + G.T @ (armature[:, None] * G)
        if not _regular(D):
            idle = np.abs(np.linalg.eigh(D)[1][:, 0])
            _refuse(tree, joint, joint.columns[joint.independent][idle > 1e-3 * idle.max()])
        carried = joint.transform().transform_inertia(inertia[k] - U @ np.linalg.solve(D, U.T))
        parent = clusters.clusters[k].parent
        inertia[parent] = inertia[parent] + carried


def _regular(A: np.ndarray) -> bool:
    eigenvalues = np.linalg.eigvalsh(A)
    return bool(eigenvalues[0] > _NOTHING * eigenvalues[-1])


def _refuse(tree: Tree, joint: ClusterJoint, entries: np.ndarray) -> None:
    joints = dict.fromkeys(tree.joint_of(int(entry)) for entry in entries)
    light = [tree.links[link].name for link in joint.links if not _regular(tree.links[link].inertia.matrix())]
    raise ModelError(
        f"nothing resists a motion of joint {listed(joints)}: body {listed(light)} has too little inertia, and so has "
        "what moves with it; give it a mass and an inertia, or its joint an armature"
    )
