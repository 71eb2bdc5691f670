"""The fixed list of pairs of a robot's shapes that may touch.

Shapes of bodies that are welded together, or that a joint connects, do not touch: they overlap at the joint. Joints in
a row over links without mass and shapes, such as three hinges that make a ball joint, count as one. The ground, on
which a robot stands, is an exception. Nor do bodies touch that the robot excludes. Otherwise two shapes may touch if
the group of one and the `meets` mask of the other have a bit in common. Pairs that the robot lists in `contact_pairs`
may touch in any case. Contact points touch shapes on the ground. Meshes are replaced by their hulls. A shape without a
name is called after its body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Point, count
from coupler.contact.collision.meshes import with_hulls
from coupler.contact.meeting import Connections, meeting
from coupler.contact.problem import Cone
from coupler.contact.restitution import Restitution
from coupler.graph import is_known, may_differ
from coupler.model import ContactPair, Mesh, ModelError, Robot, Shape
from coupler.model.numbers import numbers
from coupler.model.wording import listed
from coupler.spatial import Transform

Rebounding = Restitution | Mapping[str, Restitution] | None  # of all contacts, or by patterns of names
Turning = float | Mapping[str, float] | None  # m, likewise

FRICTION = 1.0  # of pairs in which neither shape gives a coefficient, as in MuJoCo


@dataclass(frozen=True, eq=False)
class Pair:
    """Two shapes that may touch.

    Attributes:
        one, other: the shapes; the ground is always the second.
        friction: the coefficient of their contacts: that of the shape with the higher priority, or the larger one.
        count: the number of their candidate contacts.
        restitution: how their contacts rebound; None if they do not.
        torsion: friction against spin about the normal: the largest moment over the normal force, m; None for none.
        rolling: friction against rotation about the tangents, likewise.
        listed: whether it is one of the robot's `contact_pairs`, with its own friction.
    """

    one: Shape
    other: Shape
    friction: float
    count: int
    restitution: Restitution | None = None
    torsion: float | None = None
    rolling: float | None = None
    listed: bool = False

    @property
    def cone(self) -> Cone:
        """The law of its contacts."""
        return Cone(self.friction, self.torsion, self.rolling)

    @property
    def name(self) -> str:
        """The names of both shapes."""
        return f"{self.one.name} on {self.other.name}"

    def matches(self, pattern: str) -> bool:
        """Whether a pattern such as "*foot*" matches the pair's name, or that of one of its shapes."""
        return any(fnmatchcase(name, pattern) for name in (self.one.name, self.other.name, self.name))


def pairs_of(
    robot: Robot,
    friction: float = FRICTION,
    restitution: Rebounding = None,
    torsion: Turning = None,
    rolling: Turning = None,
) -> list[Pair]:
    """The pairs of a robot's shapes that may touch, in the order of its shapes, contact points last.

    Args:
        robot: the robot.
        friction: the coefficient of pairs in which neither shape gives one.
        restitution: how all contacts rebound; None leaves it to their shapes. Or a mapping from patterns such as
            "*ball*" and "*ball* on floor" to laws; the first pattern that matches a pair counts.
        torsion: how all contacts resist spin about their normals: the largest moment over the normal force, m; None
            leaves it to their shapes. Or a mapping from patterns.
        rolling: how they resist rolling, rotation about their tangents, likewise.
    """
    friction = float(numbers("friction", friction, (), least=0.0))
    connections = Connections(robot)
    listed = {frozenset((pair.first, pair.second)): pair for pair in robot.contact_pairs}
    paired = {name for names in listed for name in names}
    shapes = _named(shape for shape in with_hulls(robot).shapes if shape.touches or _touches_by(shape, paired))
    names = [(pair.first, pair.second) for pair in robot.contact_pairs]
    met = zip(shapes, meeting(connections, shapes, names), strict=True)
    touching = [(shape, shapes[other]) for shape, others in met for other in others]
    ground = [shape for shape in shapes if connections.link(shape.body) == 0]
    for body in robot.bodies.values():
        for name, point in body.contacts.items():
            at = Shape(name, body.name, Point(), Transform.translation(point))
            touching += [(at, shape) for shape in ground if connections.allow(body.name, shape.body)]
    ordered = [(b, a) if connections.link(a.body) == 0 else (a, b) for a, b in touching]
    pairs = [_as_shapes_rub(a, b, friction) for a, b in ordered]
    pairs = [_as_listed(pair, listed.get(frozenset((pair.one.name, pair.other.name)))) for pair in pairs]
    pairs = [_as_shapes_rebound(pair) for pair in _with(pairs, "restitution", _laws(restitution))]
    pairs = _with(pairs, "torsion", _arms("torsion", torsion))
    pairs = _with(pairs, "rolling", _arms("rolling", rolling))
    return [_without_zero_arms(pair) for pair in pairs]


