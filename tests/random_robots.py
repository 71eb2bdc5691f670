"""Random robots: trees of every kind of joint, loops that close by construction, and couplings.

A loop is made closable by drawing positions of all joints first and putting its frames where they meet. What is drawn
is far from neutral, so that the robot has to find its own way there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from coupler.mechanisms import FourBar, belt, differential, gear, linear, polynomial, rack_and_pinion
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Held,
    Helical,
    Joint,
    LoopKind,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Rod,
    Spherical,
    Universal,
)
from coupler.rotation import about_axis
from coupler.spatial import Transform

__all__ = [
    "COUPLINGS",
    "LOOP_KINDS",
    "ROBOTS",
    "Sample",
    "Sketch",
    "coupled_robot",
    "loop_robot",
    "random_tree",
    "sample",
]

Rng = np.random.Generator


def unit(rng: Rng) -> np.ndarray:
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def place(rng: Rng, size: float = 0.4) -> Transform:
    """A frame turned at random, at most `size` metres away along each axis."""
    return Transform(about_axis(unit(rng), rng.uniform(-3.0, 3.0)), rng.uniform(-size, size, 3))


JOINTS: dict[str, Callable[[Rng], Joint]] = {
    "revolute": lambda rng: Revolute(axis=unit(rng)),
    "continuous": lambda rng: Continuous(axis=unit(rng)),
    "prismatic": lambda rng: Prismatic(axis=unit(rng)),
    "helical": lambda rng: Helical(axis=unit(rng), pitch=rng.choice([-1, 1]) * rng.uniform(0.02, 0.2)),
    "cylindrical": lambda rng: Cylindrical(axis=unit(rng)),
    "universal": lambda rng: Universal(first=unit(rng), second=unit(rng)),
    "planar": lambda rng: Planar(normal=unit(rng)),
    "spherical": lambda rng: Spherical(),
    "free": lambda rng: Free(),
    "fixed": lambda rng: Fixed(),
}

LOOP_KINDS: dict[str, Callable[[Rng], LoopKind]] = {
    **{kind: JOINTS[kind] for kind in ("fixed", "revolute", "prismatic", "helical", "cylindrical", "universal")},
    **{kind: JOINTS[kind] for kind in ("planar", "spherical")},
    "rod": lambda rng: Rod(rng.uniform(0.3, 0.8)),
    "held": lambda rng: Held([[0, 0, 0, *unit(rng)], [0, 0, 0, *unit(rng)]]),
}

# Kinds of joints that a loop is made of: two for each kind of loop, together all of them.
CHAINS: dict[str, tuple[str, str]] = {
    "fixed": ("revolute universal spherical prismatic", "free cylindrical"),
    "revolute": ("universal revolute cylindrical revolute", "spherical prismatic revolute revolute"),
    "prismatic": ("revolute spherical universal", "planar cylindrical revolute"),
    "helical": ("spherical helical universal", "revolute revolute planar prismatic"),
    "cylindrical": ("universal revolute universal", "helical spherical prismatic"),
    "universal": ("revolute universal revolute prismatic", "planar spherical"),
    "planar": ("revolute universal revolute", "cylindrical continuous helical"),
    "spherical": ("revolute revolute revolute revolute", "free"),
    "rod": ("revolute revolute", "prismatic universal"),
    "held": ("revolute prismatic revolute", "spherical revolute"),
}


class Sketch:
    """A robot being built, with a pose of each of its bodies at which its loops are to close."""

    def __init__(self, rng: Rng, name: str, spread: float = 1.0) -> None:
        self.rng, self.builder, self.spread = rng, RobotBuilder(name), spread
        self.pose: dict[str, Transform] = {"ground": Transform.identity()}

    def body(self, name: str) -> None:
        """A body with a random inertia that a real one could have."""
        mass, axes = self.rng.uniform(0.5, 2.0), about_axis(unit(self.rng), self.rng.uniform(-3.0, 3.0))
        x2, y2, z2 = mass * self.rng.uniform(0.01, 0.05, 3)
        inertia = axes @ np.diag([y2 + z2, x2 + z2, x2 + y2]) @ axes.T
        self.builder.body(name, mass, self.rng.uniform(-0.2, 0.2, 3), inertia)

    def joint(self, kind: str | Joint, parent: str, name: str = "", *, at: Any = None, **marks: bool) -> str:
        """A joint and the body that it carries, whose name is returned; the joint's is "j" and that."""
        kind = JOINTS[kind](self.rng) if isinstance(kind, str) else kind
        name = name or str(len(self.pose))
        at = place(self.rng) if at is None else at
        self.body(name)
        self.builder.joint(f"j{name}", kind, parent, name, at, **marks)
        position = kind.random(self.rng)
        position = kind.integrate(kind.neutral(), self.spread * kind.difference(kind.neutral(), position))
        self.pose[name] = kind.transform(position) @ at @ self.pose[parent]
        return name

    def chain(self, kinds: str, parent: str) -> str:
        """Joints one after the other; the name of the last body."""
        for kind in kinds.split():
            parent = self.joint(kind, parent)
        return parent

    def loop(self, kind: str | LoopKind, first: str, second: str, name: str = "loop") -> None:
        """A loop joint between two bodies, which closes at their poses."""
        kind = LOOP_KINDS[kind](self.rng) if isinstance(kind, str) else kind
        if isinstance(kind, Rod):
            gap = Transform(place(self.rng).E, kind.length * unit(self.rng))
        elif isinstance(kind, Held):
            first_row, second_row = kind.axes[:, 3:]
            gap = Transform(place(self.rng).E, self.rng.uniform(-0.5, 0.5) * np.cross(first_row, second_row))
        else:
            assert isinstance(kind, Joint)
            gap = kind.transform(kind.random(self.rng))
        at = place(self.rng)
        meets = gap @ at @ self.pose[first] @ self.pose[second].inverse()
        self.builder.loop(name, kind, first, second, at, meets)

    def couple(self, name: str, bodies: Sequence[str], function: Any, independent: Sequence[str] = ()) -> None:
        """A coupling of the joints that carry these bodies."""
        self.builder.couple(name, [f"j{b}" for b in bodies], function, [f"j{b}" for b in independent])

    def build(self, **options: Any) -> Robot:
        return self.builder.build(**options)


