"""Random scenes: whatever steps them keeps the laws of contact, gains no energy, and lets nothing sink in.

Loose bodies on a plane or on rough ground, and small robots with loops, limits and dry friction, are stepped by the
compiled step and by `contact_step` with each of the solvers. Every step is judged by a contact problem that is set up
afresh, by the mass matrix, at the state before it. Where shapes meet on their way through the step, their law is
that of the place where they do: see contact/passing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from coupler import mass_matrix
from coupler.contact import Bilateral, ContactProblem, Status, Unilateral, residual, solve
from coupler.contact.formulations import (
    Touch,
    contact_rows,
    floating,
    floating_centre,
    touches,
    traditional_problem,
    unimpeded,
)
from coupler.contact.joint_rows import joint_rows
from coupler.contact.pairs import Pair, pairs_of
from coupler.contact.passing import can_pass
from coupler.contact.residuals import reached
from coupler.contact.scene import ContactScene, Layout, limited_joints
from coupler.contact.solvers import SOLVERS
from coupler.contact.step.program import contact_step_program
from coupler.graph import compile
from coupler.mechanisms import gear
from coupler.model import (
    Box,
    Capsule,
    Continuous,
    Free,
    HeightField,
    Hull,
    Plane,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Shape,
    Sphere,
)
from coupler.rotation import about_axis, matrix_from_quaternion
from coupler.spatial import Transform
from effort import every
from random_robots import place, sample
from reference.stepping import contact_impulses, contact_step

H = 2e-3  # s
STEPS = 30
TOLERANCE = 1e-9  # m/s: the residual that solvers are asked for
ROUNDING = 1e-12  # of the largest terms of a sum
DEPTH = 1e-5  # m: what the curvature of paths within a step can sink in
LARGEST = 100.0  # N s: bodies of a few kg and m/s need no larger impulses
DIRECTIONS = 8  # of Lemke's cones
WAYS = ("compiled", *SOLVERS)
G = 9.81


@dataclass(frozen=True, eq=False)
class Case:
    """A robot with what it may touch, a state, and forces at its joints."""

    robot: Robot
    pairs: tuple[Pair, ...]
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


@dataclass(frozen=True, eq=False)
class Step:
    """What a step leads to: the next state, the impulses of the problem in NumPy, and what was stated of both."""

    q: np.ndarray
    v: np.ndarray
    impulses: np.ndarray
    residual: float
    jammed: float = 0.0


# Scenes


def loose(seed: int, *forms: Any, rough: bool = False) -> Case:
    """Bodies close to each other that fall on a plane, or on a field of hills, turning and sliding."""
    rng = np.random.default_rng(seed)
    b = RobotBuilder("loose")
    ground = HeightField(rng.uniform(-0.03, 0.03, (4, 4)), (1.5, 1.5)) if rough else Plane()
    b.shape("ground", ground, name="ground", friction=rng.uniform(0.1, 1.0), meets=-1)
    positions, velocities = {}, {}
    for i, form in enumerate(forms):
        name, mass = f"body{i}", rng.uniform(0.5, 3.0)
        b.body(name, mass, rng.uniform(-0.01, 0.01, 3), mass * rng.uniform(0.002, 0.003, 3))
        b.joint(name, Free(), "ground", name)
        b.shape(name, form, name=name, group=1, meets=0 if isinstance(form, Box) else 1)
        turn = rng.normal(size=4)
        positions[name] = [0.23 * i - 0.2, 0.05 * rng.normal(), 0.5, *turn / np.linalg.norm(turn)]
        velocities[name] = [*rng.uniform(-3.0, 3.0, 3), *rng.uniform(-0.5, 0.5, 3)]
    robot = b.build()
    q, pairs = robot.pack_q(positions), tuple(pairs_of(robot, friction=0.4))
    for _ in range(4):  # down, until each is 2 mm above the ground
        for name in positions:
            gaps = [touch.contact.gap for touch in touches(robot, q, [pair for pair in pairs if _lands(pair, name)])]
            q[robot.q_slice(name)][2] -= min(gaps) - 2e-3
    return Case(robot, pairs, q, robot.pack_v(velocities), np.zeros(robot.nv))


def _lands(pair: Pair, body: str) -> bool:
    return (pair.one.body, pair.other.body) == (body, "ground")


def articulated(name: str, seed: int) -> Case:
    """A random robot with balls on some bodies, 1 mm above a floor, with limits and dry friction, and motors on."""
    rng, robot = np.random.default_rng(seed), sample(name).robot
    q, v = robot.random_state(seed)
    p = robot.embedding.positions(q)
    v = 2.0 * v / np.abs(robot.embedding.velocities(p, v)).max()
    robot = _hindered(robot, p, rng)
    some = rng.permutation([body for body in robot.bodies if robot.tree.place[body][0]])[:2]
    balls = tuple(Shape(body, body, Sphere(0.1), place(rng), friction=0.5, meets=0) for body in some)
    floor = Shape("floor", "ground", Plane(), Transform.identity(), meets=-1)
    level = replace(robot, shapes=(floor, *balls))
    lowest = min(touch.contact.gap for touch in touches(level, q, pairs_of(level)))
    robot = replace(level, shapes=(replace(floor, at=Transform.translation((0, 0, lowest - 1e-3))), *balls))
    return Case(robot, tuple(pairs_of(robot)), q, v, rng.normal(size=robot.nv))


def _hindered(robot: Robot, p: np.ndarray, rng: np.random.Generator) -> Robot:
    """With limits some way from where joints are, and dry friction, in half of their entries."""
    links = [robot.tree.links[0]]
    for i, link in enumerate(robot.tree.links[1:], start=1):
        n, at = link.kind.nv, p[robot.tree.positions(i)]
        kind = replace(link.kind, friction=rng.uniform(0.0, 1.0, n) * (rng.random(n) < 0.5))
        if kind.nq == n > 0 and not isinstance(kind, Continuous):
            ends = np.where(rng.random((2, n)) < 0.5, rng.uniform(0.0, 0.05, (2, n)), np.inf)
            kind = replace(kind, lower=at - ends[0], upper=at + ends[1])
        links.append(replace(link, kind=kind))
    return replace(robot, tree=replace(robot.tree, links=tuple(links)))


SCENES: dict[str, Callable[[], Case]] = {
    "balls": lambda: loose(1, Sphere(0.1), Sphere(0.1), Sphere(0.12)),
    "capsules": lambda: loose(5, Capsule(0.05, 0.2), Capsule(0.06, 0.1)),
    "box and ball": lambda: loose(0, Box((0.15, 0.2, 0.1)), Sphere(0.08)),
    "hull on hills": lambda: loose(3, Hull(np.random.default_rng(1).normal(size=(6, 3)) * 0.07), rough=True),
    "box on hills": lambda: loose(3, Box((0.15, 0.2, 0.1)), rough=True),
    "gear": lambda: articulated("gear", 1),
    "differential": lambda: articulated("differential", 5),
    "four-bar": lambda: articulated("four-bar", 1),
    "another gear": lambda: articulated("gear", 3),
    "loop afloat": lambda: articulated("spherical loop afloat", 6),
}


@cache
def scene(name: str) -> Case:
    return SCENES[name]()


# Ways to step


def compiled(case: Case) -> Iterator[Step]:
    """The compiled step, its signed impulses of limits put into a row for each side."""
    robot, what = case.robot, ContactScene(case.pairs, H, tolerance=TOLERANCE, sweeps=5_000)
    layout, run = Layout(robot, what), compile(contact_step_program(robot, what))
    n, ends = 3 * layout.contacts, limited_joints(robot)
    state = layout.start(robot, case.q, case.v)
    while True:
        after = run(state, case.tau)
        assert np.isfinite(after).all()
        found = {name: after[at] for name, at in layout.places.items()}
        contacts, limits, rubbing = np.split(found["impulses"], [n, n + len(ends)])
        sides = []
        for (link, j), impulse in zip(ends, limits, strict=True):
            kind = robot.tree.links[link].kind
            sides += [max(impulse, 0.0)] * bool(np.isfinite(kind.lower[j]))
            sides += [max(-impulse, 0.0)] * bool(np.isfinite(kind.upper[j]))
        told = (float(found[name][0]) for name in ("residual", "jammed"))
        yield Step(found["q"], found["v"], np.concatenate([contacts, sides, rubbing]), *told)
        state = after[: layout.state]


def solved(case: Case, method: str) -> Iterator[Step]:
    """`contact_step`, from the impulses of the step before."""
    q, v, start = case.q, case.v, None
    while True:
        done = contact_step(
            *(case.robot, q, v, case.tau, H, case.pairs), method=method, start=start, tolerance=TOLERANCE
        )
        assert done.solution.status is Status.SOLVED
        q, v, start = done.q, done.v, done.solution.impulses
        yield Step(q, v, start, done.solution.residual)


@dataclass(frozen=True)
class Laws:
    """What a step must keep: its contact problem, its contacts, and J of all rows."""

    problem: ContactProblem
    touches: list[Touch]
    rows: np.ndarray


def stepped(case: Case, way: str) -> Iterator[Step]:
    return compiled(case) if way == "compiled" else solved(case, way)


def judged(case: Case, way: str, steps: int = STEPS) -> dict[str, float]:
    """The worst of what some steps did, whose cones are polyhedral if they are Lemke's; no law may be broken."""
    robot, q, v = case.robot, case.q, case.v
    worst = {"residual": 0.0, "depth": 0.0, "pressed": 0.0, "stopped": 0.0}
    pressed = None
    for step in islice(stepped(case, way), steps):
        laws = laws_of(case, q, v, pressed)
        problem, found = laws.problem, laws.touches
        w, lam = problem.velocities(step.impulses), step.impulses
        size = np.abs(problem.b).max(initial=0.0) + (np.abs(problem.A) @ np.abs(lam)).max(initial=0.0)
        error, slack = residual(problem, lam), 1e3 * ROUNDING * (1.0 + size)
        assert np.abs(lam).max() <= LARGEST
        assert error.total <= step.residual + slack
        if way == "lemke":
            assert max(error.cone, error.complementarity) <= TOLERANCE + slack
            _judge_polygons(problem, lam, w, slack)
        else:
            assert error.total <= TOLERANCE + slack
            worst["residual"] = max(worst["residual"], error.total)
        _judge_motion(case, laws, q, v, step, max(error.cone, error.complementarity) + slack)
        contacts = 3 * len(found)
        worst["depth"] = max(worst["depth"], *(-touch.contact.gap for touch in found))
        worst["pressed"] = max(worst["pressed"], lam[:contacts:3].max())
        worst["stopped"] = max(worst["stopped"], np.abs(lam[contacts:]).max(initial=0.0))
        q, v, pressed = step.q, step.v, lam
        robot.check(q)
    return worst


