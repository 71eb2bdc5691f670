"""Struts: their lengths, forces and springs, in a plane and in space, on whatever carries them."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.mechanisms import PosedBuilder, Spring, StrutBuilder
from coupler.model import ModelError, Revolute, Universal
from coupler.rotation import about_z


def lid(at: tuple[float, float, float] = (0.1, 0, -0.3), **options: object) -> StrutBuilder:
    b = StrutBuilder("lid")
    b.body("lid", mass=4.0, centre=(0.3, 0, 0), inertia=(0.02, 0.12, 0.14))
    b.joint("hinge", Revolute(axis=(0, -1, 0)), "ground", "lid", start=[0.3], turned=about_z(0.4))
    b.strut("lift", "ground", "lid", at=about_z(0.4) @ at, meets=(0.4, 0, 0), **options)  # type: ignore[arg-type]
    return b


ACROSS = about_z(0.4) @ (0, 1, 0)


@pytest.mark.parametrize("axis", [ACROSS, None])
@pytest.mark.parametrize("masses", [(0.0, 0.0), pytest.param((0.4, 0.1), marks=pytest.mark.long)])
def test_length_and_force_are_those_of_geometry(axis: object, masses: tuple[float, float]) -> None:
    robot = lid(axis=axis, masses=masses, actuated=True).build()
    assert (robot.nv, robot.actuator_names, robot.mass) == (1, ["lift"], pytest.approx(4.0 + sum(masses)))
    for angle in (0.3, 0.7, -0.2):
        q = robot.pack_q({"hinge": angle})
        pin, foot = 0.4 * np.array([np.cos(angle), np.sin(angle)]), np.array([0.1, -0.3])
        length = np.linalg.norm(pin - foot)
        assert coupler.actuator_positions(robot, q)[0] == pytest.approx(length, abs=1e-10)
        along = (pin - foot) / length
        arm = pin[0] * along[1] - pin[1] * along[0]
        weight = 9.81 * 4.0 * 0.3 * np.cos(angle)
        if not any(masses):
            assert coupler.motor_forces(robot, q, np.zeros(1), np.zeros(1))[0] == pytest.approx(weight / arm, rel=1e-9)


def test_a_spring_pulls_its_ends_together() -> None:
    spring = Spring(stiffness=800.0, free_length=0.2, pretension=15.0)
    robot = lid(axis=ACROSS, spring=spring).build()
    q = robot.pack_q({"hinge": 0.5})
    pin, foot = 0.4 * np.array([np.cos(0.5), np.sin(0.5)]), np.array([0.1, -0.3])
    length = np.linalg.norm(pin - foot)
    tension = 800.0 * (length - 0.2) + 15.0
    arm = (pin[0] * (pin - foot)[1] - pin[1] * (pin - foot)[0]) / length
    tau = coupler.inverse_dynamics(robot, q, np.zeros(1), np.zeros(1))
    assert tau[0] == pytest.approx(9.81 * 4.0 * 0.3 * np.cos(0.5) + tension * arm, rel=1e-9)


def test_a_strut_in_space_has_a_universal_joint_and_a_ball() -> None:
    robot = lid(at=(0.1, 0.15, -0.3), actuated=True).build()
    assert isinstance(robot.joints[1].kind, Universal) and robot.loops[0].kind.kind == "spherical"
    assert robot.nv == 1 and not robot.idle


def test_posed_mechanisms_have_struts_too() -> None:
    b = PosedBuilder("arm")
    b.link("arm", Revolute(axis=(0, 1, 0)), "ground", (0, 0, 1), bars=[((0, 0, 1), (0.5, 0, 1))])
    b.strut("stay", "ground", "arm", at=(0, 0, 0.5), meets=(0.3, 0, 0), axis=(0, 1, 0), actuated=True)
    robot = b.build()
    assert coupler.actuator_positions(robot, robot.neutral())[0] == pytest.approx(np.hypot(0.3, 0.5))


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(ModelError, match=r"strut 'lift': its ends are 0.15 m apart along the axis of its pins"):
        lid(at=(0.1, 0.15, -0.3), axis=ACROSS)
    with pytest.raises(ModelError, match="strut 'lift': its axis has no direction"):
        lid(axis=(0, 0, 0))
    with pytest.raises(ModelError, match="both its ends are at one point"):
        lid(at=tuple(0.4 * np.array([np.cos(0.3), 0, np.sin(0.3)])))  # type: ignore[arg-type]
    b = StrutBuilder("loose")
    b.body("plate", 1.0)
    with pytest.raises(ModelError, match="body 'plate': no joint carries 'plate' yet"):
        b.strut("stay", "ground", "plate")
    b.body("other", 1.0)
    b.joint("one", Revolute(axis=(0, 0, 1)), "other", "plate")
    b.joint("two", Revolute(axis=(0, 0, 1)), "plate", "other")
    with pytest.raises(ModelError, match="go round in a circle"):
        b.pose("plate")
