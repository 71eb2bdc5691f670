"""From parts to a robot: names are resolved, links grouped into clusters, loops closed, and everything is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from coupler.blas import one_thread
from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.closed_forms import remarks_of
from coupler.model.closed_forms.choice import ClosureChoice, chosen_closure
from coupler.model.closing import FoundForms
from coupler.model.elements import PointElement
from coupler.model.embedder import Embedder
from coupler.model.embedding.constraints import Constraint, LoopConstraint, RelationConstraint
from coupler.model.errors import ModelError
from coupler.model.links import tree_of
from coupler.model.loops import Coupling, LoopJoint
from coupler.model.masses import check_masses
from coupler.model.names import Parts
from coupler.model.robot import Robot
from coupler.model.robot_actuators import actuators_of, loose_mechanisms
from coupler.model.tree import GROUND, Tree, TreeJoint
from coupler.model.wording import listed


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
    """The robot that consists of these parts; see `RobotBuilder` for most of them.

    Args:
        weigh: whether to check that every motion moves some mass.
        keep: whether to choose independent joints as if no closed form were asked for. Otherwise other joints become
            independent where only they give a loop the closed form that was asked for.

    Raises:
        ModelError: for parts that do not fit together.
    """
    if not bodies:
        raise ModelError(f"robot {name!r} has no bodies")
    tree = tree_of(bodies, joints)
    warnings = _check_ends(tree, bodies, loops, elements)
    constraints: list[Constraint] = [LoopConstraint.of(loop, tree) for loop in loops]
    constraints += [RelationConstraint.of(coupling, tree) for coupling in couplings]
    embedder = Embedder(tree, {joint.name: joint for joint in joints}, {c.name: c for c in couplings}, largest)
    constraints, embedded, rounding_warnings = embedder.embed_rounded(constraints, precision)
    while embedded.idle and lock_idle:  # locking one may reveal another: a rod spins with its cross
        taken = {constraint.name for constraint in constraints}
        constraints += embedder.locks(embedded.idle, embedded.states.neutral, taken)
        embedded = embedder.embed(constraints)
    warnings += [*rounding_warnings, *embedded.assembly.warnings]
    if weigh:
        idle_links = [link for freedom in embedded.idle for link in freedom.links]
        warnings += check_masses(embedded.clusters, embedded.states, idle_links)
    closing = chosen_closure(closure, [constraint.name for constraint in (*loops, *couplings)])
    forms = FoundForms(embedder, embedded, closing)
    if not keep and (independent := forms.joints_with_closed_form(constraints)):
        joints = [replace(joint, independent=joint.independent or joint.name in independent) for joint in joints]
        embedder = embedder.with_joints(joints)
        embedded = embedder.embed(constraints)
        forms = FoundForms(embedder, embedded, closing)
    closure_remarks = remarks_of(forms.by_name, forms.unused, forms.missing, [] if keep else forms.offers())
    robot = Robot(
        name=name,
        gravity=gravity,
        bodies=MappingProxyType(dict(bodies)),
        joints=Parts(joints),
        loops=Parts(loops),
        couplings=Parts(couplings),
        elements=Parts(elements),
        remarks=(*embedded.assembly.remarks, *closure_remarks),
        warnings=tuple(warnings),
        idle=tuple(embedded.idle),
        tree=tree,
        cluster_tree=embedded.clusters,
        states=embedded.states,
        precision=precision if rounding_warnings else 0.0,
        closed_forms=MappingProxyType(forms.by_name),
        closure=MappingProxyType(closing),
    )
    # Actuators are checked before closed forms are embedded: the rates of the loops as they are have been compiled.
    actuated = actuators_of(robot, actuators)
    warnings += loose_mechanisms(robot, actuated)
    states = embedder.embed_closed(constraints, forms.used, embedded.assembly) if forms.used else embedded.states
    return replace(robot, states=states, actuators=actuated, warnings=tuple(warnings))


def _check_ends(
    tree: Tree, bodies: Mapping[str, Body], loops: Sequence[LoopJoint], elements: Sequence[PointElement]
) -> list[str]:
    """Raises a ModelError for loops and springs on unknown bodies; returns warnings of springs that do nothing."""
    warnings: list[str] = []
    ends = [(f"loop {loop.name!r}", loop.predecessor, loop.successor) for loop in loops]
    ends += [(f"spring {spring.name!r}", spring.first, spring.second) for spring in elements]
    for what, *pair in ends:
        for body in pair:
            if body not in tree.place:
                raise ModelError(f"{what}: there is no body {body!r}; there are {listed([GROUND, *bodies], like=body)}")
        if what.startswith("spring") and tree.place[pair[0]][0] == tree.place[pair[1]][0]:
            warnings.append(f"{what} does nothing: its bodies {listed(pair)} are welded together")
    return warnings
