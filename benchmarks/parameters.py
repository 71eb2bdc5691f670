"""A batch of robots that all differ, beside one of equal robots.

    python benchmarks/parameters.py

Forward dynamics of 4,096 states and a rollout of 1,024 Mini Cheetahs that stand on their feet, with numbers as inputs:
one mass, all masses, masses and gear ratios and friction, or everything that has a name. Columns are microseconds of
CPU time for each state (and step), all threads added up, and the ratio to equal robots; `first` is what a robot with
other names of parameters costs once, in seconds, and `again` what other values cost, in milliseconds: to check them,
and to prepare them in the first call. Times are the best of many, in turns. Answers of one of the robots are compared
with one that is built with its numbers before anything is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import coupler
from common.timing import best_in_rounds
from coupler import Robot
from coupler.model.compose import compose

STATES, ROBOTS, STEPS = 4096, 1024, 20
SETS: dict[str, Callable[[str], bool]] = {
    "one mass": lambda name: name == "mass:Floating Base",
    "all masses": lambda name: name.startswith("mass:"),
    "masses, ratios, friction": lambda name: name.startswith(("mass:", "ratio:", "friction:floor")),
    "masses, centres, inertias": lambda name: name.startswith(("mass:", "centre:", "inertia:")),
    "all numbers": lambda name: not name.startswith(("friction:", "servo_")) or name == "friction:floor",
}


def main() -> None:
    robot = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
    robot = robot.with_actuators(motor.position_servo(stiffness=80.0, damping=4.0) for motor in robot.actuators)
    check(robot)
    rng = np.random.default_rng(0)
    q = np.tile(np.stack([robot.random_state(rng)[0] for _ in range(64)]), (STATES // 64, 1))
    v, tau = rng.normal(size=(2, STATES, robot.nv))
    stance = standing(robot)
    motors = np.tile(coupler.actuator_positions(robot, stance), (STEPS, 1))

    def dynamics(made: Robot) -> Any:
        return coupler.forward_dynamics(made, q, v, tau)

    def steps(made: Robot) -> Any:
        start = np.tile(stance, (ROBOTS, 1))
        return coupler.rollout(made, start, np.zeros(robot.nv), motors=motors, contacts="*foot*")

    for title, call, count in (("forward dynamics", dynamics, STATES), ("steps on four feet", steps, ROBOTS * STEPS)):
        batch = STATES if call is dynamics else ROBOTS
        call(robot)
        calls, told = {"equal robots": lambda call=call: call(robot)}, {"equal robots": (0.0, 0.0, 0)}
        for name, wanted in SETS.items():
            values = {key: drawn(rng, x, batch) for key, x in robot.parameters.items() if wanted(key)}
            start = time.process_time()
            fleet = robot.with_parameters(values)
            call(fleet)
            first = time.process_time()
            again = robot.with_parameters(values)
            call(again)
            told[name] = first - start, time.process_time() - first, len(values)
            calls[name] = lambda call=call, again=again: call(again)
        best = best_in_rounds(calls, 1, 400 if call is dynamics else 20, time.process_time)
        print(f"\n{title:28}{'names':>7}{'µs':>9}{'ratio':>8}{'first, s':>11}{'again, ms':>11}")
        for name, seconds in best.items():
            first, again, names = told[name]
            ratio = seconds / best["equal robots"]
            more = 1e3 * max(again - seconds, 0.0)
            print(f"  {name:26}{names:7}{1e6 * seconds / count:9.3f}{ratio:8.2f}{first:11.2f}{more:11.2f}")


def drawn(rng: np.random.Generator, value: np.ndarray, count: int) -> np.ndarray:
    """Values within 5 per cent, one for each robot."""
    return value * rng.uniform(0.95, 1.05, (count, *(1 for _ in value.shape)))


def standing(robot: Robot) -> np.ndarray:
    legs = {j: a for j in robot.independent_joints for part, a in {"hip": -0.8, "knee": 1.6}.items() if part in j}
    return robot.pack_q({**legs, "floating_base": [0, 0, 0.3, 1, 0, 0, 0]})


def check(robot: Robot) -> None:
    """Compares a robot that is given a mass with one that is built with it."""
    mass = 5.0
    bodies = {
        name: replace(body, mass=mass) if name == "Floating Base" else body for name, body in robot.bodies.items()
    }
    built = compose(robot.name, robot.gravity, bodies, robot.joints, robot.loops, robot.couplings, robot.elements)
    q, v = robot.random_state(1)
    given = robot.with_parameters({"mass:Floating Base": mass})
    expected = coupler.forward_dynamics(built, q, v)
    assert np.abs(coupler.forward_dynamics(given, q, v) - expected).max() < 1e-12 * np.abs(expected).max()


if __name__ == "__main__":
    main()
