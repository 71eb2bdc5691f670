"""What every function of a robot refuses: what is no robot, and arrays that are not numbers of the right shape."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, Robot, robots
from coupler.model import Sphere

FUNCTIONS = [
    name
    for name in coupler.__all__
    if inspect.isfunction(getattr(coupler, name)) and name not in ("load", "sweep")  # which take no arrays
]
WRONG: dict[str, Callable[[np.ndarray], Any]] = {
    "a wrong shape": lambda given: np.zeros(given.shape[-1] + 1),
    "NaN": lambda given: np.full(given.shape, np.nan),
    "infinite": lambda given: np.full(given.shape, np.inf),
    "complex": lambda given: given.astype(complex),
    "objects": lambda given: given.astype(object),
    "texts": lambda given: np.full(given.shape, "a"),
    "dates": lambda given: np.zeros(given.shape, "M8[s]"),
    "masked": lambda given: np.ma.masked_array(given, mask=np.arange(given.size).reshape(given.shape) == 0),
    "ragged": lambda given: [[1.0, 2.0], [3.0]],
    "a text": lambda given: "abc",
    "a dictionary": lambda given: {},
    "a function": lambda given: len,
}


@pytest.fixture(scope="module")
def robot() -> Robot:
    return robots.load("five_bar")


def arguments(robot: Robot, function: str) -> dict[str, Any]:
    """Sound ones, by name, optional arrays included where they do not exclude each other."""
    count = len(robot.actuators)
    vectors = {"q": robot.neutral()} | dict.fromkeys(("v", "a", "tau", "x"), np.zeros(robot.nv))
    vectors |= {"q0": vectors["q"], "v0": vectors["v"], "near": vectors["q"], "forces": np.zeros(count)}
    if function == "size_actuators":
        vectors = {name: np.repeat(values[None], 3, axis=0) for name, values in vectors.items()}
    if function.endswith("s_of_actuators"):  # velocities and accelerations
        vectors["near"] = vectors["v"]
    given = vectors | {
        "times": np.arange(3.0),
        "rates": np.zeros(count),
        "positions": coupler.actuator_positions(robot, robot.neutral()),
        "controls": np.zeros((2, robot.nv)),
        "weights": np.ones(count),
        "f_ext": np.zeros((len(robot.body_names), 6)),
        "frame": robot.body_names[-1],
        "frames": [robot.body_names[-1]],
    }
    if function == "control_forces":
        given["motors"] = np.zeros(count)
        del given["rates"]  # which motors do not take
    taken = inspect.signature(getattr(coupler, function)).parameters
    if "controls" in taken or ("tau" in taken and "motors" in taken):
        del given["rates"], given["forces"]  # without motors; and of a rollout, whether they are returned
    return {name: given[name] for name in taken if name in given}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("wrong", [None, "four_bar", 3, np.zeros(3), [], robots.load], ids=lambda x: type(x).__name__)
def test_what_is_no_robot_is_refused(function: str, wrong: Any, robot: Robot) -> None:
    with pytest.raises(ModelError, match=r"robot must be a Robot, as coupler\.load"):
        getattr(coupler, function)(wrong, **arguments(robot, function))


@pytest.mark.parametrize("function", [*FUNCTIONS, "forward_dynamics with motors"])
def test_what_is_no_array_of_numbers_is_refused_by_name(function: str, robot: Robot) -> None:
    function, *motors = function.split(" with ")
    sound, call = arguments(robot, function), getattr(coupler, function)
    sound |= dict.fromkeys(motors, np.zeros(len(robot.actuators)))
    call(robot, **sound)
    for name, given in sound.items():
        for kind, wrong in WRONG.items() if isinstance(given, np.ndarray) else ():
            with pytest.raises(ModelError) as told:
                call(robot, **sound | {name: wrong(given)})
            assert name.rstrip("0") in str(told.value), f"{kind}: {told.value}"  # q0 is q where it is checked
            assert ("masked entries" in str(told.value)) == (kind == "masked")


def test_a_masked_array_without_masked_entries_is_taken(robot: Robot) -> None:
    q = robot.neutral()
    np.testing.assert_array_equal(coupler.mass_matrix(robot, np.ma.array(q)), coupler.mass_matrix(robot, q))


@pytest.mark.parametrize("function", ["bias_force", "inverse_dynamics", "forward_dynamics", "joint_forces"])
def test_forces_on_the_bodies_of_no_states_are_taken(function: str, robot: Robot) -> None:
    sound = arguments(robot, function) | {"f_ext": np.zeros((0, len(robot.body_names), 6))}
    sound["q"] = np.zeros((0, robot.nq))
    result = getattr(coupler, function)(robot, **sound)
    assert len(next(iter(result.joints.values())) if function == "joint_forces" else result) == 0


NO_NAMES: list[Any] = [None, 3, ["knee"], {}, {"a": 1}, np.zeros(2), np.array(["a"]), b"knee", "", "knee", "*", 1.5]


def with_names(robot: Robot) -> dict[str, Callable[[Any], Any]]:
    """Everything that takes the name of a part or a word, or a list of names."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    body, simulation = robot.body_names[-1], coupler.Simulation(robot, contacts=())
    return {
        "frame_pose": lambda name: coupler.frame_pose(robot, q, name),
        "frame_jacobian": lambda name: coupler.frame_jacobian(robot, q, name),
        "axes": lambda name: coupler.frame_jacobian(robot, q, body, axes=name),
        "inverse_osim": lambda name: coupler.inverse_osim(robot, q, [name]),
        "joint_forces": lambda name: coupler.joint_forces(robot, q, v, v, actuators=[name]),
        "rule": lambda name: coupler.joint_forces(robot, q, v, v, rule=name),
        "determinate_forces": lambda name: coupler.determinate_forces(robot, [name]),
        "q_slice": robot.q_slice,
        "v_slice": robot.v_slice,
        "hold": lambda name: robot.close(q, hold=[name]),
        "cluster": lambda name: robot.cluster_subspaces(q, 33 if isinstance(name, int) else name),
        "body": lambda name: robot.with_shape("ball", Sphere(0.1), body=name),
        "wrench": simulation.wrench,
        "backend": robot.with_backend,
        "closure": lambda name: robot.with_closure({"loop": name}),
        "with_actuators": lambda name: robot.with_actuators([name]),
        "robots.load": robots.load,
        "integrator": lambda name: coupler.Simulation(robot, contacts=(), integrator=name),
        "limits": lambda name: coupler.Simulation(robot, contacts=(), limits=name),
        "limits on the way": lambda name: coupler.configuration_of_actuators(robot, [0.0, 0.0], limits=name),
        "kind": lambda name: coupler.Actuator("motor", "joint", kind=name),
        "Shares": lambda name: coupler.Shares([name]),
        "otherwise": lambda name: coupler.Shares([], otherwise=name),
        "motors": lambda name: simulation.step(motors=dict.fromkeys([str(name)], 0.0)),
    }


