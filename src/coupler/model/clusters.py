"""Clusters: any connectivity graph made a tree [001, §IV].

Bodies are numbered from 1, with 0 for the ground. Body i hangs on body parent[i] by tree joint i. A constraint couples
several tree joints: a loop joint couples those on the way from one of its bodies to the other, a gear those that it
names. Bodies whose joints are coupled belong to one cluster, and clusters must form a tree: all bodies outside of a
cluster on which its bodies hang belong to one cluster. This file finds the finest such partition.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coupler.forks import cached_property
from coupler.grouping import grouped
from coupler.model.errors import ModelError


@dataclass(frozen=True)
class Cluster:
    """One cluster of a tree.

    Attributes:
        bodies: its bodies, parents before children.
        parent: the number of the cluster on which it hangs; 0 is the ground.
        outputs: for each body its output body Λ, the nearest body that carries it from outside. [001, §IV-B]
    """

    bodies: tuple[int, ...]
    parent: int
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class ClusterTree:
    """A robot's clusters in regular numbering: cluster 0 is the ground, and a parent comes before its children."""

    clusters: tuple[Cluster, ...]

    @cached_property
    def cluster_of(self) -> dict[int, int]:
        """The cluster of each body."""
        return {body: k for k, cluster in enumerate(self.clusters) for body in cluster.bodies}


def support(parent: Sequence[int], body: int) -> list[int]:
    """κ: the bodies whose joints carry a body, itself first, the ground left out. [001, §II-A]"""
    bodies: list[int] = []
    while body:
        if not 0 <= body < len(parent):
            raise ModelError(f"there is no body {body}; there are 0 to {len(parent) - 1}")
        if len(bodies) == len(parent):
            raise ModelError(f"body {bodies[0]} does not hang on the ground: its parents lead round in a circle")
        bodies.append(body)
        body = parent[body]
    return bodies


def joints_of_loop(parent: Sequence[int], first: int, second: int) -> frozenset[int]:
    """The tree joints that a loop joint between two bodies couples: those on the way from one to the other."""
    return frozenset(set(support(parent, first)) ^ set(support(parent, second)))


def find_clusters(parent: Sequence[int], constraints: Iterable[Iterable[int]]) -> ClusterTree:
    """The finest partition of the bodies into clusters that form a tree.

    Args:
        parent: parent[i] is the body on which body i hangs; parent[0] is ignored.
        constraints: for each constraint the tree joints that it couples.
    With loop joints alone the answer is unique: two ways that share a joint make one cluster, and every cluster hangs
    on one body. A gear between joints on different branches may leave a cluster that hangs on several others. Bodies
    between two bodies of a cluster then belong to it as well. Beyond that there is a choice: two of the other clusters
    may be joined, or one of them taken in. A search looks for the most clusters, and among those for the smallest ones.
    Where gears tie so many branches together that the search would take too long, a heuristic gives a tree that is
    good, if not always the finest.
    """
    outwards = _outwards(parent)
    groups, parts = _Groups(len(parent)), _Groups(len(parent))
    for joints in map(sorted, constraints):
        for joint in joints:
            if not 0 < joint < len(parent):
                raise ModelError(f"a constraint names joint {joint}; there are 1 to {len(parent) - 1}")
            groups.join(joints[0], joint)
            parts.join(joints[0], joint)
    # Branches of the ground that no constraint connects are independent of each other, and searched one by one.
    for body in outwards:
        if parent[body]:
            parts.join(body, parent[body])
    for part in parts.members(outwards).values():
        if _clashes(parent, part, groups):
            groups = _without_clashes(parent, part, groups)
    return _numbered(parent, outwards, groups)


_SEARCHED = 2000  # partitions examined before the search gives way to a heuristic


def _without_clashes(parent: Sequence[int], outwards: Sequence[int], groups: _Groups) -> _Groups:
    """The finest partition, coarser than the given one, in which every group hangs on one other group.

    Where a group G hangs on two others, A and B, each answer has A and B joined, or one of them taken into G.
    """
    start, ground = groups.copy(), groups.of(0)
    waiting = [(groups.cost(), 0, groups)]
    seen: set[tuple[int, ...]] = set()
    while True:
        _, _, groups = heapq.heappop(waiting)
        clashes = _clashes(parent, outwards, groups)
        if not clashes:
            return groups
        joined = groups.copy()
        filled = [_fill(parent, outwards, joined, group) for group in clashes]
        group, above = next(iter(clashes.items()))
        shallow, *_, deep = sorted(above, key=lambda top: (above[top], top))
        if any(filled):
            choices = [joined]
        elif len(seen) < _SEARCHED:
            pairs = [(group, deep)] if shallow == ground else [(shallow, deep), (group, deep), (group, shallow)]
            choices = [groups.joined(*pair) for pair in pairs]
        elif waiting:  # too many: start again with the heuristic, one choice at a time
            choices, waiting = [start], []
        else:  # zip branches together: join what is equally deep, take in what is deeper
            choices = [groups.joined(shallow if above[shallow] == above[deep] else group, deep)]
        for choice in choices:
            if not waiting or choice.key() not in seen:
                seen.add(choice.key())
                heapq.heappush(waiting, (choice.cost(), len(seen), choice))


