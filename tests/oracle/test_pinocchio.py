"""Random trees and robots with loops against Pinocchio, which is given the same parts: dynamics, kinematics, energy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.model import Joint, Revolute, Robot, RobotBuilder, Spherical
from coupler.spatial import Transform
from peers import Batch, Equations, Motion, batch_of, children, coupling_rows, gap, loop_rows, random_tree, steps
from random_robots import Rng, sample

pin: Any = pytest.importorskip("pinocchio", reason="Pinocchio is not installed (pip install pin)")

EXACT = 1e-10  # relative to the largest entry; 1e-14 is reached for trees, 1e-13 with loops

ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]


def pose_of(X: Transform) -> Any:
    """The pose of a frame in another, for the transform from that other to it."""
    return pin.SE3(np.array(X.E).T, np.array(X.r))


def joint_model(step: str, axis: Any) -> Any:
    """A joint of one step."""
    if step == "turn":
        return pin.JointModelRevoluteUnaligned(axis)
    if step == "shift":
        return pin.JointModelPrismaticUnaligned(axis)
    if step == "screw":
        return pin.JointModelHelicalUnaligned(*axis)
    return pin.JointModelSpherical() if step == "ball" else pin.JointModelFreeFlyer()


class Peer:
    """The spanning tree of a robot in Pinocchio, built from its description.

    Quaternions are x, y, z, w there, and velocities linear first. Joints of several freedoms become simple ones with
    massless bodies between them.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.model = robot, pin.Model()
        self.model.gravity.linear = np.array(robot.gravity)
        self.place = {"ground": (0, pin.SE3.Identity())}
        self._children, self._v = children(robot), []
        self._q: list[tuple[str, list[int]]] = []
        self._grow("ground")
        self.model.armature = np.concatenate([link.kind.armature for link in robot.tree.links])[self._v]
        for loop in robot.loops:
            self._add_frame(f"{loop.name} first", loop.predecessor, loop.predecessor_frame)
            self._add_frame(f"{loop.name} second", loop.successor, loop.successor_frame)
        self.data = self.model.createData()

    def _grow(self, body: str) -> None:
        """Depth first, which `crba` needs."""
        for joint in self._children[body]:
            number, at = self.place[body]
            at = at * pose_of(joint.placement)
            for i, (step, axis) in enumerate(steps(joint.kind)):
                number = self.model.addJoint(number, joint_model(step, axis), at, f"{joint.name} {i}")
                at = pin.SE3.Identity()
            if joint.kind.nv:
                self._add_entries(joint.name, joint.kind)
            self.place[joint.child] = number, at
            child = self.robot.bodies[joint.child]
            self.model.appendBodyToJoint(number, pin.Inertia(child.mass, child.centre, child.inertia), at)
            self._add_frame(child.name, child.name, Transform.identity())
            for name, X in child.frames.items():
                self._add_frame(name, child.name, X)
            self._grow(child.name)

    def _add_entries(self, joint: str, kind: Joint) -> None:
        q = {4: [1, 2, 3, 0], 7: [0, 1, 2, 4, 5, 6, 3]}.get(kind.nq, list(range(kind.nq)))
        v = ANGULAR_FIRST if kind.nv == 6 else list(range(kind.nv))
        self._q.append((joint, q))
        self._v += self.robot.tree.velocities(self.robot.tree.number[joint])[v].tolist()

    def _add_frame(self, name: str, body: str, X: Transform) -> None:
        number, at = self.place[body]
        self.model.addFrame(pin.Frame(name, number, at * pose_of(X), pin.FrameType.OP_FRAME))

    # Coordinates

    def positions(self, q: np.ndarray) -> np.ndarray:
        known = self.robot.joint_positions(q)
        return np.concatenate([np.atleast_1d(known[joint])[order] for joint, order in self._q])

    def given(self, w: np.ndarray) -> np.ndarray:
        """Velocities, accelerations or forces of all joints, in Pinocchio's order."""
        return w[self._v]

    def back(self, x: np.ndarray) -> np.ndarray:
        """Velocities, accelerations or forces of all joints, from Pinocchio's order in coupler's."""
        w = np.empty_like(x)
        w[self._v] = x
        return w

    def forces(self, f_ext: np.ndarray, q: np.ndarray) -> Any:
        """Forces about the world's origin, as forces in the frames of joints."""
        pin.forwardKinematics(self.model, self.data, self.positions(q))
        found = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for body, f in zip(self.robot.bodies, f_ext, strict=True):
            number = self.place[body][0]
            found[number] += self.data.oMi[number].actInv(pin.Force(f[3:], f[:3]))
        return pin.StdVec_Force(found)

    # Dynamics

    def equations(self, q: np.ndarray, w: np.ndarray) -> Equations:
        p = self.positions(q)
        H = np.triu(pin.crba(self.model, self.data, p))  # one triangle is filled
        H = self.back(self.back(H + np.triu(H, 1).T).T)
        return Equations(H, self.back(pin.nonLinearEffects(self.model, self.data, p, self.given(w))))

    def motion(self, frame: str, q: np.ndarray, w: np.ndarray) -> Motion:
        """How a frame moves, with joints that do not accelerate."""
        p, local = self.positions(q), pin.ReferenceFrame.LOCAL
        pin.computeJointJacobians(self.model, self.data, p)
        pin.forwardKinematics(self.model, self.data, p, self.given(w), 0.0 * w)
        pin.updateFramePlacements(self.model, self.data)
        number = self.model.getFrameId(frame)
        pose = self.data.oMf[number]
        J = pin.getFrameJacobian(self.model, self.data, number, local)[ANGULAR_FIRST]
        V, A = (
            get(self.model, self.data, number, local).vector[ANGULAR_FIRST]
            for get in (pin.getFrameVelocity, pin.getFrameAcceleration)
        )
        return Motion(Transform(pose.rotation.T, pose.translation), self.back(J.T).T, V, A)


