"""Numbers of a robot as inputs of its programs, against robots that are built with these numbers."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Actuator, ModelError, RobotBuilder, Simulation
from coupler.contact.restitution import Restitution
from coupler.mechanisms import gear
from coupler.model import Box, Fixed, Free, Revolute, Robot, Rod, Sphere, Spherical, Universal
from coupler.spatial import Transform
from varied import drawn, rebuilt

EXACT = 1e-12  # relative to the largest: rounding
Y = (0.0, 1.0, 0.0)


@cache
def hopper() -> Robot:
    """A body on a leg, with everything that has a number: gears, springs, dampers, armature, dry friction, a floor."""
    b = RobotBuilder("hopper")
    b.floor(friction=0.6)
    b.body("torso", mass=2.0, centre=(0.05, 0.0, -0.1), inertia=(0.02, 0.03, 0.025))
    b.body("pack", mass=0.4, centre=(0.0, 0.01, 0.02), inertia=(1e-3, 1e-3, 1e-3))
    b.body("leg", mass=0.5, centre=(0.0, 0.0, -0.1), inertia=(1e-3, 1e-3, 1e-3))
    b.body("rotor", mass=0.2, inertia=(1e-4, 2e-4, 1e-4))
    b.body("shin", mass=0.3, centre=(0.0, 0.0, -0.1), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("base", Free(), "ground", "torso")
    b.joint("strap", Fixed(), "torso", "pack", at=(0.0, 0.0, 0.1))
    hip = Revolute(axis=Y, stiffness=3.0, damping=0.2, armature=0.01, friction=0.3, lower=-1.0, upper=1.0)
    b.joint("hip", hip, "pack", "leg", at=(0.2, 0.0, 0.0))
    b.joint("motor", Revolute(axis=Y), "torso", "rotor", at=(0.0, 0.1, 0.0))
    b.couple("gears", ["hip", "motor"], gear(6.0), ["hip"])
    b.joint("knee", Revolute(axis=Y, stiffness=5.0, damping=0.1), "leg", "shin", at=(0.0, 0.0, -0.25))
    b.shape("torso", Box((0.2, 0.2, 0.1)), name="trunk")
    b.shape("shin", Sphere(0.03), at=(0.0, 0.0, -0.2), name="foot")
    b.spring("band", "torso", "shin", (0, 0, -0.05), (0, 0, -0.05), stiffness=40.0, free_length=0.1, damping=0.5)
    return b.build()


@cache
def linkage() -> Robot:
    """A four-bar with a base that has a mass, and a tool that is welded to its coupler."""
    b = RobotBuilder("linkage")
    for name, mass in (("crank", 0.5), ("coupler", 1.0), ("rocker", 0.8), ("tool", 0.3), ("base", 3.0)):
        b.body(name, mass, centre=(0.2, 0.0, 0.01), inertia=(1e-2, 2e-2, 2e-2))
    b.joint("bolts", Fixed(), "ground", "base")
    b.joint("shoulder", Revolute(axis=Y, damping=0.1, stiffness=2.0), "ground", "crank", actuated=True)
    b.joint("elbow", Revolute(axis=Y), "crank", "coupler", at=(0.2, 0.0, 0.0))
    b.joint("pivot", Revolute(axis=Y), "base", "rocker", at=(0.6, 0.0, 0.0))
    b.joint("weld", Fixed(), "coupler", "tool", at=(0.5, 0.1, 0.0))
    b.loop("tip", Spherical(), "coupler", "rocker", at=(0.5, 0.0, 0.0), meets=(0.4, 0.0, 0.0))
    b.spring("spring", "ground", "coupler", (0, 0, 0.3), (0.1, 0, 0.05), stiffness=50.0, pretension=2.0)
    return b.build(closure="numerical")


def one_of(values: Mapping[str, np.ndarray], i: int) -> dict[str, Any]:
    return {name: value[i] for name, value in values.items()}


def answers(robot: Robot, q: Any, v: Any, tau: Any) -> dict[str, np.ndarray]:
    """What functions of all kinds give."""
    a = coupler.forward_dynamics(robot, q, v, tau)
    forces = coupler.joint_forces(robot, q, v, a)
    body = robot.body_names[-1]
    return {
        "a": a,
        "tau": coupler.inverse_dynamics(robot, q, v, 0.3 * a),
        "H": coupler.mass_matrix(robot, q),
        "solved": coupler.mass_matrix_solve(robot, q, tau),
        "osim": coupler.inverse_osim(robot, q, [body]),
        "pose": coupler.frame_pose(robot, q, body),
        "acceleration": coupler.frame_acceleration(robot, q, v, a, body),
        "centre": coupler.centre_of_mass(robot, q),
        "momentum": coupler.momentum(robot, q, v),
        "kinetic": coupler.kinetic_energy(robot, q, v),
        "potential": coupler.potential_energy(robot, q),
        **{f"force in {name}": force for name, force in forces.joints.items()},
        **{f"passive in {name}": force for name, force in forces.passive.items()},
    }


@pytest.mark.parametrize("made", [hopper, linkage])
def test_all_numbers_at_once_give_what_robots_give_that_are_built_with_them(made: Any) -> None:
    robot, rng, count = made(), np.random.default_rng(1), 3
    values = drawn(robot, rng, count)
    values["gravity"] = rng.normal(size=(count, 3))
    fleet = robot.with_parameters(values)
    q, v = fleet.random_state(rng)
    tau = rng.normal(size=(count, robot.nv))
    found = answers(fleet, q, v, tau)
    for i in range(count):
        other = rebuilt(robot, one_of(values, i))
        assert other.independent_joints == robot.independent_joints
        own = np.broadcast_to(q, (count, robot.nq))[i]
        other.check(own)
        for name, expected in answers(other, own, v, tau[i]).items():
            error = np.abs(found[name][i] - expected).max() / (1.0 + np.abs(expected).max())
            assert error < EXACT, name


@pytest.mark.parametrize(
    "quantity", ["mass", "centre", "inertia", "at", "turned", "ratio", "stiffness", "armature", "gravity"]
)
def test_one_kind_of_number_by_itself(quantity: str) -> None:
    robot, rng = hopper(), np.random.default_rng(2)
    values = drawn(robot, rng, 2, quantity)
    assert values
    q, v = robot.random_state(rng)
    found = coupler.forward_dynamics(robot.with_parameters(values), q, v)
    assert np.abs(found[0] - found[1]).max() > 1e-9
    for i in range(2):
        expected = coupler.forward_dynamics(rebuilt(robot, one_of(values, i)), q, v)
        np.testing.assert_allclose(found[i], expected, rtol=0.0, atol=EXACT * np.abs(expected).max())


def test_lengths_of_loops_are_closed_for_each_robot() -> None:
    robot, lengths = linkage(), np.array([0.36, 0.4, 0.44])
    fleet = robot.with_parameters({"meets:tip": np.stack([lengths, 0 * lengths, 0 * lengths], axis=-1)})
    q = fleet.neutral()
    assert q.shape == (3, robot.nq)
    assert np.abs(fleet.loop_errors(q)["tip"]).max() < 1e-12
    held = fleet.pack_q({"shoulder": 0.7})
    np.testing.assert_allclose(fleet.joint_positions(held)["shoulder"], 0.7, rtol=0.0, atol=1e-15)
    assert np.abs(fleet.loop_errors(held)["tip"]).max() < 1e-12
    moved = fleet.integrate(held, [0.5], 0.1)
    np.testing.assert_allclose(fleet.joint_positions(moved)["shoulder"], 0.75, rtol=0.0, atol=1e-12)
    assert np.abs(fleet.loop_errors(moved)["tip"]).max() < 1e-12
    with pytest.raises(ModelError, match="does not close in state 0"):
        coupler.forward_dynamics(fleet, robot.neutral(), [0.0])


def four_bar(pivot: float) -> Robot:
    """A four-bar on a gear whose motor is independent."""
    b = RobotBuilder("four-bar")
    for name in ("crank", "coupler", "rocker", "rotor"):
        b.body(name, 0.5, centre=(0.2, 0.0, 0.01), inertia=(1e-2, 2e-2, 2e-2))
    b.joint("shoulder", Revolute(axis=Y), "ground", "crank")
    b.joint("elbow", Revolute(axis=Y), "crank", "coupler", at=(0.2, 0.0, 0.0))
    b.joint("pivot", Revolute(axis=Y), "ground", "rocker", at=(pivot, 0.0, 0.0))
    b.joint("motor", Revolute(axis=Y), "ground", "rotor", actuated=True)
    b.loop("tip", Spherical(), "coupler", "rocker", at=(0.5, 0.0, 0.0), meets=(0.4, 0.0, 0.0))
    b.couple("gears", ["shoulder", "motor"], gear(8.0), independent=["shoulder"])
    return b.build(closure="numerical")


def test_states_by_name_are_those_of_each_robot() -> None:
    """Dependent joints keep the positions they are given, and every state is what its robot alone would have."""
    lengths = [0.6, 0.62, 0.65]
    base = four_bar(lengths[0])
    fleet = base.with_parameters({"at:pivot": [[length, 0.0, 0.0] for length in lengths]})
    assert base.independent_joints == ["motor"]
    for given in ({"shoulder": 0.4}, {"elbow": -1.0}, {"motor": 3.0}, {"shoulder": [0.1, 0.2, 0.3]}):
        q = fleet.pack_q(given)
        (joint, position), positions = *given.items(), fleet.joint_positions(q)
        np.testing.assert_allclose(positions[joint], np.broadcast_to(position, 3), rtol=0.0, atol=1e-15)
        for i, length in enumerate(lengths):
            one = base.with_parameters({"at:pivot": [length, 0.0, 0.0]})
            own = np.broadcast_to(position, 3)[i]
            np.testing.assert_allclose(q[i], one.pack_q({joint: own}), rtol=0.0, atol=1e-9)
            np.testing.assert_allclose(q[i], four_bar(length).pack_q({joint: own}), rtol=0.0, atol=1e-9)
    ratios = base.with_parameters({"ratio:gears": [8.0, 9.0, 10.0]})
    q = ratios.pack_q({"shoulder": 0.4})
    np.testing.assert_allclose(ratios.joint_positions(q)["motor"], [3.2, 3.6, 4.0], rtol=1e-12)
    assert ratios.pack_v({"shoulder": 1.0, "motor": [8.0, 9.0, 10.0]}, q).tolist() == [[8.0], [9.0], [10.0]]
    with pytest.raises(ModelError, match=r"'shoulder': the given velocity differs .* by up to 0\.2$"):
        ratios.pack_v({"shoulder": 1.0, "motor": 8.0}, q)
    with pytest.raises(ModelError, match=r"does not close in state 1: 'gears' is off by 0\.4"):
        ratios.pack_q({"shoulder": 0.4, "motor": 3.2})


def test_actuators_and_shares_of_loads_of_robots_that_differ() -> None:
    lengths = [0.6, 0.62, 0.65]
    fleet = four_bar(0.6).with_parameters({"at:pivot": [[length, 0.0, 0.0] for length in lengths]})
    q, v, rule = (
        fleet.pack_q({"shoulder": 0.4}),
        np.array([0.7]),
        coupler.Share("coupler", {"elbow": 1, "tip": 0}, "fy"),
    )
    reached = coupler.configuration_of_actuators(fleet, [3.0], near=q)
    forces = coupler.joint_forces(fleet, q, v, v, rule=rule)
    for i, length in enumerate(lengths):
        one = four_bar(length)
        np.testing.assert_allclose(coupler.actuator_positions(one, reached[i]), [3.0], rtol=0.0, atol=1e-9)
        one.check(reached[i])
        single = fleet.of_states((3,), i)
        alone = coupler.configuration_of_actuators(single, [3.0], near=q[i])
        np.testing.assert_allclose(reached[i], alone, rtol=0.0, atol=1e-9)
        own = coupler.joint_forces(one, q[i], v, v, rule=rule).joints["elbow"]
        np.testing.assert_allclose(forces.joints["elbow"][i], own, rtol=0.0, atol=1e-9)
    whether, expected = coupler.determinate_forces(fleet), coupler.determinate_forces(four_bar(0.6))
    assert {name: x.tolist() for name, x in whether.joints.items()} == {
        name: x.tolist() for name, x in expected.joints.items()
    }
    with pytest.raises(ModelError, match="does not close in state 1"):
        coupler.configuration_of_actuators(fleet, [3.0], near=q[0])


def test_rods_of_other_lengths() -> None:
    b, rng = RobotBuilder("swing"), np.random.default_rng(9)
    for name in ("left", "right"):
        b.body(name, mass=1.0, centre=(0.0, 0.0, -0.3), inertia=(0.01, 0.01, 0.01))
        b.joint(f"{name} hinge", Revolute(axis=Y), "ground", name, at=(0.5 if name == "right" else 0.0, 0.0, 0.0))
    b.loop("rod", Rod(0.55), "left", "right", at=(0.0, 0.0, -0.3), meets=(0.0, 0.0, -0.4))
    robot, lengths = b.build(closure="numerical"), rng.uniform(0.5, 0.6, 3)
    with pytest.raises(ModelError, match="'length:rod' must not be zero"):
        robot.with_parameters({"length:rod": [0.5, 0.0]})
    with pytest.raises(ModelError, match="does not close in state 1: 'rod' has its two ends too near"):
        robot.with_parameters({"length:rod": [0.5, 9.0]}).neutral()
    fleet = robot.with_parameters({"length:rod": lengths})
    q, v = fleet.random_state(rng)
    a = coupler.forward_dynamics(fleet, q, v)
    for i, length in enumerate(lengths):
        other = rebuilt(robot, {"length:rod": length})
        assert other.independent_joints == robot.independent_joints
        other.check(q[i])
        np.testing.assert_allclose(a[i], coupler.forward_dynamics(other, q[i], v), rtol=0.0, atol=1e-11)


def test_loop_joints_that_are_turned() -> None:
    """A spatial four-bar whose rod ends in a universal joint, on a body that is welded to the rocker, turned."""
    b, rng = RobotBuilder("spatial"), np.random.default_rng(11)
    for name, mass in (("crank", 0.5), ("rod", 1.0), ("rocker", 0.8), ("horn", 0.2)):
        b.body(name, mass, centre=(0.2, 0.0, 0.01), inertia=(1e-2, 2e-2, 2e-2))
    b.joint("shoulder", Revolute(axis=Y), "ground", "crank", actuated=True)
    b.joint("ball", Spherical(), "crank", "rod", at=(0.2, 0.0, 0.0))
    b.joint("pivot", Revolute(axis=(0.1, 1.0, 0.05)), "ground", "rocker", at=(0.6, 0.05, 0.0))
    swapped = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    b.joint("weld", Fixed(), "rocker", "horn", at=Transform(swapped, np.array([0.1, 0.0, 0.0])))
    ends = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.array([0.5, 0.0, 0.0])
    b.loop("tip", Universal(), "rod", "horn", at=Transform(*ends), meets=(0.0, 0.3, 0.0))
    robot = b.build(closure="numerical")
    assert {"at:tip", "meets:tip", "turned:tip", "meets_turned:tip"} <= set(robot.parameters)
    assert "turned:tip" not in linkage().parameters  # a ball is the same however it is turned
    values = {name: 0.1 * rng.normal(size=(3, 3)) for name in ("turned:tip", "meets_turned:tip")}
    values["meets:tip"] = robot.parameters["meets:tip"] * rng.uniform(0.95, 1.05, (3, 1))
    fleet = robot.with_parameters(values)
    q, v = fleet.random_state(rng)
    a = coupler.forward_dynamics(fleet, q, v)
    for i in range(3):
        other = rebuilt(robot, one_of(values, i))
        assert other.independent_joints == robot.independent_joints
        other.check(q[i])
        expected = coupler.forward_dynamics(other, q[i], v)
        np.testing.assert_allclose(a[i], expected, rtol=0.0, atol=EXACT * np.abs(expected).max())
    with pytest.raises(ModelError, match="does not close"):
        coupler.forward_dynamics(fleet, robot.neutral(), v)


@cache
def spinning() -> Robot:
    """A ball that rolls and spins, a box that spins, which are resisted, and a puck with a pair of its own."""
    b = RobotBuilder("spinning")
    b.floor(friction=0.6)
    for name, geometry, arms in (("ball", Sphere(0.1), 0.01), ("box", Box((0.1, 0.1, 0.1)), 0.0)):
        b.body(name, mass=1.0, inertia=(4e-3, 4e-3, 4e-3))
        b.joint(f"{name} base", Free(), "ground", name)
        b.shape(name, geometry, name=name, torsion=arms, rolling=0.1 * arms)
    b.body("puck", mass=1.0, inertia=(4e-3, 4e-3, 4e-3))
    b.joint("puck base", Free(), "ground", "puck")
    b.shape("puck", Sphere(0.1), name="puck")
    b.contact_pair("puck", "floor", 0.5, 0.01, 0.001)
    return b.build()


@pytest.mark.parametrize("restitution", [None, Restitution(0.3)])
def test_friction_against_turning(restitution: Restitution | None) -> None:
    robot, still = spinning(), np.zeros((120, spinning().nv))
    values = {
        "torsion:ball": np.array([0.0, 0.005, 0.02]),
        "rolling:ball": np.array([0.001, 0.0, 0.003]),
        "torsion:box": np.array([0.005, 0.01, 0.02]),
        "torsion:puck on floor": np.array([0.003, 0.01, 0.02]),
        "rolling:puck on floor": np.array([0.003, 0.001, 0.0]),
    }
    at = {"ball base": (0.0, 0.102), "box base": (1.0, 0.052), "puck base": (2.0, 0.102)}
    q = robot.pack_q({name: [x, 0, z, 1, 0, 0, 0] for name, (x, z) in at.items()})
    v = robot.pack_v({name: [0.0, 1.0 * (name != "box base"), 3.0, 0.1, 0.0, 0.0] for name in at})
    found = coupler.rollout(robot.with_parameters(values), q, v, still, restitution=restitution)
    for i in range(3):
        alone = coupler.rollout(rebuilt(robot, one_of(values, i)), q, v, still, restitution=restitution)
        np.testing.assert_allclose(found.q[i], alone.q, rtol=0.0, atol=1e-8)  # zero has rows here, and none there
    assert np.ptp(found.v[:, -1, 2]) > 1.0
    options: list[dict[str, Any]] = [{"torsion": 0.1}, {"rolling": {"puck*": 0.1}}]
    for option in options:
        with pytest.raises(
            ModelError, match="is given both as an option and as a parameter, which the option would override"
        ):
            coupler.rollout(robot.with_parameters(values), q, v, still, **option)


@pytest.mark.parametrize("integrator", ["midpoint", "rk4"])
def test_a_batch_of_robots_that_all_differ_rolls_out_as_each_does_alone(integrator: str) -> None:
    robot, rng, count = hopper(), np.random.default_rng(3), 3
    values = drawn(robot, rng, count)
    q = robot.pack_q({"base": [0, 0, 0.5, np.cos(0.2), 0, np.sin(0.2), 0], "hip": 0.3, "knee": -0.6})
    v, controls = 0.3 * rng.normal(size=robot.nv), np.zeros((180, robot.nv))
    found = coupler.rollout(robot.with_parameters(values), q, v, controls, integrator=integrator, forces=True)
    assert found.forces is not None
    assert np.abs(found.forces).max() > 10.0  # it has landed
    for i in range(count):
        alone = rebuilt(robot, one_of(values, i))
        expected = coupler.rollout(alone, q, v, controls, integrator=integrator)
        np.testing.assert_allclose(found.q[i], expected.q, rtol=0.0, atol=1e-10)
    one = robot.with_parameters(one_of(values, 1))
    simulation = Simulation(one, q=q, v=v, integrator=integrator)
    simulation.run(0.18)
    np.testing.assert_allclose(simulation.q, found.q[1, -1], rtol=0.0, atol=1e-11)
    other = pickle.loads(pickle.dumps(simulation))
    simulation.step()
    other.step()
    np.testing.assert_array_equal(other.q, simulation.q)


def test_chunks_of_a_large_batch_have_their_own_numbers() -> None:
    b = RobotBuilder("pendulum")
    b.body("bob", mass=1.0, centre=(0.0, 0.0, -0.5), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("pivot", Revolute(axis=Y, damping=0.1), "ground", "bob")
    robot = b.build()
    masses = np.linspace(0.5, 2.0, 600).reshape(2, 300)
    found = coupler.rollout(robot.with_parameters({"mass:bob": masses}), [0.5], [0.0], np.zeros((20, 1)))
    assert found.q.shape == (2, 300, 21, 1)
    for state in ((0, 0), (0, 299), (1, 0), (1, 299)):
        alone = coupler.rollout(rebuilt(robot, {"mass:bob": masses[state]}), [0.5], [0.0], np.zeros((20, 1)))
        np.testing.assert_allclose(found.q[state], alone.q, rtol=0.0, atol=1e-13)


def test_other_values_compile_nothing() -> None:
    robot = hopper()
    one, other = robot.with_parameters({"mass:torso": 3.0}), robot.with_parameters({"mass:torso": np.ones(4)})
    assert one.given is not None and other.given is not None
    assert one.given.variant is other.given.variant
    q, v = robot.random_state(1)
    coupler.forward_dynamics(one, q, v)
    programs = dict(vars(one.given.variant)["_memory"])
    coupler.forward_dynamics(other, q, v)
    assert vars(one.given.variant)["_memory"] == programs
    both = one.with_parameters({"friction:floor": 0.2, "mass:torso": 4.0})
    assert both.parameters["mass:torso"] == 4.0
    assert both.parameters["friction:floor"] == 0.2
    assert both.parameters["mass:leg"] == 0.5
    assert robot.with_parameters({}) is robot


def test_programs_that_do_not_depend_on_a_number_are_the_same() -> None:
    robot = hopper()
    q, _ = robot.random_state(2)
    fleet = robot.with_parameters({"mass:torso": [1.0, 2.0]})
    np.testing.assert_array_equal(coupler.frame_pose(fleet, q, "shin"), coupler.frame_pose(robot, q, "shin"))


@pytest.mark.parametrize("backend", ["interpreter", "python"])
def test_other_back_ends_take_parameters(backend: Any) -> None:
    for robot in (hopper(), linkage()):
        values = one_of(drawn(robot, np.random.default_rng(4), 1), 0)
        given = robot.with_parameters(values)
        q, v = given.random_state(5)
        expected = coupler.forward_dynamics(given, q, v)
        found = coupler.forward_dynamics(given.with_backend(backend), q, v)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


def test_single_precision() -> None:
    robot = hopper()
    given = robot.with_parameters({"mass:torso": np.array([1.0, 3.0])})
    q, v = robot.random_state(6)
    found = coupler.forward_dynamics(given, q.astype(np.float32), v.astype(np.float32))
    assert found.dtype == np.float32
    expected = coupler.forward_dynamics(given, q, v)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-4 * np.abs(expected).max())


def test_a_robot_with_parameters_keeps_them_when_it_is_changed_or_copied() -> None:
    robot = hopper()
    given = robot.with_parameters({"mass:torso": 3.0})
    q, v = robot.random_state(7)
    expected = coupler.forward_dynamics(given, q, v)
    for other in (copy(given), pickle.loads(pickle.dumps(given)), given.with_floor(height=-9.0)):
        np.testing.assert_array_equal(coupler.forward_dynamics(other, q, v), expected)
    lighter = given.with_gravity((0.0, 0.0, -1.6))
    assert lighter.given is not None and lighter.parameters["mass:torso"] == 3.0
    np.testing.assert_array_equal(lighter.parameters["gravity"], [0.0, 0.0, -1.6])
    np.testing.assert_allclose(given.mass, robot.mass + 1.0)
    fleet = robot.with_parameters({"mass:torso": [1.0, 2.0]})
    np.testing.assert_allclose(fleet.mass, robot.mass + np.array([-1.0, 0.0]))
    for forbidden in (
        given.spanning_tree,
        lambda: given.save("never.xml"),
        lambda: RobotBuilder("scene").attach(given),
    ):
        with pytest.raises(ModelError, match="'mass:torso'; build it with these numbers"):
            forbidden()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mass:torsi": 1.0}, "no parameter 'mass:torsi'; there are 'mass:torso', '"),
        ({"weight:torso": 1.0}, "there are 'mass:torso', 'centre:torso', 'inertia:torso'"),
        ({"nothing": 1.0}, r"robot\.parameters lists all"),
        ({"rolling:foot": 1.0}, "shape 'foot' has no rolling of its own; build it with one, rolling=0 say"),
        ({"mass:torso": -1.0}, "'mass:torso' must be a finite number, 0 or more"),
        ({"mass:torso": [1.0, np.nan]}, "must be a finite number"),
        ({"centre:torso": [1.0, 2.0]}, "must be 3 finite numbers"),
        ({"inertia:torso": -np.eye(3)}, "none can be negative"),
        ({"inertia:torso": [np.eye(3), np.diag([1.0, 1.0, 9.0])]}, "in state 1: .*exceeds the sum"),
        ({"mass:torso": np.ones(2), "mass:leg": np.ones(3)}, "do not fit together"),
        ([1.0], "must go by name"),
    ],
)
def test_what_cannot_be_is_refused(given: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        hopper().with_parameters(given)


def test_two_parts_of_one_name_are_told() -> None:
    b = RobotBuilder("twins")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.joint("pad", Revolute(axis=Y), "ground", "a")
    b.shape("a", Sphere(0.1), name="pad", friction=0.5)
    with pytest.raises(ModelError, match="'friction:pad': two parts have it, which are both called 'pad'; rename one"):
        b.build().with_parameters({"friction:pad": 0.2})


def test_lengths_in_loops_with_a_solution_are_refused() -> None:
    robot = linkage().with_closure("analytical")
    for name in ("meets:tip", "at:elbow"):
        with pytest.raises(ModelError, match=r"'tip' is closed analytically.*with_closure\(\"numerical\"\)"):
            robot.with_parameters({name: robot.parameters[name]})
    robot.with_parameters({"mass:crank": 1.0})


def test_a_batch_is_for_rollouts() -> None:
    fleet = hopper().with_parameters({"mass:torso": np.ones(3)})
    with pytest.raises(ModelError, match=r"batch of \(3,\) is for coupler.rollout"):
        Simulation(fleet)
    with pytest.raises(ModelError, match=r"parameters of \(3,\)"):
        coupler.rollout(fleet, np.tile(hopper().neutral(), (2, 1)), np.zeros(hopper().nv), np.zeros((1, hopper().nv)))


@pytest.mark.parametrize("effort", [np.inf, 3.0])
def test_gains_of_servos(effort: float) -> None:
    """Servos that are springs of their joints, and those whose limits make them rows of the contact problem."""
    rng, gains = np.random.default_rng(8), np.array([[20.0, 0.5], [60.0, 2.0], [5.0, 0.1]])
    robot = hopper()

    def driven(stiffness: float, damping: float) -> Robot:
        return robot.with_actuators([Actuator("hip", "hip", "position", effort, np.inf, stiffness, damping)])

    servo = driven(30.0, 1.0)
    fleet = servo.with_parameters({"servo_stiffness:hip": gains[:, 0], "servo_damping:hip": gains[:, 1]})
    q = robot.pack_q({"base": [0, 0, 0.9, 1, 0, 0, 0], "hip": 0.1})
    v, targets = 0.2 * rng.normal(size=robot.nv), np.full((60, 1), 0.6)
    found = coupler.rollout(fleet, q, v, motors=targets)
    for i, (stiffness, damping) in enumerate(gains):
        alone = coupler.rollout(driven(stiffness, damping), q, v, motors=targets)
        np.testing.assert_allclose(found.q[i], alone.q, rtol=0.0, atol=1e-9)


def test_what_comes_later_counts() -> None:
    robot = hopper()
    heavy = robot.with_parameters({"gravity": (0.0, 0.0, -20.0), "mass:torso": 3.0})
    free = heavy.with_gravity((0.0, 0.0, 0.0))
    assert "gravity" not in free.given.values  # type: ignore[union-attr]
    q, _ = robot.random_state(1)
    expected = robot.with_gravity((0.0, 0.0, 0.0)).with_parameters({"mass:torso": 3.0})
    np.testing.assert_array_equal(coupler.potential_energy(free, q), coupler.potential_energy(expected, q))
    servo = robot.with_actuators([Actuator("hip", "hip", "position", stiffness=30.0)])
    given = servo.with_parameters({"servo_stiffness:hip": 5.0, "mass:torso": 3.0})
    again = given.with_actuators([Actuator("hip", "hip", "position", stiffness=7.0)])
    assert again.parameters["servo_stiffness:hip"] == 7.0
    assert again.parameters["mass:torso"] == 3.0


def test_what_is_given_once_for_all_stays_so() -> None:
    fleet = hopper().with_parameters({"mass:torso": [1.0, 2.0], "mass:leg": 1.0})
    assert fleet.parameters["mass:leg"].shape == ()
    one = fleet.with_parameters({"mass:torso": 3.0})
    assert one.given is not None and one.given.packed.ndim == 1
    assert fleet.with_parameters({"mass:torso": [1.0, 2.0, 3.0]}).mass.shape == (3,)
    with pytest.raises(ModelError, match="'mass:torso' is empty"):
        hopper().with_parameters({"mass:torso": []})


def test_an_open_loop_is_refused_in_rows_that_were_redundant() -> None:
    """A planar four-bar whose pin is moved out of its plane: that row followed from the others when it was built."""
    robot = linkage()
    open_one = robot.with_parameters({"meets:tip": (0.4, 0.1, 0.0)})
    q = robot.neutral()
    for call in (coupler.mass_matrix, lambda robot, q: coupler.forward_dynamics(robot, q, [1.0])):
        with pytest.raises(ModelError, match="does not close"):
            call(open_one, q)
    with pytest.raises(ModelError, match=r"does not close in state 1: .* has its two ends"):
        robot.with_parameters({"meets:tip": [(0.4, 0.0, 0.0), (2.0, 0.0, 0.0)]}).neutral()


@dataclass(frozen=True, eq=False)
class Cam:
    """A γ that derives a number when it is made."""

    lift: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "double", 2.0 * self.lift)

    def __call__(self, y: Any) -> Any:
        return np.array([y[0], self.double * np.sin(y[0])])  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class Deaf:
    """A γ that does not look at its number."""

    lift: float

    def __call__(self, y: Any) -> Any:
        return np.array([y[0], 0.5 * y[0]])


def geared(function: Any, **more: Any) -> Robot:
    b = RobotBuilder("cam")
    for name in ("a", "b"):
        b.body(name, mass=1.0, centre=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
        b.joint(name, Revolute(axis=Y), "ground", name)
    b.couple("c", ["a", "b"], function, ["a"], **more)
    return b.build()


def test_numbers_of_functions_of_the_users_own() -> None:
    given = geared(Cam(0.3)).with_parameters({"lift:c": 0.5})
    expected = coupler.forward_dynamics(geared(Cam(0.5)), [0.4], [1.0])
    np.testing.assert_allclose(coupler.forward_dynamics(given, [0.4], [1.0]), expected, rtol=1e-12)
    with pytest.raises(ModelError, match="when called, does not depend on 'lift'"):
        geared(Deaf(0.3)).with_parameters({"lift:c": 0.5})
    assert "crossed:c" not in geared(Cam(0.3)).parameters


def test_a_gamma_that_solves_a_loop_keeps_its_numbers() -> None:
    b = RobotBuilder("parallel")
    for i, name in enumerate(("a", "b")):
        b.body(name, mass=1.0, centre=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
        b.joint(name, Revolute(axis=Y), "ground", name, at=(float(i), 0.0, 0.0))
    b.loop("bar", Rod(1.0), "a", "b", at=(0.3, 0.0, 0.0), meets=(0.3, 0.0, 0.0))
    b.couple("same", ["a", "b"], gear(1.0), ["a"], solves=["bar"])
    with pytest.raises(ModelError, match="'same' solves 'bar' for their original lengths only"):
        b.build().with_parameters({"ratio:same": 1.1})


def test_structure_is_kept_until_values_break_it() -> None:
    """Zeros and equal moments are no inputs; values that break them count from then on, those before give the same."""
    robot = hopper.__wrapped__()  # which was given nothing yet
    q, v = robot.random_state(3)
    inertia = np.array(robot.parameters["inertia:rotor"])
    round_one = {"inertia:rotor": 1.2 * inertia, "damping:motor": 0.0, "centre:rotor": [0.0, 0.0, 0.0]}
    skewed = inertia + 1e-5 * np.array([[3.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 1.0]])
    skew_one = {"inertia:rotor": skewed, "damping:motor": 0.1, "centre:rotor": [0.01, 0.0, 0.02]}
    first = coupler.forward_dynamics(robot.with_parameters(round_one), q, v)
    given = robot.with_parameters(round_one).given
    assert given is not None
    assert given.packed.shape == (2,)  # moments about the axis and across it
    for values in (skew_one, round_one):
        found = coupler.forward_dynamics(robot.with_parameters(values), q, v)
        expected = coupler.forward_dynamics(rebuilt(robot, values), q, v)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=EXACT * np.abs(expected).max())
    np.testing.assert_allclose(found, first, rtol=0.0, atol=EXACT * np.abs(first).max())
    both = {name: np.stack([round_one[name], skew_one[name]]) for name in round_one}
    fleet = robot.with_parameters(both)
    np.testing.assert_array_equal(coupler.forward_dynamics(fleet, q, v)[0], found)
    for name, value in both.items():
        np.testing.assert_array_equal(fleet.of_states((2,), slice(1, 2)).parameters[name], value[1:])


def test_inertias_that_are_symmetric_up_to_rounding_are_made_so() -> None:
    robot = hopper()
    inertia = np.array(robot.parameters["inertia:torso"])
    inertia[0, 1], inertia[1, 0] = 1e-3, 1e-3 + 1e-12
    taken = robot.with_parameters({"inertia:torso": inertia}).parameters["inertia:torso"]
    np.testing.assert_array_equal(taken, taken.T)


def bouncing(restitution: float | None = 0.5, on_floor: float | None = None) -> Robot:
    b = RobotBuilder("ball")
    b.floor(friction=0.5, restitution=on_floor)
    b.object("ball", Sphere(0.1), (0.0, 0.0, 0.6), mass=1.0, restitution=restitution)
    return b.build()


def test_restitution_of_shapes_is_a_parameter() -> None:
    """A ball comes back as fast as its coefficient says, each of a batch by its own."""
    robot, e = bouncing(), np.array([0.1, 0.3, 0.5, 1.0])
    assert robot.parameters["restitution:ball"] == 0.5
    fleet = robot.with_parameters({"restitution:ball": e})
    start = np.tile(robot.neutral(), (len(e), 1))
    controls = np.zeros((500, robot.nv))
    run = coupler.rollout(fleet, start, np.zeros(robot.nv), controls, step=1e-3)
    for i, own in enumerate(e):
        alone = coupler.rollout(bouncing(own), start[0], np.zeros(robot.nv), controls, step=1e-3)
        np.testing.assert_allclose(run.v[i], alone.v, rtol=0.0, atol=1e-9)
    speed, fell = run.v[..., 5], np.sqrt(2.0 * 9.81 * 0.5)
    np.testing.assert_allclose(speed.max(axis=1), e * fell, atol=0.02)
    with pytest.raises(ModelError, match=r"'restitution:ball' must be 0 to 1, got 1\.5"):
        robot.with_parameters({"restitution:ball": 1.5})
    with pytest.raises(ModelError, match="its restitution must be 0 to 1, got 2"):
        bouncing(2.0)


def test_the_larger_restitution_of_two_shapes_counts_and_options_before_both() -> None:
    def highest(robot: Robot, **options: Any) -> float:
        run = coupler.rollout(robot, robot.neutral(), np.zeros(6), np.zeros((500, 6)), step=1e-3, **options)
        return float(run.v[..., 5].max())

    assert highest(bouncing(0.2, 0.6)) == pytest.approx(highest(bouncing(0.6)))
    assert highest(bouncing(None), restitution=0.6) == pytest.approx(highest(bouncing(0.6)))
    assert highest(bouncing(0.6), restitution=0.1) == pytest.approx(highest(bouncing(0.1)))


@pytest.mark.parametrize("suffix", [".urdf", ".sdf"])
def test_restitution_is_saved(suffix: str, tmp_path: Path) -> None:
    again = coupler.load(bouncing(0.7, 0.2).save(tmp_path / f"ball{suffix}"))
    assert {shape.name: shape.restitution for shape in again.shapes} == {"floor": 0.2, "ball": 0.7}


def test_a_batch_of_zeros_is_a_batch() -> None:
    robot = hopper.__wrapped__()
    q, v = robot.random_state(4)
    for given in ({"damping:motor": np.zeros(3)}, {"centre:rotor": np.zeros((3, 3)), "mass:rotor": [0.1, 0.2, 0.3]}):
        assert coupler.forward_dynamics(robot.with_parameters(given), q, v).shape == (3, robot.nv)
    assert coupler.frame_pose(robot.with_parameters({"at:base": np.zeros((3, 3))}), q, "shin").shape == (3, 4, 4)
    none = robot.with_parameters({"damping:motor": 0.0})
    np.testing.assert_array_equal(coupler.forward_dynamics(none, q, v), coupler.forward_dynamics(robot, q, v))
    run = coupler.rollout(none, np.tile(q, (2, 1)), np.zeros(robot.nv), np.zeros((1, robot.nv)), contacts=())
    assert run.q.shape == (2, 2, robot.nq)


def test_joints_in_loops_are_turned() -> None:
    """A four-bar whose rocker starts from another angle; out of its plane it could not be closed."""
    robot, turn = linkage(), np.array([0.0, 0.2, 0.0])  # about the joint's axis: its angle is another
    turned = robot.with_parameters({"turned:pivot": turn})
    q = turned.pack_q({"shoulder": 0.7})
    v, before = [0.5], robot.pack_q({"shoulder": 0.7})
    angles, old = turned.joint_positions(q), robot.joint_positions(before)
    assert abs(angles["pivot"] + 0.2 - old["pivot"]) < 1e-12 and abs(angles["elbow"] - old["elbow"]) < 1e-12
    np.testing.assert_allclose(coupler.body_poses(turned, q), coupler.body_poses(robot, before), rtol=0.0, atol=1e-12)
    found, expected = coupler.forward_dynamics(turned, q, v), coupler.forward_dynamics(robot, before, v)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    with pytest.raises(ModelError, match=r'closed analytically, .*use robot\.with_closure\("numerical"\)'):
        robot.with_closure("analytical").with_parameters({"turned:pivot": turn})


def test_of_many_numbers_the_wrong_one_is_named() -> None:
    masses = np.full(100, 3.0)
    masses[7] = np.nan
    with pytest.raises(ModelError, match=r"'mass:shin' must be a finite number, .* got nan in state 7$"):
        hopper().with_parameters({"mass:shin": masses})
    with pytest.raises(ModelError, match=r"entry 1 in state 2 is inf$"):
        hopper().with_parameters({"centre:shin": [[0, 0, 0], [0, 0, 0], [0, np.inf, 0]]})
    with pytest.raises(ModelError, match=r"q must be 50 × \d+ finite numbers, got an array of the shape \(50, 1\)"):
        coupler.size_actuators(hopper(), np.arange(50.0), np.zeros((50, 1)), np.zeros((50, 1)), np.zeros((50, 1)))
