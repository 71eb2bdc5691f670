"""Clusters in which the same actuators act, and linear systems of each group of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coupler.graph import Part, Vector, View, fields
from coupler.model import Robot
from coupler.model.actuators import terms_of
from coupler.passes.records import numbered
from coupler.passes.sweep import Sweep
from coupler.passes.terms import actuators_by_cluster, cleared

_DEPENDENT = 1e-9  # of a column: what is left of it beside others that it is made of

Solution = Callable[..., tuple[Any, Any]]  # what a group answers, and what it misses


class _Group(NamedTuple):
    """A block of the Jacobian A, beside which it is zero: numbers of actuators, its rows, and entries of v."""

    actuators: list[int]
    entries: list[int]


class ActuatedGroups:
    """The groups of all clusters that actuators act in: a cluster by itself, unless an actuator acts in several.

    Attributes:
        A: the block of each group, row by row, one after the other; zeros at first.
    """

    def __init__(self, sweep: Sweep[Any, Any]) -> None:
        self._sweep, self._groups = sweep, _groups_of(sweep.robot)
        self._rows, self._columns, size = dict[int, int](), dict[int, int](), 0
        for group in self._groups:
            self._columns |= {entry: i for i, entry in enumerate(group.entries)}
            for number in group.actuators:
                self._rows[number], size = size, size + len(group.entries)
        self.A = cleared(sweep, sweep.scratch("blocks", size))

    def place(self, actuator: int, entry: int) -> int:
        """Where in A the entry of an actuator and an independent velocity of its group is."""
        return self._rows[actuator] + self._columns[entry]

    @property
    def clusters(self) -> list[int]:
        """The numbers of all clusters that actuators act in."""
        return sorted(actuators_by_cluster(self._sweep.robot))

    def solve(self, solution: Solution, asked: str, elsewhere: str | None = None, **given: bool) -> None:
        """Writes the steps to answers of all groups, which are the program's output.

        What is asked for goes by actuators and the answers by entries of v, or the other way round. After the answers,
        the output has three numbers: the largest entry of what is asked for, or 1, of answers, and of what they miss.

        Args:
            solution: gives the answer of a group, and what it misses, from its block A, the rows or columns of it that
                span the others, as many as there are answers at most, and what is given, by name.
            asked: the name of what is asked for.
            elsewhere: the name of what entries of v answer that no actuator moves.
            given: the program's inputs, and whether they go by actuators.
        """
        builder, counts = self._sweep.builder, (self._sweep.robot.nv, len(self._sweep.robot.actuators))
        vectors: dict[str, tuple[Vector, bool]] = {
            name: (builder.input(name, counts[own]), own) for name, own in given.items()
        }
        wanted, size = vectors[asked][0], counts[not given[asked]]
        result = self._sweep.result("answer", size + 3)
        told = Part(result, size, 3)
        self.write(solution, Part(result, 0, size), not given[asked], told, wanted, vectors)
        idle = [entry for entry in range(counts[0]) if entry not in self._columns]
        if idle and elsewhere:
            builder.loop(_copy, row=fields(answer=result.at(idle), given=vectors[elsewhere][0].at(idle)))
        elif idle:
            builder.loop(_miss, row=_tell(told, len(idle)) | fields(asked=wanted.at(idle)))

    def write(
        self,
        solution: Solution,
        answer: Vector,
        by_actuators: bool,
        told: Vector,
        wanted: Vector,
        vectors: Mapping[str, tuple[Vector, bool]],
    ) -> None:
        """Writes the steps to answers of all groups.

        Args:
            solution: as for `solve`.
            answer, by_actuators: where answers go, and whether by actuators.
            told: gets the largest entry of what is asked for, or 1, of answers, and of what they miss.
            wanted: what is asked for.
            vectors: what is given, by name, and whether by actuators.
        """
        builder = self._sweep.builder
        builder.loop(_begin, row=_tell(told, 1))
        builder.loop(_ask, row=_tell(told, wanted.size) | fields(asked=wanted.at(range(wanted.size))))
        for (shape, spanning), groups in self._alike(rows=by_actuators).items():
            window = fields(A=self.A.at([self._rows[group.actuators[0]] for group in groups], shape))
            for name, (vector, own) in {**vectors, "answer": (answer, by_actuators)}.items():
                places = np.array([group.actuators if own else group.entries for group in groups])
                window |= fields(**{numbered(name, i): vector.at(column) for i, column in enumerate(places.T)})
            sizes = {name: shape[0 if own else 1] for name, (_, own) in vectors.items()}
            builder.loop(_solving(solution, spanning, sizes), row=window | _tell(told, len(groups)))

    def _alike(self, rows: bool) -> dict[tuple[tuple[int, int], tuple[int, ...]], list[_Group]]:
        """Groups by the shape of their blocks, and by the rows, or columns, that span the others."""
        alike = dict[Any, list[_Group]]()
        for group, A in zip(self._groups, _blocks(self._sweep.robot, self._groups), strict=True):
            alike.setdefault((A.shape, _spanning(A.T if rows else A)), []).append(group)
        return alike


def separate_actuators(robot: Robot) -> list[list[int]]:
    """The numbers of actuators, those together that move the same clusters."""
    return [group.actuators for group in _groups_of(robot)]


def have_full_rank(robot: Robot, clusters: set[int]) -> bool:
    """Whether the block of each group with one of these clusters is of full rank, in some configuration."""
    groups = _groups_of(robot)
    for group, A in zip(groups, _blocks(robot, groups), strict=True):
        links = [robot.tree.link_of(int(robot.embedding.v_index[entry])) for entry in group.entries]
        if clusters & {robot.cluster_tree.cluster_of[link] for link in links} and len(_spanning(A)) < min(A.shape):
            return False
    return True


def _blocks(robot: Robot, groups: Sequence[_Group]) -> list[np.ndarray]:
    """The blocks of A in some configuration."""
    q, blocks = robot.states.random(np.random.default_rng(0)), []
    G = robot.embedding.explicit_constraint(q[None], np.zeros((1, robot.nv)))[0][0]
    for group in groups:
        A = np.zeros((len(group.actuators), robot.nv))
        for row, number in zip(A, group.actuators, strict=True):
            for link, j, gear in terms_of(robot, robot.actuators[number]):
                row += gear * G[int(robot.tree.v_start[link]) + j]
        blocks.append(A[:, group.entries])
    return blocks


def _spanning(A: np.ndarray) -> tuple[int, ...]:
    """Columns of which all others are made, the longest first, as far as rounding tells."""
    left, chosen = A / np.maximum(np.linalg.norm(A, axis=0), 1e-300), list[int]()
    while len(chosen) < min(A.shape):
        lengths = np.linalg.norm(left, axis=0)
        if lengths.max() < _DEPENDENT:
            break
        chosen.append(int(lengths.argmax()))
        along = left[:, chosen[-1]] / lengths.max()
        left = left - np.outer(along, along @ left)
    return tuple(chosen)


def _groups_of(robot: Robot) -> list[_Group]:
    group, members = dict[int, int](), actuators_by_cluster(robot)
    for k, own in members.items():  # each cluster joins those with which it shares an actuator
        shared = {group[other] for other in group if not {*own}.isdisjoint(members[other])}
        group = {other: k if first in shared else first for other, first in group.items()} | {k: k}
    clusters = [robot.cluster_tree.cluster_of[robot.tree.link_of(int(entry))] for entry in robot.embedding.v_index]
    return [
        _Group(
            sorted({number for k, first in group.items() if first == own for number in members[k]}),
            [entry for entry, k in enumerate(clusters) if group.get(k) == own],
        )
        for own in dict.fromkeys(group.values())
    ]


def _tell(told: Vector, rows: int) -> Any:
    return fields(**{name: told.at([i] * rows) for i, name in enumerate(("largest", "answered", "missed"))})


# Kernels


def _begin(row: View) -> None:
    row.largest, row.answered, row.missed = np.array(1.0), np.array(0.0), np.array(0.0)


def _ask(row: View) -> None:
    row.largest = np.maximum(row.largest, np.abs(row.asked))


def _copy(row: View) -> None:
    row.answer = row.given


def _miss(row: View) -> None:
    row.missed = np.maximum(row.missed, np.abs(row.asked))


def _solving(solution: Solution, spanning: Sequence[int], sizes: Mapping[str, int]) -> Callable[[View], None]:
    def solve_group(row: View) -> None:
        given = {name: np.array([getattr(row, numbered(name, i)) for i in range(n)]) for name, n in sizes.items()}
        answer, missed = solution(row.A, spanning, **given)
        for i, value in enumerate(answer):
            setattr(row, numbered("answer", i), value)
            row.answered = np.maximum(row.answered, np.abs(value))
        for value in missed:
            row.missed = np.maximum(row.missed, np.abs(value))

    return solve_group
