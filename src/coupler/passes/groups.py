"""Groups of clusters in which the same actuators act, and the linear system of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coupler.graph import Part, Vector, View, fields
from coupler.model import Robot
from coupler.model.actuators import terms_of
from coupler.model.tolerances import TINY
from coupler.passes.records import numbered
from coupler.passes.sweep import Sweep
from coupler.passes.terms import actuators_by_cluster, cleared

_DEPENDENT = 1e-9  # relative length of a column's remainder, below which other columns span it

Solution = Callable[..., tuple[Any, Any]]  # returns the answer of a group, and its residual


class _Group(NamedTuple):
    """A diagonal block of the Jacobian A: the numbers of its actuators (rows) and its entries of v (columns)."""

    actuators: list[int]
    entries: list[int]


class ActuatedGroups:
    """The groups of clusters that actuators act in. A group is one cluster, unless an actuator acts in several.

    Attributes:
        A: the blocks of all groups one after the other, each row by row; zero at first.
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
        """The place in A of the entry for an actuator and an independent velocity of its group."""
        return self._rows[actuator] + self._columns[entry]

    @property
    def clusters(self) -> list[int]:
        """The numbers of all clusters that actuators act in."""
        return sorted(actuators_by_cluster(self._sweep.robot))

    def solve(self, solution: Solution, asked: str, elsewhere: str | None = None, **given: bool) -> None:
        """Writes the steps that solve the systems of all groups; their answers are the program's output.

        The right-hand side is a vector over actuators and the answer one over entries of v, or the other way round.
        Three numbers follow the answers in the output: the largest entries of the right-hand side (at least 1), of the
        answers, and of the residual.

        Args:
            solution: computes the answer of a group and its residual. It takes the group's block A, the rows or columns
                of A that span the others (at most as many as there are answers), and the group's parts of the inputs.
            asked: the name of the input that is the right-hand side.
            elsewhere: the name of the input that is the answer for entries of v that no actuator moves.
            given: the program's inputs, each with whether it is a vector over actuators.
        """
        builder, counts = self._sweep.builder, (self._sweep.robot.nv, len(self._sweep.robot.actuators))
        vectors: dict[str, tuple[Vector, bool]] = {
            name: (builder.input(name, counts[by_actuators]), by_actuators) for name, by_actuators in given.items()
        }
        right_side, size = vectors[asked][0], counts[not given[asked]]
        result = self._sweep.result("answer", size + 3)
        largest = Part(result, size, 3)
        self.write(solution, Part(result, 0, size), not given[asked], largest, right_side, vectors)
        idle = [entry for entry in range(counts[0]) if entry not in self._columns]
        if idle and elsewhere:
            builder.loop(_copy, row=fields(answer=result.at(idle), given=vectors[elsewhere][0].at(idle)))
        elif idle:
            builder.loop(_miss, row=_largest(largest, len(idle)) | fields(asked=right_side.at(idle)))

    def write(
        self,
        solution: Solution,
        answer: Vector,
        by_actuators: bool,
        largest: Vector,
        right_side: Vector,
        vectors: Mapping[str, tuple[Vector, bool]],
    ) -> None:
        """Writes the steps of `solve`, with the answers in a vector that exists already.

        Args:
            solution: as for `solve`.
            answer, by_actuators: the vector of answers, and whether it is one over actuators.
            largest: gets the largest entries of the right-hand side (at least 1), of the answers and of the residual.
            right_side: the right-hand side.
            vectors: the inputs by name, each with whether it is a vector over actuators.
        """
        builder = self._sweep.builder
        builder.loop(_begin, row=_largest(largest, 1))
        builder.loop(_ask, row=_largest(largest, right_side.size) | fields(asked=right_side.at(range(right_side.size))))
        for (shape, spanning), groups in self._by_shape(rows=by_actuators).items():
            window = fields(A=self.A.at([self._rows[group.actuators[0]] for group in groups], shape))
            for name, (vector, over_actuators) in {**vectors, "answer": (answer, by_actuators)}.items():
                places = np.array([group.actuators if over_actuators else group.entries for group in groups])
                window |= fields(**{numbered(name, i): vector.at(column) for i, column in enumerate(places.T)})
            sizes = {name: shape[0 if over_actuators else 1] for name, (_, over_actuators) in vectors.items()}
            builder.loop(_solving(solution, spanning, sizes), row=window | _largest(largest, len(groups)))

    def _by_shape(self, rows: bool) -> dict[tuple[tuple[int, int], tuple[int, ...]], list[_Group]]:
        """Groups by the shape of their blocks, and by the rows or columns that span the others."""
        by_shape = dict[Any, list[_Group]]()
        for group, A in zip(self._groups, _blocks(self._sweep.robot, self._groups), strict=True):
            by_shape.setdefault((A.shape, _spanning(A.T if rows else A)), []).append(group)
        return by_shape


