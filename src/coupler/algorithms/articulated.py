"""The articulated inertia of a cluster as the cluster algorithms need it: seen along its joints and from its parents.

    D = Sᵀ U with U = Iᴬ S,    Xᵀ Iᵃ X with Iᵃ = Iᴬ − U D⁻¹ Uᵀ,    Xᵀ pᵃ with pᵃ = pᴬ + U D⁻¹ u    [001, eq. 49, 55, 56]

There are three ways to the same numbers, of which a cluster takes the cheapest:

- `SingleBody`. Iᵃ is formed first and then seen from the parent: the rows that the joint moves are zero then, and X
  turns what is left. A leaf is rigid, and easily seen from elsewhere as it is: it takes the second way.
- `BodyByBody`. Every body is seen from the parent first, and with W = Xᵀ U parents feel Σ Xᵀ Iᴬ X − W D⁻¹ Wᵀ: a rotor
  beside its link costs no more than one Xᵀ I X of a rigid body.
- `JointByJoint`. A large cluster is a tree of many joints before its loops join them, and S has as many columns as
  loops leave freedoms. Composite inertias are gathered joint by joint, as in the composite-rigid-body algorithm, and H
  and F of the tree are projected at the end: D = Gᵀ H G and W = F G, in a fraction of the products. Of a large one with
  long chains, all is seen by the output bodies, and H is one product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.tree_inertia import joint_by_joint, seen_by_outputs
from coupler.forks import cached_property
from coupler.linear import Cholesky, known_value, symmetric_product
from coupler.passes import Body, Output, Visit, inertia_of_tree
from coupler.spatial import RigidInertia, mirrored

_MANY = 4  # bodies, from which on joint by joint is cheaper
_DEEP = 3  # joints between a body and its output body, on average, from which on all are better seen by the latter

Forces = Mapping[Any, Any]  # on bodies


def articulated(cluster: Visit[Any, Any], p: Forces | None = None) -> Articulated:
    """The articulated inertias of a cluster's bodies and bias forces p on them, seen the cheapest way."""
    if len(cluster.bodies) >= _MANY and not cluster.pairs:
        return JointByJoint(cluster, p or {})
    return (SingleBody if _is_single(cluster) else BodyByBody)(cluster, p or {})


def response(cluster: Visit[Any, Any], Y: Any, accelerations: Sequence[Any]) -> Any:
    """D⁻¹ Uᵀ X a: the response of a cluster's joints to accelerations a of its output bodies, by its stored Y."""
    single = _is_single(cluster)  # its Y is D⁻¹ Uᵀ, without X: see `SingleBody`
    return Y @ (cluster.bodies[0].Xo @ accelerations[0] if single else np.concatenate(accelerations))


def response_by_output(cluster: Visit[Any, Any], Y: Any) -> list[Any]:
    """Xᵀ U D⁻¹ of each output body, by the Y that the cluster remembers."""
    if _is_single(cluster):
        return [cluster.bodies[0].Xo.transform_force(Y.T)]
    return np.split(Y.T, len(cluster.outputs))


def propagated(cluster: Visit[Any, Any], output: Output[Any], Y: Any, P: Forces, z: Any) -> Any:
    """Xᵀ (P − U D⁻¹ z): forces P on bodies, and z = Sᵀ P, as an output body feels them. [001, eq. 62]

    Args:
        output: one of its output bodies.
        Y: what the cluster remembers; see `response`.
        P: forces, as columns, on those of its bodies that hang on the output body; all others are zero.
        z: Sᵀ P of all of its bodies.
    """
    released = -Y[:, 6 * output.number : 6 * output.number + 6].T @ z  # −Xᵀ U D⁻¹ z: what moving joints do not pass on
    if _is_single(cluster):
        (body,) = cluster.bodies
        return body.Xo.transform_force(P[body] + released if P else released)
    return sum((body.Xo.transform_force(force) for body, force in P.items()), released)


def _is_single(cluster: Visit[Any, Any]) -> bool:
    """Whether it is one body that carries others; see `SingleBody`."""
    return len(cluster.bodies) == 1 and cluster.bodies[0].carries


