"""Kinds of joints that a user defines: docs/extending.md, done and checked against computations of another kind."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, Robot, RobotBuilder
from coupler.model import Continuous, Free, Joint, LoopKind, Planar, Prismatic, Revolute, Rod, Sphere, Spherical
from coupler.model.axes import turn_of
from coupler.model.shapes import Geometry
from coupler.passes.shape import Clusters
from coupler.rotation import (
    about_axis,
    about_y,
    matrix_from_quaternion,
    normalize_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_product,
)
from coupler.simulate import integrate_motion
from coupler.spatial import Transform
from coupler.view.skeleton import Skeleton

Array = Any


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Rolling(Joint):
    """A wheel that rolls on the x axis without slipping: all that a kind of joint must say, and its residual."""

    nq, nv = 1, 1
    radius: float = 0.1

    def placed(self, kept: Array) -> Transform:
        return Transform(about_y(kept[0]).T, np.array([self.radius * kept[0], 0.0, 0.0]))

    def residual(self, X: Transform) -> Array:
        due = X.r[0] / self.radius
        return np.concatenate([X.r[1:], turn_of(X.E @ about_y(due))])


class Told(Rolling):
    """A `Rolling` joint that defines its subspace and the subspace's rate as well."""

    def subspace(self, q: Array) -> Array:
        along = about_y(q[0]).T @ np.array([self.radius, 0.0, 0.0])
        return np.concatenate([np.array([0.0, 1.0, 0.0]), along])[:, None]

    def subspace_rate(self, q: Array, v: Array) -> Array:
        back = -np.cross(np.array([0.0, 1.0, 0.0]) * v[0], about_y(q[0]).T @ np.array([self.radius, 0.0, 0.0]))
        return np.concatenate([np.zeros(3), back])[:, None]


@dataclass(frozen=True, repr=False)  # as anybody would write it first
class Lever(Joint):
    """A slider that moves by its arm for each radian."""

    nq, nv = 1, 1
    arm: float = 1.0

    def placed(self, kept: Array) -> Transform:
        return Transform.translation(np.array([0.0, 0.0, self.arm * kept[0]]))


class OldLever(Joint):
    """A `Lever` that is not a dataclass, and so has no fields."""

    nq, nv = 1, 1

    def __init__(self, arm: Any, **properties: Any) -> None:
        super().__init__(**properties)
        object.__setattr__(self, "arm", arm)

    def placed(self, kept: Array) -> Transform:
        travel = self.arm(kept[0]) if callable(self.arm) else np.sum(self.arm) * kept[0]  # type: ignore[attr-defined]
        return Transform.translation(np.array([0.0, 0.0, travel]))


class SlottedLever(OldLever):
    __slots__ = ("arm",)


@dataclass(frozen=True, eq=False, kw_only=True)
class BallOnRail(Joint):
    """A shift along x, m, and a ball that it carries: q has a quaternion, and v is (shift's rate, angular velocity)."""

    nq, nv = 5, 4
    scale: float = 1.0

    def placed(self, kept: Array) -> Transform:
        return Transform(matrix_from_quaternion(kept[1:]).T, np.array([self.scale * kept[0], 0.0, 0.0]))

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 1.0, 0.0, 0.0, 0.0])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return self.normalize(rng.normal(size=5))

    def integrate(self, q: Array, v: Array, dt: Any = 1.0) -> Array:
        turned = quaternion_product(q[1:], quaternion_exp(v[1:] * dt))
        return self.normalize(np.concatenate([q[:1] + v[:1] * dt, turned]))

    def difference(self, q0: Array, q1: Array) -> Array:
        turn = quaternion_log(quaternion_product(quaternion_conjugate(q0[1:]), q1[1:]))
        return np.concatenate([q1[:1] - q0[:1], turn])

    def normalize(self, q: Array) -> Array:
        return np.concatenate([q[:1], normalize_quaternion(q[1:])])


class OffsetHinge(Revolute):
    """A hinge whose axis is beside its frame: nothing of what holds for a hinge through the frame may be inherited."""

    def placed(self, kept: Array) -> Transform:
        E = super().placed(kept).E
        centre = np.array([0.3, 0.0, 0.1])
        return Transform(E, centre - E.T @ centre)


# A chain of such joints, against a computation with matrices

