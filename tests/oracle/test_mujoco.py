"""Random trees and robots with loops against MuJoCo, which is given the same parts: dynamics, kinematics, energy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.model import Fixed, Free, Joint, Robot, Spherical
from coupler.model.loops import LoopJoint
from coupler.model.tree import TreeJoint
from coupler.rotation import matrix_from_quaternion, quaternion_product
from coupler.spatial import Transform
from effort import sweep
from peers import Batch, Equations, Motion, batch_of, children, coupling_rows, gap, loop_rows, random_tree, steps
from random_robots import Rng, sample

# 3.3 finds the axes of inertia to 1e-9 only and leaves J̇ v out of its equality constraints; 4.0 does neither.
mujoco: Any = pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed (pip install 'mujoco>=4')")

EXACT = 1e-10  # relative to the largest entry; 4e-15 is reached for trees, 1e-13 with loops

TAGS = {"turn": "hinge", "shift": "slide", "ball": "ball", "free": "free"}


# The robot in MuJoCo


def text(values: Iterable[float]) -> str:
    """Numbers with all their digits."""
    return " ".join(repr(float(value)) for value in values)


def placed(X: Transform) -> str:
    """Attributes of a frame in another, for the transform from that other to it."""
    return f'pos="{text(X.r)}" xyaxes="{text(np.ravel(X.E[:2]))}"'


def joint_tags(joint: TreeJoint) -> str:
    """A joint as simple ones in a row; what is passive in a ball or a free joint is alike along all axes."""
    tags, passive = [], ("stiffness", "damping", "armature")
    for i, (step, axis) in enumerate(steps(joint.kind)):
        own = [f'{key}="{text(getattr(joint.kind, key)[i : i + 1])}"' for key in passive]
        own += [] if axis is None else [f'axis="{text(axis)}"']
        tags.append(f'<joint name="{joint.name} {i}" type="{TAGS[step]}" {" ".join(own)}/>')
    return "\n".join(tags)


def description(robot: Robot, equalities: str = "") -> str:
    """MJCF of the spanning tree and what closes it."""
    below = children(robot)

    def sites(body: str) -> str:
        """Frames of loops and named frames on a body."""
        ends = [(f"{loop.name} {end}", X) for loop in robot.loops for end, owner, X in ends_of(loop) if owner == body]
        frames = [] if body == "ground" else list(robot.bodies[body].frames.items())
        return "\n".join(f'<site name="{name}" {placed(X)}/>' for name, X in [*ends, *frames])

    def carried(body: str) -> str:
        found = sites(body)
        for joint in below[body]:
            child = robot.bodies[joint.child]
            xx, yy, zz, xy, xz, yz = child.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            inertia = f'mass="{child.mass!r}" pos="{text(child.centre)}" fullinertia="{text([xx, yy, zz, xy, xz, yz])}"'
            found += f'<body name="{child.name}" {placed(joint.placement)}><inertial {inertia}/>'
            found += f"{joint_tags(joint)}{carried(child.name)}</body>\n"
        return found

    return f"""<mujoco>
    <compiler angle="radian" autolimits="true" balanceinertia="false"/>
    <option gravity="{text(robot.gravity)}" tolerance="1e-15" iterations="1000">
        <flag contact="disable" energy="enable" {"" if equalities else 'constraint="disable"'}/>
    </option>
    <worldbody>{carried("ground")}</worldbody>
    <equality>{equalities}</equality>
    </mujoco>"""


def ends_of(loop: LoopJoint) -> list[tuple[str, str, Transform]]:
    return [
        ("first", loop.predecessor, loop.predecessor_frame),
        ("second", loop.successor, loop.successor_frame),
    ]


class Peer:
    """The spanning tree of a robot in MuJoCo, built from its description, in one state.

    The linear velocity of a free joint is along the world's axes there: velocities are T w, accelerations T ẇ + t.
    """

    def __init__(self, robot: Robot, equalities: str = "") -> None:
        self.robot, self.model = robot, mujoco.MjModel.from_xml_string(description(robot, equalities))
        self.data = mujoco.MjData(self.model)
        for joint in robot.joints:
            if joint.kind.nv and not isinstance(joint.kind, Free):
                self.model.qpos_spring[self._positions(joint)] = joint.kind.rest

    def _positions(self, joint: TreeJoint) -> slice:
        start = self.model.joint(f"{joint.name} 0").qposadr[0]
        return slice(start, start + joint.kind.nq)

    def _velocities(self, joint: TreeJoint) -> slice:
        start = self.model.joint(f"{joint.name} 0").dofadr[0]
        return slice(start, start + joint.kind.nv)

    def move(self, q: np.ndarray, w: np.ndarray, tau: Any = None, f_ext: Any = None) -> None:
        """Takes a state with forces at all joints and on bodies, and computes everything there."""
        known, tree, data = self.robot.joint_positions(q), self.robot.tree, self.data
        self.T, self.t = np.zeros((tree.nv, tree.nv)), np.zeros(tree.nv)
        for joint in self.robot.joints:
            if not joint.kind.nv:
                continue
            own, entries = self._velocities(joint), tree.velocities(tree.number[joint.name])
            p, turn, shift = known[joint.name], np.eye(joint.kind.nv), np.zeros(joint.kind.nv)
            if isinstance(joint.kind, Free):  # there it is not against its place, but against the world
                p, turn, shift = self._afloat(joint, p, w[entries])
            data.qpos[self._positions(joint)] = p
            self.T[own, entries], self.t[own] = turn, shift
        data.qvel[:] = self.T @ w
        data.qfrc_applied[:] = 0.0 if tau is None else np.linalg.solve(self.T.T, tau)
        data.xfrc_applied[:] = 0.0
        mujoco.mj_forward(self.model, data)
        if f_ext is not None:
            self._push(f_ext)
            mujoco.mj_forward(self.model, data)

    def _afloat(self, joint: TreeJoint, p: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        assert joint.parent == "ground"
        placed = np.empty(4)
        mujoco.mju_mat2Quat(placed, np.ravel(joint.placement.E.T))
        quaternion = quaternion_product(placed, p[3:])
        R, none = matrix_from_quaternion(quaternion), np.zeros((3, 3))
        position = joint.placement.r + joint.placement.E.T @ p[:3]
        shift = np.concatenate([R @ np.cross(w[:3], w[3:]), np.zeros(3)])
        return np.concatenate([position, quaternion]), np.block([[none, R], [np.eye(3), none]]), shift

    def _push(self, f_ext: np.ndarray) -> None:
        """Forces about the world's origin, as force and moment at centres of mass."""
        for body, f in zip(self.robot.bodies, f_ext, strict=True):
            number = self.model.body(body).id
            self.data.xfrc_applied[number] = [*f[3:], *(f[:3] - np.cross(self.data.xipos[number], f[3:]))]

    def equations(self) -> Equations:
        """Springs and dampers are part of c; forces that were applied are not."""
        n = self.model.nv
        H = np.empty((n, n))
        for column, unit in zip(H, np.eye(n), strict=True):
            mujoco.mj_mulM(self.model, self.data, column, unit)
        c = self.data.qfrc_bias - self.data.qfrc_passive
        return Equations(H, c).projected(self.T, self.t)

    def accelerations(self) -> np.ndarray:
        return np.linalg.solve(self.T, self.data.qacc - self.t)

    def motion(self, site: str) -> Motion:
        """How a site moves, with joints that do not accelerate."""
        place = self.data.site(site)
        X, body = Transform(place.xmat.reshape(3, 3).T, place.xpos), int(self.model.site(site).bodyid[0])
        J, rate = np.zeros((2, 6, self.model.nv))
        mujoco.mj_jac(self.model, self.data, J[3:], J[:3], X.r, body)
        mujoco.mj_jacDot(self.model, self.data, rate[3:], rate[:3], X.r, body)
        V = J @ self.data.qvel
        return Motion.along_world(X, J @ self.T, V, rate @ self.data.qvel + J @ self.t)


