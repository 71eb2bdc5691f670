"""Batches of simulations, against one at a time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coupler
from coupler import ModelError, ModelWarning, Robot, RobotBuilder, Simulation, rollout
from coupler.model import Revolute
from coupler.simulate.energy_watch import EVERY


def standing() -> tuple[Robot, np.ndarray]:
    robot = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
    bent = {"hip": -0.8, "knee": 1.6}
    legs = {name: angle for name in robot.independent_joints for part, angle in bent.items() if part in name}
    return robot, robot.pack_q({**legs, "floating_base": [0, 0, 0.284, 1, 0, 0, 0]})


def test_each_state_goes_as_it_would_alone() -> None:
    robot, q = standing()
    rng = np.random.default_rng(0)
    q0 = robot.integrate(q, 0.02 * rng.normal(size=(9, robot.nv)))
    q0[:, 2] += 0.03
    v0, controls = 0.3 * rng.normal(size=(9, robot.nv)), rng.normal(size=(9, 20, robot.nv))
    controls[..., :6] = 0.0
    found = rollout(robot, q0, v0, controls, 2e-3, hold=3, contacts="*foot*", forces=True)
    assert found.q.shape == (9, 21, robot.nq)
    assert found.forces is not None
    assert found.forces.shape == (9, 20, 4, 3)
    assert found.forces.max() > 0.0
    assert found.times[-1] == pytest.approx(0.12)
    for i in (0, 4, 8):
        alone = Simulation(robot, 2e-3, q=q0[i], v=v0[i], contacts="*foot*")
        for t in range(20):
            statuses = []
            for _ in range(3):
                alone.step(controls[i, t])
                statuses.append(alone.status)
            assert found.sweeps[i, t] == max(status.sweeps + status.iterations for status in statuses)
            assert found.touching[i, t] == statuses[-1].contacts
            np.testing.assert_array_equal(found.q[i, t + 1], alone.q)
            np.testing.assert_array_equal(found.v[i, t + 1], alone.v)
            np.testing.assert_allclose(found.forces[i, t], alone.contact_forces, atol=1e-12)


def test_leading_dimensions_are_broadcast() -> None:
    robot, q = standing()
    controls = np.zeros((5, robot.nv))
    one = rollout(robot, q, np.zeros(robot.nv), controls, contacts="*foot*")
    assert one.q.shape == (6, robot.nq)
    many = rollout(robot, q, np.zeros((2, 3, robot.nv)), controls, contacts="*foot*")
    assert many.q.shape == (2, 3, 6, robot.nq)
    assert many.residuals.shape == (2, 3, 5)
    np.testing.assert_array_equal(many.q[1, 2], one.q)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(many)).q, many.q)


def test_a_batch_of_none_is_none() -> None:
    robot = coupler.robots.load("four_bar")
    found = rollout(robot, np.zeros((0, 3, robot.nq)), np.zeros((0, 3, robot.nv)), np.zeros((5, robot.nv)), forces=True)
    assert found.q.shape == (0, 3, 6, robot.nq) and found.v.shape == (0, 3, 6, robot.nv)
    assert found.residuals.shape == (0, 3, 5) and found.stops.shape == (0, 3)
    assert found.forces is not None and found.forces.shape == (0, 3, 5, 0, 3)


def test_wrong_controls_are_told() -> None:
    robot, q = standing()
    v = np.zeros((4, robot.nv))
    with pytest.raises(ModelError, match=r"controls must have the shape \(..., T, 18\), got \(4,\)"):
        rollout(robot, q, v, np.zeros(4))
    with pytest.raises(ModelError, match=r"give controls, forces \(..., T, 18\) at independent joints"):
        rollout(robot, q, v)
    with pytest.raises(ModelError, match=r"states of \(4,\), which do not fit controls of \(3,\) in \(3, 5, 18\)"):
        rollout(robot, q, v, np.zeros((3, 5, robot.nv)))
    wrong = np.zeros((4, 5, robot.nv))
    wrong[2, 3, 7] = np.nan
    with pytest.raises(ModelError, match=r"controls must be .* entry 3, 7 in state 2 is nan"):
        rollout(robot, q, v, wrong)
    with pytest.raises(ModelError, match="hold must be a whole number"):
        rollout(robot, q, v, np.zeros((5, robot.nv)), hold=0)


@pytest.mark.parametrize("failing", [3, EVERY - 1])  # in between, and in a step after which energies are looked at
def test_a_state_that_cannot_go_on_is_named_with_its_time_and_the_others_go_on(failing: int) -> None:
    robot, q = standing()
    controls = np.zeros((20, EVERY + 2, robot.nv))
    alone = rollout(robot, q, np.zeros(robot.nv), controls[0], contacts="*foot*")
    controls[13, failing] = 1e308
    told = rf"after 0.00{failing} s in state 13: .* a step of 0.001 s is not possible"
    with pytest.warns(ModelWarning, match=f"1 of 20 states cannot go on, the first {told}"):
        result = rollout(robot, q, np.zeros(robot.nv), controls, contacts="*foot*", forces=True)
    assert result.stops[13] == pytest.approx(1e-3 * failing) and np.isinf(np.delete(result.stops, 13)).all()
    assert np.isfinite(result.q[13, : failing + 1]).all() and np.isnan(result.q[13, failing + 1 :]).all()
    assert result.forces is not None and np.isnan(result.forces[13, failing:]).all()
    for i in (0, 12, 14, 19):
        np.testing.assert_array_equal(result.q[i], alone.q)


def four_bar(independent: str) -> tuple[Robot, np.ndarray, np.ndarray]:
    """A four-bar, a closed pose, and the one in which crank and coupler are in line, where the rocker D turns back."""
    b = RobotBuilder("four-bar")
    for name, length in {"crank": 0.3, "coupler": 0.8, "rocker": 0.7}.items():
        b.body(name, 1.0, (length / 2, 0.0, 0.0), (1e-4, length**2 / 12, length**2 / 12))
    y = (0.0, 1.0, 0.0)
    b.joint("A", Revolute(axis=y), "ground", "crank", independent=independent == "A")
    b.joint("B", Revolute(axis=y), "crank", "coupler", at=(0.3, 0, 0), independent=False)
    b.joint("D", Revolute(axis=y), "ground", "rocker", at=(0.9, 0, 0), independent=independent == "D")
    b.loop("C", Revolute(axis=y), "coupler", "rocker", at=(0.8, 0, 0), meets=(0.7, 0, 0))
    robot, reach = b.build(), 1.1
    rocker = np.arccos((0.9**2 + 0.7**2 - reach**2) / (2 * 0.9 * 0.7)) - np.pi
    crank = -np.arccos((0.9**2 + reach**2 - 0.7**2) / (2 * 0.9 * reach))
    straight = robot.close(robot.pack_q({"A": crank, "B": 0.0, "D": rocker}))
    return robot, robot.close(straight + np.array([0.1, 0.4, 0.1])), straight


def test_states_of_a_batch_that_are_none_are_masked_and_told_and_the_others_go_on() -> None:
    robot, q = standing()
    rng = np.random.default_rng(0)
    q0, v0 = np.tile(q, (40, 1)), 0.1 * rng.normal(size=(40, robot.nv))
    q0[:, 2] += 0.05
    controls = rng.normal(size=(40, 4, robot.nv))
    controls[..., :6] = 0.0
    right = rollout(robot, q0, v0, controls, contacts="*foot*", forces=True)
    wrong = {3: "length 0;", 7: "length 2;", 20: "entry 9 is nan", 39: "entry 4 is inf"}
    q0[3, 3:7], q0[20, 9], v0[39, 4] = 0.0, np.nan, np.inf
    q0[7, 3:7] *= 2.0
    with pytest.warns(ModelWarning, match="4 of 40 states cannot go on, the first after 0 s in state 3: .* length 0"):
        found = rollout(robot, q0, v0, controls, contacts="*foot*", forces=True)
    assert list(found.reasons) == [(i,) for i in wrong]
    others = np.delete(np.arange(40), list(wrong))
    assert found.forces is not None
    assert right.forces is not None
    for one, other in ((found.q, right.q), (found.v, right.v), (found.forces, right.forces)):
        np.testing.assert_array_equal(one[others], other[others])
        assert np.isnan(one[[*wrong]]).all()
    assert np.isinf(found.stops[others]).all()
    for i, told in wrong.items():
        assert told in found.reasons[i,]
        assert found.stops[i] == 0.0
        with pytest.raises(ModelError, match=told):
            Simulation(robot, q=q0[i], v=v0[i])
    with pytest.raises(ModelError, match=r"no state is possible to start from in state 0: .* length 0"):
        rollout(robot, q0[[3, 3]], v0[:2], controls[:2])


def test_open_loops_in_a_batch_and_velocities_that_loops_do_not_allow_are_masked() -> None:
    for independent in "AD":
        robot, q, straight = four_bar(independent)
        q0 = np.stack([q, q + np.array([0.0, 0.3, 0.0]), straight, straight, q])
        v0 = np.array([[1.0], [1.0], [1.0], [0.0], [0.0]])
        with pytest.warns(ModelWarning, match="cannot go on") as told:
            found = rollout(robot, q0, v0, np.zeros((20, 1)))
        assert len(told) == 1
        assert "'C' has its two ends" in found.reasons[1,]
        assert set(found.reasons) == ({(1,), (2,)} if independent == "D" else {(1,)})
        for i in range(5):
            if (i,) in found.reasons:
                assert np.isnan(found.q[i]).all()
                assert found.stops[i] == 0.0
                with pytest.raises(ModelError, match=r"does not close|'D' does not determine the others"):
                    Simulation(robot, q=q0[i], v=v0[i])
                continue
            alone = Simulation(robot, q=q0[i], v=v0[i])
            alone.run(0.02)
            np.testing.assert_array_equal(found.q[i, -1], alone.q)


def test_a_loop_that_a_parameter_opens_is_masked() -> None:
    """The same q under three lengths of the crank, of which one is not that of the description."""
    robot, q, _ = four_bar("A")
    fleet = robot.with_parameters({"at:B": [[0.3, 0, 0], [0.31, 0, 0], [0.3, 0, 0]]})
    with pytest.warns(ModelWarning, match=r"1 of 3 states cannot go on, the first after 0 s in state 1: .* not close"):
        found = rollout(fleet, q, [0.5], np.zeros((5, 1)))
    np.testing.assert_allclose(found.q[0], rollout(robot, q, [0.5], np.zeros((5, 1))).q, atol=1e-12)
    np.testing.assert_array_equal(found.q[0], found.q[2])


def test_where_no_state_can_go_on_there_is_an_error() -> None:
    robot, q = standing()
    controls = np.zeros((2, 5, robot.nv))
    controls[:, 3] = 1e308
    with pytest.raises(ModelError, match=r"after 0.003 s in state 0: .* a step of 0.001 s is not possible"):
        rollout(robot, q, np.zeros(robot.nv), controls, contacts="*foot*")


def test_a_rollout_says_what_is_in_it() -> None:
    robot = coupler.robots.load("four_bar")
    q, v = np.tile(robot.neutral(), (3, 1)), np.zeros((3, robot.nv))
    found = rollout(robot, q, v, np.zeros((3, 4, robot.nv)), forces=True)
    text = str(found)
    assert repr(found) == text
    assert text.startswith("rollout of 3 states, from 0 to 0.004 s, 4 controls each\n  stopped   0 of 3 states\n")
    assert "q (3, 5, 3), v (3, 5, 1), residuals (3, 4), forces (3, 4, 0, 3)" in text
