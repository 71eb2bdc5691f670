"""Loop joints and couplings: closed where they should be, and free where they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.graph import jacobian, second_directional
from coupler.mechanisms import gear
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from coupler.model.loops import Coupling, LoopJoint, Rod
from coupler.rotation import about_axis
from coupler.spatial import Transform
from transforms import moved, random_transform

X0 = Transform.identity()
SLANTED = (0.3, -0.5, 0.7)
KINDS: dict[str, Joint] = {
    "weld": Fixed(),
    "revolute": Revolute(),
    "revolute slanted": Revolute(axis=SLANTED),
    "continuous": Continuous(axis=(1, 0, 0)),
    "prismatic": Prismatic(axis=SLANTED),
    "helical": Helical(axis=SLANTED, pitch=0.13),
    "cylindrical": Cylindrical(axis=SLANTED),
    "universal": Universal(),
    "universal slanted": Universal(first=SLANTED, second=(0.9, 0.1, -0.2)),
    "planar": Planar(normal=SLANTED),
    "ball": Spherical(),
    "free": Free(),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", KINDS)
def test_a_loop_joint_takes_away_what_its_joint_does_not_allow(name: str, seed: int) -> None:
    """It is closed along the joint's motion; its Jacobian K has one row a constraint, full rank, and K S = 0."""
    kind = KINDS[name]
    q = kind.random(np.random.default_rng(seed))
    X = kind.transform(q)
    rows = np.asarray(kind.residual(X), float)
    assert rows.shape == (6 - kind.nv,)
    np.testing.assert_allclose(rows, 0.0, rtol=0, atol=1e-14)
    K = jacobian(lambda twist: kind.residual(moved(X, twist)), np.zeros(6)).reshape(6 - kind.nv, 6)
    assert np.linalg.matrix_rank(K, tol=1e-6) == 6 - kind.nv
    np.testing.assert_allclose(K @ np.asarray(kind.subspace(q), float), 0.0, rtol=0, atol=1e-13)


def test_a_rod_keeps_a_distance_and_nothing_else() -> None:
    X = Transform(about_axis(np.array([0, 0, 1.0]), 0.4), np.array([0.3, 0.0, 0.4]))
    np.testing.assert_allclose(Rod(0.5).residual(X), [0.0], atol=1e-16)
    np.testing.assert_allclose(Rod(0.4).residual(X), [(0.25 - 0.16) / 0.8])  # of first order: the excess length
    K = jacobian(lambda twist: Rod(0.5).residual(moved(X, twist)), np.zeros(6))
    np.testing.assert_allclose(K[0, :3], 0.0, atol=1e-16)
    assert np.linalg.norm(K[0, 3:]) == pytest.approx(1.0)


@pytest.mark.parametrize("name", KINDS)
def test_the_frames_of_a_loop_joint_are_where_it_says(name: str) -> None:
    """X between the bodies is such that the held frames are a joint position apart."""
    rng = np.random.default_rng(7)
    kind = KINDS[name]
    first, second = random_transform(rng), random_transform(rng)
    loop = LoopJoint("closure", kind, "a", "b", first, second)
    X = second.inverse() @ kind.transform(kind.random(rng)) @ first
    np.testing.assert_allclose(np.asarray(loop.residual(X), float), 0.0, rtol=0, atol=1e-13)


def test_a_coupling_by_its_solution_or_by_its_residual() -> None:
    solved = Coupling("gears", ("link", "rotor"), ("link",), gear(6.0))
    np.testing.assert_allclose(solved.residual(np.array([0.5, 3.0])), [0.0])
    np.testing.assert_allclose(solved.residual(np.array([0.5, 3.5])), [0.5])
    implicit = Coupling("gears", ("link", "rotor"), (), lambda q: q[1] - 6.0 * q[0])
    np.testing.assert_allclose(implicit.residual(np.array([0.5, 3.5])), [0.5])
    assert solved.solved and not implicit.solved


def test_a_users_own_function_is_differentiated() -> None:
    """K G = 0 and K g = k for γ and the φ that it solves. [001, §II-B]"""

    def solution(y: Any) -> Any:
        return np.array([y[0], np.sin(y[0]) * y[1], y[1]])

    coupling = Coupling("cam", ("a", "b", "c"), ("a", "c"), solution)
    y, yd = np.array([0.4, -0.7]), np.array([1.3, 0.6])
    q, G, g = solution(y), jacobian(solution, y), second_directional(solution, y, yd)
    K = jacobian(coupling.residual, q)
    k = -second_directional(coupling.residual, q, G @ yd)
    np.testing.assert_allclose(K @ G, 0.0, atol=1e-15)
    np.testing.assert_allclose(K @ g, k, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rod(0.0), "rod: its length must not be zero"),
        (lambda: Rod(np.nan), "rod: its length must be a finite number"),
        (lambda: Coupling("c", ("a", "a"), (), gear(1.0)), "coupling 'c': joints names something twice, in a, a"),
        (lambda: Coupling("c", ("a", "b"), ("d",), gear(1.0)), "independent joint 'd' is not among its joints"),
        (lambda: Coupling("c", ("a",), (), gear(1.0)), "must relate two joints or more"),
        (lambda: Coupling("c", ("a", "b"), ("a", "b"), gear(1.0)), "and leave one dependent"),
        (lambda: Coupling("c", ("rotor", "link"), ("link",), gear(6.0)), "changes the independent joint 'link'"),
        (lambda: Coupling("c", ("a", "b", "d"), ("a",), gear(6.0)), "must give 3 positions, .* order 'a', 'b', 'd'"),
        (lambda: Coupling("c", ("a", "b"), ("a",), lambda y: y - 1.0), "leave `independent` out"),
        (lambda: Coupling("c", ("a", "b", "d"), ("a", "b"), gear(6.0)), "its function fails for 2 independent"),
        (lambda: Coupling("c", ("a", "b"), ("a",), None), "its function must be callable"),  # type: ignore[arg-type]
        (lambda: Coupling("c", "ab", ("a",), gear(6.0)), "joints must be a list of names"),  # type: ignore[arg-type]
        (lambda: LoopJoint("l", Fixed(), "a", "a", X0, X0), "loop 'l': both its ends are on body 'a'"),
        (lambda: LoopJoint("l", "weld", "a", "b", X0, X0), "its kind must be a joint, a Rod or Held"),  # type: ignore[arg-type]
        (lambda: LoopJoint("l", Fixed(), "a", "b", X0, None), "its frames must be Transforms"),  # type: ignore[arg-type]
    ],
)
def test_what_a_loop_cannot_be(make, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()
