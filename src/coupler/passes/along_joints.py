"""Products with the motion subspaces S of a cluster's bodies: forces on its joints, and motions by them.

S of a body has a column for each freedom of the cluster. In a large cluster, forces go from body to body towards those
that carry them, and motions the other way: products with each joint's own subspace and with G, which all bodies share,
are a fraction of those with every S.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.passes.body import Body
from coupler.passes.cluster import Visit
from coupler.passes.records import Array


def force_on_joints(cluster: Visit[Any, Any], forces: Mapping[Any, Array], start: Array | None = None) -> Array:
    """Σ Sᵀ f: what forces on bodies, or their columns, do to a cluster's independent joints.

    Args:
        cluster: the cluster.
        forces: by body; others have none.
        start: what the sum begins with; nothing if not given.
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
    """The same, of a cluster whose joints' motions are known as its output body sees them."""
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
    """S y: the motion of a body against its output body, by motions y of the cluster's independent joints."""
    cluster = body.cluster
    if not cluster.shape.is_large:
        return body.S @ y
    known = cluster.motions.setdefault(y.tobytes(), (y, {}))[1]  # y is kept: its nodes are named by where they are
    if body.number not in known and cluster.looped:
        path = [cluster.bodies[i] for i in cluster.shape.paths[body.number]]
        known[body.number] = body.Xo @ sum(other.motion @ (cluster.G[other.entries] @ y) for other in path)
    elif body.number not in known:
        own = body.subspace @ (cluster.G[body.entries] @ y)
        known[body.number] = own if body.parent is None else own + body.X @ across_joints(body.parent, y)
    return known[body.number]


def armature_force(cluster: Visit[Any, Any], y: Array) -> Array:
    """Gᵀ A G y: what armatures of a cluster's joints need for accelerations y of its independent ones."""
    if not cluster.shape.is_large:
        return cluster.armature @ y
    return cluster.G.T @ (cluster.armatures * (cluster.G @ y))