@dataclass(frozen=True, eq=False)
class Sample:
    """A random robot.

    Attributes:
        robot: itself.
        relation: what must be zero of its joint positions, by joint name.
        surplus: how many rows of its loops and couplings follow from the others.
    """

    robot: Robot
    relation: Callable[[dict[str, Any]], Any] | None = None
    surplus: int = 0


# Trees


def random_tree(rng: Rng, n: int, floating: bool) -> Robot:
    """A tree of n joints, each of the ten kinds in turn, on random parents."""
    sketch = Sketch(rng, "tree")
    bodies = [sketch.joint("free", "ground") if floating else "ground"]
    kinds = list(JOINTS)
    for i in range(n):
        bodies.append(sketch.joint(kinds[i % len(kinds)], bodies[rng.integers(len(bodies))]))
    return sketch.build()


# Loops


def loop_robot(rng: Rng, loop_kind: str, chain: str, floating: bool = False, spread: float = 1.0) -> Robot:
    """A loop of the joints of a chain, which are shared between its two ends.

    Args:
        rng: draws everything.
        loop_kind: what closes it.
        chain: kinds of its joints.
        floating: whether it hangs on the second link of a floating base, and carries something itself.
        spread: how far from neutral it closes, as a part of the way to random positions.
    """
    sketch = Sketch(rng, f"{loop_kind} loop of {chain}", spread)
    start = "ground"
    if floating:
        base = sketch.joint("free", "ground")
        start = sketch.joint("revolute", base)
    kinds = chain.split()
    cut = int(rng.integers(len(kinds)))
    first, second = sketch.chain(" ".join(kinds[:cut]), start), sketch.chain(" ".join(kinds[cut:]), start)
    sketch.loop(loop_kind, first, second)
    if floating:
        sketch.chain("prismatic spherical", second)
    return sketch.build()


def series(rng: Rng, spread: float = 1.0) -> Robot:
    """Two loops, the second carried by the first."""
    sketch = Sketch(rng, "series", spread)
    base = sketch.joint("free", "ground")
    a, b = sketch.chain("revolute fixed universal fixed", base), sketch.chain("fixed revolute revolute prismatic", base)
    sketch.loop("spherical", a, b, "lower")
    c, d = sketch.chain("revolute revolute", b), sketch.chain("universal cylindrical", b)
    sketch.loop("spherical", c, d, "upper")
    sketch.chain("revolute", d)
    return sketch.build()


