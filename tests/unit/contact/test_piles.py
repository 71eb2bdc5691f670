"""Piles: many candidates, of which few touch, so that steps work from lists of those that do."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step.program import contact_step_program
from coupler.graph import Interpreter
from coupler.graph.program import Listing, Loop, Repeat
from coupler.model import Box, Capsule, Cylinder, Free, Robot, Sphere
from coupler.simulate.engine import engine_of
from coupler.simulate.options import SimulationOptions

STEP, SIDE = 1e-3, 0.1


KINDS = [Box((SIDE, SIDE, 0.8 * SIDE)), Sphere(0.5 * SIDE), Capsule(0.3 * SIDE, SIDE), Cylinder(0.4 * SIDE, SIDE)]


def bodies_at(places: list[tuple[int, list[float]]]) -> tuple[Robot, np.ndarray]:
    """Bodies over a floor, each of a kind and with its position."""
    b = coupler.RobotBuilder(f"pile_of_{len(places)}")
    for i, (kind, _) in enumerate(places):
        b.body(f"body{i}", mass=1.0, inertia=(SIDE**2 / 6.0,) * 3)
        b.joint(f"body{i}_floats", Free(), "ground", f"body{i}")
        b.shape(f"body{i}", KINDS[kind], friction=0.6, name=f"body{i}")
    robot = b.build().with_floor(0.6)
    return robot, robot.pack_q({f"body{i}_floats": at for i, (_, at) in enumerate(places)})


def layer_place(i: int, x: float = 0.0) -> tuple[int, list[float]]:
    """The kind and position of a body in layers of four."""
    at = [x + 0.13 * (i % 2), 0.13 * (i // 2 % 2) + 0.02 * (i // 4 % 2), 0.09 + 0.2 * (i // 4)]
    return i % 4, [*at, 1.0, 0.0, 0.0, 0.0]


def pile(bodies: int) -> tuple[Robot, np.ndarray]:
    """Boxes, balls, capsules and cylinders in layers over a floor, with a configuration to start from."""
    return bodies_at([layer_place(i) for i in range(bodies)])


@pytest.fixture(scope="module")
def heap() -> tuple[Robot, np.ndarray]:
    return pile(12)


def upward_momentum(robot: Robot, simulation: coupler.Simulation) -> float:
    """The sum of momenta along z, kg m/s: velocities are along the axes of bodies."""
    total = 0.0
    for name in robot.body_names:
        pose = coupler.frame_pose(robot, np.array(simulation.q), name)
        total += robot.bodies[name].mass * (pose[:3, :3] @ simulation.v[robot.v_slice(f"{name}_floats")][3:])[2]
    return total


def test_a_pile_is_solved_in_every_step_and_the_floor_bears_it(heap: tuple[Robot, np.ndarray]) -> None:
    robot, q = heap
    simulation, pushed = coupler.Simulation(robot, STEP, q=q), 0.0
    floor = [name.split(", ")[0].endswith(" on floor") for name in simulation.contacts]
    steps, weight = 600, -robot.mass * robot.gravity[2]
    for _ in range(steps):
        simulation.step()
        assert simulation.status.solved
        pushed += STEP * simulation.contact_forces[floor, 2].sum()
    assert simulation.gaps.min() > -1e-5
    assert pushed > 0.5 * weight * steps * STEP
    assert pushed - weight * steps * STEP == pytest.approx(upward_momentum(robot, simulation), abs=1e-9)


def test_lanes_take_the_steps_of_single_states_to_the_bit(heap: tuple[Robot, np.ndarray]) -> None:
    """States of a batch that touch in different places share lists, and nothing else."""
    robot, q = heap
    rng, steps = np.random.default_rng(0), 150
    q0, v0 = np.repeat(q[None], 11, axis=0), 0.5 * rng.normal(size=(11, robot.nv))
    q0[:, 2::7] += rng.uniform(0.0, 0.05, (11, 12))  # heights of bodies
    controls = np.zeros((steps, robot.nv))
    batch = coupler.rollout(robot, q0, v0, controls, STEP)
    told = coupler.rollout(robot, q0, v0, controls, STEP, forces=True)
    assert told.forces is not None
    assert batch.residuals.max() <= 1e-8
    for i in (0, 5, 10):
        simulation = coupler.Simulation(robot, STEP, q=q0[i], v=v0[i])
        for _ in range(steps):
            simulation.step()
        np.testing.assert_array_equal(simulation.q, batch.q[i, -1])
        np.testing.assert_array_equal(simulation.v, batch.v[i, -1])
        np.testing.assert_array_equal(simulation.contact_forces, told.forces[i, -1])
    np.testing.assert_array_equal(batch.q, told.q)


def test_results_without_places_of_contacts_are_the_same_else(heap: tuple[Robot, np.ndarray]) -> None:
    robot, q = heap
    engine = engine_of(robot, SimulationOptions(step=STEP))
    brief = engine.brief()
    assert engine.layout.contacts >= 64
    assert brief.layout.size == engine.layout.size - 12 * engine.layout.contacts
    assert brief.brief().layout is brief.layout
    state = engine.start(q, None)
    full, short = engine.advance(state, None), brief.advance(state, None)
    for name, place in brief.layout.places.items():
        np.testing.assert_array_equal(short[place], full[engine.layout.places[name]])


def test_the_interpreter_agrees_where_nothing_is_fused() -> None:
    """One step of a small pile that rests, lists ignored."""
    robot, q = pile(4)
    engine = engine_of(robot, SimulationOptions(step=STEP))
    scene: ContactScene = engine.scene
    layout, state = Layout(robot, scene), engine.start(q, None)
    for _ in range(120):  # until some touch
        state = engine.advance(state, None)[: layout.state]
    program = contact_step_program(robot, scene)
    expected = engine.advance(state, None)
    found = Interpreter(program, np.float64)(state, np.zeros(robot.nv))
    for name in ("q", "v", "gaps"):
        np.testing.assert_allclose(found[layout.places[name]], expected[layout.places[name]], atol=1e-9)


def _rows_asked(steps: tuple[object, ...]) -> int:
    """Turns of loops in repeats that are asked for their flags one by one."""
    asked = 0
    for step in steps:
        if isinstance(step, Repeat):
            asked += _rows_asked(step.body)
        elif isinstance(step, Loop) and step.among is None:
            asked += sum(case.rows for case in step.cases if case.where is not None)
    return asked


def test_iterations_ask_no_candidate_that_does_not_take_part(heap: tuple[Robot, np.ndarray]) -> None:
    """What an iteration of the solver costs follows what touches, and not how many might."""
    robot, _ = heap
    engine = engine_of(robot, SimulationOptions(step=STEP))
    program = contact_step_program(robot, engine.scene)
    (rounds,) = [s for s in program.steps if isinstance(s, Repeat) and any(isinstance(x, Listing) for x in s.body)]
    hearings = next(s for s in rounds.body if isinstance(s, Repeat))
    sweeps, further_sweeps, refinement = [s for s in hearings.body if isinstance(s, Repeat)][:3]
    islands, iterations = [s for s in refinement.body if isinstance(s, Repeat)]
    for repeat in (sweeps, further_sweeps, islands, iterations):
        assert _rows_asked(repeat.body) == 0


def test_heaps_apart_from_each_other_move_as_each_alone() -> None:
    """Of many bodies, islands are solved by themselves; of few, all that touches is solved together."""
    alone, together = pile(5), bodies_at([layer_place(i, x) for x in (0.0, 2.0) for i in range(5)])
    simulations = [coupler.Simulation(robot, STEP, q=q) for robot, q in (alone, together)]
    iterations = 0
    for _ in range(250):
        for simulation in simulations:
            simulation.step()
        iterations += simulations[1].status.iterations
    assert iterations > 0
    for k in range(2):
        moved = simulations[1].q[35 * k : 35 * (k + 1)] - np.tile([2.0 * k, 0, 0, 0, 0, 0, 0], 5)
        np.testing.assert_allclose(moved, simulations[0].q, atol=1e-7)


def test_states_that_are_large_are_simulated_where_they_lie_to_the_bit() -> None:
    """Their numbers stay in registers from step to step, of which the last has lanes to spare."""
    robot, q = pile(18)
    rng, steps = np.random.default_rng(1), 60
    engine = engine_of(robot, SimulationOptions(step=STEP)).brief()
    assert engine.room(11, engine.layout.size).ndim == 3 or getattr(engine.executable, "lanes", 1) == 1
    q0, v0 = np.repeat(q[None], 11, axis=0), 0.3 * rng.normal(size=(11, robot.nv))
    batch = coupler.rollout(robot, q0, v0, np.zeros((steps, robot.nv)), STEP)
    assert batch.residuals.max() < 1e-8
    for i in (0, 10):
        simulation = coupler.Simulation(robot, STEP, q=q0[i], v=v0[i])
        for _ in range(steps):
            simulation.step()
        np.testing.assert_array_equal(batch.q[i, -1], simulation.q)
        np.testing.assert_array_equal(batch.v[i, -1], simulation.v)


def test_a_stack_at_rest_takes_few_sweeps() -> None:
    """Sweeps correct what is left below the tolerance slowly, so the refinement does."""
    robot, q = bodies_at([(0, [0.005 * (i % 2), 0.003 * i, 0.08 * (i + 0.5), 1.0, 0.0, 0.0, 0.0]) for i in range(10)])
    simulation, taken = coupler.Simulation(robot, STEP, q=q), 0.0
    for step in range(300):
        simulation.step()
        assert simulation.status.solved
        taken += simulation.status.sweeps if step >= 100 else 0
    assert taken < 4.0 * 200
    assert np.abs(simulation.v).max() < 1e-7
