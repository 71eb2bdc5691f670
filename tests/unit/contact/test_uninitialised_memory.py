"""What memory held before a step has no effect on its results."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.graph.llvm import bound, entry
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, ModelWarning, Sphere
from effort import sweep

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
    """Sets what memory holds when machine code is called, each time anew: bytes drawn with a seed, or zeros."""
    rng: list[np.random.Generator | None] = [None]

    def run(self: Any, *arguments: Any) -> Any:
        arena = np.zeros(self._arena_size + bound.ALIGNMENT, np.uint8)
        if rng[0] is not None:
            arena[:] = rng[0].integers(0, 256, len(arena))
        aligned = -(-arena.ctypes.data // bound.ALIGNMENT) * bound.ALIGNMENT
        return self._bind(np.array([self._table.ctypes.data, aligned], dtype=np.int64))(*arguments)

    monkeypatch.setattr(entry, "_STACK", 0)  # so that all memory comes from there
    monkeypatch.setattr(bound.Entry, "_pooled", run)
    return lambda seed: rng.__setitem__(0, None if seed is None else np.random.default_rng(seed))


SCENES = {"boxes": boxes, "heap": heap, "mini_cheetah": legged("mini_cheetah"), "tello": legged("tello")}
OPTIONS: dict[str, dict[str, Any]] = {"midpoint": {}, "rk4": {"integrator": "rk4"}, "rebounding": {"restitution": 0.5}}
SHORT = [("boxes", "midpoint"), ("boxes", "rk4"), ("heap", "midpoint"), ("tello", "midpoint"), ("tello", "rebounding")]


@pytest.mark.filterwarnings(f"ignore::{ModelWarning.__module__}.{ModelWarning.__name__}")
@pytest.mark.parametrize(("scene", "options"), sweep(product(SCENES, OPTIONS), SHORT))
def test_a_step_reads_only_what_it_has_written(scene: str, options: str, fill: Callable[[int | None], None]) -> None:
    robot, q = SCENES[scene]()

    def run(seed: int | None) -> np.ndarray:
        fill(seed)
        simulation, results = Simulation(robot, q=q, **OPTIONS[options]), []
        for _ in range(40):
            simulation.step()
            results += [simulation.q, simulation.v, simulation.contact_forces.ravel()]
        return np.concatenate(results)

    expected = run(None)
    for seed in (1, 2):
        np.testing.assert_array_equal(run(seed), expected)
