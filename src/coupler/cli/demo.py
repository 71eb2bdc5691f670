"""`coupler demo`: a tour of what coupler does, and a quadruped that lands."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

from coupler.cli.landing import land
from coupler.cli.output import fitted, heading
from coupler.cli.parser import Verb
from coupler.model import Robot
from coupler.model.outputs import made_folder
from coupler.robots import load
from coupler.studies.report import best_times

BATCH = 4096  # states
STEPS, DT = 1000, 1e-3  # of the swinging leg; s


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="the folder for pictures and the log (default: this one)",
    )


def _run(given: Namespace) -> int:
    made_folder(given.out)
    robot = load("mini_cheetah")
    _clusters(robot)
    _speed(robot)
    _rotors(robot)
    _closure(load("planar_leg_linkage"))
    print(f"\nsaved {robot.draw(given.out / f'{robot.name}.svg')}, a picture of its joints, loops and clusters")
    print(f"\n{heading('contact: it lands, stands, is pushed and recovers')}")
    land(given.out)
    return 0


VERB = Verb("demo", "take a short tour, and see a quadruped land", "coupler demo", _add, _run)


def _section(title: str, text: str) -> None:
    print(f"\n{heading(title)}")
    print(fitted(text))


def _clusters(robot: Robot) -> None:
    """Prints the robot with its base and the first of its legs."""
    first, *tree = str(robot).splitlines()
    print(heading(first))
    print("\n".join(tree[:5]))
    print("   ... and three more legs like this one")
    text = "Each motor has a rotor that is geared to a link. Rotor and link form a cluster with one freedom."
    print(fitted(text))


def _speed(robot: Robot) -> None:
    from coupler.dynamics import forward_dynamics

    batch = _states(robot, BATCH)
    state = [x[0].copy() for x in batch]
    start = time.perf_counter()
    forward_dynamics(robot, *state)
    first = time.perf_counter() - start
    one, whole = best_times([lambda: forward_dynamics(robot, *state), lambda: forward_dynamics(robot, *batch)], 0.3)
    _section(
        "forward dynamics, exact with all rotors",
        f"the first call takes {first:.2g} s, to compile it or load it from the cache; after that {one * 1e6:.1f} µs "
        f"for one state from Python, and {whole / BATCH * 1e6:.2f} µs per state in a batch of {BATCH}",
    )


def _states(robot: Robot, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random positions, velocities and forces."""
    q, v, tau = np.random.default_rng(0).normal(size=(3, count, robot.nv))
    return robot.integrate(robot.neutral(), q), v, tau


def _rotors(robot: Robot) -> None:
    """Prints the errors of accelerations when rotors are replaced by armatures."""
    from coupler.algorithms.baselines import with_armatures
    from coupler.dynamics import forward_dynamics

    rotors = [body for body in robot.body_names if "rotor" in body]
    states = _states(robot, 256)
    exact, approximate = (forward_dynamics(each, *states) for each in (robot, with_armatures(robot, rotors)))
    errors = np.linalg.norm(approximate - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
    _section(
        "why exact",
        f"Most simulators weld rotors to what carries them and add armatures to the joints. Over {len(errors)} random "
        f"states, this makes the accelerations wrong by {np.median(errors):.1%} (median), and by "
        f"{errors.max():.0%} at worst.",
    )


def _closure(leg: Robot) -> None:
    """Prints how well the loop of a leg with a four-bar stays closed while it swings."""
    from coupler.dynamics import forward_dynamics

    q, v, tau = leg.neutral(), np.zeros(leg.nv), np.zeros(leg.nv)
    start = time.perf_counter()
    for _ in range(STEPS):
        v = v + DT * forward_dynamics(leg, q, v, tau)
        q = leg.integrate(q, v, DT)
    seconds = time.perf_counter() - start
    (error,) = leg.loop_errors(q).values()
    _section(
        "loops stay closed",
        f"{leg.name}, a leg with a four-bar at its knee, swings for {STEPS * DT:g} s in {STEPS} steps. After that its "
        f"loop is closed to {float(error):.1g} m ({seconds / STEPS * 1e6:.0f} µs per step from Python).",
    )