INERTIA = np.array([[0.02, 0.001, 0.002], [0.001, 0.03, -0.003], [0.002, -0.003, 0.025]])
CENTRE = np.array([0.05, -0.02, 0.1])
PLACES = [np.array(place) for place in ((0.1, 0.2, 0.3), (-0.2, 0.1, 0.2), (0.0, 0.3, -0.1), (0.2, 0.0, 0.1))]
TURNS = [
    about_axis(np.array(axis), 0.4) for axis in ((1.0, 0.0, 0.0), (0.0, 0.6, 0.8), (0.0, 1.0, 0.0), (0.6, 0.8, 0.0))
]
KINDS = [
    Rolling(radius=0.3),
    Revolute(axis=(0, 1, 0)),
    OffsetHinge(axis=(0, 0.6, 0.8)),
    Rolling(radius=0.5, armature=0.1),
]


def chain(kinds: list[Joint] = KINDS) -> Robot:
    b, parent = RobotBuilder("chain"), "ground"
    for i, (kind, place, turn) in enumerate(zip(kinds, PLACES, TURNS, strict=True)):
        b.body(f"body{i}", 1.0 + i, CENTRE, INERTIA)
        b.joint(f"joint{i}", kind, parent, f"body{i}", place, turn)
        b.shape(f"body{i}", Sphere(0.05), name=f"ball{i}")
        parent = f"body{i}"
    return b.build()


