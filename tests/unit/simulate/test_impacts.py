"""Impacts that rebound, in compiled steps: heights, chains of balls, laws by pair, and what NumPy makes of the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import coupler
from coupler import Simulation
from coupler.contact.pairs import pairs_of
from coupler.contact.restitution import Restitution
from coupler.model import Box, Free, ModelError, Plane, Prismatic, Revolute, Robot, RobotBuilder, Sphere
from effort import every
from reference.stepping import contact_step

G, RADIUS, MASS = 9.81, 0.1, 1.5
FORMS = ["velocity", "impulse"]


@cache
def balls(n: int = 1, *, gravity: float = 0.0, friction: float = 0.0, floor: bool = False) -> Robot:
    b = RobotBuilder("balls", (0.0, 0.0, -gravity))
    for i in range(n):
        b.body(f"ball{i}", MASS, inertia=(0.4 * MASS * RADIUS**2,) * 3)
        b.joint(f"free{i}", Free(), "ground", f"ball{i}")
        b.shape(f"ball{i}", Sphere(RADIUS), name=f"ball{i}", friction=friction)
    if floor:
        b.shape("ground", Plane(), name="floor", friction=friction)
    return b.build()


def placed(centres: Sequence[Sequence[float]]) -> np.ndarray:
    return np.concatenate([[*centre, 1.0, 0.0, 0.0, 0.0] for centre in centres])


def heights(e: float, form: str, step: float, height: float, duration: float) -> np.ndarray:
    """Of a ball above a floor, after each step."""
    robot = balls(gravity=G, floor=True)
    q = placed([(0, 0, RADIUS + height)])
    simulation = Simulation(robot, step, q=q, restitution=Restitution(e, form=form))
    found = []
    for _ in range(round(duration / step)):
        simulation.step()
        found.append(simulation.q[2] - RADIUS)
    return np.array(found)


def peaks(z: np.ndarray) -> list[float]:
    return [float(z[i]) for i in range(1, len(z) - 1) if z[i - 1] < z[i] >= z[i + 1]]


# A ball on a floor


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", every(2, [1e-2, 3e-3]))
@pytest.mark.parametrize("e", [1.0, 0.7])
def test_a_ball_rebounds_to_the_right_height_at_any_step(e: float, step: float, form: str) -> None:
    """e² H, e⁴ H ..., to h² g: no more than what positions after steps miss of a top by."""
    z = heights(e, form, step, 0.5, 2.2)
    tops = peaks(z)
    assert len(tops) >= 3
    for bounce, top in enumerate(tops[:3], 1):
        assert top == pytest.approx(e ** (2 * bounce) * 0.5, abs=step**2 * G)
    assert z.min() > -1e-15  # its gap is closed, and no more [002, eq. 2a]
    assert min(z) < 1e-15


@pytest.mark.parametrize("step", [1e-2, 1e-3])
@pytest.mark.parametrize("e", [0.0, 0.5])
def test_a_ball_comes_to_rest_on_the_floor_and_not_above(e: float, step: float) -> None:
    robot, law = balls(gravity=G, floor=True), Restitution(e)
    simulation = Simulation(robot, step, q=placed([(0, 0, RADIUS + 0.4137)]), restitution=law)
    for _ in range(round(1.2 / step)):
        simulation.step()
    assert abs(simulation.q[2] - RADIUS) < 1e-14
    assert np.abs(simulation.v).max() < 1e-12
    assert simulation.contact_forces[0, 2] == pytest.approx(MASS * G, rel=1e-9)


def test_restitution_of_zero_is_none() -> None:
    robot, q = balls(gravity=G, floor=True), placed([(0, 0, RADIUS + 0.05)])
    one, other = (Simulation(robot, 7e-3, q=q, restitution=e) for e in (None, 0.0))
    for _ in range(30):
        one.step()
        other.step()
        np.testing.assert_array_equal(one.q, other.q)


# Chains of balls


def cradle(gap: float, step: float, form: str, moving: int = 1, e: float = 1.0) -> tuple[np.ndarray, float]:
    """Speeds of five balls in a row after the first ones have come with 1 m/s, and the largest kinetic energy."""
    robot = balls(5)
    before = [0.0123 if i < moving else 0.0 for i in range(5)]
    q = placed([(i * (2 * RADIUS + gap) - before[i], 0, 0) for i in range(5)])
    v = np.zeros((5, 6))
    v[:moving, 3] = 1.0
    law = Restitution(e, form=form)
    simulation = Simulation(robot, step, q=q, v=v.ravel(), restitution=law, tolerance=1e-12)
    energies = []
    for _ in range(round(0.08 / step)):
        simulation.step()
        energies.append(coupler.kinetic_energy(robot, np.array(simulation.q), np.array(simulation.v)))
    return np.array(simulation.v).reshape(5, 6)[:, 3], max(energies)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", every(2, [1e-3, 1e-2]))
@pytest.mark.parametrize("gap", every(3, [0.0, 1e-5, 1e-4, 9e-4]))
def test_newtons_cradle_does_not_depend_on_gap_and_step(gap: float, step: float, form: str) -> None:
    speeds, energy = cradle(gap, step, form)
    np.testing.assert_allclose(speeds, [0, 0, 0, 0, 1], atol=1e-9)
    assert energy <= 0.5 * MASS * (1.0 + 1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gap", every(2, [0.0, 1e-4], first=1))
def test_two_balls_of_newtons_cradle_push_two_out(gap: float, form: str) -> None:
    """From gaps in which the balls of the first pair still move together."""
    speeds, _ = cradle(gap, 1e-3, form, moving=2)
    np.testing.assert_allclose(speeds, [0, 0, 0, 1, 1], atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_a_chain_that_loses_energy_ends(form: str) -> None:
    """e = 1/2, apart by less than they move in a step: as one after the other, (1 + e)⁴ / 2⁴ for the last ball."""
    speeds, energy = cradle(1e-4, 1e-3, form, e=0.5)
    assert energy <= 0.5 * MASS * (1.0 + 1e-12)
    assert speeds[-1] == pytest.approx((0.75) ** 4, abs=1e-9)
    assert (np.diff(speeds) > -1e-6).all()
    assert speeds.sum() == pytest.approx(1.0, abs=1e-9)


def test_a_box_that_lands_flat_does_not_turn() -> None:
    """Its corners are hit at once."""
    b = RobotBuilder("box")
    b.body("box", 2.0, inertia=(0.02, 0.03, 0.04))
    b.joint("free", Free(), "ground", "box")
    b.shape("box", Box((0.3, 0.4, 0.2)), name="box")
    robot = b.build().with_floor(0.4)
    q = placed([(0, 0, 0.1 + 0.05)])
    simulation = Simulation(robot, 2e-3, q=q, restitution=0.6)
    top = 0.0
    for _ in range(140):
        simulation.step()
        if simulation.v[5] > 0.0:
            top = max(top, simulation.q[2] - 0.1)
        assert np.abs(simulation.v[:3]).max() < 1e-9
    assert top == pytest.approx(0.36 * 0.05, abs=4e-6 * G)


def test_what_rests_without_restitution_holds_what_rebounds() -> None:
    """A ball on a light plate on the floor rebounds as from the floor; not as from a plate in the air."""
    b = RobotBuilder("drum")
    b.body("plate", 0.1, inertia=(0.001, 0.001, 0.002))
    b.joint("slide", Prismatic(axis=(0, 0, 1)), "ground", "plate")
    b.shape("plate", Sphere(0.05), name="plate")
    b.body("ball", MASS, inertia=(0.006,) * 3)
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(RADIUS), name="ball")
    robot = b.build().with_floor(0.0)
    q = robot.pack_q({"slide": 0.05, "free": [0, 0, 0.1 + RADIUS + 0.3, 1, 0, 0, 0]})
    simulation = Simulation(robot, 1e-3, q=q, restitution={"plate on ball": 0.8, "*": 0.0})
    z = []
    for _ in range(500):
        simulation.step()
        z.append(simulation.q[robot.q_slice("free")][2])
    assert peaks(np.array(z))[0] - 0.1 - RADIUS == pytest.approx(0.64 * 0.3, abs=2.0 * 1e-3 * np.sqrt(2.0 * G * 0.3))


# Laws by pair


def test_restitution_may_differ_from_pair_to_pair() -> None:
    robot = balls(3, gravity=G, floor=True)
    q = placed([(x, 0, RADIUS + 0.3) for x in (-1.0, 0.0, 1.0)])
    law = {"ball0 on floor": 0.9, "ball1": Restitution(0.5, form="impulse")}
    simulation = Simulation(robot, 1e-3, q=q, restitution=law)
    z = []
    for _ in range(700):
        simulation.step()
        z.append(np.array(simulation.q).reshape(3, 7)[:, 2] - RADIUS)
    z = np.array(z)
    assert peaks(z[:, 0])[0] == pytest.approx(0.81 * 0.3, abs=1e-5)
    assert peaks(z[:, 1])[0] == pytest.approx(0.25 * 0.3, abs=1e-5)
    assert np.abs(z[300:, 2]).max() < 1e-14
    assert simulation.options == Simulation(robot, 1e-3, q=q, restitution=law).options


def test_mistakes_in_laws_by_pair_are_told() -> None:
    robot, q = balls(2, floor=True), placed([(0, 0, 1), (1, 0, 1)])
    with pytest.raises(ModelError, match="restitution: nothing that may touch is called 'bell'; there are 'ball0', "):
        Simulation(robot, q=q, restitution={"bell": 0.5})
    mixed = {"ball0": Restitution(0.5, in_place=True), "ball1": 0.5}
    with pytest.raises(ModelError, match="either all contacts that rebound must do so in place, or none"):
        Simulation(robot, q=q, restitution=mixed).step()


# What NumPy makes of the same, and lanes


@cache
def leg_and_balls() -> Robot:
    """A leg with a joint limit and dry friction, on rails, and two balls that it may hit.

    Its foot has no friction: shared with that of the joints, it is not unique, and Poisson's law sees contacts alone.
    """
    b = RobotBuilder("leg_and_balls")
    b.body("trunk", 3.0, inertia=(0.05, 0.05, 0.05))
    b.joint("rail", Prismatic(axis=(0, 0, 1), friction=2.0), "ground", "trunk")
    b.body("shank", 1.0, (0.0, 0.0, -0.15), (0.01, 0.01, 0.01))
    b.joint("knee", Revolute(axis=(0, 1, 0), lower=-0.2, upper=0.5, friction=0.1), "trunk", "shank")
    b.shape("shank", Sphere(0.05), at=(0.0, 0.0, -0.3), name="foot", friction=0.0)
    for i in range(2):
        b.body(f"ball{i}", 0.5 + i, inertia=(0.004,) * 3)
        b.joint(f"free{i}", Free(), "ground", f"ball{i}")
        b.shape(f"ball{i}", Sphere(0.1), name=f"ball{i}", friction=0.3)
    return b.build().with_floor(0.0)


@pytest.mark.parametrize("form", every(2, FORMS))
def test_impacts_are_what_numpy_makes_of_them_and_lanes_agree(form: str) -> None:
    robot, h = leg_and_balls(), 4e-3
    law = {"ball0 on ball1": Restitution(1.0, 0.2, form), "foot*": Restitution(0.6, 0.0, form), "ball0*": 0.8}
    laws = {pattern: e if isinstance(e, Restitution) else Restitution(e) for pattern, e in law.items()}
    pairs = pairs_of(robot, restitution=laws)
    q = robot.pack_q(
        {
            "rail": 0.6,
            "knee": 0.45,
            "free0": [0.02, 0.01, 0.12, 1, 0, 0, 0],
            "free1": [0.25, 0.03, 0.1, 1, 0, 0, 0],
        }
    )
    v = robot.pack_v({"knee": -2.0, "free0": [1.0, 4.0, 2.0, 0.5, 0, 0], "free1": [0, 0, 1.0, -1.5, 0, 0]})
    simulation = Simulation(robot, h, q=q, v=v, restitution=law, tolerance=1e-13, integrator="euler")
    p, w, impacts = q, v, 0
    for _ in range(120):
        done = contact_step(robot, p, w, np.zeros(robot.nv), h, pairs, tolerance=1e-14)
        impacts += bool(np.abs(done.v - w).max() > 1.0)
        p, w = done.q, done.v
        simulation.step()
        np.testing.assert_allclose(simulation.q, p, atol=1e-8)
        np.testing.assert_allclose(simulation.v, w, atol=1e-6)
    assert impacts > 3
    many = np.stack([q] * 9)
    many[::2, 0] += 0.01
    found = coupler.rollout(
        robot, many, v, np.zeros((120, robot.nv)), h, restitution=law, tolerance=1e-13, integrator="euler"
    )
    np.testing.assert_array_equal(found.q[1, -1], simulation.q)
    np.testing.assert_array_equal(found.v[1, -1], simulation.v)


def test_a_row_of_dominoes_falls_alike_beside_a_body_that_is_far() -> None:
    """With eight bodies, islands are solved by themselves; contacts of one impact take no part in the next one."""

    def row(*others: str) -> Simulation:
        b, names = RobotBuilder("dominoes"), [*(f"domino{i}" for i in range(7)), *others]
        b.floor(friction=0.4)
        for i, name in enumerate(names):
            at = 0.05 * i if name not in others else 2.0
            b.object(name, Box((0.02, 0.04, 0.1)), (at, 0.0, 0.05), mass=0.1, friction=0.3)
        speed = 3.5  # rad/s, about its lower edge
        return Simulation(b.build(), v=[0, speed, 0, 0.05 * speed, *np.zeros(6 * len(names) - 4)], restitution=0.3)

    alone, beside = row(), row("far")
    for _ in range(380):
        for simulation in (alone, beside):
            simulation.step()
            assert simulation.status.residual <= 1e-8
        np.testing.assert_allclose(beside.q[:49], alone.q, rtol=0, atol=1e-7)
    assert alone.q[2] < 0.045


def test_contacts_with_and_without_torsion_rebound_in_one_scene() -> None:
    """Blocks of different sizes take part in one impact; the torsion of one ball changes nothing of the other."""
    robot, q = balls(2, gravity=G, friction=0.3, floor=True), placed([(0, 0, RADIUS + 0.05), (1, 0, RADIUS + 0.05)])
    both = [
        Simulation(robot, 1e-3, q=q, restitution=0.7, torsion=torsion) for torsion in (0.0, {"ball0 on floor": 0.01})
    ]
    for simulation in both:
        simulation.run(0.3)
    np.testing.assert_allclose(both[1].q, both[0].q, atol=1e-9)
    np.testing.assert_allclose(both[1].v, both[0].v, atol=1e-9)


@pytest.mark.parametrize("beside", [None, 0.6])
def test_a_coefficient_of_zero_that_is_a_parameter_is_no_other_zero(beside: float | None) -> None:
    """Also beside another body that rebounds."""

    def moved(restitution: float, **given: float) -> np.ndarray:
        b = RobotBuilder("bodies")
        b.floor(friction=0.5)
        b.object("ball", Sphere(0.1), (0.0, 0.0, 0.2), mass=1.0, restitution=restitution)
        b.object("box", Box((0.2, 0.2, 0.1)), (0.3, 0.0, 0.3), mass=1.0, restitution=beside)
        robot = b.build().with_parameters({f"restitution:{name}": value for name, value in given.items()})
        simulation, states = Simulation(robot, 2e-3, v=[0, 3.0, 0, 1.0, 0, 0, *(0.5 * np.ones(6))]), []
        for _ in range(150):
            simulation.step()
            states.append(np.append(simulation.q, simulation.v))
        return np.array(states)

    np.testing.assert_array_equal(moved(0.5, ball=0.0), moved(0.0))
