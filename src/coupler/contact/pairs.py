"""Which shapes of a robot may touch: a fixed list, made once.

Shapes of bodies that are welded together, and of bodies that a joint connects, do not touch: they overlap where the
joint is. The ground is an exception, on which a robot stands. Nor do bodies touch that the robot excludes. Otherwise
two shapes may touch if a bit of the one's group is among those that the other meets. Pairs of shapes that the robot
lists may touch in any case. Contact points touch what is on the ground. Meshes touch with their hulls. A shape without
a name goes by that of its body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Point, count
from coupler.contact.collision.meshes import with_hulls
from coupler.contact.problem import Cone
from coupler.contact.restitution import Restitution
from coupler.graph import is_known, may_differ
from coupler.model import ContactPair, Mesh, ModelError, Robot, Shape
from coupler.model.numbers import numbers
from coupler.model.wording import listed
from coupler.spatial import Transform

Rebounding = Restitution | Mapping[str, Restitution] | None  # of all contacts, or by patterns of names
Turning = float | Mapping[str, float] | None  # m, likewise

FRICTION = 1.0  # of a pair of which neither shape says it, as in MuJoCo


@dataclass(frozen=True, eq=False)
class Pair:
    """Two shapes that may touch.

    Attributes:
        one, other: the shapes; the ground is always the second.
        friction: the coefficient of their contacts: that of the shape with the higher priority, or the larger one.
        count: how many candidate contacts they have.
        restitution: how their contacts rebound; None if they do not.
        torsion: of friction against spin about the normal, the largest moment over the normal force, m; None for none.
        rolling: the same against turning about the tangents.
        listed: whether it is one of the robot's `contact_pairs`, with a friction of its own.
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
        """Both of its shapes."""
        return f"{self.one.name} on {self.other.name}"

    def matches(self, pattern: str) -> bool:
        """Whether a pattern such as "*foot*" fits the pair's name, or that of one of its shapes."""
        return any(fnmatchcase(name, pattern) for name in (self.one.name, self.other.name, self.name))


def pairs_of(
    robot: Robot,
    friction: float = FRICTION,
    restitution: Rebounding = None,
    torsion: Turning = None,
    rolling: Turning = None,
) -> list[Pair]:
    """The pairs of shapes of a robot that may touch, in the order of its shapes, contact points last.

    Args:
        robot: the robot.
        friction: the coefficient of pairs of which neither shape says it.
        restitution: how all contacts rebound; as their shapes say, if None. Or how some do, by patterns such as
            "*ball*" and "*ball* on floor", of which the first counts that fits a pair.
        torsion: how all contacts resist spin about their normals: the largest moment over the normal force, m; as their
            shapes say, if None. Or how some do, by patterns.
        rolling: the same about their tangents: how they resist rolling.
    """
    friction = float(numbers("friction", friction, (), least=0.0))
    apart, listed = _Apart(robot), {frozenset((own.first, own.second)): own for own in robot.contact_pairs}
    paired = {name for names in listed for name in names}
    shapes = _named(shape for shape in with_hulls(robot).shapes if shape.touches or _touches_by(shape, paired))
    found = [
        (a, b)
        for a, b in combinations(shapes, 2)
        if (apart(a.body, b.body) and _meet(a, b))
        or (frozenset((a.name, b.name)) in listed and not apart.welded(a.body, b.body))
    ]
    ground = [shape for shape in shapes if apart.link(shape.body) == 0]
    for body in robot.bodies.values():
        for name, point in body.contacts.items():
            at = Shape(name, body.name, Point(), Transform.translation(point))
            found += [(at, shape) for shape in ground if apart(body.name, shape.body)]
    ordered = [(b, a) if apart.link(a.body) == 0 else (a, b) for a, b in found]
    pairs = [_as_shapes_rub(a, b, friction) for a, b in ordered]
    pairs = [_as_listed(pair, listed.get(frozenset((pair.one.name, pair.other.name)))) for pair in pairs]
    pairs = [_as_shapes_rebound(pair) for pair in _with(pairs, "restitution", _laws(restitution))]
    pairs = _with(pairs, "torsion", _arms("torsion", torsion))
    pairs = _with(pairs, "rolling", _arms("rolling", rolling))
    return [replace(pair, torsion=_unless_zero(pair.torsion), rolling=_unless_zero(pair.rolling)) for pair in pairs]


def _unless_zero(arm: Any) -> Any:
    """An arm of friction, which may be a node; None for one that is zero: it needs no rows."""
    return arm if arm is not None and may_differ(arm) else None


