"""The tree in a graph of links and joints: SDFormat does not say which joint of a loop closes it.

Joints enter the tree in an order, unless they would close a loop: welds, then joints that carry something a loop cannot
have (limits, springs, gears), then by their freedoms. So hinges and slides stay in the tree, balls close loops, and
among equals the last one in the file does. A joint that says that it must close a loop does, and what it alone
connects floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coupler.model.tree import GROUND


@dataclass(frozen=True)
class Edge:
    """A joint between two links, with what decides whether it joins the tree.

    Attributes:
        name: the joint's name.
        parent, child: links, or the ground.
        freedoms: the joint's number of freedoms.
        loaded: whether the joint has properties that a loop cannot have.
        closes: whether the file says that the joint must close a loop.
    """

    name: str
    parent: str
    child: str
    freedoms: int
    loaded: bool = False
    closes: bool = False

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Sort key: edges of lower rank join the tree first."""
        return self.freedoms > 0, not self.loaded, self.freedoms


@dataclass(frozen=True)
class Spanning:
    """A spanning tree of links, by name.

    Attributes:
        carried: for each link the joint that carries it, and the link on the other side; roots have no entry.
        roots: links that nothing carries.
        closing: joints that close loops, in the order of the file.
    """

    carried: Mapping[str, tuple[str, str]]
    roots: Sequence[str]
    closing: Sequence[str]


def spanning_tree(links: Sequence[str], edges: Sequence[Edge], preferred: Sequence[str]) -> Spanning:
    """The tree, from the ground and from one link of each part that does not hang on it.

    Args:
        links: names in the order of the file.
        edges: joints in the order of the file.
        preferred: links to choose as roots of parts that are not connected to the ground.
    """
    group = {link: link for link in (GROUND, *links)}

    def first(link: str) -> str:
        while group[link] != link:
            group[link] = link = group[group[link]]
        return link

    chosen: set[str] = set()
    for edge in sorted(edges, key=lambda edge: edge.rank):  # which keeps the order of equals
        if not edge.closes and first(edge.parent) != first(edge.child):
            group[first(edge.child)] = first(edge.parent)
            chosen.add(edge.name)
    beside: dict[str, list[tuple[str, str]]] = {link: [] for link in group}
    for edge in edges:
        if edge.name in chosen:
            beside[edge.parent].append((edge.name, edge.child))
            beside[edge.child].append((edge.name, edge.parent))
    carried: dict[str, tuple[str, str]] = {}
    reached, roots = {GROUND}, list[str]()
    for start in (GROUND, *preferred, *links):
        if start in reached and start != GROUND:
            continue
        roots += [] if start == GROUND else [start]
        reached.add(start)
        pending = [start]
        for link in pending:  # which grows while it is iterated
            for joint, other in beside[link]:
                if other not in reached:
                    reached.add(other)
                    carried[other] = joint, link
                    pending.append(other)
    return Spanning(carried, roots, [edge.name for edge in edges if edge.name not in chosen])
