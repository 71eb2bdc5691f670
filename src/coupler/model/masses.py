"""Checking the masses of a robot: every motion of its joints must move some inertia.

A body without mass is fine if what it carries, or what moves with it, has some. Otherwise the articulated inertia
SᵀIᴬS of its cluster is singular, and a force on it would cause an infinite acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.model.clusters import ClusterTree
from coupler.model.embedding.states import States
from coupler.model.errors import ModelError
from coupler.model.subspaces import ClusterJoint
from coupler.model.wording import listed
from coupler.spatial import block

_NOTHING = 1e-12  # eigenvalues below this part of the largest count as zero
_NAMED = 1e-3  # joints that take a smaller part in a motion, of the largest, are not named in a message


def check_masses(clusters: ClusterTree, states: States, idle: Sequence[int]) -> list[str]:
    """Raises a ModelError for a robot whose articulated inertia is singular at neutral and at a random configuration.

    Args:
        states: its configurations.
        idle: links that can move alone.

    Returns:
        A warning, if the inertia is singular at the neutral configuration only.

    Raises:
        ModelError: naming the joints that nothing resists, and the bodies without mass there.
    """
    tree = states.tree
    if all(_regular(link.inertia.matrix()) for link in tree.links[1:]):
        return []
    unresisted = _unresisted(clusters, states, states.neutral)
    if unresisted is None:
        return []
    joints, light = unresisted
    if _unresisted(clusters, states, states.random(np.random.default_rng(0))) is None:
        return [f"nothing resists a motion of joint {listed(joints)} at the neutral configuration"]
    locked = ", or lock it by lock_idle=True" if set(light) & set(idle) else ""
    raise ModelError(
        f"nothing resists a motion of joint {listed(joints)}: body {listed(tree.links[i].name for i in light)} has too "
        f"little inertia, and so has what moves with it; give it mass and inertia, or its joint an armature{locked}"
    )


def _unresisted(clusters: ClusterTree, states: States, p: np.ndarray) -> tuple[list[str], list[int]] | None:
    """The joints of a cluster whose articulated inertia is singular, and its links that are too light.

    This is the backward pass of the articulated-body algorithm in numbers [001, eq. 49, 55, 56], along with composite
    inertias, for which all joints are locked. An articulated inertia is singular if it vanishes relative to the latter.
    """
    tree = states.tree
    rigid = [block([tree.links[i].inertia.matrix() for i in cluster.bodies]) for cluster in clusters.clusters]
    articulated = list(rigid)
    for k in reversed(range(1, len(clusters.clusters))):
        joint = ClusterJoint(clusters, states.embedding, p, k)
        S, G, parent = joint.motion_subspace(), joint.G, clusters.clusters[k].parent
        armature = np.concatenate([tree.links[link].kind.armature for link in joint.links])
        U, of_joints = articulated[k] @ S, G.T @ (armature[:, None] * G)
        D, scale = S.T @ U + of_joints, np.linalg.eigvalsh(S.T @ rigid[k] @ S + of_joints)[-1]
        smallest, directions = np.linalg.eigh(D)
        if smallest[0] <= _NOTHING * scale:
            idle = np.abs(directions[:, 0])
            entries = joint.columns[joint.independent][idle > _NAMED * idle.max()]
            joints = list(dict.fromkeys(tree.joint_of(int(entry)) for entry in entries))
            return joints, [link for link in joint.links if not _regular(tree.links[link].inertia.matrix())]
        X = joint.transform()
        articulated[parent] = articulated[parent] + X.transform_inertia(articulated[k] - U @ np.linalg.solve(D, U.T))
        rigid[parent] = rigid[parent] + X.transform_inertia(rigid[k])
    return None


def _regular(A: np.ndarray) -> bool:
    eigenvalues = np.linalg.eigvalsh(A)
    return bool(eigenvalues[0] > _NOTHING * eigenvalues[-1])
