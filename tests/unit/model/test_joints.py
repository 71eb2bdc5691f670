"""Every kind of joint: its transform, its motion subspace and their rates agree with its integrated motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.graph import jvp
from coupler.graph.array import nodes_of, symbols
from coupler.graph.measure import operations
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
from coupler.spatial import Transform, skew

SLANTED = (0.3, -0.5, 0.7)
JOINTS: dict[str, Joint] = {
    "fixed": Fixed(),
    "revolute x": Revolute(axis=(1, 0, 0)),
    "revolute -y": Revolute(axis=(0, -1, 0)),
    "revolute slanted": Revolute(axis=SLANTED),
    "continuous": Continuous(axis=SLANTED),
    "prismatic": Prismatic(axis=SLANTED),
    "helical": Helical(axis=SLANTED, pitch=0.13),
    "helical z": Helical(pitch=-0.2),
    "cylindrical": Cylindrical(axis=SLANTED),
    "universal": Universal(),
    "universal slanted": Universal(first=SLANTED, second=(0.9, 0.1, -0.2)),
    "planar": Planar(),
    "planar slanted": Planar(normal=SLANTED),
    "spherical": Spherical(),
    "free": Free(),
}
SEEDS = range(3)


def state(joint: Joint, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return joint.random(rng), rng.normal(size=joint.nv)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", JOINTS)
def test_the_subspace_is_the_velocity_of_the_integrated_motion(name: str, seed: int) -> None:
    """Ė = −ω× E and ṙ = Eᵀ v for (ω, v) = S q̇, differentiated exactly along integrate(q, v, t)."""
    joint = JOINTS[name]
    q, v = state(joint, seed)
    X = joint.transform(q)
    w, u = np.split(joint.subspace(q) @ v, 2)
    turn = jvp(lambda t: joint.transform(joint.integrate(q, v, t)).E, 0.0, 1.0)
    shift = jvp(lambda t: joint.transform(joint.integrate(q, v, t)).r, 0.0, 1.0)
    np.testing.assert_allclose(turn, -skew(w) @ X.E, rtol=0, atol=1e-14)
    np.testing.assert_allclose(shift, X.E.T @ u, rtol=0, atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", JOINTS)
def test_the_rate_of_the_subspace(name: str, seed: int) -> None:
    joint = JOINTS[name]
    q, v = state(joint, seed)
    rate = jvp(lambda t: np.asarray(joint.subspace(joint.integrate(q, v, t)), dtype=object), 0.0, 1.0)
    np.testing.assert_allclose(joint.subspace_rate(q, v), rate, rtol=0, atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", JOINTS)
def test_integrate_and_difference_are_inverse(name: str, seed: int) -> None:
    joint = JOINTS[name]
    q, v = state(joint, seed)
    other = joint.random(np.random.default_rng(seed + 100))
    reached = joint.integrate(q, joint.difference(q, other))
    for a, b in zip(_pose(joint.transform(reached)), _pose(joint.transform(other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
    np.testing.assert_allclose(joint.difference(q, joint.integrate(q, v, 0.5)), 0.5 * v, rtol=0, atol=1e-13)
    np.testing.assert_allclose(joint.integrate(q, v, 0.0), q, rtol=0, atol=1e-15)


def _pose(X: Transform) -> tuple[Any, Any]:
    return X.E, X.r


@pytest.mark.parametrize("name", JOINTS)
def test_two_steps_are_one(name: str) -> None:
    joint = JOINTS[name]
    q, v = state(joint, 4)
    halfway = joint.integrate(q, v, 0.2)
    one, two = joint.integrate(q, v, 0.5), joint.integrate(halfway, v, 0.3)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", JOINTS)
def test_forces_are_split_into_those_that_work_and_those_that_do_not(name: str) -> None:
    """SᵀTᵃ = 1 and SᵀTᶜ = 0, and together they are all forces. [001, eq. 9]"""
    joint = JOINTS[name]
    q, _ = state(joint, 5)
    S = np.asarray(joint.subspace(q), dtype=float).reshape(6, joint.nv)
    Ta, Tc = joint.active_force_subspace(q), joint.constraint_force_subspace(q)
    np.testing.assert_allclose(S.T @ Ta, np.eye(joint.nv), rtol=0, atol=1e-14)
    np.testing.assert_allclose(S.T @ Tc, np.zeros((joint.nv, 6 - joint.nv)), rtol=0, atol=1e-14)
    assert np.linalg.matrix_rank(np.hstack([Ta, Tc])) == 6


@pytest.mark.parametrize("name", JOINTS)
def test_at_the_neutral_position_the_frames_coincide(name: str) -> None:
    joint = JOINTS[name]
    np.testing.assert_allclose(joint.transform(joint.neutral()).matrix().astype(float), np.eye(6), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["spherical", "free"])
def test_quaternions_stay_unit(name: str) -> None:
    joint = JOINTS[name]
    q, v = state(joint, 6)
    for _ in range(1000):
        q = joint.integrate(q, 10 * v, 0.01)
    assert np.linalg.norm(q[-4:]) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(np.linalg.norm(joint.normalize(3.0 * q)[-4:]), 1.0, atol=1e-15)


def test_a_free_body_follows_its_screw() -> None:
    """Forwards at 1 m/s while turning left at 1 rad/s for half a turn: it stands 2 m to the left, facing back."""
    q = Free().integrate(Free().neutral(), np.array([0, 0, 1.0, 1.0, 0, 0]), np.pi)
    np.testing.assert_allclose(q, [0, 2, 0, 0, 0, 0, 1], rtol=0, atol=1e-15)


def test_aligned_axes_give_exact_zeros() -> None:
    q = symbols("q", 1)
    E = nodes_of(Revolute(axis=(0, 0, -1)).transform(q).E)
    assert sum(node.op == "constant" for node in E) == 5
    assert operations(E) == {"sin": 1, "cos": 1}


def test_directions_come_first() -> None:
    """What a joint is about may be given without its name, as the length of a rod may."""
    for joint in (Revolute, Continuous, Prismatic, Helical, Cylindrical):
        np.testing.assert_array_equal(joint((0, 2, 0)).axis, [0, 1, 0])
    assert Helical((0, 0, 1), 0.1).pitch == 0.1
    np.testing.assert_array_equal(Planar((0, 1, 0)).normal, [0, 1, 0])
    np.testing.assert_array_equal(Universal((0, 1, 0), (1, 0, 0)).second, [1, 0, 0])
    with pytest.raises(ModelError, match="its axis must be 3 finite numbers, got 'y'"):
        Revolute("y")
    with pytest.raises(TypeError):
        Revolute((0, 1, 0), 5.0)  # type: ignore[misc]


@pytest.mark.parametrize("axis", [(1, 1e-8, 0), (1, 1.4e-8, 1e-8), (1e-9, 1, 0), (1, 2e-17, 0)])
def test_an_axis_near_one_of_coordinates_is_not_taken_for_it(axis: tuple[float, ...]) -> None:
    joint = Revolute(axis=axis)
    E = joint.transform(np.array([1.0])).E
    np.testing.assert_allclose(E @ joint.axis, joint.axis, rtol=0, atol=1e-15)


def test_a_joint_is_frozen() -> None:
    axis = np.array([0.0, 0.0, 1.0])
    joint = Revolute(axis=axis)
    axis[:] = [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(joint.axis, [0, 0, 1])
    for array in (joint.axis, joint.lower, joint.rest, joint.damping):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_tiny_and_huge_axes_have_a_direction() -> None:
    for scale in (1e-200, 1e-160, 1e200):
        np.testing.assert_allclose(Revolute(axis=np.array([1, 2, 2]) * scale).axis, [1 / 3, 2 / 3, 2 / 3], rtol=1e-15)


def test_an_axis_is_made_unit() -> None:
    np.testing.assert_allclose(Revolute(axis=(3, 0, 4)).axis, [0.6, 0.0, 0.8])


def test_random_positions_keep_the_limits() -> None:
    rng = np.random.default_rng(0)
    for joint, lower, upper in (
        (Revolute(lower=-0.2, upper=0.1), -0.2, 0.1),
        (Prismatic(lower=5.0), 5.0, np.inf),
        (Prismatic(upper=-5.0), -np.inf, -5.0),
        (Cylindrical(lower=[-0.1, 2.0], upper=[0.1, 3.0]), [-0.1, 2.0], [0.1, 3.0]),
    ):
        samples = np.array([joint.random(rng) for _ in range(50)])
        assert (samples >= lower).all()
        assert (samples <= upper).all()
        assert samples.std() > 0


@pytest.mark.parametrize("name", JOINTS)
def test_a_spring_is_the_slope_of_its_energy(name: str) -> None:
    """Also where the spring of a ball or a floating body is stiffer along one axis than along another."""
    joint = JOINTS[name]
    rng = np.random.default_rng(9)
    stiffness, rest = rng.uniform(1.0, 9.0, joint.nv), joint.random(rng)
    q, v = state(joint, 9)

    def energy(t: Any) -> Any:
        deflection = joint.difference(rest, joint.integrate(q, v, t))
        return 0.5 * (stiffness * deflection) @ deflection

    deflection = joint.difference(rest, q)
    force = joint.along_velocity(deflection, stiffness * deflection)
    np.testing.assert_allclose(force @ v, jvp(energy, 0.0, 1.0), rtol=0, atol=1e-12)


def test_properties_are_spread_over_the_freedoms() -> None:
    joint = Universal(damping=0.5, armature=[0.1, 0.2])
    np.testing.assert_array_equal(joint.damping, [0.5, 0.5])
    np.testing.assert_array_equal(joint.armature, [0.1, 0.2])
    np.testing.assert_array_equal(Spherical(stiffness=1.0).rest, [1, 0, 0, 0])
    np.testing.assert_array_equal(Spherical(rest=[2, 0, 0, 0]).rest, [1, 0, 0, 0])


def test_a_joint_prints_what_is_special_about_it() -> None:
    assert repr(Revolute()) == "Revolute()"
    assert repr(Revolute(axis=(1, 0, 0), damping=0.5)) == "Revolute(damping=[0.5], axis=[1., 0., 0.])"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Revolute(axis=(0, 0, 0)), "revolute joint: its axis must not be zero"),
        (lambda: Prismatic(axis=(0, 1)), "prismatic joint: its axis must be 3 finite numbers"),
        (lambda: Revolute(axis=(0, np.nan, 1)), "its axis must be 3 finite numbers"),
        (lambda: Universal(first=(1, 0, 0), second=(-2, 0, 0)), "its two axes are parallel"),
        (lambda: Revolute(damping=-1.0), "damping must be a finite number, 0 or more, got -1.0"),
        (lambda: Revolute(armature=np.nan), "armature must be a finite number"),
        (lambda: Revolute(stiffness=[1.0, 2.0]), "stiffness must be a finite number"),
        (lambda: Revolute(friction="much"), "friction must be a finite number"),
        (lambda: Revolute(lower=2.0, upper=1.0), "nothing lies between its limits"),
        (lambda: Revolute(lower=np.nan), "lower must be a number"),
        (lambda: Continuous(upper=1.0), "continuous joint: it has no position limits"),
        (lambda: Spherical(upper=1.0), "limits of its position have no meaning"),
        (lambda: Helical(pitch=np.inf), "its pitch must be a finite number"),
        (lambda: Free(rest=[0.0]), "rest must be 7 finite numbers"),
        (lambda: Spherical(rest=[0, 0, 0, 0]), "has no quaternion of finite length"),
        (lambda: Revolute(effort_limit=-3.0), "effort_limit must be a number, 0 or more"),
    ],
)
def test_what_a_joint_cannot_be(make, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()
