"""Pairs that are left out of a step: those that cannot meet in it, and none else."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import coupler
from coupler.contact.formulations import touches
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Free, Geometry, Hull, Plane, Sphere
from coupler.simulate.engine import Engine, engine_of
from coupler.simulate.options import SimulationOptions

SIDE = 0.1


def row_of(shapes: list[Geometry], ground: Geometry | None = None) -> coupler.Robot:
    """Free bodies of 1 kg, without gravity."""
    builder = coupler.RobotBuilder("row")
    for i, shape in enumerate(shapes):
        builder.body(f"b{i}", mass=1.0, inertia=(SIDE**2 / 6.0,) * 3)
        builder.joint(f"j{i}", Free(), "ground", f"b{i}")
        builder.shape(f"b{i}", shape, friction=0.0, name=f"s{i}")
    if ground is not None:
        builder.shape("ground", ground, name="ground")
    return builder.build().with_gravity((0.0, 0.0, 0.0))


def along_x(robot: coupler.Robot, places: list[float], speeds: list[float]) -> tuple[np.ndarray, np.ndarray]:
    q, v = np.zeros(robot.nq), np.zeros(robot.nv)
    for i, (x, speed) in enumerate(zip(places, speeds, strict=True)):
        q[7 * i : 7 * i + 7], v[6 * i + 3] = [x, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], speed
    return q, v


def gaps_of(engine: Engine, result: np.ndarray) -> np.ndarray:
    return result[..., engine.layout.places["gaps"]]


def test_a_pair_that_is_left_out_has_a_gap_that_is_less_than_the_true_one() -> None:
    robot = row_of([Box((SIDE,) * 3), Box((SIDE,) * 3)], Plane())
    engine = engine_of(robot, SimulationOptions(step=1e-3))
    q, v = along_x(robot, [0.0, 0.5], [0.0, 0.0])
    q[[2, 9]] = 3.0
    result = engine.advance(engine.start(q, v), None)
    true = [touch.contact.gap for touch in touches(robot, q, engine.scene.pairs)]
    assert (gaps_of(engine, result) > 0.2).all()
    assert (gaps_of(engine, result) < true).all()
    assert result[engine.layout.places["residual"]] == 0.0


@pytest.mark.parametrize("lanes", [False, True])
def test_impulses_that_throw_a_body_at_another_wake_that_pair(lanes: bool) -> None:
    """The second box is hit and stands still so far; in this step it would pass through the third, which is far."""
    robot = row_of([Box((SIDE,) * 3) for _ in range(3)])
    engine = engine_of(robot, SimulationOptions(step=1e-3))
    q, v = along_x(robot, [0.0, SIDE, 4.0 * SIDE], [600.0, 0.0, 0.0])
    states = engine.start(np.stack([q, q]), np.stack([v, 0.0 * v])) if lanes else engine.start(q, v)
    result = np.atleast_2d(engine.advance(states, None))[0]
    after = result[engine.layout.places["q"]]
    assert after[7] - after[0] > SIDE - 1e-9
    assert after[14] - after[7] > SIDE - 1e-9
    assert result[engine.layout.places["v"]][[3, 9, 15]].sum() == pytest.approx(600.0, rel=1e-9)
    assert result[engine.layout.places["residual"]] < 1e-6


def test_states_of_a_batch_leave_out_their_own_pairs() -> None:
    robot = row_of([Box((SIDE,) * 3), Box((SIDE, SIDE, 0.5 * SIDE)), Sphere(SIDE)], Plane())
    engine = engine_of(robot, SimulationOptions(step=1e-3))
    rng = np.random.default_rng(3)
    q, v = (np.repeat(x[None], 9, axis=0) for x in along_x(robot, [0.0, 0.15, 0.4], [0.0, -1.0, -3.0]))
    q[:, [0, 7, 14]] += 0.1 * rng.normal(size=(9, 3))
    q[:, [2, 9, 16]] = np.abs(0.1 * rng.normal(size=(9, 3)))
    states = engine.start(q, v)
    together = engine.advance(states, None)
    for state, result in zip(states, together, strict=True):
        np.testing.assert_array_equal(engine.advance(state, None), result)


BRICK, ROD, DISC, BALL = Box((0.1, 0.06, 0.14)), Capsule(0.02, 0.12), Cylinder(0.05, 0.06), Sphere(0.04)
EGG, OTHER_EGG = Ellipsoid((0.03, 0.05, 0.08)), Ellipsoid((0.06, 0.02, 0.03))
WEDGE = Hull(np.array([(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.08, 0.0), (0.0, 0.0, 0.12)]))


def test_what_is_looked_at_closely_is_measured_where_it_matters_and_never_left_out_too_near() -> None:
    """Bodies of all kinds part at 1 m/s: gaps that could close in two steps are true, and none is said too large."""
    shapes: list[Geometry] = [BRICK, ROD, DISC, BALL, EGG, OTHER_EGG, WEDGE]
    robot, rng, seen = row_of(shapes), np.random.default_rng(5), 0
    engine = engine_of(robot, SimulationOptions(step=1e-3, integrator="euler"))  # which measures where a step starts
    pairs, first = engine.scene.pairs, np.cumsum([0, *(pair.count for pair in engine.scene.pairs)])
    for _ in range(60):
        q, v = np.zeros((len(shapes), 7)), np.zeros((len(shapes), 6))
        q[:, :3], q[:, 3:] = rng.uniform(-0.12, 0.12, (len(shapes), 3)), rng.normal(size=(len(shapes), 4))
        q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
        away = q[:, :3] / np.linalg.norm(q[:, :3], axis=1)[:, None]
        for i in range(len(shapes)):
            v[i, 3:] = coupler.frame_pose(robot, q.ravel(), f"b{i}")[:3, :3].T @ away[i]
        told = gaps_of(engine, engine.advance(engine.start(q.ravel(), v.ravel()), None))
        true = np.array([touch.contact.gap for touch in touches(robot, q.ravel(), pairs)])
        for k, (i, j) in enumerate(combinations(range(len(shapes)), 2)):
            own, least = told[first[k] : first[k + 1]].min(), true[first[k] : first[k + 1]].min()
            assert own <= max(least, 0.0) + 1e-9
            if 0.0 < least < 1.9e-3 * np.linalg.norm(away[i] - away[j]):
                assert own == pytest.approx(least, abs=1e-9)
                seen += 1
    assert seen > 5
