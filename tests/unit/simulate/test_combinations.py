"""Options of a simulation with each other: every two of them in the short run, and many random cases in the long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.contact.restitution import Restitution
from coupler.model import Box, Free, Geometry, Hull, Revolute, Sphere
from pairwise import pairwise

pytestmark = pytest.mark.filterwarnings("ignore:.*overlaps")

Y = (0.0, 1.0, 0.0)
STEPS, SHORT = 20, 11  # of a case; cases in the short run, in which four of five pairs of options meet
OPTIONS: dict[str, list[Any]] = {
    "integrator": ["midpoint", "euler", "rk4", "trapezoid"],
    "rebound": ["none", "velocity", "in place", "mixed"],
    "joints": ["plain", "limits", "friction", "both"],
    "shape": ["points", "box", "hull"],
    "motors": ["none", "motor", "servo"],
    "loop": [False, True],
    "turning": [False, True],
    "given": [False, True],
}
MORE = OPTIONS | {
    "rebound": [*OPTIONS["rebound"], "zero", "impulse", "of shapes"],
    "shape": [*OPTIONS["shape"], "ball"],
    "ground": ["floor", "terrain"],
    "penetration": [None, "velocity", "limited", -1e-3],
}
LAWS: dict[str, Any] = {
    "none": None,
    "zero": 0.0,
    "velocity": 0.5,
    "in place": Restitution(0.5, in_place=True),
    "impulse": Restitution(0.5, 0.3, "impulse"),
    "mixed": {"hand*": 0.0, "*": Restitution(0.5, 0.3, "impulse")},
    "of shapes": None,
}


def named(case: dict[str, Any]) -> str:
    return ", ".join(
        name if value is True else str(value) for name, value in case.items() if value not in (False, None, "none")
    )


def chosen() -> list[Any]:
    """Pairs of options, of which the first cases have most, with a terrain now and then; and other cases at random."""
    cases = [
        case | {"ground": "terrain" if i % 6 == 0 else "floor", "penetration": None}
        for i, case in enumerate(pairwise(OPTIONS))
    ]
    rng = np.random.default_rng(5)
    drawn = [{name: values[rng.integers(len(values))] for name, values in MORE.items()} for _ in range(12)]
    cases += drawn
    return [
        pytest.param(case, i, id=f"{i}: {named(case)}", marks=[pytest.mark.long] if i >= SHORT else [])
        for i, case in enumerate(cases)
    ]


def mixed(case: dict[str, Any], rng: np.random.Generator) -> Robot:
    """A floating body with an arm, whose hand may touch, and perhaps a four-bar that passes dead points."""
    b = RobotBuilder("mixed")
    b.body("base", 1.5 + rng.random(), 0.05 * rng.normal(size=3), 0.02 * (1.0 + 0.3 * rng.random(3)))
    b.joint("free", Free(), "ground", "base")
    limits = {"lower": -0.3, "upper": 0.3} if case["joints"] in ("limits", "both") else {}
    friction = {"friction": 0.2} if case["joints"] in ("friction", "both") else {}
    b.body("arm", 0.4, (0.1, 0.0, 0.0), (1e-3, 2e-3, 2e-3))
    b.joint("shoulder", Revolute(axis=Y, **limits, **friction), "base", "arm", at=(0.1, 0.0, 0.0))
    b.contact("hand", "arm", (0.2, 0.0, -0.06))
    if case["loop"]:
        for name, length in (("crank", 0.1), ("coupler", 0.25), ("rocker", 0.2)):
            b.body(name, 0.1, (length / 2, 0.0, 0.0), (1e-5, length**2 / 120, length**2 / 120))
        b.joint("A", Revolute(axis=Y, **friction), "base", "crank", at=(0.0, 0.2, 0.3), start=1.0)
        b.joint("B", Revolute(axis=Y), "crank", "coupler", at=(0.1, 0.0, 0.0))
        b.joint("D", Revolute(axis=Y), "base", "rocker", at=(0.25, 0.2, 0.3), independent=True)
        b.loop("C", Revolute(axis=Y), "coupler", "rocker", at=(0.25, 0.0, 0.0), meets=(0.2, 0.0, 0.0))
    back = 0.4 if case["rebound"] == "of shapes" else None
    corners = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.08, 0.08) for z in (-0.05, 0.06)])
    shapes: dict[str, Geometry] = {
        "box": Box((0.2, 0.16, 0.1)),
        "hull": Hull(np.vstack([corners, [(0.0, 0.0, -0.09)]]) * (1.0 + 0.1 * rng.random((9, 1)))),
        "ball": Sphere(0.08),
    }
    if case["shape"] in shapes:
        b.shape("base", shapes[case["shape"]], name="shape", restitution=back)
    else:
        for i, place in enumerate([(-0.1, -0.08, -0.08), (0.1, -0.08, -0.08), (0.0, 0.1, -0.08)]):
            b.contact(f"point {i}", "base", place)
    if case["ground"] == "floor":
        b.floor(friction=0.6, restitution=None if back is None else 0.3)
    else:
        b.terrain(0.02 * rng.random((8, 8)), (1.6, 1.6), friction=0.6)
    if case["motors"] == "motor":
        b.actuator("motor", "shoulder", effort=2.0, speed=5.0)
    if case["motors"] == "servo":
        b.actuator("motor", "shoulder", "position", stiffness=50.0, damping=1.0, effort=1.0)
    robot = b.build()
    if case["given"]:
        names = ("mass:base", "friction:shoulder", "friction:floor", "restitution:shape", "stiffness:motor")
        robot = robot.with_parameters(
            {name: 1.1 * robot.parameters[name] for name in names if robot.parameters.get(name)}
        )
    return robot


def started(case: dict[str, Any], seed: int) -> tuple[Robot, dict[str, Any], np.ndarray, np.ndarray]:
    """A robot, options, and a state that is about to land and to reach a limit, in which all joints move."""
    rng = np.random.default_rng(seed)
    robot = mixed(case, rng)
    options: dict[str, Any] = {name: case[name] for name in ("integrator", "penetration")}
    options |= {"step": 2e-3, "restitution": LAWS[case["rebound"]]}
    options |= {"torsion": 0.01, "rolling": 0.003} if case["turning"] else {}
    q, v = Simulation(robot, **options).q.copy(), 0.3 * rng.normal(size=robot.nv)
    q[robot.q_slice("free")][:3] += (0.03, 0.02, 0.008)
    v[robot.v_slice("free")] = [*(0.5 * rng.normal(size=3)), 0.3, 0.1, -1.0]
    side = rng.choice([-1.0, 1.0])
    q[robot.q_slice("shoulder")], v[robot.v_slice("shoulder")] = 0.2 * side, 8.0 * side
    return robot, options, q, v


@pytest.mark.parametrize(("case", "seed"), chosen())
def test_options_go_together(case: dict[str, Any], seed: int) -> None:
    """Each step is solved, energy comes from motors alone, and a state of a batch moves like one, to the last bit."""
    robot, options, q, v = started(case, seed)
    simulation, control = Simulation(robot, q=q, v=v, **options), None if case["motors"] == "none" else np.array([0.7])
    engine, touched, work, places = simulation._engine, 0, 0.0, list[np.ndarray]()
    before = sum(engine.energies(simulation._state))
    for _ in range(STEPS):
        fast = max(1.0, float(np.abs(simulation.v).max()))
        simulation.step(motors=control)
        status = simulation.status
        assert status.residual <= 1e-8 * fast
        touched += status.contacts
        if control is not None:
            assert simulation._last_result is not None
            work += float(simulation._last_result[engine.motor_layout.places["motor_work"]].sum())
        assert sum(engine.energies(simulation._state)) < before + work + 2e-3
        places.append(simulation.q.copy())
    assert touched
    motors = None if control is None else np.tile(control, (STEPS, 1))
    batch = coupler.rollout(robot, q, np.stack([v, 0.9 * v, v]), np.zeros((STEPS, robot.nv)), motors=motors, **options)
    for state in (0, 2):
        np.testing.assert_array_equal(batch.q[state, 1:], places)
