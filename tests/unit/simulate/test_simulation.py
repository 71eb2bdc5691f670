"""Simulations: what robots do on the ground, what a run keeps, and how it ends."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Robot, Simulation, SimulationError
from coupler.contact.pairs import pairs_of
from coupler.contact.restitution import Restitution
from coupler.contact.stepping import contact_step
from coupler.model import (
    Box,
    Capsule,
    Fixed,
    Free,
    Geometry,
    Hull,
    ModelError,
    ModelWarning,
    Plane,
    Prismatic,
    Revolute,
    RobotBuilder,
    Sphere,
)
from coupler.rotation import about_y
from coupler.simulate import Log, SimulationOptions, SimulationState

G = 9.81


def ball(height: float = 0.1, friction: float = 0.5) -> tuple[Robot, np.ndarray]:
    b = RobotBuilder("ball")
    b.body("ball", 2.0, inertia=(0.008,) * 3)
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1), name="skin")
    robot = b.build().with_floor(friction)
    return robot, robot.pack_q({"free": [0, 0, height, 1, 0, 0, 0]})


def quadruped(height: float) -> tuple[Robot, np.ndarray]:
    robot = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
    bent = {"hip": -0.8, "knee": 1.6}
    legs = {name: angle for name in robot.independent_joints for part, angle in bent.items() if part in name}
    return robot, robot.pack_q({**legs, "floating_base": [0, 0, height, 1, 0, 0, 0]})


def holding(q: np.ndarray, stiffness: float = 80.0, damping: float = 4.0) -> Any:
    """A controller that holds the joints behind a floating base."""
    wanted = q[7:].copy()

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(6), -stiffness * (q[7:] - wanted) - damping * v[6:]])

    return controller


def test_a_quadruped_with_all_its_rotors_drops_half_a_metre_and_stands_for_a_minute() -> None:
    robot, q = quadruped(0.79)
    simulation = Simulation(robot, 1e-3, q=q, contacts="*foot*")
    landed = simulation.run(5.0, holding(q))
    assert landed.gaps.min() > -1e-3
    stood = simulation.run(60.0, holding(q), every=10)
    weight = robot.mass * G
    np.testing.assert_allclose(stood.forces[-1].sum(axis=0), [0, 0, weight], atol=1e-6 * weight)
    assert np.abs(stood.q - stood.q[0]).max() < 1e-9  # no drift
    assert stood.gaps.min() > -1e-9
    assert np.abs(stood.v[-1]).max() < 1e-9
    assert max(stood.residuals.max(), landed.residuals.max()) < 1e-8
    assert max(float(np.max(gap)) for gap in robot.loop_errors(landed.q).values()) < 1e-10
    assert np.abs(np.linalg.norm(landed.q[:, 3:7], axis=1) - 1.0).max() < 1e-14


def test_a_run_tells_states_forces_and_energies() -> None:
    robot, q = ball(0.6)
    simulation = Simulation(robot, 1e-3, q=q)
    log = simulation.run(0.6)
    assert len(log) == 601
    np.testing.assert_allclose(log.times, 1e-3 * np.arange(601), atol=1e-12)
    np.testing.assert_array_equal(log.q[-1], simulation.q)
    np.testing.assert_allclose(log.q[:200, 2], 0.6 - G * log.times[:200] ** 2 / 2.0, atol=1e-12)
    assert log.forces[:300].max() == 0.0
    assert log.forces[-1, 0] == pytest.approx([0, 0, 2.0 * G], abs=1e-9)
    assert log.points[-1, 0] == pytest.approx([0, 0, 0], abs=1e-9)
    assert log.contacts == ("skin on floor",)
    np.testing.assert_allclose(log.kinetic, coupler.kinetic_energy(robot, log.q, log.v))
    np.testing.assert_allclose(log.potential, coupler.potential_energy(robot, log.q))


def test_every_so_many_steps_are_logged_and_the_last_state() -> None:
    robot, q = ball(0.6)
    log = Simulation(robot, q=q).run(0.1, every=30)
    assert log.times == pytest.approx([0.0, 0.03, 0.06, 0.09, 0.1])


def test_a_state_is_saved_and_restored_bit_for_bit(tmp_path: Path) -> None:
    robot, q = quadruped(0.31)
    one = Simulation(robot, q=q, contacts="*foot*")
    one.run(0.1, holding(q))
    one.state.save(tmp_path / "state.npz")
    expected = one.run(0.2, holding(q))
    other = Simulation(robot, q=q, contacts="*foot*")
    other.restore(SimulationState.load(tmp_path / "state.npz"))
    assert other.time == pytest.approx(0.1)
    again = other.run(0.2, holding(q))
    np.testing.assert_array_equal(again.q, expected.q)
    np.testing.assert_array_equal(again.forces, expected.forces)
    np.testing.assert_array_equal(again.times, expected.times)


def test_reset_goes_back_to_the_start_or_elsewhere() -> None:
    robot, q = ball(0.5)
    simulation = Simulation(robot, q=q)
    first = simulation.run(0.1)
    simulation.reset()
    assert simulation.time == 0.0
    np.testing.assert_array_equal(simulation.run(0.1).q, first.q)
    simulation.reset(q + np.eye(1, 7, 2)[0])
    assert simulation.q[2] == 1.5
    assert simulation.v == pytest.approx(np.zeros(6))


def test_states_that_are_handed_out_cannot_be_written_to() -> None:
    robot, q = ball(0.5)
    simulation = Simulation(robot, q=q)
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            simulation.q[0] = 1.0
        simulation.step()


def test_states_are_set_as_a_whole_while_time_goes_on() -> None:
    robot, q = ball(0.5)
    simulation = Simulation(robot, q=q)
    simulation.run(0.01)
    simulation.q = q + np.eye(1, 7, 2)[0]
    simulation.v = np.eye(1, 6, 3)[0]
    assert simulation.time == pytest.approx(0.01)
    other = Simulation(robot, q=q + np.eye(1, 7, 2)[0], v=np.eye(1, 6, 3)[0])
    simulation.step()
    other.step()
    np.testing.assert_array_equal(simulation.q, other.q)
    np.testing.assert_array_equal(simulation.v, other.v)
    with pytest.raises(ModelError, match="its quaternion has the length"):
        simulation.q = np.zeros(7)
    with pytest.raises(ModelError, match="q must be 7 finite numbers"):
        simulation.q = [1.0]
    np.testing.assert_array_equal(simulation.q, other.q)


def test_a_push_moves_a_body_from_where_it_acts() -> None:
    robot, q = ball(0.5)
    robot = robot.with_gravity((0.0, 0.0, 0.0))
    simulation = Simulation(robot, q=q)
    simulation.step(None, simulation.wrench("ball", (4.0, 0.0, 0.0), at=(0.0, 0.0, 0.05)))
    momentum = coupler.momentum(robot, np.array(simulation.q), np.array(simulation.v))
    arm = np.array([0.0, 0.0, 0.55])
    np.testing.assert_allclose(momentum, [*np.cross(arm, [4e-3, 0, 0]), 4e-3, 0, 0], atol=1e-15)
    simulation.reset()
    simulation.step(None, simulation.wrench("ball", moment=(0.0, 0.3, 0.0)))
    momentum = coupler.momentum(robot, np.array(simulation.q), np.array(simulation.v))
    np.testing.assert_allclose(momentum, [0.0, 3e-4, 0.0, 0.0, 0.0, 0.0], atol=1e-15)


def test_a_controller_may_push_as_well() -> None:
    robot, q = ball(0.1)
    simulation = Simulation(robot, q=q)

    def pull(t: float, q: np.ndarray, v: np.ndarray) -> tuple[None, np.ndarray]:
        return None, simulation.wrench("ball", (0.0, 0.0, 12.0))

    log = simulation.run(0.05, pull)
    assert log.forces[-1, 0, 2] == pytest.approx(2.0 * G - 12.0, rel=1e-9)


def test_a_ball_bounces_as_in_numpy() -> None:
    robot, q = ball(0.4, friction=0.3)
    in_place = (Restitution(0.8, in_place=True), Restitution(0.6, 0.4, "impulse", in_place=True))
    for law in (*in_place, Restitution(0.7, 0.5), Restitution(0.8, 0.4, "impulse")):
        pairs = pairs_of(robot, restitution=law)
        v = np.array([3.0, -8.0, 5.0, 1.0, -0.5, 0.0])
        simulation = Simulation(robot, 2e-3, q=q, v=v, restitution=law, tolerance=1e-13, integrator="euler")
        p, w, pending, rebounds = q, v, None, 0
        for _ in range(500):
            done = contact_step(robot, p, w, np.zeros(6), 2e-3, pairs, pending=pending, tolerance=1e-14)
            p, w, pending = done.q, done.v, done.pending
            simulation.step()
            rebounds += int(done.solution.impulses[0] > 1.0)
            np.testing.assert_allclose(simulation.q, p, atol=1e-9)
            np.testing.assert_allclose(simulation.v, w, atol=1e-8)
        assert rebounds > 2


def test_overlaps_shrink_slowly_if_asked_to() -> None:
    robot, q = ball(0.099)
    with pytest.warns(ModelWarning, match=r"overlaps at the start in 1 contact, skin on floor by 1 mm"):
        simulation = Simulation(robot, 1e-3, q=q, penetration="limited")
    simulation.step()
    assert simulation.q[2] == pytest.approx(0.099 + 1e-5, abs=1e-12)


def test_boxes_and_hulls_touch_each_other_as_in_numpy() -> None:
    """Their contacts are searched for outside of the program."""
    b = RobotBuilder("stack")
    wedge = np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [0.3, 0, 1]]) * 0.1
    for name, form, mass in (("box", Box((0.4, 0.3, 0.2)), 2.0), ("wedge", Hull(wedge), 1.0)):
        b.body(name, mass, inertia=(0.02, 0.02, 0.02))
        b.joint(name, Free(), "ground", name)
        b.shape(name, form, name=name, friction=0.6)
    robot = b.build().with_floor(0.6)
    q = robot.pack_q({"box": [0, 0, 0.1, 1, 0, 0, 0], "wedge": [0.05, 0.02, 0.31, 1, 0, 0, 0.1]})
    q = robot.close(q)
    simulation, pairs = Simulation(robot, 2e-3, q=q, tolerance=1e-13, integrator="euler"), pairs_of(robot)
    p, w = q, np.zeros(robot.nv)
    for _ in range(40):
        done = contact_step(robot, p, w, np.zeros(robot.nv), 2e-3, pairs, tolerance=1e-14)
        p, w = done.q, done.v
        simulation.step()
        np.testing.assert_allclose(simulation.q, p, atol=1e-9)
    together = simulation.contact_forces[
        [name.startswith(("wedge on box", "box on wedge")) for name in simulation.contacts]
    ]
    assert np.abs(together).max() > 1.0
    batch = coupler.rollout(
        robot, np.stack([q, q]), np.zeros(robot.nv), np.zeros((40, robot.nv)), 2e-3, tolerance=1e-13, integrator="euler"
    )
    np.testing.assert_array_equal(batch.q[1, -1], simulation.q)


def tower() -> tuple[Robot, np.ndarray]:
    """A ball of 1,000 t on one of 1 kg."""
    b = RobotBuilder("tower")
    for i, mass in enumerate((1.0, 1e6)):
        b.body(f"ball{i}", mass, inertia=(1.0, 1.0, 1.0))
        b.joint(f"ball{i}", Free(), "ground", f"ball{i}")
        b.shape(f"ball{i}", Sphere(0.1), name=f"ball{i}")
    robot = b.build().with_floor()
    return robot, robot.pack_q({"ball0": [0, 0, 0.1, 1, 0, 0, 0], "ball1": [0, 0, 0.3, 1, 0, 0, 0]})


def test_much_on_little_stays_where_it_is() -> None:
    robot, q = tower()
    simulation = Simulation(robot, q=q)
    log = simulation.run(0.5)
    np.testing.assert_allclose(simulation.q, q, atol=1e-7)
    assert log.residuals.max() <= 1e-8
    status = simulation.status
    assert status.solved and status.contacts == 2 and status.residual == simulation.residual
    grounded = ["floor" in name for name in log.contacts]
    assert log.forces[-1, grounded, 2].sum() == pytest.approx((1.0 + 1e6) * 9.81, rel=1e-6)


def squeezed() -> tuple[Robot, np.ndarray]:
    """A ball of 0.2 m on a slide that ends 0.01 m above where it rests."""
    b = RobotBuilder("squeezed")
    b.body("ball", 1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("slide", Prismatic(upper=0.09), "ground", "ball")
    b.shape("ball", Sphere(0.1), name="ball")
    robot = b.build().with_floor()
    return robot, robot.pack_q({"slide": 0.09})


def test_a_run_whose_contacts_exclude_each_other_says_so_once() -> None:
    """The ball stays where it is, on a floor that carries its weight."""
    robot, q = squeezed()
    with pytest.warns(ModelWarning, match="overlaps at the start"):
        simulation = Simulation(robot, q=q)
    left = r"overlaps of up to 0.01 m, .* were left as they are: no impulses can part them"
    with pytest.warns(ModelWarning, match=left) as told:
        simulation.run(0.01, every=5)
    assert len(told) == 1
    status = simulation.status
    assert status.solved and status.residual <= 1e-9 and status.jammed == pytest.approx(0.01)
    np.testing.assert_allclose(simulation.q, q, atol=1e-12)
    np.testing.assert_allclose(simulation.contact_forces, [[0.0, 0.0, 9.81]], atol=1e-6)
    with pytest.warns(ModelWarning, match="overlaps at the start"), pytest.warns(ModelWarning, match=left):
        coupler.rollout(robot, np.stack([q, q]), np.zeros(robot.nv), np.zeros((10, robot.nv)))


def test_many_contacts_are_solved_as_few_are() -> None:
    """Those of four boxes that fall one by one, in a table, against each box by itself."""
    b = RobotBuilder("boxes")
    for i in range(4):
        b.body(f"box{i}", 1.0 + i, inertia=(0.02, 0.03, 0.04))
        b.joint(f"box{i}", Free(), "ground", f"box{i}")
        b.shape(f"box{i}", Box((0.3, 0.2, 0.1)), name=f"box{i}", group=2, meets=0)
    robot = b.build().with_floor(0.5)
    turn = [np.cos(0.2), 0.6 * np.sin(0.2), 0.8 * np.sin(0.2), 0.0]
    q = robot.pack_q({f"box{i}": [i, 0, 0.12 + 0.01 * i, *turn] for i in range(4)})
    together = Simulation(robot, 2e-3, q=q, tolerance=1e-12)
    assert len(together.contacts) == 32
    log = together.run(0.3)
    for i in (0, 3):
        alone = Simulation(robot, 2e-3, q=q, tolerance=1e-12, contacts=f"box{i} on floor").run(0.3)
        place = robot.q_slice(f"box{i}")
        np.testing.assert_allclose(log.q[:, place], alone.q[:, place], atol=1e-7)


# What cannot be


@pytest.mark.parametrize("step", [0.0, -1e-3, np.nan, np.inf])
def test_a_step_must_be_above_zero(step: float) -> None:
    with pytest.raises(ModelError, match="step must be"):
        Simulation(ball()[0], step)


def test_controls_that_are_not_numbers_stop_the_run_and_the_log_is_kept(tmp_path: Path) -> None:
    robot, q = ball(0.5)

    def broken(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.full(6, np.nan if t > 0.0495 else 0.0)

    path = tmp_path / "run.npz"
    with pytest.raises(SimulationError, match=r"stops at 0\.05 s: tau must be .* finite") as caught:
        Simulation(robot, q=q).run(1.0, broken, log=path)
    assert caught.value.time == pytest.approx(0.05)
    for log in (caught.value.log, Log.load(path)):
        assert len(log) == 50
        assert log.times[-1] == pytest.approx(0.049)
        assert "stopped at 0.05 s" in log.note


def test_a_run_that_is_interrupted_leaves_its_log(tmp_path: Path) -> None:
    robot, q = ball(0.5)

    def tired(t: float, q: np.ndarray, v: np.ndarray) -> None:
        if t > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Simulation(robot, q=q).run(1.0, tired, log=tmp_path / "run.npz")
    log = Log.load(tmp_path / "run.npz")
    assert len(log) == 301
    assert log.note == "interrupted"


def test_a_wrong_number_of_forces_is_told() -> None:
    robot, q = ball(0.5)
    simulation = Simulation(robot, q=q)
    with pytest.raises(ModelError, match="tau must be 6 finite numbers"):
        simulation.step(np.zeros(5))
    with pytest.raises(ModelError, match="f_ext must be"):
        simulation.step(None, np.zeros(6))


def test_forces_may_be_a_tuple_of_numbers() -> None:
    """Two numbers are forces at two joints, not forces and a push."""
    leg = coupler.robots.load("planar_leg_linkage")
    one, other = (Simulation(leg).run(0.01, lambda t, q, v, tau=tau: tau) for tau in ((0.1, 0.2), np.array([0.1, 0.2])))
    np.testing.assert_array_equal(one.q, other.q)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restitution": 1.5}, "restitution: normal must be 0 to 1"),
        ({"restitution": "much"}, "restitution: normal must be"),
        ({"penetration": "deep"}, "penetration must be one of .* got 'deep'"),
        ({"tolerance": -1.0}, "tolerance must be"),
        ({"sweeps": 0}, "sweeps must be a whole number"),
        ({"friction": -0.1}, "friction must be a finite number, 0 or more"),
        ({"q": np.zeros(3)}, "q must be 7"),
        ({"v": np.full(6, np.nan)}, "v must be 6"),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Simulation(ball(0.5)[0], **{"q": ball(0.5)[1], **options})


def test_what_is_no_controller_is_told() -> None:
    robot = coupler.robots.load("four_bar")  # one freedom, one motor
    with pytest.raises(ModelError, match=r"controller must be a function of \(t, q, v\), got ndarray; .*rollout"):
        Simulation(robot).run(0.1, np.zeros((100, 1)))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"tau must be an array of one finite number, got 1\.0"):
        Simulation(robot).step(1.0)
    with pytest.raises(ModelError, match="has no body 'link4'; it has 'link"):
        Simulation(robot).wrench("link4", (0, 0, 1.0))


def test_contacts_that_do_not_exist_are_told() -> None:
    with pytest.raises(ModelError, match=r"nothing that may touch is called 'foot'; there are 'skin', 'floor'"):
        Simulation(ball()[0], contacts="foot")


def test_thousands_of_candidates_are_no_reason_to_refuse() -> None:
    """A raft of 257 boxes comes to rest, on those contacts that carry it."""
    b = RobotBuilder("boxes")
    b.body("boxes", 1.0, inertia=(1, 1, 1))
    b.joint("free", Free(), "ground", "boxes")
    for i in range(257):
        b.shape("boxes", Box((0.1, 0.1, 0.1)), at=(0.12 * (i - 128), 0.0, 0.05 if i in (0, 256) else 0.06))
    b.shape("ground", Plane(), name="floor")
    simulation = Simulation(b.build(), q=[0, 0, 1e-3, 1, 0, 0, 0])
    assert len(simulation.contacts) == 2056
    simulation.run(0.05)
    assert simulation.status.solved
    assert np.abs(simulation.v).max() < 1e-9
    assert simulation.contact_forces.sum(axis=0) == pytest.approx([0.0, 0.0, 9.81], abs=1e-6)


def test_a_pair_that_overlaps_in_the_neutral_pose_is_told_and_listed() -> None:
    b = RobotBuilder("arm")
    for i in range(3):
        b.body(f"link{i}", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
        at = (0.2 if i else 0.0, 0, 0)
        b.joint(f"joint{i}", Revolute(axis=(0, 1, 0)), f"link{i - 1}" if i else "ground", f"link{i}", at=at)
        b.shape(f"link{i}", Box((0.5, 0.1, 0.1)), at=(0.1, 0, 0))
    robot = b.build()
    told = r"shapes that overlap in its neutral pose do not touch: link0 on link2, by 100 mm; `Simulation.left_out`"
    with pytest.warns(ModelWarning, match=told):
        simulation = Simulation(robot)
    assert simulation.contacts == ()
    assert simulation.left_out == {"link0 on link2": "overlaps by 100 mm in the neutral pose"}
    with pytest.warns(ModelWarning, match=told):
        coupler.rollout(robot, robot.neutral(), np.zeros((2, 3)), np.zeros((1, 3)))
    with pytest.warns(ModelWarning, match="overlaps at the start"):
        assert len(Simulation(robot, contacts="link0 on link2").contacts) == 5


def test_hulls_with_faces_of_any_number_of_corners_touch_boxes() -> None:
    """Prisms with 3, 5 and 7 sides stand on a box on the ground."""
    b = RobotBuilder("prisms")
    b.shape("ground", Box((2.0, 2.0, 0.2)), at=(0, 0, -0.1), name="table")
    for i, sides in enumerate((3, 5, 7)):
        turns = 2 * np.pi * np.arange(sides) / sides
        rim = 0.05 * np.stack([np.cos(turns), np.sin(turns), 0 * turns], axis=1)
        b.body(f"prism{i}", 1.0, inertia=(1e-3, 1e-3, 1e-3))
        b.joint(f"free{i}", Free(), "ground", f"prism{i}", start=[0.3 * i, 0, 0.05, 1, 0, 0, 0])
        b.shape(f"prism{i}", Hull([(x, y, z) for x, y, _ in rim for z in (-0.05, 0.05)]))
    simulation = Simulation(b.build())
    simulation.run(0.02)
    assert np.abs(simulation.v).max() < 1e-6
    assert simulation.contact_forces.sum(axis=0)[2] == pytest.approx(3 * 9.81, rel=1e-6)


@pytest.mark.parametrize("integrator", ["midpoint", "euler", "rk4"])
def test_what_is_let_out_of_an_overlap_gains_no_energy_from_nowhere(integrator: str) -> None:
    robot, q = ball(0.05)  # 5 cm deep
    with pytest.warns(ModelWarning, match="overlaps at the start"):
        simulation = Simulation(robot, q=q, integrator=integrator)
    simulation.run(1.0)
    slow = 1000 * 9.81 * 1e-3**2  # m: rk4 parts overlaps by g h² a step
    out = 0.1 if integrator != "rk4" else 0.05 + slow
    assert simulation.q[2] == pytest.approx(out, abs=2e-5)
    b = RobotBuilder("slide")
    b.body("slide", 1.0)
    b.joint("slide", Prismatic(axis=(0, 0, 1), lower=0.0), "ground", "slide")
    with pytest.warns(ModelWarning, match="beyond its limit"):
        simulation = Simulation(b.build(), q=[-0.05], integrator=integrator)
    simulation.run(1.0)
    assert simulation.q[0] == pytest.approx(0.0 if integrator != "rk4" else slow - 0.05, abs=2e-5)


def test_a_robot_that_floats_over_nothing_is_told() -> None:
    with pytest.warns(ModelWarning, match=r"can touch nothing: robot.with_floor\(\) adds a floor"):
        Simulation(coupler.robots.load("mini_cheetah"))


def test_why_a_robot_that_floats_touches_nothing_is_told() -> None:
    b = RobotBuilder("ghost")
    b.body("ghost", 1.0, inertia=(1, 1, 1))
    b.joint("fly", Free(), "ground", "ghost")
    ghost = b.build()
    with pytest.warns(ModelWarning, match="its bodies have no contact points, and no shapes that touch"):
        Simulation(ghost.with_floor())
    with pytest.warns(ModelWarning, match="the option contacts, or groups and exclusions of its shapes"):
        Simulation(ghost.with_floor().with_shape("ball", Sphere(0.1), body="ghost"), contacts=[])


def test_a_robot_that_stands_fast_in_the_ground_is_told_how_low_the_ground_has_to_be() -> None:
    b = RobotBuilder("finger")
    b.body("finger", 1.0, (0, 0, -0.2), (0.01, 0.01, 0.01))
    b.joint("knuckle", Revolute(axis=(0, 1, 0)), "ground", "finger", (0, 0, 0.35))
    finger = b.build().with_shape("tip", Sphere(0.05), (0, 0, -0.4), body="finger")
    with pytest.warns(ModelWarning, match=r"put the ground 0\.1 m lower \(with_floor\(height=\.\.\.\)\)"):
        Simulation(finger.with_floor())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulation(finger.with_floor(height=-0.1))


def test_a_robot_that_floats_in_the_ground_is_told_how_high_it_has_to_start() -> None:
    b = RobotBuilder("ball")
    b.body("ball", 1.0, inertia=(1, 1, 1))
    b.joint("fly", Free(), "ground", "ball")
    ball = b.build().with_shape("ball", Sphere(0.3), body="ball")
    with pytest.warns(ModelWarning, match=r"start elsewhere, say 0\.3 m higher, or see options"):
        Simulation(ball.with_floor(), q=ball.neutral())
    slope = ball.with_shape("slope", Plane(), turned=about_y(0.3))
    with pytest.warns(ModelWarning, match="start elsewhere, or see options"):
        Simulation(slope, q=ball.neutral())


def test_a_robot_that_cannot_move_is_told() -> None:
    b = RobotBuilder("post")
    b.body("post", 1.0, inertia=(1, 1, 1))
    b.joint("weld", Fixed(), "ground", "post")
    with pytest.raises(ModelError, match="robot 'post' cannot move: it has no freedoms"):
        Simulation(b.build())


def test_a_batch_is_for_rollout() -> None:
    robot, q = ball(0.5)
    with pytest.raises(ModelError, match=r"is for coupler.rollout"):
        Simulation(robot, q=np.stack([q, q]))


def test_a_robot_without_masses_is_refused_before_it_is_simulated() -> None:
    b = RobotBuilder("empty")
    b.body("block")
    b.joint("slide", Prismatic(axis=(1, 0, 0)), "ground", "block")
    with pytest.raises(ModelError, match="mass"):
        b.build()


def test_numbers_out_of_bounds_are_told() -> None:
    robot, q = ball(0.5)
    simulation = Simulation(robot, q=q)
    with pytest.raises(ModelError, match=r"a step of 0.001 s is not possible"):
        simulation.step(np.full(6, 1e308))


def test_a_simulation_that_is_copied_or_pickled_goes_on_bit_for_bit() -> None:
    robot, q = quadruped(0.31)
    simulation = Simulation(robot, 2e-3, q=q, contacts=["*foot*"], friction=0.6, sweeps=150)
    simulation.run(0.05, holding(q))
    others = [copy.copy(simulation), copy.deepcopy(simulation), pickle.loads(pickle.dumps(simulation))]
    forces, gaps = simulation.contact_forces, simulation.gaps
    expected = simulation.run(0.05, holding(q))
    for other in others:
        assert other.options == simulation.options
        assert other.state != simulation.state
        np.testing.assert_array_equal(other.contact_forces, forces)
        np.testing.assert_array_equal(other.gaps, gaps)
        log = other.run(0.05, holding(q))
        np.testing.assert_array_equal(log.q, expected.q)
        np.testing.assert_array_equal(log.forces, expected.forces)
        assert other.state == simulation.state
        other.reset()
        np.testing.assert_array_equal(other.q, q)
    assert len(pickle.dumps(simulation)) < 200_000  # nothing that is compiled
    assert others[1]._engine is simulation._engine  # nor is it compiled again for a copy


def test_a_simulation_goes_on_in_another_process() -> None:
    robot, q = ball(0.2)
    simulation = Simulation(robot, q=q)
    simulation.run(0.1)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        log = pool.apply(Simulation.run, (simulation, 0.1))
    expected = simulation.run(0.1)
    assert isinstance(log, Log)
    assert (log.robot, log.contacts, log.step) == (expected.robot, expected.contacts, expected.step)
    for name in ("times", "q", "v", "forces", "kinetic"):
        np.testing.assert_array_equal(getattr(log, name), getattr(expected, name))
        with pytest.raises(ValueError, match="read-only"):
            getattr(log, name)[0] = 0.0


def test_errors_come_back_from_other_processes_with_all_that_they_hold() -> None:
    robot, q = ball(0.2)
    with pytest.raises(SimulationError) as caught:
        Simulation(robot, q=q).run(0.1, lambda t, q, v: np.full(6, np.nan if t > 0.05 else 0.0))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is SimulationError
    assert str(again) == str(caught.value)
    assert again.time == caught.value.time
    np.testing.assert_array_equal(again.log.q, caught.value.log.q)


def test_states_compare_by_value() -> None:
    robot, q = ball(0.2)
    one, other = Simulation(robot, q=q), Simulation(robot, q=q)
    assert one.state == other.state
    assert pickle.loads(pickle.dumps(one.state)) == copy.deepcopy(one.state) == one.state
    one.step()
    assert one.state != other.state
    assert one.state != SimulationState(1, other.state.values)
    assert one.state != "a state"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one.state)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("step", 0.0, "step must be above zero, got 0 s"),
        ("contacts", 3, "contacts must be a name or a list of names, got 3"),
        ("contacts", ["foot", 3], "contacts must be a name or a list of names"),
        ("friction", -1.0, "friction must be a finite number, 0 or more"),
        ("restitution", 2.0, "restitution: normal must be 0 to 1"),
        ("penetration", "deep", "penetration must be one of .* got 'deep'"),
        ("tolerance", "none", "tolerance must be a finite number"),
        ("sweeps", 0.5, "sweeps must be a whole number from 1 on, got 0.5"),
    ],
)
def test_options_are_checked_in_one_place(option: str, value: Any, told: str) -> None:
    robot, q = ball(0.2)
    attempts = (
        lambda **options: SimulationOptions(**options),
        lambda **options: Simulation(robot, q=q, **options),
        lambda **options: coupler.rollout(robot, q, np.zeros(6), np.zeros((1, 6)), **options),
    )
    for attempt in attempts:
        with pytest.raises(ModelError, match=told):
            attempt(**{option: value})


def test_equal_options_are_one_engine() -> None:
    robot, q = ball(0.2)
    one = Simulation(robot, np.float64(1e-3), q=q, contacts=["*"], restitution=0, sweeps=10)
    other = Simulation(robot, q=q, contacts=("*",), restitution=Restitution(0.0))
    assert one.options == other.options
    assert one._engine is other._engine
    assert Simulation(robot, q=q, tolerance=1e-8)._engine is not one._engine
    for function in (Simulation, coupler.rollout):  # whose signatures show the options and their defaults
        parameters = inspect.signature(function).parameters
        assert {field.name: parameters[field.name].default for field in fields(SimulationOptions)} == {
            field.name: field.default for field in fields(SimulationOptions)
        }


def test_what_floats_starts_on_the_ground_if_nobody_says_where() -> None:
    """Robots that float have their bases at the origin, and legs below it: they are raised, and nothing else is."""
    robot = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
    simulation = Simulation(robot)
    expected = robot.neutral()
    feet = [coupler.frame_pose(robot, expected, name)[2, 3] for name in robot.frame_names if "foot_contact" in name]
    expected[2] -= min(feet)
    assert simulation.q == pytest.approx(expected, abs=1e-12)
    hills = coupler.robots.load("mini_cheetah").with_terrain(np.array([[0.0, 0.3], [0.1, 0.2]]), (4, 4))
    run = Simulation(hills)
    run.step()
    assert expected[2] + 0.05 < run.q[2] < expected[2] + 0.25  # the highest point of the field, 0.3 m, is at its rim
    assert 0.0 <= min(run.gaps) < 0.05
    high = robot.with_floor(height=-5.0)
    assert Simulation(high).q == pytest.approx(expected, abs=1e-12)
    assert Simulation(robot, contacts="*foot*").q == pytest.approx(expected, abs=1e-12)
    b = RobotBuilder("on a ramp")
    b.shape("ground", Plane(), turned=about_y(0.3))
    b.object("ball", Sphere(0.1), at=(-1.0, 0, 0))
    run = Simulation(b.build())
    assert run.q[:2] == pytest.approx([-1.0, 0.0], abs=1e-12)
    run.step()
    assert run.gaps == pytest.approx([0.0], abs=1e-12)


@pytest.mark.parametrize("geometry", [Sphere(0.05), Box((0.1, 0.1, 0.1)), Capsule(0.03, 0.1)])
def test_what_is_in_a_bowl_starts_there_and_is_raised_only_out_of_the_ground(geometry: Geometry) -> None:
    x = np.linspace(-1.0, 1.0, 21)
    heights = 0.5 * (x[:, None] ** 2 + x**2)
    for height in (0.25, -0.3):
        b = RobotBuilder("bowl")
        b.terrain(heights, (2.0, 2.0))
        b.object("thing", geometry, at=(0.3, 0.1, height))
        run = Simulation(b.build())
        assert run.q[:2] == pytest.approx([0.3, 0.1], abs=1e-12)
        if height > 0.0:
            assert run.q[2] == height
        else:
            run.step()
            assert 0.0 <= min(run.gaps) < 0.05


def test_what_is_no_robot_and_no_state_is_refused() -> None:
    for thing in ("mini_cheetah", None, RobotBuilder("x")):
        for call in (
            lambda robot: Simulation(robot),
            lambda robot: coupler.rollout(robot, [0.0], [0.0], [[0.0]]),
            lambda robot: coupler.forward_dynamics(robot, [0.0], [0.0], [0.0]),
            lambda robot: coupler.mass_matrix(robot, [0.0]),
            lambda robot: coupler.kinetic_energy(robot, [0.0], [0.0]),
        ):
            with pytest.raises(ModelError, match=r"robot must be a Robot, as coupler.load\(\), .* got"):
                call(thing)
    with pytest.raises(ModelError, match="state must be a SimulationState"):
        Simulation(coupler.robots.load("five_bar")).restore([0.0])  # type: ignore[arg-type]


def test_a_state_of_another_simulation_is_refused() -> None:
    state = Simulation(coupler.robots.load("five_bar")).state
    with pytest.raises(ModelError, match=r"state has .* values, and this simulation of robot 'four_bar' needs"):
        Simulation(coupler.robots.load("four_bar")).restore(state)
