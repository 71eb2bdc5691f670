"""Forces in joints and loops: Newton and Euler for every body, work, and cases that are solved by hand.

The reference walks over the bodies as they are described, with NumPy alone. It knows joint velocities and accelerations
from G and g of the loops; of clusters, multipliers and links it knows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import cos, radians, sin, tan
from typing import Any

import numpy as np
import pytest

from coupler import ModelError, inverse_dynamics, robots
from coupler.forces import JointForces, joint_forces
from coupler.graph import Backend
from coupler.mechanisms import FourBar, gear
from coupler.model import (
    Cylindrical,
    Fixed,
    Held,
    Helical,
    Planar,
    Revolute,
    Robot,
    RobotBuilder,
    Rod,
    Spherical,
    Universal,
)
from coupler.model.axes import plane_across
from coupler.spatial import Transform, cross_force, cross_motion
from effort import every, sweep
from property.test_random_dynamics import EVERY, equipped, robot_of, stretch

BALANCE = 1e-12  # of forces on a body, relative to the largest force in the robot; 3e-15 is reached
STATES = 3

# Compiling takes most of the time: of a robot on the ground and the same one afloat one is enough; large ones are bare.
LARGE = ("parallel", "overlapping")
RANDOM = [name for name in EVERY if f"{name} afloat" not in EVERY]
BUNDLED = [
    "four_bar",
    "five_bar",
    "slider_crank",
    "planar_leg_linkage",
    "six_bar",
    "tello",
    "geared_chain",
    "mini_cheetah",
]


@dataclass(frozen=True, eq=False)
class Case:
    """A robot with some states, and the forces in its joints.

    Attributes:
        robot: which.
        q, v, a, f_ext: a batch.
        forces: of all states.
        worst: how much loops magnify rounding, from 1 up.
    """

    robot: Robot
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    f_ext: np.ndarray | None
    forces: JointForces
    worst: float


def case_of(robot: Robot, loaded: bool) -> Case:
    rng = np.random.default_rng(3)
    q, v = map(np.array, zip(*(robot.random_state(seed) for seed in range(STATES)), strict=True))
    a = rng.normal(size=v.shape)
    f_ext = rng.normal(size=(STATES, len(robot.bodies), 6)) if loaded else None
    return Case(robot, q, v, a, f_ext, joint_forces(robot, q, v, a, f_ext), stretch(robot, q))


@cache
def case(name: str, backend: Backend = "interpreter") -> Case:
    """On the interpreter where each robot is asked a few times only."""
    if name in BUNDLED:
        robot = robots.load(name, **({"links": 4} if name == "geared_chain" else {})).with_backend(backend)
        return case_of(robot, loaded=False)
    robot = robot_of(name).with_backend(backend)
    return case_of(robot if name in LARGE else equipped(robot, np.random.default_rng(11)), loaded=name not in LARGE)


everywhere = pytest.mark.parametrize("name", every(4, [*RANDOM, *BUNDLED]))


# The reference


class Walk:
    """The bodies of a robot in one state.

    Attributes:
        X: from the world to each body.
        V, A: velocity and acceleration of each body, in its own frame.
        w, wd: velocity and acceleration of each joint.
        S: motion subspace of each joint, in the frame of its child.
    """

    def __init__(self, robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> None:
        self.robot, tree = robot, robot.tree
        G, g = robot.explicit_constraint(q, v)
        w, wd, p = G @ v, G @ a + g, robot.embedding.positions(q)
        self.X, self.V, self.A = {"ground": Transform.identity()}, {"ground": np.zeros(6)}, {"ground": np.zeros(6)}
        self.S, self.p, self.w, self.wd = {}, {}, {}, {}
        waiting = list(robot.joints)
        while waiting:
            joint = waiting.pop(0)
            if joint.parent not in self.X:
                waiting.append(joint)
                continue
            own, speed, rate = np.zeros(0), np.zeros(0), np.zeros(0)
            if joint.name in tree.number:
                link = tree.number[joint.name]
                own, speed, rate = p[tree.positions(link)], w[tree.velocities(link)], wd[tree.velocities(link)]
            step, S = joint.kind.transform(own) @ joint.placement, np.asarray(joint.kind.subspace(own), float)
            self.X[joint.child] = step @ self.X[joint.parent]
            across = S @ speed
            V = step @ self.V[joint.parent] + across
            turning = cross_motion(V, across) + joint.kind.subspace_rate(own, speed) @ speed
            self.V[joint.child], self.A[joint.child] = V, step @ self.A[joint.parent] + S @ rate + turning
            self.S[joint.name], self.p[joint.name] = S, own
            self.w[joint.name], self.wd[joint.name] = speed, rate

    def needs(self, body: str) -> np.ndarray:
        """The force that moves a body as it does, its weight apart, about the world's origin."""
        part = self.robot.bodies[body]
        X, inertia = self.X[body], part.spatial_inertia()
        weight = part.mass * self.robot.gravity
        centre = X.r + X.E.T @ part.centre
        moving = X.transform_force(inertia @ self.A[body] + cross_force(self.V[body], inertia @ self.V[body]))
        return moving - np.concatenate([np.cross(centre, weight), weight])

    def point(self, body: str, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a point of a body is in the world, and its velocity."""
        X, V = self.X[body], self.V[body]
        return X.r + X.E.T @ at, X.E.T @ (V[3:] + np.cross(V[:3], at))


def rest_of(joint: Any) -> bool:
    return isinstance(joint.kind, Fixed)


def link_of(robot: Robot) -> dict[str, str]:
    """For each body the one that stands for all that are welded to it."""
    above = {joint.child: joint for joint in robot.joints}
    found = {"ground": "ground"}
    for body in robot.bodies:
        at = body
        while at != "ground" and rest_of(above[at]):
            at = above[at].parent
        found[body] = at
    return found


def left_over(c: Case, i: int) -> tuple[float, float]:
    """The largest force that remains on a body of state i once all are counted, and the largest of all forces."""
    robot, walk, whole = c.robot, Walk(c.robot, c.q[i], c.v[i], c.a[i]), link_of(c.robot)
    sums, largest = {body: np.zeros(6) for body in {*whole.values()}}, 1.0

    def act(force: np.ndarray, on: str, back: str = "ground") -> None:
        nonlocal largest
        sums[whole[on]] += force
        sums[whole[back]] -= force
        largest = max(largest, float(np.abs(force).max()))

    for body in robot.bodies:
        act(-walk.needs(body), body)
    for joint in robot.joints:
        if not rest_of(joint):
            act(walk.X[joint.child].transform_force(c.forces.joints[joint.name][i]), joint.child, joint.parent)
    for loop in robot.loops:
        frame = loop.successor_frame @ walk.X[loop.successor]
        act(frame.transform_force(c.forces.loops[loop.name][i]), loop.successor, loop.predecessor)
    for body, force in zip(robot.bodies, () if c.f_ext is None else c.f_ext[i], strict=c.f_ext is not None):
        act(force, body)
    for spring in robot.elements:
        (p1, v1), (p2, v2) = (
            walk.point(spring.first, spring.first_point),
            walk.point(spring.second, spring.second_point),
        )
        length = np.linalg.norm(p2 - p1)
        along = (p2 - p1) / length
        tension = spring.stiffness * (length - spring.free_length) + spring.pretension
        pull = (tension + spring.damping * (along @ (v2 - v1))) * along
        act(np.concatenate([np.cross(p1, pull), pull]), spring.first, spring.second)
    return max(float(np.abs(force).max()) for body, force in sums.items() if body != "ground"), largest


@everywhere
def test_forces_on_every_body_are_balanced(name: str) -> None:
    c = case(name)
    for i in range(STATES):
        gap, largest = left_over(c, i)
        assert gap < BALANCE * largest, f"{gap / largest:.1e}"


@everywhere
def test_actuators_do_what_inverse_dynamics_says(name: str) -> None:
    c = case(name)
    tau, found = inverse_dynamics(c.robot, c.q, c.v, c.a, c.f_ext), np.zeros_like(c.v)
    assert list(c.forces.actuators) == c.robot.independent_joints
    for joint, force in c.forces.actuators.items():
        entries = c.robot.embedding.v_place[c.robot.tree.velocities(c.robot.tree.number[joint])]
        force = force.reshape(STATES, -1)
        assert not force[:, entries < 0].any()
        found[:, entries[entries >= 0]] = force[:, entries >= 0]
    assert np.abs(found - tau).max() < 1e-12 * c.worst * max(np.abs(tau).max(), 1.0)


@everywhere
def test_the_parts_of_a_joint_make_up_its_force(name: str) -> None:
    """Sᵀ f is what actuator, springs, dampers, armature and couplings do; constraints do nothing along S."""
    c = case(name)
    moving = [joint for joint in c.robot.joints if not rest_of(joint)]
    assert list(c.forces.joints) == list(c.forces.constraints) == [joint.name for joint in moving]
    for i in range(STATES):
        walk = Walk(c.robot, c.q[i], c.v[i], c.a[i])
        scale = max(np.abs(force[i]).max() for force in c.forces.joints.values())
        for joint in moving:
            S, kind = walk.S[joint.name], c.robot.tree.links[c.robot.tree.number[joint.name]].kind
            total, constraint = c.forces.joints[joint.name][i], c.forces.constraints[joint.name][i]
            own, w, wd = (x[joint.name] for x in (walk.p, walk.w, walk.wd))
            pull = -kind.stiffness * kind.difference(kind.rest, own) - kind.damping * w - kind.armature * wd
            assert np.atleast_1d(c.forces.passive[joint.name][i]) == pytest.approx(pull, rel=1e-9, abs=1e-9)
            along = pull + np.atleast_1d(c.forces.actuators.get(joint.name, np.zeros((STATES, kind.nv)))[i])
            for coupling in c.forces.couplings.values():
                if joint.name in coupling:
                    along = along + np.atleast_1d(coupling[joint.name][i])
            assert np.abs(S.T @ total - along).max() < 1e-10 * c.worst * scale
            assert np.abs(S.T @ constraint).max() < 1e-11 * scale
            active = joint.kind.active_force_subspace(own) @ (S.T @ total)
            assert np.abs(total - constraint - active).max() < 1e-11 * scale


def allowed(kind: Any, X: Transform) -> np.ndarray:
    """The motions that a loop joint leaves to its second frame, as columns, given there; X is from the first to it."""
    zero, eye = np.zeros(3), np.eye(3)
    turns = [np.concatenate([axis, zero]) for axis in eye]
    if isinstance(kind, Rod):
        across = np.linalg.svd((X.E @ X.r)[None])[2][1:]
        return np.array([*turns, *(np.concatenate([zero, side]) for side in across)]).T
    if isinstance(kind, Held):
        free = np.cross(*(kind.axes[:, 3:] @ X.E.T))
        return np.array([*turns, [*zero, *free]]).T
    if isinstance(kind, Fixed):
        return np.zeros((6, 0))
    if isinstance(kind, Spherical):
        return np.array(turns).T
    if isinstance(kind, Universal):
        return np.array([[*(X.E @ kind.first), *zero], [*kind.second, *zero]]).T
    if isinstance(kind, Planar):
        slides = [np.concatenate([zero, side]) for side in plane_across(kind.normal)]
        return np.array([*slides, np.concatenate([kind.normal, zero])]).T
    turn, slide = np.concatenate([kind.axis, zero]), np.concatenate([zero, kind.axis])
    if isinstance(kind, Helical):
        return (turn + kind.pitch * slide)[:, None]
    if isinstance(kind, Cylindrical):
        return np.array([turn, slide]).T
    return (turn if isinstance(kind, Revolute) else slide)[:, None]


@everywhere
def test_loops_and_couplings_do_no_work(name: str) -> None:
    c = case(name)
    assert list(c.forces.loops) == [loop.name for loop in c.robot.loops]
    for i in range(STATES):
        walk = Walk(c.robot, c.q[i], c.v[i], c.a[i])
        for loop in c.robot.loops:
            ends = loop.predecessor_frame @ walk.X[loop.predecessor], loop.successor_frame @ walk.X[loop.successor]
            force = c.forces.loops[loop.name][i]
            work = allowed(loop.kind, ends[1] @ ends[0].inverse()).T @ force
            assert np.abs(work).max(initial=0.0) < 1e-9 * max(np.abs(force).max(), 1.0)
        for coupling in c.forces.couplings.values():
            powers = np.concatenate([np.atleast_1d(coupling[joint][i]) * walk.w[joint] for joint in coupling])
            assert abs(powers.sum()) <= 1e-9 * max(np.abs(powers).max(), 1e-3)


@everywhere
def test_every_kind_of_loop_and_coupling_transmits_something(name: str) -> None:
    """So that what does no work is not zero."""
    c = case(name)
    formulas = {coupling.name for coupling in c.robot.couplings if coupling.solves}
    for loop, force in c.forces.loops.items():
        assert np.abs(force).max() > 1e-3, loop
    for coupling, by_joint in c.forces.couplings.items():
        largest = max(np.abs(force).max() for force in by_joint.values())
        assert largest == 0.0 if coupling in formulas else largest > 1e-6, coupling


# By hand

CRANK, ROD, PUSH = 0.04, 0.14, 250.0


@pytest.mark.parametrize("angle", [0.3, 1.2, 2.5])
def test_a_slider_crank_that_holds_a_piston(angle: float) -> None:
    """At rest and without weight the rod is pressed along itself, and the crank's lever makes the torque."""
    robot = robots.load("slider_crank").with_gravity((0, 0, 0))
    slope = -np.arcsin(CRANK * sin(angle) / ROD)  # of the rod, from the crank pin down to the piston
    q = robot.pack_q({"shaft": angle, "crank_pin": slope - angle, "slide": CRANK * cos(angle) + ROD * cos(slope)})
    f_ext = np.zeros((3, 6))
    f_ext[robot.body_names.index("piston"), 3] = -PUSH  # through the origin, along x
    found = joint_forces(robot, q, np.zeros(1), np.zeros(1), f_ext)
    side = -PUSH * tan(slope)  # what the slide gives, upwards; the rod presses the piston down
    assert found.loops["piston_pin"] == pytest.approx([0, 0, 0, PUSH, 0, -side], abs=1e-9)
    x = CRANK * cos(angle) + ROD * cos(slope)
    assert found.joints["slide"] == pytest.approx([0, 0, 0, 0, 0, side], abs=1e-9)
    assert found.constraints["slide"] == pytest.approx([0, 0, 0, 0, 0, side], abs=1e-9)
    assert found.joints["crank_pin"] == pytest.approx([0, 0, 0, PUSH / cos(slope), 0, 0], abs=1e-9)  # along the rod
    assert found.actuators["shaft"] == pytest.approx(-x * side, abs=1e-9)  # all in all: against what the slide does
    c, s = cos(angle), sin(angle)
    shaft = found.joints["shaft"]  # along the crank and across; the axis is −y
    assert shaft == pytest.approx([0, x * side, 0, c * PUSH - s * side, 0, -s * PUSH - c * side], abs=1e-9)
    assert found.constraints["shaft"] == pytest.approx([0, 0, 0, *shaft[3:]], abs=1e-9)


LEVER, WEIGHT = 0.3, 2.0 * 9.81


def lever(ratio: float = 8.0, **passive: float) -> Robot:
    b = RobotBuilder("lever")
    b.body("arm", mass=2.0, centre=(LEVER, 0, 0), inertia=(0.01, 0.01, 0.01))
    b.body("rotor", mass=0.5, inertia=(1e-3, 1e-3, 1e-3))
    b.joint("hinge", Revolute(axis=(0, -1, 0), **passive), "ground", "arm", at=(0, 0, 1))
    b.joint("motor", Revolute(axis=(0, -1, 0)), "ground", "rotor", at=(0, 0.1, 1))
    b.couple("gears", ["hinge", "motor"], gear(ratio), independent=["hinge"])
    return b.build()


def test_a_lever_on_a_gear() -> None:
    robot, rest = lever(), np.zeros(1)
    q = np.array([radians(60)])
    moment = WEIGHT * LEVER * cos(q[0])
    held = joint_forces(robot, q, rest, rest)  # as if a motor sat at the hinge: the gear has nothing to do
    assert held.actuators["hinge"] == pytest.approx(moment)
    assert held.couplings["gears"]["hinge"] == pytest.approx(0.0, abs=1e-12)
    c, s = cos(q[0]), sin(q[0])
    support = [0, 0, 0, s * WEIGHT, 0, c * WEIGHT]  # along the arm's axes
    assert held.constraints["hinge"] == pytest.approx(support)
    assert held.joints["hinge"] == pytest.approx([0, -moment, 0, *support[3:]])
    assert held.joints["motor"][3:] @ held.joints["motor"][3:] == pytest.approx((0.5 * 9.81) ** 2)
    driven = joint_forces(robot, q, rest, rest, actuators=["motor"])  # the rotor drives: the gear carries the arm
    assert list(driven.actuators) == ["motor"]
    assert driven.actuators["motor"] == pytest.approx(moment / 8.0)
    assert driven.couplings["gears"]["hinge"] == pytest.approx(moment)
    assert driven.couplings["gears"]["motor"] == pytest.approx(-moment / 8.0)
    assert driven.joints["hinge"] == pytest.approx(held.joints["hinge"])
    speeding = joint_forces(robot, q, rest, np.array([5.0]))  # the gear turns the rotor
    assert speeding.couplings["gears"]["motor"] == pytest.approx(1e-3 * 8.0 * 5.0)
    assert speeding.couplings["gears"]["hinge"] == pytest.approx(-8.0 * 1e-3 * 8.0 * 5.0)


def test_springs_dampers_and_armatures_stand_by_themselves() -> None:
    robot = lever(stiffness=40.0, damping=3.0, armature=0.2)
    q, v, a = np.array([0.5]), np.array([2.0]), np.array([7.0])
    found, plain = joint_forces(robot, q, v, a), joint_forces(lever(), q, v, a)
    passive = -40.0 * 0.5 - 3.0 * 2.0 - 0.2 * 7.0
    assert found.passive["hinge"] == pytest.approx(passive)
    assert found.actuators["hinge"] == pytest.approx(plain.actuators["hinge"] - passive)
    for joint in robot.joint_names:  # what the arm feels is the same
        assert found.joints[joint] == pytest.approx(plain.joints[joint])
        assert found.constraints[joint] == pytest.approx(plain.constraints[joint])


def test_a_hanging_parallelogram() -> None:
    """Cranks of no weight that stand upright share the coupler's weight; a push along it is what the motor holds."""
    robot = robots.load("four_bar").with_gravity((0, 0, 0))
    q = robot.pack_q({"joint1": radians(90), "joint2": -radians(90), "joint3": radians(90)})
    f_ext = np.zeros((3, 6))
    load = np.array([30.0, -100.0, 0.0])
    f_ext[robot.body_names.index("link2")] = np.concatenate([np.cross([0.4, 0.5, 0.0], load), load])
    found = joint_forces(robot, q, np.zeros(1), np.zeros(1), f_ext)
    # The coupler, from (0, 0.5) to (1, 0.5), is loaded at 0.4 of its length. The undriven rocker pushes along itself.
    assert found.loops["loop1"] == pytest.approx([0, 0, 0, -40.0, 0, 0], abs=1e-9)  # on the rocker, along its x: up
    assert found.joints["joint3"] == pytest.approx([0, 0, 0, 40.0, 0, 0], abs=1e-9)
    assert found.joints["joint2"] == pytest.approx([0, 0, 0, -30.0, 60.0, 0], abs=1e-9)
    assert found.actuators["joint1"] == pytest.approx(30.0 * 0.5)
    assert found.joints["joint1"] == pytest.approx([0, 0, 15.0, 60.0, 30.0, 0], abs=1e-9)


def test_a_screw_splits_by_convention() -> None:
    pitch = 0.02
    b = RobotBuilder("jack")
    b.body("nut", mass=10.0, inertia=(0.1, 0.1, 0.1))
    b.joint("thread", Helical(axis=(0, 0, 1), pitch=pitch), "ground", "nut")
    found = joint_forces(b.build(), np.zeros(1), np.zeros(1), np.zeros(1))
    assert found.joints["thread"] == pytest.approx([0, 0, 0, 0, 0, 98.1])
    assert found.actuators["thread"] == pytest.approx(pitch * 98.1)
    along = pitch * 98.1 / (1 + pitch**2)
    assert found.constraints["thread"] == pytest.approx([0, 0, -along, 0, 0, 98.1 - pitch * along])


# Loops that a formula solves


def four_bar(solved: bool, twice: bool = False) -> Robot:
    """A four-bar, whose loop joint a γ may solve; beside it, perhaps, one of a γ alone."""
    bar, z = FourBar(0.3, 0.8, 0.7, 0.9), Revolute(axis=(0, 0, 1))
    b = RobotBuilder("bars", gravity=(1.0, -9.0, 0.0))
    for side in ("", "_other")[: 1 + twice]:
        for body in ("crank", "coupler", "rocker"):
            b.body(body + side, mass=1.0, centre=(0.2, 0.1, 0), inertia=(0.1, 0.1, 0.1))
        start = {"crank": 1.0, "coupler": 0.2, "rocker": 1.6}
        b.joint(f"jcrank{side}", z, "ground", f"crank{side}", independent=True, start=start["crank"])
        b.joint(f"jcoupler{side}", z, f"crank{side}", f"coupler{side}", (bar.crank, 0, 0), start=start["coupler"])
        b.joint(f"jrocker{side}", z, "ground", f"rocker{side}", (bar.ground, 0, 0), start=start["rocker"])
        joints = [f"j{body}{side}" for body in ("crank", "coupler", "rocker")]
        if not side:
            b.loop("loop", z, "coupler", "rocker", (bar.coupler, 0, 0), (bar.rocker, 0, 0))
        if solved or side:
            b.couple(f"bars{side}", joints, bar, joints[:1], solves=[] if side else ["loop"])
    return b.build()


def test_a_loop_that_a_formula_solves_transmits_as_without() -> None:
    plain, solved = four_bar(False), four_bar(True)
    q, v, a = np.array([0.8]), np.array([2.0]), np.array([-1.0])
    every = solved.joint_positions(q)
    expected = joint_forces(plain, plain.pack_q(every), v, a)
    found = joint_forces(solved, q, v, a)
    assert np.abs(expected.loops["loop"][3:5]).min() > 0.5
    assert found.loops["loop"] == pytest.approx(expected.loops["loop"], abs=1e-9)
    for joint in every:
        assert found.joints[joint] == pytest.approx(expected.joints[joint], abs=1e-9)
        assert found.couplings["bars"][joint] == 0.0


def test_clusters_of_one_shape_may_be_held_differently() -> None:
    """One four-bar has the loop joint that its formula solves, the other the formula alone: torques at its joints."""
    robot = four_bar(True, twice=True)
    q, v, a = np.array([0.8, 0.8]), np.array([2.0, 2.0]), np.array([-1.0, -1.0])
    found = joint_forces(robot, q, v, a)
    assert found.actuators["jcrank"] == pytest.approx(found.actuators["jcrank_other"])
    assert not any(force.any() for force in found.couplings["bars"].values())
    assert all(abs(force) > 0.1 for force in found.couplings["bars_other"].values())
    assert np.abs(left_over(Case(robot, q[None], v[None], a[None], None, batched(found), 1.0), 0)[0]) < 1e-11


def batched(forces: JointForces) -> JointForces:
    """One state as a batch."""

    def each(part: Any) -> Any:
        return {name: each(x) if isinstance(x, Mapping) else x[None] for name, x in part.items()}

    return JointForces(**{name: each(part) for name, part in vars(forces).items()})


# Where actuators are


def test_actuators_may_drive_dependent_joints() -> None:
    c = case("slider_crank")
    driven = joint_forces(c.robot, c.q, c.v, c.a, actuators=["slide"])
    assert list(driven.actuators) == ["slide"]
    other = Case(c.robot, c.q, c.v, c.a, None, driven, c.worst)
    for i in range(STATES):
        gap, largest = left_over(other, i)
        assert gap < BALANCE * largest
        rate = c.robot.explicit_constraint(c.q[i])[0][c.robot.tree.velocities(c.robot.tree.number["slide"])]
        assert driven.actuators["slide"][i] * rate.item() == pytest.approx(c.forces.actuators["shaft"][i])
    assert np.abs(driven.loops["piston_pin"] - c.forces.loops["piston_pin"]).max() > 1.0


def test_all_rotors_of_a_quadruped_can_be_driven() -> None:
    c = case("mini_cheetah")
    rotors = [joint for joint in c.robot.joint_names if "rotor" in joint]
    driven = joint_forces(c.robot, c.q, c.v, c.a, actuators=rotors)
    assert set(driven.actuators) == {*rotors, *c.robot.independent_joints} - {*c.robot.actuated_joints}
    assert left_over(Case(c.robot, c.q, c.v, c.a, None, driven, 1.0), 0)[0] < 1e-10


@pytest.mark.parametrize(
    ("actuators", "said"),
    [
        (["knee"], "'knee' is not a joint that moves"),
        (["hinge", "motor"], "drive 2 velocities of a cluster with 1 freedom"),
        ("motor", "must be a list of names"),
        ([3], "must be a list of names"),
    ],
)
def test_wrong_actuators_are_refused(actuators: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        joint_forces(lever(), np.zeros(1), np.zeros(1), np.zeros(1), actuators=actuators)


def test_joints_that_cannot_drive_are_refused() -> None:
    b = RobotBuilder("two")
    for name in ("a", "b", "c", "d"):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"j{name}", Revolute(), "ground", name)
    b.couple("first", ["ja", "jb", "jc", "jd"], lambda y: np.array([y[0], y[1], 2.0 * y[0], y[0] - y[1]]), ["ja", "jb"])
    robot, zero = b.build(), np.zeros(2)
    assert joint_forces(robot, zero, zero, zero, actuators=["jc", "jd"]).actuators["jc"].shape == ()
    with pytest.raises(ModelError, match="'ja', 'jc' cannot move all freedoms"):
        joint_forces(robot, zero, zero, zero, actuators=["ja", "jc"])


# Calling


@pytest.mark.parametrize(
    "name", sweep(["geared loop", "four-bar", "tello", "crossed afloat"], ["four-bar", "crossed afloat"])
)
def test_one_state_is_the_same_as_in_a_batch(name: str) -> None:
    c = case(name, "llvm")
    for i in range(STATES):
        one = joint_forces(c.robot, c.q[i], c.v[i], c.a[i], None if c.f_ext is None else c.f_ext[i])
        for part in ("joints", "constraints", "actuators", "passive", "loops"):
            several = getattr(c.forces, part)
            assert getattr(one, part).keys() == several.keys()
            for key, force in getattr(one, part).items():
                assert force.shape == several[key].shape[1:]
                assert force == pytest.approx(several[key][i], rel=1e-12, abs=1e-12)
        for coupling, by_joint in one.couplings.items():
            for joint, force in by_joint.items():
                assert force == pytest.approx(c.forces.couplings[coupling][joint][i], rel=1e-12, abs=1e-12)


def test_batches_of_any_shape_are_broadcast() -> None:
    robot = lever()
    q = np.linspace(0.1, 0.6, 6).reshape(2, 3, 1)
    found = joint_forces(robot, q, np.zeros(1), np.ones(1))
    assert found.joints["hinge"].shape == (2, 3, 6)
    assert found.actuators["hinge"].shape == (2, 3)
    assert found.joints["hinge"][1, 2] == pytest.approx(joint_forces(robot, q[1, 2], [0.0], [1.0]).joints["hinge"])


def test_single_precision_stays_so() -> None:
    c = case("five_bar")
    q, v, a = (x.astype(np.float32) for x in (c.q, c.v, c.a))
    found = joint_forces(c.robot, q, v, a)
    for joint, force in found.joints.items():
        assert force.dtype == np.float32
        assert force == pytest.approx(c.forces.joints[joint], rel=1e-2, abs=1e-2)


def test_results_print_and_name_what_there_is() -> None:
    found = joint_forces(lever(), np.zeros(1), np.zeros(1), np.zeros(1))
    assert "hinge" in repr(found.couplings)
    assert "gears: hinge" in str(found)
    with pytest.raises(KeyError, match="knee"):
        found.joints["knee"]


def test_what_is_wrong_is_told() -> None:
    c = case("five_bar")
    q, v = c.q[0], c.v[0]
    ajar = q.copy()
    ajar[-1] += 0.01
    with pytest.raises(ModelError, match="does not close"):
        joint_forces(c.robot, ajar, v, v)
    with pytest.raises(ModelError, match=r"does not close.* in state 1"):
        joint_forces(c.robot, np.stack([q, ajar]), v, v)
    with pytest.raises(ModelError, match="v must be finite; entry 1"):
        joint_forces(c.robot, q, np.array([0.0, np.nan]), v)
    with pytest.raises(ModelError, match="'a' has shape"):
        joint_forces(c.robot, q, v, np.zeros(3))
    with pytest.raises(ModelError, match="f_ext has the shape"):
        joint_forces(c.robot, q, v, v, np.zeros((2, 6)))


def test_dead_centres_are_told() -> None:
    """With the crank in line with the rod, no force at the slide holds it."""
    robot = robots.load("slider_crank")
    q = robot.pack_q({"shaft": 0.0, "crank_pin": 0.0, "slide": CRANK + ROD})
    joint_forces(robot, q, np.zeros(1), np.zeros(1))
    with pytest.raises(ModelError, match="no finite result"):
        joint_forces(robot, q, np.zeros(1), np.zeros(1), actuators=["slide"])