@pytest.mark.parametrize("what", with_names(robots.load("five_bar")))
def test_what_is_no_name_is_refused(what: str, robot: Robot) -> None:
    for wrong in NO_NAMES:
        with pytest.raises(ModelError) as told:
            with_names(robot)[what](wrong)
        assert len(str(told.value)) < 400


def test_what_is_no_list_of_names_is_refused(robot: Robot) -> None:
    q, v = robot.neutral(), np.zeros(robot.nv)
    no_lists: list[Any] = [3, "knee", [3], np.zeros(2), [["knee"]], robots]
    for wrong in no_lists:
        with pytest.raises(ModelError, match="frames must be a list of names, got"):
            coupler.inverse_osim(robot, q, wrong)
        with pytest.raises(ModelError, match="actuators must be a list of names, got"):
            coupler.joint_forces(robot, q, v, v, actuators=wrong)
        with pytest.raises(ModelError, match="hold must be a list of names, got"):
            robot.close(q, hold=wrong)
    assert coupler.inverse_osim(robot, q, (body for body in robot.body_names[-2:])).shape == (12, 12)


def test_parts_are_found_by_name_and_near_ones_are_offered(robot: Robot) -> None:
    motor, joint = robot.actuators[1], robot.joints[1]
    assert robot.actuators[motor.name] is motor and robot.joints[joint.name] is joint
    assert robot.joints[:1] == (robot.joints[0],) and list(robot.joints) == [*robot.joints]
    again = pickle.loads(pickle.dumps(robot))
    assert again.actuators[motor.name] == motor
    q, simulation = robot.neutral(), coupler.Simulation(robot, contacts=())
    typing_error = motor.name[:-1] + "x"
    for asked in (
        lambda: robot.actuators[typing_error],
        lambda: simulation.step(motors={typing_error: 1.0}),
        lambda: coupler.generalized_forces(robot, q, {typing_error: 1.0}),
        lambda: coupler.configuration_of_actuators(robot, {typing_error: 1.0}),
    ):
        with pytest.raises(ModelError, match=rf"there is no .*'{typing_error}'; there are '{motor.name}'"):
            asked()


def test_actuators_go_by_name(robot: Robot) -> None:
    q, v = robot.random_state(0)
    names, forces = robot.actuator_names, np.array([0.3, -0.4])
    by_name = dict(zip(names, forces, strict=True))
    reversed_names = dict(reversed(by_name.items()))
    for given in (by_name, reversed_names):
        asked: list[Callable[[Any], np.ndarray]] = [
            lambda values: coupler.generalized_forces(robot, q, values),
            lambda values: coupler.velocities_of_actuators(robot, q, values),
            lambda values: coupler.accelerations_of_actuators(robot, q, v, values),
        ]
        for function in asked:
            np.testing.assert_array_equal(function(given), function(forces))
    u = coupler.actuator_positions(robot, q)
    np.testing.assert_array_equal(
        coupler.configuration_of_actuators(robot, dict(zip(names, u, strict=True)), near=q),
        coupler.configuration_of_actuators(robot, u, near=q),
    )
