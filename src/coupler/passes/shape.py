"""Clusters that look alike: what a trace depends on, and the numbers in which they differ.

Two clusters have the same shape when their joints are of the same kinds, hang on each other in the same way, and are
constrained by the same functions. One trace serves them all, with their numbers in a table. Exact zeros and ones in the
placements of joints make part of the shape, too, as long as there are not too many shapes: they save half the work.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from coupler.graph import Array, Template, jacobian, symbols
from coupler.model import Robot
from coupler.model.embedding.choice import Choice
from coupler.model.embedding.constraints import Loop, LoopConstraint, RelationConstraint, Solution, form_of
from coupler.model.joint import Joint

__all__ = ["Held", "Instance", "Related", "Shape", "Solved", "coupled_by_children", "described", "shapes_of"]

_MOST = 12  # shapes; where there would be more, zeros and ones are left to the table


@dataclass(frozen=True, eq=False)
class Solved:
    """A coupling that gives positions of some bodies of a cluster from those of others, by their numbers."""

    function: Template
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dependent: tuple[int, ...]  # which of the outputs
    linear: bool  # whether its rates are the same everywhere


@dataclass(frozen=True, eq=False)
class Held:
    """A loop joint between two bodies of a cluster, or None for the output body."""

    kind: Any
    first: int | None
    second: int | None
    to_first: tuple[int, ...]
    to_second: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Related:
    """A function of the positions of some bodies that is zero when they fit together."""

    function: Any
    bodies: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Shape:
    """What clusters have in common; bodies are numbered within the cluster, parents first.

    Attributes:
        kinds: of joint, for each body.
        parents: for each body the one in the cluster that carries it, or None.
        outputs: for each body which of the cluster's output bodies it hangs on.
        grounded: for each output body whether it is the ground.
        carries: for each body whether other clusters hang on it.
        stored: for each body whether its position is in q.
        free: for each body which entries of its velocity are in v.
        couples: pairs of bodies on both of which a cluster hangs, so that one feels the other's inertia.
        constraints: solved couplings, or loops and relations where there is no solution.
    """

    kinds: tuple[Joint, ...]
    parents: tuple[int | None, ...]
    outputs: tuple[int, ...]
    grounded: tuple[bool, ...]
    carries: tuple[bool, ...]
    stored: tuple[bool, ...]
    free: tuple[tuple[int, ...], ...]
    couples: tuple[tuple[int, int], ...]
    constraints: tuple[Solved | Held | Related, ...]

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the velocity of each body starts among those of the cluster."""
        return np.cumsum([0, *(kind.nv for kind in self.kinds)])

    @cached_property
    def independent(self) -> np.ndarray:
        """The velocities of the cluster that are in v."""
        return np.array([self.starts[i] + j for i, entries in enumerate(self.free) for j in entries], int)

    @cached_property
    def dependent(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.starts[-1]), self.independent)

    @property
    def solved(self) -> bool:
        return all(isinstance(constraint, Solved) for constraint in self.constraints)

    @property
    def linear(self) -> bool:
        """Whether G is constant."""
        return all(isinstance(constraint, Solved) and constraint.linear for constraint in self.constraints)


@dataclass(eq=False)
class Instance:
    """A cluster of some shape.

    Attributes:
        links: its bodies.
        outputs: the links that they hang on, each once.
        numbers: by name, what goes into the table.
    """

    links: tuple[int, ...]
    outputs: tuple[int, ...]
    numbers: dict[str, np.ndarray] = field(default_factory=dict)


def shapes_of(robot: Robot) -> list[tuple[Shape, list[int]]]:
    """The shapes of a robot's clusters, each with the numbers of its clusters."""
    found = [described(robot, k) for k in range(1, len(robot.cluster_tree.clusters))]
    for pattern in (("E", "r"), ("E",), ()):
        groups: dict[Hashable, list[int]] = {}
        for k, (key, _, instance) in enumerate(found, 1):
            ones = tuple(_pattern(instance.numbers[name]) for name in instance.numbers if name[0] in pattern)
            groups.setdefault((key, ones), []).append(k)
        if len(groups) <= _MOST:
            break
    return [(found[clusters[0] - 1][1], clusters) for clusters in groups.values()]


def _pattern(values: np.ndarray) -> Hashable:
    """Where exact zeros and ones stand."""
    return tuple(np.where(np.isin(values, (0.0, 1.0, -1.0)), values, 2.0).ravel().tolist())


