"""Products with the motion subspaces S of a cluster's bodies: forces on its joints, and motions by them.

S of a body has a column for each freedom of the cluster. In a large cluster, forces are therefore summed from body to
body towards the output bodies, and motions outward from them, and multiplied by each joint's own subspace and by G of
the cluster. That takes a fraction of the products with S of every body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.passes.body import Body
from coupler.passes.cluster import Visit
from coupler.passes.records import Array


def force_on_joints(cluster: Visit[Any, Any], forces: Mapping[Any, Array], start: Array | None = None) -> Array:
    """Σ Sᵀ f: forces at a cluster's independent joints, from forces on its bodies.

    Args:
        forces: vectors of 6, or matrices of 6 rows, by body; the force on all other bodies is zero.
        start: a term to begin the sum with.
    """
    if not cluster.shape.is_large or not forces:
        return sum((body.S.T @ force for body, force in forces.items()), 0 if start is None else start)
    if cluster.looped:
        return _force_on_joints_at_output(cluster, forces, start)
    carried = dict(forces)
    on_joints: list[Array] = []
    nothing = np.zeros(np.shape(next(iter(forces.values()))))
    for body in reversed(cluster.bodies):  # children before their parents
        force = carried.get(body)
        on_joints.append(body.subspace.T @ (nothing if force is None else force))
        if force is not None and body.parent is not None:
            passed = body.X.transform_force(force)
            carried[body.parent] = carried[body.parent] + passed if body.parent in carried else passed
    total = cluster.G.T @ np.concatenate(on_joints[::-1])
    return total if start is None else start + total


def _force_on_joints_at_output(cluster: Visit[Any, Any], forces: Mapping[Any, Array], start: Array | None) -> Array:
    """`force_on_joints` for a cluster whose joints' motions are known in the frame of its output body."""
    carried: dict[int, Array] = {}
    for body, force in forces.items():
        seen = body.Xo.transform_force(force)
        for i in cluster.shape.paths[body.number]:
            carried[i] = carried[i] + seen if i in carried else seen
    nothing = np.zeros((1, *np.shape(next(iter(forces.values())))[1:]))
    on_joints = [body.motion.T @ carried[i] if i in carried else nothing for i, body in enumerate(cluster.bodies)]
    total = cluster.G.T @ np.concatenate(on_joints)
    return total if start is None else start + total


def across_joints(body: Body[Any], y: Array) -> Array:
    """S y: the motion of a body relative to its output body, for motions y of the cluster's independent joints."""
    cluster = body.cluster
    if not cluster.shape.is_large:
        return body.S @ y
    # The key has the addresses of y's nodes, so y is stored with the motions: its nodes stay alive.
    motions = cluster.motions.setdefault(y.tobytes(), (y, {}))[1]
    if body.number not in motions and cluster.looped:
        path = [cluster.bodies[i] for i in cluster.shape.paths[body.number]]
        motions[body.number] = body.Xo @ sum(other.motion @ (cluster.G[other.entries] @ y) for other in path)
    elif body.number not in motions:
        across_joint = body.subspace @ (cluster.G[body.entries] @ y)
        if body.parent is not None:
            across_joint = across_joint + body.X @ across_joints(body.parent, y)
        motions[body.number] = across_joint
    return motions[body.number]


def armature_force(cluster: Visit[Any, Any], y: Array) -> Array:
    """Gᵀ A G y: the forces that the armatures of a cluster's joints need for accelerations y of independent joints."""
    if not cluster.shape.is_large:
        return cluster.armature @ y
    return cluster.G.T @ (cluster.armatures * (cluster.G @ y))
