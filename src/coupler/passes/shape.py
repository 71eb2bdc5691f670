"""Clusters that look alike: what a trace depends on, and the numbers in which they differ.

Two clusters have the same shape when their joints are of the same kinds, hang on each other in the same way, and are
constrained by the same functions. One trace serves them all, with their numbers in a table. Exact zeros and ones in the
placements of joints make part of the shape, too, as long as there are not too many shapes: they save half the work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from coupler.forks import cached_property
from coupler.graph import is_known, may_differ
from coupler.grouping import grouped
from coupler.model import Robot
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.model.embedding.solutions import Solution
from coupler.model.joint import Joint
from coupler.model.tree import Link
from coupler.zeros import null_space_patterns

_ROUNDING = 1e-14  # relative: how symmetric an inertia must be
_LARGE = 256  # bodies times freedoms
_MOST = 12  # shapes; where there would be more, zeros and ones are left to the table


@dataclass(frozen=True, eq=False)
class Shape:
    """What clusters have in common; bodies are numbered within the cluster, parents first.

    Attributes:
        kinds: of joint, for each body.
        parents: for each body the one in the cluster that carries it, or None.
        outputs: for each body which of the cluster's output bodies it hangs on.
        grounded: for each output body whether it is the ground.
        carries: for each body whether other clusters hang on it.
        begins: for each output body whether the cluster is the first, on the way inwards, of those that hang on it.
        stored: for each body whether its position is in q.
        steady: for each body whether its angle does not matter: it turns about an axis of symmetry and carries nothing.
        free: for each body which entries of its velocity are in v.
        couples: pairs of bodies on both of which a cluster hangs, so that one feels the other's inertia.
        constraints: solutions, or loops and relations where there is none, with bodies by their numbers.
    """

    kinds: tuple[Joint, ...]
    parents: tuple[int | None, ...]
    outputs: tuple[int, ...]
    grounded: tuple[bool, ...]
    carries: tuple[bool, ...]
    begins: tuple[bool, ...]
    stored: tuple[bool, ...]
    steady: tuple[bool, ...]
    free: tuple[tuple[int, ...], ...]
    couples: tuple[tuple[int, int], ...]
    constraints: tuple[Solution | Constraint, ...]

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
    def on_ground(self) -> bool:
        """Whether it hangs on the ground alone."""
        return all(self.grounded)

    @property
    def freedoms(self) -> int:
        """How many independent velocities it has."""
        return len(self.independent)

    @cached_property
    def paths(self) -> list[list[int]]:
        """For each body those of the cluster that carry it, and itself."""
        paths: list[list[int]] = []
        for i, parent in enumerate(self.parents):
            paths.append([*(paths[parent] if parent is not None else []), i])
        return paths

    @cached_property
    def loop_pattern(self) -> np.ndarray:
        """Where K of its loops may be anything but zero."""
        rows = []
        for constraint in self.constraints:
            assert not isinstance(constraint, Solution)
            row = np.zeros((len(constraint.kept), int(self.starts[-1])), bool)
            for body in constraint.links:
                row[:, slice(*self.starts[body : body + 2].tolist())] = True
            rows.append(row)
        return np.concatenate(rows)

    @cached_property
    def basis_patterns(self) -> tuple[np.ndarray, np.ndarray]:
        """The same of N and K⁺ of its loops."""
        return null_space_patterns(self.loop_pattern)

    @property
    def is_large(self) -> bool:
        """Whether its subspaces S are so many numbers that products with them are better avoided."""
        return len(self.kinds) * self.freedoms >= _LARGE

    @property
    def can_be_looped(self) -> bool:
        """Whether what each of its joints needs can be found by loops over them; see tree_loops.py."""
        simple = all(kind.nq == kind.nv == 1 for kind in self.kinds) and not any(self.steady)
        return simple and self.is_large and not self.solved and len(self.grounded) == 1 and not any(self.carries)

    @property
    def solved(self) -> bool:
        return all(isinstance(constraint, Solution) for constraint in self.constraints)

    @property
    def can_be_invalid(self) -> bool:
        """Whether a configuration of it may be invalid: an open loop, a quaternion of wrong length."""
        return not self.solved or any(kind.nq != kind.nv for kind in self.kinds)

    @property
    def linear(self) -> bool:
        """Whether G is constant."""
        return all(isinstance(constraint, Solution) and constraint.linear for constraint in self.constraints)


Numbers = dict[str, np.ndarray]


@dataclass(eq=False)
class Instance:
    """A cluster of some shape.

    Attributes:
        links: its bodies.
        outputs: the links that they hang on, each once.
        models: for each body its constants, by name: see `Model`.
        constraints: for each constraint its numbers, by name.
    """

    links: tuple[int, ...]
    outputs: tuple[int, ...]
    models: list[Numbers] = field(default_factory=list)
    constraints: list[Numbers] = field(default_factory=list)


class Clusters:
    """The clusters of a robot, sorted by shape.

    Attributes:
        instances: what is each cluster's own; that of the ground is empty.
        shapes: all shapes, each with the numbers of its clusters.
        couples: for each cluster the pairs of its links on both of which one of its children hangs, the lower first.
    """

    def __init__(self, robot: Robot, oriented: Iterable[int] | None = None) -> None:
        """Args: a robot, and the links whose angles matter whatever their symmetry; all of them if not given."""
        self._robot, clusters = robot, robot.cluster_tree.clusters
        bonds = [constraint for constraint, _ in robot.embedding.closure.constraints()]
        held = [link for bond in bonds if isinstance(bond, LoopConstraint) for link in bond.ends]
        self._oriented = None if oriented is None else {*oriented, *held}
        self._stored = frozenset(robot.embedding.q_index.tolist())
        self._loop = {loop.cluster: i for i, loop in enumerate(robot.embedding.closure.loops)}
        couples: list[set[tuple[int, int]]] = [set() for _ in clusters]
        for cluster in clusters[1:]:
            couples[cluster.parent] |= set(combinations(sorted(set(cluster.outputs)), 2))
        self.couples = [sorted(pairs) for pairs in couples]
        self._outermost = {output: k for k, cluster in enumerate(clusters) for output in cluster.outputs}
        described = [self._described(number) for number in range(1, len(clusters))]
        self.instances = [Instance((), ()), *(instance for _, _, instance in described)]
        groups: dict[Hashable, list[int]] = {}
        for names in (("E", "r", "rest"), ("E",), ()):
            groups = {}
            for number, (key, _, instance) in enumerate(described, 1):
                ones = tuple(_pattern(model[name]) for model in instance.models for name in names)
                groups.setdefault((key, ones), []).append(number)
            if len(groups) <= _MOST:
                break
        self.shapes = [(described[numbers[0] - 1][1], numbers) for numbers in groups.values()]

    def _described(self, number: int) -> tuple[Hashable, Shape, Instance]:
        """A cluster's shape with a key that is equal for equal shapes, and what is its own."""
        tree, cluster = self._robot.tree, self._robot.cluster_tree.clusters[number]
        embedding, links = self._robot.embedding, cluster.bodies
        own, outputs = {link: i for i, link in enumerate(links)}, tuple(sorted(set(cluster.outputs)))
        constraints = [constraint.within(own) for constraint in self._constraints(number)]
        models, numbers = [_model(tree.links[link]) for link in links], [x.constants for x in constraints]
        instance = Instance(links, outputs, models, numbers)
        shape = Shape(
            kinds=tuple(tree.links[link].kind for link in links),
            parents=tuple(own.get(tree.parent[link]) for link in links),
            outputs=tuple(outputs.index(output) for output in cluster.outputs),
            grounded=tuple(output == 0 for output in outputs),
            carries=tuple(any(child not in own for child in tree.children[link]) for link in links),
            begins=tuple(number == self._outermost[output] for output in outputs),
            stored=tuple(self._stored.issuperset(tree.positions(link).tolist()) for link in links),
            steady=tuple(self._is_steady(link) for link in links),
            free=tuple(tuple(np.flatnonzero(embedding.v_place[tree.velocities(link)] >= 0).tolist()) for link in links),
            couples=tuple((own[a], own[b]) for a, b in self.couples[number]),
            constraints=tuple(constraints),
        )
        kinds = tuple(kind.form() for kind in shape.kinds)
        ways = shape.parents, shape.outputs, shape.grounded, shape.carries, shape.begins
        flags = shape.stored, shape.steady, shape.free, shape.couples
        bonds = tuple((x.form, x.connection) for x in constraints)
        return (kinds, ways, flags, bonds), shape, instance

    def _is_steady(self, link: int) -> bool:
        """Whether a link is a rotor, seen from which nothing changes when it turns."""
        own, tree = self._robot.tree.links[link], self._robot.tree
        if self._oriented is None or link in self._oriented or tree.children[link] or not own.kind.spins:
            return False
        m, h, I = own.inertia.m, own.inertia.h, own.inertia.I  # noqa: E741
        if any(x.dtype == object for x in map(np.asarray, (m, h, I))):  # which depend on parameters: zero by structure
            return not may_differ([I[0, 1], I[0, 2], I[1, 2], I[0, 0] - I[1, 1], *h[:2]])
        skewed, scale = [I[0, 1], I[0, 2], I[1, 2], I[0, 0] - I[1, 1]], np.abs(I).max()
        return bool(np.abs(skewed).max() <= _ROUNDING * scale and np.abs(h[:2]).max() ** 2 <= _ROUNDING**2 * m * scale)

    def _constraints(self, number: int) -> Sequence[Solution | Constraint]:
        """What constrains a cluster: solutions, or rows of constraints that do not follow from others."""
        if number not in self._loop:
            return ()
        embedding, i = self._robot.embedding, self._loop[number]
        if embedding.explicit[i]:
            return self._solutions[number]
        constraints = embedding.closure.loops[i].keeping(embedding.choices[i].rows).constraints
        return [constraint for constraint in constraints if constraint.kept or self._robot.tree.all_rows]

    @cached_property
    def _solutions(self) -> dict[int, list[Solution]]:
        """The solutions of each cluster, in the order in which they can be evaluated."""
        cluster_of = self._robot.cluster_tree.cluster_of
        return grouped(self._robot.embedding.solutions, lambda solution: cluster_of[solution.outputs[0]])


def _model(link: Link) -> Numbers:
    """The constants of a body."""
    placement, inertia, kind = link.placement, link.inertia, link.kind
    own = {"E": placement.E, "r": placement.r, "m": np.asarray(inertia.m), "h": inertia.h, "I": inertia.I}
    return own | {name: getattr(kind, name) for name in ("stiffness", "rest", "damping", "armature")}


def _pattern(values: np.ndarray) -> Hashable:
    """Where exact zeros and ones stand."""
    if values.dtype == object:
        values = np.array([float(x) if is_known(x) else 2.0 for x in values.ravel()])
    return tuple(np.where(np.isin(values, (0.0, 1.0, -1.0)), values, 2.0).ravel().tolist())