# Trees


KINDS = "revolute prismatic helical spherical fixed cylindrical continuous universal planar free"
TREES = {
    "chain of turns": ("revolute", 3, False),
    "turns and shifts": ("revolute prismatic", 15, False),
    "floating turns": ("revolute", 12, True),
    "screws and balls": ("helical spherical", 7, False),
    "balls afloat": ("spherical prismatic revolute", 9, True),
    "free on free": ("free revolute", 6, True),
    "welded": ("revolute fixed", 10, True),
    "every kind": (KINDS, 15, False),
    "every kind afloat": (KINDS, 14, True),
    "every kind, again": (" ".join(reversed(KINDS.replace("fixed ", "").split())), 15, True),
}


def with_armature(rng: Rng, kind: Joint) -> Joint:
    """On some joints, also where no motor could be."""
    return replace(kind, armature=rng.uniform(0.0, 0.5, kind.nv) * (rng.random() < 0.5))


Drawn = tuple[Robot, Peer, Batch]


@pytest.fixture(scope="module", params=TREES)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    kinds, n, floating = TREES[request.param]
    robot = random_tree(np.random.default_rng([3, *request.param.encode()]), kinds.split(), n, floating, with_armature)
    return robot, Peer(robot), batch_of(robot)


def spread(robot: Robot, v: np.ndarray) -> np.ndarray:
    """What belongs to independent joints in the order of w, zero at dependent ones; a tree has none of those."""
    w = np.zeros(robot.tree.nv)
    w[robot.embedding.v_index] = v
    return w


def test_forces_and_accelerations_of_trees(drawn: Drawn) -> None:
    """H, c, inverse and forward dynamics, with forces on bodies and without: crba, nonLinearEffects, rnea and aba."""
    robot, peer, batch = drawn
    H, c = coupler.mass_matrix(robot, batch.q), coupler.bias_force(robot, batch.q, batch.v)
    inverse, loaded_inverse, forward, loaded_forward = (
        function(robot, batch.q, batch.v, x, *loads)
        for function, x in ((coupler.inverse_dynamics, batch.a), (coupler.forward_dynamics, batch.tau))
        for loads in ((), (batch.f_ext,))
    )
    order = robot.embedding.v_index
    for i, q in enumerate(batch.q):
        w, a, tau = (peer.given(spread(robot, x[i])) for x in (batch.v, batch.a, batch.tau))
        expected = peer.equations(q, spread(robot, batch.v[i]))
        assert gap(H[i], expected.H[np.ix_(order, order)]) < EXACT
        assert gap(c[i], expected.c[order]) < EXACT
        state, forces = (peer.model, peer.data, peer.positions(q), w), peer.forces(batch.f_ext[i], q)
        assert gap(inverse[i], peer.back(pin.rnea(*state, a))[order]) < EXACT
        assert gap(loaded_inverse[i], peer.back(pin.rnea(*state, a, forces))[order]) < EXACT
        assert gap(forward[i], peer.back(pin.aba(*state, tau))[order]) < EXACT
        assert gap(loaded_forward[i], peer.back(pin.aba(*state, tau, forces))[order]) < EXACT


