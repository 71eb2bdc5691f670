"""The cost of a graph: operation counts and depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from coupler.graph.expr import Node
from coupler.graph.walk import topological


def operations(outputs: Iterable[Node], nodes: Iterable[Node] | None = None) -> Counter[str]:
    """How often each operation occurs. Its total() is the work on one processor. Signs and constants are free.

    Args:
        nodes: the result of `topological` for the outputs, if it is known.
    """
    count: Counter[str] = Counter()
    for node in topological(outputs) if nodes is None else nodes:
        if node.op == "rows":
            count[node.op] += node.table.products
        elif _costs(node):
            count[node.op] += 1
    return count


def depth(outputs: Iterable[Node]) -> int:
    """The longest chain of dependent operations: the time on unlimited processors."""
    return max(depths(list(outputs), {}), default=0)


def depths(outputs: Sequence[Node], start: Mapping[Node, int]) -> list[int]:
    """The depth of each output, if the leaves in `start` become available at those depths."""
    level: dict[Node, int] = dict(start)
    for node in topological(outputs):
        if node not in level:
            cost = node.table.depth if node.op == "rows" else _costs(node)
            level[node] = max((level[arg] for arg in node.args), default=0) + cost
    return [level[node] for node in outputs]


def _costs(node: Node) -> bool:
    return bool(node.args) and node.op not in ("neg", "part")
