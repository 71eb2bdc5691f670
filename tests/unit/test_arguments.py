"""What every function of a robot refuses: what is no robot, and arrays that are not numbers of the right shape."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, Robot, robots

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


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_no_array_of_numbers_is_refused_by_name(function: str, robot: Robot) -> None:
    sound, call = arguments(robot, function), getattr(coupler, function)
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