def nested(rng: Rng, spread: float = 1.0) -> Robot:
    """A loop inside of a loop: they share joints, and make one cluster."""
    sketch = Sketch(rng, "nested", spread)
    a = sketch.joint("revolute", "ground")
    b = sketch.chain("revolute universal", a)
    c = sketch.chain("spherical prismatic", "ground")
    sketch.loop("spherical", b, c, "outer")
    d = sketch.chain("revolute prismatic", a)
    sketch.loop("rod", d, b, "inner")
    return sketch.build()


def overlapping(rng: Rng, spread: float = 1.0) -> Robot:
    """Three loops, each of which shares joints with the next."""
    sketch = Sketch(rng, "overlapping", spread)
    base = sketch.joint("free", "ground")
    ways = [sketch.chain(kinds, base) for kinds in ("revolute universal", "spherical prismatic", "universal revolute")]
    sketch.loop("spherical", ways[0], ways[1], "first")
    sketch.loop("universal", ways[1], sketch.chain("spherical", ways[2]), "second")
    sketch.loop("rod", ways[0], ways[2], "third")
    return sketch.build()


def parallel(rng: Rng, spread: float = 1.0, lock_idle: bool = False) -> Robot:
    """A platform on six telescopic legs, the platform itself on a free joint."""
    sketch = Sketch(rng, "parallel", spread)
    base = sketch.joint("free", "ground")
    platform = sketch.joint("free", base, "platform")
    for i in range(6):
        leg = sketch.joint("prismatic", sketch.joint("universal", base, f"hip{i}"), f"leg{i}", actuated=True)
        sketch.loop("spherical", leg, platform, f"foot{i}")
    return sketch.build(lock_idle=lock_idle)


def delta(rng: Rng, spread: float = 1.0) -> Robot:
    """A platform held by three arms with rods."""
    sketch = Sketch(rng, "delta", spread)
    platform = sketch.joint("free", "ground", "platform")
    for i in range(3):
        sketch.loop("rod", sketch.joint("revolute", "ground", f"arm{i}"), platform, f"rod{i}")
    return sketch.build()


def idle_rod(rng: Rng, spread: float = 1.0, lock_idle: bool = False) -> Robot:
    """A rod between two balls, which can spin."""
    sketch = Sketch(rng, "idle rod", spread)
    crank = sketch.chain("revolute", "ground")
    rod = sketch.joint("spherical", crank, "rod")
    rocker = sketch.chain("revolute revolute", "ground")
    sketch.loop("spherical", rod, rocker)
    return sketch.build(lock_idle=lock_idle)


def geared_loop(rng: Rng, spread: float = 1.0) -> Robot:
    """A loop with a rotor geared to one of its joints, and a second rotor geared to the first."""
    sketch = Sketch(rng, "geared loop", spread)
    base = sketch.joint("free", "ground")
    crank = sketch.joint("revolute", base, "crank")
    tip, other = sketch.chain("universal", crank), sketch.chain("revolute revolute prismatic", base)
    sketch.loop("spherical", tip, other)
    sketch.joint("revolute", base, "rotor")
    sketch.joint("continuous", base, "second")
    sketch.couple("gears", ["crank", "rotor"], gear(7.5, 0.3), ["crank"])
    sketch.couple("train", ["rotor", "second"], gear(-0.2), ["rotor"])
    return sketch.build()


def geared_loops(rng: Rng, spread: float = 1.0) -> Robot:
    """Two loops on different carriers whose joints are tied by a φ."""
    sketch = Sketch(rng, "geared loops", spread)
    base = sketch.joint("free", "ground")
    for side in "ab":
        hip = sketch.joint("revolute", base, f"hip{side}")
        knee = sketch.joint("revolute", hip, f"knee{side}")
        foot, other = sketch.chain("universal", knee), sketch.chain("revolute revolute prismatic", hip)
        sketch.loop("spherical", foot, other, f"loop{side}")
    sketch.couple("tie", ["kneea", "kneeb"], lambda q: q[0] + q[1] + 0.4 * np.sin(q[1]))
    return sketch.build()


def planar_loop(rng: Rng, spread: float = 1.0) -> Robot:
    """A closed planar five-bar of revolute joints, slanted: three of the rows of its loop follow from the others."""
    sketch = Sketch(rng, "five-bar", spread)
    axis = unit(rng)
    body, ends = sketch.joint("free", "ground"), []
    for count in (2, 2):
        end = body
        for _ in range(count):
            end = sketch.joint(Revolute(axis=axis), end, at=Transform.translation(rng.uniform(-0.4, 0.4, 3)))
        ends.append(end)
    at = rng.uniform(-0.4, 0.4, 3)
    first, second = (sketch.pose[end] for end in ends)
    meets = second.E @ (first.r + first.E.T @ at - second.r)
    sketch.builder.loop("loop", Revolute(axis=axis), ends[0], ends[1], at, meets)
    return sketch.build()