def _named(shapes: Iterable[Shape]) -> list[Shape]:
    """Shapes of which those without a name are called after their bodies, with a number from the second on."""
    found, count = list[Shape](), dict[str, int]()
    for shape in shapes:
        if not shape.name:
            count[shape.body] = number = count.get(shape.body, 0) + 1
            shape = replace(shape, name=shape.body if number == 1 else f"{shape.body} {number}")
        found.append(shape)
    return found


def _laws(restitution: Any) -> dict[str, Restitution]:
    laws = _by_pattern(restitution)
    for law in laws.values():
        if not isinstance(law, Restitution):
            raise ModelError(f"restitution must be given as Restitution(normal, ...), got {law!r}")
    return laws


def _arms(name: str, given: Any) -> dict[str, float]:
    return {pattern: float(numbers(name, arm, (), least=0.0)) for pattern, arm in _by_pattern(given).items()}


def _by_pattern(given: Any) -> dict[str, Any]:
    """What holds for all pairs, or for some, by patterns of names."""
    if isinstance(given, Mapping):
        return dict(given)
    return {} if given is None else {"*": given}


def _with(pairs: list[Pair], name: str, by_pattern: Mapping[str, Any]) -> list[Pair]:
    """Pairs with an attribute of the first pattern that fits them."""
    for pattern in by_pattern:
        if pattern != "*" and not any(pair.matches(pattern) for pair in pairs):
            raise ModelError(f"{name}: nothing that may touch is called {pattern!r}; there are {known_names(pairs)}")
    found = [[value for pattern, value in by_pattern.items() if pair.matches(pattern)] for pair in pairs]
    for pair, own in zip(pairs, found, strict=True):
        if own and not all(is_known(getattr(owner, name)) for owner in (pair, pair.one, pair.other)):
            raise ModelError(
                f"{name}: that of {pair.name!r} is given as an option and as a parameter, which would not count; leave "
                "one of them out"
            )
    return [replace(pair, **{name: own[0]}) if own else pair for pair, own in zip(pairs, found, strict=True)]


def known_names(pairs: Sequence[Pair]) -> str:
    """What patterns of names can fit, in words."""
    return listed(dict.fromkeys(name for pair in pairs for name in (pair.one.name, pair.other.name))) or "none"


class _Apart:
    """Whether bodies can touch at all, by what connects them."""

    def __init__(self, robot: Robot) -> None:
        self._place = robot.tree.place
        ends = [(joint.parent, joint.child) for joint in robot.joints]
        ends += [(loop.predecessor, loop.successor) for loop in robot.loops]
        self._joined = {frozenset((self.link(a), self.link(b))) for a, b in ends}
        self._excluded = {frozenset(pair) for pair in robot.exclusions}

    def link(self, body: str) -> int:
        """The number of a body's link; the ground's is 0."""
        return self._place[body][0]

    def welded(self, a: str, b: str) -> bool:
        """Whether two bodies are one link."""
        return self.link(a) == self.link(b)

    def __call__(self, a: str, b: str) -> bool:
        one, other = self.link(a), self.link(b)
        if self.welded(a, b) or frozenset((a, b)) in self._excluded:
            return False
        return 0 in (one, other) or frozenset((one, other)) not in self._joined


def _meet(a: Shape, b: Shape) -> bool:
    return bool(a.group & b.meets or b.group & a.meets)


def _touches_by(shape: Shape, paired: Collection[str]) -> bool:
    """Whether a shape touches only because the robot lists it; meshes do with their hulls."""
    return shape.name in paired and not isinstance(shape.geometry, Mesh)


def _as_listed(pair: Pair, own: ContactPair | None) -> Pair:
    """A pair with the friction that the robot lists for it."""
    if own is None or isinstance(pair.one.geometry, Point):
        return pair
    return replace(pair, friction=own.friction, torsion=own.torsion, rolling=own.rolling, listed=True)


def _as_shapes_rebound(pair: Pair) -> Pair:
    """A pair that no option names rebounds as the one of its shapes that does so more."""
    given = [shape.restitution for shape in (pair.one, pair.other) if shape.restitution is not None]
    if pair.restitution is not None or not given:
        return pair
    return replace(pair, restitution=Restitution.of_shapes(reduce(np.maximum, given)))


def _as_shapes_rub(a: Shape, b: Shape, friction: float) -> Pair:
    """A pair with the friction of its shapes. Spin and rolling are resisted if a shape of the higher priority does."""
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
