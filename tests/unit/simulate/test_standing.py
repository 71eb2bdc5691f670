"""Robots with all their rotors and loops that stand for a minute, held by springs and dampers at their joints.

The quadruped is in test_simulation.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import coupler
from coupler import Robot, Simulation
from coupler.contact.formulations import touches
from coupler.contact.pairs import pairs_of
from coupler.simulate import Log
from models_folder import ABSENT, loaded

G = 9.81


def over_floor(robot: Robot, q: np.ndarray, base: str, feet: str, height: float) -> np.ndarray:
    """A configuration, lifted so that its lowest foot is at this height."""
    gaps = [touch.contact.gap for touch in touches(robot, q, pairs_of(robot)) if feet in touch.pair.one.name]
    q = q.copy()
    q[robot.q_slice(base)][2] += height - min(gaps)
    return q


def held(robot: Robot, q: np.ndarray, gains: dict[str, tuple[float, float]]) -> Callable[..., np.ndarray]:
    """A controller that holds joints where they are, each by stiffness and damping."""
    at = np.array([robot.q_slice(name).start for name in gains])
    along = np.array([robot.v_slice(name).start for name in gains])
    stiffness, damping = np.array(list(gains.values())).T
    wanted = q[at].copy()

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros(robot.nv)
        tau[along] = stiffness * (wanted - q[at]) - damping * v[along]
        return tau

    return controller


def check(robot: Robot, log: Log, base: str, still: float) -> None:
    """It stands: no drift in its last 20 s, no overlap, closed, and the floor bears its weight."""
    weight = robot.mass * G
    late = log.q[log.times > log.times[-1] - 20.0]
    place = robot.q_slice(base)
    assert np.abs(late[:, place] - late[-1, place]).max() < still
    assert log.gaps.min() > -1e-3
    np.testing.assert_allclose(log.forces[-1].sum(axis=0), [0, 0, weight], atol=1e-4 * weight)
    assert max(float(np.max(gap)) for gap in robot.loop_errors(log.q).values()) < 1e-10


def test_a_humanoid_with_all_its_rotors_stands_for_a_minute() -> None:
    robot = coupler.robots.load("mit_humanoid").with_floor(friction=0.8)
    bent = {"hip_ry": -0.4, "knee": 0.8, "ankle": -0.4}
    legs = {name: angle for name in robot.independent_joints for part, angle in bent.items() if part in name}
    q = over_floor(robot, robot.pack_q(legs), "floating_base", "toe", 0.02)
    joints = [name for name in robot.independent_joints if name != "floating_base"]
    simulation = Simulation(robot, q=q, contacts=["*toe*", "*heel*"])
    log = simulation.run(60.0, held(robot, q, dict.fromkeys(joints, (300.0, 10.0))), every=20)
    check(robot, log, "floating_base", 1e-5)
    assert log.q[-1, 2] > 0.65


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_cassie_stands_for_a_minute() -> None:
    robot = loaded("cassie_menagerie/cassie_nomesh.xml").with_floor(friction=1.0)
    base = "cassie-pelvis_joint"
    q = robot.close(np.array(robot.keyframes["home"][0]))
    lean = robot.pack_v({name: -0.05 for name in robot.actuated_joints if "hip-pitch" in name})
    q = over_floor(robot, robot.integrate(q, lean), base, "foot", 0.0)
    firm = {"foot": (1500.0, 8.0), "roll": (2000.0, 200.0)}
    gains = {
        name: next((gain for part, gain in firm.items() if part in name), (2000.0, 60.0))
        for name in robot.actuated_joints
    }
    log = Simulation(robot, q=q, contacts="*foot* on floor").run(60.0, held(robot, q, gains), every=20)
    check(robot, log, base, 1e-3)
    assert log.q[-1, robot.q_slice(base)][2] > 0.9
