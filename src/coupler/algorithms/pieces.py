"""Pieces of a robot, and how it is divided into them: along a balanced binary tree.

A piece is a set of connected clusters that hang on one link, its base. Its handles are the links on which forces act
from outside: those that carry other pieces, and those with contacts. Two pieces are joined at a link of the first that
is the base of the second, or side by side on a common base. A cluster with almost no inertia of its own cannot be a
piece by itself, because its handles would have almost no inertia either; it takes in the pieces that hang on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import ClusterRecord, Coordinate, Record, Sweep, Visit, collected, symmetric, velocities_of
from coupler.spatial import RigidInertia

_LIGHT = 1e-3  # of its inertia with everything that it carries: a cluster with less of its own is no piece by itself


@dataclass(eq=False)
class Piece:
    """A piece of a robot; see the module's text.

    Attributes:
        base: the link that carries it; 0 is the ground.
        open: its links that carry other pieces.
        touched: its links with contacts, whose accelerations per unit force are wanted.
        cluster: the cluster that it consists of, apart from pieces taken in; 0 if it is two pieces joined.
        taken: by link of its cluster, the pieces on them that are taken in.
        parts: the two pieces that are joined.
        at: the link of the first part that carries the second; None if they hang side by side.
    """

    base: int
    open: tuple[int, ...]
    touched: tuple[int, ...]
    cluster: int = 0
    taken: dict[int, Piece] = field(default_factory=dict)
    parts: tuple[Piece, ...] = ()
    at: int | None = None

    @property
    def handles(self) -> list[int]:
        """The links on which forces act from outside."""
        return sorted({*self.open, *self.touched})

    @property
    def hung(self) -> dict[int, Piece]:
        """The pieces that are taken in, or the part joined to the first one, by the links that carry them."""
        return self.taken if self.at is None else {self.at: self.parts[1]}

    def pieces(self) -> list[Piece]:
        """All pieces that this piece is made of, and itself, in an order in which they can be assembled."""
        inner = [piece for part in (*self.taken.values(), *self.parts) for piece in part.pieces()]
        return [*inner, self]


def divided(robot: Robot, touched: Iterable[int]) -> Piece:
    """The whole robot as a piece, made of smaller ones.

    Args:
        robot: the robot, whose clusters have one output body each.
        touched: the links with contacts.
    """
    clusters = range(1, len(robot.cluster_tree.clusters))
    division = _Division(robot, touched)
    return division.piece(0, clusters) if clusters else Piece(0, (), ())


class _Division:
    """Divides a robot into pieces, by halves as nearly as its links allow."""

    def __init__(self, robot: Robot, touched: Iterable[int]) -> None:
        tree = robot.cluster_tree
        self._clusters, self._cluster_of = tree.clusters, tree.cluster_of
        self._output = [cluster.outputs[0] for cluster in tree.clusters]
        self._carriers = {*self._output[1:]}
        self._touched, self._light = {*touched}, _light_clusters(robot)

    def piece(self, base: int, members: Sequence[int]) -> Piece:
        """The piece of some clusters on a base, parents before children."""
        size: dict[int, int] = {}
        beyond: dict[int, int] = {}
        for k in reversed(members):
            size[k] = 1 + sum(beyond.get(link, 0) for link in self._clusters[k].bodies)
            beyond[self._output[k]] = beyond.get(self._output[k], 0) + size[k]
        links = [link for k in members for link in self._clusters[k].bodies]
        outside = tuple(link for link in links if link in self._carriers and link not in beyond)
        ends: dict[str, Any] = {"base": base, "open": outside}
        ends["touched"] = tuple(link for link in links if link in self._touched)
        roots = sorted((k for k in members if self._output[k] == base), key=lambda k: -size[k])
        cuts = [link for link in beyond if link != base and self._cluster_of[link] not in self._light]
        cut = min(cuts, key=lambda link: (max(beyond[link], len(members) - beyond[link]), link), default=None)
        if len(roots) > 1:
            side = self._side(roots, size)
            heavy = sum(size[k] for k in side)
            if cut is None or max(heavy, len(members) - heavy) <= max(beyond[cut], len(members) - beyond[cut]):
                one, two = self._parted(members, lambda k: k in side)
                return Piece(**ends, parts=(self.piece(base, two), self.piece(base, one)))
        if cut is None:
            carriers = [link for link in self._clusters[roots[0]].bodies if link in beyond]
            inner = {at: self._parted(members, lambda k, at=at: self._output[k] == at)[0] for at in carriers}
            return Piece(**ends, cluster=roots[0], taken={at: self.piece(at, inner[at]) for at in carriers})
        two, one = self._parted(members, lambda k: self._output[k] == cut)
        return Piece(**ends, parts=(self.piece(base, one), self.piece(cut, two)), at=cut)

    @staticmethod
    def _side(roots: Sequence[int], size: dict[int, int]) -> set[int]:
        """About half of the clusters that hang side by side, by what they carry."""
        sides: list[set[int]] = [set(), set()]
        weights = [0, 0]
        for k in roots:
            i = weights.index(min(weights))
            sides[i].add(k)
            weights[i] += size[k]
        return sides[1]

    def _parted(self, members: Sequence[int], begins: Callable[[int], bool]) -> tuple[list[int], list[int]]:
        """The clusters for which `begins` holds with all that they carry, and the others."""
        inside: set[int] = set()
        for k in members:
            if begins(k) or self._cluster_of[self._output[k]] in inside:
                inside.add(k)
        return [k for k in members if k in inside], [k for k in members if k not in inside]


class CompositeBody(Record):
    """What a body that carries others remembers: the inertia of what it carries, as a rigid body."""

    m, h, I = collected(()), collected(3), collected(symmetric(3))  # noqa: E741


class ShareMemory(ClusterRecord):
    share = Coordinate()


def _light_clusters(robot: Robot) -> set[int]:
    """Clusters with almost no inertia of their own for some of their motions, compared to what they carry."""
    sweep = Sweep(robot, "own_inertia", body=CompositeBody, cluster=ShareMemory, oriented=())
    sweep.inputs("q")
    sweep.output("share")
    sweep.inward(_weigh)
    share = sweep.evaluate(robot.neutral())
    clusters = range(1, len(robot.cluster_tree.clusters))
    return {k for k in clusters if not (share[velocities_of(robot, k)] > _LIGHT).all()}


def _weigh(cluster: Visit[CompositeBody, ShareMemory]) -> None:
    """Computes a cluster's own share of its inertia. Light clusters pass on all they carry, others only their own."""
    alone = {body: body.inertia for body in cluster.bodies}
    full = dict(alone)
    for body in cluster.carriers:
        full[body] = alone[body] + RigidInertia(body.memory.m, body.memory.h, body.memory.I)
    D: Any = sum((body.S.T @ (alone[body] @ body.S) for body in cluster.bodies), cluster.armature)
    total: Any = sum((body.S.T @ (full[body] @ body.S) for body in cluster.bodies), cluster.armature)
    least = reduce(np.minimum, [1.0 / (r * total[i, i]) for i, r in enumerate(Cholesky(D).reciprocal)])
    cluster.memory.share = np.array([least] * len(D))
    (output,) = cluster.outputs
    if not output.grounded:
        passed_alone, passed_full = (
            reduce(add, [body.seen_by_output(inertia[body]) for body in cluster.bodies]) for inertia in (alone, full)
        )
        parts = {name: (getattr(passed_alone, name), getattr(passed_full, name)) for name in ("m", "h", "I")}
        output.collect(**{name: np.where(least > _LIGHT, *pair) for name, pair in parts.items()})