# Couplings


def _joints(rng: Rng, kinds: str, floating: bool = False) -> tuple[Sketch, list[str]]:
    """Bodies a, b, c, ... on one base, or, for a slash before a kind, on the body before."""
    sketch = Sketch(rng, kinds)
    base = sketch.joint("free", "ground", "base") if floating else "ground"
    bodies: list[str] = []
    for kind, name in zip(kinds.split(), "abcdefgh", strict=False):
        bodies.append(sketch.joint(kind.lstrip("/"), bodies[-1] if kind[0] == "/" else base, name))
    return sketch, bodies


def _gear(rng: Rng) -> Sample:
    sketch, (a, b) = _joints(rng, "revolute continuous", floating=True)
    sketch.couple("gears", [a, b], gear(6.0, 0.2), [a])
    return Sample(sketch.build(), lambda p: p["jb"] - (6.0 * p["ja"] + 0.2))


def _belt(rng: Rng) -> Sample:
    sketch, (a, b, c, d) = _joints(rng, "revolute /revolute continuous continuous")
    sketch.couple("belt", [a, c, d, b], belt(6.0, 3.0, -4.0), [a, b])
    return Sample(sketch.build(), lambda p: [p["jc"] - 6.0 * p["ja"], p["jd"] - 3.0 * p["ja"] + 4.0 * p["jb"]])


def _differential(rng: Rng) -> Sample:
    sketch, (a, b, c, d) = _joints(rng, "revolute /revolute revolute revolute", floating=True)
    sketch.couple("differential", [a, b, c, d], differential(2.0), [a, b])
    return Sample(sketch.build(), lambda p: [p["jc"] + p["jd"] - 4.0 * p["ja"], p["jc"] - p["jd"] - 4.0 * p["jb"]])


def _rack(rng: Rng) -> Sample:
    sketch, (a, b) = _joints(rng, "continuous /prismatic")
    sketch.couple("rack", [a, b], rack_and_pinion(0.03, 0.1), [a])
    return Sample(sketch.build(), lambda p: p["jb"] - 0.1 - 0.03 * p["ja"])


def _linear(rng: Rng) -> Sample:
    G = np.vstack([np.eye(2), rng.normal(size=(3, 2))])
    shift = np.array([0.0, 0.0, 0.5, -0.2, 0.1])
    sketch, bodies = _joints(rng, "revolute /helical prismatic /revolute continuous")
    sketch.couple("linear", bodies, linear(G, shift), bodies[:2])

    def relation(p: dict[str, Any]) -> Any:
        y = np.stack([p["ja"], p["jb"]])
        return [p[f"j{name}"] - np.tensordot(G[i], y, 1) - shift[i] for i, name in enumerate(bodies)]

    return Sample(sketch.build(), relation)


def _polynomial(rng: Rng) -> Sample:
    sketch, (a, b) = _joints(rng, "revolute /prismatic")
    sketch.couple("polynomial", [a, b], polynomial([0.1, -0.5, 0.3, 0.2]), [a])
    return Sample(sketch.build(), lambda p: p["jb"] - (0.1 - 0.5 * p["ja"] + 0.3 * p["ja"] ** 2 + 0.2 * p["ja"] ** 3))


def _four_bar(rng: Rng) -> Sample:
    """The γ beside the loop joint that it solves, on a floating base."""
    bar, z = FourBar(0.3, 0.8, 0.7, 0.9), Revolute(axis=(0, 0, 1))
    sketch = Sketch(rng, "four-bar")
    base = sketch.joint("free", "ground")
    crank = sketch.joint(z, base, "crank", at=Transform.identity())
    coupler = sketch.joint(z, crank, "coupler", at=Transform.translation([bar.crank, 0, 0]))
    rocker = sketch.joint(z, base, "rocker", at=Transform.translation([bar.ground, 0, 0]))
    sketch.builder.loop("loop", z, coupler, rocker, (bar.coupler, 0, 0), (bar.rocker, 0, 0))
    sketch.builder.couple("bars", ["jcrank", "jcoupler", "jrocker"], bar, ["jcrank"], ["loop"])
    return Sample(sketch.build(), lambda p: bar.opening(np.stack([p["jcrank"], p["jcoupler"], p["jrocker"]])), 5)


