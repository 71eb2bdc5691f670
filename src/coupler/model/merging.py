"""Merging clusters that hang on several bodies with the clusters that carry them: some algorithms need one body each.

If a cluster with a solution γ, whose independent joints alone are in q, is merged with a cluster without, q of the new
robot holds all joints of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from coupler.graph import Builder, Program, fields
from coupler.grouping import grouped
from coupler.model.clusters import Cluster, ClusterTree
from coupler.model.embedding.choice import Choice
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Loop
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.kernels import copy
from coupler.model.embedding.solutions import spread_program
from coupler.model.embedding.states import States

if TYPE_CHECKING:
    from coupler.model.robot import Robot


def on_one_body_each(robot: Robot) -> Robot:
    """A robot that moves in the same way, with the same velocities v, in which each cluster hangs on one body."""
    clusters = robot.cluster_tree.clusters
    target = [0] * len(clusters)
    for k, cluster in enumerate(clusters):
        target[k] = target[cluster.parent] if len(set(cluster.outputs)) > 1 else k
    if target == [*range(len(clusters))]:
        return robot
    kept = sorted(set(target))
    number = {old: new for new, old in enumerate(kept)}
    merged = [_merged(robot, [c for k, c in enumerate(clusters) if target[k] == old]) for old in kept[1:]]
    parents = [number[target[clusters[old].parent]] for old in kept[1:]]
    made = [replace(cluster, parent=parent) for cluster, parent in zip(merged, parents, strict=True)]
    tree = ClusterTree((clusters[0], *made))
    return replace(
        robot, cluster_tree=tree, states=_states(robot, tree, [number[target[k]] for k in range(len(target))])
    )


def _merged(robot: Robot, members: Sequence[Cluster]) -> Cluster:
    """One cluster of several, the first of which carries the others; its parent is set later."""
    bodies = tuple(sorted(body for cluster in members for body in cluster.bodies))  # carriers have lower numbers
    outputs = []
    for body in bodies:
        while body in bodies:
            body = robot.tree.parent[body]
        outputs.append(body)
    return Cluster(bodies, 0, tuple(outputs))


def _states(robot: Robot, clusters: ClusterTree, number: Sequence[int]) -> States:
    """The states of the merged robot; `number` maps old clusters to new ones."""
    old, tree = robot.embedding, robot.tree
    by_cluster = grouped(range(len(old.closure.loops)), lambda i: number[old.closure.loops[i].cluster])
    loops, choices, explicit = list[Loop](), list[Choice](), list[bool]()
    for cluster, numbers in sorted(by_cluster.items()):
        bodies = clusters.clusters[cluster].bodies
        constraints = [constraint for i in numbers for constraint in old.closure.loops[i].constraints]
        loop = Loop(cluster, bodies, tree.velocities_of(bodies), tuple(constraints))
        loops.append(loop)
        choices.append(_choice(loop, [old.closure.loops[i] for i in numbers], [old.choices[i] for i in numbers]))
        explicit.append(all(old.explicit[i] for i in numbers))
    unsolved = {link for loop, solved in zip(loops, explicit, strict=True) if not solved for link in loop.links}
    solutions = [solution for solution in old.solutions if unsolved.isdisjoint(solution.outputs)]
    order = tree.links_of(robot.joint_names)
    return States(Embedding(Closure(tree, loops), choices, explicit, solutions, order), robot.states.neutral)


def _choice(loop: Loop, parts: Sequence[Loop], choices: Sequence[Choice]) -> Choice:
    """The coordinates of a merged cluster: those of its parts."""
    starts = np.cumsum([0, *(part.rows for part in parts)])
    rows = np.concatenate([start + choice.rows for start, choice in zip(starts, choices, strict=False)])
    taken = np.concatenate([part.columns[choice.dependent] for part, choice in zip(parts, choices, strict=True)])
    is_dependent = np.isin(loop.columns, taken)
    quality = min(choice.quality for choice in choices)
    return Choice(rows.astype(int), np.flatnonzero(is_dependent), np.flatnonzero(~is_dependent), quality)


def merged_positions_program(robot: Robot, merged: Robot) -> Program | None:
    """The program q → positions, from q of a robot to q of the merged robot; None if they are the same."""
    if merged.nq == robot.nq:
        return None
    old, b = robot.embedding, Builder("merged_positions", robot.tree.parameters)
    q, positions, p = b.input("q", robot.nq), b.output("positions", merged.nq), b.scratch("p", robot.tree.nq)
    b.call(spread_program(robot.tree, old.q_index, old.solutions), q=q, p=p)
    b.loop(copy, entry=fields(source=p.at(merged.embedding.q_index), target=positions.at(range(merged.nq))))
    return b.build()
