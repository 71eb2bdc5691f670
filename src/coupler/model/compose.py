"""From the parts of a robot to the robot: names resolved, bodies made clusters, loops closed, everything checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

import numpy as np

from coupler.blas import one_thread
from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.closed_forms import ClosedForm, Spoiled, find_closed_forms, remarks_of
from coupler.model.closed_forms.choice import Closing, ClosureChoice, chosen_closure
from coupler.model.clusters import ClusterTree, find_clusters
from coupler.model.elements import PointElement
from coupler.model.embedding.assembly import Assembly, assemble, described, solved_choice
from coupler.model.embedding.choice import Choice, Preference
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Constraint, Loop, LoopConstraint, RelationConstraint
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.idle import IdleFreedom, find_idle
from coupler.model.embedding.rounding import is_suspicious, loosened
from coupler.model.embedding.solutions import Solutions
from coupler.model.embedding.states import States
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling, LoopJoint
from coupler.model.masses import check_masses
from coupler.model.robot import Robot
from coupler.model.robot_actuators import actuators_of, loose_mechanisms
from coupler.model.tree import Tree, TreeJoint
from coupler.model.wording import listed

_TRIED = 8  # loops of a cluster, and choices of its independent joints, that are tried for a closed form


@one_thread()
def compose(
    name: str,
    gravity: np.ndarray,
    bodies: Mapping[str, Body],
    joints: Sequence[TreeJoint],
    loops: Sequence[LoopJoint],
    couplings: Sequence[Coupling],
    elements: Sequence[PointElement],
    *,
    actuators: Sequence[Actuator] = (),
    lock_idle: bool = False,
    largest: int | None = None,
    precision: float = 0.0,
    weigh: bool = True,
    closure: ClosureChoice = "auto",
    keep: bool = False,
) -> Robot:
    """The robot that is made of these parts; see `RobotBuilder`. Whether masses suffice is asked if it is weighed.

    Where a closed form is asked for, and there is one with other independent joints only, these are taken, unless
    coordinates are to be kept.

    Raises:
        ModelError: for parts that do not fit together.
    """
    if not bodies:
        raise ModelError(f"robot {name!r} has no bodies")
    tree = Tree.of(bodies, joints)
    warnings = _check_ends(tree, bodies, loops, elements)
    constraints: list[Constraint] = [LoopConstraint.of(loop, tree) for loop in loops]
    constraints += [RelationConstraint.of(coupling, tree) for coupling in couplings]
    parts = _Parts(tree, {joint.name: joint for joint in joints}, {c.name: c for c in couplings}, largest)
    constraints, (clusters, states, idle, assembly), rounding_warnings = parts.embed_rounded(constraints, precision)
    while idle and lock_idle:  # one that is held may leave others behind it: a rod spins with its cross
        constraints += parts.locks(idle, states.neutral, {constraint.name for constraint in constraints})
        clusters, states, idle, assembly = parts.embed(constraints)
    warnings += [*rounding_warnings, *assembly.warnings]
    if weigh:
        warnings += check_masses(clusters, states, [link for freedom in idle for link in freedom.links])
    closing = chosen_closure(closure, [constraint.name for constraint in (*loops, *couplings)])
    closed_forms, spared = parts.closed_forms(states, assembly, closing)
    if not keep and (yielding := parts.yielding(constraints, states, assembly, closing, closed_forms)):
        joints = [replace(joint, independent=joint.independent or joint.name in yielding) for joint in joints]
        parts = parts.with_joints(joints)
        clusters, states, idle, assembly = parts.embed(constraints)
        closed_forms, spared = parts.closed_forms(states, assembly, closing)
    by_name = {name: form for coupling, form in closed_forms for name in coupling.solves if name in closing}
    missing = parts.missing(states, closing, closed_forms)
    spoiled = [] if keep else parts.spoiled(states, assembly, closing, closed_forms, spared)
    robot = Robot(
        name=name,
        gravity=gravity,
        bodies=MappingProxyType(dict(bodies)),
        joints=tuple(joints),
        loops=tuple(loops),
        couplings=tuple(couplings),
        elements=tuple(elements),
        remarks=(*assembly.remarks, *remarks_of(by_name, spared, missing, spoiled)),
        warnings=tuple(warnings),
        idle=tuple(idle),
        tree=tree,
        cluster_tree=clusters,
        states=states,
        precision=precision if rounding_warnings else 0.0,
        closed_forms=MappingProxyType(by_name),
        closure=MappingProxyType(closing),
    )
    actuated = actuators_of(robot, actuators)  # by rates of loops compiled already: closed forms have others
    warnings += loose_mechanisms(robot, actuated)
    if closed_forms:
        states = parts.embed_closed(constraints, closed_forms, assembly)
    return replace(robot, states=states, actuators=actuated, warnings=tuple(warnings))


def _check_ends(
    tree: Tree, bodies: Mapping[str, Body], loops: Sequence[LoopJoint], elements: Sequence[PointElement]
) -> list[str]:
    """Refuses loops and springs on bodies that there are not; warns of springs that do nothing."""
    warnings: list[str] = []
    ends = [(f"loop {loop.name!r}", loop.predecessor, loop.successor) for loop in loops]
    ends += [(f"spring {spring.name!r}", spring.first, spring.second) for spring in elements]
    for what, *pair in ends:
        for body in pair:
            if body not in tree.place:
                raise ModelError(f"{what}: there is no body {body!r}; there are {listed(bodies)}")
        if what.startswith("spring") and tree.place[pair[0]][0] == tree.place[pair[1]][0]:
            warnings.append(f"{what} does nothing: its bodies {listed(pair)} are welded together")
    return warnings


class _Parts:
    """What the embedding of a robot's constraints is made from."""

    def __init__(
        self, tree: Tree, joints: Mapping[str, TreeJoint], couplings: Mapping[str, Coupling], largest: int | None
    ) -> None:
        self.tree, self.joints, self.couplings, self.largest = tree, joints, couplings, largest

    def locks(self, idle: Sequence[IdleFreedom], p: np.ndarray, taken: set[str]) -> list[RelationConstraint]:
        """Constraints that hold idle freedoms where they are."""
        locks = []
        for freedom in idle:
            name = f"lock of {self.tree.links[freedom.links[0]].name}"
            while name in taken:
                name += "'"
            taken.add(name)
            position, direction = p[self.tree.positions(freedom.joint)], np.array(freedom.direction)
            locks.append(RelationConstraint.lock(name, self.tree, freedom.joint, position, direction))
        return locks

    def embed_rounded(
        self, constraints: list[Constraint], precision: float
    ) -> tuple[list[Constraint], tuple[ClusterTree, States, list[IdleFreedom], Assembly], list[str]]:
        """As `embed`, without rows that nearly follow from others where numbers are rounded by so much; and warnings.

        What is exact stays as it is.
        """
        if not constraints or not precision:
            return constraints, self.embed(constraints), []
        failed: ModelError | None = None
        try:
            exact = self.embed(constraints)
            sure = not is_suspicious(exact[1].closure, np.stack([exact[3].neutral, exact[3].elsewhere]), precision)
            if sure:
                return constraints, exact, []
        except ModelError as error:
            exact, failed = None, error
        closure = self._closure(constraints)
        is_solved = [own is not None for own in Solutions(closure, self.couplings).of_loop]
        rounded = loosened(closure, is_solved, precision, self._closure)
        if rounded is not None:
            return rounded.constraints, self.embed(rounded.constraints), [rounded.warning()]
        if exact is None:
            assert failed is not None
            raise failed
        return constraints, exact, []

    def _closure(self, constraints: Sequence[Constraint]) -> Closure:
        clusters = find_clusters(self.tree.parent, [constraint.links for constraint in constraints])
        return Closure(self.tree, self._loops(clusters, constraints))

    @staticmethod
    def unsolved(states: States) -> list[str]:
        """The names of constraints in clusters without a solution."""
        pairs = zip(states.closure.loops, states.embedding.explicit, strict=True)
        return [constraint.name for loop, solved in pairs if not solved for constraint in loop.constraints]

    def closed_forms(
        self, states: States, assembly: Assembly, closing: Mapping[str, Closing]
    ) -> tuple[list[tuple[Coupling, ClosedForm]], dict[str, ClosedForm]]:
        """Closed forms of clusters that have none yet, as far as they are wanted; and by loop, those with dead points.

        The latter are spared, unless they are asked for.
        """
        spared: dict[str, ClosedForm] = {}

        def wanted(loop: Loop, form: ClosedForm) -> bool:
            words = {c.name: closing[c.name] for c in loop.constraints if c.name in closing}
            if "numerical" in words.values():
                return False
            if form.dead_points and "analytical" not in words.values():
                spared.update(dict.fromkeys(words, form))
                return False
            return True

        explicit = states.embedding.explicit
        open_loops = [loop for loop, solved in zip(states.closure.loops, explicit, strict=True) if not solved]
        if not open_loops or all(word == "numerical" for word in closing.values()):
            return [], {}
        closed_forms = find_closed_forms(
            states.closure, assembly.choices, assembly.neutral, self.couplings, open_loops, wanted
        )
        return closed_forms, spared

    def missing(
        self, states: States, closing: Mapping[str, Closing], closed_forms: Sequence[tuple[Coupling, ClosedForm]]
    ) -> list[str]:
        """The names of loops that have no closed form, though one was asked for."""
        found = {name for coupling, _ in closed_forms for name in coupling.solves}
        return [name for name in self.unsolved(states) if closing.get(name) == "analytical" and name not in found]

    def yielding(
        self,
        constraints: Sequence[Constraint],
        states: States,
        assembly: Assembly,
        closing: Mapping[str, Closing],
        closed_forms: Sequence[tuple[Coupling, ClosedForm]],
    ) -> set[str]:
        """Joints with which loops have a closed form, though with those that would be independent they have none."""
        missing = {*self.missing(states, closing, closed_forms)}
        loops = [loop for loop in states.closure.loops if any(c.name in missing for c in loop.constraints)]
        own = {self.tree.links[link].joint for loop in loops for link in loop.links}
        if not loops or any(self.joints[name].independent for name in own):
            return set()
        common = {joint for _, own, _ in self.alternatives(states, assembly, loops) for joint in own.independent}
        for wanted in [common, set[str]()] if common else [common]:
            others = self.with_joints(
                replace(joint, actuated=joint.actuated and name not in own, independent=name in wanted)
                if name in own
                else joint
                for name, joint in self.joints.items()
            )
            try:
                _, states, _, assembly = others.embed(constraints)
            except ModelError:  # these joints cannot all be independent
                continue
            found, _ = others.closed_forms(states, assembly, closing)
            if joints := {
                name for coupling, _ in found if missing & {*coupling.solves} for name in coupling.independent
            }:
                return joints
        return set()

    def spoiled(
        self,
        states: States,
        assembly: Assembly,
        closing: Mapping[str, Closing],
        closed_forms: Sequence[tuple[Coupling, ClosedForm]],
        spared: Mapping[str, ClosedForm],
    ) -> list[Spoiled]:
        """Closed forms of loops that "auto" has none for, as joints are independent that motors drive."""
        found = {name for coupling, _ in closed_forms for name in coupling.solves} | {*spared}
        pairs = zip(states.closure.loops, states.embedding.explicit, strict=True)
        loops = [
            loop
            for loop, solved in pairs
            if not solved
            and all(closing.get(c.name, "auto") == "auto" and c.name not in found for c in loop.constraints)
            and not any(self.joints[self.tree.links[link].joint].independent for link in loop.links)
        ]
        return [
            Spoiled(tuple(c.name for c in loop.constraints if c.name in closing), coupling.independent, form.name)
            for loop, coupling, form in self.alternatives(states, assembly, loops)
        ]

    def alternatives(
        self, states: States, assembly: Assembly, loops: Sequence[Loop]
    ) -> list[tuple[Loop, Coupling, ClosedForm]]:
        """Closed forms that clusters would have with other independent joints.

        An actuator across a hinge follows from the hinge, but not the other way round. The same goes for legs that
        carry a platform together: tried are joints that two loops of a cluster have in common, and of mechanisms of one
        freedom each joint.
        """
        alternatives = []
        for i, loop in enumerate(states.closure.loops):
            for links in self._candidates(loop, assembly.choices[i]) if loop in loops else ():
                choices, chosen = list(assembly.choices), np.isin(loop.columns, self.tree.velocities_of(links))
                choices[i] = replace(choices[i], independent=np.flatnonzero(chosen))
                known = states.closure, choices, assembly.neutral, self.couplings, [loop], lambda *_: True
                if found := find_closed_forms(*known):
                    alternatives.append((loop, *found[0]))
                    break
        return alternatives

    def _candidates(self, loop: Loop, choice: Choice) -> list[list[int]]:
        """Links whose joints might be independent in a cluster instead."""
        freedoms, kinds = len(choice.independent), [link.kind for link in self.tree.links]
        ways = [{*c.ways[0], *c.ways[1]} for c in loop.constraints if isinstance(c, LoopConstraint)]
        common = [tuple(sorted(one & other)) for one, other in combinations(ways[:_TRIED], 2)]
        common = [links for links in dict.fromkeys(common) if sum(kinds[link].nv for link in links) == freedoms]
        driven = {link for link in loop.links if self.joints[self.tree.links[link].joint].actuated}
        single = [(link,) for link in loop.links if freedoms == kinds[link].nv == 1 and link not in driven]
        return [list(links) for links in dict.fromkeys([*common, *single])][:_TRIED]

    def with_joints(self, joints: Iterable[TreeJoint]) -> _Parts:
        return _Parts(self.tree, {joint.name: joint for joint in joints}, self.couplings, self.largest)

    def embed_closed(
        self, constraints: Sequence[Constraint], closed_forms: Sequence[tuple[Coupling, ClosedForm]], assembly: Assembly
    ) -> States:
        """Coordinates of clusters that are assembled already, some of which have a closed form now."""
        added = {coupling.name: coupling for coupling, _ in closed_forms}
        relations = [RelationConstraint.of(coupling, self.tree, found=True) for coupling in added.values()]
        closure = self._closure([*constraints, *relations])
        solutions = Solutions(closure, {**self.couplings, **added})
        choices = list(assembly.choices)
        for i, loop in enumerate(closure.loops):
            if any(constraint.name in added for constraint in loop.constraints):
                choices[i] = solved_choice(solutions, i)
        return self._states(solutions, choices, solutions.spread(assembly.neutral))

    def embed(self, constraints: Sequence[Constraint]) -> tuple[ClusterTree, States, list[IdleFreedom], Assembly]:
        """Clusters, coordinates with a closed neutral configuration, idle freedoms, and how it was assembled."""
        clusters = find_clusters(self.tree.parent, [constraint.links for constraint in constraints])
        closure = Closure(self.tree, self._loops(clusters, constraints))
        solutions = Solutions(closure, self.couplings)
        assembly = assemble(solutions, self._preferences(solutions.solved))
        states = self._states(solutions, assembly.choices, assembly.neutral)
        idle: list[IdleFreedom] = []
        if not all(states.embedding.explicit):
            idle = find_idle(closure, np.stack([assembly.neutral, assembly.elsewhere]))
        return clusters, states, idle, assembly

    def _states(self, solutions: Solutions, choices: Sequence[Choice], neutral: np.ndarray) -> States:
        order = [self.tree.number[joint] for joint in self.joints if joint in self.tree.number]
        explicit = [own is not None for own in solutions.of_loop]
        return States(Embedding(solutions.closure, choices, explicit, solutions.in_order, order), neutral)

    def _loops(self, clusters: ClusterTree, constraints: Sequence[Constraint]) -> list[Loop]:
        bound: dict[int, list[Constraint]] = {}
        for constraint in constraints:
            bound.setdefault(clusters.cluster_of[constraint.links[0]], []).append(constraint)
        links = {number: clusters.clusters[number].bodies for number in sorted(bound)}
        loops = [Loop(i, own, self.tree.velocities_of(own), tuple(bound[i])) for i, own in links.items()]
        for loop in loops:
            if self.largest is not None and loop.rows * len(loop.columns) > self.largest:
                raise ModelError(
                    f"{described(loop, self.tree)} has {loop.rows} equations for {len(loop.columns)} joint velocities "
                    f"in one cluster; their product may be {self.largest} in a file"
                )
        return loops

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
