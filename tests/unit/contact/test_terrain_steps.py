"""Bodies on height fields, stepped: scenes whose answers are known, and the compiled step beside the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coupler
from coupler.contact.formulations import touches
from coupler.contact.pairs import pairs_of
from coupler.contact.scene import ContactScene
from coupler.contact.step.program import contact_step_program
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Free,
    Geometry,
    HeightField,
    Hull,
    Plane,
    Prismatic,
    Robot,
    RobotBuilder,
    Sphere,
)
from effort import every
from reference.stepping import contact_step

G = 9.81
UPRIGHT, LYING = (1.0, 0.0, 0.0, 0.0), (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)  # lying along y
X = np.linspace(-1.0, 1.0, 21)


def along_x(heights: Any) -> HeightField:
    """A field of 2 m × 2 m whose heights depend on x alone."""
    return HeightField(np.repeat(np.asarray(heights)[:, None], 21, axis=1), (2.0, 2.0))


FLAT, ROOF, VALLEY = along_x(0.0 * X), along_x(-np.abs(X)), along_x(np.abs(X))


def loose(shape: Geometry, ground: Geometry, friction: float = 0.0) -> Robot:
    b = coupler.RobotBuilder("loose")
    b.body("body", mass=2.0, inertia=(0.02, 0.02, 0.02))
    b.joint("floats", Free(), "ground", "body")
    b.shape("body", shape, friction=friction, name="body")
    b.shape("ground", ground, friction=0.0, name="ground")
    return b.build()


def start(
    robot: Robot, place: Any, velocity: Any = (0.0,) * 6, step: float = 1e-3, turn: Any = UPRIGHT
) -> coupler.Simulation:
    q = robot.pack_q({"floats": [*place, *turn]})
    return coupler.Simulation(robot, step, q=q, v=np.array(velocity, float), tolerance=1e-12)


def run(simulation: coupler.Simulation, steps: int) -> coupler.Simulation:
    for _ in range(steps):
        simulation.step()
        assert simulation.status.solved
    return simulation


def test_a_box_balances_on_a_ridge_and_tips_over_it_if_it_is_off_balance() -> None:
    robot = loose(Box((0.4, 0.3, 0.2)), ROOF, friction=1.0)
    s = run(start(robot, (0.0, 0.02, 0.1)), 300)
    np.testing.assert_allclose(s.q, [0, 0.02, 0.1, *UPRIGHT], rtol=0, atol=1e-9)
    assert s.contact_forces[:, 2].max() <= 2.0 * G
    s = run(start(robot, (0.08, 0.02, 0.1)), 100)
    tip = 2.0 * np.arctan2(s.q[5], s.q[3])
    assert 0.02 < tip < 0.5  # about y, to the heavier side
    assert np.abs(s.q[[4, 6]]).max() < 1e-6
    # It turns about the ridge, m g d = (I + m (d² + h²)) α; and has not sunk: the ridge is in the plane of its side.
    alpha = 2.0 * G * 0.08 / (0.02 + 2.0 * (0.08**2 + 0.1**2))
    assert tip == pytest.approx(0.5 * alpha * 0.1**2, rel=0.1)
    down = np.array([-np.sin(tip), 0.0, -np.cos(tip)])
    assert -(s.q[:3] @ down) == pytest.approx(0.1, abs=2e-5)


def test_a_box_lies_on_a_single_peak() -> None:
    heights = np.zeros((21, 21))
    heights[10, 10] = 0.05
    robot = loose(Box((0.3, 0.3, 0.1)), HeightField(heights, (2.0, 2.0)))
    s = run(start(robot, (0.0, 0.0, 0.1)), 100)
    np.testing.assert_allclose(s.q, [0, 0, 0.1, *UPRIGHT], rtol=0, atol=1e-9)
    s = run(start(robot, (0.03, 0.0, 0.1)), 150)
    assert 2.0 * np.arctan2(s.q[5], s.q[3]) > 0.1
    assert s.gaps.min() > -1e-5


@pytest.mark.parametrize(
    ("shape", "height"), [(Sphere(0.1), 0.1), (Box((0.2, 0.3, 0.2)), 0.1), (Cylinder(0.1, 0.16), 0.08)]
)
def test_seams_between_cells_slow_nothing(shape: Geometry, height: float) -> None:
    slope = 0.25
    for field, n in ((FLAT, [0.0, 0.0, 1.0]), (along_x(slope * X), [-slope, 0.0, 1.0])):
        normal = np.array(n) / np.linalg.norm(n)
        tilt = 0.5 * np.arctan2(-normal[0], normal[2])
        turn = (np.cos(tilt), 0.0, -np.sin(tilt), 0.0)
        robot = loose(shape, field)
        s = start(robot, height * normal + [0.0, -0.4, 0.0], (0, 0, 0, 0.0, 1.5, 0.0), turn=turn)
        run(s, 400)
        T = coupler.frame_pose(robot, s.q, "body")
        velocity = T[:3, :3] @ s.v[3:]
        fall = 0.4 * G * np.array([normal[0] * normal[2], 0.0, normal[2] ** 2 - 1.0])
        np.testing.assert_allclose(velocity - fall, [0.0, 1.5, 0.0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(s.v[:3], 0.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("step", every(2, [1e-2, 1e-3]))
def test_a_ball_that_flies_over_a_ridge_or_past_a_step_is_not_slowed(step: float) -> None:
    robot, t = loose(Sphere(0.1), ROOF), 0.4 / 3.0
    s = start(robot, (-0.4, 0.03, 0.101 - 0.5 * G * t**2), (0, 0, 0, 3.0, 0.0, G * t), step)  # 1 mm above the ridge
    run(s, round(0.2 / step))
    np.testing.assert_allclose(s.v, [0, 0, 0, 3.0, 0.0, G * (t - 0.2)], rtol=0, atol=1e-12)
    wall = along_x(np.where(X < -0.05, 0.5, 0.0))
    s = start(loose(Sphere(0.1), wall), (0.102, -0.8, 0.3), (0, 0, 0, 0.0, 4.0, 0.0), step)  # 2 mm beside it
    run(s, round(0.15 / step))
    np.testing.assert_allclose(s.v, [0, 0, 0, 0.0, 4.0, -G * 0.15], rtol=0, atol=1e-12)


def test_a_ball_that_meets_a_ridge_is_deflected_and_gains_no_energy() -> None:
    s = start(loose(Sphere(0.1), ROOF), (-0.4, 0.03, 0.06), (0, 0, 0, 3.0, 0.0, 0.0), 1e-2)
    energy = 0.5 * s.v @ s.v + G * s.q[2]
    for _ in range(20):
        s.step()
        now = 0.5 * s.v @ s.v + G * s.q[2]
        assert now <= energy + 0.5 * G**2 * 1e-4  # what a step of free fall errs by
        energy = now
        assert s.gaps.min() > -1e-3
    assert 0.0 < s.v[3] < 3.0


@pytest.mark.parametrize("step", every(2, [1e-2, 1e-3]))
def test_a_ball_that_slides_on_flat_ground_meets_a_wall_and_does_not_enter_it(step: float) -> None:
    wall = along_x(np.where(X > 0.55, 1.0, 0.0))  # from 0.5 to 0.6
    s = start(loose(Sphere(0.1), wall), (0.0, 0.03, 0.1), (0, 0, 0, 3.0, 0.0, 0.0), step)
    deepest = []
    for _ in range(round(0.25 / step)):
        s.step()
        assert s.status.solved
        deepest.append(s.gaps.min())
    assert min(deepest) > -1e-5
    # Up the wall with what it had along it, 3 sin φ, down again, and away from it with sin φ of that at the most.
    assert -3.0 * 0.1**2 <= s.v[3] <= 1e-12
    assert s.q[2] == pytest.approx(0.1, abs=1e-9)


CUBE = Box((0.2, 0.2, 0.2))
SHARP = [CUBE, Hull(np.array(np.meshgrid(*[[-0.1, 0.1]] * 3)).reshape(3, -1).T), Cylinder(0.1, 0.2)]
STEEP = along_x(np.where(X > 0.55, 1.0, 0.0))  # rises by 1 m from x = 0.5 to 0.6


@pytest.mark.parametrize("step", every(2, [1e-2, 1e-3]))
@pytest.mark.parametrize("shape", every(2, SHARP), ids=lambda shape: type(shape).__name__)
def test_what_has_edges_passes_ridges_and_the_rim(shape: Geometry, step: float) -> None:
    s = start(loose(shape, ROOF).with_gravity((0.0, 0.0, 0.0)), (-0.4, 0.03, 0.101), (0, 0, 0, 3.0, 0.0, 0.0), step)
    run(s, round(0.2 / step))  # 1 mm above the ridge
    np.testing.assert_allclose(s.v, [0, 0, 0, 3.0, 0.0, 0.0], rtol=0, atol=1e-12)
    s = start(loose(shape, FLAT), (1.102, 0.03, 0.3), step=step)  # it falls 2 mm beside the rim
    run(s, round(0.3 / step))
    np.testing.assert_allclose(s.v, [0, 0, 0, 0.0, 0.0, -G * 0.3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", every(2, SHARP), ids=lambda shape: type(shape).__name__)
def test_what_slides_against_a_steep_side_trips_over_its_lower_edge(shape: Geometry) -> None:
    """It keeps its angular momentum about that edge: m v r = (I + m (r² + r²)) ω."""
    s, turning = start(loose(shape, STEEP), (0.3795, 0.03, 0.1), (0, 0, 0, 3.0, 0.0, 0.0)), []
    for _ in range(120):
        s.step()
        assert s.gaps.min() > (-1e-3 if isinstance(shape, Cylinder) else -1e-6)  # of which a quarter has two contacts
        turning.append(s.v[1])
    assert max(turning) == pytest.approx(2.0 * 3.0 * 0.1 / (0.02 + 2.0 * 0.02), rel=0.01)
    assert np.abs(np.array(turning[-10:])).max() < 1.0  # the upper edge has met the side, too


@pytest.mark.parametrize("shape", every(2, [Sphere(0.1), *SHARP]), ids=lambda shape: type(shape).__name__)
def test_what_moves_further_than_it_sees_within_a_step_does_not_enter_a_side(shape: Geometry) -> None:
    """At 40 m/s, 0.4 m a step; then it goes on along the side, with what it had along that."""
    s = start(loose(shape, STEEP).with_gravity((0.0, 0.0, 0.0)), (-0.55, 0.03, 0.5), (0, 0, 0, 40.0, 0.0, 0.0), 1e-2)
    deepest = []
    for _ in range(10):
        s.step()
        deepest.append(s.gaps.min())
    assert min(deepest) > -1e-6
    assert np.linalg.norm(s.v[3:]) == pytest.approx(40.0 / np.sqrt(101.0), rel=1e-6)


@pytest.mark.parametrize(
    "shape", every(2, [Capsule(0.1, 0.3), Sphere(0.1), Ellipsoid((0.1, 0.1, 0.2)), Cylinder(0.1, 0.3)])
)
def test_what_is_round_lies_in_a_valley_on_both_sides(shape: Geometry) -> None:
    s = run(start(loose(shape, VALLEY), (0.0, 0.02, 0.1 * np.sqrt(2.0)), turn=LYING), 100)
    np.testing.assert_allclose(s.q, [0, 0.02, 0.1 * np.sqrt(2.0), *LYING], rtol=0, atol=1e-9)
    pressing = s.contact_forces[np.linalg.norm(s.contact_forces, axis=1) > 1.0]
    np.testing.assert_allclose(pressing.sum(axis=0), [0.0, 0.0, 2.0 * G], rtol=0, atol=1e-7)
    assert pressing[:, 0].max() > 1.0
    assert pressing[:, 0].min() < -1.0


def test_a_cylinder_on_a_flat_field_moves_as_on_a_plane() -> None:
    for turn, height, velocity in (
        (LYING, 0.1, (0.0, 2.0, 1.0, 0.4, 0.0, 0.2)),
        (UPRIGHT, 0.08, (0, 0, 3.0, 0.4, 0.2, 0)),
    ):
        robots = [loose(Cylinder(0.1, 0.16), ground, friction=0.4) for ground in (FLAT, Plane())]
        ends = [run(start(robot, (0.03, 0.02, height), velocity, turn=turn), 100) for robot in robots]
        np.testing.assert_allclose(ends[0].q, ends[1].q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(ends[0].v, ends[1].v, rtol=0, atol=1e-8)


def test_the_rim_of_a_field_holds_what_is_over_it_and_nothing_beyond() -> None:
    robot = loose(Box((0.4, 0.3, 0.2)), FLAT, friction=0.5)
    s = run(start(robot, (0.9, 0.0, 0.1)), 200)  # half of its side is over the rim, its centre is not
    np.testing.assert_allclose(s.q, [0.9, 0, 0.1, *UPRIGHT], rtol=0, atol=1e-8)
    s = run(start(robot, (1.1, 0.0, 0.1)), 700)  # it tips over the rim, and falls
    assert s.q[2] < -0.5
    assert s.gaps.min() > -1e-3
    s = run(start(robot, (1.3, 0.0, 0.1)), 300)  # it is beside it
    np.testing.assert_allclose(s.v, [0, 0, 0, 0, 0, -0.3 * G], rtol=0, atol=1e-12)
    ball = loose(Sphere(0.1), FLAT).with_gravity((-G, 0.0, 0.0))
    s = run(start(ball, (1.1, 0.2, -0.7)), 100)  # pressed against the wall
    np.testing.assert_allclose(s.q[:3], [1.1, 0.2, -0.7], rtol=0, atol=1e-12)


@pytest.mark.parametrize("friction", [0.45, 0.55])
def test_a_box_sticks_to_a_slope_if_friction_is_above_its_tangent(friction: float) -> None:
    slope, h = 0.5, 0.1
    n = np.array([-slope, 0.0, 1.0]) / np.hypot(slope, 1.0)
    tilt = 0.5 * np.arctan(slope)
    robot = loose(Box((0.3, 0.2, 2 * h)), along_x(slope * X), friction)
    s = run(start(robot, h * n, turn=(np.cos(tilt), 0, -np.sin(tilt), 0)), 200)
    expected = -min(friction - slope, 0.0) * G * n[2] * 0.2
    assert s.v[3] == pytest.approx(-expected, abs=1e-9)


def test_what_has_sunk_is_let_out() -> None:
    for shape in (Sphere(0.1), Box((0.2, 0.2, 0.2))):
        with pytest.warns(coupler.ModelWarning, match="overlaps at the start"):
            s = start(loose(shape, FLAT), (0.1, 0.1, -0.01))
        run(s, 1200)
        assert s.q[2] >= 0.099
        assert np.abs(s.v).max() < 0.11


def test_the_compiled_step_does_what_the_reference_does() -> None:
    """Each kind of shape falls onto hills, turning, by itself."""
    rng = np.random.default_rng(8)
    hills = HeightField(rng.uniform(-0.06, 0.06, (9, 9)), (2.4, 2.4))
    forms: dict[str, Geometry] = {
        "ball": Sphere(0.1),
        "capsule": Capsule(0.05, 0.15),
        "cylinder": Cylinder(0.1, 0.08),
        "ellipsoid": Ellipsoid((0.06, 0.09, 0.12)),
        "box": Box((0.15, 0.2, 0.1)),
        "hull": Hull(rng.normal(size=(7, 3)) * 0.08),
    }
    b = coupler.RobotBuilder("several")
    b.shape("ground", hills, friction=0.4, name="hills", meets=-1)
    positions, velocities = {}, {}
    for i, (name, form) in enumerate(forms.items()):
        b.body(name, mass=1.0, inertia=(0.004, 0.004, 0.004))
        b.joint(name, Free(), "ground", name)
        b.shape(name, form, name=name, group=2, meets=0)
        turn = rng.normal(size=4)
        positions[name] = [0.3 * i - 0.75, rng.uniform(-0.5, 0.5), 0.16, *turn / np.linalg.norm(turn)]
        velocities[name] = [*rng.uniform(-3.0, 3.0, 3), *rng.uniform(-0.5, 0.5, 3)]
    robot = b.build()
    q, v, h = robot.pack_q(positions), robot.pack_v(velocities), 4e-3
    pairs, tau = pairs_of(robot), np.zeros(robot.nv)
    impulses, touched = None, 0
    for _ in range(4):  # down, until each is 3 mm above the ground
        for touch in sorted(touches(robot, q, pairs), key=lambda own: -own.contact.gap):
            positions[touch.pair.one.body].append(touch.contact.gap)
        for place in positions.values():
            place[2], place[7:] = place[2] - min(place[7:]) + 3e-3, []
        q = robot.pack_q(positions)
    ours = coupler.Simulation(robot, h, q=q, v=v, integrator="euler", tolerance=1e-11)
    for _ in range(8):
        done = contact_step(robot, q, v, tau, h, pairs, start=impulses, tolerance=1e-11)
        ours.step()
        q, v, impulses = done.q, done.v, done.solution.impulses
        touched = max(touched, ours.status.contacts)
        np.testing.assert_allclose(ours.q, q, rtol=0, atol=1e-7)
        np.testing.assert_allclose(ours.v, v, rtol=0, atol=1e-5)
    assert touched >= 5


def test_hulls_that_share_a_trace_have_their_own_centres() -> None:
    """Stones with as many corners and sides fall on hills, side by side and alone, low in their frames and high."""
    hills = 0.05 * np.sin(3.0 * X)[:, None] * np.cos(2.0 * X)
    corners = np.array([(x, y, z) for x in (-0.05, 0.05) for y in (-0.05, 0.05) for z in (-0.05, 0.05)])
    stones = {"low": Hull(corners - np.array([0, 0, 0.1])), "high": Hull(corners + np.array([0.02, 0, 0.1]))}

    def fallen(names: tuple[str, ...]) -> dict[str, np.ndarray]:
        b = RobotBuilder("stones")
        b.terrain(hills, (4.0, 4.0), friction=0.7)
        for name in names:
            b.object(name, stones[name], at=(0.6 if name == "high" else -0.6, 0.1, 0.3), mass=0.5)
        simulation = coupler.Simulation(b.build())
        assert simulation.run(0.5).gaps.min() > -1e-4
        return {name: simulation.robot.joint_positions(simulation.q)[name] for name in names}

    together = fallen(("low", "high"))
    for name in stones:
        np.testing.assert_allclose(together[name], fallen((name,))[name], atol=1e-6)


def test_a_field_may_be_carried_by_a_body() -> None:
    b = coupler.RobotBuilder("scale")
    b.body("plate", mass=5.0, inertia=(1.0, 1.0, 1.0))
    b.joint("lift", Prismatic(axis=(0.0, 0.0, 1.0), stiffness=2000.0, damping=200.0), "ground", "plate")
    b.shape("plate", HeightField(np.zeros((5, 5)), (1.0, 1.0)), name="plate", friction=0.5)
    b.body("ball", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("floats", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1), name="ball", friction=0.5)
    robot = b.build()
    s = coupler.Simulation(robot, 1e-3, q=robot.pack_q({"lift": 0.0, "floats": [0.1, 0.0, 0.12, *UPRIGHT]}))
    run(s, 1000)
    sunk = -6.0 * G / 2000.0
    np.testing.assert_allclose(s.q, [sunk, 0.1, 0.0, 0.1 + sunk, *UPRIGHT], rtol=0, atol=1e-6)


def test_states_of_a_batch_do_what_one_does() -> None:
    rng = np.random.default_rng(10)
    robot = loose(Box((0.3, 0.2, 0.1)), HeightField(rng.uniform(0.0, 0.08, (21, 21)), (2.0, 2.0)), friction=0.5)
    q0 = np.tile([0.0, 0.1, 0.16, *UPRIGHT], (9, 1))
    q0[:, 0] = np.linspace(-0.4, 0.4, 9)
    v0, forces = rng.normal(size=(9, 6)), np.zeros((60, 6))
    found = coupler.rollout(robot, q0, v0, forces, 2e-3)
    for i in (0, 4, 8):
        s = coupler.Simulation(robot, 2e-3, q=q0[i], v=v0[i])
        run(s, 60)
        np.testing.assert_array_equal(found.q[i, -1], s.q)


def test_a_step_costs_as_much_on_a_large_field_as_on_a_small_one() -> None:
    rng, programs = np.random.default_rng(9), []
    for many in (21, 1001):
        field = HeightField(rng.normal(size=(many, many)), (0.1 * (many - 1),) * 2)
        robot = loose(Box((0.3, 0.2, 0.1)), field)
        programs.append(contact_step_program(robot, ContactScene(tuple(pairs_of(robot)), 1e-3)))
    assert programs[0].operations() == programs[1].operations()
    assert str(programs[0]) == str(programs[1])
