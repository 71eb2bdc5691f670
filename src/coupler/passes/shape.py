"""Shapes of clusters: what a trace depends on, apart from the numbers of a cluster.

Two clusters have the same shape if their joints are of the same kinds, are connected in the same way, and are
constrained by the same functions. One trace serves them all, with their numbers in a table. Exact zeros and ones in the
placements of joints are part of the shape, too, because they save half the work, unless there would be too many shapes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from coupler.zeros import Factors, NullSpace

_ROUNDING = 1e-14  # relative: how symmetric the inertia of a rotor must be
_LARGE = 256  # bodies times freedoms, from which on a cluster is large
_SPARSE = 0.25  # the share of the numbers of a matrix that its factors have at most, where they are kept in its place
_MAX_SHAPES = 12  # if there would be more, zeros and ones are left to the table


@dataclass(frozen=True, eq=False)
class ClusterShape:
    """A shape: what clusters that share a trace have in common. Bodies are numbered within the cluster, parents first.

    Attributes:
        kinds: for each body the kind of its joint.
        parents: for each body the body of the cluster that carries it, or None.
        outputs: for each body the number of its output body.
        grounded: for each output body whether it is the ground.
        carries: for each body whether other clusters hang on it.
        begins: for each output body whether this cluster is the first, on the way inward, of those that hang on it.
        stored: for each body whether its joint's position is in q.
        steady: for each body whether its angle does not matter: it turns about an axis of symmetry and carries nothing.
        free: for each body which entries of its joint's velocity are in v.
        couples: pairs of bodies that carry the same other cluster, so that one feels the other's acceleration.
        constraints: solutions, or loops and relations if there are none, with bodies by their numbers.
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
        """Where the velocity of each body's joint starts among those of the cluster, and where the last one ends."""
        return np.cumsum([0, *(kind.nv for kind in self.kinds)])

    @cached_property
    def independent(self) -> np.ndarray:
        """The velocities of the cluster that are in v."""
        return np.array([self.starts[i] + j for i, entries in enumerate(self.free) for j in entries], int)

    @cached_property
    def dependent(self) -> np.ndarray:
        """The velocities of the cluster that are not in v."""
        return np.setdiff1d(np.arange(self.starts[-1]), self.independent)

    @property
    def on_ground(self) -> bool:
        """Whether it hangs on the ground only."""
        return all(self.grounded)

    @property
    def freedoms(self) -> int:
        """The number of independent velocities."""
        return len(self.independent)

    @cached_property
    def paths(self) -> list[list[int]]:
        """For each body the bodies of the cluster that carry it, and itself."""
        paths: list[list[int]] = []
        for i, parent in enumerate(self.parents):
            paths.append([*(paths[parent] if parent is not None else []), i])
        return paths

    @cached_property
    def loop_pattern(self) -> np.ndarray:
        """The pattern of K, the Jacobian of the loops: flags for entries that may differ from zero."""
        rows = []
        for constraint in self.constraints:
            assert not isinstance(constraint, Solution)
            row = np.zeros((len(constraint.kept), int(self.starts[-1])), bool)
            for body in constraint.links:
                row[:, slice(*self.starts[body : body + 2].tolist())] = True
            rows.append(row)
        return np.concatenate(rows)

    @cached_property
    def null_space(self) -> NullSpace:
        """The plan by which N and K⁺ of large loops are computed, with their patterns; see `Visit`."""
        return NullSpace.of(self.loop_pattern)

    @cached_property
    def factors(self) -> Factors | None:
        """The pattern of the factors of D along the basis N; None if they are not much fewer numbers than D⁻¹ has."""
        if self.solved or self.couples or not self.is_large:
            return None
        starts, count = self.starts, int(self.starts[-1])
        tree = np.eye(count, dtype=bool)  # of joints, those that move each other's bodies
        for body, path in enumerate(self.paths):
            for other in path:
                tree[starts[other] : starts[other + 1], starts[body] : starts[body + 1]] = True
        N = self.null_space.basis.astype(int)
        factors = Factors.of(N.T @ (tree | tree.T) @ N > 0)
        return factors if factors.size < _SPARSE * self.freedoms**2 else None

    @property
    def is_large(self) -> bool:
        """Whether the subspaces S of all bodies have so many entries that products with them are better avoided."""
        return len(self.kinds) * self.freedoms >= _LARGE

    @property
    def can_be_looped(self) -> bool:
        """Whether what each of its joints needs can be found by loops over them; see tree_loops.py."""
        simple = all(kind.nq == kind.nv == 1 for kind in self.kinds) and not any(self.steady)
        return simple and self.is_large and not self.solved and len(self.grounded) == 1 and not any(self.carries)

    @property
    def solved(self) -> bool:
        """Whether dependent positions are functions of independent ones: all constraints that keep rows have one."""
        return all(isinstance(constraint, Solution) or not constraint.kept for constraint in self.constraints)

    @property
    def can_be_invalid(self) -> bool:
        """Whether a configuration may be invalid: an open loop, or a quaternion that is not of unit length."""
        loops = any(not isinstance(constraint, Solution) for constraint in self.constraints)
        return loops or any(kind.nq != kind.nv for kind in self.kinds)

    @property
    def linear(self) -> bool:
        """Whether G is constant."""
        return all(x.linear if isinstance(x, Solution) else not x.kept for x in self.constraints)


