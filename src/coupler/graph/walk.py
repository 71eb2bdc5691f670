"""Walks over graphs of nodes: in the order of computation, with nodes replaced, and as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coupler.graph.expr import Node, RowMemory, apply, node_text


def topological(outputs: Iterable[Node], leaves: frozenset[Node] = frozenset()) -> list[Node]:
    """Every node that the outputs depend on, each after its arguments.

    With `leaves`, only the leaves and nodes that may depend on them, which were made after the oldest leaf.
    """
    done: dict[Node, None] = {}
    stack = list(outputs)
    stack.reverse()
    while stack and not leaves:  # the loop below without leaves, which most walks of a compilation have none of
        node = stack[-1]
        if node not in done:
            height = len(stack)
            for arg in node.args[::-1]:
                if arg not in done:
                    stack.append(arg)
            if len(stack) > height:
                continue
            done[node] = None
        stack.pop()
    oldest = min((leaf.serial for leaf in leaves), default=-1)
    while stack:
        node = stack[-1]
        if node not in done:
            args = node.args
            if args and node not in leaves:
                waiting = [arg for arg in args if arg not in done and arg.serial >= oldest]
                if waiting:
                    waiting.reverse()
                    stack += waiting
                    continue
            done[node] = None
        stack.pop()
    return list(done)


def rebuilt(node: Node, args: tuple[Node, ...]) -> Node:
    """A node's operation on other arguments, folded again; the node itself if the arguments are unchanged."""
    for new, old in zip(args, node.args, strict=True):
        if new is not old:
            break
    else:
        return node
    if node.op == "rows":
        return args[0].on_rows(node.table, args)._node
    if node.op == "part":
        assert isinstance(node.value, int)
        return RowMemory(args[0])[node.value]
    return apply(node.op, *args) if node.table is None else node.table.look_up(args[0])


def substitute(outputs: Sequence[Node], values: Mapping[Node, Node]) -> list[Node]:
    """The outputs with nodes replaced by other nodes, folded again."""
    new: dict[Node, Node] = dict(values)
    for node in topological(outputs, frozenset(values)):
        if node not in new:
            new[node] = rebuilt(node, tuple([new.get(arg, arg) for arg in node.args]))
    return [new[node] for node in outputs]


def listing(
    outputs: Sequence[Node],
    names: Sequence[str] = (),
    leaves: Mapping[Node, str] | None = None,
    nodes: Iterable[Node] | None = None,
) -> str:
    """The outputs as text: one line for each operation, in the order in which a back end computes them.

    Args:
        names: names of the outputs, which are then listed at the end.
        leaves: names of symbols, in place of their labels.
        nodes: the result of `topological` for the outputs, if it is known.
    """
    name: dict[Node, str] = dict(leaves or {})
    tables: dict[Any, str] = {}
    lines: list[str] = []
    for node in topological(outputs) if nodes is None else nodes:
        if not node.args:
            name.setdefault(node, node_text(node, str))
            continue
        name[node] = f"%{len(lines)}"
        if node.op == "lookup":
            tables.setdefault(node.table, f"t{len(tables)}")
        lines.append(f"{name[node]} = {node_text(node, name.__getitem__, tables)}")
    lines += [f"{label} = {name[node]}" for label, node in zip(names, outputs, strict=False)]
    return "\n".join(lines)
