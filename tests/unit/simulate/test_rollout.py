"""Batches of simulations, against one at a time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coupler
from coupler import ModelError, ModelWarning, Robot, Simulation, rollout


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


def test_a_state_that_cannot_go_on_is_named_with_its_time_and_the_others_go_on() -> None:
    robot, q = standing()
    controls = np.zeros((20, 5, robot.nv))
    alone = rollout(robot, q, np.zeros(robot.nv), controls[0], contacts="*foot*")
    controls[13, 3] = 1e308
    told = r"1 of 20 states cannot go on, the first after 0.003 s in state 13: .* a step of 0.001 s is not possible"
    with pytest.warns(ModelWarning, match=told):
        result = rollout(robot, q, np.zeros(robot.nv), controls, contacts="*foot*", forces=True)
    assert result.stops[13] == pytest.approx(0.003) and np.isinf(np.delete(result.stops, 13)).all()
    assert np.isfinite(result.q[13, :4]).all() and np.isnan(result.q[13, 4:]).all()
    assert result.forces is not None and np.isnan(result.forces[13, 3:]).all()
    for i in (0, 12, 14, 19):
        np.testing.assert_array_equal(result.q[i], alone.q)


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