class _Groups:
    """Bodies in disjoint groups that can be joined; a group is named by its smallest body."""

    def __init__(self, count: int) -> None:
        self._leader = list(range(count))

    def of(self, body: int) -> int:
        while self._leader[body] != body:
            self._leader[body] = self._leader[self._leader[body]]
            body = self._leader[body]
        return body

    def members(self, bodies: Iterable[int]) -> dict[int, list[int]]:
        """The bodies of each group, in the order given; groups in the order of their first bodies."""
        return grouped(bodies, self.of)

    def join(self, a: int, b: int) -> None:
        a, b = sorted((self.of(a), self.of(b)))
        self._leader[b] = a

    def joined(self, a: int, b: int) -> _Groups:
        other = self.copy()
        other.join(a, b)
        return other

    def copy(self) -> _Groups:
        other = _Groups(0)
        other._leader = list(self._leader)
        return other

    def key(self) -> tuple[int, ...]:
        return tuple(map(self.of, range(len(self._leader))))

    def cost(self) -> tuple[int, int]:
        """The cost that the search minimises: minus the number of groups, then the sum of their cubed sizes."""
        sizes = Counter(self.key())
        return -len(sizes), sum(size**3 for size in sizes.values())


def _clashes(parent: Sequence[int], outwards: Sequence[int], groups: _Groups) -> dict[int, dict[int, int]]:
    """The groups that hang on several others, nearest to the ground first; for each, those others and their depths."""
    depth = {groups.of(0): 0}
    above: dict[int, set[int]] = {}
    for body in outwards:
        group, top = groups.of(body), groups.of(parent[body])
        if group != top:
            above.setdefault(group, set()).add(top)
            depth[group] = max(depth.get(group, 0), depth[top] + 1)
    clashing = sorted((depth[group], group) for group, tops in above.items() if len(tops) > 1)
    return {group: {top: depth[top] for top in above[group]} for _, group in clashing}


def _fill(parent: Sequence[int], outwards: Sequence[int], groups: _Groups, group: int) -> bool:
    """Joins to a group the bodies between two of its bodies, one of which carries the other; whether there were any."""
    name = groups.of(group)
    members = {body for body in outwards if groups.of(body) == name}
    below: set[int] = set()  # what a body of the group carries
    for body in outwards:
        if parent[body] in members or parent[body] in below:
            below.add(body)
    above: set[int] = set()  # what carries a body of the group
    for body in reversed(outwards):
        if body in members or body in above:
            above.add(parent[body])
    between = (below & above) - members
    for body in between:
        groups.join(group, body)
    return bool(between)


def _numbered(parent: Sequence[int], outwards: Sequence[int], groups: _Groups) -> ClusterTree:
    output: dict[int, int] = {}
    for body in outwards:
        above = parent[body]
        output[body] = output[above] if groups.of(above) == groups.of(body) else above
    number = {groups.of(0): 0}
    clusters = [Cluster((0,), 0, (0,))]
    for group, bodies in groups.members(outwards).items():  # by their first bodies, so that parents come first
        number[group] = len(clusters)
        outputs = tuple(output[body] for body in bodies)
        clusters.append(Cluster(tuple(bodies), number[groups.of(outputs[0])], outputs))
    return ClusterTree(tuple(clusters))


def _outwards(parent: Sequence[int]) -> list[int]:
    """Bodies but the ground, parents before children, otherwise by number.

    Raises:
        ModelError: if some bodies do not hang on the ground.
    """
    for body in range(1, len(parent)):
        if not 0 <= parent[body] < len(parent):
            raise ModelError(f"body {body} hangs on body {parent[body]}, which does not exist")
    children = grouped(range(1, len(parent)), lambda body: parent[body])
    order: list[int] = []
    ready = [0]
    while ready:
        body = heapq.heappop(ready)
        order.append(body)
        for child in children.get(body, ()):
            heapq.heappush(ready, child)
    circle = sorted(set(range(len(parent))) - set(order))
    if circle:
        raise ModelError(f"bodies {circle} do not hang on the ground: their parents lead round in a circle")
    return order[1:]
