"""The numbers of a robot by name: what may be given anew, or differ from state to state, without compiling anything.

A name says which number of what: "mass:torso", "ratio:hip_gears", "gravity".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model.bodies import check_inertia
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.wording import in_state, listed

if TYPE_CHECKING:
    from coupler.model.robot import Robot

__all__ = [
    "OF_BODIES",
    "OF_JOINTS",
    "OF_SERVOS",
    "OF_SPRINGS",
    "GivenParameters",
    "packed_parameters",
    "parameters_of",
    "unpacked_parameters",
]

OF_BODIES = ("mass", "centre", "inertia")
OF_JOINTS = ("stiffness", "damping", "armature", "friction")
OF_SPRINGS = ("stiffness", "free_length", "pretension", "damping", "first_point", "second_point")
OF_SERVOS = (("servo_stiffness", "stiffness"), ("servo_damping", "damping"))  # which mostly have names of joints
_NOT_NEGATIVE = {"mass", *OF_JOINTS, "free_length", "length", "servo_stiffness", "servo_damping"}


@dataclass(frozen=True, eq=False)
class GivenParameters:
    """Numbers that a robot is given as inputs of its programs.

    Attributes:
        base: the robot that it is without them.
        variant: the robot in which they are nodes, which all robots that are given the same ones share.
        values: by name, with leading dimensions for a batch.
        packed: (..., n), all of them, as programs take them.
    """

    base: Robot
    variant: Robot
    values: Mapping[str, np.ndarray]
    packed: np.ndarray


def parameters_of(robot: Robot) -> Mapping[str, np.ndarray]:
    """All numbers of a robot that it can be given anew, by name, as they are."""
    found: dict[str, np.ndarray] = {}
    for name, value in _numbers(robot):
        found[name] = np.array(value, dtype=float)
        found[name].setflags(write=False)
    twice = _twice(robot)
    return MappingProxyType({name: value for name, value in found.items() if name not in twice})


def _twice(robot: Robot) -> set[str]:
    """Names that are those of two numbers, as a joint and a shape may be called alike."""
    return {name for name, count in Counter(name for name, _ in _numbers(robot)).items() if count > 1}


def _numbers(robot: Robot) -> Iterator[tuple[str, Any]]:
    yield "gravity", robot.gravity
    for body in robot.bodies.values():
        yield from {f"{x}:{body.name}": getattr(body, x) for x in OF_BODIES}.items()
    for joint in robot.joints:
        if joint.name in robot.tree.number:
            values = {f"{name}:{joint.name}": getattr(joint.kind, name) for name in OF_JOINTS}
            yield from ((name, value[0] if len(value) == 1 else value) for name, value in values.items())
            yield f"at:{joint.name}", joint.placement.r
    for loop in robot.loops:
        yield f"at:{loop.name}", loop.predecessor_frame.r
        yield f"meets:{loop.name}", loop.successor_frame.r
        yield from ((f"{name}:{loop.name}", value) for name, value in loop.kind.lengths().items())
    for coupling in robot.couplings:
        yield from ((f"{name}:{coupling.name}", value) for name, value in _own_numbers(coupling.function))
    for spring in robot.elements:
        yield from ((f"{name}:{spring.name}", getattr(spring, name)) for name in OF_SPRINGS)
    for actuator in robot.actuators:
        yield from ((f"{name}:{actuator.name}", getattr(actuator, own)) for name, own in OF_SERVOS if actuator.servo)
    for shape in robot.shapes:
        if shape.name and shape.friction is not None:
            yield f"friction:{shape.name}", shape.friction


def _own_numbers(function: Any) -> Iterator[tuple[str, Any]]:
    """The numbers of a γ or φ that is a dataclass: its fields that are such, not whole numbers, which count."""
    for own in fields(function) if is_dataclass(function) else ():
        value = getattr(function, own.name)
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            yield own.name, value


def packed_parameters(robot: Robot, given: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Parameters that a user gave, checked: by name, and all of them as one vector, (..., n).

    Raises:
        ModelError: for a name that there is not, a wrong shape, or a number that cannot be.
    """
    if not isinstance(given, Mapping):
        raise ModelError(f"parameters must go by name, such as {{'mass:torso': 12.0}}, got {given!r}")
    known, values = robot.parameters, dict[str, np.ndarray]()
    for name, value in sorted(given.items(), key=lambda own: str(own[0])):  # whatever order they are given in
        if name not in known:
            raise ModelError(_unknown(robot, name))
        least = 0.0 if str(name).split(":")[0] in _NOT_NEGATIVE else -np.inf
        values[name] = numbers(f"parameter {name!r}", value, known[name].shape, least=least, batch=True)
        if not values[name].size:
            raise ModelError(f"parameter {name!r} is empty: there must be one value at least")
        if name.startswith("inertia:"):
            _check_inertias(robot, name, values[name])
    sizes = [known[name].ndim for name in values]
    try:
        leading = [value.shape[: value.ndim - n] for value, n in zip(values.values(), sizes, strict=True)]
        batch = np.broadcast_shapes(*leading)
    except ValueError:
        told = ", ".join(f"{name}: {value.shape}" for name, value in values.items())
        raise ModelError(f"leading (batch) dimensions of parameters do not fit together: {told}") from None
    columns = [np.zeros((*batch, 0))]
    for value, n in zip(values.values(), sizes, strict=True):
        spread = np.broadcast_to(value, (*batch, *value.shape[value.ndim - n :]))
        columns.append(spread.reshape(*batch, -1))
    packed = np.concatenate(columns, axis=-1)
    packed.setflags(write=False)
    return values, packed


def unpacked_parameters(robot: Robot, names: Iterable[str], packed: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters by name, of one vector of all of them, (..., n)."""
    values, start = dict[str, np.ndarray](), 0
    for name in names:
        known = robot.parameters[name]
        values[name] = packed[..., start : start + known.size].reshape((*packed.shape[:-1], *known.shape))
        start += known.size
    return values


def _unknown(robot: Robot, name: Any) -> str:
    """That there is no such parameter, and what there is."""
    known, (quantity, _, owner) = robot.parameters, str(name).partition(":")
    if name in _twice(robot):
        return f"parameter {name!r}: two parts have it, which are both called {owner!r}; rename one"
    text = f"robot {robot.name!r} has no parameter {name!r}; there is"
    of_owner = [own for own in known if own.partition(":")[2] == owner and owner]
    of_quantity = [own for own in known if own.partition(":")[0] == quantity]
    if of_owner or of_quantity:
        return f"{text} {listed(of_owner or of_quantity)}"
    return f"{text} {listed(list(known)[:8])}, ...: robot.parameters lists all"


def _check_inertias(robot: Robot, name: str, values: np.ndarray) -> None:
    body = robot.bodies[name.partition(":")[2]]
    moments = np.linalg.eigvalsh(0.5 * (values + np.swapaxes(values, -1, -2)))
    skewed = np.abs(values - np.swapaxes(values, -1, -2)).max(axis=(-2, -1))
    doubtful = (moments[..., 0] < 0.0) | (moments[..., 2] > moments[..., 0] + moments[..., 1]) | (skewed > 0.0)
    for state in map(tuple, np.argwhere(doubtful)):  # of which rounding is let pass
        try:
            check_inertia(body.name, 1.0, values[state], body.ideal)
        except ModelError as error:
            raise ModelError(f"parameter {name!r}{in_state(state)}: {error}") from None