@pytest.mark.parametrize("axes", ["frame", "world"])
def test_frames_of_trees(drawn: Drawn, axes: Any) -> None:
    """Poses, Jacobians, velocities and accelerations of a frame on each body, and of bodies."""
    robot, peer, batch = drawn
    seen = pin.ReferenceFrame.LOCAL if axes == "frame" else pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    order = robot.embedding.v_index
    frames = [name for body in robot.bodies for name in (f"tool{body}", body)][:8]
    for i, q in enumerate(batch.q):
        p, w, a = peer.positions(q), *(peer.given(spread(robot, x[i])) for x in (batch.v, batch.a))
        for frame in frames:
            number = peer.model.getFrameId(frame)
            J = pin.computeFrameJacobian(peer.model, peer.data, p, number, seen)[ANGULAR_FIRST]
            pin.forwardKinematics(peer.model, peer.data, p, w, a)
            pin.updateFramePlacements(peer.model, peer.data)
            V, A = (
                get(peer.model, peer.data, number, seen).vector[ANGULAR_FIRST]
                for get in (pin.getFrameVelocity, pin.getFrameClassicalAcceleration)
            )
            assert gap(coupler.frame_pose(robot, q, frame), peer.data.oMf[number].homogeneous) < EXACT
            assert gap(coupler.frame_jacobian(robot, q, frame, axes), peer.back(J.T).T[:, order]) < EXACT
            assert gap(coupler.frame_velocity(robot, q, batch.v[i], frame, axes), V) < EXACT
            assert gap(coupler.frame_acceleration(robot, q, batch.v[i], batch.a[i], frame, axes), A) < EXACT


def test_centre_momentum_and_energy_of_trees(drawn: Drawn) -> None:
    robot, peer, batch = drawn
    bare = pin.Model(peer.model)  # 4.1 counts armatures at some joints, not at revolute and helical ones of any axis
    bare.armature = 0.0 * bare.armature
    centre, momentum = coupler.centre_of_mass(robot, batch.q), coupler.momentum(robot, batch.q, batch.v)
    kinetic, potential = coupler.kinetic_energy(robot, batch.q, batch.v), coupler.potential_energy(robot, batch.q)
    for i, q in enumerate(batch.q):
        p, w = peer.positions(q), peer.given(spread(robot, batch.v[i]))
        assert gap(centre[i], pin.centerOfMass(peer.model, peer.data, p)) < EXACT
        about_centre = pin.computeCentroidalMomentum(peer.model, peer.data, p, w)
        moved = about_centre.angular + np.cross(centre[i], about_centre.linear)
        assert gap(momentum[i], [*moved, *about_centre.linear]) < EXACT
        turning = 0.5 * float(peer.model.armature @ w**2)
        assert gap(kinetic[i], pin.computeKineticEnergy(bare, peer.data, p, w) + turning) < EXACT
        assert gap(potential[i], pin.computePotentialEnergy(peer.model, peer.data, p)) < EXACT


# Loops and couplings


BUNDLED: dict[str, dict[str, Any]] = {
    "four_bar": {},
    "five_bar": {},
    "six_bar": {},
    "slider_crank": {},
    "planar_leg_linkage": {},
    "geared_chain": {"links": 6, "seed": 2},
    "belt_chain": {"links": 6, "seed": 3},
    "mini_cheetah": {},
    "tello": {},
}
LOOPS = [f"{kind} loop" for kind in ("fixed", "revolute", "prismatic", "helical", "cylindrical", "universal", "planar")]
LOOPS += ["spherical loop", "rod loop", "fixed loop afloat", "rod loop afloat", "spherical loop afloat", "idle rod"]
LOOPS += ["series", "nested", "five-bar"]
LINEAR = ["gear", "belt", "differential", "rack and pinion", "linear"]
CURVED = ["polynomial", "four-bar", "cam", "implicit", "two for one", "geared loop"]


def robot_of(name: str) -> Robot:
    return coupler.robots.load(name, **BUNDLED[name]) if name in BUNDLED else sample(name).robot


