"""Dynamics of random robots, against a dense reference that walks the spanning tree, and against energy and power.

The reference knows joints and G, g of the loops; the algorithms know clusters. What they share, the joints' subspaces
and their rates, is checked by power: the energy changes as fast as forces work, by differences along the motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from coupler import ModelError, bias_force, forward_dynamics, inverse_dynamics
from coupler.mechanisms import gear, linear
from coupler.model import Free, Joint, Prismatic, Revolute, Robot, RobotBuilder, Spherical, Universal
from coupler.model.elements import PointElement
from coupler.spatial import Transform, skew
from effort import sweep
from random_robots import ROBOTS, Rng, Sketch, sample

FORCES = 1e-12  # relative to the largest force; 4e-14 is reached
ACCELERATIONS = 1e-10  # relative to the largest; 2e-12 is reached, on the way there and back
SLOPE = 1e-7  # difference quotients against derivatives
STATES = 4


# Robots whose clusters hang on several bodies of another [001, fig. 5], and with clusters that look alike


def crossed(rng: Rng, floating: bool) -> Robot:
    """Storeys of geared bodies, each body of a storey on another body of the storey below, some of them crosswise."""
    sketch = Sketch(rng, "crossed")
    base = sketch.joint("free", "ground") if floating else "ground"
    a, b = sketch.joint("revolute", base, "a"), sketch.joint("revolute", base, "b")
    sketch.couple("first", [a, b], gear(-2.0, 0.1), [a])
    c, d = sketch.joint("revolute", b, "c"), sketch.joint("prismatic", a, "d")
    sketch.couple("second", [c, d], gear(0.7), [c])
    e, f = sketch.joint("helical", c, "e"), sketch.joint("continuous", d, "f")
    sketch.couple("third", [e, f], lambda q: q[0] - 0.5 * q[1] - 0.2 * np.sin(q[1]))
    g, h, i = sketch.joint("revolute", e, "g"), sketch.joint("revolute", e, "h"), sketch.joint("revolute", f, "i")
    sketch.couple("fourth", [g, h, i], linear([[1.0], [0.5], [-1.5]]), [g])
    sketch.chain("spherical", h)
    sketch.chain("prismatic", d)
    return sketch.build()


def three_carriers(rng: Rng, floating: bool) -> Robot:
    """A cluster on three bodies of another, with two freedoms and a chain of its own, and one on two of those."""
    sketch = Sketch(rng, "three carriers")
    base = sketch.joint("free", "ground") if floating else "ground"
    lower = [sketch.joint("revolute", base, name) for name in "abc"]
    sketch.couple("lower", lower, linear([[1.0, 0.0], [0.3, -1.2], [0.0, 1.0]]), [lower[0], lower[2]])
    upper = [sketch.joint("revolute", on, name) for on, name in zip((lower[1], lower[2], lower[0]), "def", strict=True)]
    last = sketch.joint("revolute", upper[0], "g")
    G = np.vstack([np.eye(2), rng.normal(size=(2, 2))])
    sketch.couple("upper", [*upper, last], linear(G), upper[:2])
    top = [sketch.joint("prismatic", on, name) for on, name in ((last, "h"), (upper[2], "i"))]
    sketch.couple("top", top, gear(1.3), [top[0]])
    return sketch.build()


def alike(rng: Rng, floating: bool) -> Robot:
    """Geared links and loops that differ in their numbers only, one on the other."""
    sketch = Sketch(rng, "alike")
    end = sketch.joint("free", "ground") if floating else "ground"
    for i in range(3):
        link, rotor = sketch.joint("revolute", end, f"link{i}"), sketch.joint("revolute", end, f"rotor{i}")
        sketch.couple(f"gear{i}", [link, rotor], gear(4.0 + i), [link])
        end = link
    for i in range(2):
        one, other = sketch.chain("revolute universal", end), sketch.chain("revolute revolute prismatic", end)
        sketch.loop("spherical", one, other, f"loop{i}")
        end = other
    return sketch.build()


def welded(rng: Rng, floating: bool) -> Robot:
    """Bodies that are welded to the ground and to each other, with axes of coordinates among the others."""
    sketch = Sketch(rng, "welded")
    base = sketch.joint("free", "ground") if floating else "ground"
    a = sketch.chain("fixed fixed", base)
    b = sketch.joint(Revolute(axis=(0, 1, 0)), a, at=Transform.translation(np.array([0.0, 0.0, 0.3])))
    c = sketch.chain("fixed fixed", b)
    d = sketch.joint(Prismatic(axis=(-1, 0, 0)), c, at=Transform.identity())
    sketch.chain("fixed", "ground")
    sketch.chain("planar fixed universal cylindrical", sketch.chain("fixed", d))
    return sketch.build()


OWN: dict[str, Callable[[Rng, bool], Robot]] = {
    "crossed": crossed,
    "three carriers": three_carriers,
    "alike": alike,
    "welded": welded,
}


@cache
def robot_of(name: str) -> Robot:
    if name in ROBOTS:
        return sample(name).robot
    return OWN[name.removesuffix(" afloat")](np.random.default_rng([1, *name.encode()]), name.endswith(" afloat"))


EVERY = [*ROBOTS, *OWN, *(f"{name} afloat" for name in OWN)]


PARTS = np.array([[1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])  # of springs, that count


def equipped(robot: Robot, rng: Rng) -> Robot:
    """The same robot with springs, dampers and armatures at its joints and between its bodies, tilted.

    A free joint gets no spring of its own: that one has no energy.
    """

    def passive(kind: Any) -> Any:
        spring = 0.0 if isinstance(kind, Free) else rng.uniform(0, 20, () if isinstance(kind, Spherical) else kind.nv)
        some = [rng.uniform(0.0, 1.0, kind.nv) * (rng.random() < 0.7) for _ in range(2)]
        rest = kind.integrate(kind.neutral(), rng.uniform(-0.5, 0.5, kind.nv))
        return replace(kind, stiffness=spring, rest=rest, damping=some[0], armature=some[1])

    ground, *links = robot.tree.links
    tree = replace(robot.tree, links=(ground, *(replace(link, kind=passive(link.kind)) for link in links)))
    bodies, elements = ["ground", *robot.bodies], []
    for i in range(len(PARTS)):
        first, second = rng.choice(len(bodies), 2, replace=False)
        ends = rng.uniform(-0.3, 0.3, (2, 3))
        numbers = rng.uniform(0, [50.0, 0.5, 5.0, 3.0]) * PARTS[i]
        elements.append(PointElement(f"spring{i}", bodies[first], bodies[second], *ends, *numbers))
    return replace(robot, tree=tree, elements=tuple(elements), gravity=rng.normal(size=3) * 5.0)


# States


@dataclass(frozen=True, eq=False)
class Case:
    """A robot with some states.

    Attributes:
        robot: which.
        q, v: a batch of states, so slow that differences along the motion are good.
        tau, a, f_ext: random forces and accelerations.
        expected: by the reference, for each state.
        stretch: how much loops magnify rounding, from 1 up.
    """

    robot: Robot
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    a: np.ndarray
    f_ext: np.ndarray
    expected: list[Dense]
    stretch: float


@cache
def case_of(robot: Robot) -> Case:
    rng = np.random.default_rng(5)
    q, v = map(np.array, zip(*(robot.random_state(seed) for seed in range(STATES)), strict=True))
    _, g = robot.explicit_constraint(q, v)
    w = np.concatenate([x.reshape(STATES, -1) for x in robot.joint_velocities(q, v).values()], axis=1)
    v = v / np.maximum.reduce([np.ones(STATES), np.abs(w).max(axis=1), np.sqrt(np.abs(g).max(axis=1))])[:, None]
    tau, a = rng.normal(size=(2, STATES, robot.nv))
    f_ext = rng.normal(size=(STATES, len(robot.bodies), 6))
    return Case(robot, q, v, tau, a, f_ext, [Dense(robot, *s) for s in zip(q, v, strict=True)], stretch(robot, q))


def stretch(robot: Robot, q: np.ndarray) -> float:
    K, _ = robot.implicit_constraint(q)
    dependent = np.setdiff1d(np.arange(K.shape[-1]), robot.embedding.v_index)
    if not len(dependent):
        return 1.0
    return float((np.linalg.norm(K, 2, axis=(1, 2)) / np.linalg.norm(K[..., dependent], -2, axis=(1, 2))).max())


# Compiling takes most of the time: of a robot on the ground and the same one afloat, each is used in one way.
SLOW = ("parallel", "overlapping", "delta", "geared loop", "alike afloat")
BARE = [name for name in EVERY if not name.endswith(" afloat")]
DRESSED = [name for name in EVERY if f"{name} afloat" not in EVERY and name not in SLOW]
# In the short run, each is used in one way at most.
SHORT_BARE = [name for name in BARE if name not in SLOW][::5]
SHORT_DRESSED = [name for name in DRESSED if name not in SHORT_BARE][::5]


@pytest.fixture(scope="module", params=sweep(BARE, SHORT_BARE))
def plain(request: pytest.FixtureRequest) -> Case:
    return case_of(robot_of(request.param))


@pytest.fixture(scope="module", params=sweep(DRESSED, SHORT_DRESSED))
def passive(request: pytest.FixtureRequest) -> Case:
    return case_of(equipped(robot_of(request.param), np.random.default_rng(7)))


# The reference


def motion_cross(v: np.ndarray) -> np.ndarray:
    """v×, 6 × 6; v×* is its negative transpose."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


