"""Differentials of legs: closed forms that make their loops zero, and belong to the pose in which a leg stands."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.mechanisms import HipDifferential, KneeAnkleDifferential
from coupler.model import ModelError, Robot, RobotBuilder
from coupler.robots.tello import HIP, HIP_UPRIGHT, KNEE_ANKLE


@pytest.mark.parametrize("differential", [HIP, KNEE_ANKLE])
def test_a_closed_form_closes_its_loop(differential: HipDifferential | KneeAnkleDifferential) -> None:
    for y in np.random.default_rng(0).uniform(-0.4, 0.4, (200, 2)):
        q = differential(y)
        assert np.array_equal(q[2:], y) and np.abs(differential.opening(q)).max() < 1e-15


def test_an_upright_leg_is_at_rest() -> None:
    assert HIP(np.zeros(2))[:2] == pytest.approx([HIP_UPRIGHT, HIP_UPRIGHT], abs=1e-12)
    tello = coupler.robots.load("tello")
    positions = tello.joint_positions(tello.neutral())
    knee, ankle = positions["left-thigh-to-shin"], positions["left-shin-to-foot"]
    rotors = [positions[f"left-thigh-to-knee-ankle-rotor-{i}"].item() for i in (1, 2)]
    assert KNEE_ANKLE(np.array([knee, ankle]))[:2] == pytest.approx(rotors, abs=1e-9)


def tello(solved: bool) -> Robot:
    """The bundled robot, with the joints of its legs independent, and their rotors by γ or φ."""
    bundled, b = coupler.robots.load("tello"), RobotBuilder("tello")
    b.attach(bundled)
    for joint in b._joints.values():
        object.__setattr__(joint, "independent", "rotor" not in joint.name)
        object.__setattr__(joint, "actuated", False)
    for name, coupling in list(b._couplings.items()):
        if "differential" in name and solved:
            function = HIP if "hip" in name else KNEE_ANKLE
            b._couplings[name] = type(coupling)(name, coupling.joints, coupling.joints[2:], function)
    return b.build()


def test_both_make_the_same_robot() -> None:
    solved, unsolved = tello(solved=True), tello(solved=False)
    assert solved.nv == unsolved.nv and solved.nq == unsolved.nq - 8
    rng = np.random.default_rng(0)
    for _ in range(10):
        q = solved.integrate(solved.neutral(), rng.uniform(-0.2, 0.2, solved.nv))
        v, a = rng.normal(size=(2, solved.nv))
        p = unsolved.pack_q(solved.joint_positions(q))
        mine, theirs = coupler.inverse_dynamics(solved, q, v, a), coupler.inverse_dynamics(unsolved, p, v, a)
        assert np.allclose(mine, theirs, rtol=1e-10, atol=1e-11 * np.abs(theirs).max())


def test_lengths_must_be_above_zero() -> None:
    with pytest.raises(ModelError, match="hip differential: rod must be longer than 0 m, got -1"):
        HipDifferential(0.1, 0.1, 0.1, -1.0)
    with pytest.raises(ModelError, match="knee-ankle differential: lever must be longer than 0 m"):
        KneeAnkleDifferential(0.3, (0.1, 0.0), (0.1, 0.0), (0.0, 0.0), 0.2)
