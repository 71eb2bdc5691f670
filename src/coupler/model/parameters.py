"""The parameters of a robot: its numbers by name, which may change, even from state to state, without compiling.

A name is that of a quantity and a part: "mass:torso", "ratio:hip_gears"; or "gravity".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model.bodies import check_inertia, possible_inertias
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.wording import clause, in_state, listed

if TYPE_CHECKING:
    from coupler.model.robot import Robot

OF_BODIES = ("mass", "centre", "inertia")
OF_JOINTS = ("stiffness", "damping", "armature", "friction")
OF_SPRINGS = ("stiffness", "free_length", "pretension", "damping", "first_point", "second_point")
OF_SERVOS = (("servo_stiffness", "stiffness"), ("servo_damping", "damping"))  # apart from joints of the same name
OF_SHAPES = ("friction", "restitution", "torsion", "rolling")
OF_PAIRS = ("friction", "torsion", "rolling")
LENGTHS = ("at:", "turned:", "meets:", "meets_turned:", "length:")  # the closing of loops depends on these
_NOT_NEGATIVE = {"mass", *OF_JOINTS, *OF_SHAPES, "free_length", "length", "servo_stiffness", "servo_damping"}


def parameters_of(robot: Robot) -> Mapping[str, np.ndarray]:
    """All numbers of a robot that can be given as parameters, by name."""
    values: dict[str, np.ndarray] = {}
    for name, value in _numbers(robot):
        values[name] = np.array(value, dtype=float)
        values[name].setflags(write=False)
    ambiguous = _ambiguous(robot)
    return MappingProxyType({name: value for name, value in values.items() if name not in ambiguous})


def _ambiguous(robot: Robot) -> set[str]:
    """Names that stand for two numbers, since a joint and a shape may have the same name."""
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
            yield f"turned:{joint.name}", np.zeros(3)
    for loop in robot.loops:
        yield f"at:{loop.name}", loop.predecessor_frame.r
        yield f"meets:{loop.name}", loop.successor_frame.r
        yield from ((f"{name}:{loop.name}", np.zeros(3)) for name in ("turned", "meets_turned") if loop.kind.directed)
        yield from ((f"{name}:{loop.name}", value) for name, value in loop.kind.lengths().items())
    for coupling in robot.couplings:
        yield from ((f"{name}:{coupling.name}", value) for name, value in _own_numbers(coupling.function))
    for spring in robot.elements:
        yield from ((f"{name}:{spring.name}", getattr(spring, name)) for name in OF_SPRINGS)
    for actuator in robot.actuators:
        yield from ((f"{name}:{actuator.name}", getattr(actuator, x)) for name, x in OF_SERVOS if actuator.servo)
    for shape in robot.shapes:
        given = {name: getattr(shape, name) for name in OF_SHAPES if shape.name}
        yield from ((f"{name}:{shape.name}", value) for name, value in given.items() if value is not None)
    for pair in robot.contact_pairs:
        given = {name: getattr(pair, name) for name in OF_PAIRS}
        yield from ((f"{name}:{pair.name}", value) for name, value in given.items() if value is not None)


def _own_numbers(function: Any) -> Iterator[tuple[str, Any]]:
    """The numbers of a γ or φ that is a dataclass: its float fields. Whole numbers count things, and are left out."""
    for attribute in fields(function) if is_dataclass(function) else ():
        value = getattr(function, attribute.name)
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            yield attribute.name, value


def checked_parameters(robot: Robot, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The parameters that a user gave, checked, and sorted by name.

    Raises:
        ModelError: for an unknown name, a wrong shape or an impossible number.
    """
    if not isinstance(given, Mapping):
        raise ModelError(f"parameters must go by name, such as {{'mass:torso': 12.0}}, got {given!r}")
    parameters, values = robot.parameters, dict[str, np.ndarray]()
    for name, value in sorted(given.items(), key=lambda item: str(item[0])):  # in one order, whatever order was given
        if name not in parameters:
            raise ModelError(_unknown(robot, name))
        _check_reach(robot, name, given)
        least = 0.0 if str(name).split(":")[0] in _NOT_NEGATIVE else -np.inf
        values[name] = numbers(f"parameter {name!r}", value, parameters[name].shape, least=least, batch=True)
        if not values[name].size:
            raise ModelError(f"parameter {name!r} is empty: there must be one value at least")
        if name.startswith("restitution:") and values[name].max() > 1.0:
            raise ModelError(f"parameter {name!r} must be 0 to 1, got {values[name].max():g}: more would feed energy")
        if name.startswith("length:") and not values[name].all():
            raise ModelError(f"parameter {name!r} must not be zero; a ball joint holds two points together")
        if name.startswith("inertia:"):
            _check_inertias(robot, name, values[name])
            values[name] = 0.5 * (values[name] + np.swapaxes(values[name], -1, -2))  # equal up to rounding
    try:
        np.broadcast_shapes(*(value.shape[: value.ndim - parameters[name].ndim] for name, value in values.items()))
    except ValueError:
        shapes_by_name = ", ".join(f"{name}: {value.shape}" for name, value in values.items())
        raise ModelError(f"leading (batch) dimensions of parameters do not fit together: {shapes_by_name}") from None
    return values


def _unknown(robot: Robot, name: Any) -> str:
    """A message that a parameter is unknown, with the names that exist instead."""
    parameters, (quantity, _, owner) = robot.parameters, str(name).partition(":")
    if name in _ambiguous(robot):
        return f"parameter {name!r}: two parts have it, which are both called {owner!r}; rename one"
    if quantity in OF_SHAPES and any(shape.name == owner for shape in robot.shapes):
        return f"parameter {name!r}: shape {owner!r} has no {quantity} of its own; build it with one, {quantity}=0 say"
    text = f"robot {robot.name!r} has no parameter {name!r}"
    of_owner = [other for other in parameters if other.partition(":")[2] == owner and owner]
    of_quantity = [other for other in parameters if other.partition(":")[0] == quantity]
    if of_owner or of_quantity:
        return f"{text}; {clause(of_owner or of_quantity, 'there is {}', 'there are {}')}"
    return f"{text}; there are {listed(parameters, like=name)}: robot.parameters lists all"


def _check_reach(robot: Robot, name: str, given: Mapping[str, Any]) -> None:
    """Raises a ModelError for the friction of a shape if one of its contact pairs has its own, which is not given."""
    quantity, _, owner = name.partition(":")
    for pair in robot.contact_pairs if quantity in OF_PAIRS else ():
        of_pair = f"{quantity}:{pair.name}"
        if owner in (pair.first, pair.second) and of_pair not in given and of_pair in robot.parameters:
            raise ModelError(
                f"parameter {name!r}: the contact pair {pair.first!r}, {pair.second!r} has a {quantity} of its own, "
                f"which this would not change; give {of_pair!r} as well"
            )


def _check_inertias(robot: Robot, name: str, values: np.ndarray) -> None:
    """Raises the ModelError of `check_inertia` for the first inertia that no body can have."""
    body = robot.bodies[name.partition(":")[2]]
    for state in map(tuple, np.argwhere(~possible_inertias(values, body.ideal))):
        try:
            check_inertia(body.name, 1.0, values[state], body.ideal)
        except ModelError as error:
            raise ModelError(f"parameter {name!r}{in_state(state)}: {error}") from None