# Trees


KINDS = "revolute prismatic spherical fixed cylindrical continuous universal planar"
TREES = {
    "chain of turns": ("revolute", 3, False),
    "turns and shifts": ("revolute prismatic", 15, False),
    "floating turns": ("revolute", 12, True),
    "balls": ("spherical", 5, False),
    "balls afloat": ("spherical prismatic revolute", 9, True),
    "welded": ("revolute fixed", 10, True),
    "every kind": (KINDS, 15, False),
    "every kind afloat": (KINDS, 14, True),
}
Drawn = tuple[Robot, Peer, Batch]


def with_passive_parts(rng: Rng, kind: Joint) -> Joint:
    """Springs, dampers and armatures, alike along all axes of a ball.

    A free joint has a damper only: its spring acts along a screw here and along a line there, and its armature would
    go by the body's axes here and by the world's there.
    """
    if isinstance(kind, Fixed):
        return kind
    if isinstance(kind, Free):
        return replace(kind, damping=rng.uniform(0.0, 1.0))
    size = () if isinstance(kind, Spherical) else kind.nv
    stiffness, damping, armature = (rng.uniform(0.0, most, size) for most in (20.0, 1.0, 0.5))
    rest = kind.integrate(kind.neutral(), rng.uniform(-0.5, 0.5, kind.nv))
    return replace(kind, stiffness=stiffness, rest=rest, damping=damping, armature=armature)


