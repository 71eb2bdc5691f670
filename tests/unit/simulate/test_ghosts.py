"""Contacts act only if bodies would overlap within the step: nothing is slowed down by what it passes."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

import coupler
from coupler import Simulation
from coupler.contact.laws import RECOVERY
from coupler.contact.pairs import pairs_of
from coupler.contact.restitution import Restitution
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Free, Geometry, Hull, Robot, RobotBuilder, Sphere
from coupler.rotation import matrix_from_quaternion
from coupler.simulate.rollout import Rollout
from coupler.spatial import Transform
from effort import every, sweep
from reference.stepping import contact_step

G, RADIUS = 9.81, 0.1
CUBE = Hull(0.1 * np.array(list(product((-1.0, 1.0), repeat=3))))
FORMS: dict[str, tuple[Geometry, float]] = {  # all reach 0.1 m high, and so far along x
    "sphere": (Sphere(0.1), 0.1),
    "capsule": (Capsule(0.05, 0.1), 0.05),
    "box": (Box((0.2, 0.2, 0.2)), 0.1),
    "cylinder": (Cylinder(0.1, 0.2), 0.1),
    "ellipsoid": (Ellipsoid((0.15, 0.1, 0.1)), 0.15),
    "flat ellipsoid": (Ellipsoid((0.05, 0.12, 0.1)), 0.05),
    "cube": (CUBE, 0.1),
    "octahedron": (Hull(0.1 * np.concatenate([np.eye(3), -np.eye(3)])), 0.1),
}


def on_ground(form: Geometry, *obstacles: tuple[Geometry, tuple[float, float, float]], gravity: float = 0.0) -> Robot:
    """A free body of 2 kg, and shapes of the ground."""
    b = RobotBuilder("thrown", (0.0, 0.0, -gravity))
    b.body("body", 2.0, inertia=(0.0133,) * 3)
    b.joint("free", Free(), "ground", "body")
    b.shape("body", form, name="body", friction=0.0)
    for i, (obstacle, at) in enumerate(obstacles):
        b.shape("ground", obstacle, at=at, name=f"obstacle{i}", friction=0.0)
    return b.build()


def thrown(robot: Robot, q: list[float], v: list[float], step: float, duration: float) -> Simulation:
    simulation = Simulation(robot, step, q=robot.pack_q({"free": q}), v=np.array(v))
    for _ in range(round(duration / step)):
        simulation.step()
        assert simulation.residual < 1e-8 * max(1.0, np.abs(v).max())
    return simulation


# Passing by

OBSTACLES = {
    "box": Box((0.2, 0.2, 0.2)),
    "cylinder": Cylinder(0.1, 0.2),
    "sphere": Sphere(0.1),
    "ellipsoid": Ellipsoid((0.15, 0.1, 0.1)),
    "capsule": Capsule(0.05, 0.1),
}


@pytest.mark.parametrize("step", every(2, [1e-2, 1e-3]))
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_ball_that_passes_beside_something_keeps_its_speed(obstacle: str, step: float) -> None:
    """All of them reach 0.1 m high; the ball passes 2 mm above, 10 µm above, and so that it nearly touches."""
    robot = on_ground(Sphere(RADIUS), (OBSTACLES[obstacle], (0.0, 0.0, 0.0)))
    for above in (2e-3, 1e-5, 1e-7):
        simulation = thrown(robot, [-0.5, 0, 0.1 + RADIUS + above, 1, 0, 0, 0], [0, 0, 0, 3.0, 0, 0], step, 0.35)
        np.testing.assert_array_equal(simulation.v, [0, 0, 0, 3.0, 0, 0])
        assert simulation.q[0] == pytest.approx(0.55, abs=1e-12)


@pytest.mark.parametrize(
    ("form", "above"), [(Capsule(0.05, 0.2), 0.15), (Sphere(0.05), 0.05), (Box((0.1, 0.1, 0.1)), 0.05)]
)
def test_what_passes_a_corner_keeps_its_speed(form: Geometry, above: float) -> None:
    """Diagonally over the edge of a box, at a corner, 2 mm beside it."""
    robot = on_ground(form, (Box((0.2, 0.2, 0.2)), (0.0, 0.0, 0.0)))
    q, v = [-0.4, -0.35, 0.1 + above + 2e-3, 1, 0, 0, 0], np.array([0, 0, 0, 4.0, 3.5, 0.0])
    np.testing.assert_array_equal(thrown(robot, q, list(v), 1e-2, 0.2).v, v)


def test_balls_that_pass_each_other_keep_their_speed() -> None:
    b = RobotBuilder("pair", (0.0, 0.0, 0.0))
    for i in range(2):
        b.body(f"ball{i}", 1.0, inertia=(0.004,) * 3)
        b.joint(f"free{i}", Free(), "ground", f"ball{i}")
        b.shape(f"ball{i}", Sphere(RADIUS), name=f"ball{i}", friction=0.5)
    robot = b.build()
    q = robot.pack_q({"free0": [-0.5, 0, 0, 1, 0, 0, 0], "free1": [0.5, 0, 2 * RADIUS + 1e-3, 1, 0, 0, 0]})
    v = robot.pack_v({"free0": [0, 9.0, 0, 5.0, 0, 0], "free1": [0, 0, 0, -4.0, 0, 0]})
    simulation = Simulation(robot, 1e-2, q=q, v=v)
    for _ in range(25):
        simulation.step()
    velocities = np.array(simulation.v).reshape(2, 6)
    turned = matrix_from_quaternion(np.array(simulation.q[3:7])) @ velocities[0, 3:]
    np.testing.assert_allclose(turned, [5.0, 0, 0], atol=1e-13)
    np.testing.assert_array_equal(velocities[1], [0, 0, 0, -4.0, 0, 0])


def row_of_forms(name: str) -> tuple[Robot, list[str]]:
    """A body, and beside each other, 1 m apart along y, that form and all after it in the list."""
    others = list(FORMS)[list(FORMS).index(name) :]
    obstacles = [(FORMS[other][0], (0.0, float(k), 0.0)) for k, other in enumerate(others)]
    return on_ground(FORMS[name][0], *obstacles), others


def thrown_at_all(robot: Robot, many: int, x: float, above: float, speed: float, step: float, steps: int) -> Rollout:
    q0 = np.array([[x, float(k), above, 1.0, 0, 0, 0] for k in range(many)])
    return coupler.rollout(robot, q0, np.tile([0, 0, 0, speed, 0, 0], (many, 1)), np.zeros((steps, 6)), step)


@pytest.mark.parametrize("name", FORMS)
def test_any_two_forms_pass_2_mm_beside_each_other(name: str) -> None:
    robot, others = row_of_forms(name)
    for x, step in product((-0.5, -0.5037), (1e-2, 1e-3)):
        found = thrown_at_all(robot, len(others), x, 0.202, 3.0, step, round(0.35 / step))
        np.testing.assert_array_equal(found.v[:, -1], np.tile([0, 0, 0, 3.0, 0, 0], (len(others), 1)))


# Meeting


@pytest.mark.parametrize("name", FORMS)
def test_any_two_forms_that_do_meet_stop_each_other(name: str) -> None:
    """Head on, at 40 m/s, in steps of 10 ms, which are longer than all of them."""
    robot, others = row_of_forms(name)
    found = thrown_at_all(robot, len(others), -0.63, 0.0, 40.0, 1e-2, 8)
    where = [-FORMS[name][1] - FORMS[other][1] for other in others]
    np.testing.assert_allclose(found.q[:, -1, 0], where, atol=2e-6)
    np.testing.assert_allclose(found.v[:, -1, 3], 0.0, atol=2e-4)


@pytest.mark.parametrize("integrator", every(2, ["trapezoid", "rk4"]))
def test_balls_meet_in_steps_in_which_they_move_further_than_their_size(integrator: str) -> None:
    """Even where the direction from one to the other has turned round by the end of a step, or of the next one."""
    b = RobotBuilder("pair", (0.0, 0.0, 0.0))
    for name in ("flies", "waits"):
        b.object(name, Sphere(0.1), mass=1.0, friction=0.0)
    robot = b.build()
    starts = [(x, y) for y in (0.0, 0.15, 0.21) for x in (-0.21, -0.25, -0.3, -0.45)]
    waits = [0, 0, 0, 1, 0, 0, 0]
    q0 = np.stack([robot.pack_q({"flies": [*start, 0, 1, 0, 0, 0], "waits": waits}) for start in starts])
    v0 = robot.pack_v({"flies": [0, 0, 0, 7.2, 0, 0]})
    ends = coupler.rollout(robot, q0, v0, np.zeros((4, robot.nv)), 5e-2, integrator=integrator).v[:, -1, [3, 9]]
    np.testing.assert_allclose(ends[:4], 3.6, atol=1e-9)
    assert (ends[4:8, 1] > 0.1).all()
    np.testing.assert_array_equal(ends[8:], [[7.2, 0.0]] * 4)


@pytest.mark.parametrize("below", every(2, [0.001, 0.01, 0.05]))
def test_a_ball_that_meets_an_edge_is_deflected_by_it(below: float) -> None:
    """Without friction it loses v·n along the line n from the edge to its centre, to first order: h |v|² / r."""
    robot = on_ground(Sphere(RADIUS), (Box((0.2, 0.2, 0.2)), (0.0, 0.0, 0.0)))
    sine = (RADIUS - below) / RADIUS
    cosine = np.sqrt(1.0 - sine * sine)
    expected = np.array([3.0 * sine * sine, 0.0, 3.0 * sine * cosine])
    for step in (5e-3, 1e-3, 2e-4):
        simulation = thrown(robot, [-0.3, 0, 0.2 - below, 1, 0, 0, 0], [0, 0, 0, 3.0, 0, 0], step, 0.12)
        assert np.abs(simulation.v[:3]).max() < 1e-12  # no friction, no spin
        np.testing.assert_allclose(simulation.v[3:], expected, atol=step * 9.0 / RADIUS)


@pytest.mark.parametrize(("speed", "step"), every(3, [(3.0, 1e-2), (300.0, 1e-2), (1e4, 1e-3)], first=1))
@pytest.mark.parametrize("form", [Sphere(0.005), Capsule(0.005, 0.02), Box((0.01, 0.01, 0.01))])
def test_a_bullet_does_not_pass_a_thin_wall(form: Geometry, speed: float, step: float) -> None:
    robot = on_ground(form, (Box((0.001, 1.0, 1.0)), (0.0, 0.0, 0.0)))
    simulation = thrown(robot, [-0.3, 0.01, 0.02, 1, 0, 0, 0], [0, 0, 0, speed, 0, 0], step, max(0.2, 5 * step))
    assert -0.0056 < simulation.q[0] < -0.0054
    assert np.abs(simulation.v[3:]).max() < 1e-9 * max(10.0, speed)


def test_a_ball_bounces_off_an_edge_as_it_should() -> None:
    """With e = 1 it is mirrored: v − 2 (v·n) n."""
    robot, below = on_ground(Sphere(RADIUS), (Box((0.2, 0.2, 0.2)), (0.0, 0.0, 0.0))), 0.05
    q = robot.pack_q({"free": [-0.3, 0, 0.2 - below, 1, 0, 0, 0]})
    for step in (1e-2, 1e-3):
        simulation = Simulation(robot, step, q=q, v=np.array([0, 0, 0, 3.0, 0, 0]), restitution=1.0)
        for _ in range(round(0.12 / step)):
            simulation.step()
        sine, cosine = 0.5, np.sqrt(0.75)
        expected = [3.0 - 6.0 * cosine**2, 0.0, 6.0 * sine * cosine]
        np.testing.assert_allclose(simulation.v[3:], expected, atol=1e-4)


# Seams


@cache
def tiles(form: Geometry, friction: float) -> Robot:
    """A body on four boxes in a row, flush with each other, of 0.5 m each."""
    b = RobotBuilder("tiles")
    b.body("slider", 2.0, inertia=(0.0133,) * 3)
    b.joint("free", Free(), "ground", "slider")
    b.shape("slider", form, friction=friction, name="slider")
    for i in range(4):
        b.shape("ground", Box((0.5, 0.5, 0.2)), at=(0.5 * i, 0.0, -0.1), friction=friction, name=f"tile{i}")
    return b.build()


@pytest.mark.parametrize(("step", "x"), every(2, [(5e-3, 0.0), (5e-3, 0.0137), (1e-2, 0.0)]))
@pytest.mark.parametrize("friction", [0.0, 0.2])
def test_a_box_does_not_trip_over_seams(friction: float, step: float, x: float) -> None:
    """It keeps its 2 m/s, or loses µ g of it every second: also where a step ends at the seam."""
    robot, steps = tiles(Box((0.2, 0.2, 0.2)), friction), round(0.5 / step)
    simulation = Simulation(robot, step, q=robot.pack_q({"free": [x, 0, 0.1, 1, 0, 0, 0]}), v=[0, 0, 0, 2.0, 0, 0])
    for _ in range(steps):
        simulation.step()
    expected = 2.0 - friction * G * steps * step
    np.testing.assert_allclose(simulation.v, [0, 0, 0, expected, 0, 0], atol=1e-7)
    assert abs(simulation.q[2] - 0.1) < 1e-9


UPRIGHT, ALONG, ACROSS = (1.0, 0, 0, 0), (np.sqrt(0.5), 0, np.sqrt(0.5), 0), (np.sqrt(0.5), np.sqrt(0.5), 0, 0)
SLIDERS = {
    "box that spins": (Box((0.2, 0.2, 0.2)), UPRIGHT, (0.0, 0.0, 3.0)),
    "hull": (CUBE, UPRIGHT, (0.0, 0.0, 0.0)),
    "hull that spins": (CUBE, UPRIGHT, (0.0, 0.0, 3.0)),
    "standing cylinder": (Cylinder(0.1, 0.2), UPRIGHT, (0.0, 0.0, 0.0)),
    "standing cylinder that spins": (Cylinder(0.1, 0.2), UPRIGHT, (0.0, 0.0, 3.0)),
    "cylinder along its way": (Cylinder(0.1, 0.2), ALONG, (0.0, 0.0, 0.0)),
    "cylinder across its way": (Cylinder(0.1, 0.2), ACROSS, (0.0, 0.0, 0.0)),
    "cylinder that rolls": (Cylinder(0.1, 0.2), ACROSS, (0.0, 20.0, 0.0)),
    "ellipsoid": (Ellipsoid((0.15, 0.1, 0.1)), UPRIGHT, (0.0, 0.0, 0.0)),
    "ellipsoid that spins": (Ellipsoid((0.15, 0.1, 0.1)), UPRIGHT, (0.0, 0.0, 3.0)),
    "ellipsoid that rolls": (Ellipsoid((0.1, 0.1, 0.15)), ACROSS, (0.0, 20.0, 0.0)),
}


@pytest.mark.parametrize("slider", SLIDERS)
def test_nothing_trips_over_seams(slider: str) -> None:
    form, turn, spin = SLIDERS[slider]
    robot, R = tiles(form, 0.0), matrix_from_quaternion(np.array(turn))
    for step, x in ((1e-3, 0.0), (1e-2, 0.0), (1e-2, 0.0137)):
        v = np.concatenate([R.T @ spin, R.T @ [2.0, 0, 0]])
        simulation = Simulation(robot, step, q=robot.pack_q({"free": [x, 0, RADIUS, *turn]}), v=v)
        for _ in range(round(0.6 / step)):
            simulation.step()
        along = matrix_from_quaternion(np.array(simulation.q[3:7])) @ simulation.v[3:]
        np.testing.assert_allclose(along, [2.0, 0, 0], atol=1e-6)
        assert abs(simulation.q[2] - RADIUS) < 1e-8


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("step", every(2, [1e-3, 1e-2], first=1))
def test_a_ball_rolls_over_seams(friction: float, step: float) -> None:
    robot = tiles(Sphere(RADIUS), friction)
    q, v = robot.pack_q({"free": [0, 0, RADIUS, 1, 0, 0, 0]}), np.array([0, 20.0, 0, 2.0, 0, 0])
    simulation = Simulation(robot, step, q=q, v=v)
    for _ in range(round(0.6 / step)):
        simulation.step()
    along = matrix_from_quaternion(np.array(simulation.q[3:7])) @ simulation.v[3:]
    np.testing.assert_allclose(along, [2.0, 0, 0], atol=1e-10)
    assert abs(simulation.q[2] - RADIUS) < 1e-12


# What NumPy makes of the same, and lanes


ROCK = Hull([(0.09, 0, 0.01), (-0.05, 0.08, 0), (-0.04, -0.08, 0.03), (0.01, 0.02, 0.09), (0, 0.01, -0.08)])


@cache
def clutter(*forms: Geometry) -> Robot:
    """Two bodies among shapes of the ground, without gravity."""
    b = RobotBuilder("clutter", (0.0, 0.0, 0.0))
    for i, form in enumerate(forms):
        b.body(f"body{i}", 1.0 + i, inertia=(0.01, 0.012, 0.008))
        b.joint(f"free{i}", Free(), "ground", f"body{i}")
        b.shape(f"body{i}", form, name=f"body{i}", friction=0.3)
    b.shape("ground", Box((0.2, 0.2, 0.2)), at=Transform.translation((0.0, 0.0, 0.0)), name="box", friction=0.3)
    b.shape("ground", Sphere(0.1), at=(0.3, 0.1, 0.2), name="ball", friction=0.3)
    return b.build()


@pytest.mark.parametrize("forms", [(Sphere(0.08), Capsule(0.05, 0.2)), (ROCK, ROCK)], ids=["round", "searched"])
@pytest.mark.parametrize("restitution", sweep([None, 0.7], [0.7]))
def test_meetings_are_what_numpy_makes_of_them_and_lanes_agree(
    restitution: float | None, forms: tuple[Geometry, Geometry]
) -> None:
    robot, rng, h = clutter(*forms), np.random.default_rng(7), 5e-3
    law = None if restitution is None else Restitution(restitution)
    pairs, starts, met, ends = pairs_of(robot, restitution=law), [], 0, []
    while len(starts) < 9:
        places = rng.uniform(-0.5, 0.5, (2, 3))
        if np.abs(places).max(axis=1).min() > 0.33 and np.linalg.norm(places[0] - places[1]) > 0.4:
            speeds = 4.0 * -places / np.linalg.norm(places, axis=1)[:, None] + rng.normal(0, 0.5, (2, 3))
            q = np.concatenate([[*place, 1.0, 0.0, 0.0, 0.0] for place in places])
            starts.append((q, np.concatenate([[*rng.normal(0, 2.0, 3), *speed] for speed in speeds])))
    for q, v in starts:
        simulation = Simulation(robot, h, q=q, v=v, restitution=restitution, tolerance=1e-13, integrator="euler")
        pressed = None
        for _ in range(40):
            options = {"start": pressed, "recovery": RECOVERY, "tolerance": 1e-13}
            done = contact_step(robot, q, v, np.zeros(12), h, pairs, **options)
            met += bool(np.abs(done.v - v).max() > 0.5)
            q, v, pressed = done.q, done.v, done.solution.impulses
            simulation.step()
            np.testing.assert_allclose(simulation.q, q, atol=1e-7)
            np.testing.assert_allclose(simulation.v, v, atol=1e-5)
        ends.append(np.array(simulation.q))
    assert met > 5
    q0, v0 = (np.stack(x) for x in zip(*starts, strict=True))
    found = coupler.rollout(
        robot, q0, v0, np.zeros((40, 12)), h, restitution=restitution, tolerance=1e-13, integrator="euler"
    )
    np.testing.assert_array_equal(found.q[:, -1], ends)