def laws_of(case: Case, q: np.ndarray, v: np.ndarray, pressed: np.ndarray | None) -> Laws:
    """What a step must keep, by the impulses of the step before it."""
    robot = case.robot
    problem, found = traditional_problem(robot, q, v, case.tau, H, case.pairs)
    rows = np.vstack([contact_rows(robot, q, found), joint_rows(robot, q, H).rows])
    if not any(can_pass(touch.pair) for touch in found):
        return Laws(problem, found, rows)
    met = contact_impulses(robot, q, v, case.tau, H, case.pairs, start=pressed, tolerance=TOLERANCE)
    b, n = problem.b.copy(), 3 * len(found)
    b[:n] = (met.rows @ met.free)[:n]
    b[:n:3] += [touch.contact.gap / H for touch in met.touches]
    A = met.rows @ np.linalg.solve(mass_matrix(robot, q), met.rows.T)
    return Laws(ContactProblem(A, b, problem.blocks), met.touches, met.rows)


def _judge_polygons(problem: ContactProblem, lam: np.ndarray, w: np.ndarray, slack: float) -> None:
    """λ_t is within the polygon of µ λ_n, and of all in it dissipates most: as one of its corners. [002, eq. 4b, 4c]"""
    angles = 2.0 * np.pi / DIRECTIONS * np.arange(DIRECTIONS)
    corners = np.stack([np.cos(angles), np.sin(angles)])
    sides = np.stack([np.cos(angles + np.pi / DIRECTIONS), np.sin(angles + np.pi / DIRECTIONS)])
    (cones,) = problem.cones
    radius = cones.friction[0] * lam[cones.rows[0]]
    t, slip = lam[cones.rows[1:3]].T, w[cones.rows[1:3]].T
    assert ((t @ sides).max(axis=1) <= np.cos(np.pi / DIRECTIONS) * radius + slack).all()
    most = radius * (-slip @ corners).max(axis=1, initial=0.0)
    np.testing.assert_allclose(-(t * slip).sum(axis=1), most, rtol=0, atol=(slack + TOLERANCE) * (1.0 + radius.max()))