def poses(q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rotation and position of each body of the chain, with plain matrices."""
    R, p, found = np.eye(3), np.zeros(3), []
    for i, (angle, place, turn) in enumerate(zip(q, PLACES, TURNS, strict=True)):
        p, R = p + R @ place, R @ turn
        if i in (0, 3):
            p, R = p + R @ [(0.3, 0.5)[i // 3] * angle, 0.0, 0.0], R @ about_y(angle)
        elif i == 1:
            R = R @ about_y(angle)
        else:
            own, centre = about_axis(np.array([0.0, 0.6, 0.8]), angle), np.array([0.3, 0.0, 0.1])
            p, R = p + R @ (centre - own @ centre), R @ own
        found.append((R, p))
    return found


def dense_mass_matrix(q: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Σ m Jᵀ J + Ωᵀ I Ω, with all rates by differences of poses."""
    ahead, behind = ([poses(q + side * step * e) for e in np.eye(4)] for side in (1.0, -1.0))
    H = np.diag([0.0, 0.0, 0.0, 0.1])  # the armature
    for i, (R, _) in enumerate(poses(q)):
        J, W = np.zeros((3, 4)), np.zeros((3, 4))
        for j in range(4):
            (R1, p1), (R0, p0) = ahead[j][i], behind[j][i]
            J[:, j] = (R1 @ CENTRE + p1 - R0 @ CENTRE - p0) / (2 * step)
            turn = R.T @ (R1 - R0) / (2 * step)
            W[:, j] = turn[2, 1], turn[0, 2], turn[1, 0]
        H += (1.0 + i) * J.T @ J + W.T @ INERTIA @ W
    return H


def dense_inverse_dynamics(q: np.ndarray, v: np.ndarray, a: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Lagrange's equations: H a + Ḣ v − ∂(½ vᵀ H v − U)/∂q."""

    def lagrangian(q: np.ndarray) -> float:
        height = sum((1.0 + i) * (R @ CENTRE + p)[2] for i, (R, p) in enumerate(poses(q)))
        return float(0.5 * v @ dense_mass_matrix(q) @ v - 9.81 * height)

    def slope(f: Callable[[float], Any]) -> Any:  # of fourth order
        return (8.0 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12.0 * step)

    force = [slope(lambda x, e=e: lagrangian(q + x * e)) for e in np.eye(4)]
    return dense_mass_matrix(q) @ a + slope(lambda x: dense_mass_matrix(q + x * v)) @ v - np.array(force)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return chain()


def states(robot: Robot, count: int) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(0).uniform(-1.0, 1.0, size=(4, count, robot.nv)))


def test_poses_and_mass_matrix_are_those_of_plain_matrices(robot: Robot) -> None:
    for q in states(robot, 3)[0]:
        np.testing.assert_allclose(coupler.mass_matrix(robot, q), dense_mass_matrix(q), atol=1e-8)
        centre = sum((1.0 + i) * (R @ CENTRE + p) for i, (R, p) in enumerate(poses(q))) / 10.0
        np.testing.assert_allclose(coupler.centre_of_mass(robot, q), centre, atol=1e-13)


def test_dynamics_are_lagranges(robot: Robot) -> None:
    q, v, a, _ = (x[0] for x in states(robot, 1))
    tau = coupler.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(tau, dense_inverse_dynamics(q, v, a), atol=1e-6)
    np.testing.assert_allclose(coupler.forward_dynamics(robot, q, v, tau), a, atol=1e-11)


def test_a_batch_is_its_states(robot: Robot) -> None:
    q, v, _, tau = states(robot, 9)
    one = [coupler.forward_dynamics(robot, *state) for state in zip(q, v, tau, strict=True)]
    np.testing.assert_array_equal(coupler.forward_dynamics(robot, q, v, tau), one)


def test_what_a_joint_does_not_say_is_derived(robot: Robot) -> None:
    told = chain([Told(radius=0.3), KINDS[1], KINDS[2], Told(radius=0.5, armature=0.1)])
    q, v, _, tau = states(robot, 5)
    ours, theirs = (coupler.forward_dynamics(x, q, v, tau) for x in (robot, told))
    np.testing.assert_allclose(ours, theirs, atol=1e-10)
    for kind in (Rolling(radius=0.3), BallOnRail(), OffsetHinge(axis=(1, 2, 3))):
        rng = np.random.default_rng(1)
        q, v, step = kind.random(rng), rng.normal(size=kind.nv), 1e-6
        X0, X1 = (kind.transform(kind.integrate(q, v, side * step)) for side in (-1.0, 1.0))
        middle = kind.transform(q)
        turn = -(X1.E - X0.E) @ middle.E.T / (2 * step)
        motion = np.concatenate([[turn[2, 1], turn[0, 2], turn[1, 0]], middle.E @ (X1.r - X0.r) / (2 * step)])
        np.testing.assert_allclose(kind.subspace(q) @ v, motion, atol=1e-8)
        S0, S1 = (np.asarray(kind.subspace(kind.integrate(q, v, side * step)), float) for side in (-1.0, 1.0))
        np.testing.assert_allclose(kind.subspace_rate(q, v), (S1 - S0) / (2 * step), atol=1e-8)


def test_it_prints_draws_and_has_joint_forces(robot: Robot, tmp_path: Path) -> None:
    assert "joint0 (rolling)" in str(robot)
    assert "joint0" in robot.draw(tmp_path / "robot.svg").read_text()
    assert repr(KINDS[0]) == "Rolling(radius=0.3)"
    assert repr(OldLever(abs, damping=2.0)) == "OldLever(damping=[2.], arm=<built-in function abs>)"
    assert len(Skeleton(robot).at(robot.neutral()).points())
    q, v, _, tau = (x[0] for x in states(robot, 1))
    forces = coupler.joint_forces(robot, q, v, tau).joints
    assert all(np.isfinite(force).all() for force in forces.values())
    copied = deepcopy(KINDS[3])
    assert copied.form() == KINDS[3].form()
    assert pickle.loads(pickle.dumps(Rod(0.4))).form() == Rod(0.4).form()


# What traces are shared by


def sliders(kinds: list[Joint]) -> Robot:
    b = RobotBuilder("sliders")
    for i, kind in enumerate(kinds):
        b.body(f"body{i}", 1.0)
        b.joint(f"joint{i}", kind, "ground", f"body{i}")
    return b.build()


@pytest.mark.parametrize(
    "kinds",
    [
        [Lever(arm=1.0), Lever(arm=2.0), Lever(arm=3.0)],
        [OldLever(1.0), OldLever(2.0), OldLever(3.0)],
        [OldLever([1, 0]), OldLever([1, 1]), OldLever([1, 2])],
        [OldLever(np.array([1.0])), OldLever(np.array([2.0])), OldLever(np.array([1.0, 2.0]))],
        [OldLever(lambda q, arm=arm: arm * q) for arm in (1.0, 2.0, 3.0)],
        [SlottedLever(1.0), SlottedLever(2.0), SlottedLever(3.0)],
    ],
    ids=["fields", "attributes", "lists", "arrays", "functions", "slots"],
)
def test_arms_of_one_two_and_three(kinds: list[Joint]) -> None:
    """One trace for all of them gave [1, 1, 9]."""
    robot = sliders(kinds)
    H = coupler.mass_matrix(robot, np.zeros(3))
    np.testing.assert_allclose(H, np.diag([1.0, 4.0, 9.0]), atol=1e-13)
    np.testing.assert_allclose(
        coupler.forward_dynamics(robot, np.zeros(3), np.zeros(3), np.ones(3)),
        np.linalg.inv(H) @ (np.ones(3) - 9.81 * np.array([1.0, 2.0, 3.0])),
        atol=1e-12,
    )


def test_what_is_the_same_shares_a_trace() -> None:
    same = sliders(
        [Lever(arm=2.0), Lever(arm=2.0, damping=1.0, stiffness=3.0, armature=0.1), Lever(arm=2.0, upper=1.0)]
    )
    assert len(Clusters(same).shapes) == len(Clusters(sliders([Prismatic()] * 3)).shapes)
    np.testing.assert_allclose(np.diag(coupler.mass_matrix(same, np.zeros(3))), [4.0, 4.1, 4.0])
    assert Revolute().form() == Continuous().form()
    assert Lever(arm=0.0).form() != Lever(arm=-0.0).form()  # 1/x can tell them apart
    assert Lever(arm=1.0).form() != OldLever(1.0).form()
    assert type("Continuous", (Continuous,), {})().form() != Continuous().form()  # a name is not a class


# What is inherited


def test_a_subclass_that_moves_otherwise_inherits_no_facts() -> None:
    hinge = OffsetHinge(axis=(0, 1, 0))
    assert Revolute.spins
    assert Revolute.axial
    assert not hinge.spins
    assert not hinge.axial
    A, kind = hinge.aligned()
    np.testing.assert_array_equal(A, np.eye(3))
    assert kind is hinge
    with pytest.raises(ModelError, match="offsethinge joints cannot close loops: give OffsetHinge a method"):
        hinge.residual(Transform.identity())

    class Drifting(Free):
        def placed(self, kept: Array) -> Transform:
            return super().placed(kept) @ Transform.translation((0.0, 0.0, 1.0))

    assert Free.floats
    assert not Drifting.floats

    class Geared(Revolute):
        def keep(self, q: Array) -> Array:
            return super().keep(3.0 * q)

    np.testing.assert_allclose(Geared().subspace(np.array([0.2]))[:, 0], [0, 0, 3, 0, 0, 0], atol=1e-12)

    class Sideways:
        def placed(self, kept: Array) -> Transform:
            return Transform.translation(np.array([kept[0], kept[1], 0.0]))

    class Mixed(Sideways, Revolute):
        pass

    assert not Mixed().spins
    np.testing.assert_allclose(Mixed().subspace(np.array([0.0]))[:, 0], [0, 0, 0, 0, 1, 0], atol=1e-12)


def test_a_subclass_that_moves_alike_inherits_all_facts() -> None:
    class Knee(Revolute):
        """With limits of its own."""

        def __init__(self, **given: Any) -> None:
            super().__init__(lower=0.0, upper=2.0, **given)

    knee = Knee(axis=(0, 1, 0))
    assert knee.spins
    assert knee.axial
    np.testing.assert_array_equal(knee.aligned()[1].axis, [0.0, 0.0, 1.0])
    assert len(knee.residual(Transform.identity())) == 5
    assert knee.form() != Revolute(axis=(0, 1, 0)).form()


def test_a_rotor_beside_its_axis_is_seen_to_turn() -> None:
    """A symmetric body on a Revolute spins unseen; on a subclass that moves its centre it does not."""
    b = RobotBuilder("rotor")
    b.body("rotor", 2.0, inertia=(0.1, 0.1, 0.2))
    b.joint("hinge", OffsetHinge(), "ground", "rotor")
    robot = b.build()
    q, v = np.array([0.7]), np.array([0.0])
    assert coupler.mass_matrix(robot, q)[0, 0] == pytest.approx(0.2 + 2.0 * 0.09)
    a = coupler.forward_dynamics(robot.with_gravity((0, -9.81, 0)), q, v, np.zeros(1))
    height = 0.3 * np.cos(0.7)  # dy/dq of the centre, −0.3 cos q
    assert a[0] == pytest.approx(9.81 * 2.0 * height / 0.38)


# Loops


def test_it_closes_loops() -> None:
    """A wheel on a plane that a loop makes roll, and one that rolls, accelerate alike."""
    b = RobotBuilder("wheel")
    b.body("wheel", 2.0, (0.02, 0.0, 0.03), inertia=(0.1, 0.2, 0.1))
    b.joint("plane", Planar(normal=(0, 1, 0)), "ground", "wheel")
    b.loop("rolls", Rolling(radius=0.3), "ground", "wheel")
    held = b.build()
    assert held.nv == 1
    b = RobotBuilder("wheel")
    b.body("wheel", 2.0, (0.02, 0.0, 0.03), inertia=(0.1, 0.2, 0.1))
    b.joint("rolls", Rolling(radius=0.3), "ground", "wheel")
    free, rng = b.build(), np.random.default_rng(0)
    for _ in range(3):
        q, v = held.random_state(rng)
        p, w = held.joint_positions(q)["plane"], held.joint_velocities(q, v)["plane"]
        angle = np.ravel(p)[2]
        turns = round((_along(p) / 0.3 - angle) / (2 * np.pi))
        assert _along(p) == pytest.approx(0.3 * (angle + 2 * np.pi * turns), abs=1e-9)
        a = coupler.forward_dynamics(held, q, v, np.zeros(1))
        own = coupler.forward_dynamics(free, [angle], [w[2]], np.zeros(1))
        scale = v[0] / w[2]  # the loop's own velocity may be that of the shift
        assert a[0] == pytest.approx(own[0] * scale, abs=1e-9)


def _along(p: Any) -> float:
    """How far along x of the world: the plane's own axes are z and x for a normal y."""
    return float(Planar(normal=(0, 1, 0)).transform(np.ravel(p)).r[0])


def test_without_a_residual_it_says_so() -> None:
    b = RobotBuilder("levers")
    b.body("one", 1.0)
    b.joint("slide", Prismatic(), "ground", "one")
    b.loop("held", Lever(arm=1.0), "ground", "one")
    with pytest.raises(ModelError, match="loop 'held': lever joints cannot close loops: give Lever a method"):
        b.build()


@dataclass(frozen=True, eq=False)
class OnSphere(LoopKind):
    """A point that stays on a sphere: what a rod does, said in other words."""

    radius: float

    def residual(self, X: Transform) -> Array:
        return np.array([np.sqrt(X.r @ X.r + 1e-300) - self.radius])


def test_a_kind_of_loop_of_ones_own() -> None:
    accelerations = []
    for kind in (Rod(0.5), OnSphere(0.5)):
        b = RobotBuilder("pendulum")
        for i, parent in enumerate(("ground", "b0", "b1")):
            b.body(f"b{i}", 1.0, inertia=(0.1, 0.1, 0.1))
            b.joint(f"j{i}", Prismatic(axis=np.eye(3)[i]), parent, f"b{i}", start=(0.3, 0.0, -0.4)[i])
        b.loop("rod", kind, "ground", "b2")
        robot = b.build()
        assert robot.nv == 2
        q = robot.neutral()
        p = robot.joint_positions(q)
        assert np.hypot(np.hypot(p["j0"], p["j1"]), p["j2"]) == pytest.approx(0.5)
        q = robot.pack_q({"j0": 0.3, "j1": 0.0, "j2": -0.4})
        accelerations.append(coupler.forward_dynamics(robot, q, np.zeros(2), np.zeros(2)))
    np.testing.assert_allclose(*accelerations, atol=1e-9)


# Motion and contact, against robots of built-in joints that move alike


class Hinge(Joint):
    """What Revolute does, without any of its facts."""

    nq, nv = 1, 1

    def placed(self, kept: Array) -> Transform:
        return Transform.rotation(about_y(kept[0]).T)


def legs(hinge: Callable[..., Joint], rail: bool) -> Robot:
    """A body that floats, or shifts along x and turns, with two legs on the floor."""
    b = RobotBuilder("legs")
    b.body("trunk", 3.0, inertia=(0.1, 0.2, 0.2))
    if rail:
        b.joint("base", BallOnRail(damping=0.3), "ground", "trunk", (0, 0, 0.545))
    else:
        b.body("cart")
        b.joint("rail", Prismatic(axis=(1, 0, 0), damping=0.3), "ground", "cart", (0, 0, 0.545))
        b.joint("base", Spherical(damping=0.3), "cart", "trunk")
    for side in (-1, 1):
        b.body(f"leg{side}", 0.5, (0, 0, -0.25), inertia=(0.01, 0.01, 0.001))
        properties = {"damping": 0.2, "stiffness": 1.0, "rest": 0.3, "friction": 0.05, "lower": -1.0, "upper": 1.0}
        b.joint(f"hip{side}", hinge(**properties), "trunk", f"leg{side}", (0.3 * side, 0, 0))
        b.shape(f"leg{side}", Sphere(0.05), (0, 0, -0.5), name=f"foot{side}")
    return b.build().with_floor()


def test_a_step_with_contacts_is_that_of_built_in_joints() -> None:
    ours, theirs = legs(Hinge, rail=True), legs(lambda **given: Revolute(axis=(0, 1, 0), **given), rail=False)
    assert (ours.nq, ours.nv) == (theirs.nq, theirs.nv)
    found = []
    for robot in (ours, theirs):
        q = np.concatenate([robot.neutral()[:-2], [0.4, -0.5]])
        simulation = coupler.Simulation(robot, step=1e-3, q=q, v=np.array([0.3, 0.1, 0.5, 0.0, 0.0, 0.0]))
        touched = 0.0
        for _ in range(200):
            simulation.step(np.zeros(robot.nv))
            touched = max(touched, float(np.abs(simulation.contact_forces).max()))
        assert touched > 1.0
        found.append((simulation.q.copy(), simulation.v.copy()))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-7)
    q = np.repeat(found[0][0][None], 3, axis=0)
    v = np.zeros((3, ours.nv))
    batch = coupler.rollout(ours, q, v, np.zeros((3, 4, ours.nv)), step=1e-3)
    np.testing.assert_array_equal(batch.q[0], batch.q[2])


