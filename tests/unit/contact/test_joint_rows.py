"""Rows of the contact problem beyond normals and tangents: limits and dry friction of joints, and torsion."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from coupler import Simulation
from coupler.contact import Bounded, Cone, Status, Unilateral
from coupler.contact.formulations import recursive_problem, touches, traditional_problem
from coupler.contact.joint_rows import joint_rows
from coupler.contact.pairs import pairs_of
from coupler.contact.residuals import residual
from coupler.contact.restitution import Restitution
from coupler.contact.scene import ContactScene, Layout, limited_joints, rubbing_joints
from coupler.contact.step.program import contact_step_program
from coupler.graph import compile
from coupler.mechanisms import gear
from coupler.model import (
    Continuous,
    Free,
    Joint,
    ModelError,
    Plane,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Shape,
    Sphere,
)
from coupler.rotation import matrix_from_quaternion
from coupler.spatial import Transform
from effort import every, sweep
from random_robots import place, sample
from reference.rk4 import impulses_ahead
from reference.stepping import contact_impulses, contact_step

H = 1e-3  # s
G = 9.81
SAME = 1e-10  # relative to the largest entry
ROBOTS = ("tree", "floating tree", "revolute loop", "spherical loop afloat", "rod loop", "belt", "gear", "differential")


def hampered(robot: Robot, q: np.ndarray, v: np.ndarray) -> Robot:
    """With dry friction in some entries of joints, and limits around where they are, some of them hit within a step.

    The first joint with a position has both, so that there is something to test.
    """
    rng, p, tree = np.random.default_rng(0), robot.embedding.positions(q), robot.tree
    w = robot.embedding.velocities(p, v)
    first = next(i for i, link in enumerate(tree.links) if i and _limitable(link.kind))
    links = [tree.links[0]]
    for i, link in enumerate(tree.links[1:], start=1):
        kind, certain = link.kind, i == first
        friction = rng.uniform(1.0, 3.0, kind.nv) * ((rng.random(kind.nv) < 0.3) | certain)
        kind = replace(kind, friction=friction)
        if _limitable(kind):
            at, fast = p[tree.positions(i)], np.abs(w[tree.v_start[i] : tree.v_start[i + 1]])
            ends = np.where((rng.random((2, kind.nv)) < 0.3) | certain, rng.uniform(0.0, 1.0, (2, kind.nv)), np.inf)
            kind = replace(kind, lower=at - H * fast * ends[0], upper=at + H * fast * ends[1])
        links.append(replace(link, kind=kind))
    return replace(robot, tree=replace(tree, links=tuple(links)))


def _limitable(kind: Joint) -> bool:
    return kind.nq == kind.nv > 0 and not isinstance(kind, Continuous)


def on_a_floor(robot: Robot, q: np.ndarray) -> Robot:
    """With balls on some bodies, the lowest of which touches a floor."""
    rng = np.random.default_rng(0)
    some = rng.permutation([body for body in robot.bodies if robot.tree.place[body][0]])[:3]
    balls = tuple(Shape(body, body, Sphere(0.1), place(rng), friction=0.5, meets=0) for body in some)
    floor = Shape("floor", "ground", Plane(), Transform.identity(), meets=-1)
    level = replace(robot, shapes=(floor, *balls))
    lowest = min(touch.contact.gap for touch in touches(level, q, pairs_of(level)))
    return replace(level, shapes=(replace(floor, at=Transform.translation((0, 0, lowest))), *balls))


def raised(floor: Shape, height: float) -> Shape:
    return replace(floor, at=Transform.translation((0, 0, height)) @ floor.at)


def compiled_step(robot: Robot, scene: ContactScene, q: Any, v: Any, tau: Any) -> tuple[np.ndarray, np.ndarray]:
    """v and the impulses after a compiled step."""
    layout = Layout(robot, scene)
    state = layout.start(robot, np.asarray(q), np.asarray(v))
    after = compile(contact_step_program(robot, scene))(state, np.asarray(tau, float))
    assert after[layout.places["residual"]] < 1e-10
    return after[layout.places["v"]], after[layout.places["impulses"]]


@cache
def case(name: str) -> tuple[Robot, np.ndarray, np.ndarray, np.ndarray]:
    """A robot with limits, dry friction and contacts, its state, and forces; what is not a step is interpreted."""
    robot = sample(name).robot.with_backend("interpreter")
    q, v = robot.random_state(2)
    return on_a_floor(hampered(robot, q, v), q), q, v, np.random.default_rng(1).normal(size=robot.nv)


@pytest.mark.parametrize("name", every(2, ROBOTS))
def test_both_ways_give_the_same_problem_with_joints(name: str) -> None:
    robot, q, v, tau = case(name)
    pairs = pairs_of(robot)
    one, other = (make(robot, q, v, tau, H, pairs)[0] for make in (traditional_problem, recursive_problem))
    assert one.blocks == other.blocks
    assert {*map(type, one.blocks)} == {Cone, Unilateral, Bounded}
    np.testing.assert_allclose(one.A, other.A, rtol=0, atol=SAME * np.abs(one.A).max())
    np.testing.assert_allclose(one.b, other.b, rtol=0, atol=SAME * np.abs(one.b).max())


STEPS = [("tree", True), ("revolute loop", False), ("spherical loop afloat", True), ("gear", True), ("belt", False)]


@pytest.mark.parametrize(("name", "touching"), sweep(product(ROBOTS, (True, False)), STEPS))
def test_the_compiled_step_leads_to_the_same_velocities(name: str, touching: bool) -> None:
    """Without contact they are unique, because what joints ask for is convex; with these contacts they prove to be."""
    robot, q, v, tau = case(name)
    pairs = tuple(pairs_of(robot)) if touching else ()
    done = contact_step(robot, q, v, tau, H, pairs, tolerance=1e-12)
    found, impulses = compiled_step(robot, ContactScene(pairs, H, tolerance=1e-13, sweeps=50_000), q, v, tau)
    np.testing.assert_allclose(found, done.v, rtol=0, atol=1e-9 * max(1.0, np.abs(done.v).max()))
    joints = impulses[3 * len(done.touches) :]
    assert len(joints) == len(limited_joints(robot)) + len(rubbing_joints(robot))
    assert np.abs(joints).max() > 0.0
    assert touching or np.abs(joints[: len(limited_joints(robot))]).max() > 0.0


@pytest.mark.parametrize("name", sweep(["floating tree", "revolute loop"], ["revolute loop"]))
def test_without_limits_dry_friction_still_counts(name: str) -> None:
    robot, q, v, tau = case(name)
    problem, _ = traditional_problem(robot, q, v, tau, H, [], limits=False)
    assert [*map(type, problem.blocks)] == [Bounded] * len(rubbing_joints(robot))
    done = contact_step(robot, q, v, tau, H, [], limits=False, tolerance=1e-12)
    found, _ = compiled_step(robot, ContactScene((), H, 1e-13, 50_000, limits=False), q, v, tau)
    np.testing.assert_allclose(found, done.v, rtol=0, atol=1e-9 * np.abs(done.v).max())
    limited = contact_step(robot, q, v, tau, H, [], tolerance=1e-12)
    assert np.abs(limited.v - done.v).max() > 1e-2


# Single joints


@cache
def slider(**options: Any) -> Robot:
    """2 kg along x, without gravity."""
    b = RobotBuilder("slider", (0.0, 0.0, 0.0))
    b.body("block", 2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(axis=(1, 0, 0), **options), "ground", "block")
    return b.build()


def test_lower_limits_come_first_and_missing_ones_have_no_row() -> None:
    joints = joint_rows(slider(lower=-0.1, upper=0.3, friction=5.0), [0.1], 0.01)
    np.testing.assert_array_equal(joints.rows[:, 0], (1.0, -1.0, 1.0))
    np.testing.assert_allclose(joints.closures, (20.0, 20.0, 0.0), rtol=1e-14)
    assert joints.blocks == (Unilateral(), Unilateral(), Bounded(-0.05, 0.05))
    above = joint_rows(slider(upper=0.3), [0.4], 0.01)
    np.testing.assert_array_equal(above.rows, [[-1.0]])
    np.testing.assert_allclose(above.closures, [-10.0], rtol=1e-14)
    assert joint_rows(slider(), [0.0], 0.01).blocks == ()


@pytest.mark.parametrize("method", ["bisection", "gauss_seidel", "admm", "lemke"])
def test_a_joint_stops_at_its_limits(method: str) -> None:
    robot = slider(lower=-0.1, upper=0.2)
    for speed, end in ((3.0, 0.2), (-3.0, -0.1)):
        q, v, start = np.zeros(1), np.array([speed]), None
        for _ in range(20):
            done = contact_step(robot, q, v, [0.0], 0.01, [], method=method, start=start)
            q, v, start = done.q, done.v, done.solution.impulses
            assert -0.1 - 1e-12 <= q[0] <= 0.2 + 1e-12
        assert (q[0], v[0]) == pytest.approx((end, 0.0), abs=1e-9)
    pressed = contact_step(robot, [0.2], [0.0], [5.0], 0.01, [], method=method)
    assert pressed.solution.impulses == pytest.approx([0.0, 0.05], abs=1e-10)
    assert pressed.force(0.01) == pytest.approx([0.0, 0.0, 0.0])  # of contacts, of which there are none


def test_a_limit_of_a_rotor_stops_the_link_that_it_turns() -> None:
    b = RobotBuilder("geared", (0.0, 0.0, 0.0))
    b.body("link", 1.0, inertia=(0.1, 0.1, 0.1))
    b.body("rotor", 0.1, inertia=(1e-4, 1e-4, 1e-4))
    b.joint("hinge", Revolute(axis=(0, 0, 1)), "ground", "link")
    b.joint("motor", Revolute(axis=(0, 0, 1), upper=6.0), "ground", "rotor")
    b.couple("gear", ["hinge", "motor"], gear(6.0), ["hinge"])
    robot = b.build()
    q, v = np.zeros(1), np.array([4.0])
    for _ in range(40):
        done = contact_step(robot, q, v, [0.0], 0.01, [])
        q, v = done.q, done.v
    assert q == pytest.approx([1.0], abs=1e-12)
    assert v == pytest.approx([0.0], abs=1e-12)


def test_dry_friction_slows_a_joint_down_and_holds_it() -> None:
    robot, h = slider(friction=3.0), 0.01
    q, v = np.zeros(1), np.array([0.1])
    for k in range(1, 10):
        done = contact_step(robot, q, v, [0.0], h, [])
        q, v = done.q, done.v
        assert v[0] == pytest.approx(max(0.1 - 1.5 * h * k, 0.0), abs=1e-14)
    held = contact_step(robot, q, v, [2.9], h, [])
    assert (held.v[0], held.solution.impulses[0]) == pytest.approx((0.0, -0.029), abs=1e-14)
    assert contact_step(robot, q, v, [3.1], h, []).v == pytest.approx([0.05 * h], rel=1e-9)


def test_a_force_is_that_of_contacts_whatever_joints_do() -> None:
    b = RobotBuilder("piston")
    b.body("rod", 3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(lower=0.0, upper=1.0, friction=2.0), "ground", "rod")
    b.shape("rod", Sphere(0.1))
    b.shape("ground", Plane())
    robot = b.build()
    done = contact_step(robot, [0.1], [-0.1], [0.0], H, pairs_of(robot))
    assert done.solution.impulses.shape == (6,)
    assert done.solution.impulses[5] == pytest.approx(0.0, abs=1e-15)  # at rest on the ground, whatever its friction
    assert done.force(H)[2] == pytest.approx(3.0 * (G + 0.1 / H) - 0.0, rel=1e-9)


def test_a_contact_rebounds_beside_limits_as_without_them() -> None:
    """The piston of 3 kg falls on the ground, 0.05 m below; limits that it does not reach change nothing."""

    def heights(**limits: Any) -> list[float]:
        b = RobotBuilder("piston")
        b.body("rod", 3.0, inertia=(0.1, 0.1, 0.1))
        b.joint("slide", Prismatic(**limits), "ground", "rod")
        b.shape("rod", Sphere(0.1))
        b.shape("ground", Plane())
        robot = b.build()
        pairs, q, v, pending = pairs_of(robot, restitution=Restitution(0.8)), np.array([0.15]), np.zeros(1), None
        found = []
        for _ in range(250):
            done = contact_step(robot, q, v, [0.0], H, pairs, pending=pending)
            q, v, pending = done.q, done.v, done.pending
            found.append(float(q[0]))
        return found

    free = heights()
    assert max(free[150:]) > 0.12  # it came back up
    np.testing.assert_allclose(heights(lower=-5.0, upper=5.0), free, rtol=0, atol=1e-12)


def test_a_formulation_that_leaves_joints_out_is_told() -> None:
    robot = slider(lower=-1.0)

    def contacts_only(*arguments: Any) -> Any:
        return recursive_problem(slider(), *arguments[1:])

    with pytest.raises(ModelError, match="'slider': contacts_only gives 0 rows, but contacts and joints have 1"):
        contact_step(robot, [0.0], [0.0], [0.0], H, [], formulation=contacts_only)


@pytest.mark.parametrize(
    ("penetration", "back"), [("position", 20.0), ("velocity", 0.0), ("limited", 0.01), (-0.01, 10.0)]
)
def test_ways_beyond_limits_count_as_overlaps_do_for_steps_of_higher_order(
    penetration: str | float, back: float
) -> None:
    """2 kg that rest 0.02 m beyond a limit, and the velocity that a step gives them; Euler's method takes them back."""
    robot = slider(upper=0.1)
    state: Any = robot, [0.12], [0.0], [0.0], H, []
    hit = impulses_ahead(*state, penetration=penetration)
    assert hit.solution.impulses == pytest.approx([2.0 * back], rel=1e-9, abs=1e-12)
    assert contact_impulses(*state, penetration=penetration).solution.impulses == pytest.approx([40.0], rel=1e-9)
    assert impulses_ahead(*state, limits=False).solution.impulses.size == 0