@pytest.mark.parametrize("name", [*BUNDLED, *LOOPS, *LINEAR, *CURVED])
def test_dynamics_are_the_projection_of_the_tree(name: str) -> None:
    """H = Gᵀ H G and c = Gᵀ (c + H g), where H and c of all joints are Pinocchio's, and G and g are coupler's."""
    robot = robot_of(name)
    peer, batch = Peer(robot), batch_of(robot)
    H, c = coupler.mass_matrix(robot, batch.q), coupler.bias_force(robot, batch.q, batch.v)
    needs = coupler.inverse_dynamics(robot, batch.q, batch.v, batch.a)
    a = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    loaded = coupler.bias_force(robot, batch.q, batch.v, batch.f_ext)
    for i, q in enumerate(batch.q):
        G, g = robot.explicit_constraint(q, batch.v[i])
        expected = peer.equations(q, G @ batch.v[i]).projected(G, g)
        assert gap(H[i], expected.H) < EXACT
        assert gap(c[i], expected.c) < EXACT
        assert gap(needs[i], expected.H @ batch.a[i] + expected.c) < EXACT
        assert gap(a[i], expected.accelerations(batch.tau[i])) < EXACT
        state = peer.model, peer.data, peer.positions(q), peer.given(G @ batch.v[i]), peer.given(g)
        assert gap(loaded[i], G.T @ peer.back(pin.rnea(*state, peer.forces(batch.f_ext[i], q)))) < EXACT


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "six_bar", "slider_crank", "planar_leg_linkage", *LOOPS])
def test_loops_are_closed_as_by_constraint_forces(name: str) -> None:
    """Accelerations of all joints, where Pinocchio knows how the frames of a loop move; nothing of coupler's G or g."""
    robot = robot_of(name)
    peer, batch = Peer(robot), batch_of(robot)
    found = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, q in enumerate(batch.q):
        G, g = robot.explicit_constraint(q, batch.v[i])
        w = G @ batch.v[i]
        ends = [[peer.motion(f"{loop.name} {end}", q, w) for end in ("first", "second")] for loop in robot.loops]
        rows = [loop_rows(loop, *motions) for loop, motions in zip(robot.loops, ends, strict=True)]
        K, k = (np.concatenate(part) for part in zip(*rows, strict=True))
        assert np.abs(K @ w).max() < EXACT * np.abs(w).max()
        expected = peer.equations(q, w).closed(spread(robot, batch.tau[i]), K, k)
        assert gap(G @ found[i] + g, expected) < EXACT


@pytest.mark.parametrize("name", LINEAR)
def test_couplings_are_kept_as_by_constraint_forces(name: str) -> None:
    """Accelerations of all joints, where a gear is a row of numbers."""
    robot, relation = sample(name).robot, sample(name).relation
    assert relation
    peer, batch, K = Peer(robot), batch_of(robot), coupling_rows(robot, relation)
    found = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, q in enumerate(batch.q):
        G, g = robot.explicit_constraint(q, batch.v[i])
        tau = spread(robot, batch.tau[i])
        expected = peer.equations(q, G @ batch.v[i]).closed(tau, K, np.zeros(len(K)))
        assert gap(G @ found[i] + g, expected) < EXACT


@pytest.mark.parametrize("name", ["five_bar", "belt_chain", "tello", "universal loop", "rod loop afloat", "cam"])
def test_frames_of_robots_with_loops(name: str) -> None:
    """Of all bodies, dependent ones among them: J G v, and J (G a + g) + J̇ G v."""
    robot = robot_of(name)
    peer, batch = Peer(robot), batch_of(robot, count=1)
    q, v, a = batch.q[0], batch.v[0], batch.a[0]
    G, g = robot.explicit_constraint(q, v)
    for body in robot.bodies:
        expected = peer.motion(body, q, G @ v)
        pose = coupler.frame_pose(robot, q, body)
        assert gap(pose[:3], np.column_stack([expected.X.E.T, expected.X.r])) < EXACT
        A = expected.J @ (G @ a + g) + expected.A
        A[3:] += np.cross(expected.V[:3], expected.V[3:])
        assert gap(coupler.frame_jacobian(robot, q, body), expected.J @ G) < EXACT
        assert gap(coupler.frame_velocity(robot, q, v, body), expected.V) < EXACT
        assert gap(coupler.frame_acceleration(robot, q, v, a, body), A) < EXACT


# Pinocchio's own constraint dynamics


POINTS = [
    "four_bar",
    "five_bar",
    "six_bar",
    "slider_crank",
    "planar_leg_linkage",
    "spherical loop",
    "idle rod",
    "press",
]
WELDS = ["fixed loop", "fixed loop afloat"]


