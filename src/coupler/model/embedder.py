"""Embedding the constraints of a robot into coordinates: clusters, a closed neutral configuration, idle freedoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from coupler.grouping import grouped
from coupler.model.closed_forms import ClosedForm
from coupler.model.clusters import ClusterTree, find_clusters
from coupler.model.embedding.assembly import Assembly, assemble, solved_choice
from coupler.model.embedding.choice import Choice, Preference
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Constraint, Loop, RelationConstraint
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.gaps import described
from coupler.model.embedding.idle import IdleFreedom, find_idle
from coupler.model.embedding.rounding import is_suspicious, loosened
from coupler.model.embedding.solutions import Solutions
from coupler.model.embedding.states import States
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling
from coupler.model.tree import Tree, TreeJoint


class Embedded(NamedTuple):
    """The constraints of a robot, embedded into coordinates.

    Attributes:
        clusters: the clusters that links make.
        states: the coordinates, with a closed neutral configuration.
        idle: freedoms that nothing else takes part in.
        assembly: how the loops were closed, and which coordinates were chosen.
    """

    clusters: ClusterTree
    states: States
    idle: list[IdleFreedom]
    assembly: Assembly


class Embedder:
    """Embeds constraints on the joints of a tree into coordinates.

    Attributes:
        tree: the links.
        joints: by name, with their marks: actuated, independent.
        couplings: by name.
        largest: equations × joint velocities that one cluster may have; any number if None.
    """

    def __init__(
        self, tree: Tree, joints: Mapping[str, TreeJoint], couplings: Mapping[str, Coupling], largest: int | None
    ) -> None:
        self.tree, self.joints, self.couplings, self.largest = tree, joints, couplings, largest

    def with_joints(self, joints: Iterable[TreeJoint]) -> Embedder:
        return Embedder(self.tree, {joint.name: joint for joint in joints}, self.couplings, self.largest)

    def embed_rounded(
        self, constraints: list[Constraint], precision: float
    ) -> tuple[list[Constraint], Embedded, list[str]]:
        """The constraints, embedded, without rows that follow from others up to the rounding of numbers; and warnings.

        Constraints that are exact stay as they are.
        """
        if not constraints or not precision:
            return constraints, self.embed(constraints), []
        failed: ModelError | None = None
        try:
            exact = self.embed(constraints)
            samples = np.stack([exact.assembly.neutral, exact.assembly.elsewhere])
            if not is_suspicious(exact.states.closure, samples, precision):
                return constraints, exact, []
        except ModelError as error:
            exact, failed = None, error
        closure = self._closure(constraints)
        is_solved = [solution is not None for solution in Solutions(closure, self.couplings).of_loop]
        rounded = loosened(closure, is_solved, precision, self._closure)
        if rounded is not None:
            return rounded.constraints, self.embed(rounded.constraints), [rounded.warning()]
        if exact is None:
            assert failed is not None
            raise failed
        return constraints, exact, []

    def embed(self, constraints: Sequence[Constraint]) -> Embedded:
        """The constraints, embedded."""
        clusters = find_clusters(self.tree.parent, [constraint.links for constraint in constraints])
        closure = Closure(self.tree, self._loops(clusters, constraints))
        solutions = Solutions(closure, self.couplings)
        assembly = assemble(solutions, self._preferences(solutions.solved))
        states = self._states(solutions, assembly.choices, assembly.neutral)
        idle: list[IdleFreedom] = []
        if not all(states.embedding.explicit):
            idle = find_idle(closure, np.stack([assembly.neutral, assembly.elsewhere]))
        return Embedded(clusters, states, idle, assembly)

    def embed_closed(
        self, constraints: Sequence[Constraint], closed_forms: Sequence[tuple[Coupling, ClosedForm]], assembly: Assembly
    ) -> States:
        """The states of clusters that are assembled already, some of which now have a closed form."""
        added = {coupling.name: coupling for coupling, _ in closed_forms}
        relations = [RelationConstraint.of(coupling, self.tree, recognised=True) for coupling in added.values()]
        closure = self._closure([*constraints, *relations])
        solutions = Solutions(closure, {**self.couplings, **added})
        choices = list(assembly.choices)
        for i, loop in enumerate(closure.loops):
            if any(constraint.name in added for constraint in loop.constraints):
                choices[i] = solved_choice(solutions, i)
        return self._states(solutions, choices, solutions.spread(assembly.neutral))

    def locks(self, idle: Sequence[IdleFreedom], p: np.ndarray, taken: set[str]) -> list[RelationConstraint]:
        """Constraints that lock idle freedoms at positions p, under names that are not in use."""
        locks = []
        for freedom in idle:
            name = f"lock of {self.tree.links[freedom.links[0]].name}"
            while name in taken:
                name += "'"
            taken.add(name)
            position, direction = p[self.tree.positions(freedom.joint)], np.array(freedom.direction)
            locks.append(RelationConstraint.lock(name, self.tree, freedom.joint, position, direction))
        return locks

    def _closure(self, constraints: Sequence[Constraint]) -> Closure:
        clusters = find_clusters(self.tree.parent, [constraint.links for constraint in constraints])
        return Closure(self.tree, self._loops(clusters, constraints))

    def _loops(self, clusters: ClusterTree, constraints: Sequence[Constraint]) -> list[Loop]:
        loops = []
        by_cluster = grouped(constraints, lambda constraint: clusters.cluster_of[constraint.links[0]])
        for number, members in sorted(by_cluster.items()):
            links = clusters.clusters[number].bodies
            loop = Loop(number, links, self.tree.velocities_of(links), tuple(members))
            loops.append(loop)
            if self.largest is not None and loop.rows * len(loop.columns) > self.largest:
                raise ModelError(
                    f"{described(loop, self.tree)} has {loop.rows} equations for {len(loop.columns)} joint velocities "
                    f"in one cluster; their product may be {self.largest} in a file"
                )
        return loops

    def _states(self, solutions: Solutions, choices: Sequence[Choice], neutral: np.ndarray) -> States:
        order = self.tree.links_of(self.joints)
        explicit = [solution is not None for solution in solutions.of_loop]
        return States(Embedding(solutions.closure, choices, explicit, solutions.in_order, order), neutral)

    def _preferences(self, solved: Mapping[str, str]) -> np.ndarray:
        """For each entry of w, how strongly it is preferred as independent; see `Preference`."""
        nv = np.array([link.kind.nv for link in self.tree.links])
        preferences = np.where(np.repeat(nv, nv) > 1, Preference.PARTIAL, Preference.SINGLE)
        for coupling in self.couplings.values():
            for joint in coupling.joints:
                if coupling.solved and joint not in coupling.independent and coupling.name not in solved:
                    preferences[self.tree.velocities(self.tree.number[joint])] = Preference.SOLVED
        for i, link in enumerate(self.tree.links[1:], 1):
            if self.joints[link.joint].actuated:
                preferences[self.tree.velocities(i)] = Preference.ACTUATED
            if self.joints[link.joint].independent:
                preferences[self.tree.velocities(i)] = Preference.MARKED
        return preferences
