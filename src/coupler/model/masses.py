"""Whether the masses of a robot suffice: every motion of its joints must move some inertia.

A body without mass is no trouble where what it carries, or what moves with it, has some. Otherwise the articulated
inertia SᵀIᴬS of its cluster is singular, and a force on it would have no finite answer.
"""

from __future__ import annotations

import numpy as np

from coupler.model.clusters import ClusterTree
from coupler.model.embedding import Embedding
from coupler.model.errors import ModelError
from coupler.model.tree import listed
from coupler.spatial import ClusterTransform, Remap, Transform, block

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
    G, _ = embedding.explicit_constraint(p, np.zeros(len(embedding.v_index)))
    parts = [p[tree.positions(i)] for i in range(len(tree.links))]
    step = [link.kind.transform(q) @ link.placement for link, q in zip(tree.links, parts, strict=True)]
    inertia = {k: block([tree.links[i].inertia.matrix() for i in c.bodies]) for k, c in enumerate(clusters.clusters)}
    for k in reversed(range(1, len(clusters.clusters))):
        links = clusters.clusters[k].bodies
        own = {link: i for i, link in enumerate(links)}
        columns = np.concatenate([tree.velocities(i) for i in links])
        independent = np.flatnonzero(np.isin(embedding.v_index, columns))
        Gk = G[columns][:, independent]
        subspaces = block([np.asarray(tree.links[i].kind.subspace(parts[i]), float) for i in links])
        S = Remap([step[i] for i in links], [own.get(tree.parent[i]) for i in links]).motion(subspaces @ Gk)
        armature = np.concatenate([tree.links[i].kind.armature for i in links])
        U = inertia[k] @ S
        D = S.T @ U + Gk.T @ (armature[:, None] * Gk)
        if not _regular(D):
            direction = np.linalg.eigh(D)[1][:, 0]
            _refuse(embedding, links, independent[np.abs(direction) > 1e-3 * np.abs(direction).max()])
        rest = inertia[k] - U @ np.linalg.solve(D, U.T)
        outputs, place = _to_outputs(step, links, tree.parent, clusters.clusters[k].outputs)
        above = clusters.clusters[clusters.clusters[k].parent].bodies
        X = ClusterTransform(place, [above.index(j) for j in outputs], len(above))
        inertia[clusters.clusters[k].parent] = inertia[clusters.clusters[k].parent] + X.transform_inertia(rest)


def _to_outputs(
    step: list[Transform], links: tuple[int, ...], parent: list[int], outputs: tuple[int, ...]
) -> tuple[list[int], list[Transform]]:
    """The output body of each link of a cluster, and the transform from it."""
    done: dict[int, Transform] = {}
    for link in links:
        done[link] = step[link] @ done[parent[link]] if parent[link] in done else step[link]
    return list(outputs), [done[link] for link in links]


def _regular(A: np.ndarray) -> bool:
    eigenvalues = np.linalg.eigvalsh(A)
    return bool(eigenvalues[0] > _NOTHING * eigenvalues[-1])


def _refuse(embedding: Embedding, links: tuple[int, ...], entries: np.ndarray) -> None:
    tree = embedding.tree
    joints = dict.fromkeys(tree.links[tree.link_of(int(embedding.v_index[i]))].joint for i in entries)
    light = [tree.links[i].name for i in links if not _regular(tree.links[i].inertia.matrix())]
    raise ModelError(
        f"nothing resists a motion of joint {listed(joints)}: body {listed(light)} has too little inertia, and so has "
        "what moves with it; give it a mass and an inertia, or its joint an armature"
    )
