"""Idle freedoms: motions of a few bodies of a loop that leave all others at rest, as the spin of a rod on two balls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Loop, LoopConstraint, RelationConstraint
from coupler.model.tree import Tree

_MOST = 3  # the largest number of bodies that move together; a telescopic leg has two
_ALLOWED = 1e-8  # joints allow a unit twist of which they forbid less: rows are unit vectors, and loops closed to 1e-13


@dataclass(frozen=True)
class IdleFreedom:
    """A motion of some links in which no other body takes part.

    Attributes:
        loop: the number of the loop.
        links: the links that move, as one.
        joint: the link whose joint carries them.
        direction: the velocity of that joint.
    """

    loop: int
    links: tuple[int, ...]
    joint: int
    direction: tuple[float, ...]


def find_idle(closure: Closure, p: np.ndarray) -> list[IdleFreedom]:
    """All idle freedoms at several generic closed configurations p.

    Connected links move as one, with a twist that every joint between them and the rest allows: a tree joint allows
    its motions s, a loop joint the twists that T maps to zero. A motion is not idle if its links carry something else,
    if it is that of the whole cluster, or if it is possible at some of the configurations only.
    """
    _, _, _, s, T = closure.rates(p, np.zeros(closure.tree.nv))
    s, T = s.reshape(len(p), -1, 6), T.reshape(len(p), -1, 6)
    freedoms: list[IdleFreedom] = []
    for number, (loop, (rows, _)) in enumerate(zip(closure.loops, closure.places, strict=True)):
        linkage, *elsewhere = (_Linkage(closure.tree, loop, a, b[rows]) for a, b in zip(s, T, strict=True))
        idle: list[frozenset[int]] = []
        for links in linkage.candidates():
            if any(known <= links for known in idle) or linkage.carries_more(links):
                continue
            twist = linkage.twist(links)
            if twist is not None and all(other.twist(links) is not None for other in elsewhere):
                idle.append(links)
                top = next(link for link in sorted(links) if closure.tree.parent[link] not in links)
                S = s[0][closure.tree.velocities(top)]
                direction = np.linalg.lstsq(S.T, twist, rcond=None)[0]
                direction = direction / np.linalg.norm(direction)
                freedoms.append(IdleFreedom(number, tuple(sorted(links)), top, tuple(direction.tolist())))
    return freedoms


class _Linkage:
    """The joints of a cluster as edges between its links and the rest, each with the twists that it forbids."""

    def __init__(self, tree: Tree, loop: Loop, s: np.ndarray, T: np.ndarray) -> None:
        self.tree, self.links = tree, frozenset(loop.links)
        related = {link for c in loop.constraints if isinstance(c, RelationConstraint) for link in c.links}
        edges: list[tuple[Any, np.ndarray]] = []
        for link in loop.links:
            S = s[tree.velocities(link)]
            forbids = np.eye(6) if link in related else np.eye(6) - np.linalg.pinv(S) @ S
            edges.append(((link, tree.links[link].parent), forbids))
        for constraint, rows in loop.parts():
            if isinstance(constraint, LoopConstraint):
                edges.append((constraint.ends, T[rows] / np.linalg.norm(T[rows], axis=1, keepdims=True)))
        self.of: dict[int, list[tuple[int, np.ndarray]]] = {link: [] for link in loop.links}
        for (a, b), forbids in edges:
            for end, other in ((a, b), (b, a)):
                if end in self.of:
                    self.of[end].append((other, forbids))

    def candidates(self) -> Iterator[frozenset[int]]:
        """Connected sets of links, small ones first, that leave others in the cluster."""
        sets = {frozenset([link]): None for link in self.of}
        for _ in range(_MOST):
            larger: dict[frozenset[int], None] = {}
            for links in sets:
                if links != self.links:
                    yield links
                neighbours = {other for link in links for other, _ in self.of[link] if other in self.links}
                larger.update({links | {other}: None for other in neighbours - links})
            sets = larger

    def carries_more(self, links: frozenset[int]) -> bool:
        """Whether something outside of the cluster hangs on these links."""
        return any(child not in self.links for link in links for child in self.tree.children[link])

    def twist(self, links: frozenset[int]) -> np.ndarray | None:
        """A twist of these links that all joints to other links allow."""
        forbidden = [rows for link in links for other, rows in self.of[link] if other not in links]
        _, sigma, Vt = np.linalg.svd(np.concatenate(forbidden))
        return Vt[-1] if len(sigma) < 6 or sigma[-1] < _ALLOWED else None