@pytest.fixture(scope="module", params=sweep(TREES, ["balls", "every kind afloat"]))
def drawn(request: pytest.FixtureRequest) -> Drawn:
    kinds, n, floating = TREES[request.param]
    rng = np.random.default_rng([4, *request.param.encode()])
    robot = random_tree(rng, kinds.split(), n, floating, with_passive_parts)
    return robot, Peer(robot), batch_of(robot)


def spread(robot: Robot, v: np.ndarray) -> np.ndarray:
    """What belongs to independent joints in the order of w, zero at dependent ones; a tree has none of those."""
    w = np.zeros(robot.tree.nv)
    w[robot.embedding.v_index] = v
    return w


def test_forces_and_accelerations_of_trees(drawn: Drawn) -> None:
    """H, c and accelerations, with forces on bodies and without; springs, dampers and armatures take part."""
    robot, peer, batch = drawn
    H, c = coupler.mass_matrix(robot, batch.q), coupler.bias_force(robot, batch.q, batch.v)
    a = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    loaded = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau, batch.f_ext)
    order = robot.embedding.v_index
    for i, q in enumerate(batch.q):
        w, tau = spread(robot, batch.v[i]), spread(robot, batch.tau[i])
        peer.move(q, w, tau)
        expected = peer.equations()
        assert gap(H[i], expected.H[np.ix_(order, order)]) < EXACT
        assert gap(c[i], expected.c[order]) < EXACT
        assert gap(a[i], peer.accelerations()[order]) < EXACT
        peer.move(q, w, tau, batch.f_ext[i])
        assert gap(loaded[i], peer.accelerations()[order]) < EXACT


def test_frames_of_trees(drawn: Drawn) -> None:
    """Poses, Jacobians, velocities and accelerations of a frame on each body."""
    robot, peer, batch = drawn
    robot, order = robot.with_backend("interpreter"), robot.embedding.v_index  # each frame has programs of its own
    for i, (q, v, a) in enumerate(zip(batch.q, batch.v, batch.a, strict=True)):
        peer.move(q, spread(robot, batch.v[i]))
        for frame in robot.frame_names:
            expected, pose = peer.motion(frame), coupler.frame_pose(robot, q, frame)
            assert gap(pose[:3, :3], expected.X.E.T) < EXACT
            assert gap(pose[:3, 3], expected.X.r) < EXACT
            assert gap(coupler.frame_jacobian(robot, q, frame), expected.J[:, order]) < EXACT
            assert gap(coupler.frame_velocity(robot, q, v, frame), expected.V) < EXACT
            A = expected.J @ spread(robot, a) + expected.A
            A[3:] += np.cross(expected.V[:3], expected.V[3:])
            assert gap(coupler.frame_acceleration(robot, q, v, a, frame), A) < EXACT


def test_centre_and_energy_of_trees(drawn: Drawn) -> None:
    robot, peer, batch = drawn
    centre = coupler.centre_of_mass(robot, batch.q)
    kinetic, potential = coupler.kinetic_energy(robot, batch.q, batch.v), coupler.potential_energy(robot, batch.q)
    for i, q in enumerate(batch.q):
        peer.move(q, spread(robot, batch.v[i]))
        assert gap(centre[i], peer.data.subtree_com[0]) < EXACT
        assert gap(potential[i], peer.data.energy[0]) < EXACT
        assert gap(kinetic[i], peer.data.energy[1]) < EXACT


# Loops and couplings


BUNDLED: dict[str, dict[str, Any]] = {
    "four_bar": {},
    "five_bar": {},
    "six_bar": {},
    "slider_crank": {},
    "geared_chain": {"links": 4, "seed": 2},
}
LOOPS = ["four_bar", "five_bar", "six_bar", "slider_crank", "fixed loop", "revolute loop", "universal loop", "rod loop"]
LOOPS += ["spherical loop", "rod loop afloat", "idle rod", "nested", "five-bar"]
LINEAR = ["gear", "belt", "differential", "rack and pinion"]


