"""The reference robots: where their files are, and how they are built through the public face of the library."""

from __future__ import annotations

import ast
import json
import operator
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from coupler.mechanisms import linear
from coupler.model import Free, ModelError, Revolute, Robot, RobotBuilder
from coupler.spatial import Transform
from effort import sweep

FOLDER = Path(os.environ.get("COUPLER_GOLDEN", Path(__file__).resolve().parents[2] / "shared" / "golden"))

Array = Any  # an ndarray of floats, or of nodes
Data = dict[str, Any]  # what JSON gives


def names(*, states: bool = False) -> list[str]:
    """The files, or only those with states; file.model.json has none."""
    found = sorted(path.name for path in FOLDER.glob("*.json"))
    return [name for name in found if not (states and name.endswith(".model.json"))]


def swept() -> list[Any]:
    """The files with states, as parameters of a test; the long run takes those that have nothing but what others have.

    Chains of pairs have what single ones have, the humanoid with rotors what it has without, and the two files of the
    planar leg are the same linkage.
    """
    alike = "RevoluteChainWithRotor12_uniform.json", "MIT_Humanoid_no_rotors.json", "urdf_planar_leg_linkage.json"
    files = names(states=True)
    return sweep(files, [name for name in files if name not in alike])


@cache
def load(name: str) -> Data:
    """What a file holds: its "model", and maybe "states"."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@cache
def robot(name: str) -> Robot:
    """The robot of a file."""
    return build(load(name)["model"])


def build(model: Data) -> Robot:
    """A robot from its reference description."""
    b = RobotBuilder(model["robot"], gravity=model["gravity"][3:])
    marked = {joint for c in model["clusters"] if c["constraint"]["implicit"] for joint in independent(model, c)}
    for body in model["bodies"]:
        inertia = body["mass"], body["com"], body["inertia_com"]
        try:
            b.body(body["name"], *inertia)
        except ModelError:  # planar links and rotors for which only the inertia about their axes was thought of
            b.body(body["name"], *inertia, ideal=True)
        joint = body["joint"]
        kind = Free() if joint["type"] == "free" else Revolute(axis=joint["axis"])
        at = place(body["Xtree"])
        b.joint(joint["name"], kind, body["parent"], body["name"], at, independent=joint["name"] in marked)
    for contact in model["contact_points"]:
        b.contact(contact["name"], contact["body"], contact["offset"])
    for cluster in model["clusters"]:
        if cluster["constraint"]["num_constraints"]:
            _constrain(b, model, cluster)
    return b.build()


def place(X: Data) -> Transform:
    return Transform(np.array(X["E"], float), np.array(X["r"], float))


def joints(model: Data, cluster: Data) -> list[str]:
    """The joints of a cluster, in the order of its spanning coordinates."""
    return [model["bodies"][i]["joint"]["name"] for i in cluster["bodies"]]


def independent(model: Data, cluster: Data) -> list[str]:
    """The joints whose velocities are a cluster's independent ones, in their order."""
    found: list[str] = []
    flags = iter(cluster["constraint"]["independent"])
    for i in cluster["bodies"]:
        joint = model["bodies"][i]["joint"]
        own = {next(flags) for _ in range(joint["num_velocities"])}
        assert len(own) == 1, f"joint {joint['name']} is independent in part"
        found += [joint["name"]] if own.pop() else []
    return found


def spans(model: Data, count: str) -> Iterator[tuple[str, slice]]:
    """Where each joint is in q_span ("num_positions") or qd_span ("num_velocities")."""
    start = 0
    for cluster in model["clusters"]:
        for i in cluster["bodies"]:
            joint = model["bodies"][i]["joint"]
            yield joint["name"], slice(start, start + joint[count])
            start += joint[count]


def _constrain(b: RobotBuilder, model: Data, cluster: Data) -> None:
    """What holds a cluster together."""
    constraint, own = cluster["constraint"], joints(model, cluster)
    name = f"{cluster['name']} constraint"
    if "urdf_constraints" in constraint:
        for part in constraint["urdf_constraints"]:
            {"loop": _loop, "coupling": _coupling}[part["class"]](b, model, cluster, part)
    elif constraint["kind"] == "static":
        b.couple(name, own, linear(constraint["G"]), independent(model, cluster))
    elif constraint["kind"] == "four_bar":
        b.couple(name, own, four_bar(constraint))
    else:
        b.couple(name, own, formula(**constraint["phi_formula"]))


def _loop(b: RobotBuilder, model: Data, cluster: Data, part: Data) -> None:
    assert part["type"] == "revolute"
    known = {body["name"] for body in model["bodies"]}
    ends = [part[end] if part[end] in known else "ground" for end in ("predecessor", "successor")]
    at, meets = place(part["predecessor_origin"]), place(part["successor_origin"])
    b.loop(part["name"], Revolute(axis=part["axis"]), ends[0], ends[1], at, meets)


def _coupling(b: RobotBuilder, model: Data, cluster: Data, part: Data) -> None:
    """ratio × (the joints' sum from the common ancestor to the predecessor) = (that to the successor)."""
    bodies, row = {body["name"]: body for body in model["bodies"]}, {}
    for end, factor in (("predecessor", part["ratio"]), ("successor", -1.0)):
        at = bodies.get(part[end])
        while at is not None and at["name"] != part["nearest_common_ancestor"]:
            row[at["joint"]["name"]] = factor
            at = bodies.get(at["parent"])
    free = [joint for joint in row if joint in independent(model, cluster)]
    (dependent,) = row.keys() - free
    G = np.vstack([np.eye(len(free)), [-row[joint] / row[dependent] for joint in free]])
    b.couple(part["name"], [*free, dependent], linear(G), free)


def four_bar(constraint: Data) -> Callable[[Array], Array]:
    """φ of two planar chains that meet; the joints are the first chain's first, the second chain's, and the rest."""
    first, second = constraint["path1_link_lengths"], constraint["path2_link_lengths"]
    assert (len(first), len(second)) == (2, 1)

    def tip(lengths: list[float], angles: list[Any]) -> tuple[Any, Any]:
        turns = np.cumsum(np.array(angles))
        steps = list(zip(lengths, turns, strict=True))
        return sum(r * np.cos(turn) for r, turn in steps), sum(r * np.sin(turn) for r, turn in steps)

    def phi(q: Array) -> Array:
        one, two, offset = tip(first, [q[0], q[2]]), tip(second, [q[1]]), constraint["offset"]
        return np.array([a - o - b for a, o, b in zip(one, offset, two, strict=True)])

    return phi


def formula(definitions: str, phi: list[str]) -> Callable[[Array], Array]:
    """φ from text such as "y1=q[0]/6; pi=3.1415" and ["sin(y1) - pi/4"]."""
    named = [line.split("=") for line in definitions.split(";")]
    defined = [(name.strip(), _parse(text)) for name, text in named]
    rows = [_parse(text) for text in phi]

    def function(q: Array) -> Array:
        known: dict[str, Any] = {"q": q}
        for name, tree in defined:
            known[name] = _value(tree, known)
        return np.array([_value(tree, known) for tree in rows])

    return function


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"sin": np.sin, "cos": np.cos}


def _parse(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _value(tree: ast.expr, known: dict[str, Any]) -> Any:
    """What an expression is worth; numbers, names, entries, + − × ÷, sine and cosine are all that it may hold."""
    match tree:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return known[name]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as i)):
            return known[name][i]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, known)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            return _FUNCTIONS[name](_value(argument, known))
    raise ValueError(f"a formula may not hold {ast.unparse(tree)!r}")