def test_motion_is_that_of_built_in_joints_and_of_high_order() -> None:
    ours, theirs = legs(Hinge, rail=True), legs(lambda **given: Revolute(axis=(0, 1, 0), **given), rail=False)
    v = np.array([0.3, 1.0, 2.0, -1.5, 0.5, 0.2])
    both: list[dict[str, Any]] = [{"h": 1e-2}, {"tolerance": 1e-9}]
    for options in both:
        ends = [integrate_motion(robot, robot.neutral(), v, 0.3, **options) for robot in (ours, theirs)]
        np.testing.assert_allclose(ends[0].q[-1], ends[1].q[-1], atol=1e-8)
        np.testing.assert_allclose(ends[0].v[-1], ends[1].v[-1], atol=1e-7)


# What cannot be said


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_files_have_no_word_for_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"robot{suffix}"
    for kind, word in ((Lever(arm=1.0), "lever"), (OffsetHinge(), "offsethinge")):
        with pytest.raises(ModelError, match=f"joint 'joint0': .* has no word for its kind, {word} .*test_own_joint"):
            sliders([kind]).save(path)
    b = RobotBuilder("loop")
    b.body("one", 1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Planar(), "ground", "one", start=(0.3, 0.0, 0.0))
    b.loop("held", OnSphere(0.3), "ground", "one")
    with pytest.raises(ModelError, match="loop 'held': "):
        b.build().save(path)
    assert not path.exists()


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".sdf"])
def test_files_have_no_word_for_a_shape_of_ones_own(suffix: str, tmp_path: Path) -> None:
    @dataclass(frozen=True, eq=False)
    class Cone(Geometry):
        radius: float
        height: float

    b = RobotBuilder("cone")
    b.body("cone", 1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(), "ground", "cone")
    b.shape("cone", Cone(0.1, 0.2), name="tip")
    path = tmp_path / f"robot{suffix}"
    with pytest.raises(ModelError, match=r"shape 'tip' on body 'cone': .* has no word for its geometry, Cone; give it"):
        b.build().save(path)
    assert not path.exists()


