"""Which numbers of a robot's parameters are inputs of its programs, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.forks import cached_property
from coupler.model.parameters import LENGTHS

if TYPE_CHECKING:
    from coupler.model.robot import Robot


@dataclass(frozen=True, eq=False)
class GivenParameters:
    """Parameters that a robot is given as inputs of its programs.

    Attributes:
        base: the robot without them.
        variant: the robot in which these numbers are nodes, shared by all robots with the same layout.
        layout: the numbers of each parameter that are inputs.
        packed: (..., n), all inputs, as programs take them.
        by_name: the parameters as they were given; None where only the inputs are known.
    """

    base: Robot
    variant: Robot
    layout: ParameterLayout
    packed: np.ndarray
    by_name: Mapping[str, np.ndarray] | None = None

    @property
    def values(self) -> Mapping[str, np.ndarray]:
        """The parameters by name, with leading dimensions for a batch."""
        return self.layout.unpack(self.packed) if self.by_name is None else self.by_name


@dataclass(frozen=True)
class ParameterLayout:
    """The numbers of parameters that are inputs of programs, in order.

    Structure keeps programs short and their memory small. Numbers that are zero in the robot, and in all parameters it
    was ever given, are not inputs; entries of an inertia that were always equal share one. So an inertia has at most
    six inputs, and that of a rotor two.

    Attributes:
        names: the names of the parameters, sorted.
        shapes: the shape of each parameter.
        sources: for each parameter and each entry of its flattened value, the number of its input; −1 for zero.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    sources: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        return sum(max(sources) + 1 for sources in self.sources)

    def pack(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The inputs, (..., n), for values by name, whose leading dimensions fit together."""
        batches = [values[name].shape[: values[name].ndim - len(shape)] for name, shape in self._shaped()]
        packed, start = np.empty((*np.broadcast_shapes(*batches), self.size)), 0
        for (name, shape), batch, sources in zip(self._shaped(), batches, self.sources, strict=True):
            taken = [sources.index(i) for i in range(max(sources) + 1)]
            packed[..., start : start + len(taken)] = values[name].reshape((*batch, prod(shape)))[..., taken]
            start += len(taken)
        packed.setflags(write=False)
        return packed

    def unpack(self, inputs: np.ndarray) -> Mapping[str, np.ndarray]:
        """Values by name for inputs, (..., n), which are numbers or nodes; each is made when it is asked for."""
        return _Unpacked(self, inputs)

    @cached_property
    def starts(self) -> dict[str, tuple[int, int]]:
        """For each parameter, its number and where its inputs start."""
        ends = list(accumulate((max(sources) + 1 for sources in self.sources), initial=0))
        return {name: (i, ends[i]) for i, name in enumerate(self.names)}

    def _shaped(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        return zip(self.names, self.shapes, strict=True)


class _Unpacked(Mapping[str, np.ndarray]):
    """Values by name, made from inputs when they are asked for: all of 200 parameters would take a millisecond."""

    def __init__(self, layout: ParameterLayout, inputs: np.ndarray) -> None:
        self._layout, self._inputs = layout, inputs

    def __getitem__(self, name: str) -> np.ndarray:
        number, start = self._layout.starts[name]
        sources, batch = self._layout.sources[number], self._inputs.shape[:-1]
        count = max(sources) + 1
        inputs = np.zeros((*batch, count + 1), self._inputs.dtype)  # the last stays zero
        inputs[..., :count] = self._inputs[..., start : start + count]
        return inputs[..., list(sources)].reshape((*batch, *self._layout.shapes[number]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.names)

    def __len__(self) -> int:
        return len(self._layout.names)


def layout_of(robot: Robot, values: Mapping[str, np.ndarray]) -> ParameterLayout:
    """The layout for these values, and for all values that the robot was given before.

    Structure that was broken once is not used again, so that values that come and go compile nothing.
    """
    structures = robot.__dict__.setdefault("_structures", {})
    for name, value in values.items():
        default = robot.parameters[name]
        every = np.concatenate([default.reshape(1, -1), value.reshape(-1, default.size)])
        now = _structure(every, shared=name.startswith("inertia:"))
        structures[name] = _numbered(list(zip(structures.get(name, now), now, strict=True)), (-1, -1))
    sources = {name: structures[name] for name in values}
    for name in _batch_markers(robot, values, sources):
        sources[name] = tuple(range(robot.parameters[name].size))
    shapes = (robot.parameters[name].shape for name in values)
    return ParameterLayout(tuple(values), tuple(shapes), tuple(sources.values()))


def _batch_markers(
    robot: Robot, values: Mapping[str, np.ndarray], sources: Mapping[str, tuple[int, ...]]
) -> Iterator[str]:
    """Parameters that are zero in all states of a batch and become inputs even so.

    Programs see from their inputs that results are a batch, so some input must be one, even if all values are zero. A
    mass or an inertia marks all that any number of a body or a joint could, one quantity all that the same quantity of
    another part could, and a length everything that its joint carries.
    """
    marking = {name for name, numbers in sources.items() if max(numbers) >= 0}
    for name, value in values.items():
        if name in marking or value.ndim == robot.parameters[name].ndim:
            continue
        kind, _, owner = name.partition(":")
        if f"{kind}:" not in LENGTHS:
            is_marked = any(other.startswith((f"{kind}:", "mass:", "inertia:")) for other in marking)
        else:
            places = (f"{x}:{joint}" for joint in _carriers(robot, owner) for x in ("at", "turned"))
            is_marked = not marking.isdisjoint(places)
        if not is_marked:
            marking.add(name)
            yield name


def _carriers(robot: Robot, joint: str) -> list[str]:
    """The names of a joint of the tree and of the joints that carry it; empty for a loop."""
    tree, number = robot.tree, robot.tree.number.get(joint)
    return [] if number is None else [tree.links[link].joint for link in tree.carriers(number)]


def _structure(values: np.ndarray, shared: bool) -> tuple[int, ...]:
    """For n values of one size, the number of each entry's input; where sharing is allowed, equal entries share one."""
    first = list[int]()  # for each entry, the first that equals it
    for j, column in enumerate(values.T):
        equal = (i for i in range(j) if shared and first[i] == i and np.array_equal(values[:, i], column))
        first.append(next(equal, j) if column.any() else -1)
    return _numbered(first, -1)


def _numbered(labels: Sequence[Any], zero: Any) -> tuple[int, ...]:
    """Labels as numbers in order of appearance; −1 for the label of zero."""
    number = {label: i for i, label in enumerate(dict.fromkeys(label for label in labels if label != zero))}
    return tuple(number.get(label, -1) for label in labels)
