"""Robots of other people's files, simulated as they are: on a floor, with default arguments, limp and held."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, Robot, Simulation
from coupler.model import Free, ModelWarning
from effort import sweep
from models_folder import ABSENT, FOLDER, files

pytestmark = [
    pytest.mark.skipif(bool(ABSENT), reason=ABSENT),
    pytest.mark.filterwarnings("ignore::coupler.model.ModelWarning"),  # what files lack is told elsewhere
]

ROBOTS = [name for suffix in (".urdf", ".xml") for name in files(suffix) if "grbda_benchmark_chains" not in name]
STEPS = {"reachy_mini/urdf/robot_no_collision.urdf": 2e-4}  # s: its rods are light, and spin at 100 rad/s
SHORT = ["closed_loop_2bt/closed_loop_expanded.urdf", "grbda/mini_cheetah.urdf", "mujoco_testdata/slider_crank.xml"]


def robot_of(name: str) -> Robot:
    if name.endswith(".xml"):
        pytest.importorskip("mujoco")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            robot = coupler.load(FOLDER / name)
    except ModelError as error:
        pytest.skip(f"it is no robot by itself: {error}")
    if not robot.nv:
        pytest.skip("it cannot move")
    return robot.with_floor(friction=0.8)


def servo(robot: Robot, q0: np.ndarray) -> Any:
    """Holds joints, but those that float or are called passive, with 4 Hz and critical damping of what each moves."""
    moved = 1.0 / np.diag(coupler.mass_matrix_inverse(robot, q0))
    for name in robot.independent_joints:
        kind = robot.tree.links[robot.tree.number[name]].kind
        if isinstance(kind, Free) or "passive" in name:
            moved[robot.v_slice(name)] = 0.0
    frequency = 2 * np.pi * 4.0

    def control(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return moved * (frequency**2 * robot.difference(q, q0) - 2 * frequency * v)

    return control


@pytest.mark.parametrize("name", sweep(ROBOTS, SHORT))
@pytest.mark.parametrize("held", [False, True], ids=["limp", "held"])
def test_a_robot_moves_for_a_second_on_a_floor(name: str, held: bool) -> None:
    robot = robot_of(name)
    simulation = Simulation(robot, STEPS.get(name, 1e-3))
    log = simulation.run(1.0, servo(robot, np.array(simulation.q)) if held else None)
    assert simulation.time == pytest.approx(1.0)
    assert np.isfinite(log.q).all() and np.isfinite(log.v).all()
    robot.check_closed(simulation.q)
    assert np.mean(log.residuals < 1e-6) > 0.99
