"""The numbers of a robot by name: what may be given anew, or differ from state to state, without compiling anything.

A name says which number of what: "mass:torso", "ratio:hip_gears", "gravity".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import accumulate
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.forks import cached_property
from coupler.model.bodies import check_inertia, possible_inertias
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.wording import in_state, listed

if TYPE_CHECKING:
    from coupler.model.robot import Robot

OF_BODIES = ("mass", "centre", "inertia")
OF_JOINTS = ("stiffness", "damping", "armature", "friction")
OF_SPRINGS = ("stiffness", "free_length", "pretension", "damping", "first_point", "second_point")
OF_SERVOS = (("servo_stiffness", "stiffness"), ("servo_damping", "damping"))  # which mostly have names of joints
OF_SHAPES = ("friction", "restitution", "torsion", "rolling")
OF_PAIRS = ("friction", "torsion", "rolling")
LENGTHS = ("at:", "turned:", "meets:", "meets_turned:", "length:")  # what loops are closed for
_NOT_NEGATIVE = {"mass", *OF_JOINTS, *OF_SHAPES, "free_length", "length", "servo_stiffness", "servo_damping"}


@dataclass(frozen=True, eq=False)
class GivenParameters:
    """Numbers that a robot is given as inputs of its programs.

    Attributes:
        base: the robot that it is without them.
        variant: the robot in which they are nodes, which all robots that are given the same ones share.
        layout: which numbers of each of them are inputs.
        packed: (..., n), all inputs, as programs take them.
        by_name: by name, as they were given; None where only the inputs are known.
    """

    base: Robot
    variant: Robot
    layout: Layout
    packed: np.ndarray
    by_name: Mapping[str, np.ndarray] | None = None

    @property
    def values(self) -> Mapping[str, np.ndarray]:
        """By name, with leading dimensions for a batch."""
        return self.layout.unpack(self.packed) if self.by_name is None else self.by_name


@dataclass(frozen=True)
class Layout:
    """Which numbers of parameters are inputs of programs, one after the other.

    Programs are as short, and take as little memory, as structure allows: numbers that are zero in the robot, and in
    all that it was ever given, are no inputs, and entries of an inertia that were always equal are one. So an inertia
    has six at most, and that of a rotor, two.

    Attributes:
        names: of the parameters, sorted.
        shapes: of each parameter.
        sources: of each parameter, for each entry of its flattened value, which of its inputs that is; −1 for zero.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    sources: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        return sum(max(sources) + 1 for sources in self.sources)

    def pack(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The inputs, (..., n), of values by name, whose leading dimensions fit together."""
        batches = [values[name].shape[: values[name].ndim - len(shape)] for name, shape in self._shaped()]
        packed, start = np.empty((*np.broadcast_shapes(*batches), self.size)), 0
        for (name, shape), batch, sources in zip(self._shaped(), batches, self.sources, strict=True):
            taken = [sources.index(i) for i in range(max(sources) + 1)]
            packed[..., start : start + len(taken)] = values[name].reshape((*batch, prod(shape)))[..., taken]
            start += len(taken)
        packed.setflags(write=False)
        return packed

    def unpack(self, inputs: np.ndarray) -> Mapping[str, np.ndarray]:
        """Values by name of inputs, (..., n), which are numbers or nodes; each is made when it is asked for."""
        return _Unpacked(self, inputs)

    @cached_property
    def starts(self) -> dict[str, tuple[int, int]]:
        """Of each parameter its number, and where its inputs start."""
        ends = list(accumulate((max(sources) + 1 for sources in self.sources), initial=0))
        return {name: (i, ends[i]) for i, name in enumerate(self.names)}

    def _shaped(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        return zip(self.names, self.shapes, strict=True)


class _Unpacked(Mapping[str, np.ndarray]):
    """Values by name, made of inputs when they are asked for: those of 200 parameters cost a millisecond."""

    def __init__(self, layout: Layout, inputs: np.ndarray) -> None:
        self._layout, self._inputs = layout, inputs

    def __getitem__(self, name: str) -> np.ndarray:
        number, start = self._layout.starts[name]
        sources, batch = self._layout.sources[number], self._inputs.shape[:-1]
        count = max(sources) + 1
        own = np.zeros((*batch, count + 1), self._inputs.dtype)  # the last stays zero
        own[..., :count] = self._inputs[..., start : start + count]
        return own[..., list(sources)].reshape((*batch, *self._layout.shapes[number]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.names)

    def __len__(self) -> int:
        return len(self._layout.names)


def layout_of(robot: Robot, values: Mapping[str, np.ndarray]) -> Layout:
    """The layout for these values, and for all that the robot was given before.

    Structure that was once broken is not looked for again, so that values which come and go compile nothing.
    """
    known = robot.__dict__.setdefault("_structures", {})
    for name, value in values.items():
        usual = robot.parameters[name]
        every = np.concatenate([usual.reshape(1, -1), value.reshape(-1, usual.size)])
        now = _structure(every, shared=name.startswith("inertia:"))
        known[name] = _numbered(list(zip(known.get(name, now), now, strict=True)), (-1, -1))
    sources = {name: known[name] for name in values}
    for name in _telling(robot, values, sources):
        sources[name] = tuple(range(robot.parameters[name].size))
    shapes = (robot.parameters[name].shape for name in values)
    return Layout(tuple(values), tuple(shapes), tuple(sources.values()))


def _telling(robot: Robot, values: Mapping[str, np.ndarray], sources: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Parameters that are zero in all states of a batch and are inputs even so.

    A batch is one, whatever its values: some input must tell programs. Masses and inertias tell all that any number of
    a body or a joint could, and one number tells what others of its kind could. A length tells of what it carries.
    """
    told = {name for name, own in sources.items() if max(own) >= 0}
    for name, value in values.items():
        if name in told or value.ndim == robot.parameters[name].ndim:
            continue
        kind, _, owner = name.partition(":")
        if f"{kind}:" not in LENGTHS:
            is_told = any(other.startswith((f"{kind}:", "mass:", "inertia:")) for other in told)
        else:
            is_told = not told.isdisjoint(f"{x}:{joint}" for joint in _carriers(robot, owner) for x in ("at", "turned"))
        if not is_told:
            told.add(name)
            yield name


def _carriers(robot: Robot, joint: str) -> list[str]:
    """A joint of the tree and those that carry it; none of a loop."""
    tree, number = robot.tree, robot.tree.number.get(joint)
    return [] if number is None else [tree.links[link].joint for link in tree.carriers(number)]


def _structure(values: np.ndarray, shared: bool) -> tuple[int, ...]:
    """The source of each entry in some values, n × size; if they may be shared, equal entries have the same one."""
    first = list[int]()  # of the entries that equal each
    for j, column in enumerate(values.T):
        alike = (i for i in range(j) if shared and first[i] == i and np.array_equal(values[:, i], column))
        first.append(next(alike, j) if column.any() else -1)
    return _numbered(first, -1)


def _numbered(labels: Sequence[Any], zero: Any) -> tuple[int, ...]:
    """Labels as numbers in order of appearance; −1 for that of zero."""
    number = {label: i for i, label in enumerate(dict.fromkeys(label for label in labels if label != zero))}
    return tuple(number.get(label, -1) for label in labels)


def parameters_of(robot: Robot) -> Mapping[str, np.ndarray]:
    """All numbers of a robot that it can be given anew, by name, as they are."""
    values: dict[str, np.ndarray] = {}
    for name, value in _numbers(robot):
        values[name] = np.array(value, dtype=float)
        values[name].setflags(write=False)
    twice = _twice(robot)
    return MappingProxyType({name: value for name, value in values.items() if name not in twice})


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
        yield from ((f"{name}:{actuator.name}", getattr(actuator, own)) for name, own in OF_SERVOS if actuator.servo)
    for shape in robot.shapes:
        given = {name: getattr(shape, name) for name in OF_SHAPES if shape.name}
        yield from ((f"{name}:{shape.name}", value) for name, value in given.items() if value is not None)
    for pair in robot.contact_pairs:
        given = {name: getattr(pair, name) for name in OF_PAIRS}
        yield from ((f"{name}:{pair.name}", value) for name, value in given.items() if value is not None)


def _own_numbers(function: Any) -> Iterator[tuple[str, Any]]:
    """The numbers of a γ or φ that is a dataclass: its fields that are such, not whole numbers, which count."""
    for own in fields(function) if is_dataclass(function) else ():
        value = getattr(function, own.name)
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            yield own.name, value


def checked_parameters(robot: Robot, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Parameters that a user gave, checked, sorted by name.

    Raises:
        ModelError: for an unknown name, a wrong shape or an impossible number.
    """
    if not isinstance(given, Mapping):
        raise ModelError(f"parameters must go by name, such as {{'mass:torso': 12.0}}, got {given!r}")
    known, values = robot.parameters, dict[str, np.ndarray]()
    for name, value in sorted(given.items(), key=lambda own: str(own[0])):  # whatever order they are given in
        if name not in known:
            raise ModelError(_unknown(robot, name))
        _check_reach(robot, name, given)
        least = 0.0 if str(name).split(":")[0] in _NOT_NEGATIVE else -np.inf
        values[name] = numbers(f"parameter {name!r}", value, known[name].shape, least=least, batch=True)
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
        np.broadcast_shapes(*(value.shape[: value.ndim - known[name].ndim] for name, value in values.items()))
    except ValueError:
        shapes_by_name = ", ".join(f"{name}: {value.shape}" for name, value in values.items())
        raise ModelError(f"leading (batch) dimensions of parameters do not fit together: {shapes_by_name}") from None
    return values


def _unknown(robot: Robot, name: Any) -> str:
    """That there is no such parameter, and what there is."""
    known, (quantity, _, owner) = robot.parameters, str(name).partition(":")
    if name in _twice(robot):
        return f"parameter {name!r}: two parts have it, which are both called {owner!r}; rename one"
    if quantity in OF_SHAPES and any(shape.name == owner for shape in robot.shapes):
        return f"parameter {name!r}: shape {owner!r} has no {quantity} of its own; build it with one, {quantity}=0 say"
    text = f"robot {robot.name!r} has no parameter {name!r}; there is"
    of_owner = [own for own in known if own.partition(":")[2] == owner and owner]
    of_quantity = [own for own in known if own.partition(":")[0] == quantity]
    if of_owner or of_quantity:
        return f"{text} {listed(of_owner or of_quantity)}"
    return f"{text} {listed(list(known)[:8])}, ...: robot.parameters lists all"


def _check_reach(robot: Robot, name: str, given: Mapping[str, Any]) -> None:
    """Refuses the friction of a shape where that of one of its pairs counts instead, and is not given."""
    quantity, _, owner = name.partition(":")
    for pair in robot.contact_pairs if quantity in OF_PAIRS else ():
        own = f"{quantity}:{pair.name}"
        if owner in (pair.first, pair.second) and own not in given and own in robot.parameters:
            raise ModelError(
                f"parameter {name!r}: the contact pair {pair.first!r}, {pair.second!r} has a {quantity} of its own, "
                f"which this would not change; give {own!r} as well"
            )


def _check_inertias(robot: Robot, name: str, values: np.ndarray) -> None:
    """Refuses the first that no body can have, which `check_inertia` explains."""
    body = robot.bodies[name.partition(":")[2]]
    for state in map(tuple, np.argwhere(~possible_inertias(values, body.ideal))):
        try:
            check_inertia(body.name, 1.0, values[state], body.ideal)
        except ModelError as error:
            raise ModelError(f"parameter {name!r}{in_state(state)}: {error}") from None