class Dense:
    """Dynamics of one state from Jacobians of all links: H v̇ + c = τ + Σ Jᵀ f.

    Attributes:
        X: from the world to each link.
        J: of each link, 6 × nv, in its own frame.
        V: velocity of each link, in its own frame.
        H, c: mass matrix and bias force.
        w: velocities of all joints.
        lost: power of dampers, W.
    """

    def __init__(self, robot: Robot, q: np.ndarray, v: np.ndarray) -> None:
        tree, p = robot.tree, robot.embedding.positions(q)
        G, g = robot.explicit_constraint(q, v)
        nw = int(tree.v_start[-1])
        self.robot, self.p, self.w = robot, p, G @ v
        self.X, jacobians, self.V = [Transform.identity()], [np.zeros((6, nw))], [np.zeros(6)]
        bias = [np.array([0.0, 0.0, 0.0, *-robot.gravity])]
        H, c, self.lost = np.zeros((nw, nw)), np.zeros(nw), 0.0
        for i, link in enumerate(tree.links[1:], 1):
            own, entries = p[tree.positions(i)], tree.velocities(i)
            step, S, w = link.kind.transform(own) @ link.placement, link.kind.subspace(own), self.w[entries]
            up = step.matrix()
            J = up @ jacobians[link.parent]
            J[:, entries] += S
            V = up @ self.V[link.parent] + S @ w
            turning = motion_cross(V) @ S @ w + link.kind.subspace_rate(own, w) @ w
            bias.append(up @ bias[link.parent] + turning)
            inertia = link.inertia.matrix()
            H += J.T @ inertia @ J + np.diag(np.bincount(entries, link.kind.armature, nw))
            c += J.T @ (inertia @ bias[i] - motion_cross(V).T @ inertia @ V)
            c[entries] += spring_force(link.kind, own) + link.kind.damping * w
            self.lost += float(link.kind.damping @ w**2)
            self.X.append(step @ self.X[link.parent])
            jacobians.append(J)
            self.V.append(V)
        self.J = [J @ G for J in jacobians]
        self.H, self.c = G.T @ H @ G, G.T @ (c + H @ g)
        for element in robot.elements:
            self._pull(element)

    def _pull(self, element: PointElement) -> None:
        """Adds the force of a spring by its virtual work: T ∂L/∂v."""
        (p1, J1), (p2, J2) = (
            self.point(element.first, element.first_point),
            self.point(element.second, element.second_point),
        )
        L = np.linalg.norm(p2 - p1)
        dL = (p2 - p1) @ (J2 - J1) / L
        rate = float((p2 - p1) @ (self._velocity(element, 1) - self._velocity(element, 0)) / L)
        tension = element.stiffness * (L - element.free_length) + element.pretension + element.damping * rate
        self.c = self.c + tension * dL
        self.lost += element.damping * rate**2

    def point(self, body: str, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a point of a body is in the world, and its 3 × nv Jacobian there."""
        link, onto = self.robot.tree.place[body]
        X = onto @ self.X[link]
        J = X.E.T @ np.hstack([-skew(at), np.eye(3)]) @ onto.matrix() @ self.J[link]
        return X.r + X.E.T @ at, J

    def _velocity(self, element: PointElement, end: int) -> np.ndarray:
        body = (element.first, element.second)[end]
        link, onto = self.robot.tree.place[body]
        V = onto.matrix() @ self.V[link]
        at = (element.first_point, element.second_point)[end]
        return (onto @ self.X[link]).E.T @ (V[3:] + np.cross(V[:3], at))

    def from_forces(self, f_ext: np.ndarray) -> np.ndarray:
        """Σ Jᵀ f of forces on bodies, about the world's origin."""
        links = [self.robot.tree.place[body][0] for body in self.robot.bodies]
        forces = zip(links, f_ext, strict=True)
        return np.sum([self.J[link].T @ self.X[link].force_matrix() @ f for link, f in forces], axis=0)


def spring_force(kind: Joint, own: np.ndarray) -> np.ndarray:
    """The force that the spring of a joint takes to hold it there: the slope of its energy along each velocity."""
    if kind.nq == kind.nv:
        return kind.stiffness * kind.difference(kind.rest, own)
    return np.array([slope(partial(spring_energy_on, kind, own, u)) for u in np.eye(kind.nv)])


def spring_energy_on(kind: Joint, own: np.ndarray, direction: np.ndarray, t: float) -> float:
    """The energy of a joint's spring after time t with a velocity, J."""
    return 0.5 * float(kind.stiffness @ kind.difference(kind.rest, kind.integrate(own, t * direction)) ** 2)


def potential(robot: Robot, q: np.ndarray) -> float:
    """The energy of weight and springs, J."""
    tree, p = robot.tree, robot.embedding.positions(q)
    X, total = [Transform.identity()], 0.0
    for i, link in enumerate(tree.links[1:], 1):
        own = p[tree.positions(i)]
        X.append(link.kind.transform(own) @ link.placement @ X[link.parent])
        total += 0.5 * float(link.kind.stiffness @ link.kind.difference(link.kind.rest, own) ** 2)

    def point(body: str, at: np.ndarray) -> np.ndarray:
        link, onto = tree.place[body]
        pose = onto @ X[link]
        return pose.r + pose.E.T @ at

    for body in robot.bodies.values():
        total -= body.mass * float(robot.gravity @ point(body.name, body.centre))
    for e in robot.elements:
        L = float(np.linalg.norm(point(e.first, e.first_point) - point(e.second, e.second_point)))
        total += 0.5 * e.stiffness * (L - e.free_length) ** 2 + e.pretension * L
    return total


def forces_of(c: Case, a: np.ndarray, f_ext: np.ndarray | None = None) -> np.ndarray:
    """What accelerations need, by the reference."""
    needs = np.array([d.H @ x + d.c for d, x in zip(c.expected, a, strict=True)])
    if f_ext is None:
        return needs
    return needs - np.array([d.from_forces(f) for d, f in zip(c.expected, f_ext, strict=True)])


def accelerations_of(c: Case, tau: np.ndarray, f_ext: np.ndarray | None = None) -> np.ndarray:
    """What forces cause, by the reference."""
    rest = forces_of(c, np.zeros_like(tau), f_ext)
    return np.array([np.linalg.solve(d.H, x) for d, x in zip(c.expected, tau - rest, strict=True)])


def gap(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry of each state where that exceeds one."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    return float((np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1, initial=1.0)).max())


def slope(path: Callable[[float], Any], h: float = 0.004) -> Any:
    """The derivative at 0, by differences of order 8."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    return sum(w * (path(i * h) - path(-i * h)) for i, w in enumerate(weights, 1)) / h


# Against the reference


def test_robots_without_springs(plain: Case) -> None:
    c = plain
    assert gap(inverse_dynamics(c.robot, c.q, c.v, c.a), forces_of(c, c.a)) < FORCES
    assert gap(bias_force(c.robot, c.q, c.v), forces_of(c, 0.0 * c.a)) < FORCES
    a = forward_dynamics(c.robot, c.q, c.v, c.tau)
    assert gap(a, accelerations_of(c, c.tau)) < ACCELERATIONS
    assert gap(inverse_dynamics(c.robot, c.q, c.v, a), c.tau) < ACCELERATIONS
    needs = inverse_dynamics(c.robot, c.q, c.v, c.a)
    assert gap(forward_dynamics(c.robot, c.q, c.v, needs), c.a) < ACCELERATIONS


def test_mass_matrix(plain: Case) -> None:
    """By columns of inverse dynamics: symmetric, positive, and that of the reference."""
    rest = np.zeros(plain.robot.nv)
    columns = inverse_dynamics(plain.robot, plain.q[:, None], rest, np.eye(plain.robot.nv))
    H = columns - inverse_dynamics(plain.robot, plain.q, rest, rest)[:, None]
    for found, d in zip(H, plain.expected, strict=True):
        tolerance = FORCES * np.abs(d.H).max(initial=1.0)
        np.testing.assert_allclose(found, found.T, rtol=0, atol=tolerance)
        np.testing.assert_allclose(found, d.H, rtol=0, atol=tolerance)
        assert np.linalg.eigvalsh((found + found.T) / 2).min() > 0


def test_robots_with_springs_and_external_forces(passive: Case) -> None:
    """Springs, dampers and armatures at joints, dependent ones too; springs and dampers between bodies; forces."""
    c = passive
    needs = inverse_dynamics(c.robot, c.q, c.v, c.a, c.f_ext)
    assert gap(needs, forces_of(c, c.a, c.f_ext)) < FORCES
    a = forward_dynamics(c.robot, c.q, c.v, c.tau, c.f_ext)
    assert gap(a, accelerations_of(c, c.tau, c.f_ext)) < ACCELERATIONS
    assert gap(inverse_dynamics(c.robot, c.q, c.v, a, c.f_ext), c.tau) < ACCELERATIONS
    assert gap(forward_dynamics(c.robot, c.q, c.v, needs, c.f_ext), c.a) < ACCELERATIONS


def test_a_force_on_one_body(passive: Case) -> None:
    """It adds −JᵀF, on a welded body too; on a body that is fixed to the ground it does nothing."""
    c = passive
    d, n = c.expected[0], len(c.robot.bodies)
    single = np.concatenate([np.zeros((1, n, 6)), np.eye(n)[:, :, None] * c.f_ext[0]])
    none, *found = bias_force(c.robot, c.q[0], c.v[0], single)
    assert gap(none, d.c) < FORCES
    for body, f, forces in zip(c.robot.bodies, single[1:], found, strict=True):
        assert gap(forces, d.c - d.from_forces(f)) < FORCES
        if c.robot.tree.place[body][0] == 0:
            np.testing.assert_array_equal(forces, none)


# Energy


def test_energy_changes_as_fast_as_forces_work(passive: Case) -> None:
    """d/dt (½ vᵀHv + U) = vᵀτ + Σ Vᵀf less what dampers take, by differences along the motion."""
    c, rest, none = passive, np.zeros(passive.robot.nv), np.zeros((len(passive.robot.bodies), 6))
    a = forward_dynamics(c.robot, c.q, c.v, c.tau, c.f_ext)

    def energy(t: float) -> np.ndarray:
        q, v = c.robot.integrate(c.q, c.v, t), c.v + a * t
        momentum = inverse_dynamics(c.robot, q, rest, v, none) - inverse_dynamics(c.robot, q, rest, rest, none)
        return 0.5 * (v * momentum).sum(axis=1) + [potential(c.robot, at) for at in q]

    links = [c.robot.tree.place[body][0] for body in c.robot.bodies]
    power = (c.v * c.tau).sum(axis=1)
    for i, d in enumerate(c.expected):
        pushed = [d.V[link] @ d.X[link].force_matrix() @ f for link, f in zip(links, c.f_ext[i], strict=True)]
        power[i] += sum(pushed) - d.lost
    h = 0.002 / max(1.0, float(np.abs(a).max()), c.stretch / 10)
    scale = max(1.0, float(np.abs(power).max()), float(np.abs(energy(0.0)).max()))
    np.testing.assert_allclose(slope(energy, h), power, rtol=0, atol=SLOPE * scale)


def test_forces_at_rest_are_the_slope_of_the_potential(passive: Case) -> None:
    """Weight, springs at joints and springs between bodies, along random motions."""
    c, rest = passive, np.zeros_like(passive.v)

    def height(t: float) -> np.ndarray:
        return np.array([potential(c.robot, q) for q in c.robot.integrate(c.q, c.v, t)])

    found = bias_force(c.robot, c.q, rest, np.zeros((len(c.robot.bodies), 6)))
    expected = slope(height, 0.004 / max(1.0, c.stretch / 10))
    np.testing.assert_allclose((c.v * found).sum(axis=1), expected, rtol=0, atol=SLOPE * max(1.0, np.abs(found).max()))


@pytest.mark.parametrize(
    ("name", "order"),
    sweep([("belt", 4), ("implicit", 4), ("four-bar", 2), ("crossed", 2)], [("implicit", 4), ("four-bar", 2)]),
)
def test_energy_is_conserved(name: str, order: int) -> None:
    """Over some time, up to the error of the integrator: of order 4, or 2 where orientations turn."""
    c = case_of(robot_of(name))
    none = np.zeros_like(c.v)

    def energy(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        momentum = inverse_dynamics(c.robot, q, none, v) - inverse_dynamics(c.robot, q, none, none)
        return 0.5 * (v * momentum).sum(axis=1) + [potential(c.robot, at) for at in q]

    def drift(steps: int) -> float:
        q, v, h, start = c.q, c.v, 0.6 / steps, energy(c.q, c.v)
        for _ in range(steps):
            a1 = forward_dynamics(c.robot, q, v, none)
            a2 = forward_dynamics(c.robot, c.robot.integrate(q, v, h / 2), v + a1 * h / 2, none)
            a3 = forward_dynamics(c.robot, c.robot.integrate(q, v + a1 * h / 2, h / 2), v + a2 * h / 2, none)
            a4 = forward_dynamics(c.robot, c.robot.integrate(q, v + a2 * h / 2, h), v + a3 * h, none)
            q = c.robot.integrate(q, v + (a1 + a2 + a3) * h / 6, h)
            v = v + (a1 + 2 * a2 + 2 * a3 + a4) * h / 6
        return float(np.abs(energy(q, v) - start).max())

    coarse, fine = drift(60), drift(120)
    assert fine < 1e-2
    assert coarse > 0.6 * 2**order * fine


# Calling


some_robots = pytest.mark.parametrize(
    "name", sweep(["differential", "belt", "implicit", "spherical loop"], ["differential", "spherical loop"])
)


@some_robots
def test_a_batch_is_as_one_by_one(name: str) -> None:
    """To the last bit, whatever the leading dimensions, and where some arguments have none."""
    c, rng = case_of(robot_of(name)), np.random.default_rng(9)
    count = 13  # no multiple of any number of lanes
    q = c.q[np.arange(count) % STATES]
    v, x = rng.normal(size=(2, count, c.robot.nv))
    f_ext = rng.normal(size=(count, len(c.robot.bodies), 6))
    for function in (forward_dynamics, inverse_dynamics):
        batch, loaded = function(c.robot, q, v, x), function(c.robot, q, v, x, f_ext)
        assert batch.shape == (count, c.robot.nv) and batch.flags.writeable
        for i in range(count):
            np.testing.assert_array_equal(function(c.robot, q[i], v[i], x[i]), batch[i])
            np.testing.assert_array_equal(function(c.robot, q[i], v[i], x[i], f_ext[i]), loaded[i])
        grid = function(c.robot, q[:12].reshape(2, 3, 2, -1), v[:12].reshape(2, 3, 2, -1), x[:12].reshape(2, 3, 2, -1))
        np.testing.assert_array_equal(grid.reshape(12, -1), batch[:12])
        spread = function(c.robot, q[0], v[:3, None], x[None, :2], f_ext[:2])
        assert spread.shape == (3, 2, c.robot.nv)
        for i, j in np.ndindex(3, 2):
            np.testing.assert_array_equal(spread[i, j], function(c.robot, q[0], v[i], x[j], f_ext[j]))
        np.testing.assert_array_equal(function(c.robot, q[0].tolist(), list(v[0]), x[0]), batch[0])
        assert function(c.robot, q[:0], v[:0], x[:0]).shape == (0, c.robot.nv)


@some_robots
def test_gravity_adds_up(name: str) -> None:
    """Forces are linear in gravity, and with_gravity leaves the first robot as it was."""
    robot = robot_of(name).with_backend("interpreter")
    c = case_of(robot)
    before = bias_force(robot, c.q, c.v)
    g1, g2 = np.array([1.0, -2.0, 3.0]), np.array([-4.0, 0.5, 2.0])

    def bias(gravity: np.ndarray) -> np.ndarray:
        return bias_force(robot.with_gravity(gravity), c.q, c.v)

    none = bias(np.zeros(3))
    assert gap(bias(g1 + 2 * g2) - none, bias(g1) - none + 2 * (bias(g2) - none)) < FORCES
    np.testing.assert_array_equal(bias_force(robot, c.q, c.v), before)
    tilted = robot.with_gravity(g1)
    a = forward_dynamics(tilted, c.q, c.v, c.tau)
    assert gap(inverse_dynamics(tilted, c.q, c.v, a), c.tau) < ACCELERATIONS


@some_robots
def test_single_precision(name: str) -> None:
    robot = robot_of(name)
    c = case_of(robot)
    q, v, tau, a, f_ext = (x.astype(np.float32) for x in (c.q, c.v, c.tau, c.a, c.f_ext))
    for function, x, exact in ((forward_dynamics, tau, c.tau), (inverse_dynamics, a, c.a)):
        found, loaded = function(robot, q, v, x), function(robot, q, v, x, f_ext)
        assert found.dtype == loaded.dtype == np.float32
        assert gap(found, function(robot, c.q, c.v, exact)) < 1e-3
        assert gap(loaded, function(robot, c.q, c.v, exact, c.f_ext)) < 1e-3
    assert bias_force(robot, q, v).dtype == np.float32


# What is built


def test_passive_parts_of_a_description_count() -> None:
    """A four-bar of which every joint has a spring, a damper and an armature, through the builder; and a free joint."""
    b, arm = RobotBuilder("four-bar"), np.array([0.4, 0.0, 0.0])
    for i, (name, parent, at) in enumerate((("a", "ground", 0 * arm), ("b", "a", arm), ("c", "ground", arm * 1.2))):
        kind = Revolute(axis=(0, 0, 1), stiffness=3.0 + i, rest=0.2 * i, damping=0.5 + i, armature=0.1 + i)
        b.body(name, 1.0, arm / 2, (0.01, 0.02, 0.02))
        b.joint(f"j{name}", kind, parent, name, at, start=(1.2, -0.9, 1.5)[i])
    b.loop("loop", Revolute(axis=(0, 0, 1)), "b", "c", arm * 1.25, arm)
    joint = Universal(stiffness=(1.0, 2.0), rest=(0.3, -0.2), damping=(0.1, 0.2), armature=(0.3, 0.4))
    b.body("d", 1.0, arm / 2, (0.01, 0.02, 0.02))
    b.joint("jd", joint, "b", "d", arm)
    b.body("e", 1.0, arm / 2, (0.01, 0.02, 0.02))
    b.joint("je", Free(stiffness=np.arange(6.0), damping=2.0, armature=0.5), "ground", "e")
    b.spring("first", "d", "c", arm, -arm, stiffness=20.0, free_length=0.1, damping=1.0)
    b.spring("second", "ground", "e", arm, -arm, stiffness=20.0, pretension=2.0)
    c = case_of(b.build())
    assert all(link.kind.stiffness.any() and link.kind.armature.all() for link in c.robot.tree.links[1:])
    assert gap(inverse_dynamics(c.robot, c.q, c.v, c.a), forces_of(c, c.a)) < FORCES
    assert gap(forward_dynamics(c.robot, c.q, c.v, c.tau), accelerations_of(c, c.tau)) < ACCELERATIONS


# Errors


def test_wrong_shapes_and_numbers_are_refused() -> None:
    robot = robot_of("tree")
    q, v = robot.random_state(0)
    f_ext, bad = np.zeros((len(robot.bodies), 6)), v.copy()
    bad[2] = np.nan
    for function in (forward_dynamics, inverse_dynamics):
        for arguments, told in (
            ((q[:-1], v, v), "'q' has shape"),
            ((q, v[:-1], v), "'v' has shape"),
            ((q, v, 0.0), "has shape"),
            ((np.stack([q] * 2), np.stack([v] * 3), v), "do not fit together"),
            ((np.stack([q] * 2), v, v, np.stack([f_ext] * 3)), "do not fit together"),
            ((q, v, v, f_ext[1:]), "f_ext has the shape"),
            ((q, v, v, f_ext.ravel()), "f_ext has the shape"),
            ((q, v, v, f_ext + np.nan), "f_ext must be finite"),
            ((None, v, v), "'q'"),
            (("abc", v, v), "'q'"),
            ((q, v + 0j, v), "'v' is complex128"),
            ((q, bad, v), "v must be finite; entry 2 is nan"),
            ((q, np.stack([v, v, bad]), v), "v must be finite; entry 2 in state 2 is nan"),
            ((q, v, np.array([[v, v, v], [v, bad, v]])), r"must be finite; entry 2 in state \(1, 1\) is nan"),
            ((q, v * 1e200, v), "no finite result"),
        ):
            with pytest.raises(ModelError, match=told):
                function(robot, *arguments)


@pytest.mark.parametrize("name", ["spherical loop", "implicit"])
def test_open_loops_are_refused(name: str) -> None:
    robot = robot_of(name)
    q, v = robot.random_state(0)
    ajar = q.copy()
    ajar[-1] += 1e-2
    for function in (forward_dynamics, inverse_dynamics):
        with pytest.raises(ModelError, match=r"does not close: .* (has its two ends|is off by)"):
            function(robot, ajar, v, v)
        with pytest.raises(ModelError, match=r"does not close.* in state 2"):
            function(robot, np.stack([q, q, ajar]), v, v)


def test_open_loops_are_refused_in_single_precision() -> None:
    robot = robot_of("spherical loop")
    q, v = (x.astype(np.float32) for x in robot.random_state(0))
    ajar = q.copy()
    ajar[-1] += np.float32(1e-2)
    with pytest.raises(ModelError, match=r"does not close.* in state 2"):
        forward_dynamics(robot, np.stack([q, q, ajar]), v, v)


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_positions_must_be_finite(entry: float) -> None:
    robot = robot_of("gear")
    q, v = robot.random_state(0)
    q[0] = entry
    with pytest.raises(ModelError, match="q must be finite; entry 0"):
        forward_dynamics(robot, q, v, v)


def test_quaternions_must_have_unit_length() -> None:
    robot = robot_of("gear")
    q, v = robot.random_state(0)
    q[3:7] *= 1.5
    with pytest.raises(ModelError, match="quaternion"):
        forward_dynamics(robot, q, v, v)


@pytest.mark.parametrize("wrong", ["q", "v", "f_ext"])
def test_ragged_lists_are_refused(wrong: str) -> None:
    robot = robot_of("gear")
    q, v = robot.random_state(0)
    given: dict[str, Any] = {"q": q, "v": v, "f_ext": np.zeros((len(robot.bodies), 6)), wrong: [[1.0], [1.0, 2.0]]}
    with pytest.raises(ModelError):
        inverse_dynamics(robot, a=v, **given)