def _judge_motion(case: Case, laws: Laws, q: np.ndarray, v: np.ndarray, step: Step, error: float) -> None:
    """Momentum is what impulses make of it, and they feed no energy but what brings overlaps apart.

    With w = J v⁺ + closures: ½ v⁺ᵀHv⁺ − ½ uᵀHu = λᵀ J v⁺ − ½ λᵀAλ ≤ λᵀ (w − closures), of which λᵀw ≤ 0.
    """
    robot, lam = case.robot, step.impulses
    found, joints, H_q = laws.touches, joint_rows(robot, q, H), mass_matrix(robot, q)
    J, u = laws.rows, unimpeded(robot, q, v, case.tau, H)
    after = step.v.copy()
    for joint in floating(robot):
        own, place = robot.v_slice(joint), robot.q_slice(joint)
        R, R_after = (matrix_from_quaternion(x[place][3:]) for x in (q, step.q))
        centre = np.cross(after[own][:3], floating_centre(robot, joint))
        after[own][3:] = R.T @ R_after @ (after[own][3:] + centre) - centre
    momentum = H_q @ (after - u)
    np.testing.assert_allclose(
        momentum, J.T @ lam, rtol=0, atol=1e-9 * (1.0 + np.abs(H_q @ u).max() + np.abs(lam).max())
    )
    closures = np.zeros(len(lam))
    closures[0 : 3 * len(found) : 3] = [touch.contact.gap / H for touch in found]
    closures[3 * len(found) :] = joints.closures
    before = 0.5 * u @ H_q @ u
    fed = lam @ np.maximum(-closures, 0.0)
    assert 0.5 * after @ H_q @ after - before <= fed + error * np.abs(lam).sum() + 1e-9 * (before + fed)