class Articulated(ABC):
    """Iᴬ of a cluster's bodies, and bias forces p on them; see the module's text.

    Attributes:
        D: Sᵀ Iᴬ S, and armatures.
    """

    cluster: Visit[Any, Any]
    D: Any

    @abstractmethod
    def force_on_joints(self) -> Any:
        """Sᵀ p."""

    @abstractmethod
    def joint_response(self, a: Any) -> Any:
        """Uᵀ X a, for an acceleration a of its only output body."""

    @abstractmethod
    def pass_on_inertia(self, D: Cholesky) -> Any:
        """Adds Xᵀ Iᵃ X to the articulated inertias of the output bodies. [001, eq. 55, 56]

        Args:
            D: the factors of D.

        Returns:
            Y, which gives D⁻¹ Uᵀ X a by `response`.
        """

    @abstractmethod
    def force_on_output(self, output: Output[Any], y0: Any) -> Any:
        """Xᵀ (p + U y₀) on an output body: Xᵀ pᵃ for y₀ = D⁻¹ u. [001, eq. 56]"""

    def pass_on_force(self, y0: Any) -> None:
        """Adds Xᵀ pᵃ to the articulated bias forces of the output bodies. [001, eq. 55]"""
        for output in self.cluster.outputs:
            output.collect(pA=self.force_on_output(output, y0))


class BodyByBody(Articulated):
    """Every body by itself, which is cheapest for few bodies.

    Attributes:
        U: Iᴬ S of each body.
    """

    def __init__(self, cluster: Visit[Any, Any], p: Forces) -> None:
        self.cluster, self.p = cluster, p
        self.U = {body: inertia_times(body, body.S) for body in cluster.bodies}
        for one, other, pair in cluster.pairs:
            self.U[one] = self.U[one] + pair.IA @ other.S
            self.U[other] = self.U[other] + pair.IA.T @ one.S
        self.D = sum((body.S.T @ self.U[body] for body in cluster.bodies), cluster.armature)

    @cached_property
    def W(self) -> list[Any]:
        """Xᵀ U of each output body, 6 × n."""
        return [sum(body.Xo.transform_force(self.U[body]) for body in output.bodies) for output in self.cluster.outputs]

    def force_on_joints(self) -> Any:
        return sum(body.S.T @ self.p[body] for body in self.cluster.bodies)

    def joint_response(self, a: Any) -> Any:
        return sum(self.U[body].T @ (body.Xo @ a) for body in self.cluster.bodies)

    def pass_on_inertia(self, D: Cholesky) -> Any:
        cluster, W = self.cluster, self.W
        Y = D.solve(np.concatenate(W).T)
        _collect_inertia(cluster, [sum(map(_seen_inertia, output.bodies)) for output in cluster.outputs], W, Y)
        for one, other, pair in cluster.pairs:
            shared = other.Xo.transform_force(one.Xo.transform_force(pair.IA).T).T  # Xᵀ I X'
            a, b = one.output.number, other.output.number
            if a == b:
                one.output.memory.IA += shared + shared.T
            else:
                cluster.output_pairs[min(a, b), max(a, b)].IA += shared if a < b else shared.T
        return Y

    def force_on_output(self, output: Output[Any], y0: Any) -> Any:
        return sum(body.Xo.transform_force(self.p[body] + self.U[body] @ y0) for body in output.bodies)


class SingleBody(BodyByBody):
    """One body that carries others: rows and columns of Iᵃ that the joint moves are zero, and X has less to do."""

    def pass_on_inertia(self, D: Cholesky) -> Any:
        (body,) = self.cluster.bodies
        U = self.U[body]
        Y = D.solve(U.T)
        Ia = body.IA - U @ Y
        moved = _unit_rows(body.S, self.cluster.armature)
        if moved:  # U are columns of Iᴬ, so that these columns of Iᵃ are zero, and its rows
            Ia = np.array([[0.0 if {i, j} & {*moved} else Ia[i, j] for j in range(6)] for i in range(6)])
        body.output.collect(IA=body.seen_by_output(Ia))
        return Y


