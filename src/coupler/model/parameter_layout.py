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
