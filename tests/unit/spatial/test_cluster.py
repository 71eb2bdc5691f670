"""The spatial algebra of clusters against its matrices, and against the example of 001, Fig. 5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.graph.array import nodes_of, symbols
from coupler.graph.measure import operations
from coupler.model import Helical, Joint, Prismatic, Revolute, Spherical, Universal
from coupler.model.clusters import find_clusters, joints_of_loop
from coupler.spatial import ClusterTransform, Remap, Transform, block, mirrored, split, stack
from transforms import random_transform

RNG = np.random.default_rng(2)

# 001, Fig. 5: bodies 1, 2, 3 in a loop; 4 and 5 in one on body 1; 6 on body 1 and 7 on body 2, geared.
PARENT = [0, 0, 1, 2, 1, 4, 1, 2]
TREE = find_clusters(PARENT, [joints_of_loop(PARENT, 3, 0), joints_of_loop(PARENT, 5, 1), {6, 7}])


# The transform from each body's parent to the body, and from the ground to each body.
TO_PARENT = {body: random_transform(RNG) for body in range(1, 8)}
FROM_GROUND: dict[int, Transform] = {0: Transform.identity()}
for _body in range(1, 8):
    FROM_GROUND[_body] = TO_PARENT[_body] @ FROM_GROUND[PARENT[_body]]


def between(body: int, other: int) -> Transform:
    """The transform from another body to a body."""
    return FROM_GROUND[body] @ FROM_GROUND[other].inverse()


def cluster_transform(k: int) -> ClusterTransform:
    cluster = TREE.clusters[k]
    above = TREE.clusters[cluster.parent].bodies
    pairs = list(zip(cluster.bodies, cluster.outputs, strict=True))
    return ClusterTransform([between(b, o) for b, o in pairs], [above.index(o) for _, o in pairs], len(above))


def remap(k: int) -> Remap:
    bodies = TREE.clusters[k].bodies
    parents = [bodies.index(PARENT[b]) if PARENT[b] in bodies else None for b in bodies]
    return Remap([TO_PARENT[b] for b in bodies], parents)


def assert_close(result: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(result, dtype=float), expected, rtol=1e-13, atol=1e-13)


def test_stack_and_block() -> None:
    a, b = RNG.normal(size=(2, 6))
    for part, again in zip((a, b), split(stack([a, b])), strict=True):
        np.testing.assert_array_equal(part, again)
    A, B = RNG.normal(size=(6, 1)), RNG.normal(size=(6, 3))
    expected = np.zeros((12, 4))
    expected[:6, :1], expected[6:, 1:] = A, B
    np.testing.assert_array_equal(block([A, B]), expected)


def test_transforms_between_clusters_of_the_example() -> None:
    """The matrices below eq. 18."""
    zero = np.zeros((6, 6))
    X = {(i, j): between(i, j).matrix() for i in range(1, 8) for j in range(8)}
    assert_close(cluster_transform(1).matrix(), np.block([[X[1, 0]], [X[2, 0]], [X[3, 0]]]))
    assert_close(cluster_transform(2).matrix(), np.block([[X[4, 1], zero, zero], [X[5, 1], zero, zero]]))
    assert_close(cluster_transform(3).matrix(), np.block([[X[6, 1], zero, zero], [zero, X[7, 2], zero]]))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("columns", [(), (4,)])
def test_cluster_transforms_act_as_their_matrices(k: int, columns: tuple[int, ...]) -> None:
    X = cluster_transform(k)
    n, m = len(X.transforms), X.size
    motion, force = RNG.normal(size=(6 * m, *columns)), RNG.normal(size=(6 * n, *columns))
    assert_close(X @ motion, X.matrix() @ motion)
    assert_close(X.transform_force(force), X.matrix().T @ force)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_any_symmetric_inertia_of_a_cluster_is_collected(k: int) -> None:
    X = cluster_transform(k)
    A = RNG.normal(size=(6 * len(X.transforms),) * 2)
    inertia = A @ A.T
    result = X.transform_inertia(inertia)
    np.testing.assert_allclose(result, X.matrix().T @ inertia @ X.matrix(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_remapping_is_unit_lower_triangular_and_its_dual_the_transposed_inverse(k: int) -> None:
    """Eqs. 20, 21 and 23."""
    R = remap(k)
    matrix, force = R.matrix(), R.force_matrix()
    np.testing.assert_array_equal(np.triu(matrix), np.eye(len(matrix)))
    assert_close(force, np.linalg.inv(matrix).T)
    m = RNG.normal(size=len(matrix))
    assert_close(R.motion(m), matrix @ m)
    assert_close(R.inverse_motion(R.motion(m)), m)
    assert_close(R.inverse_force(m), matrix.T @ m)
    assert_close(R.force(R.inverse_force(m)), m)


def test_remapping_matrices_of_the_example() -> None:
    """Below eq. 23."""
    one, zero = np.eye(6), np.zeros((6, 6))
    X21, X31, X32 = (between(i, j).matrix() for i, j in ((2, 1), (3, 1), (3, 2)))
    assert_close(remap(1).matrix(), np.block([[one, zero, zero], [X21, one, zero], [X31, X32, one]]))
    assert_close(remap(1).force_matrix(), np.block([[one, -X21.T, zero], [zero, one, -X32.T], [zero, zero, one]]))
    assert_close(remap(3).matrix(), np.eye(12))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_relative_motions_are_remapped(k: int) -> None:
    """Eq. 19: from motions relative to parents to motions relative to output bodies."""
    v = {body: RNG.normal(size=6) for body in range(8)}
    cluster = TREE.clusters[k]
    to_parent = stack([v[b] - TO_PARENT[b] @ v[PARENT[b]] for b in cluster.bodies])
    to_output = stack([v[b] - between(b, o) @ v[o] for b, o in zip(cluster.bodies, cluster.outputs, strict=True)])
    assert_close(remap(k).motion(to_parent), to_output)


def test_remapped_forces_are_statically_equivalent() -> None:
    """Eq. 22: forces across tree joints, or across the cluster joint, add up to the same on every body."""
    for k, cluster in enumerate(TREE.clusters[1:], start=1):
        across_joints = [RNG.normal(size=6) for _ in cluster.bodies]
        across_cluster = split(remap(k).force(stack(across_joints)))
        net = {body: np.zeros(6) for body in range(8)}
        for body, output, joint, whole in zip(
            cluster.bodies, cluster.outputs, across_joints, across_cluster, strict=True
        ):
            net[body] += joint - whole
            net[PARENT[body]] -= TO_PARENT[body].transform_force(joint)
            net[output] += between(body, output).transform_force(whole)
        for force in net.values():
            assert_close(force, np.zeros(6))


def test_subspaces_of_a_cluster_are_dual() -> None:
    """SᵀTᵃ = 1 and SᵀTᶜ = 0 for S of eq. 24 and T of eq. 30, with any G, and any P with GᵀP = 1.

    Eq. 30 prints Tᶜ as a product of matrices that do not fit. Forces that do no work are those that the tree joints
    carry, block(Tᶜ), and those on joint coordinates that the loop takes up, block(Tᵃ) Pᶜ with GᵀPᶜ = 0.
    """
    joints: list[Joint] = [Revolute(axis=(0.3, 0.4, -0.5)), Universal(), Helical(pitch=0.2)]
    q = [joint.random(RNG) for joint in joints]
    n = sum(joint.nv for joint in joints)
    G = RNG.normal(size=(n, 2))
    R = remap(1)
    S = R.motion(block([np.asarray(j.subspace(x), float) for j, x in zip(joints, q, strict=True)]) @ G)
    working = block([j.active_force_subspace(x) for j, x in zip(joints, q, strict=True)])
    carried = block([j.constraint_force_subspace(x) for j, x in zip(joints, q, strict=True)])
    P = np.linalg.pinv(G.T)
    Pc = np.linalg.svd(G, full_matrices=True)[0][:, 2:]
    Ta = R.force(working @ P)
    Tc = np.hstack([R.force(carried), R.force(working @ Pc)])
    assert_close(S.T @ Ta, np.eye(2))
    assert_close(S.T @ Tc, np.zeros((2, Tc.shape[1])))
    assert np.linalg.matrix_rank(np.hstack([Ta, Tc])) == 18


def test_the_cost_grows_with_the_bodies_not_with_their_square() -> None:
    def cost(n: int) -> int:
        X = [Transform(symbols(f"E{i}", (3, 3)), symbols(f"r{i}", 3)) for i in range(n)]
        chain = Remap(X, [None, *range(n - 1)])
        return operations(nodes_of(chain.motion(symbols("m", 6 * n)))).total()

    assert cost(8) - cost(4) == 2 * (cost(4) - cost(2))


def test_a_cluster_inertia_is_collected_symmetrically_on_nodes() -> None:
    X = ClusterTransform([Transform(symbols(f"E{i}", (3, 3)), symbols(f"r{i}", 3)) for i in range(2)], [0, 0], 1)
    result = X.transform_inertia(mirrored(symbols("I", (12, 12))))
    assert result.shape == (6, 6)


@pytest.mark.parametrize("joint", [Prismatic(axis=(1, 2, 3)), Spherical()], ids=["prismatic", "spherical"])
def test_a_cluster_of_one_body_is_that_body(joint: Joint) -> None:
    X = random_transform(RNG)
    S = np.asarray(joint.subspace(joint.neutral()), float)
    np.testing.assert_array_equal(Remap([X], [None]).motion(S), S)
    assert_close(ClusterTransform([X], [0], 1).matrix(), X.matrix())


def test_bodies_come_after_what_they_hang_on() -> None:
    X = random_transform(RNG)
    with pytest.raises(ValueError, match="must come before it in the cluster"):
        Remap([X, X], [1, None])
    with pytest.raises(ValueError, match="one of the 2 bodies of the parent cluster"):
        ClusterTransform([X], [-1], 2)