def robot_of(name: str) -> Robot:
    """On the interpreter: there are few states of many robots."""
    robot = coupler.robots.load(name, **BUNDLED[name]) if name in BUNDLED else sample(name).robot
    return robot.with_backend("interpreter")


@pytest.mark.parametrize("name", [*LOOPS, *LINEAR])
def test_loops_and_couplings_are_kept_as_by_constraint_forces(name: str) -> None:
    """Accelerations of all joints; H, c and motions of a loop's frames are MuJoCo's, and gears are rows of numbers."""
    robot, relation = robot_of(name), None if name in BUNDLED else sample(name).relation
    peer, batch = Peer(robot), batch_of(robot)
    found = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, q in enumerate(batch.q):
        G, g = robot.explicit_constraint(q, batch.v[i])
        w = G @ batch.v[i]
        peer.move(q, w)
        ends = [[peer.motion(f"{loop.name} {end}") for end in ("first", "second")] for loop in robot.loops]
        rows = [loop_rows(loop, *motions) for loop, motions in zip(robot.loops, ends, strict=True)]
        if relation:
            K = coupling_rows(robot, relation)
            rows.append((K, np.zeros(len(K))))
        K, k = (np.concatenate(part) for part in zip(*rows, strict=True))
        assert np.abs(K @ w).max() < EXACT * np.abs(w).max()
        expected = peer.equations().closed(spread(robot, batch.tau[i]), K, k)
        assert gap(G @ found[i] + g, expected) < EXACT


# MuJoCo's own equality constraints, which are soft


HARD = 0.9999, 0.9998, 0.9997, 0.9996, 0.9995, 0.9994  # impedances; the first is the largest that MuJoCo takes


def equality_tags(robot: Robot, impedance: float) -> str:
    """Points, frames and pairs of joints that are held together. There is hardly a pull: they are closed already."""
    settings = f'solref="-1 -1" solimp="{impedance} {impedance} 1"'
    tags = []
    for loop in robot.loops:
        tag = "weld" if isinstance(loop.kind, Fixed) else "connect"
        tags.append(f'<{tag} site1="{loop.name} first" site2="{loop.name} second" {settings}/>')
    for coupling in robot.couplings:
        (own,), (other,) = coupling.independent, set(coupling.joints) - set(coupling.independent)
        start, end = (coupling.function(np.array([y]))[coupling.joints.index(other)] for y in (0.0, 1.0))
        line = text([start, end - start, 0, 0, 0])
        tags.append(f'<joint joint1="{other} 0" joint2="{own} 0" polycoef="{line}" {settings}/>')
    return "\n".join(tags)


def limit(peers: list[Peer]) -> np.ndarray:
    """Accelerations of infinitely hard constraints, by the polynomial through those of different softness."""
    softness = np.array([(1 - d) / d for d in HARD])
    weights = [np.prod(softness[softness != s] / (softness[softness != s] - s)) for s in softness]
    return np.sum([weight * peer.accelerations() for weight, peer in zip(weights, peers, strict=True)], axis=0)


POINTS = ["four_bar", "five_bar", "six_bar", "slider_crank", "spherical loop", "idle rod"]


@pytest.mark.parametrize("name", [*POINTS, "fixed loop", "gear", "rack and pinion", "geared_chain"])
def test_equality_constraints(name: str) -> None:
    """Against MuJoCo's solver: what it tends to as its constraints become hard.

    At its hardest it is away by 2e-6 to 5e-4, and 2e-2 for the weld, whose six rows are badly conditioned. The limit is
    reached to 9e-10, which is the solver's 2e-11 magnified by the polynomial, and for the weld to 1e-7, the error of
    the polynomial itself: with four points instead of six it is 7e-6.
    """
    robot = robot_of(name)
    peers, batch = [Peer(robot, equality_tags(robot, d)) for d in HARD], batch_of(robot)
    found = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, q in enumerate(batch.q):
        G, g = robot.explicit_constraint(q, batch.v[i])
        for peer in peers:
            peer.move(q, G @ batch.v[i], spread(robot, batch.tau[i]))
        assert gap(G @ found[i] + g, limit(peers)) < (1e-6 if name == "fixed loop" else 1e-8)
