"""Robots of other people's files, simulated as they are: on a floor, with default arguments, limp and held.

They are held by servos of one stiffness for all joints, as one would who knows nothing of a robot, and by a controller.

They are those of the folder `models`, and some of the package example-robot-data (`pip install example-robot-data`).
"""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, Robot, Simulation
from coupler.model import Actuator, Free, ModelWarning
from coupler.simulate import Log
from coupler.simulate.status import are_solved
from effort import sweep
from models_folder import ABSENT, FOLDER, files

pytestmark = pytest.mark.filterwarnings("ignore::coupler.model.ModelWarning")  # what files lack is told elsewhere

ROBOTS = [name for suffix in (".urdf", ".xml") for name in files(suffix) if "grbda_benchmark_chains" not in name]
STEPS = {"reachy_mini/urdf/robot_no_collision.urdf": 2e-4}  # s: its rods are light, and spin at 100 rad/s
WEAK = {  # which servos cannot hold, and why
    "gepetto_5bar_linkage_iso3d/robot.urdf": "bodies of 22 kg, and motors of 1 N m",
    "mujoco_testdata/ten_armature_1_equiv.xml": "a spring of 100 N m/rad pulls against the servo",
    "pr2_description/urdf/pr2": "shoulders limited to 30 N m, because springs that are not in the file carry the arms",
    "simple_humanoid_description/urdf/simple_humanoid": "a waist limited to 30 N m",
}
SHORT = ["closed_loop_2bt/closed_loop_expanded.urdf", "grbda/mini_cheetah.urdf", "mujoco_testdata/slider_crank.xml"]


# Files of example-robot-data: robots that float, and robots that stand fast, with the height of the floor, m.
FLOATING = [
    *("a1_description/urdf/a1", "anymal_b_simple_description/robots/anymal", "anymal_c_simple_description/urdf/anymal"),
    *(
        "bolt_description/robots/bolt",
        "borinot_description/urdf/borinot_flying_arm_2",
        "solo_description/robots/solo12",
    ),
    *("g1_description/urdf/g1_29dof_rev_1_0", "go2_description/urdf/go2", "hyq_description/robots/hyq_no_sensors"),
    *("iris_description/robots/iris", "laikago_description/urdf/laikago", "quadruped_description/urdf/quadruped"),
    *("hextilt_description/urdf/hextilt_flying_arm_5", "talos_data/robots/talos_reduced"),
    *("romeo_description/urdf/romeo_small", "simple_humanoid_description/urdf/simple_humanoid"),
    *("icub_description/robots/icub_reduced", "centauro_description/urdf/centauro"),
]
STANDING = {
    "finger_edu_description/robots/finger_edu": -0.1,
    "allegro_hand_description/urdf/allegro_right_hand": -0.3,
    "baxter_description/urdf/baxter": 0.0,
    "kinova_description/robots/kinova": 0.0,
    "panda_description/urdf/panda": 0.0,
    "so_arm_description/urdf/so101": 0.0,
    "ur_description/urdf/ur5_gripper": 0.0,
    "xarm_description/urdf/xarm7": 0.0,
    "z1_description/urdf/z1": 0.0,
    "pr2_description/urdf/pr2": 0.0,
    "tiago_description/robots/tiago_no_hand": 0.0,
}


def of_package(name: str) -> Robot:
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed (pip install example-robot-data)")
    path = package.locate_file(f"cmeel.prefix/share/example-robot-data/robots/{name}.urdf")
    robot = coupler.load(str(path), floating=name in FLOATING)
    return robot.with_floor(friction=0.8, height=STANDING.get(name, 0.0))


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


def joints_of_one_freedom(robot: Robot) -> list[str]:
    return [name for name in robot.independent_joints if robot.tree.links[robot.tree.number[name]].kind.nv == 1]


def solved_part(robot: Robot, step: float, held: bool) -> float:
    """Moves a robot for a second; returns the part of the steps whose contacts were solved."""
    simulation = Simulation(robot, step)
    log = simulation.run(1.0, servo(robot, np.array(simulation.q)) if held else None)
    check_run(simulation, log)
    return float(np.mean(log.residuals < 1e-6))


def check_run(simulation: Simulation, log: Log) -> None:
    assert simulation.time == pytest.approx(1.0)
    assert np.isfinite(log.q).all() and np.isfinite(log.v).all()
    simulation.robot.check_closed(simulation.q)


def held_by_servos(robot: Robot, strong_enough: bool) -> float:
    """Holds each joint of one freedom for a second with 300 N m/rad; returns the part of the steps that were solved."""
    names = joints_of_one_freedom(robot)
    robot = robot.with_actuators(Actuator(name, name, "position", stiffness=300.0, damping=30.0) for name in names)
    simulation = Simulation(robot)
    start = np.array(simulation.q)
    log = simulation.run(1.0, motors=coupler.actuator_positions(robot, start) if names else None)
    check_run(simulation, log)
    left = np.abs(robot.difference(simulation.q, start))
    joints = [robot.v_slice(name).start for name in names]
    assert not strong_enough or left[joints].max(initial=0.0) < 0.15
    return float(np.mean(are_solved(log.residuals[:-1], log.v, simulation.options.tolerance)))


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.parametrize("name", sweep(ROBOTS, SHORT))
@pytest.mark.parametrize("held", [False, True], ids=["limp", "held"])
def test_a_robot_moves_for_a_second_on_a_floor(name: str, held: bool) -> None:
    assert solved_part(robot_of(name), STEPS.get(name, 1e-3), held) > 0.99


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.parametrize("name", sweep(ROBOTS, SHORT))
def test_a_robot_is_held_by_servos_on_a_floor(name: str) -> None:
    assert held_by_servos(robot_of(name), name not in WEAK) == 1.0


@pytest.mark.long
@pytest.mark.parametrize("name", [*FLOATING, *STANDING])
@pytest.mark.parametrize("held", [False, True], ids=["limp", "held"])
def test_a_robot_of_example_robot_data_moves_for_a_second_on_a_floor(name: str, held: bool) -> None:
    assert solved_part(of_package(name), 1e-3, held) > 0.98  # Bolt and Romeo fall in a heap of their own links


@pytest.mark.long
@pytest.mark.parametrize("name", [*FLOATING, *STANDING])
def test_a_robot_of_example_robot_data_is_held_by_servos_on_a_floor(name: str) -> None:
    assert held_by_servos(of_package(name), name not in WEAK) > 0.99