@pytest.mark.parametrize("name", every(3, SCENES))
def test_every_step_keeps_the_laws_gains_no_energy_and_lets_nothing_sink_in(name: str) -> None:
    case = scene(name)
    for way in WAYS:
        worst = judged(case, way)
        assert worst["depth"] <= DEPTH
        assert worst["pressed"] > 0.0
        assert worst["stopped"] > 0.0 or not joint_rows(case.robot, case.q, H).blocks


@pytest.mark.parametrize(("name", "seed"), every(3, [("rod loop", 1), ("revolute loop", 0), ("four-bar", 0)], first=2))
def test_what_solvers_do_not_reach_they_say(name: str, seed: int) -> None:
    """A contact of a robot with fewer freedoms than its rows can jam, and not every method gets to the end of it."""
    case = articulated(name, seed)
    q, v = case.q, case.v
    for step in islice(compiled(case), STEPS):
        problem, _ = traditional_problem(case.robot, q, v, case.tau, H, case.pairs)
        assert residual(problem, step.impulses).total <= TOLERANCE
        for method in SOLVERS:
            solution = solve(problem, method, tolerance=TOLERANCE, start=None, iterations=1_000)
            error = residual(problem, solution.impulses).total
            assert np.isfinite(solution.impulses).all()
            assert solution.residual == pytest.approx(error, rel=1e-9, abs=1e-15)
            if method != "lemke" and solution.status is Status.SOLVED:
                assert reached(problem, solution.impulses, error, TOLERANCE)
            assert solution.status in (Status.SOLVED, Status.LIMIT)
        q, v = step.q, step.v