class JointByJoint(Articulated):
    """Composite inertias of the cluster's tree, which is cheapest for many bodies.

    Attributes:
        W: F G of each output body, 6 × n.
    """

    def __init__(self, cluster: Visit[Any, Any], p: Forces, inertia: Mapping[Any, Any] | None = None) -> None:
        """Args: a cluster, forces p on its bodies, and their inertias, if not their articulated ones."""
        self.cluster, self.p = cluster, dict(p)
        if cluster.looped:
            H, F, carried = inertia_of_tree(cluster)
            self._inertia: dict[Any, Any] = {cluster.outputs[0]: carried}
            self._project(H, {cluster.outputs[0]: F})
            return
        inertia = inertia or {body: body.IA if body.carries else body.inertia for body in cluster.bodies}
        depth = sum(map(len, cluster.shape.paths)) / len(cluster.bodies)
        self._at_outputs = cluster.shape.is_large and depth > _DEEP
        self._inertia = {}
        for body in reversed(cluster.bodies):  # children before their parents
            carrier = body.parent or body.output
            if self._at_outputs:
                self._add(body, body.seen_by_output(inertia[body]))
                self._add(carrier, self._inertia[body])
            else:
                self._add(body, inertia[body])
                self._add(carrier, body.seen_by_parent(self._inertia[body]))
            if self.p:
                passed = body.X.transform_force(self.p[body])
                self.p[carrier] = self.p[carrier] + passed if carrier in self.p else passed
        self._project(*(seen_by_outputs if self._at_outputs else joint_by_joint)(cluster, self._inertia))

    def _project(self, H: Any, F: Mapping[Any, Any]) -> None:
        """Computes D and W from the joint-space inertia H of the tree and the momenta F of joints on output bodies."""
        cluster, G = self.cluster, self.cluster.G
        if cluster.shape.is_large:  # one product for all
            projected = np.concatenate([H + np.diag(cluster.armatures), *F.values()]) @ G
            HG, *self.W = np.split(projected, len(H) + 6 * np.arange(len(F)))
            self.D = mirrored(symmetric_product(G.T, HG))
        else:
            self.D = mirrored(symmetric_product(G.T, H @ G)) + cluster.armature
            self.W = [F[output] @ G for output in cluster.outputs]

    def _add(self, to: Any, inertia: Any) -> None:
        """Adds an inertia to that of a body; the sum is rigid if both are, and a matrix otherwise."""
        total = self._inertia.get(to)
        if total is not None and isinstance(total, RigidInertia) != isinstance(inertia, RigidInertia):
            total, inertia = (x.matrix() if isinstance(x, RigidInertia) else x for x in (total, inertia))
        self._inertia[to] = inertia if total is None else total + inertia

    def force_on_joints(self) -> Any:
        h = [body.subspace.T @ self.p[body] for body in self.cluster.bodies]
        return self.cluster.G.T @ np.concatenate(h)

    def joint_response(self, a: Any) -> Any:
        return self.W[0].T @ a

    def pass_on_inertia(self, D: Cholesky) -> Any:
        Y = D.solve(np.concatenate(self.W).T)
        composite = [self.on_output(output) for output in self.cluster.outputs]
        matrices = [x.matrix() if isinstance(x, RigidInertia) else x for x in composite]
        _collect_inertia(self.cluster, matrices, self.W, Y)
        return Y

    def on_output(self, output: Output[Any]) -> Any:
        """Σ Xᵀ I X: the inertia that an output body carries, rigid or as a matrix."""
        return self._inertia[output]

    def force_on_output(self, output: Output[Any], y0: Any) -> Any:
        return self.p[output] + self.W[output.number] @ y0


def _collect_inertia(cluster: Visit[Any, Any], inertia: Sequence[Any], W: Sequence[Any], Y: Any) -> None:
    """Adds Xᵀ Iᴬ X − W Y to the inertia of each output body, and −W Y to that of each two of them; Y = D⁻¹ Wᵀ."""
    for output, I, Wo in zip(cluster.outputs, inertia, W, strict=True):  # noqa: E741
        its_columns = slice(6 * output.number, 6 * output.number + 6)
        output.collect(IA=I - Wo @ Y[:, its_columns])
    for (a, b), pair in cluster.output_pairs.items():
        pair.IA -= W[a] @ Y[:, 6 * b : 6 * b + 6]


def _unit_rows(S: Any, armature: Any) -> list[int]:
    """The rows that a joint moves one by one, each by unit of its velocity; empty if it moves otherwise.

    The trace shows it: entries of S are the numbers zero and one. With an armature, D is no part of Iᴬ.
    """
    if any(known_value(x) != 0.0 for x in np.ravel(armature)):
        return []
    columns = [[known_value(x) for x in column] for column in S.T]
    units = all(column.count(0.0) == 5 and column.count(1.0) == 1 for column in columns)
    return [column.index(1.0) for column in columns] if units else []


def inertia_times(body: Body[Any], m: Any) -> Any:
    """Iᴬ m; a body that carries nothing has its own inertia."""
    return body.IA @ m if body.carries else body.inertia @ m


def _seen_inertia(body: Body[Any]) -> Any:
    """Xᵀ Iᴬ X."""
    return body.seen_by_output(body.IA) if body.carries else body.seen_by_output(body.inertia).matrix()
