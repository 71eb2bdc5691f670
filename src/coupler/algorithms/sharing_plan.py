"""Turns a rule for indeterminate forces into plans for the clusters of a robot: from names to numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coupler.algorithms.bonds import bonds_of_clusters, with_every_row
from coupler.algorithms.reaction_rules import COMPONENTS, MinimumNorm, Rule, Share, Shares, StiffnessWeighted
from coupler.algorithms.sharing import Condition, Sharing, Sharings
from coupler.model import ModelError, Robot
from coupler.model.embedding.choice import pivots, qualities
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.model.embedding.rounding import whole
from coupler.model.tolerances import RANK
from coupler.model.wording import listed

_UNMET = 1e-7  # relative to the largest load: a condition with a larger residual contradicts statics
ROUNDED = 20.0  # by so many times the precision of rounded numbers, forces may depend on loads that they do not share


def planned(robot: Robot, rule: Rule) -> Sharings:
    """For each cluster with redundant rows a plan in which z is an input; None for the other clusters.

    Raises:
        ModelError: for unknown names, and for shares of joints that are not on the given body.
    """
    shares = rule.shares if isinstance(rule, Shares) else ()
    weights = _Compliances(robot, rule.otherwise if isinstance(rule, Shares) else rule)
    conditions: dict[int, list[Condition]] = {}
    for share in shares:
        cluster, of_share = _NamedShare(robot, share).conditions()
        conditions.setdefault(cluster, []).extend(of_share)
    sharings: list[Sharing | None] = [None] * len(robot.cluster_tree.clusters)
    for k, bonds in enumerate(bonds_of_clusters(robot)):
        rows = [(bond, row) for bond in with_every_row(robot, bonds) for row in bond.kept]
        kept_of = {bond.name: whole(bond).kept for bond in bonds}
        kept = [i for i, (bond, row) in enumerate(rows) if row in kept_of[bond.name]]
        if len(kept) == len(rows):
            if k in conditions:
                body = next(share.body for share in shares if _NamedShare(robot, share).conditions()[0] == k)
                raise ModelError(f"Share on {body!r}: statics determine all forces of its joints; remove this Share")
            continue
        sharings[k] = Sharing(
            tuple(kept),
            tuple(sorted({*range(len(rows))} - {*kept})),
            tuple(weights.of_joint(robot.tree.links[link].joint) for link in robot.cluster_tree.clusters[k].bodies),
            tuple(weights.of_bond(bond) for bond in with_every_row(robot, bonds)),
            tuple(conditions.get(k, ())),
            None,
        )
    return tuple(sharings)


def meeting(sharings: Sharings, residuals: np.ndarray, largest: np.ndarray, precision: float = 0.0) -> Sharings:
    """The plans with the conditions that z is to meet: as many as are independent.

    Args:
        sharings: the plan of each cluster, in which z is an input.
        residuals: samples × (1 + Σ z) × conditions: of all conditions, for z = 0 and for a one in each entry of z.
        largest: for each sample the largest load for z = 0.
        precision: by how much the robot's numbers are rounded.

    Raises:
        ModelError: if statics or other conditions contradict a condition.
    """
    decided: list[Sharing | None] = []
    row = condition = 0
    for sharing in sharings:
        if sharing is None:
            decided.append(None)
            continue
        spare, count = len(sharing.spare), len(sharing.conditions)
        of_rule = residuals[..., condition : condition + count]
        C0, C1 = of_rule[:, 0], np.swapaxes(of_rule[:, 1 + row : 1 + row + spare] - of_rule[:, :1], 1, 2)
        chosen = _independent(C1, max(RANK, ROUNDED * precision))
        for number in range(count):
            error = max(_error(C0[i], C1[i], chosen, number) / largest[i] for i in range(len(C0)))
            if error > max(_UNMET, ROUNDED * precision):
                component = COMPONENTS[sharing.conditions[number].component]
                raise ModelError(
                    f"rule: a share along {component} cannot be met: statics, or shares beside it, decide that force "
                    "already; leave it out, and see `determinate_forces`"
                )
        decided.append(replace(sharing, met=tuple(chosen)))
        row, condition = row + spare, condition + count
    return tuple(decided)


def _independent(C: np.ndarray, least: float) -> list[int]:
    """Rows of C, samples × m × n, that are independent in every sample: singular values below `least` are zero."""
    if not C.size:
        return []
    sigma = np.linalg.svd(C, compute_uv=False)
    rank = int((sigma > least * np.maximum(sigma[:, :1], 1.0)).sum(axis=1).max())
    proposed = [np.sort(pivots(A.T, rank)) for A in C]
    return max(proposed, key=lambda rows: qualities(C[:, rows], C).min()).tolist()


def _error(C0: np.ndarray, C1: np.ndarray, met: Sequence[int], number: int) -> float:
    """The residual of a condition if others are met."""
    z = np.linalg.lstsq(C1[met], -C0[met], rcond=None)[0] if met else np.zeros(C1.shape[1])
    return abs(C0[number] + C1[number] @ z)


class _Compliances:
    """The compliances 1 / k of rows, by name."""

    def __init__(self, robot: Robot, rule: MinimumNorm | StiffnessWeighted) -> None:
        length = rule.length if isinstance(rule, MinimumNorm) else 1.0
        self._others = rule.others if isinstance(rule, StiffnessWeighted) else 1.0
        self._named = dict(rule.rows) if isinstance(rule, StiffnessWeighted) else {}
        self._levers = np.array([length**-2] * 3 + [1.0] * 3)
        names = {*robot.tree.number, *(loop.name for loop in robot.loops), *(c.name for c in robot.couplings)}
        for name in self._named:
            if name not in names:
                raise ModelError(f"rule: there is no joint, loop or coupling {name!r}; there are {listed(names)}")

    def of_joint(self, name: str) -> tuple[float, ...]:
        given = self._named.get(name, (self._others,))
        if len(given) not in (1, 6):
            raise ModelError(f"rule: the stiffness of {name!r} is one number or six, by row, not {len(given)}")
        return tuple((self._levers / given if len(given) == 1 else 1.0 / np.array(given)).tolist())

    def of_bond(self, bond: Constraint) -> tuple[float, ...]:
        if isinstance(bond, LoopConstraint):
            return self.of_joint(bond.name)
        given = self._named.get(bond.name, (self._others,))
        if len(given) not in (1, bond.rows):
            raise ModelError(f"rule: the stiffness of coupling {bond.name!r} is one number or {bond.rows}, by row")
        return tuple((1.0 / np.resize(given, bond.rows))[list(bond.kept)].tolist())


@dataclass(frozen=True)
class _NamedShare:
    """A share, with the robot whose joints it names."""

    robot: Robot
    share: Share

    def conditions(self) -> tuple[int, list[Condition]]:
        """The cluster of all its joints, and a condition for each joint but the one with the largest part."""
        body, tree = self.share.body, self.robot.tree
        if body not in tree.place:
            raise ModelError(f"Share: there is no body {body!r}; there are {listed(self.robot.body_names)}")
        (parts, along), on_link = self.share.rows, tree.place[body]
        places = {name: self._place(name) for name, _ in parts}
        clusters = {place[0] for place in places.values()}
        if len(clusters) > 1:
            raise ModelError(
                f"Share on {body!r}: {listed(places)} share no loop, so statics determine their forces; "
                "remove this Share"
            )
        k = clusters.pop()
        links = self.robot.cluster_tree.clusters[k].bodies
        link = links.index(on_link[0]) if on_link[0] in links else None
        axes = tuple(np.ravel(on_link[1].E).tolist())
        last = max(parts, key=lambda item: item[1])[0]
        conditions = []
        for component in along:
            for name in (name for name, _ in parts if name != last):
                terms = list(_terms(places, dict(parts)[name], name))
                joints, loops = ([term[1:] for term in terms if term[0] is is_loop] for is_loop in (False, True))
                conditions.append(Condition(COMPONENTS.index(component), link, axes, tuple(joints), tuple(loops)))
        return k, conditions

    def _place(self, name: str) -> tuple[int, bool, int, float]:
        """A joint's cluster, whether it closes a loop, its number there, and the sign of its force on the body."""
        tree, clusters, on = self.robot.tree, self.robot.cluster_tree, self.robot.tree.place[self.share.body][0]
        if name in tree.number:
            link = tree.number[name]
            k, sign = clusters.cluster_of[link], self._sign(name, tree.links[link].parent, link, on)
            return k, False, clusters.clusters[k].bodies.index(link), sign
        for k, bonds in enumerate(bonds_of_clusters(self.robot)):
            for i, bond in enumerate(bonds):
                if bond.name == name and isinstance(bond, LoopConstraint):
                    loop = next(loop for loop in self.robot.loops if loop.name == name)
                    first, second = (tree.place[end][0] for end in (loop.predecessor, loop.successor))
                    return k, True, i, self._sign(name, first, second, on)
        names = (*tree.number, *(loop.name for loop in self.robot.loops))
        raise ModelError(f"Share on {self.share.body!r}: there is no joint or loop {name!r}; there are {listed(names)}")

    def _sign(self, name: str, first: int, second: int, on: int) -> float:
        if on not in (first, second):
            raise ModelError(f"Share on {self.share.body!r}: {name!r} is not a joint of that body")
        return 1.0 if on == second else -1.0


def _terms(
    places: dict[str, tuple[int, bool, int, float]], part: float, name: str
) -> Iterator[tuple[bool, int, float]]:
    """The factors of all loads in the condition `load of one joint − its part of the sum`."""
    for other, (_, is_loop, number, sign) in places.items():
        yield is_loop, number, sign * ((1.0 if other == name else 0.0) - part)