def test_positions_and_velocities_must_fit() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Heading(Lever):
        nq, nv = 2, 1

    with pytest.raises(ModelError, match="nq must be nv, or nv \\+ 1 for a q whose last four"):
        Heading()

    class Odd(Lever):
        def integrate(self, q: Array, v: Array, dt: Any = 1.0) -> Array:
            return q + 2.0 * v * dt

    with pytest.raises(ModelError, match="its v must be q̇"):
        Odd(arm=1.0)

    class Ball(Spherical):
        def integrate(self, q: Array, v: Array, dt: Any = 1.0) -> Array:
            return super().integrate(q, 2.0 * v, dt)

    with pytest.raises(ModelError, match="it must have a method 'difference' of its own"):
        Ball()


def test_passive_properties_must_have_been_taken() -> None:
    class Hasty(Prismatic):
        def __post_init__(self) -> None:
            pass

    with pytest.raises(ModelError, match=r"joint 'joint0': Hasty does not call super\(\)\.__post_init__"):
        sliders([Hasty()])


def test_fields_may_be_anything() -> None:
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Odd(Lever):
        name: str
        table: dict[str, float] = field(default_factory=dict)

    one, other = Odd(name="a"), Odd(name="a")
    assert "name='a'" in repr(one)
    assert one.form() != other.form()  # each has a table of its own
    assert one.form() == one.form()
    assert sliders([one, other]).nv == 2