Numbers = dict[str, np.ndarray]


@dataclass(eq=False)
class Instance:
    """The links and numbers of one cluster, which its shape does not tell.

    Attributes:
        links: the links that are its bodies.
        outputs: the links that are its output bodies, each once.
        models: for each body its constants by name; see `Model`.
        constraints: for each constraint its numbers by name.
    """

    links: tuple[int, ...]
    outputs: tuple[int, ...]
    models: list[Numbers] = field(default_factory=list)
    constraints: list[Numbers] = field(default_factory=list)


class Clusters:
    """The clusters of a robot, grouped by shape.

    Attributes:
        instances: for each cluster its links and numbers; the ground, cluster 0, has none.
        shapes: all shapes, each with the numbers of its clusters.
        couples: for each cluster the pairs of its links that carry the same child cluster, the lower link first.
    """

    def __init__(self, robot: Robot, oriented: Iterable[int] | None = None) -> None:
        """Args: a robot, and the links whose angles matter even if they are symmetric rotors; all by default."""
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

        def trace(number: int, names: Sequence[str]) -> Hashable:
            key, _, instance = described[number - 1]
            return key, tuple(_pattern(model[name]) for model in instance.models for name in names)

        groups: dict[Hashable, list[int]] = {}
        for names in (("E", "r", "rest"), ("E",), ()):
            groups = grouped(range(1, len(clusters)), partial(trace, names=names))
            if len(groups) <= _MAX_SHAPES:
                break
        self.shapes = [(described[numbers[0] - 1][1], numbers) for numbers in groups.values()]

    def _described(self, number: int) -> tuple[Hashable, ClusterShape, Instance]:
        """A key that is equal for clusters of equal shape, the cluster's shape, and the rest of it."""
        tree, cluster = self._robot.tree, self._robot.cluster_tree.clusters[number]
        embedding, links = self._robot.embedding, cluster.bodies
        number_of, outputs = {link: i for i, link in enumerate(links)}, tuple(sorted(set(cluster.outputs)))
        constraints = [constraint.within(number_of) for constraint in self._constraints(number)]
        models, numbers = [_model(tree.links[link]) for link in links], [x.constants for x in constraints]
        instance = Instance(links, outputs, models, numbers)
        shape = ClusterShape(
            kinds=tuple(tree.links[link].kind for link in links),
            parents=tuple(number_of.get(tree.parent[link]) for link in links),
            outputs=tuple(outputs.index(output) for output in cluster.outputs),
            grounded=tuple(output == 0 for output in outputs),
            carries=tuple(any(child not in number_of for child in tree.children[link]) for link in links),
            begins=tuple(number == self._outermost[output] for output in outputs),
            stored=tuple(self._stored.issuperset(tree.positions(link).tolist()) for link in links),
            steady=tuple(self._is_steady(link) for link in links),
            free=tuple(tuple(np.flatnonzero(embedding.v_place[tree.velocities(link)] >= 0).tolist()) for link in links),
            couples=tuple((number_of[a], number_of[b]) for a, b in self.couples[number]),
            constraints=tuple(constraints),
        )
        kinds = tuple(kind.form() for kind in shape.kinds)
        connections = shape.parents, shape.outputs, shape.grounded, shape.carries, shape.begins
        flags = shape.stored, shape.steady, shape.free, shape.couples
        forms = tuple((x.form, x.connection) for x in constraints)
        return (kinds, connections, flags, forms), shape, instance

    def _is_steady(self, link: int) -> bool:
        """Whether a link is a rotor whose angle does not matter: it is symmetric about its axis and carries nothing."""
        tree, inertia = self._robot.tree, self._robot.tree.links[link].inertia
        spins = tree.links[link].kind.spins
        if self._oriented is None or link in self._oriented or tree.children[link] or not spins:
            return False
        m, h, I = inertia.m, inertia.h, inertia.I  # noqa: E741
        if any(x.dtype == object for x in map(np.asarray, (m, h, I))):  # depends on parameters: zero by structure only
            return not may_differ([I[0, 1], I[0, 2], I[1, 2], I[0, 0] - I[1, 1], *h[:2]])
        skewed, scale = [I[0, 1], I[0, 2], I[1, 2], I[0, 0] - I[1, 1]], np.abs(I).max()
        return bool(np.abs(skewed).max() <= _ROUNDING * scale and np.abs(h[:2]).max() ** 2 <= _ROUNDING**2 * m * scale)

    def _constraints(self, number: int) -> Sequence[Solution | Constraint]:
        """The constraints of a cluster: solutions, or constraints without their redundant rows."""
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
    model = {"E": placement.E, "r": placement.r, "m": np.asarray(inertia.m), "h": inertia.h, "I": inertia.I}
    return model | {name: getattr(kind, name) for name in ("stiffness", "rest", "damping", "armature")}


def _pattern(values: np.ndarray) -> Hashable:
    """A key for the entries that are exactly 0, 1 or −1; 2 stands for all others."""
    if values.dtype == object:
        values = np.array([float(x) if is_known(x) else 2.0 for x in values.ravel()])
    return tuple(np.where(np.isin(values, (0.0, 1.0, -1.0)), values, 2.0).ravel().tolist())
