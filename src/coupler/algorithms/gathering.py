"""What a cluster weighs: the inertias of its bodies and the forces on them, gathered for its joints and output bodies.

Of a small cluster, body by body: U = Iᴬ S, D = Sᵀ U, W = Xᵀ U [001, eq. 49, 55]. A large one is a tree of many joints
before its loops join them, and S has as many columns as the loops leave freedoms. There composite inertias are gathered
joint by joint, as in the composite-rigid-body algorithm for trees, and H and F of the tree are projected at the end:
D = Gᵀ H G and W = F G, which is the same in a fraction of the products.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from coupler.passes import Body, Cluster, Output
from coupler.spatial import RigidInertia, mirrored

__all__ = ["ByBody", "ByJoint", "gathered", "inertia_times", "on"]

_LARGE = 4  # bodies

Forces = Mapping[Any, Any]  # on bodies


def gathered(cluster: Cluster, p: Forces | None = None) -> ByBody | ByJoint:
    """The inertias of a cluster and the bias forces on its bodies, gathered the cheaper way."""
    many = len(cluster.bodies) >= _LARGE and not cluster.pairs
    return (ByJoint if many else ByBody)(cluster, p or {})


class ByBody:
    """Body by body.

    Attributes:
        U: Iᴬ S of each body.
        D: Sᵀ Iᴬ S, and armatures.
    """

    def __init__(self, cluster: Cluster, p: Forces) -> None:
        self.cluster, self.p = cluster, p
        self.U = {body: inertia_times(body, body.S) for body in cluster.bodies}
        for one, other, pair in cluster.pairs:
            self.U[one] = self.U[one] + pair.IA @ other.S
            self.U[other] = self.U[other] + pair.IA.T @ one.S
        self.D: Any = sum((body.S.T @ self.U[body] for body in cluster.bodies), cluster.armature)

    @cached_property
    def W(self) -> list[Any]:
        """Xᵀ U of each output body, 6 × n."""
        parts = self.cluster.outputs
        return [sum(body.Xo.transform_force(self.U[body]) for body in on(self.cluster, output)) for output in parts]

    def felt(self) -> Any:
        """Sᵀ p: bias forces, by independent velocities."""
        return sum(body.S.T @ self.p[body] for body in self.cluster.bodies)

    def answer(self, a: Any) -> Any:
        """Uᵀ X a: what an acceleration of its only output body asks of independent velocities."""
        return sum(self.U[body].T @ (body.Xo @ a) for body in self.cluster.bodies)

    def inertia(self, output: Output) -> Any:
        """Σ Xᵀ Iᴬ X."""
        return sum(weight(body) for body in on(self.cluster, output))

    def force(self, output: Output, ydd: Any) -> Any:
        """Σ Xᵀ (p + U ÿ)."""
        own = on(self.cluster, output)
        return sum(body.Xo.transform_force(self.p[body] + self.U[body] @ ydd) for body in own)


class ByJoint:
    """Joint by joint; see the module's text.

    Attributes:
        D: Gᵀ H G, and armatures.
        W: F G of each output body, 6 × n.
    """

    def __init__(self, cluster: Cluster, p: Forces) -> None:
        self.cluster = cluster
        self.p = dict(p)
        self._inertia: dict[Body | Output, Any] = {}
        for body in reversed(cluster.bodies):  # children before their parents
            above = body.parent or body.output
            self._add(body, body.IA if body.carries else body.inertia)
            self._add(above, body.seen_by_parent(self._inertia[body]))
            if self.p:
                passed = body.X.transform_force(self.p[body])
                self.p[above] = self.p[above] + passed if above in self.p else passed
        H, F = self._of_the_tree()
        G = cluster.G
        HG = H @ G
        n = G.shape[1]
        upper = {(i, j): G[:, i] @ HG[:, j] for i in range(n) for j in range(i, n)}
        self.D = mirrored(np.array([[upper.get((i, j), 0.0) for j in range(n)] for i in range(n)])) + cluster.armature
        self.W = [F[output] @ G for output in cluster.outputs]

    def _add(self, to: Body | Output, inertia: Any) -> None:
        have = self._inertia.get(to)
        if have is not None and isinstance(have, RigidInertia) != isinstance(inertia, RigidInertia):
            have, inertia = (x.matrix() if isinstance(x, RigidInertia) else x for x in (have, inertia))
        self._inertia[to] = inertia if have is None else have + inertia

    def _of_the_tree(self) -> tuple[Any, dict[Output, Any]]:
        """H of the joints as if no loop joined them, and F, their momenta seen from the output bodies."""
        count = len(self.cluster.G)
        H: Any = [[0.0] * count for _ in range(count)]
        columns: dict[Output, list[Any]] = {output: [np.zeros(6)] * count for output in self.cluster.outputs}
        for body in self.cluster.bodies:
            momentum = self._inertia[body] @ body.subspace
            at: Body = body
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
        return np.array(H), {output: np.array(own).T for output, own in columns.items()}

    def felt(self) -> Any:
        """Gᵀ Sᵢᵀ p: bias forces, by independent velocities."""
        h = [body.subspace.T @ self.p[body] for body in self.cluster.bodies]
        return self.cluster.G.T @ np.concatenate(h)

    def answer(self, a: Any) -> Any:
        """Wᵀ a: what an acceleration of its only output body asks of independent velocities."""
        return self.W[0].T @ a

    def inertia(self, output: Output) -> Any:
        """Σ Xᵀ Iᴬ X."""
        found = self._inertia[output]
        return found.matrix() if isinstance(found, RigidInertia) else found

    def force(self, output: Output, ydd: Any) -> Any:
        """Σ Xᵀ (p + U ÿ)."""
        return self.p[output] + self.W[output.number] @ ydd


def on(cluster: Cluster, output: Output) -> list[Body]:
    """The bodies of a cluster that hang on one of its output bodies."""
    return [body for body in cluster.bodies if body.output is output]


def inertia_times(body: Body, m: Any) -> Any:
    """Iᴬ m; a body that carries nothing has its own inertia."""
    return body.IA @ m if body.carries else body.inertia @ m


def weight(body: Body) -> Any:
    """Xᵀ Iᴬ X."""
    return body.seen_by_output(body.IA) if body.carries else body.seen_by_output(body.inertia).matrix()
