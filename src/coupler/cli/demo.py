"""`coupler demo`: a tour of what coupler does, and a quadruped that lands."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

from coupler.cli.landing import land
from coupler.cli.output import fitted, heading
from coupler.cli.parser import Verb
from coupler.model import Robot
from coupler.robots import load

__all__ = ["VERB"]

BATCH = 4096  # states
STEPS, DT = 1000, 1e-3  # of the leg; s


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path(), help="folder for drawings and the log (here)"
    )


def _run(given: Namespace) -> int:
    given.out.mkdir(parents=True, exist_ok=True)
    robot = load("mini_cheetah")
    _clusters(robot)
    _speed(robot)
    _rotors(robot)
    _closure(load("planar_leg_linkage"))
    print(f"\nsaved {robot.draw(given.out / f'{robot.name}.svg')}, its joints, loops and clusters as a picture")
    print(f"\n{heading('contact: it lands, stands, is pushed and recovers')}")
    land(given.out)
    return 0


VERB = Verb("demo", "see what coupler does: a tour, and a quadruped that lands", "coupler demo", _add, _run)


def _section(title: str, text: str) -> None:
    print(f"\n{heading(title)}")
    print(fitted(text))


def _clusters(robot: Robot) -> None:
    """The robot, its base and the first of its legs."""
    first, *tree = str(robot).splitlines()
    print(heading(first))
    print("\n".join(tree[:5]))
    print("   ... and three more legs like this one")
    text = (
        "Each of its motors has a rotor that turns with a link, through gears. Both make a cluster, with one freedom."
    )
    print(fitted(text))


def _speed(robot: Robot) -> None:
    from coupler.dynamics import forward_dynamics

    batch = _states(robot, BATCH)
    state = [x[0].copy() for x in batch]
    start = time.perf_counter()
    forward_dynamics(robot, *state)
    first = time.perf_counter() - start
    one = _best(lambda: forward_dynamics(robot, *state))
    many = _best(lambda: forward_dynamics(robot, *batch)) / BATCH
    _section(
        "forward dynamics, exact with all rotors",
        f"first call {first:.2g} s, which compiles it or finds it compiled; then {one * 1e6:.1f} µs for one state from "
        f"Python, and {many * 1e6:.2f} µs for each state of a batch of {BATCH}",
    )


def _states(robot: Robot, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and forces at random."""
    q, v, tau = np.random.default_rng(0).normal(size=(3, count, robot.nv))
    return robot.integrate(robot.neutral(), q), v, tau


def _best(call: Callable[[], object], seconds: float = 0.3) -> float:
    """The best time of a call, because machines are shared and noisy."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def _rotors(robot: Robot) -> None:
    """How wrong accelerations are that take rotors for armatures."""
    from coupler.algorithms.baselines import with_armatures
    from coupler.dynamics import forward_dynamics

    rotors = [body for body in robot.body_names if "rotor" in body]
    states = _states(robot, 256)
    exact, usual = (forward_dynamics(each, *states) for each in (robot, with_armatures(robot, rotors)))
    errors = np.linalg.norm(usual - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
    middle, worst = np.median(errors), errors.max()
    _section(
        "why exact",
        f"Most simulators weld rotors to what carries them and add armatures to their joints. Over {len(errors)} "
        f"random states, accelerations are then wrong by {middle:.1%} (median), at worst by {worst:.0%}.",
    )


def _closure(leg: Robot) -> None:
    """A leg with a four-bar in it, under gravity, for a thousand steps."""
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
        f"{leg.name}, a leg with a four-bar at its knee, has swung for {STEPS * DT:g} s in {STEPS} steps: its loop is "
        f"closed to {float(error):.1g} m ({seconds / STEPS * 1e6:.0f} µs a step from Python)",
    )