def _cam(rng: Rng) -> Sample:
    """A γ of two inputs."""
    sketch, (a, b, c, d) = _joints(rng, "revolute prismatic /revolute prismatic", floating=True)
    sketch.couple("cam", [a, b, c, d], lambda y: np.array([y[0], _lift(*y), y[1], np.cos(y[0] * y[1])]), [a, c])
    return Sample(sketch.build(), lambda p: [p["jb"] - _lift(p["ja"], p["jc"]), p["jd"] - np.cos(p["ja"] * p["jc"])])


def _lift(x: Any, y: Any) -> Any:
    return 0.3 * np.sin(x) * np.cos(2.0 * y) + 0.1 * x * y


def _implicit(rng: Rng) -> Sample:
    """A φ of two equations."""
    sketch, bodies = _joints(rng, "revolute prismatic /revolute helical")

    def phi(q: Any) -> Any:
        return np.array([q[1] - 0.4 * np.sin(q[0]) * np.cos(q[2]), q[3] + 0.3 * np.sin(q[3]) - q[0] * q[2]])

    sketch.couple("phi", bodies, phi)
    return Sample(sketch.build(), lambda p: phi(np.stack([p[f"j{body}"] for body in bodies])))


def _chain(rng: Rng) -> Sample:
    """γ of γ of γ, described last first."""
    sketch, (a, b, c, d) = _joints(rng, "revolute prismatic revolute /continuous", floating=True)
    sketch.couple("third", [c, d], gear(-3.0), [c])
    sketch.couple("second", [b, c], polynomial([0.0, 1.0, 0.5]), [b])
    sketch.couple("first", [a, b], lambda y: np.array([y[0], 0.5 * np.sin(y[0])]), [a])
    return Sample(
        sketch.build(),
        lambda p: [p["jb"] - 0.5 * np.sin(p["ja"]), p["jc"] - p["jb"] - 0.5 * p["jb"] ** 2, p["jd"] + 3.0 * p["jc"]],
    )


def _circle(rng: Rng) -> Sample:
    """Two γ that give the same joint: the cluster is solved by neither."""
    sketch, (a, b, c) = _joints(rng, "revolute continuous revolute")
    sketch.couple("one", [a, b], gear(2.0), [a])
    sketch.couple("two", [c, b], lambda y: np.array([y[0], y[0] + 0.3 * np.sin(y[0])]), [c])
    return Sample(sketch.build(), lambda p: [p["jb"] - 2.0 * p["ja"], p["jb"] - p["jc"] - 0.3 * np.sin(p["jc"])])


COUPLINGS: dict[str, Callable[[Rng], Sample]] = {
    "gear": _gear,
    "belt": _belt,
    "differential": _differential,
    "rack and pinion": _rack,
    "linear": _linear,
    "polynomial": _polynomial,
    "four-bar": _four_bar,
    "cam": _cam,
    "implicit": _implicit,
    "chain of couplings": _chain,
    "two for one": _circle,
}


def coupled_robot(rng: Rng, coupling: str) -> Sample:
    """A robot with one of the couplings."""
    return COUPLINGS[coupling](rng)


def _of(make: Callable[..., Robot], *arguments: Any, surplus: int = 0, **options: Any) -> Callable[[Rng], Sample]:
    return lambda rng: Sample(make(rng, *arguments, **options), surplus=surplus)


ROBOTS: dict[str, Callable[[Rng], Sample]] = {
    "tree": _of(random_tree, 12, False),
    "floating tree": _of(random_tree, 20, True),
    **{f"{kind} loop": _of(loop_robot, kind, chains[0]) for kind, chains in CHAINS.items()},
    **{f"{kind} loop afloat": _of(loop_robot, kind, chains[1], floating=True) for kind, chains in CHAINS.items()},
    "series": _of(series),
    "nested": _of(nested),
    "overlapping": _of(overlapping),
    "parallel": _of(parallel),
    "delta": _of(delta),
    "idle rod": _of(idle_rod),
    "locked rod": _of(idle_rod, lock_idle=True, surplus=-1),
    "geared loop": _of(geared_loop),
    "geared loops": _of(geared_loops),
    "five-bar": _of(planar_loop, surplus=3),
    **{name: (lambda rng, name=name: coupled_robot(rng, name)) for name in COUPLINGS},
}


@cache
def sample(name: str, seed: int = 0) -> Sample:
    """A random robot of this name, always the same."""
    return ROBOTS[name](np.random.default_rng([seed, *name.encode()]))