def press() -> Robot:
    """A planar four-bar that a ball closes: one of its rows follows from the others."""
    b, turn = RobotBuilder("press"), Revolute(axis=(0, 1, 0))
    for body, centre in (("crank", 0.1), ("coupler", 0.25), ("rocker", 0.2)):
        b.body(body, 1.0, (centre, 0, 0.01), (0.01, 0.02, 0.02))
    b.joint("shoulder", turn, "ground", "crank", independent=True)
    b.joint("elbow", turn, "crank", "coupler", at=(0.2, 0, 0))
    b.joint("pivot", turn, "ground", "rocker", at=(0.6, 0, 0))
    b.loop("tip", Spherical(), "coupler", "rocker", at=(0.5, 0, 0), meets=(0.4, 0, 0))
    return b.build()


def held(peer: Peer, kind: Any) -> Any:
    """All loops of a robot as constraints of Pinocchio, and their data."""
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in peer.robot.loops:
        frames = [peer.model.frames[peer.model.getFrameId(f"{loop.name} {end}")] for end in ("first", "second")]
        ends = [part for frame in frames for part in (frame.parentJoint, frame.placement)]
        models.append(pin.RigidConstraintModel(kind, peer.model, *ends, pin.ReferenceFrame.LOCAL))
        datas.append(models[len(models) - 1].createData())
    pin.initConstraintDynamics(peer.model, peer.data, models, datas)
    return models, datas


@pytest.mark.parametrize("name", [*POINTS, *WELDS])
def test_constraint_dynamics(name: str) -> None:
    """`constraintDynamics` with points or frames held together.

    Planar loops have a row too many, at which it fails without mu. With a small one it converges in three or four
    proximal steps to what it would be at mu = 0, and is as exact as the rest: 5e-14 is reached.
    """
    robot = press() if name == "press" else robot_of(name)
    peer, batch = Peer(robot), batch_of(robot)
    models, datas = held(peer, pin.ContactType.CONTACT_6D if name in WELDS else pin.ContactType.CONTACT_3D)
    found = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, q in enumerate(batch.q):
        G, g = robot.explicit_constraint(q, batch.v[i])
        state = peer.positions(q), peer.given(G @ batch.v[i]), peer.given(spread(robot, batch.tau[i]))
        settings = pin.ProximalSettings(1e-14, 1e-8, 50)
        expected = pin.constraintDynamics(peer.model, peer.data, *state, models, datas, settings)
        assert settings.iter < 50
        assert gap(peer.given(G @ found[i] + g), expected) < EXACT


@pytest.mark.parametrize("rule", ["kept_rows", "minimum_norm"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "planar_leg_linkage", "press"])
def test_determinate_reactions(name: str, rule: str) -> None:
    """Loops by `constraintDynamics`, tree joints by `rnea` with the loops cut and their forces put on.

    Where statics leave forces open, Pinocchio shares them in a way of its own; the others are the same.
    """
    robot = press() if name == "press" else robot_of(name)
    peer, batch, fixed = Peer(robot), batch_of(robot), coupler.determinate_forces(robot)
    models, datas = held(peer, pin.ContactType.CONTACT_3D)
    assert not all(told.all() for told in fixed.joints.values())
    a = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    found = coupler.joint_forces(robot, batch.q, batch.v, a, rule=rule)
    for i, q in enumerate(batch.q):
        G, _ = robot.explicit_constraint(q, batch.v[i])
        state = peer.positions(q), peer.given(G @ batch.v[i])
        tau = peer.given(spread(robot, batch.tau[i]))
        settings = pin.ProximalSettings(1e-14, 1e-8, 50)
        rates = pin.constraintDynamics(peer.model, peer.data, *state, tau, models, datas, settings)
        outside = [pin.Force.Zero() for _ in range(peer.model.njoints)]
        for loop, model, data in zip(robot.loops, models, datas, strict=True):
            force = pin.Force(data.contact_force)  # on the first body, at the loop's frame there
            outside[model.joint1_id] += model.joint1_placement.act(force)
            on_second = -(data.c1Mc2.actInv(force))
            outside[model.joint2_id] += model.joint2_placement.act(on_second)
            ours, told = found.loops[loop.name][i], fixed.loops[loop.name]
            expected = np.concatenate([on_second.angular, on_second.linear])
            scale = np.abs(expected).max()
            assert told[3:].sum() >= 2  # a plane's two forces
            assert np.abs(ours - expected)[3:][told[3:]].max() < EXACT * scale
        pin.rnea(peer.model, peer.data, *state, rates, pin.StdVec_Force(outside))
        for joint in robot.joints:
            force = peer.data.f[peer.place[joint.child][0]]
            expected = np.concatenate([force.angular, force.linear])
            told = fixed.joints[joint.name]
            assert told.sum() >= 3
            assert np.abs(found.joints[joint.name][i] - expected)[told].max() < EXACT * max(np.abs(expected).max(), 1.0)
