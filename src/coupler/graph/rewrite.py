"""Named rewrite passes over a graph.

Folding and sharing happen as nodes are made (expr.py). What needs to see the whole graph is a pass: a function from
outputs to outputs, registered under its name. `rewrite` runs passes in order, `explain` prints what each one did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, apply, as_node, constant
from coupler.graph.measure import depth, operations
from coupler.graph.walk import listing, rebuilt, topological

Pass = Callable[[Sequence[Node], Sequence[Node]], Sequence[Node]]  # of outputs, and of all nodes, in order

PASSES: dict[str, Pass] = {}


def rewrite(outputs: Sequence[Node], passes: Iterable[str], nodes: Sequence[Node] | None = None) -> list[Node]:
    """The outputs after the named passes.

    Args:
        passes: names in PASSES, in order.
        nodes: the result of `topological` for the outputs, if it is known.
    """
    result = outputs
    for name in passes:
        nodes = topological(result) if nodes is None else nodes
        changed = _named(name)(result, nodes)
        result, nodes = changed, nodes if changed is result else None
    return list(result)


def explain(outputs: Sequence[Node], passes: Iterable[str] = (), *, text: bool = False) -> str:
    """A line for the graph as traced and one for the graph after each pass: operations and depth.

    Args:
        passes: names in PASSES, in order; all of them if empty.
        text: whether each line is followed by the graph's listing.
    """
    stages = [("traced", list(outputs))]
    for name in passes or PASSES:
        stages.append((name, rewrite(stages[-1][1], [name])))
    lines = []
    for name, stage in stages:
        count = operations(stage)
        common = ", ".join(f"{n} {op}" for op, n in count.most_common(6))
        lines.append(f"{name:<16} {count.total():>6} operations, depth {depth(stage)}: {common}")
        lines += [listing(stage)] if text else []
    return "\n".join(lines)


def _named(name: str) -> Pass:
    if name not in PASSES:
        raise GraphError(f"no pass is called {name!r}; there are {', '.join(PASSES)}")
    return PASSES[name]


def _pass(function: Pass) -> Pass:
    PASSES[function.__name__] = function
    return function


def _rebuild(
    outputs: Sequence[Node], nodes: Sequence[Node], rule: Callable[[Node, tuple[Node, ...]], Node | None]
) -> list[Node]:
    """The outputs with each node replaced by `rule(node, its new arguments)`, unless that is None."""
    new: dict[Node, Node] = {}
    for node in nodes:
        args = tuple([new[arg] for arg in node.args])
        replaced = rule(node, args)
        new[node] = rebuilt(node, args) if replaced is None else replaced
    return [new[node] for node in outputs]


def spelled_out(outputs: Sequence[Node], leaves: frozenset[Node] = frozenset()) -> list[Node]:
    """The outputs with operations on rows written as plain operations, for derivatives.

    With `leaves`, only operations that may depend on one of the leaves are written so.
    """
    nodes = topological(outputs, leaves)
    if not any(node.op == "rows" for node in nodes):
        return list(outputs)
    memory, new = dict[Node, Any](), dict[Node, Node]()
    for node in nodes:
        args = tuple([new.get(arg, arg) for arg in node.args])
        new[node] = node
        if node.op == "rows":
            memory[node] = node.table.run(args)
        elif node.op == "part" and node.args[0] in memory:
            new[node] = as_node(memory[node.args[0]][node.value])
        else:
            new[node] = rebuilt(node, args)
    return [new.get(node, node) for node in outputs]


@_pass
def spare_sines(outputs: Sequence[Node], nodes: Sequence[Node]) -> Sequence[Node]:
    """Sine and cosine of atan2(y, x) become y/√(x² + y²) and x/√(x² + y²); sums with an arctangent follow from these.

    The angles of closed-form loops are such arctangents. If nothing else uses the angle, the arctangent is saved, too.
    """

    if not any(node.op == "atan2" for node in nodes):
        return outputs

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op not in ("sin", "cos") or not _has_arctangent(args[0]):
            return None
        sine, cosine = _sine_and_cosine(args[0])
        return sine if node.op == "sin" else cosine

    return _rebuild(outputs, nodes, rule)


def _has_arctangent(angle: Node) -> bool:
    """Whether an angle is an arctangent, or a sum or difference with one."""
    return angle.op == "atan2" or (angle.op in ("add", "sub", "neg") and any(map(_has_arctangent, angle.args)))


def _sine_and_cosine(angle: Node) -> tuple[Node, Node]:
    if not _has_arctangent(angle):
        return apply("sin", angle), apply("cos", angle)
    if angle.op == "atan2":
        y, x = angle.args
        square = x * x + y * y
        is_direction = square > 0.0
        length = apply("sqrt", apply("select", is_direction, square, constant(1.0)))
        sine = apply("select", is_direction, y / length, constant(0.0))
        return sine, apply("select", is_direction, x / length, constant(1.0))
    (sa, ca), *others = map(_sine_and_cosine, angle.args)
    if not others:
        return -sa, ca
    sb, cb = others[0]
    if angle.op == "sub":
        sb = -sb
    return sa * cb + ca * sb, ca * cb - sa * sb


@_pass
def share_reciprocals(outputs: Sequence[Node], nodes: Sequence[Node]) -> Sequence[Node]:
    """x/d and y/d become x·r and y·r with one r = 1/d: a division costs as much as a dozen products.

    The reciprocal of a subnormal d may be infinite. A denominator that small is taken for a division by zero.
    """
    divisions = Counter(node.args[1] for node in nodes if node.op == "div")
    if max(divisions.values(), default=0) < 2:
        return outputs

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op == "div" and divisions[node.args[1]] > 1:
            return args[0] * apply("div", constant(1.0), args[1])
        return None

    return _rebuild(outputs, nodes, rule)


@_pass
def fuse_multiply_add(outputs: Sequence[Node], nodes: Sequence[Node]) -> Sequence[Node]:
    """x·y + z becomes one operation, rounded once, if nothing else needs the product.

    This is a rewrite and not left to the code generator, so that one state, lanes and threads round in the same way.
    """
    users: Counter[Node] = Counter(outputs)
    sums: Counter[Node] = Counter()
    for node in nodes:
        users.update(node.args)
        if node.op in ("add", "sub"):
            sums.update(set(node.args))

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op not in ("add", "sub"):
            return None
        for i in sorted((0, 1), key=lambda i: users[node.args[i]]):
            product, other = node.args[i], node.args[1 - i]
            if node.op == "sub" and other.op == "mul":
                continue  # a b - c d stays exactly zero where the products are equal
            if node.op == "sub" and i == 0 and other.op == "sub" and users[other] > 1:
                continue  # the negative of a difference is the difference the other way round: one more to compute
            if product.op == "mul" and users[product] == sums[product] and args[i].op == "mul":
                x, y = args[i].args
                other = args[1 - i]
                if node.op == "sub":
                    x, other = (x, -other) if i == 0 else (-x, other)
                return apply("fma", x, y, other)
        return None

    return _rebuild(outputs, nodes, rule)
