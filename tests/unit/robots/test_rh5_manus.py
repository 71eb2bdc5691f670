"""RH5 Manus: the paper's counts, its own symmetry, the dynamics of the published file, and hands on a table."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.kinematics import frame_pose
from coupler.model import Box, Robot, RobotBuilder
from coupler.robots.rh5_manus import HAND_RADIUS, rh5_manus
from effort import sweep
from models_folder import ABSENT, FOLDER
from models_folder import loaded as loaded_file

EXACT = 1e-12  # relative to the largest entry; reached: 1e-14 for forces, 1.3e-13 for accelerations
BENT = {f"A{side}{joint}": angle for side in "LR" for joint, angle in (("Shoulder3", -1.3), ("Elbow", -1.4))}


def test_the_robot_is_the_papers() -> None:
    """[003, §V-A]: 13 freedoms of 23 joints; the torso with 8 joints and 6 rows, each elbow with 3 and 2."""
    robot = rh5_manus()
    assert (robot.tree.nv, robot.nv, len(robot.actuated_joints)) == (23, 13, 13)
    numerical = robot.with_closure("numerical")
    sizes = [(len(loop.columns), loop.rows) for loop in numerical.embedding.closure.loops]
    assert sizes == [(8, 6), (3, 2), (3, 2)]
    assert (numerical.nq, robot.nq) == (23, 13)  # closed analytically throughout, unless something else is asked for
    assert not robot.idle and not robot.warnings and not numerical.remarks
    moving = [joint.name for joint in robot.joints if joint.kind.nv]
    assert (moving[4], moving[7]) == ("BodyActL", "BodyActR")  # joints 5 and 8 [003, Table II]
    assert rh5_manus(floating=True).nv == 19


def test_left_and_right_are_mirror_images() -> None:
    """But for six digits, with which the published model has its right arm."""
    robot = rh5_manus()
    q = robot.pack_q({**BENT, "BodyPitch": 0.2})
    left, right = (frame_pose(robot, q, f"{side}_hand")[:3, 3] for side in ("left", "right"))
    np.testing.assert_allclose(left * [1, -1, 1], right, atol=1e-5)
    tau = coupler.inverse_dynamics(robot, q, np.zeros(13), np.zeros(13))
    np.testing.assert_allclose(tau[robot.v_slice("ALElbow")], tau[robot.v_slice("ARElbow")], rtol=1e-3)


def test_actuators_are_as_long_as_geometry_says() -> None:
    """From where a leg stands to where its tip is on the body that it moves; at zero, the tip is at 0.23999 m."""
    robot = rh5_manus()
    tips = {loop.name: (loop.predecessor, loop.predecessor_frame.r) for loop in robot.loops}
    for seed in range(5):
        q = robot.random_state(seed)[0]
        p = robot.joint_positions(q)
        legs = {"BodyActL": ("BodyBL1", 0.23999), "BodyActR": ("BodyBR1", 0.23999)}
        for actuator, (foot, length) in (legs | {f"A{s}ElbowAct": (f"A{s}ElbowB11", 0.29542) for s in "LR"}).items():
            body, tip = tips[f"{actuator}_loop"]
            pose = frame_pose(robot, q, body)
            between = pose[:3, :3] @ tip + pose[:3, 3] - frame_pose(robot, q, f"{foot}_Link")[:3, 3]
            assert p[actuator] == pytest.approx(np.linalg.norm(between) - length, abs=1e-9)


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.parametrize("floating", sweep([False, True], [True]))
def test_it_moves_like_the_published_model(floating: bool) -> None:
    """Closed analytically; the model of the file numerically."""
    robot, file = rh5_manus(floating=floating), published(floating).with_closure("numerical")
    order = np.concatenate([np.arange(robot.nv)[robot.v_slice(joint)] for joint in file.independent_joints])
    assert robot.mass == pytest.approx(file.mass, rel=1e-14)
    for seed in range(3):
        q, v = robot.random_state(seed)
        tau = np.random.default_rng(seed).normal(size=robot.nv)
        p = robot.joint_positions(q)
        q_file = file.pack_q({name: p[name] for name in file.joint_names if np.size(p.get(name, ()))})
        for function in (coupler.inverse_dynamics, coupler.forward_dynamics):
            found = function(robot, q, v, tau)[order]
            expected = function(file, q_file, v[order], tau[order])
            np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max())


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_all_loops_of_the_complete_robot_have_a_closed_form() -> None:
    """Those of the wrists, too, which the paper closes numerically [003, §V-C]."""
    numerical = loaded_file("rh5_manus/full_urdf/RH5v2.urdf").with_closure("numerical")
    robot = numerical.with_closure("analytical")
    assert numerical.nq == 61 and robot.nq == robot.nv == 31
    kinds = {form.name for form in robot.closed_forms.values()}
    assert kinds == {"2-SPU+1U", "RRPR", "2-SU[RRPR]+1U"}
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = robot.neutral() + rng.uniform(-0.2, 0.2, robot.nq)
        v, a = rng.normal(size=(2, robot.nv))
        p = numerical.pack_q(robot.joint_positions(q))
        found, expected = coupler.inverse_dynamics(robot, q, v, a), coupler.inverse_dynamics(numerical, p, v, a)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def published(floating: bool) -> Robot:
    name = "rh5_manus/submechanisms_urdf/submechanisms_reduced.urdf"
    if not floating:
        return loaded_file(name)
    with pytest.warns(coupler.ModelWarning, match="55 meshes"):
        return coupler.load(FOLDER / name, floating=True)


@pytest.mark.parametrize("floating", sweep([False, True], [False]))
def test_its_hands_press_on_a_table(floating: bool) -> None:
    """Forearms are lowered onto a table 5 mm below the hands; a base that floats comes down with them."""
    robot = rh5_manus(floating=floating)
    q = robot.pack_q(BENT)
    under = frame_pose(robot, q, "left_hand")[2, 3] - HAND_RADIUS - 0.005
    robot = robot.with_shape("table", Box((0.4, 0.8, 0.04)), (0.4, 0, under - 0.02), friction=0.5)
    joints = [joint for joint in robot.independent_joints if joint != "floating_base"]
    at = [robot.q_slice(joint).start for joint in joints]
    torso = 100.0 if floating else 2000.0  # N m/rad; on a base that floats, which is light, more needs shorter steps
    stiffness = np.array([torso if "Body" in name else 0.0 if "Roll" in name else 60.0 for name in joints])
    wanted = robot.pack_q({**BENT, "ALElbow": -1.3, "ARElbow": -1.3})[at]

    def hold(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = coupler.inverse_dynamics(robot, q, 0 * v, 0 * v)
        tau[-13:] += stiffness * (wanted - q[at] - v[-13:] / 15)
        return np.where(np.arange(robot.nv) < robot.nv - 13, 0.0, tau)

    simulation = coupler.Simulation(robot, q=q, contacts="*hand on table")
    log = simulation.run(0.1 if floating else 0.3, hold)
    assert log.gaps.min() > -1e-4 and log.gaps.shape[1] == 2
    assert max(errors.max() for errors in robot.loop_errors(log.q).values()) < 1e-10
    if floating:
        assert log.forces[:, :, 2].max() > 10.0
        return
    left, right = log.forces[-1]
    assert left[2] > 5.0
    np.testing.assert_allclose(left * [1, -1, 1], right, rtol=1e-2)
    assert np.abs(log.gaps[-1]).max() < 1e-9


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_closed_forms_are_found_behind_idle_freedoms_that_are_locked() -> None:
    b = RobotBuilder("RH5")
    b.attach(loaded_file("rh5_manus/full_urdf/RH5v2.urdf"))
    robot, numerical = (b.build(lock_idle=True, closure=closure) for closure in ("analytical", "numerical"))
    assert robot.nq == robot.nv == numerical.nv == 23  # the paper's 20, and 3 of the head, whose file is not beside it
    assert {form.name for form in robot.closed_forms.values()} == {"2-SPU+1U", "RRPR", "2-SU[RRPR]+1U"}
    assert not any(name.startswith("lock") for name in robot.closed_forms)
    q, v = robot.random_state(0)
    a = coupler.forward_dynamics(robot, q, v, np.ones(robot.nv))
    p = numerical.close(numerical.pack_q(robot.joint_positions(q)))
    np.testing.assert_allclose(coupler.forward_dynamics(numerical, p, v, np.ones(robot.nv)), a, rtol=1e-9, atol=1e-9)
