"""Describing a robot: every mistake is told once, by name and with the way out; and what a robot says of itself."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.mechanisms import FourBar, gear
from coupler.model import (
    Fixed,
    Free,
    Joint,
    LoopKind,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Rod,
    Spherical,
    Universal,
)
from coupler.spatial import Transform

X, Y, Z = Revolute(axis=(1, 0, 0)), Revolute(axis=(0, 1, 0)), Revolute()
ORIGIN = (0.0, 0.0, 0.0)
LENGTHS = 0.3, 1.0, 0.8, 1.1  # crank, coupler, rocker, ground, m
FLAT = 1.0, 2.0, 1.75, 1.25  # crank + coupler = ground + rocker: it can fold
PARALLELOGRAM = 1.0, 2.0, 1.0, 2.0
LIMITED = 1.0, 0.3, 0.8, 1.1  # its crank cannot turn fully

Describe = Callable[[RobotBuilder], Any]


@contextmanager
def refused(*told: str) -> Iterator[None]:
    """A ModelError, and nothing else, whose message has all of these."""
    with pytest.raises(ModelError) as caught:
        yield
    message = str(caught.value)
    assert [part for part in told if part not in message] == [], message


def bar(b: RobotBuilder, name: str, length: float = 1.0) -> None:
    moment = length**2 / 12 + 1e-3
    b.body(name, 1.0, (length / 2, 0, 0), (1e-3, moment, moment))


def arm(*kinds: Joint) -> RobotBuilder:
    """Bodies b0, b1, ... on joints j0, j1, ..., one after the other."""
    b, carrier = RobotBuilder("arm"), "ground"
    for i, kind in enumerate(kinds or (Z, Z)):
        bar(b, f"b{i}")
        b.joint(f"j{i}", kind, carrier, f"b{i}", at=(1.0 if i else 0.0, 0, 0))
        carrier = f"b{i}"
    return b


def four_bar(
    lengths: tuple[float, float, float, float] = LENGTHS,
    closed_by: Joint | Rod = Z,
    *,
    solved: bool = False,
    geared: bool = False,
    **marks: dict[str, bool],
) -> RobotBuilder:
    crank, coupler, rocker, ground = lengths
    b = RobotBuilder("four-bar")
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        bar(b, name, length)
    b.joint("j1", Z, "ground", "crank", **marks.get("j1", {}))
    b.joint("j2", Z, "crank", "coupler", at=(crank, 0, 0), **marks.get("j2", {}))
    b.joint("j3", Z, "ground", "rocker", at=(ground, 0, 0), **marks.get("j3", {}))
    b.loop("tip", closed_by, "coupler", "rocker", at=(coupler, 0, 0), meets=(rocker, 0, 0))
    if solved:
        b.couple("solution", ["j1", "j2", "j3"], FourBar(*lengths), independent=["j1"], solves=["tip"])
    if geared:
        b.body("rotor", 0.1, inertia=(1e-4, 1e-4, 1e-4))
        b.joint("motor", Z, "ground", "rotor")
        b.couple("gears", ["j1", "motor"], gear(6.0), independent=["j1"])
    return b


def rod_between_balls(*, thin: bool = False) -> RobotBuilder:
    b = RobotBuilder("spatial four-bar")
    bar(b, "crank")
    bar(b, "rocker")
    b.body("rod", 1.0, (0.5, 0, 0), (0.0 if thin else 1e-3, 1 / 12, 1 / 12))
    b.joint("in", Z, "ground", "crank")
    b.joint("out", Z, "ground", "rocker", at=(1.2, 0, 0))
    b.joint("ball", Spherical(), "crank", "rod", at=(1, 0, 0))
    b.loop("socket", Spherical(), "rod", "rocker", at=(1, 0, 0), meets=(0.9, 0, 0))
    return b


# Mistakes in one part

SINGLE: dict[str, tuple[Describe, tuple[str, ...]]] = {
    "body twice": (lambda b: b.body("a", 1.0), ("'a'", "taken already")),
    "body called ground": (lambda b: b.body("ground", 1.0), ("'ground'",)),
    "body without a name": (lambda b: b.body(""), ("a body needs a name",)),
    "body with a number for a name": (lambda b: b.body(3), ("a body needs a name", "3")),  # type: ignore[arg-type]
    "indefinite inertia": (lambda b: b.body("x", 1.0, inertia=(1, 1, -1)), ("'x'", "none can be negative")),
    "impossible inertia": (lambda b: b.body("x", 1.0, inertia=(1, 1, 3)), ("'x'", "ideal=True")),
    "inertia in words": (lambda b: b.body("x", 1.0, inertia="big"), ("'x'", "inertia", "3 × 3")),
    "moments in words": (lambda b: b.body("x", 1.0, inertia=["a", "b", "c"]), ("'x'", "inertia")),
    "ragged inertia": (lambda b: b.body("x", 1.0, inertia=[[1, 2], [3]]), ("'x'", "inertia", "3 × 3")),
    "complex inertia": (lambda b: b.body("x", 1.0, inertia=(1j, 0, 0)), ("'x'", "inertia")),
    "mass in words": (lambda b: b.body("x", "heavy"), ("'x'", "mass")),  # type: ignore[arg-type]
    "mass in quotes": (lambda b: b.body("x", "1"), ("'x'", "mass")),  # type: ignore[arg-type]
    "NaN for a mass": (lambda b: b.body("x", math.nan), ("'x'", "mass", "nan")),
    "NaN for a centre": (lambda b: b.body("x", 1.0, (0, 0, math.nan)), ("'x'", "centre", "nan")),
    "frame twice": (lambda b: (b.frame("f", "a"), b.frame("f", "a")), ("'f'", "taken already, by a frame")),
    "frame called like a body": (lambda b: b.frame("a", "a"), ("'a'", "taken already, by a body")),
    "contact called like a frame": (
        lambda b: (b.frame("f", "a"), b.contact("f", "a", ORIGIN)),
        ("'f'", "contact point", "taken already, by a frame"),
    ),
    "a joint on a list": (lambda b: b.joint("k", Z, ["a"], "a"), ("joint 'k'", "['a']")),  # type: ignore[arg-type]
    "a loop to a list": (lambda b: b.loop("l", Z, ["a"], "ground"), ("'l'", "['a']")),  # type: ignore[arg-type]
    "a marked weld": (lambda b: b.joint("k", Fixed(), "a", "c", independent=True), ("'k'", "fixed")),
    "frame on a list": (lambda b: b.frame("f", ["a"]), ("frame 'f'", "['a']")),  # type: ignore[arg-type]
    "NaN for a contact": (lambda b: b.contact("toe", "a", (0, 0, math.nan)), ("'toe'", "3 finite numbers")),
    "NaN for a frame": (lambda b: b.frame("f", "a", at=(math.nan, 0, 0)), ("frame 'f'", "3 finite numbers")),
    "joint twice": (
        lambda b: (b.joint("j", Z, "ground", "a"), b.joint("j", Z, "ground", "a")),
        ("'j'", "taken already, by a joint"),
    ),
    "loop called like a joint": (
        lambda b: (b.joint("j", Z, "ground", "a"), b.loop("j", Z, "a", "ground")),
        ("'j'", "loop", "taken already, by a joint"),
    ),
    "coupling called like a loop": (
        lambda b: (b.loop("l", Z, "a", "ground"), b.couple("l", ["j", "k"], gear(2.0), ["j"])),
        ("'l'", "coupling", "taken already, by a loop"),
    ),
    "spring twice": (
        lambda b: [b.spring("s", "a", "ground", ORIGIN, ORIGIN, stiffness=1.0) for _ in range(2)],
        ("'s'", "taken already, by a spring"),
    ),
    "spring on one body": (lambda b: b.spring("s", "a", "a", ORIGIN, ORIGIN, stiffness=1.0), ("'s'", "body 'a'")),
    "NaN for a spring": (lambda b: b.spring("s", "a", "ground", (0, 0, math.nan), ORIGIN), ("'s'", "3 finite")),
    "a class for a kind": (lambda b: b.joint("j", Revolute, "ground", "a"), ("'j'", "Revolute(...)")),  # type: ignore[arg-type]
    "a word for a kind": (lambda b: b.loop("l", "hinge", "a", "ground"), ("'l'", "'hinge'")),  # type: ignore[arg-type]
    "loop with damping": (lambda b: b.loop("l", Revolute(damping=1.0), "a", "ground"), ("loop 'l'", "has no damping")),
    "loop with limits": (
        lambda b: b.loop("l", Prismatic(stiffness=2.0, lower=0.0), "a", "ground"),
        ("loop 'l'", "no spring and no limits", "joint of the tree"),
    ),
    "loop on one body": (lambda b: b.loop("l", Z, "a", "a"), ("'l'", "both its ends are on body 'a'")),
    "a place in words": (lambda b: b.joint("j", Z, "ground", "a", at="here"), ("'j'", "3 finite numbers", "'here'")),
    "a place in quotes": (lambda b: b.joint("j", Z, "ground", "a", at=("1", "2", "3")), ("'j'", "3 finite numbers")),
    "NaN for a place": (lambda b: b.joint("j", Z, "ground", "a", at=(0, math.nan, 0)), ("'j'", "3 finite numbers")),
    "NaN for a meeting point": (lambda b: b.loop("l", Z, "a", "ground", meets=(0, 0, math.nan)), ("'l'", "3 finite")),
    "a stretched frame": (lambda b: b.joint("j", Z, "ground", "a", turned=2 * np.eye(3)), ("'j'", "not a rotation")),
    "a mirrored frame": (lambda b: b.frame("f", "a", turned=np.diag([1, 1, -1])), ("'f'", "not a rotation")),
    "a frame without bounds": (lambda b: b.frame("f", "a", turned=np.full((3, 3), 1e200)), ("'f'", "not a rotation")),
    "three angles for a turn": (lambda b: b.joint("j", Z, "ground", "a", turned=(0, 0, 1)), ("'j'", "3 × 3")),
    "turned twice": (
        lambda b: b.joint("j", Z, "ground", "a", at=Transform.identity(), turned=np.eye(3)),
        ("'j'", "leave out turned"),
    ),
    "coupling of nothing": (lambda b: b.couple("c", None, gear(2.0)), ("'c'", "joints", "None")),  # type: ignore[arg-type]
    "coupling of a word": (lambda b: b.couple("c", "jk", gear(2.0), ["j"]), ("'c'", "joints", "list", "'jk'")),
    "independent in a word": (lambda b: b.couple("c", ["j", "k"], gear(2.0), "j"), ("'c'", "independent", "list")),
    "coupling of one joint": (lambda b: b.couple("c", ["j"], lambda q: q[0]), ("'c'", "two joints or more")),
    "coupling of a joint with itself": (lambda b: b.couple("c", ["j", "j"], gear(2.0), ["j"]), ("'c'", "twice", "j")),
    "independent of another": (lambda b: b.couple("c", ["j", "k"], gear(2.0), ["x"]), ("'c'", "'x'", "not among")),
    "coupling by a number": (lambda b: b.couple("c", ["j", "k"], 6.0, ["j"]), ("'c'", "callable")),  # type: ignore[arg-type]
    "γ in the wrong order": (lambda b: b.couple("c", ["j", "k"], gear(2.0), ["k"]), ("'c'", "'k'", "order")),
    "γ of the wrong shape": (
        lambda b: b.couple("c", ["j", "k"], lambda y: np.array([y[0], y[0], y[0]]), ["j"]),
        ("'c'", "(3,)", "2 positions", "'j', 'k'"),
    ),
    "γ that fails": (lambda b: b.couple("c", ["j", "k"], lambda y: y[5], ["j"]), ("'c'", "fails")),
    "φ that solves": (lambda b: b.couple("c", ["j", "k"], lambda q: q[0], solves=["l"]), ("'c'", "l", "independent")),
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_mistake_in_a_part_is_told_where_it_is_described(name: str) -> None:
    describe, told = SINGLE[name]
    b = RobotBuilder("robot")
    bar(b, "a")
    with refused(*told):
        describe(b)


def test_a_refused_part_leaves_no_trace() -> None:
    b = RobotBuilder("robot")
    attempts: list[Callable[[Any], None]] = [
        lambda x: b.body("a", 1.0, (x, 0, 0), (1, 1, 1)),
        lambda x: b.body("c", 1.0, (x, 0, 0), (1, 1, 1)),
        lambda x: b.frame("f", "a", at=(x, 0, 0)),
        lambda x: b.contact("toe", "a", (x, 0, 0)),
        lambda x: b.joint("j", Z, "ground", "a", at=(x, 0, 0)),
        lambda x: b.joint("k", Z, "a", "c", at=(x, 0, 0)),
        lambda x: b.couple("gears", ["j", "k"], gear(2.0) if x == x else 2.0, ["j"]),  # type: ignore[arg-type]
        lambda x: b.spring("s", "a", "ground", (x, 0, 0), ORIGIN, stiffness=1.0),
    ]
    for attempt in attempts:
        with refused():
            attempt(math.nan)
        attempt(0.0)
    assert b.build().nv == 1


@pytest.mark.parametrize("gravity", [(0, 0), -9.81, (0, 0, math.nan), "down", None, np.zeros((1, 3))])
def test_gravity_is_a_vector(gravity: Any) -> None:
    with refused("gravity must be 3 finite numbers"):
        RobotBuilder("robot", gravity=gravity)
    with refused("gravity must be 3 finite numbers"):
        arm().build().with_gravity(gravity)


# Mistakes between parts


def _cycle(b: RobotBuilder) -> None:
    for name in "cde":
        bar(b, name)
    b.joint("k", Z, "d", "c")
    b.joint("l", Z, "c", "d")
    b.joint("m", Z, "d", "e")


def _welded(b: RobotBuilder) -> None:
    bar(b, "c")
    b.joint("k", Fixed(), "a", "c")


TREES: dict[str, tuple[Describe, tuple[str, ...]]] = {
    "a body on two joints": (
        lambda b: (bar(b, "c"), b.joint("k", Z, "a", "c"), b.joint("l", Z, "ground", "c")),
        ("'c'", "'k'", "'l'", "make one of the two a loop joint"),
    ),
    "bodies on each other": (_cycle, ("'c'", "'d'", "cycle", "loop joint")),
    "a body on itself": (lambda b: (bar(b, "c"), b.joint("k", Z, "c", "c")), ("'c'",)),
    "a body on nothing": (lambda b: bar(b, "c"), ("'c'", "by a Free joint if it floats")),
    "a joint on nothing": (lambda b: (bar(b, "c"), b.joint("k", Z, "x", "c")), ("joint 'k'", "'x'", "'a'")),
    "a joint of nothing": (lambda b: b.joint("k", Z, "ground", "x"), ("joint 'k'", "'x'", "'a'")),
    "a frame on nothing": (lambda b: b.frame("f", "x"), ("frame 'f'", "no body 'x'", "'a'")),
    "a contact point on nothing": (lambda b: b.contact("f", "x", ORIGIN), ("contact point 'f'", "no body 'x'", "'a'")),
    "a joint of the ground": (lambda b: b.joint("k", Z, "a", "ground"), ("'k'", "exchange its two bodies")),
    "a loop to nothing": (lambda b: b.loop("l", Z, "a", "x"), ("'l'", "'x'", "'a'")),
    "a spring to nothing": (
        lambda b: b.spring("s", "a", "x", ORIGIN, ORIGIN, damping=1.0),
        ("spring 's'", "'x'", "'a'"),
    ),
    "a loop between welded bodies": (
        lambda b: (_welded(b), b.loop("l", Z, "a", "c")),
        ("'l'", "'a'", "'c'", "welded together already"),
    ),
    "a loop that holds nothing": (lambda b: b.loop("l", Free(), "a", "ground"), ("'l'", "free joint holds nothing")),
    "a coupling of nothing": (lambda b: b.couple("c", ["j", "x"], gear(2.0), ["j"]), ("'c'", "'x'", "'j'")),
    "a coupling of a weld": (lambda b: (_welded(b), b.couple("c", ["j", "k"], gear(2.0), ["j"])), ("'c'", "'k'")),
    "a coupling of a ball": (
        lambda b: (bar(b, "c"), b.joint("k", Spherical(), "a", "c"), b.couple("c", ["j", "k"], gear(2.0), ["j"])),
        ("'c'", "'k'", "3 freedoms"),
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_parts_that_do_not_fit_together(name: str) -> None:
    describe, told = TREES[name]
    b = RobotBuilder("robot")
    bar(b, "a")
    b.joint("j", Z, "ground", "a")
    describe(b)
    with refused(*told):
        b.build()


def test_a_robot_has_bodies() -> None:
    with refused("'empty'", "no bodies"):
        RobotBuilder("empty").build()


def _triangle() -> RobotBuilder:
    b = RobotBuilder("triangle")
    bar(b, "a")
    bar(b, "c")
    b.joint("j1", Z, "ground", "a")
    b.joint("j2", Z, "ground", "c", at=(1, 0, 0))
    b.loop("tip", Z, "a", "c", at=(1, 0, 0), meets=(1, 0, 0))
    return b


def _skewed() -> RobotBuilder:
    """A four-bar of which one axis leans: too many constraints."""
    b = RobotBuilder("skewed")
    for name, length in (("crank", 0.3), ("coupler", 1.0), ("rocker", 0.8)):
        bar(b, name, length)
    b.joint("j1", Z, "ground", "crank")
    b.joint("j2", Revolute(axis=(0.1, 0.2, 1)), "crank", "coupler", at=(0.3, 0, 0))
    b.joint("j3", Z, "ground", "rocker", at=(1.1, 0, 0))
    b.loop("tip", Z, "coupler", "rocker", at=(1, 0, 0), meets=(0.8, 0, 0))
    return b


def _just_reaching() -> RobotBuilder:
    """Two bars that meet stretched out, and nowhere else, one of them on two hinges about the same axis."""
    b = RobotBuilder("just reaching")
    for name, length in (("long", 1.5), ("collar", 0.1), ("short", 0.5)):
        bar(b, name, length)
    b.joint("j1", Z, "ground", "long", actuated=True)
    b.joint("j2", Z, "ground", "collar", at=(1, 0, 0))
    b.joint("j3", Z, "collar", "short")
    b.loop("tip", Spherical(), "long", "short", at=(1.5, 0, 0), meets=(0.5, 0, 0))
    return b


def _stretched() -> RobotBuilder:
    """Three bars in a row that start as a straight line, and only so reach the point to which they are pinned."""
    b = RobotBuilder("stretched")
    for i in (1, 2, 3):
        bar(b, f"bar{i}", 1.0)
        b.joint(f"j{i}", Z, f"bar{i - 1}" if i > 1 else "ground", f"bar{i}", at=(1, 0, 0) if i > 1 else (0, 0, 0))
    b.loop("tip", Spherical(), "ground", "bar3", at=(2.5, 0, 0), meets=(0.5, 0, 0))
    return b


def _twice(b: RobotBuilder, *ratios: float) -> RobotBuilder:
    for i, ratio in enumerate(ratios):
        b.couple(f"gears {i}", ["j0", "j1"], gear(ratio), ["j0"])
    return b


LOOPS: dict[str, tuple[Callable[[], RobotBuilder], tuple[str, ...]]] = {
    "too short": (lambda: four_bar((0.3, 1.0, 0.8, 3.0)), ("'tip'", "'j1', 'j2', 'j3'", "cannot close", "m apart")),
    "a triangle": (_triangle, ("'tip'", "'j1', 'j2'", "cannot move", "fixed joints")),
    "bars that just reach": (_just_reaching, ("'tip'", "'j1', 'j2', 'j3'", "singular wherever it was found closed")),
    "bars drawn straight": (_stretched, ("'tip'", "'j1', 'j2', 'j3'", "singular wherever it was found closed")),
    "too many constraints": (_skewed, ("'tip'", "cannot move", "constrain them less")),
    "gears that block each other": (lambda: _twice(arm(), 2.0, 3.0), ("'gears 0', 'gears 1'", "cannot move")),
    "two independent of one": (
        lambda: four_bar(j1={"independent": True}, j3={"independent": True}),
        ("'tip'", "'j3' depends on others", "'j1' would do"),
    ),
    "marked but solved for": (
        lambda: four_bar(solved=True, j3={"independent": True}),
        ("'j3'", "marked as independent", "'solution'"),
    ),
}


OPEN: dict[str, tuple[LoopKind, Any, Any, str]] = {  # whatever the angle of the arm, the gap is the same
    "in m": (Planar(), (1, 0, 0), (0, 0, -0.5), "'tip' has its two ends 0.5 m apart;"),
    "in rad": (Planar(), X.transform(np.array([0.3])), ORIGIN, "has its two ends turned by about 0.3 rad;"),
    "of a rod": (Rod(0.25), (0, 3, 4), ORIGIN, "its two ends 5 m apart instead of 0.25 m;"),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_loop_that_cannot_close_says_how_far_it_is_open(name: str) -> None:
    kind, at, meets, gap = OPEN[name]
    b = arm(Z)
    b.loop("tip", kind, "b0", "ground", at=at, meets=meets)
    with refused("the loop 'tip' of joints 'j0' cannot close", gap):
        b.build()


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_cannot_be(name: str) -> None:
    describe, told = LOOPS[name]
    with refused(*told):
        describe().build()


# Functions

PHI: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "with math": (lambda q: math.sin(q[0]) - q[1], ("np.sin",)),
    "that branches": (lambda q: q[0] if q[0] > 0 else q[1], ("np.where",)),
    "that looks too far": (lambda q: q[2], ("out of bounds",)),
    "that fails": (lambda q: {}["x"], ("'x'",)),
    "with a name that is missing": (lambda q: missing, ("missing",)),  # type: ignore[name-defined]  # noqa: F821
    "that gives up": (lambda q: next(iter(())), ()),
    "of no result": (lambda q: None, ("NoneType",)),
    "of a word": (lambda q: "closed", ("'closed'",)),
    "of a matrix": (lambda q: np.array([[q[0], q[1]]]), ("(1, 2)", "vector")),
    "of nothing": (lambda q: np.zeros(0), ("(0,)", "vector")),
    "of NaN": (lambda q: np.array([np.nan * q[0]]), ("nan",)),
    "of NaN at run time": (lambda q: np.sqrt(-1.0 - q[0] ** 2) + q[1], ()),
    "that is zero always": (lambda q: 0.0 * q[0], ()),
    "that is never zero": (lambda q: np.array([0.3]), ("cannot close", "off by 0.3")),
    "without a solution": (lambda q: q[0] ** 2 + q[1] ** 2 + 1.0, ("cannot close",)),
    "with one solution": (lambda q: np.array([q[0] - q[1], q[0] + q[1]]), ("cannot move",)),
}


@pytest.mark.parametrize("name", PHI)
def test_a_function_that_closes_nothing(name: str) -> None:
    function, told = PHI[name]
    b = arm()
    b.couple("c", ["j0", "j1"], function)
    with refused("'c'", *told):
        b.build()


def test_a_function_need_not_be_regular_at_neutral_positions() -> None:
    b = arm()
    b.couple("c", ["j0", "j1"], lambda q: np.sqrt(q[0] ** 2 + q[1] ** 2) - 1.0)
    robot = b.build()
    q = robot.neutral()
    assert np.hypot(*robot.embedding.positions(q)) == pytest.approx(1.0, abs=1e-10)


GAMMA: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "with math": (lambda y: np.array([y[0], math.sin(y[0])]), ("np.sin",)),
    "that branches": (lambda y: np.array([y[0], y[0] if y[0] > 0 else -y[0]]), ("np.where",)),
    "of NaN": (lambda y: np.array([y[0], np.nan * y[0]]), ("nan",)),
    "of NaN everywhere": (lambda y: np.array([y[0], np.sqrt(-1.0 - y[0] ** 2)]), ("no finite positions",)),
}


@pytest.mark.parametrize("name", GAMMA)
def test_a_solution_that_solves_nothing(name: str) -> None:
    function, told = GAMMA[name]
    b = arm()
    b.couple("c", ["j0", "j1"], function, ["j0"])
    with refused("'c'", *told):
        b.build()


def test_a_joint_may_be_held_by_a_constant_solution() -> None:
    b = arm()
    b.couple("c", ["j0", "j1"], lambda y: np.array([y[0], 0.3 + 0.0 * y[0]]), ["j0"])
    robot = b.build()
    assert robot.nv == 1 and robot.joint_positions([1.0])["j1"] == 0.3


SOLVES: dict[str, tuple[Describe, tuple[str, ...]]] = {
    "by other lengths": (
        lambda b: b.couple("γ", ["j1", "j2", "j3"], FourBar(0.3, 1.0, 0.8, 1.2), ["j1"], ["tip"]),
        ("'γ' contradicts 'tip'", "j1 =", "gap"),
    ),
    "by NaN": (
        lambda b: b.couple("γ", ["j1", "j2", "j3"], lambda y: y[0] + np.sqrt(-1 - np.array([0, y[0] ** 2, 0])), ["j1"]),
        ("'γ'",),
    ),
    "in part": (lambda b: b.couple("γ", ["j1", "j2"], gear(2.0), ["j1"], ["tip"]), ("'γ'", "'tip'", "'j3'")),
    "what is not": (lambda b: b.couple("γ", ["j1", "j2"], gear(2.0), ["j1"], ["x"]), ("'γ'", "'x'")),
    "itself": (lambda b: b.couple("γ", ["j1", "j2"], gear(2.0), ["j1"], ["γ"]), ("'γ'",)),
    "a joint": (lambda b: b.couple("γ", ["j1", "j2"], gear(2.0), ["j1"], ["j2"]), ("'γ'", "'j2'")),
    "twice": (
        lambda b: [b.couple(n, ["j1", "j2", "j3"], FourBar(*LENGTHS), ["j1"], ["tip"]) for n in ("γ", "δ")],
        ("'γ'", "'δ'", "'tip'"),
    ),
    "each other": (
        lambda b: (
            b.couple("γ", ["j1", "j2", "j3"], FourBar(*LENGTHS), ["j1"], ["tip", "δ"]),
            b.couple("δ", ["j1", "j2", "j3"], FourBar(*LENGTHS), ["j1"], ["γ"]),
        ),
        ("'γ'", "'δ'"),
    ),
}


@pytest.mark.parametrize("name", SOLVES)
def test_a_loop_that_is_solved_wrongly(name: str) -> None:
    describe, told = SOLVES[name]
    b = four_bar()
    describe(b)
    with refused(*told):
        b.build()


# Masses


def _weights(masses: list[float], kinds: list[Joint], reach: float = 1.0) -> RobotBuilder:
    """Bars, some without mass, one on the other."""
    b, carrier = RobotBuilder("light"), "ground"
    for i, (mass, kind) in enumerate(zip(masses, kinds, strict=True)):
        if mass:
            bar(b, f"b{i}")
        else:
            b.body(f"b{i}")
        b.joint(f"j{i}", kind, carrier, f"b{i}", at=(reach if i else 0.0, 0, 0))
        carrier = f"b{i}"
    return b


def _light_four_bar(*massless: str) -> RobotBuilder:
    b = RobotBuilder("light")
    for name, length in (("crank", 0.3), ("coupler", 1.0), ("rocker", 0.8)):
        if name in massless:
            b.body(name)
        else:
            bar(b, name, length)
    b.joint("j1", Z, "ground", "crank", independent=True)
    b.joint("j2", Z, "crank", "coupler", at=(0.3, 0, 0))
    b.joint("j3", Z, "ground", "rocker", at=(1.1, 0, 0))
    b.loop("tip", Z, "coupler", "rocker", at=(1, 0, 0), meets=(0.8, 0, 0))
    return b


def _massless_rotor() -> RobotBuilder:
    b = arm(Z)
    b.body("rotor")
    b.joint("motor", Z, "ground", "rotor")
    b.couple("gears", ["j0", "motor"], gear(6.0), ["j0"])
    return b


LIGHT: dict[str, tuple[Callable[[], RobotBuilder], tuple[str, ...]]] = {
    "a leaf": (lambda: _weights([1, 0], [Z, Z]), ("'j1'", "'b1'")),
    "two in a row": (lambda: _weights([1, 0, 0], [Z, Y, X]), ("'j2'", "'b2'")),
    "a floating body": (lambda: _weights([0], [Free()]), ("'j0'", "'b0'")),
    "a floating body with an arm": (lambda: _weights([0, 1], [Free(), Z]), ("'j0'", "'b0'")),
    "between two turns about one axis": (lambda: _weights([0, 1], [Z, Z], reach=0.0), ("'j0'", "'b0'")),
    "between two shifts along one axis": (lambda: _weights([0, 1], [Prismatic(), Prismatic()]), ("'j0'", "'b0'")),
    "a whole loop": (lambda: _light_four_bar("crank", "coupler", "rocker"), ("'j1'", "'crank', 'coupler', 'rocker'")),
}
ENOUGH: dict[str, tuple[Callable[[], RobotBuilder], int]] = {
    "a welded leaf": (lambda: _weights([1, 0], [Z, Fixed()]), 1),
    "a leaf with an armature": (lambda: _weights([1, 0], [Z, Revolute(armature=0.1)]), 2),
    "the cross of a universal joint": (lambda: _weights([0, 1], [X, Y], reach=0.0), 2),
    "two crosses of a ball": (lambda: _weights([0, 0, 1], [Z, Y, X], reach=0.0), 3),
    "a carrier of what is heavy": (lambda: _weights([0, 1], [Z, Z]), 2),
    "a coupler": (lambda: _light_four_bar("coupler"), 1),
    "crank and coupler": (lambda: _light_four_bar("crank", "coupler"), 1),
    "a geared rotor": (_massless_rotor, 1),
}


@pytest.mark.parametrize("name", LIGHT)
def test_nothing_resists_a_massless_body(name: str) -> None:
    describe, told = LIGHT[name]
    with refused(*told, "nothing resists", "armature"):
        describe().build()


@pytest.mark.parametrize("name", ENOUGH)
def test_a_massless_body_is_no_trouble_where_something_moves_with_it(name: str) -> None:
    describe, nv = ENOUGH[name]
    assert describe().build().nv == nv


def test_a_thin_rod_spins_without_resistance_until_its_spin_is_locked() -> None:
    with refused("'ball'", "'rod'", "lock_idle"):
        rod_between_balls(thin=True).build()
    assert rod_between_balls(thin=True).build(lock_idle=True).nv == 1


# Wrong states

Q: dict[str, Any] = {
    "short": [0.0, 0.0],
    "long": np.zeros(7),
    "a number": 0.0,
    "NaN": [0.0, math.nan, 0.0],
    "infinite": [0.0, 0.0, math.inf],
    "a word": "neutral",
    "words": ["a", "b", "c"],
    "nothing": None,
    "ragged": [[1, 2], [3]],
    "by name": {"j1": 0.0},
}
METHODS: dict[str, Callable[[Robot, Any], Any]] = {
    "close": lambda robot, q: robot.close(q),
    "check": lambda robot, q: robot.check(q),
    "integrate": lambda robot, q: robot.integrate(q, [0.1]),
    "difference from": lambda robot, q: robot.difference(q, robot.neutral()),
    "difference to": lambda robot, q: robot.difference(robot.neutral(), q),
    "joint_positions": lambda robot, q: robot.joint_positions(q),
    "joint_velocities": lambda robot, q: robot.joint_velocities(q, [1.0]),
    "loop_errors": lambda robot, q: robot.loop_errors(q),
    "explicit_constraint": lambda robot, q: robot.explicit_constraint(q, [1.0]),
    "implicit_constraint": lambda robot, q: robot.implicit_constraint(q, [1.0]),
}


@pytest.fixture(scope="module")
def robot() -> Robot:
    return four_bar(j1={"independent": True}).build()


@pytest.fixture(scope="module")
def limited() -> Robot:
    return four_bar(LIMITED, solved=True).build()


@pytest.fixture(scope="module")
def turning() -> Robot:
    """A floating body and another on a ball: q is x, y, z, w, x, y, z, w, x, y, z."""
    return arm(Free(), Spherical()).build()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", Q)
def test_a_configuration_that_is_none(robot: Robot, name: str, method: str) -> None:
    with refused("q "):
        METHODS[method](robot, Q[name])


@pytest.mark.parametrize("kind", [str, complex])
def test_numbers_are_real_and_not_in_quotes(robot: Robot, kind: type) -> None:
    with refused("q "):
        robot.check([kind(x) for x in robot.neutral()])
    with refused("q "):
        robot.check(robot.neutral().astype(kind))
    with refused("'j1'"):
        robot.pack_q({"j1": kind(0.5)})


@pytest.mark.parametrize("v", [[], [1.0, 2.0], 1.0, [math.nan], [math.inf], "fast", ["fast"], {"j1": 1.0}])
def test_a_velocity_that_is_none(robot: Robot, v: Any) -> None:
    q = robot.neutral()
    calls = robot.integrate, robot.joint_velocities, robot.explicit_constraint, robot.implicit_constraint
    for call in calls:
        with refused("v "):
            call(q, v)


@pytest.mark.parametrize("dt", [math.nan, math.inf, "soon", "1", None, [0.1, 0.2]])
def test_a_time_that_is_none(robot: Robot, dt: Any) -> None:
    with refused("dt must be a finite number"):
        robot.integrate(robot.neutral(), [0.0], dt)


def test_the_offending_state_of_a_batch_is_named(robot: Robot, limited: Robot) -> None:
    q = robot.neutral()
    with refused("q must be 3 finite numbers", "entry 2 in state 1"):
        robot.check([q, [0, 0, math.nan]])
    with refused("'tip'", "in state 1", "does not close"):
        robot.check([q, q + 0.1])
    with refused("'tip'", "in state (1, 0)"):
        robot.check([[q, q], [q + 0.1, q]])
    with refused("'tip'", "held", "'j3'", "in state 1"):
        robot.close([q, [0, 0, 0]], hold=["j3"])
    with refused("'solution'", "in state 1"):
        limited.check([limited.neutral(), [2.5]])


def test_batches_of_different_lengths(robot: Robot) -> None:
    q = np.stack([robot.neutral()] * 2)
    for call in (robot.integrate, robot.joint_velocities, robot.explicit_constraint, robot.implicit_constraint):
        with refused("(2", "(3"):
            call(q, np.zeros((3, 1)))
    with refused("(2", "(3"):
        robot.difference(q, np.stack([robot.neutral()] * 3))
    with refused("j1", "j2"):
        robot.pack_q({"j1": [0.1, 0.2], "j2": [0.1, 0.2, 0.3]})


def test_an_empty_batch_is_a_batch(robot: Robot) -> None:
    none = np.zeros((0, 3))
    robot.check(none)
    assert robot.close(none).shape == robot.integrate(none, [0.1]).shape == (0, 3)
    assert robot.difference(none, none).shape == (0, 1)


def test_an_open_configuration_is_refused(robot: Robot) -> None:
    with refused("loop 'tip'", "'j1', 'j2', 'j3'", "does not close: 'tip' has its two ends", "m apart"):
        robot.check([0.1, 0.2, 0.3])


def test_holding_too_much(robot: Robot) -> None:
    q = robot.neutral()
    np.testing.assert_allclose(robot.close(q, hold=["j1", "j2", "j3"]), q, atol=1e-12)
    for hold in (["j1", "j2"], ["j1", "j2", "j3"]):
        with refused("'tip'", *map(repr, hold), "held", "does not close"):
            robot.close(q + 0.1, hold=hold)
    with refused("no joint", "'j1', 'j2', 'j3'"):
        robot.close(q, hold=["x"])
    for hold in ("j1", [1]):
        with refused("hold must be a list of names", repr(hold)):
            robot.close(q, hold=hold)  # type: ignore[arg-type]


PACKED: dict[str, tuple[dict[Any, Any], tuple[str, ...]]] = {
    "an unknown joint": ({"x": 0.0}, ("'x'", "'j1', 'j2', 'j3'")),
    "a body": ({"crank": 0.0}, ("'crank'", "'j1', 'j2', 'j3'")),
    "a number for a name": ({3: 0.0}, ("3", "'j1', 'j2', 'j3'")),
    "NaN": ({"j1": math.nan}, ("'j1'", "finite")),
    "a word": ({"j1": "up"}, ("'j1'", "'up'")),
    "nothing": ({"j1": None}, ("'j1'", "None")),
}


@pytest.mark.parametrize("name", PACKED)
def test_packing_what_is_no_state(robot: Robot, name: str) -> None:
    given, told = PACKED[name]
    for pack in (robot.pack_q, robot.pack_v):
        with refused(*told):
            pack(given)


def test_packing_what_cannot_be(robot: Robot, limited: Robot, turning: Robot) -> None:
    with refused("'tip'", "held", "'j3'", "does not close"):
        robot.pack_q({"j3": 0.0})
    with refused("joint 'j3' is held"):
        robot.pack_q({"j3": 0.0})
    with refused("joints 'j1', 'j3' are held"):
        robot.pack_q({"j1": 0.0, "j3": 2.0})
    with refused("'j3'", "'j1'"):
        robot.pack_v({"j3": 1.0})
    with refused("'j2'", "leave it out"):
        limited.pack_q({"j1": limited.neutral()[0], "j2": 3.0})
    with refused("'j0'", "7 finite numbers"):
        turning.pack_q({"j0": [0, 0, 0]})
    with refused("'j1'", "3 finite numbers"):
        turning.pack_v({"j1": 1.0})


def test_asking_for_joints_that_have_no_place() -> None:
    b = four_bar(j1={"independent": True})
    b.body("tool")
    b.joint("weld", Fixed(), "coupler", "tool")
    robot, solved = b.build(), four_bar(solved=True).build()
    for ask in (robot.v_slice, robot.q_slice):
        with refused("'x'", "'j1', 'j2', 'j3'"):
            ask("x")
        with refused("'weld'", "fixed"):
            ask("weld")
        with refused("['j1']"):
            ask(["j1"])  # type: ignore[arg-type]
    with refused("'j3'", "depends on others", "'j1'"):
        robot.v_slice("j3")
    with refused("'j3'", "depends on others", "'j1'"):
        solved.q_slice("j3")
    assert robot.v_slice("j1") == slice(0, 1) and robot.q_slice("j3") == slice(2, 3)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("difference from", "difference to", "loop_errors")])
def test_a_solution_has_no_value_out_of_its_reach(limited: Robot, method: str) -> None:
    """A crank beyond its limit: never NaN for an answer."""
    with refused("'tip'", "'solution'"):
        METHODS[method](limited, [2.5])


def test_moving_and_packing_out_of_reach(robot: Robot, limited: Robot) -> None:
    with refused("'solution'"):
        limited.integrate(limited.neutral(), [2.5])
    with refused("'solution'"):
        limited.pack_q({"j1": 2.5})
    by_rocker = four_bar(j3={"independent": True}).build()
    with refused("'tip'", "does not close"):
        by_rocker.integrate(by_rocker.neutral(), [2.0])


@pytest.mark.parametrize("length", [0.0, 1e-200])
def test_a_quaternion_without_length(turning: Robot, length: float) -> None:
    q = turning.neutral()
    q[3] = length
    calls: list[Callable[[], Any]] = [
        lambda: turning.check(q),
        lambda: turning.close(q),
        lambda: turning.integrate(q, np.zeros(9)),
        lambda: turning.difference(q, turning.neutral()),
        lambda: turning.pack_q({"j0": q[:7]}),
    ]
    for call in calls:
        with refused("'j0'", "quaternion"):
            call()


def test_a_quaternion_is_made_of_unit_length(turning: Robot) -> None:
    q = turning.neutral()
    q[3:7] = 0.0, 0.0, 3.0, 4.0
    np.testing.assert_allclose(turning.close(q)[3:7], [0.0, 0.0, 0.6, 0.8])


# Singular states


def dead_centre() -> np.ndarray:
    """Crank and coupler in line: the rocker is at its limit, and does not tell where the crank goes."""
    crank, coupler, rocker, ground = LENGTHS
    reach = crank + coupler
    angle = math.acos((reach**2 + ground**2 - rocker**2) / (2 * reach * ground))
    return np.array([angle, 0.0, math.atan2(reach * math.sin(angle), reach * math.cos(angle) - ground)])


SINGULAR = ["check", "integrate", "joint_velocities", "explicit_constraint", "implicit_constraint"]


@pytest.mark.parametrize("method", SINGULAR)
def test_coordinates_at_a_dead_centre(robot: Robot, method: str) -> None:
    by_rocker = four_bar(j3={"independent": True}).build()
    with refused("loop 'tip'", "singular", "'j3' does not determine the others", "choose 'j"):
        METHODS[method](by_rocker, dead_centre())
    METHODS[method](robot, dead_centre())


def test_the_singular_state_of_a_batch_is_named() -> None:
    by_rocker = four_bar(j3={"independent": True}).build()
    with refused("'tip'", "singular in state 1"):
        by_rocker.check([by_rocker.neutral(), dead_centre()])


@pytest.mark.parametrize("lengths", [FLAT, PARALLELOGRAM])
@pytest.mark.parametrize("method", SINGULAR)
def test_a_mechanism_that_is_singular_itself(lengths: Any, method: str) -> None:
    folding = four_bar(lengths).build()
    with refused("loop 'tip'", "singular", "whatever coordinates are chosen"):
        METHODS[method](folding, np.zeros(3))
    folding.check(folding.neutral())
    assert "singular where its joints start" in str(folding)


def test_a_solution_that_is_singular_at_neutral_positions() -> None:
    """Folded flat, γ has no slope: the neutral configuration is elsewhere, and the flat one is refused."""
    folding = four_bar(FLAT, solved=True).build()
    q = folding.neutral()
    folding.check(q)
    assert all(np.isfinite(w) for w in folding.joint_velocities(q, [1.0]).values())
    with refused("'solution'", "singular"):
        folding.check([0.0])
    with refused("'solution'", "singular"):
        folding.joint_velocities([0.0], [1.0])


def test_a_solved_parallelogram_passes_its_flat_pose() -> None:
    """γ stays regular where φ is not: the reason to give one."""
    solved = four_bar(PARALLELOGRAM, solved=True).build()
    solved.check([0.0])
    assert solved.joint_velocities([0.0], [1.0]) == {"j1": 1.0, "j2": -1.0, "j3": 1.0}


# What a robot says of itself


def test_the_text_of_a_four_bar_with_a_gear() -> None:
    assert str(four_bar(geared=True, j1={"actuated": True}).build()).splitlines() == [
        "four-bar: 4 bodies, 4 joints, 1 loop, 1 coupling; 4 positions, 1 freedom",
        "ground",
        "└─ 1: crank, coupler, rocker, rotor [tip, gears] · 1 of 4 freedoms: j1 (revolute)",
        "driven by 1 motor: j1",
        "note: 3 of the 5 rows of 'tip' follow from the others",
        "note: 'tip', 'gears': closed numerically, to pass dead points; closure=\"analytical\" closes them as four-bar",
    ]


def test_counts_agree_with_their_nouns() -> None:
    assert str(arm(Z).build()).startswith("arm: 1 body, 1 joint; 1 position, 1 freedom\n")
    assert repr(arm(Z).build()) == "<Robot 'arm': 1 body, 1 freedom>"
    assert repr(arm().build()) == "<Robot 'arm': 2 bodies, 2 freedoms>"


def test_an_idle_freedom_is_told_and_locked_on_request() -> None:
    free, locked = rod_between_balls().build(), rod_between_balls().build(lock_idle=True)
    note = str(free).splitlines()[-1]
    assert "'rod'" in note and "'ball'" in note and "idle freedom" in note
    assert (free.nv, locked.nv) == (2, 1)
    assert len(free.idle) == 1 and not locked.idle and "idle" not in str(locked)
    locked.check(locked.neutral())


def test_idle_freedoms_behind_others_are_locked_with_them() -> None:
    """A cross at the end of a rod turns alone about its pin; once it is held, the rod spins with it between balls."""
    b = RobotBuilder("layers")
    for name in ("crank", "rocker", "rod", "cross"):
        bar(b, name)
    b.joint("in", Z, "ground", "crank")
    b.joint("out", Z, "ground", "rocker", at=(1.2, 0, 0))
    b.joint("ball", Spherical(), "crank", "rod", at=(1, 0, 0))
    b.joint("pin", Y, "rod", "cross", at=(1, 0, 0))
    b.loop("socket", Spherical(), "cross", "rocker", meets=(0.9, 0, 0.1))
    free, locked = b.build(), b.build(lock_idle=True)
    assert (free.nv, locked.nv) == (3, 1)
    assert [free.tree.links[link].name for freedom in free.idle for link in freedom.links] == ["cross"]
    assert not locked.idle and "lock of cross, lock of rod" in str(locked)
    locked.check(locked.neutral())


def test_a_universal_joint_leaves_no_idle_freedom() -> None:
    b = RobotBuilder("spatial four-bar")
    for name in ("crank", "rocker", "rod"):
        bar(b, name)
    b.joint("in", Z, "ground", "crank")
    b.joint("out", Z, "ground", "rocker", at=(1.2, 0, 0))
    b.joint("cross", Universal(first=(0, 1, 0), second=(0, 0, 1)), "crank", "rod", at=(1, 0, 0))
    b.loop("socket", Spherical(), "rod", "rocker", at=(1, 0, 0), meets=(0.9, 0, 0))
    robot = b.build()
    assert robot.nv == 1 and not robot.idle


def test_names_come_in_the_order_of_description() -> None:
    b = RobotBuilder("backwards")
    b.joint("wrist", Z, "arm", "hand", at=(1, 0, 0))
    b.joint("shoulder", Y, "ground", "arm")
    bar(b, "hand")
    bar(b, "arm")
    b.contact("tip", "hand", (1, 0, 0))
    b.frame("elbow", "arm")
    robot = b.build()
    assert robot.joint_names == ["wrist", "shoulder"]
    assert robot.body_names == ["hand", "arm"]
    assert robot.frame_names == ["tip", "elbow"]
    assert list(robot.joint_positions(robot.neutral())) == ["wrist", "shoulder"]


def test_parts_come_in_any_order() -> None:
    first, b = four_bar(geared=True, j1={"independent": True}).build(), RobotBuilder("four-bar")
    b.couple("gears", ["j1", "motor"], gear(6.0), independent=["j1"])
    b.spring("s", "rocker", "ground", ORIGIN, ORIGIN, stiffness=1.0)
    b.loop("tip", Z, "coupler", "rocker", at=(1.0, 0, 0), meets=(0.8, 0, 0))
    b.joint("motor", Z, "ground", "rotor")
    b.joint("j2", Z, "crank", "coupler", at=(0.3, 0, 0))
    b.joint("j3", Z, "ground", "rocker", at=(1.1, 0, 0))
    b.joint("j1", Z, "ground", "crank", independent=True)
    b.body("rotor", 0.1, inertia=(1e-4, 1e-4, 1e-4))
    for name, length in (("rocker", 0.8), ("coupler", 1.0), ("crank", 0.3)):
        bar(b, name, length)
    second = b.build()
    assert (second.nq, second.nv) == (first.nq, first.nv) == (4, 1)
    start, found = {"j1": 0.7, "j2": 0.0, "j3": 1.7, "motor": 4.2}, []
    for robot in (first, second):
        q = np.zeros(4)
        for joint, position in start.items():
            q[robot.q_slice(joint)] = position
        found.append(robot.joint_positions(robot.close(q, hold=["j1"])))
    for joint in start:
        assert found[0][joint] == pytest.approx(float(found[1][joint]), abs=1e-9)


def test_fixed_joints_merge_links_and_keep_bodies_and_frames() -> None:
    b = arm(Z)
    b.body("hand", 0.5, inertia=(0.01, 0.01, 0.01))
    b.body("finger")
    b.body("stand", 5.0)
    b.joint("wrist", Fixed(), "b0", "hand", at=(1, 0, 0))
    b.joint("knuckle", Fixed(), "hand", "finger", at=(0, 0, 0.1))
    b.joint("foot", Fixed(), "ground", "stand")
    b.frame("tool", "finger", at=(0, 0, 0.2))
    b.contact("pad", "finger", (0, 0, 0.3))
    robot = b.build()
    assert (robot.nv, len(robot.tree.links)) == (1, 2)
    assert robot.body_names == ["b0", "hand", "finger", "stand"]
    assert robot.joint_names == ["j0", "wrist", "knuckle", "foot"]
    assert robot.frame_names == ["tool", "pad"]
    assert "b0 (+ hand, finger)" in str(robot)
    assert robot.tree.links[1].inertia.m == 1.5
    link, place = robot.tree.place["finger"]
    assert link == 1
    np.testing.assert_allclose(place.r, [1, 0, 0.1])


def test_a_robot_of_fixed_joints_stands_still() -> None:
    robot = arm(Fixed()).build()
    q, v = robot.random_state(0)
    assert robot.nq == robot.nv == len(q) == len(v) == 0
    robot.check(q)
    assert robot.joint_positions(q) == {} and robot.pack_q({}).shape == (0,)


@pytest.mark.parametrize("joint", ["j1", "j2", "j3"])
@pytest.mark.parametrize("mark", ["actuated", "independent"])
def test_marked_joints_are_independent(joint: str, mark: str) -> None:
    marks: dict[str, Any] = {joint: {mark: True}}
    assert four_bar(**marks).build().independent_joints == [joint]


def test_what_must_be_goes_before_what_should_be() -> None:
    robot = four_bar(j1={"actuated": True}, j3={"independent": True}).build()
    assert robot.independent_joints == ["j3"]
    assert four_bar(j1={"actuated": True}, j3={"actuated": True}).build().nv == 1


def test_a_robot_is_frozen() -> None:
    robot = four_bar(geared=True).build()
    with pytest.raises(FrozenInstanceError):
        robot.gravity = np.zeros(3)  # type: ignore[misc]
    arrays = [robot.gravity, robot.bodies["crank"].inertia, robot.joints[1].placement.r, robot.joints[0].kind.armature]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0
    with pytest.raises(TypeError):
        robot.bodies["other"] = robot.bodies["crank"]  # type: ignore[index]
    robot.neutral()[:] = 9.0
    robot.check(robot.neutral())


@pytest.mark.parametrize("names", ["body_names", "joint_names", "frame_names"])
def test_changing_a_list_of_names_does_not_change_the_robot(names: str) -> None:
    robot = four_bar(geared=True).build()
    given = list(getattr(robot, names))
    getattr(robot, names).append("other")
    assert list(getattr(robot, names)) == given
    with refused("no joint 'other'"):
        robot.v_slice("other")


def test_what_is_given_may_change_afterwards() -> None:
    gravity, at, inertia = np.array([0.0, 0.0, -1.0]), np.array([0.1, 0.0, 0.0]), np.eye(3)
    centre, turned, place, joints = np.zeros(3), np.eye(3), Transform(np.eye(3), np.zeros(3)), ["j", "k"]
    b = RobotBuilder("robot", gravity)
    b.body("a", 1.0, centre, inertia)
    b.body("c", 1.0, centre, inertia)
    b.joint("j", Z, "ground", "a", at=place)
    b.joint("k", Z, "a", "c", at=at, turned=turned)
    b.frame("f", "a", at=at, turned=turned)
    b.couple("gears", joints, gear(2.0), joints[:1])
    robot = b.build()
    for array in (gravity, at, inertia, centre, turned, place.E, place.r):
        array[...] = 7.0
    joints.append("x")
    bar(b, "later")
    b.frame("late", "a")
    assert robot.gravity.tolist() == [0, 0, -1] and robot.bodies["a"].centre.tolist() == [0, 0, 0]
    assert np.array_equal(robot.bodies["a"].inertia, np.eye(3))
    assert np.array_equal(robot.joints[0].placement.matrix(), np.eye(6))
    assert robot.bodies["a"].frames["f"].r.tolist() == robot.joints[1].placement.r.tolist() == [0.1, 0, 0]
    assert robot.couplings[0].joints == ("j", "k")
    assert robot.body_names == ["a", "c"] and robot.frame_names == ["f"]


def test_the_same_robot_under_another_gravity(robot: Robot) -> None:
    moon = robot.with_gravity((0, 0, -1.62))
    assert moon.gravity.tolist() == [0, 0, -1.62] and robot.gravity.tolist() == [0, 0, -9.81]
    assert "gravity (0, 0, -1.62) m/s²" in str(moon).splitlines() and "gravity" not in str(robot)
    assert str(moon.with_gravity(robot.gravity)) == str(robot) and moon.tree is robot.tree
    np.testing.assert_array_equal(moon.neutral(), robot.neutral())


def test_a_robot_draws_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = four_bar(geared=True).build()
    path = robot.draw(tmp_path / "picture.svg")
    text = path.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg") and "crank" in text and "tip" in text
    monkeypatch.chdir(tmp_path)
    assert robot.draw() == Path("four-bar.svg") and (tmp_path / "four-bar.svg").exists()


def test_the_same_seed_gives_the_same_state(robot: Robot) -> None:
    q, v = robot.random_state(3)
    again, _ = robot.random_state(np.random.default_rng(3))
    np.testing.assert_array_equal(q, again)
    assert v.shape == (1,)
    robot.check(q)
