"""The inertia of a cluster's tree, its loops open, from composite inertias: H of its joints, F on its output bodies.

    F_j = Iᶜ S_j,    H_ij = S_iᵀ F_j for each joint i that carries joint j

Both functions give the same numbers, to rounding. H is square over all joints of the cluster; F, for each output body,
has the momenta of joints as it sees them, 6 × joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.linear import product_where
from coupler.passes import Visit


def joint_by_joint(cluster: Visit[Any, Any], composite: Mapping[Any, Any]) -> tuple[Any, dict[Any, Any]]:
    """H and F, from the composite inertia of each body in its own frame."""
    count = len(cluster.G)
    H: Any = [[0.0] * count for _ in range(count)]
    columns: dict[Any, list[Any]] = {output: [np.zeros(6)] * count for output in cluster.outputs}
    for body in cluster.bodies:
        momentum = composite[body] @ body.subspace
        at = body
        while True:
            block = at.subspace.T @ momentum
            for (i, j), entry in zip(np.ndindex(block.shape), block.ravel(), strict=True):
                row, column = at.entries.start + i, body.entries.start + j
                H[row][column] = H[column][row] = entry
            momentum = at.X.transform_force(momentum)
            if at.parent is None:
                break
            at = at.parent
        columns[body.output][body.entries] = list(momentum.T)
    return np.array(H), {output: np.array(momenta).T for output, momenta in columns.items()}


def seen_by_outputs(cluster: Visit[Any, Any], composite: Mapping[Any, Any]) -> tuple[Any, dict[Any, Any]]:
    """H and F, from composite inertias as output bodies see them: one product of long matrices."""
    bodies = cluster.bodies
    S = [body.Xo.inverse_motion(body.subspace) for body in bodies]
    momenta = [composite[body] @ motion for body, motion in zip(bodies, S, strict=True)]
    carried = np.zeros((len(cluster.G),) * 2, bool)  # by joint: which ones are further out
    for body, path in zip(bodies, cluster.shape.paths, strict=True):
        for other in path:
            carried[bodies[other].entries, body.entries] = True
    upper = product_where(np.concatenate(S, axis=1).T, np.concatenate(momenta, axis=1), carried)
    none = np.zeros_like(carried[:6], dtype=float)
    F = {}
    for output in cluster.outputs:
        seen = [m if body.output is output else none[:, body.entries] for body, m in zip(bodies, momenta, strict=True)]
        F[output] = np.concatenate(seen, axis=1)
    return np.where(carried, upper, upper.T), F