def separate_actuators(robot: Robot) -> list[list[int]]:
    """The numbers of all actuators, grouped by the clusters that they move."""
    return [group.actuators for group in _groups_of(robot)]


def have_full_rank(robot: Robot, clusters: set[int]) -> bool:
    """Whether the block of every group with one of these clusters has full rank, in a random configuration."""
    groups = _groups_of(robot)
    for group, A in zip(groups, _blocks(robot, groups), strict=True):
        links = [robot.tree.link_of(int(robot.embedding.v_index[entry])) for entry in group.entries]
        if clusters & {robot.cluster_tree.cluster_of[link] for link in links} and len(_spanning(A)) < min(A.shape):
            return False
    return True


def _blocks(robot: Robot, groups: Sequence[_Group]) -> list[np.ndarray]:
    """The blocks of A in a random configuration."""
    rng, blocks = np.random.default_rng(0), list[np.ndarray]()
    q = robot.states.random(rng)
    G = robot.embedding.explicit_constraint(q[None], np.zeros((1, robot.nv)))[0][0]
    for group in groups:
        A = np.zeros((len(group.actuators), robot.nv))
        for row, number in zip(A, group.actuators, strict=True):
            for link, j, gear in terms_of(robot, robot.actuators[number]):
                # A gear that depends on the pose has any value in some pose.
                row += (rng.normal() if np.isnan(gear) else gear) * G[int(robot.tree.v_start[link]) + j]
        blocks.append(A[:, group.entries])
    return blocks


def _spanning(A: np.ndarray) -> tuple[int, ...]:
    """Columns that span all others, by pivoted orthogonalisation: the longest remainder is chosen first."""
    remainder, chosen = A / np.maximum(np.linalg.norm(A, axis=0), TINY), list[int]()
    while len(chosen) < min(A.shape):
        lengths = np.linalg.norm(remainder, axis=0)
        if lengths.max() < _DEPENDENT:
            break
        chosen.append(int(lengths.argmax()))
        along = remainder[:, chosen[-1]] / lengths.max()
        remainder = remainder - np.outer(along, along @ remainder)
    return tuple(chosen)


def _groups_of(robot: Robot) -> list[_Group]:
    group_of, actuators_of = dict[int, int](), actuators_by_cluster(robot)  # a group is named by one of its clusters
    for k, actuators in actuators_of.items():  # each cluster joins those with which it shares an actuator
        merged = {group_of[other] for other in group_of if not {*actuators}.isdisjoint(actuators_of[other])}
        group_of = {other: k if group in merged else group for other, group in group_of.items()} | {k: k}
    clusters = [robot.cluster_tree.cluster_of[robot.tree.link_of(int(entry))] for entry in robot.embedding.v_index]
    return [
        _Group(
            sorted({number for k, name in group_of.items() if name == group for number in actuators_of[k]}),
            [entry for entry, k in enumerate(clusters) if group_of.get(k) == group],
        )
        for group in dict.fromkeys(group_of.values())
    ]


def _largest(largest: Vector, rows: int) -> Any:
    """The three numbers that say how large everything is, for as many rows."""
    return fields(**{name: largest.at([i] * rows) for i, name in enumerate(("largest", "answered", "missed"))})


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
