"""What memory held before a step has no effect on its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.graph.llvm import bound, entry
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, ModelWarning, Sphere

FORMS = Box((0.1, 0.1, 0.1)), Sphere(0.05), Cylinder(0.05, 0.1), Capsule(0.03, 0.1), Ellipsoid((0.05, 0.04, 0.03))


def boxes() -> tuple[Robot, np.ndarray]:
    """Two boxes on each other. They do not approach each other, so their contact is measured after impulses."""
    b = RobotBuilder("boxes")
    b.floor(0.6)
    for i in range(2):
        b.object(f"box {i}", Box((0.2, 0.2, 0.2)), mass=1.0)
    robot = b.build()
    return robot, robot.pack_q({f"box {i}": [0, 0, 0.1 + 0.2 * i, 1, 0, 0, 0] for i in range(2)})


def heap() -> tuple[Robot, np.ndarray]:
    """Ten bodies that fall on each other."""
    b, rng, places = RobotBuilder("heap"), np.random.default_rng(0), {}
    b.floor(0.5)
    for i in range(10):
        b.object(f"body {i}", FORMS[i % len(FORMS)], mass=1.0)
        places[f"body {i}"] = [*(0.03 * rng.normal(size=2)), 0.06 + 0.1 * i, 1, 0, 0, 0]
    robot = b.build()
    return robot, robot.pack_q(places)


def legged(name: str) -> Callable[[], tuple[Robot, np.ndarray]]:
    def stand() -> tuple[Robot, np.ndarray]:
        robot = coupler.robots.load(name).with_floor()
        return robot, np.array(Simulation(robot).q)

    return stand


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Sets what memory of new executables holds: bytes drawn with a seed, or zeros."""
    seed: list[int | None] = [None]

    def new(self: Any) -> Any:
        arena = np.zeros(self._arena_size + bound.ALIGNMENT, np.uint8)
        if seed[0] is not None:
            arena[:] = np.random.default_rng(seed[0]).integers(0, 256, len(arena))
        aligned = -(-arena.ctypes.data // bound.ALIGNMENT) * bound.ALIGNMENT
        self._arenas.append(arena)
        return self._bind(np.array([self._table.ctypes.data, aligned], dtype=np.int64))

    monkeypatch.setattr(entry, "_STACK", 0)  # so that all memory comes from there
    monkeypatch.setattr(bound.Entry, "_new", new)
    return lambda value: seed.__setitem__(0, value)


@pytest.mark.filterwarnings(f"ignore::{ModelWarning.__module__}.{ModelWarning.__name__}")
@pytest.mark.parametrize("options", [{}, {"integrator": "rk4"}, {"restitution": 0.5}], ids=lambda o: str(*o.values()))
@pytest.mark.parametrize("scene", [boxes, heap, legged("mini_cheetah"), legged("tello")])
def test_a_step_reads_only_what_it_has_written(
    scene: Callable[[], tuple[Robot, np.ndarray]], options: dict[str, Any], fill: Callable[[int | None], None]
) -> None:
    robot, q = scene()

    def run(seed: int | None, steps: int) -> np.ndarray:
        fill(seed)
        simulation, results = Simulation(robot.with_gravity(robot.gravity), q=q, **options), []
        for _ in range(steps):
            simulation.step()
            results += [simulation.q, simulation.v, simulation.contact_forces.ravel()]
        return np.concatenate(results)

    expected = run(None, 40)
    for seed in (1, 2):
        np.testing.assert_array_equal(run(seed, 40), expected)