# Degenerate scenes


def built(b: RobotBuilder, positions: dict[str, Any], velocities: dict[str, Any] | None = None, **options: Any) -> Case:
    robot = b.build()
    v = robot.pack_v(velocities) if velocities else np.zeros(robot.nv)
    return Case(robot, tuple(pairs_of(robot, **options)), robot.pack_q(positions), v, np.zeros(robot.nv))


@cache
def box_on_its_face(friction: float, *velocity: float) -> Case:
    """2 kg on four corners, which touch the ground: 12 rows for 6 freedoms."""
    b = RobotBuilder("box")
    b.body("box", 2.0, inertia=(0.02, 0.02, 0.02))
    b.joint("box", Free(), "ground", "box")
    b.shape("box", Box((0.4, 0.4, 0.1)))
    b.shape("ground", Plane(), friction=friction)
    return built(b, {"box": [0, 0, 0.05, 1, 0, 0, 0]}, {"box": velocity} if velocity else None)


@pytest.mark.parametrize("way", WAYS)
def test_a_box_rests_on_its_four_corners(way: str) -> None:
    case = box_on_its_face(0.5)
    for step in islice(stepped(case, way), 5):
        assert np.abs(step.v).max() < 1e-8
        assert step.impulses[::3].sum() == pytest.approx(2.0 * G * H, rel=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_without_friction_a_box_keeps_its_speed_and_spin(way: str) -> None:
    case = box_on_its_face(0.0, 0, 0, 1.0, 0.8, 0.3, 0)
    judged(case, way, 5)
    for step in islice(stepped(case, way), STEPS):
        assert step.v[2] == pytest.approx(1.0, abs=1e-7)
        assert np.hypot(*step.v[3:5]) == pytest.approx(np.hypot(0.8, 0.3), abs=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_friction_of_a_thousand_breaks_no_law(way: str) -> None:
    """What slides is stopped at once, and topples."""
    judged(box_on_its_face(1e3, 0, 0, 1.0, 1.0, 0.3, 0), way, 5)
    case = scene("box and ball")
    worst = judged(replace(case, pairs=tuple(replace(pair, friction=1e3) for pair in case.pairs)), way)
    assert worst["depth"] <= DEPTH


@cache
def heavy_on_light(ratio: float) -> Case:
    """A ball that many times as heavy as the box of 1 kg below it."""
    b = RobotBuilder("heavy on light")
    b.shape("ground", Plane(), friction=0.5)
    b.body("box", 1.0, inertia=(0.01, 0.01, 0.01))
    b.body("ball", ratio, inertia=(0.004 * ratio,) * 3)
    for name, form in (("box", Box((0.4, 0.4, 0.1))), ("ball", Sphere(0.1))):
        b.joint(name, Free(), "ground", name)
        b.shape(name, form)
    at = {"box": [0, 0, 0.05, 1, 0, 0, 0], "ball": [0.05, 0.02, 0.2, 1, 0, 0, 0]}
    return built(b, at, friction=0.5)


@pytest.mark.parametrize(
    ("ratio", "ways"),
    [(1e2, WAYS), (1e4, ("compiled", "cascade", "admm", "bisection", "lemke")), (1e6, ("compiled", "cascade"))],
)
def test_large_mass_ratios_are_solved(ratio: float, ways: tuple[str, ...]) -> None:
    """Sweeps of projected Gauss-Seidel are too few for 1e4."""
    case = heavy_on_light(ratio)
    ends = [(pair.one.body, pair.other.body) for pair in case.pairs for _ in range(pair.count)]
    for way in ways:
        momentum = 0.0
        for step in islice(stepped(case, way), 5):
            assert np.abs(step.v).max() < 1e-7
            before, momentum = momentum, float(step.v[5] + ratio * step.v[11])
            grounded = [lam for (_, other), lam in zip(ends, step.impulses[::3], strict=True) if other == "ground"]
            assert sum(grounded) == pytest.approx((1.0 + ratio) * G * H + momentum - before, rel=1e-9)


def test_a_compiled_step_tells_the_residual_of_a_large_mass_ratio() -> None:
    case = heavy_on_light(1e4)
    step = next(compiled(case))
    problem, _ = traditional_problem(case.robot, case.q, case.v, case.tau, H, case.pairs)
    error = residual(problem, step.impulses).total
    assert step.residual == pytest.approx(error, rel=1e-6, abs=1e-9)


def walls() -> Case:
    """A ball of 0.2 m between walls that are 0.18 m apart."""
    b = RobotBuilder("walls", (0.0, 0.0, 0.0))
    b.body("ball", 1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("ball", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1))
    for x, turn in ((-0.09, 0.5 * np.pi), (0.09, -0.5 * np.pi)):
        b.shape("ground", Plane(), at=Transform(about_axis((0.0, 1.0, 0.0), turn).T, (x, 0.0, 0.0)))
    return built(b, {"ball": [0.01, 0, 0, 1, 0, 0, 0]})


def limits_that_exclude_each_other() -> Case:
    """A hinge that must be at 0.5 rad or more, and its rotor at −1 rad or less."""
    b = RobotBuilder("geared", (0.0, 0.0, 0.0))
    b.body("link", 1.0, inertia=(0.1, 0.1, 0.1))
    b.body("rotor", 0.1, inertia=(1e-4, 1e-4, 1e-4))
    b.joint("hinge", Revolute(lower=0.5), "ground", "link")
    b.joint("motor", Revolute(upper=-1.0), "ground", "rotor")
    b.couple("gear", ["hinge", "motor"], gear(6.0), ["hinge"])
    return built(b, {"hinge": 0.0})


def limit_in_the_ground() -> Case:
    """A ball of 0.2 m on a slide that ends 0.05 m above the ground."""
    b = RobotBuilder("slide")
    b.body("ball", 3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(upper=0.05), "ground", "ball")
    b.shape("ball", Sphere(0.1))
    b.shape("ground", Plane())
    return built(b, {"slide": 0.06})


@pytest.mark.parametrize(
    ("make", "depth"), [(walls, 0.02), (limits_that_exclude_each_other, 1.0), (limit_in_the_ground, 0.04)]
)
def test_what_is_kinematically_impossible_is_said_to_be_so(make: Callable[[], Case], depth: float) -> None:
    """Solvers of problems find none, and prove it; a step leaves overlaps as they are, and tells how deep they are."""
    case = make()
    problem, _ = traditional_problem(case.robot, case.q, case.v, case.tau, H, case.pairs)
    for method in SOLVERS:
        solution = solve(problem, method)
        assert solution.status is Status.INFEASIBLE
        assert np.isfinite(solution.impulses).all()
        assert solution.residual > 1.0
    step = next(compiled(case))
    assert step.residual <= 1e-8 and step.jammed == pytest.approx(depth)
    np.testing.assert_allclose(step.q, case.q, atol=1e-9)


@pytest.mark.parametrize("method", SOLVERS)
def test_a_limit_against_a_constraint_is_impossible(method: str) -> None:
    """Both move the same way: one asks for w = 0, and the other for w ≥ 1."""
    solution = solve(ContactProblem(np.ones((2, 2)), np.array([-1.0, 0.0]), [Unilateral(), Bilateral()]), method)
    assert solution.status is Status.INFEASIBLE
    assert np.isfinite(solution.impulses).all()