def _without_zero_arms(pair: Pair) -> Pair:
    """The pair with None for arms of friction, which may be nodes, that are zero: they need no rows."""
    arms = {"torsion": pair.torsion, "rolling": pair.rolling}
    zero = {name: None for name, arm in arms.items() if arm is not None and not may_differ(arm)}
    return replace(pair, **zero) if zero else pair


def _named(shapes: Iterable[Shape]) -> list[Shape]:
    """Shapes with names: those without are called after their bodies, with a number from the second one on."""
    named, count = list[Shape](), dict[str, int]()
    for shape in shapes:
        if not shape.name:
            count[shape.body] = number = count.get(shape.body, 0) + 1
            shape = replace(shape, name=shape.body if number == 1 else f"{shape.body} {number}")
        named.append(shape)
    return named


def _laws(restitution: Any) -> dict[str, Restitution]:
    laws = _by_pattern(restitution)
    for law in laws.values():
        if not isinstance(law, Restitution):
            raise ModelError(f"restitution must be given as Restitution(normal, ...), got {law!r}")
    return laws


def _arms(name: str, given: Any) -> dict[str, float]:
    return {pattern: float(numbers(name, arm, (), least=0.0)) for pattern, arm in _by_pattern(given).items()}


def _by_pattern(given: Any) -> dict[str, Any]:
    """Values by patterns of pairs' names; a single value holds for all pairs."""
    if isinstance(given, Mapping):
        return dict(given)
    return {} if given is None else {"*": given}


def _with(pairs: list[Pair], name: str, by_pattern: Mapping[str, Any]) -> list[Pair]:
    """The pairs, with an attribute of each set to the value of the first pattern that matches it."""
    for pattern in by_pattern:
        if pattern != "*" and not any(pair.matches(pattern) for pair in pairs):
            raise ModelError(f"{name}: nothing that may touch is called {pattern!r}; there are {known_names(pairs)}")
    matching = [[value for pattern, value in by_pattern.items() if pair.matches(pattern)] for pair in pairs]
    for pair, values in zip(pairs, matching, strict=True):
        if values and not all(is_known(getattr(owner, name)) for owner in (pair, pair.one, pair.other)):
            raise ModelError(
                f"{name}: that of {pair.name!r} is given both as an option and as a parameter, which the option would "
                "override; leave one of them out"
            )
    return [
        replace(pair, **{name: values[0]}) if values else pair for pair, values in zip(pairs, matching, strict=True)
    ]


def known_names(pairs: Sequence[Pair]) -> str:
    """The names that patterns can match, for messages."""
    return listed(dict.fromkeys(name for pair in pairs for name in (pair.one.name, pair.other.name))) or "none"


def _touches_by(shape: Shape, paired: Collection[str]) -> bool:
    """Whether a shape touches only because the robot lists it; listed meshes touch with their hulls instead."""
    return shape.name in paired and not isinstance(shape.geometry, Mesh)


def _as_listed(pair: Pair, entry: ContactPair | None) -> Pair:
    """The pair with the friction that the robot lists for it, if it lists any."""
    if entry is None or isinstance(pair.one.geometry, Point):
        return pair
    return replace(pair, friction=entry.friction, torsion=entry.torsion, rolling=entry.rolling, listed=True)


def _as_shapes_rebound(pair: Pair) -> Pair:
    """The pair with the larger restitution of its shapes, unless an option has set it."""
    given = [shape.restitution for shape in (pair.one, pair.other) if shape.restitution is not None]
    if pair.restitution is not None or not given:
        return pair
    return replace(pair, restitution=Restitution.of_shapes(reduce(np.maximum, given)))


def _as_shapes_rub(a: Shape, b: Shape, friction: float) -> Pair:
    """The pair with the friction of its shapes; torsion and rolling are those of the shapes of higher priority."""
    first = max(a.priority, b.priority)
    leading = [shape for shape in (a, b) if shape.priority == first]
    torsion, rolling = (
        reduce(np.maximum, given) if given else None
        for given in (
            [shape.torsion for shape in leading if shape.torsion is not None],
            [shape.rolling for shape in leading if shape.rolling is not None],
        )
    )
    return Pair(a, b, _friction(a, b, friction), count(a.geometry, b.geometry), torsion=torsion, rolling=rolling)


def _friction(a: Shape, b: Shape, default: float) -> Any:
    given = [shape for shape in (a, b) if shape.friction is not None]
    first = max((shape.priority for shape in given), default=0)
    coefficients: list[Any] = [shape.friction for shape in given if shape.priority == first]
    return reduce(np.maximum, coefficients) if coefficients else default
