"""Springs and dampers: forces from energy, and energy from forces."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import jacobian, jvp
from coupler.model import ModelError
from coupler.model.elements import PointElement
from coupler.spatial import Transform
from transforms import moved, random_transform

RNG = np.random.default_rng(4)


def element(**properties: float) -> PointElement:
    return PointElement("spring", "a", "b", (0.1, 0.2, -0.3), (0.4, -0.1, 0.2), **properties)


A, B = random_transform(RNG), random_transform(RNG)
VA, VB = RNG.normal(size=(2, 6))
SPRINGS = {
    "with a free length": element(stiffness=30.0, free_length=0.4),
    "wound with pretension": element(stiffness=30.0, free_length=0.4, pretension=5.0),
    "of no free length": element(stiffness=30.0),
    "of constant force": element(pretension=5.0),
}


@pytest.mark.parametrize("name", SPRINGS)
def test_a_springs_force_is_the_slope_of_its_energy(name: str) -> None:
    spring = SPRINGS[name]
    world = spring.force(A, np.zeros(6), B, np.zeros(6))
    first = -jacobian(lambda twist: spring.energy(moved(A, twist), B), np.zeros(6))
    second = -jacobian(lambda twist: spring.energy(A, moved(B, twist)), np.zeros(6))
    np.testing.assert_allclose(A.inverse_force(world), first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(B.inverse_force(-world), second, rtol=0, atol=1e-12)


def test_power_is_the_loss_of_energy_and_what_the_damper_takes() -> None:
    both = element(stiffness=30.0, free_length=0.4, damping=2.0)
    force = both.force(A, VA, B, VB)
    power = A.inverse_force(force) @ VA - B.inverse_force(force) @ VB
    stored = jvp(lambda t: both.energy(moved(A, VA * t), moved(B, VB * t)), 0.0, 1.0)
    rate = jvp(lambda t: both.length(moved(A, VA * t), moved(B, VB * t)), 0.0, 1.0)
    assert power == pytest.approx(float(-stored - 2.0 * rate**2), abs=1e-12)


def test_the_tension_is_that_of_the_equation() -> None:
    """T = k (L − L₀) + T₀, along the line between the points. [004, eq. 35]"""
    spring = PointElement("s", "a", "b", (0, 0, 0), (0, 0, 0), stiffness=100.0, free_length=0.3, pretension=2.0)
    far = Transform.translation(np.array([0.5, 0.0, 0.0]))
    np.testing.assert_allclose(
        spring.force(Transform.identity(), np.zeros(6), far, np.zeros(6)), [0, 0, 0, 22.0, 0, 0], rtol=1e-14
    )


def test_a_spring_of_no_length_may_be_closed() -> None:
    spring = PointElement("s", "a", "b", (0, 0, 0), (0, 0, 0), stiffness=100.0)
    same = Transform.identity()
    np.testing.assert_array_equal(spring.force(same, np.zeros(6), same, np.zeros(6)), np.zeros(6))


def test_where_the_points_meet_nothing_is_undefined() -> None:
    same = Transform.identity()
    for properties in ({"stiffness": 1.0, "damping": 1.0}, {"damping": 1.0}, {"stiffness": 1.0, "free_length": 0.1}):
        stretched = PointElement("s", "a", "b", (0, 0, 0), (0, 0, 0), **properties)
        np.testing.assert_array_equal(stretched.force(same, VA, same, VB), np.zeros(6))
    plain = PointElement("s", "a", "b", (0, 0, 0), (0, 0, 0), stiffness=2.0)
    slope = jacobian(lambda twist: plain.energy(same, moved(same, twist)), np.zeros(6))
    np.testing.assert_array_equal(slope, np.zeros(6))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"stiffness": -1.0}, "spring 'spring': its stiffness must be a finite number, 0 or more"),
        ({"damping": np.nan}, "its damping must be a finite"),
        ({"stiffness": 1.0, "free_length": -0.1}, "its free_length must be a finite number, 0 or more"),
        ({"pretension": np.inf}, "its pretension must be a finite"),
        ({}, "it has neither stiffness nor pretension nor damping"),
    ],
)
def test_what_an_element_cannot_be(properties: dict[str, float], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        element(**properties)


def test_an_element_joins_two_bodies_at_points() -> None:
    with pytest.raises(ModelError, match="both its ends are on body 'a'"):
        PointElement("s", "a", "a", (0, 0, 0), (0, 0, 1), stiffness=1.0)
    with pytest.raises(ModelError, match="its second point must be 3 finite numbers"):
        PointElement("s", "a", "b", (0, 0, 0), (0, 1), stiffness=1.0)
