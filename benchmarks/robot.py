"""How long robots take to build, and their loops to close.

    python benchmarks/robot.py

Builds a ring of 1,000 bodies, a ladder of 72 rungs, a tree of 1,000 four-bars, a chain of 1,000 geared links and a
hexapod, and closes configurations that are 0.01 (rad or m) off, one by one and in a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from coupler import Robot, RobotBuilder
from coupler.mechanisms import gear
from coupler.model import Free, Prismatic, Revolute, Spherical, Universal

Y = (0.0, 1.0, 0.0)


def bar(b: RobotBuilder, name: str) -> None:
    b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))


def ring(bodies: int) -> RobotBuilder:
    """Bodies on skew axes, in a circle with the ground."""
    rng, b, last = np.random.default_rng(0), RobotBuilder(f"ring of {bodies} bodies"), "ground"
    for i in range(bodies - 1):
        bar(b, f"link{i}")
        b.joint(f"joint{i}", Revolute(axis=rng.normal(size=3)), last, f"link{i}", at=(0.2, 0, 0))
        last = f"link{i}"
    b.loop("closing", Revolute(), last, "ground", at=(0.2, 0, 0))
    return b


def four_bars(count: int) -> RobotBuilder:
    """A tree of four-bars, each with two more on its rocker."""
    b = RobotBuilder(f"tree of {count} four-bars")
    for i in range(count):
        on = f"rocker{(i - 1) // 2}" if i else "ground"
        for part in ("crank", "coupler", "rocker"):
            bar(b, f"{part}{i}")
        b.joint(f"shoulder{i}", Revolute(axis=Y), on, f"crank{i}", at=(0.1, 0.1 * (i % 2), 0))
        b.joint(f"elbow{i}", Revolute(axis=Y), f"crank{i}", f"coupler{i}", at=(0.2, 0, 0))
        b.joint(f"pivot{i}", Revolute(axis=Y), on, f"rocker{i}", at=(0.6, 0.1 * (i % 2), 0))
        b.loop(f"tip{i}", Spherical(), f"coupler{i}", f"rocker{i}", at=(0.5, 0, 0), meets=(0.4, 0, 0))
    return b


def ladder(rungs: int) -> RobotBuilder:
    """Two rails of universal joints, and rungs that hold them together: one cluster with three rows for each rung."""
    b = RobotBuilder(f"ladder of {rungs} rungs")
    for i in range(rungs):
        for rail, x in (("left", 0.0), ("right", 0.4)):
            bar(b, f"{rail}{i}")
            on, at = (f"{rail}{i - 1}", (0.0, 0.3, 0.0)) if i else ("ground", (x, 0.0, 0.0))
            b.joint(f"{rail}{i}", Universal(first=(0, 0, 1), second=Y), on, f"{rail}{i}", at=at)
        bar(b, f"rung{i}")
        b.joint(f"rung{i}", Revolute(), f"left{i}", f"rung{i}", at=(0, 0.15, 0), start=-0.1 * (-1) ** i)
        b.loop(f"end{i}", Spherical(), f"rung{i}", f"right{i}", at=(0.4, 0, 0), meets=(0, 0.15, 0))
    return b


def geared_chain(links: int) -> RobotBuilder:
    b, last = RobotBuilder(f"chain of {links} geared links"), "ground"
    for i in range(links):
        bar(b, f"link{i}")
        bar(b, f"rotor{i}")
        b.joint(f"joint{i}", Revolute(axis=Y), last, f"link{i}", at=(0.2, 0, 0))
        b.joint(f"motor{i}", Revolute(axis=Y), last, f"rotor{i}", at=(0.1, 0, 0))
        b.couple(f"gears{i}", [f"joint{i}", f"motor{i}"], gear(6.0 + i / links), independent=[f"joint{i}"])
        last = f"link{i}"
    return b


def hexapod() -> RobotBuilder:
    """A platform on six legs that can change their length: 6-UPS."""
    b = RobotBuilder("hexapod, 6-UPS")
    bar(b, "platform")
    b.joint("free", Free(), "ground", "platform", at=(0, 0, 1))
    for i in range(6):
        angle, side = i * np.pi / 3, 0.2 * (-1) ** i
        bar(b, f"cylinder{i}")
        bar(b, f"piston{i}")
        foot = 0.6 * np.array([np.cos(angle + side), np.sin(angle + side), 0.0])
        head = 0.4 * np.array([np.cos(angle - side), np.sin(angle - side), 0.0])
        b.joint(f"foot{i}", Universal(), "ground", f"cylinder{i}", at=foot)
        b.joint(f"leg{i}", Prismatic(), f"cylinder{i}", f"piston{i}", at=(0, 0, 0.5), actuated=True)
        b.loop(f"head{i}", Spherical(), f"piston{i}", "platform", at=(0, 0, 0.5), meets=head)
    return b


def best(call: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def closing(robot: Robot, states: int) -> tuple[float, float]:
    """Seconds to close one configuration, and each of a batch."""
    rng = np.random.default_rng(0)
    q = robot.random_state(0)[0] + 0.01 * rng.normal(size=(states, robot.nq))
    robot.close(q[:2])
    return best(lambda: robot.close(q[0]), 20), best(lambda: robot.close(q), 5) / states


def main() -> None:
    print(f"{'':32} {'bodies':>7} {'freedoms':>9} {'build':>9} {'close one':>11} {'in a batch of':>16}")
    for describe, states in (
        (lambda: ring(1000), 8),
        (lambda: ladder(72), 1),
        (lambda: four_bars(1000), 8),
        (lambda: geared_chain(1000), 0),
        (hexapod, 1000),
        (lambda: four_bars(1), 10_000),
    ):
        start = time.perf_counter()
        robot = describe().build()
        built = time.perf_counter() - start
        line = f"{robot.name:32} {len(robot.bodies):>7} {robot.nv:>9} {built:>7.2f} s"
        if states:
            one, batch = closing(robot, states)
            line += f" {one * 1e6:>8.0f} µs {batch * 1e6:>8.2f} µs ({states})"
        print(line, flush=True)


if __name__ == "__main__":
    main()