# Torsion


@cache
def ball(radius: float = 0.1, inertia: float = 0.02) -> Robot:
    """2 kg on a plane."""
    b = RobotBuilder("ball")
    b.body("ball", 2.0, inertia=(inertia,) * 3)
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(radius), name="ball")
    b.shape("ground", Plane(), name="floor", friction=0.5)
    return b.build()


def spins(robot: Robot, spin: float, torsion: float | None, steps: int, method: str = "bisection") -> list[float]:
    """Angular velocities of a ball about the vertical, step by step."""
    pairs, start = pairs_of(robot, torsion=torsion), None
    q, v = robot.pack_q({"free": [0, 0, 0.1, 1, 0, 0, 0]}), robot.pack_v({"free": [0, 0, spin, 0, 0, 0]})
    found = []
    for _ in range(steps):
        done = contact_step(robot, q, v, np.zeros(6), H, pairs, method=method, start=start)
        assert done.solution.status is Status.SOLVED
        q, v, start = done.q, done.v, done.solution.impulses
        found.append(float((matrix_from_quaternion(q[3:]) @ v[:3])[2]))
    return found


@pytest.mark.parametrize("method", ["bisection", "gauss_seidel", "admm", "lemke"])
def test_torsion_slows_a_spin_evenly_and_stops_it(method: str) -> None:
    """By torsion m g / I; in the step in which it would turn round it stops instead."""
    torsion, spin = 0.01, 0.4
    rate = torsion * 2.0 * G / 0.02
    expected = np.maximum(spin - rate * H * np.arange(1, 61), 0.0)
    assert expected[-1] == 0.0 < expected[30]
    np.testing.assert_allclose(spins(ball(), spin, torsion, 60, method), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(spins(ball(), -spin, torsion, 60, method), -expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("torsion", [None, 0.0])
def test_without_torsion_a_ball_spins_for_ever(torsion: float | None) -> None:
    np.testing.assert_allclose(spins(ball(), 0.4, torsion, 50), 0.4, rtol=1e-12)


def test_torsion_acts_between_two_bodies_alike() -> None:
    """A ball that spins on one that floats free: what the one loses the other gets."""
    b = RobotBuilder("two", (0.0, 0.0, 0.0))
    for name in ("low", "high"):
        b.body(name, 1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(0.1))
    robot = b.build()
    q = robot.pack_q({"low": [0, 0, 0, 1, 0, 0, 0], "high": [0, 0, 0.2, 1, 0, 0, 0]})
    v = robot.pack_v({"low": [0, 0, 0, 0, 0, 0], "high": [0, 0, 5.0, 0, 0, -1.0]})
    (pair,) = pairs_of(robot, torsion=1e-3)
    done = contact_step(robot, q, v, np.zeros(12), H, [pair])
    normal, spin = done.solution.impulses[0], done.solution.impulses[3]
    assert normal == pytest.approx(0.5, rel=1e-9)  # both go on with half the speed
    assert abs(spin) == pytest.approx(1e-3 * normal, rel=1e-12)
    low, high = (done.v[robot.v_slice(name)][2] for name in ("low", "high"))
    assert (low, high) == pytest.approx((0.05, 4.95), rel=1e-9)


def test_both_ways_give_the_same_problem_with_torsion() -> None:
    q, v = sample("spherical loop afloat").robot.random_state(0)
    robot = on_a_floor(sample("spherical loop afloat").robot, q)
    pairs = pairs_of(robot, torsion=0.02)
    pairs[1] = replace(pairs[1], torsion=None)
    one, other = (
        make(robot, q, v, np.zeros(robot.nv), H, pairs)[0] for make in (traditional_problem, recursive_problem)
    )
    assert [block.size for block in one.blocks] == [4, 3, 4]
    np.testing.assert_allclose(one.A, other.A, rtol=0, atol=1e-10 * np.abs(one.A).max())
    np.testing.assert_allclose(one.b, other.b, rtol=0, atol=1e-10 * np.abs(one.b).max())
    done = contact_step(robot, q, v, np.zeros(robot.nv), H, pairs)
    assert residual(one, done.solution.impulses).total < 1e-9


def test_a_contact_with_torsion_rebounds_as_without() -> None:
    """The spin has no part in it: a ball that falls without spin does the same."""
    robot, found = ball(), []
    for torsion in (None, 0.05):
        pairs = pairs_of(robot, restitution=Restitution(0.8, form="impulse"), torsion=torsion)
        q, v, pending = robot.pack_q({"free": [0, 0, 0.12, 1, 0, 0, 0]}), np.zeros(6), None
        for _ in range(120):
            done = contact_step(robot, q, v, np.zeros(6), H, pairs, pending=pending)
            q, v, pending = done.q, done.v, done.pending
        found.append((q[2], v[5]))
    assert found[0][0] > 0.105
    assert found[1] == pytest.approx(found[0], abs=1e-12)


def test_torsion_must_be_a_length() -> None:
    with pytest.raises(ModelError, match="torsion must be a finite number, 0 or more, got -0"):
        pairs_of(ball(), torsion=-0.1)


@pytest.mark.parametrize("name", every(3, ("tree", "spherical loop afloat", "floating tree")))
def test_a_compiled_step_with_contacts_of_three_four_and_six_rows_is_that_of_numpy(name: str) -> None:
    """All balls are in the floor, which lets them not go deeper; in lanes as one by one."""
    q, _ = sample(name).robot.random_state(0)
    robot = on_a_floor(sample(name).robot, q)
    pairs = pairs_of(robot, torsion=0.02, rolling=0.03)
    highest = max(touch.contact.gap for touch in touches(robot, q, pairs))
    pairs = [replace(pair, other=raised(pair.other, highest)) for pair in pairs]
    pairs[0] = replace(pairs[0], torsion=None, rolling=None)
    pairs[1] = replace(pairs[1], rolling=None)
    scene = ContactScene(tuple(pairs), H, penetration="velocity")
    layout, step, rng = Layout(robot, scene), compile(contact_step_program(robot, scene)), np.random.default_rng(1)
    assert [*layout.contact_rows.widths] == [3, 4, 6]
    forces = rng.normal(size=(12, robot.nv))
    states = np.array([layout.start(robot, q, rng.normal(size=robot.nv)) for _ in forces])
    results = np.array([step(state, tau) for state, tau in zip(states, forces, strict=True)])
    for state, tau, result in zip(states, forces, results, strict=True):
        before = state[layout.places["q"]], state[layout.places["v"]]
        options = {"method": "admm", "tolerance": 1e-12, "penetration": "velocity"}
        expected = contact_step(robot, *before, tau, H, pairs, **options)
        np.testing.assert_allclose(result[layout.places["v"]], expected.v, rtol=0, atol=1e-8)
    moments = results[:, layout.places["impulses"]][:, [6, *range(10, 13)]]
    assert (np.abs(moments).max(axis=0) > 0.0).all()
    np.testing.assert_array_equal(step(states, forces), results)


def stroked(lower: float, upper: float, integrator: str) -> Simulation:
    """A slider-crank of 0.2 m and 0.6 m in motion, whose slide has limits; its stroke is from 0.4 m to 0.8 m."""
    b, turn = RobotBuilder("slider-crank"), Revolute(axis=(0.0, 1.0, 0.0))
    for name, mass, centre in (("crank", 1.0, 0.1), ("rod", 0.5, 0.3), ("slide", 0.5, 0.0)):
        b.body(name, mass, (centre, 0.0, 0.0), (0.01, 0.01, 0.01))
    b.joint("A", turn, "ground", "crank", independent=True)
    b.joint("B", turn, "crank", "rod", at=(0.2, 0.0, 0.0))
    b.joint("S", Prismatic(axis=(1.0, 0.0, 0.0), lower=lower, upper=upper), "ground", "slide")
    b.loop("C", turn, "rod", "slide", at=(0.6, 0.0, 0.0))
    robot = b.build().with_gravity((0.0, 0.0, 0.0))
    return Simulation(robot, integrator=integrator, q=robot.pack_q({"A": 1.0}), v=robot.pack_v({"A": 6.0}))


@pytest.mark.parametrize("integrator", ["midpoint", "euler", "rk4", "trapezoid"])
def test_limits_at_the_ends_of_a_stroke_are_never_felt(integrator: str) -> None:
    """A slide turns round there by itself: its crank turns on as it does without limits. A closer limit is felt."""
    moves = [stroked(*limits, integrator) for limits in ((-np.inf, np.inf), (0.4, 0.8), (0.4, 0.79))]
    for _ in range(1500):
        for simulation in moves:
            simulation.step()
    free, limited, stopped = (simulation.q for simulation in moves)
    np.testing.assert_allclose(limited, free, atol=1e-9)
    assert np.abs(stopped - free).max() > 1.0
