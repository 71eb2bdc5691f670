"""From the parts of a robot to the robot: names resolved, bodies made clusters, loops closed, everything checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from coupler.graph import Array, jacobian, symbols, template
from coupler.model.bodies import Body
from coupler.model.clusters import ClusterTree, find_clusters
from coupler.model.elements import PointElement
from coupler.model.embedding.assembly import assemble
from coupler.model.embedding.choice import Choice, Preference
from coupler.model.embedding.closure import CLOSED, Closure
from coupler.model.embedding.constraints import Constraint, Loop, LoopConstraint, RelationConstraint, Solution
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.idle import IdleFreedom, find_idle
from coupler.model.embedding.states import States
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling, LoopJoint
from coupler.model.masses import check_masses
from coupler.model.robot import Robot
from coupler.model.tree import Tree, TreeJoint
from coupler.model.words import listed

__all__ = ["compose"]


def compose(
    name: str,
    gravity: np.ndarray,
    bodies: Mapping[str, Body],
    joints: Sequence[TreeJoint],
    loops: Sequence[LoopJoint],
    couplings: Sequence[Coupling],
    elements: Sequence[PointElement],
    *,
    lock_idle: bool = False,
) -> Robot:
    """The robot that is made of these parts; see `RobotBuilder`.

    Raises:
        ModelError: for parts that do not fit together.
    """
    if not bodies:
        raise ModelError(f"robot {name!r} has no bodies")
    tree = Tree.of(bodies, joints)
    remarks = _check_ends(tree, bodies, loops, elements)
    constraints: list[Constraint] = [LoopConstraint.of(loop, tree) for loop in loops]
    constraints += [RelationConstraint.of(coupling, tree) for coupling in couplings]
    parts = _Parts(tree, {joint.name: joint for joint in joints}, {c.name: c for c in couplings})
    clusters, states, found = parts.embed(constraints)
    idle = _idle(states)
    if idle and lock_idle:
        constraints += parts.locks(idle, states.neutral, {constraint.name for constraint in constraints})
        clusters, states, found = parts.embed(constraints)
        idle = []
    remarks += found + check_masses(clusters, states, [link for freedom in idle for link in freedom.links])
    return Robot(
        name=name,
        gravity=gravity,
        bodies=MappingProxyType(dict(bodies)),
        joints=tuple(joints),
        loops=tuple(loops),
        couplings=tuple(couplings),
        elements=tuple(elements),
        remarks=tuple(remarks),
        idle=tuple(idle),
        tree=tree,
        cluster_tree=clusters,
        states=states,
    )


def _check_ends(
    tree: Tree, bodies: Mapping[str, Body], loops: Sequence[LoopJoint], elements: Sequence[PointElement]
) -> list[str]:
    """Refuses loops and springs on bodies that there are not; remarks on springs that do nothing."""
    remarks: list[str] = []
    ends = [(f"loop {loop.name!r}", loop.predecessor, loop.successor) for loop in loops]
    ends += [(f"spring {spring.name!r}", spring.first, spring.second) for spring in elements]
    for what, *pair in ends:
        for body in pair:
            if body not in tree.place:
                raise ModelError(f"{what}: there is no body {body!r}; there are {listed(bodies)}")
        if what.startswith("spring") and tree.place[pair[0]][0] == tree.place[pair[1]][0]:
            remarks.append(f"{what} does nothing: its bodies {listed(pair)} are welded together")
    return remarks


def _idle(states: States) -> list[IdleFreedom]:
    loops = states.closure.loops
    if not any(isinstance(c, LoopConstraint) for loop in loops for c in loop.constraints):
        return []
    return [] if all(states.embedding.explicit) else find_idle(states.closure, states.neutral)


class _Parts:
    """What the embedding of a robot's constraints is made from."""

    def __init__(self, tree: Tree, joints: Mapping[str, TreeJoint], couplings: Mapping[str, Coupling]) -> None:
        self.tree, self.joints, self.couplings = tree, joints, couplings
        self._is_linear: dict[str, bool] = {}  # by the text of a solution

    def locks(self, idle: Sequence[IdleFreedom], p: np.ndarray, taken: set[str]) -> list[RelationConstraint]:
        """Constraints that hold idle freedoms where they are."""
        found = []
        for freedom in idle:
            name = f"lock of {self.tree.links[freedom.links[0]].name}"
            while name in taken:
                name += "'"
            taken.add(name)
            position, direction = p[self.tree.positions(freedom.joint)], np.array(freedom.direction)
            found.append(RelationConstraint.lock(name, self.tree, freedom.joint, position, direction))
        return found

    def embed(self, constraints: Sequence[Constraint]) -> tuple[ClusterTree, States, list[str]]:
        """Clusters, coordinates with a closed neutral configuration, and remarks."""
        clusters = find_clusters(self.tree.parent, [constraint.links for constraint in constraints])
        loops = self._loops(clusters, constraints)
        closure = Closure(self.tree, loops)
        solved = self._solved(constraints)
        solutions = [self._solutions(loop, solved) for loop in loops]
        given = [
            None if found is None else self._choice(loop, found, solved)
            for loop, found in zip(loops, solutions, strict=True)
        ]
        settled = [found is not None and all(self._linear(x) for x in found) for found in solutions]
        in_order = sorted((x for found in solutions for x in found or ()), key=lambda solution: solution.level)
        usable = [c.name not in solved for loop in loops for c in loop.constraints for _ in range(c.rows)]
        start = self._start(closure, in_order)
        self._check_solutions(closure, solved, start)
        assembly = assemble(
            closure,
            self._preferences(solved),
            np.array(usable, bool),
            given,
            settled,
            start,
            lambda samples: np.stack([self._spread(p, in_order)[0] for p in samples]),
        )
        order = [self.tree.number[joint] for joint in self.joints if joint in self.tree.number]
        explicit = [choice is not None for choice in given]
        embedding = Embedding(closure, assembly.choices, explicit, in_order, order)
        return clusters, States(embedding, assembly.neutral), assembly.remarks

    def _linear(self, solution: Solution) -> bool:
        """Whether a solution is linear, so that it exists and is regular everywhere."""
        text = solution.function.text
        if text not in self._is_linear:
            x = symbols("x", len(solution.inputs))
            rates = jacobian(lambda y: solution.function(y, solution.function.numbers), x)
            self._is_linear[text] = not isinstance(rates, Array)
        return self._is_linear[text]

    def _loops(self, clusters: ClusterTree, constraints: Sequence[Constraint]) -> list[Loop]:
        bound: dict[int, list[Constraint]] = {}
        for constraint in constraints:
            bound.setdefault(clusters.cluster_of[constraint.links[0]], []).append(constraint)
        loops: list[Loop] = []
        for number, own in sorted(bound.items()):
            links = clusters.clusters[number].bodies
            columns = np.concatenate([self.tree.velocities(link) for link in links])
            loops.append(Loop(number, links, columns, tuple(own)))
        return loops

    def _solved(self, constraints: Sequence[Constraint]) -> dict[str, str]:
        """The constraints that a coupling solves, each with that coupling's name."""
        links = {constraint.name: set(constraint.links) for constraint in constraints}
        solved: dict[str, str] = {}
        for coupling in self.couplings.values():
            for name in coupling.solves:
                if name not in links or name == coupling.name:
                    raise ModelError(f"coupling {coupling.name!r} solves {name!r}, which is no loop or other coupling")
                if name in solved:
                    raise ModelError(f"couplings {solved[name]!r} and {coupling.name!r} both solve {name!r}")
                missing = links[name] - links[coupling.name]
                if missing:
                    joints = listed(self.tree.links[link].joint for link in sorted(missing))
                    raise ModelError(f"coupling {coupling.name!r} solves {name!r} but gives no position for {joints}")
                solved[name] = coupling.name
        for name, by in solved.items():
            if by in solved:
                raise ModelError(f"coupling {by!r} solves {name!r} and is itself solved, by {solved[by]!r}; drop one")
        return solved

    def _solutions(self, loop: Loop, solved: Mapping[str, str]) -> list[Solution] | None:
        """The couplings that solve a loop, if they do: each dependent joint has one, and none depends on itself."""
        found: list[Solution] = []
        for constraint in loop.constraints:
            if constraint.name in solved:
                continue
            coupling = self.couplings.get(constraint.name)
            if coupling is None or not coupling.solved:
                return None
            inputs = tuple(self.tree.number[joint] for joint in coupling.independent)
            outputs = tuple(self.tree.number[joint] for joint in coupling.joints)
            found.append(Solution(coupling.name, template(coupling.function, len(inputs)), inputs, outputs))
        source = {link: i for i, solution in enumerate(found) for link in solution.dependent}
        if len(source) < sum(len(solution.dependent) for solution in found):
            return None
        levels = [0] * len(found)
        for _ in range(len(found) + 1):
            new = [max((levels[source[x]] + 1 for x in s.inputs if x in source), default=0) for s in found]
            if new == levels:
                return [replace(solution, level=level) for solution, level in zip(found, levels, strict=True)]
            levels = new
        return None

    def _choice(self, loop: Loop, solutions: Iterable[Solution], solved: Mapping[str, str]) -> Choice:
        """The coordinates of a solved loop."""
        dependent = {link: solution.name for solution in solutions for link in solution.dependent}
        for link, name in dependent.items():
            if self.joints[self.tree.links[link].joint].independent:
                raise ModelError(
                    f"joint {self.tree.links[link].joint!r} is marked as independent, but coupling {name!r} gives its "
                    "position from others"
                )
        entries = np.concatenate([self.tree.velocities(link) for link in dependent])
        taken = np.isin(loop.columns, entries)
        rows = [constraint.name not in solved for constraint in loop.constraints for _ in range(constraint.rows)]
        return Choice(np.flatnonzero(rows), np.flatnonzero(taken), np.flatnonzero(~taken), 1.0)

    def _preferences(self, solved: Mapping[str, str]) -> np.ndarray:
        """For each entry of w how much it should be independent."""
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

    def _start(self, closure: Closure, solutions: Sequence[Solution]) -> np.ndarray:
        """Where joints start; in clusters in which a solution does not exist there, random positions where it does."""
        p, rng = closure.motion.start(), np.random.default_rng(0)
        for _ in range(300):
            spread, broken = self._spread(p, solutions)
            if broken is None:
                return spread
            links = next(loop.links for loop in closure.loops if broken.outputs[0] in loop.links)
            entries = np.concatenate([self.tree.positions(link) for link in links])
            p[entries] = closure.motion.random(rng, links)
        raise ModelError(f"coupling {broken.name!r}: its function gives no finite positions, wherever it is asked")  # type: ignore[possibly-undefined]

    def _spread(self, p: np.ndarray, solutions: Sequence[Solution]) -> tuple[np.ndarray, Solution | None]:
        """Positions with dependent ones as solutions give them, and the first solution that does not exist."""
        p, broken = p.copy(), None
        for solution in solutions:
            with np.errstate(all="ignore"):
                y = p[self.tree.q_start[list(solution.inputs)]]
                positions = np.asarray(self.couplings[solution.name].function(y), dtype=float)
            if broken is None and not np.isfinite(positions).all():
                broken = solution
            p[self.tree.q_start[list(solution.dependent)]] = positions[list(solution.slots)]
        return p, broken

    def _check_solutions(self, closure: Closure, solved: Mapping[str, str], start: np.ndarray) -> None:
        """Every γ must make its φ zero, wherever it exists."""
        if not solved:
            return
        rng = np.random.default_rng(0)
        samples = np.stack([start, *(closure.motion.random(rng) for _ in range(20))])
        for name in dict.fromkeys(solved.values()):
            coupling = self.couplings[name]
            inputs, outputs = ([int(self.tree.q_start[self.tree.number[x]]) for x in joints]
                               for joints in (coupling.independent, coupling.joints))  # fmt: skip
            for p in samples:
                with np.errstate(all="ignore"):
                    p[outputs] = np.asarray(coupling.function(p[inputs]), dtype=float)
        phi, row = closure.at(samples)[0], 0
        for loop in closure.loops:
            for constraint in loop.constraints:
                if constraint.name in solved:
                    self._compare(constraint, solved[constraint.name], samples, phi[:, row : row + constraint.rows])
                row += constraint.rows

    def _compare(self, constraint: Constraint, name: str, samples: np.ndarray, phi: np.ndarray) -> None:
        coupling = self.couplings[name]
        gap = np.where(np.isfinite(phi).all(axis=1), np.abs(phi).max(axis=1), 0.0)
        worst = int(np.argmax(gap))
        if gap[worst] > CLOSED:
            at = [samples[worst, self.tree.q_start[self.tree.number[joint]]] for joint in coupling.joints]
            told = ", ".join(f"{joint} = {x:.4g}" for joint, x in zip(coupling.joints, at, strict=True))
            raise ModelError(
                f"coupling {name!r} contradicts {constraint.name!r}, which it is said to solve: at {told} it leaves a "
                f"gap of {gap[worst]:.3g} (m or rad)"
            )