def described(robot: Robot, number: int) -> tuple[Hashable, Shape, Instance]:
    """A cluster's shape with a key that is equal for equal shapes, and what is its own."""
    tree, cluster, embedding = robot.tree, robot.cluster_tree.clusters[number], robot.embedding
    links, own = cluster.bodies, {link: i for i, link in enumerate(cluster.bodies)}
    outputs = tuple(sorted(set(cluster.outputs)))
    numbers: dict[str, np.ndarray] = {}
    for i, link in enumerate(links):
        placement, inertia = tree.links[link].placement, tree.links[link].inertia
        kind = tree.links[link].kind
        numbers |= {f"E{i}": placement.E, f"r{i}": placement.r, f"m{i}": np.asarray(inertia.m)}
        numbers |= {f"h{i}": inertia.h, f"I{i}": inertia.I}
        for name in ("stiffness", "rest", "damping", "armature"):
            numbers[f"{name}{i}"] = getattr(kind, name)
    constraints, key = _constraints(robot, number, own, numbers)
    shape = Shape(
        kinds=tuple(tree.links[link].kind for link in links),
        parents=tuple(own.get(tree.parent[link]) for link in links),
        outputs=tuple(outputs.index(output) for output in cluster.outputs),
        grounded=tuple(output == 0 for output in outputs),
        carries=tuple(any(child not in own for child in tree.children[link]) for link in links),
        stored=tuple(bool(np.isin(tree.positions(link), embedding.q_index).all()) for link in links),
        free=tuple(tuple(np.flatnonzero(embedding.v_place[tree.velocities(link)] >= 0).tolist()) for link in links),
        couples=tuple((own[a], own[b]) for a, b in coupled_by_children(robot, number)),
        constraints=constraints,
    )
    key = (
        tuple(form_of(kind) for kind in shape.kinds),
        *(shape.parents, shape.outputs, shape.grounded, shape.carries, shape.stored, shape.free, shape.couples, key),
    )
    return key, shape, Instance(links, outputs, numbers)


def coupled_by_children(robot: Robot, number: int) -> list[tuple[int, int]]:
    """The pairs of links of a cluster on both of which one of its children hangs, the lower number first."""
    children = (cluster for cluster in robot.cluster_tree.clusters[1:] if cluster.parent == number)
    return sorted({pair for child in children for pair in combinations(sorted(set(child.outputs)), 2)})


def _constraints(
    robot: Robot, number: int, own: dict[int, int], numbers: dict[str, np.ndarray]
) -> tuple[tuple[Solved | Held | Related, ...], Hashable]:
    """What constrains a cluster, and a key of it; its numbers are added to the others."""
    embedding = robot.embedding
    at = next((i for i, loop in enumerate(embedding.closure.loops) if loop.cluster == number), None)
    if at is None:
        return (), ()
    loop, choice = embedding.closure.loops[at], embedding.choices[at]
    if embedding.explicit[at]:
        return _solved([x for x in embedding.solutions if x.outputs[0] in own], own, numbers)
    return _unsolved(loop, choice, own, numbers)


def _solved(solutions: Sequence[Solution], own: dict[int, int], numbers: dict[str, np.ndarray]) -> Any:
    found, key = [], []
    for i, solution in enumerate(solutions):
        inputs, outputs = (tuple(own[link] for link in links) for links in (solution.inputs, solution.outputs))
        linear = not isinstance(_rates(solution.function, len(inputs)), Array)
        found.append(Solved(solution.function, inputs, outputs, solution.slots, linear))
        key.append((solution.function.text, inputs, outputs))
        numbers[f"n{i}"] = solution.function.numbers
    return tuple(found), tuple(key)


def _rates(function: Template, size: int) -> Any:
    return jacobian(lambda y: function(y, function.numbers), symbols("y", size))


def _unsolved(loop: Loop, choice: Choice, own: dict[int, int], numbers: dict[str, np.ndarray]) -> Any:
    found, key, row = [], [], 0
    for constraint in loop.constraints:
        rows = tuple(int(x) - row for x in choice.rows if row <= x < row + constraint.rows)
        row += constraint.rows
        if not rows:
            continue
        i = len(found)
        if isinstance(constraint, LoopConstraint):
            ends = own.get(constraint.first), own.get(constraint.second)
            ways = tuple(own[x] for x in constraint.to_first), tuple(own[x] for x in constraint.to_second)
            found.append(Held(constraint.kind, *ends, *ways, rows))
            for name, frame in (("A", constraint.first_frame), ("B", constraint.second_frame)):
                numbers |= {f"{name}E{i}": frame.E + 0.0, f"{name}r{i}": frame.r + 0.0}
            key.append((constraint.form, ends, ways, rows))
        else:
            assert isinstance(constraint, RelationConstraint)
            bodies = tuple(own[link] for link in constraint.links)
            found.append(Related(constraint.function, bodies, rows))
            numbers[f"n{i}"] = constraint.numbers
            key.append((constraint.form, bodies, rows))
    return tuple(found), (tuple(key), tuple(choice.dependent.tolist()))
