"""Random robots: closed, consistent with their own motion, and true to what their loops and gears are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from coupler.model import (
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
    Rod,
    Spherical,
    Universal,
)
from coupler.rotation import quaternion_conjugate, quaternion_product
from coupler.spatial import Transform
from effort import sweep
from random_robots import ROBOTS, sample

CLOSED = 1e-12  # residuals of loops, and gaps that are measured in the world, m or the sine of an angle
SAME = 1e-12  # numbers that should be the same, where nothing is solved for
REACHED = 1e-10  # positions that Newton's method finds twice, on different ways
SLOPE = 1e-8  # difference quotients against derivatives, for velocities and accelerations of 1 at most
NEAREST = 1e-3  # the part of a small correction that leads along the loops, not across them
STATES = 4
FAR = np.array([4e3, -7e3, 2e3])  # m: where a floating base is in the last of the states

# In the short run, every kind of loop is on the ground, and two are afloat; large ones are left out.
AFLOAT = [name for name in ROBOTS if name.endswith(" afloat")]
LONG = ("parallel", "overlapping", "delta", *AFLOAT[2:])
every_robot = pytest.mark.parametrize("name", sweep(ROBOTS, [name for name in ROBOTS if name not in LONG]))


@dataclass(frozen=True, eq=False)
class Case:
    """A robot with some states.

    Attributes:
        robot: which.
        q, v: a batch of states, so slow that joint velocities and accelerations are 1 at most, and that no singularity
            is near on the way of a second.
        p, w: positions and velocities of all joints, in the order of its tree.
        scale: the largest position, or 1.
    """

    robot: Robot
    q: np.ndarray
    v: np.ndarray
    p: np.ndarray
    w: np.ndarray
    scale: float


@cache
def case(name: str) -> Case:
    robot = sample(name).robot
    q, v = map(np.array, zip(*(robot.random_state(seed) for seed in range(STATES)), strict=True))
    base = robot.joints[0]
    if isinstance(base.kind, Free) and not any(1 in loop.links for loop in robot.embedding.closure.loops):
        q[-1, robot.q_slice(base.name)][:3] += FAR
    v = v / haste(robot, q, v)[:, None]
    return Case(robot, q, v, all_of(robot.joint_positions(q)), all_of(robot.joint_velocities(q, v)), largest(q))


def haste(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The largest joint velocity, the root of the largest acceleration, and how fast K_D⁻¹ changes, relatively."""
    _, g = robot.explicit_constraint(q, v)
    p, w = all_of(robot.joint_positions(q)), all_of(robot.joint_velocities(q, v))
    dependent = np.setdiff1d(np.arange(w.shape[1]), robot.embedding.v_index)
    ahead, here, behind = (
        robot.embedding.implicit_constraint(robot.embedding.closure.motion.integrate(p, t * w), w)[0][..., dependent]
        for t in (1e-6, 0.0, -1e-6)
    )
    rate = np.linalg.norm(np.linalg.solve(here, (ahead - behind) / 2e-6), axis=(1, 2))
    return np.maximum.reduce([np.abs(w).max(axis=1), np.sqrt(np.abs(g).max(axis=1)), rate])


def all_of(by_joint: dict[str, np.ndarray]) -> np.ndarray:
    """Values of all joints in one vector, in the order of the tree's links."""
    return np.concatenate([x if x.ndim == 2 else x[:, None] for x in by_joint.values()], axis=1)


def largest(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=1.0))


def worst(robot: Robot, q: np.ndarray) -> float:
    return max((float(error.max()) for error in robot.loop_errors(q).values()), default=0.0)


def near(a: Any, b: Any, tolerance: float) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def same_q(a: np.ndarray, b: np.ndarray, tolerance: float) -> None:
    """Entry by entry, so that a base far away loosens nothing but its own position."""
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def slope(path: Callable[[float], Any], h: float = 0.004) -> Any:
    """The derivative at 0, by differences of order 8."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    return sum(w * (path(i * h) - path(-i * h)) for i, w in enumerate(weights, 1)) / h


# Configurations


@every_robot
def test_states_are_closed(name: str) -> None:
    c, neutral = case(name), case(name).robot.neutral()
    assert worst(c.robot, c.q) <= CLOSED
    assert worst(c.robot, neutral) <= CLOSED
    c.robot.check(neutral)
    c.robot.check(c.q)
    near(np.linalg.norm(quaternions(c.robot, c.p), axis=-1), 1.0, SAME)


@every_robot
def test_random_states_are_reproducible_and_differ(name: str) -> None:
    robot = case(name).robot
    for seed in range(2):
        for a, b in zip(robot.random_state(seed), robot.random_state(np.random.default_rng(seed)), strict=True):
            np.testing.assert_array_equal(a, b)
    a, b, c = all_of(
        robot.joint_positions(np.stack([robot.random_state(0)[0], robot.random_state(1)[0], robot.neutral()]))
    )
    apart = [np.abs(x - y).max() for x, y in ((a, b), (b, c), (c, a))]
    assert min(apart) > 1e-3
    for loop in robot.embedding.closure.loops:  # each of them moves
        own = np.concatenate([robot.tree.positions(link) for link in loop.links])
        assert np.abs((a - c)[own]).max() > 1e-3 or np.abs((b - c)[own]).max() > 1e-3


@every_robot
def test_a_batch_is_as_one_by_one(name: str) -> None:
    c = case(name)
    robot, noise = c.robot, 1e-3 * np.random.default_rng(0).normal(size=c.q.shape)
    same_q(robot.close(c.q + noise), np.stack([robot.close(q) for q in c.q + noise]), SAME)
    moved = robot.integrate(c.q, c.v, 0.1)
    same_q(moved, np.stack([robot.integrate(q, v, 0.1) for q, v in zip(c.q, c.v, strict=True)]), SAME)
    apart = robot.difference(c.q, moved)
    near(apart, np.stack([robot.difference(q, r) for q, r in zip(c.q, moved, strict=True)]), SAME * c.scale)
    for method in (robot.explicit_constraint, robot.implicit_constraint):
        batch = method(c.q, c.v)
        single = [method(q, v) for q, v in zip(c.q, c.v, strict=True)]
        for i in (0, 1):
            near(batch[i], np.stack([x[i] for x in single]), SAME * largest(batch[i]))
    np.testing.assert_array_equal(robot.close(c.q.reshape(2, 2, -1)).reshape(c.q.shape), robot.close(c.q))


@every_robot
def test_closing(name: str) -> None:
    c = case(name)
    same_q(c.robot.close(c.q), c.q, SAME)
    for size in (1e-5, 1e-2):
        noise = size * np.random.default_rng(1).normal(size=c.q.shape)
        closed = c.robot.close(c.q + noise)
        assert worst(c.robot, closed) <= CLOSED
        near(np.linalg.norm(quaternions(c.robot, all_of(c.robot.joint_positions(closed))), axis=-1), 1.0, SAME)
        assert np.abs(closed - c.q).max() < 200 * size
        same_q(c.robot.close(closed), closed, SAME)


@every_robot
def test_closing_goes_the_shortest_way(name: str) -> None:
    """A small correction is across what the loops allow: Gᵀ x = 0, up to its square."""
    c = case(name)
    if all(c.robot.embedding.explicit):
        return
    motion, rng = c.robot.embedding.closure.motion, np.random.default_rng(2)
    for q in c.q[:-1]:
        start = motion.normalize(all_of(c.robot.joint_positions((q + 1e-6 * rng.normal(size=q.shape))[None])))[0]
        reached = c.robot.close(start[c.robot.embedding.q_index])
        x = motion.difference(start, all_of(c.robot.joint_positions(reached[None]))[0])
        G, _ = c.robot.explicit_constraint(reached)
        along = np.linalg.qr(G)[0].T @ x
        assert np.linalg.norm(along) <= NEAREST * np.linalg.norm(x) + 1e-12


@every_robot
def test_closing_holds_what_it_is_told_to(name: str) -> None:
    c = case(name)
    noise = 1e-5 * np.random.default_rng(3).normal(size=c.q.shape)
    for joint in independent(c.robot):
        closed = c.robot.close(c.q + noise, hold=[joint])
        own = c.robot.q_slice(joint)
        if own.stop - own.start == 1:
            np.testing.assert_array_equal(closed[:, own], (c.q + noise)[:, own])
        assert worst(c.robot, closed) <= CLOSED


# Constraints


@every_robot
def test_freedoms_are_those_of_the_joints_less_what_the_loops_take(name: str) -> None:
    robot = case(name).robot
    loops = sum(rows(loop.kind) for loop in robot.loops)
    couplings = sum(len(np.atleast_1d(c.residual(np.full(len(c.joints), 0.1)))) for c in robot.couplings)
    assert robot.nv == sum(joint.kind.nv for joint in robot.joints) - loops - couplings + sample(name).surplus


@every_robot
def test_both_forms_of_the_constraints_agree(name: str) -> None:
    """K G = 0, K g = k, and the rank of K is what the freedoms lack."""
    c = case(name)
    (K, k), (G, g) = c.robot.implicit_constraint(c.q, c.v), c.robot.explicit_constraint(c.q, c.v)
    near(G @ c.v[..., None], c.w[..., None], SAME * largest(G))
    near(G[:, c.robot.embedding.v_index], np.broadcast_to(np.eye(c.robot.nv), (STATES, c.robot.nv, c.robot.nv)), 0)
    near(g[:, c.robot.embedding.v_index], 0.0, 0)
    near(K @ G, 0.0, SAME * max(1.0, np.abs(K).max(initial=0) * np.abs(G).max(initial=0)))
    near(K @ g[..., None], k[..., None], SAME * max(1.0, np.abs(K).max(initial=0) * np.abs(g).max(initial=0)))
    every = sum(link.kind.nv for link in c.robot.tree.links)
    assert K.shape == (STATES, every - c.robot.nv, every)
    for at in K:
        assert np.linalg.matrix_rank(at, tol=1e-7 * largest(at)) == len(at)
    for at in dense(c.robot, c.p)[1]:  # all rows, those that follow from others too
        assert every - np.linalg.matrix_rank(at, tol=1e-9 * largest(at)) == c.robot.nv


def dense(robot: Robot, p: np.ndarray, w: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """φ, K as a matrix, and k of all constraints."""
    closure = robot.embedding.closure
    if not closure.loops:
        return np.zeros((len(p), 0)), np.zeros((len(p), 0, int(robot.tree.v_start[-1]))), np.zeros((len(p), 0))
    phi, entries, k = closure.at(p, w)
    K = np.zeros((len(p), closure.size, int(robot.tree.v_start[-1])))
    for group in closure.groups:
        K[:, group.rows[:, :, None], group.columns[:, None, :]] = entries[:, group.entries]
    return phi, K, k


@every_robot
def test_the_implicit_constraint_is_the_derivative_of_the_residual(name: str) -> None:
    """φ̇ = K w and d(K w)/dt = −k along any motion of the joints, closed or not."""
    c, rng = case(name), np.random.default_rng(4)
    motion = c.robot.embedding.closure.motion
    p = motion.integrate(c.p, 0.01 * rng.normal(size=c.w.shape))  # further, a screw jumps to its next turn
    w = rng.uniform(-0.5, 0.5, c.w.shape)
    _, K, k = dense(c.robot, p, w)

    def rate(t: float) -> np.ndarray:
        return (dense(c.robot, motion.integrate(p, w * t))[1] @ w[..., None])[..., 0]

    near(slope(lambda t: dense(c.robot, motion.integrate(p, w * t))[0]), (K @ w[..., None])[..., 0], SLOPE)
    near(slope(rate), -k, SLOPE)


@every_robot
def test_joint_velocities_are_those_of_the_integrated_motion(name: str) -> None:
    """ṗ = G v along integrate(q, v, t), and d(G v)/dt = g."""
    c = case(name)
    _, g = c.robot.explicit_constraint(c.q, c.v)
    change = slope(lambda t: all_of(c.robot.joint_positions(c.robot.integrate(c.q, c.v, t))))
    near(velocities(c.robot, c.p, change), c.w, SLOPE)
    near(slope(lambda t: all_of(c.robot.joint_velocities(c.robot.integrate(c.q, c.v, t), c.v))), g, SLOPE)


def velocities(robot: Robot, p: np.ndarray, change: np.ndarray) -> np.ndarray:
    """w from the rates of change of all positions, with the textbook's formulas for orientations."""
    w = []
    for i, link in enumerate(robot.tree.links):
        own, rate = p[:, robot.tree.positions(i)], change[:, robot.tree.positions(i)]
        if link.kind.nq == link.kind.nv:
            w.append(rate)
            continue
        turn = [
            2.0 * quaternion_product(quaternion_conjugate(q), r)[1:]
            for q, r in zip(own[:, -4:], rate[:, -4:], strict=True)
        ]
        w.append(np.array(turn))
        if isinstance(link.kind, Free):
            w.append(np.stack([link.kind.transform(q).E @ r for q, r in zip(own, rate[:, :3], strict=True)]))
    return np.concatenate(w, axis=1)


def quaternions(robot: Robot, p: np.ndarray) -> np.ndarray:
    turning = [i for i, link in enumerate(robot.tree.links) if link.kind.nq != link.kind.nv]
    parts = [p[:, robot.tree.positions(i)[-4:]] for i in turning]
    return np.stack([np.eye(4)[[0] * len(p)], *parts], axis=1)  # never none


# Motion


@every_robot
def test_integrate_and_difference_are_inverse(name: str) -> None:
    c = case(name)
    for dt in (1e-3, 0.1):
        moved = c.robot.integrate(c.q, c.v, dt)
        assert worst(c.robot, moved) <= CLOSED
        near(c.robot.difference(c.q, moved), c.v * dt, SAME * c.scale)
        near(np.linalg.norm(quaternions(c.robot, all_of(c.robot.joint_positions(moved))), axis=-1), 1.0, SAME)
    other = c.robot.close(c.q + 1e-3 * np.random.default_rng(5).normal(size=c.q.shape))
    same_q(c.robot.integrate(c.q, c.robot.difference(c.q, other)), other, REACHED)
    same_q(c.robot.integrate(c.q, c.v, 0.0), c.q, SAME)
    near(c.robot.difference(c.q, c.q), 0.0, SAME)


@every_robot
def test_two_steps_are_one(name: str) -> None:
    """Unless a ball or a free joint depends on others in part: then v is constant along other curves."""
    c = case(name)
    if not set(partly_independent(c.robot)):
        halfway = c.robot.integrate(c.q, c.v, 0.04)
        same_q(c.robot.integrate(halfway, c.v, 0.06), c.robot.integrate(c.q, c.v, 0.1), REACHED)


def partly_independent(robot: Robot) -> Iterator[str]:
    for link, joint in enumerate(robot.tree.links):
        count = int(np.isin(robot.tree.velocities(link), robot.embedding.v_index).sum())
        if joint.kind.nq != joint.kind.nv and 0 < count < joint.kind.nv:
            yield joint.joint


# Names


@every_robot
def test_packing(name: str) -> None:
    c = case(name)
    positions, velocities = c.robot.joint_positions(c.q), c.robot.joint_velocities(c.q, c.v)
    same_q(c.robot.pack_q(positions), c.q, SAME)
    near(c.robot.pack_v({joint: velocities[joint] for joint in c.robot.independent_joints}), c.v, SAME)
    near(c.robot.pack_v(velocities), c.v, SAME)
    for joint, kind in ((joint.name, joint.kind) for joint in c.robot.joints if not isinstance(joint.kind, Fixed)):
        link = c.robot.tree.number[joint]
        if np.isin(c.robot.tree.positions(link), c.robot.embedding.q_index).all():
            near(c.q[:, c.robot.q_slice(joint)], positions[joint].reshape(STATES, kind.nq), 0)
        if joint in independent(c.robot):
            near(c.v[:, c.robot.v_slice(joint)], velocities[joint].reshape(STATES, kind.nv), 0)


def independent(robot: Robot) -> list[str]:
    """The joints that are independent as a whole."""
    return [
        link.joint
        for i, link in enumerate(robot.tree.links)
        if i and np.isin(robot.tree.velocities(i), robot.embedding.v_index).all()
    ]


# Bodies


def link_poses(robot: Robot, p: np.ndarray) -> list[Transform]:
    """From the world to each link, for one state."""
    poses = [Transform.identity()]
    for i, link in enumerate(robot.tree.links[1:], 1):
        poses.append(link.kind.transform(p[robot.tree.positions(i)]) @ link.placement @ poses[link.parent])
    return poses


def body_poses(robot: Robot, positions: dict[str, np.ndarray]) -> dict[str, Transform]:
    """From the world to each body, for one state, by the robot's description alone."""
    poses = {"ground": Transform.identity()}
    for joint in robot.joints:
        position = np.atleast_1d(positions.get(joint.name, np.zeros(0)))
        poses[joint.child] = joint.kind.transform(position) @ joint.placement @ poses[joint.parent]
    return poses


def single(by_joint: dict[str, np.ndarray], state: int) -> dict[str, np.ndarray]:
    return {joint: value[state] for joint, value in by_joint.items()}


@every_robot
def test_links_are_where_the_description_puts_their_bodies(name: str) -> None:
    c = case(name)
    positions = c.robot.joint_positions(c.q)
    for state, p in enumerate(c.p):
        links, bodies = link_poses(c.robot, p), body_poses(c.robot, single(positions, state))
        for body, (link, onto) in c.robot.tree.place.items():
            pose = onto @ links[link]
            near(pose.E, bodies[body].E, SAME)
            near(pose.r, bodies[body].r, SAME * c.scale)


@every_robot
def test_links_move_as_their_joints_say(name: str) -> None:
    """V = X V + S w from parent to child is the velocity of the integrated motion."""
    c = case(name)

    def poses(t: float) -> np.ndarray:
        p = all_of(c.robot.joint_positions(c.robot.integrate(c.q, c.v, t)))
        return np.array([[np.vstack([X.E, X.r]) for X in link_poses(c.robot, at)] for at in p])

    change = slope(poses)
    for p, w, rates in zip(c.p, c.w, change, strict=True):
        V = [np.zeros(6)]
        for i, (link, X, rate) in enumerate(zip(c.robot.tree.links, link_poses(c.robot, p), rates, strict=True)):
            if not i:
                continue
            own = p[c.robot.tree.positions(i)]
            step = link.kind.transform(own) @ link.placement
            V.append(step @ V[link.parent] + link.kind.subspace(own) @ w[c.robot.tree.velocities(i)])
            spin = -rate[:3] @ X.E.T  # Ė = −ω× E
            near(V[i], [spin[2, 1], spin[0, 2], spin[1, 0], *(X.E @ rate[3])], SLOPE)


# What loops and couplings are, seen from outside


@every_robot
def test_loops_hold_their_bodies_together(name: str) -> None:
    """Measured in the world, far away to its rounding."""
    c = case(name)
    positions = c.robot.joint_positions(c.q)
    for state in range(STATES):
        bodies = body_poses(c.robot, single(positions, state))
        reach = max(1.0, *(np.abs(X.r).max() for X in bodies.values()))
        for loop in c.robot.loops:
            first = loop.predecessor_frame @ bodies[loop.predecessor]
            second = loop.successor_frame @ bodies[loop.successor]
            for gap in gaps(loop.kind, second @ first.inverse()):
                near(gap, 0.0, CLOSED * reach)


def rows(kind: LoopKind) -> int:
    """How many freedoms a loop takes away."""
    if isinstance(kind, Joint):
        return 6 - kind.nv
    return len(kind.axes) if isinstance(kind, Held) else 1


def gaps(kind: LoopKind, X: Transform) -> Iterator[Any]:
    """What must be zero: written with angles and lengths, in full, and true at half a turn too."""
    if isinstance(kind, Rod):
        yield np.linalg.norm(X.r) - kind.length
    if isinstance(kind, Held):
        yield kind.axes[:, 3:] @ X.r
    if isinstance(kind, Fixed | Revolute | Universal | Spherical):
        yield X.r
    if isinstance(kind, Fixed | Prismatic):
        yield X.E - np.eye(3)
    if isinstance(kind, Revolute | Cylindrical | Helical):
        yield X.E @ kind.axis - kind.axis
    if isinstance(kind, Prismatic | Cylindrical | Helical):
        yield np.cross(kind.axis, X.r)
    if isinstance(kind, Helical):
        turns = (kind.axis @ X.r / kind.pitch - angle(X.E, kind.axis)) / (2.0 * np.pi)
        yield (turns - np.round(turns)) * kind.pitch
    if isinstance(kind, Universal):
        yield kind.first @ X.E.T @ kind.second - kind.first @ kind.second
    if isinstance(kind, Planar):
        yield X.E @ kind.normal - kind.normal
        yield kind.normal @ X.r


def angle(E: np.ndarray, axis: np.ndarray) -> float:
    """Of a rotation about a known axis."""
    sine = axis @ np.array([E[1, 2] - E[2, 1], E[2, 0] - E[0, 2], E[0, 1] - E[1, 0]]) / 2.0
    return float(np.arctan2(sine, (np.trace(E) - 1.0) / 2.0))


@every_robot
def test_couplings_hold_their_ratios(name: str) -> None:
    relation, c = sample(name).relation, case(name)
    if relation is not None:
        for q in (c.q, c.robot.integrate(c.q, c.v, 0.3)):
            near(relation(c.robot.joint_positions(q)), 0.0, CLOSED * 10)


# Clusters


@every_robot
def test_forces_of_clusters_are_split_into_those_that_work_and_those_that_do_not(name: str) -> None:
    """SᵀTᵃ = 1 and SᵀTᶜ = 0, and together they are all forces. [001, eq. 9, 31]"""
    c = case(name)
    for k in range(1, len(c.robot.cluster_tree.clusters)):
        found = c.robot.cluster_subspaces(c.q[0], k)
        freedoms = found.S.shape[1]
        near(found.S.T @ found.Ta, np.eye(freedoms), SAME * largest(found.S))
        near(found.S.T @ found.Tc, 0.0, SAME * largest(found.S))
        everything = np.concatenate([found.Ta, found.Tc], axis=1)
        assert everything.shape[0] == everything.shape[1] == np.linalg.matrix_rank(everything)


@every_robot
def test_a_cluster_moves_as_its_subspace_says(name: str) -> None:
    """S v is the velocity of each link against its output body, by differences of poses along the motion."""
    c = case(name)
    robot, q, v = c.robot, c.q[0], c.v[0]
    for k, cluster in enumerate(robot.cluster_tree.clusters[1:], 1):
        entries = np.concatenate([robot.tree.velocities(link) for link in cluster.bodies])
        own = robot.embedding.v_place[entries]
        expected = robot.cluster_subspaces(q, k).S @ v[own[own >= 0]]
        for i, (link, output) in enumerate(zip(cluster.bodies, cluster.outputs, strict=True)):
            E, _ = against(robot, robot.embedding.positions(q), link, output)

            def path(t: float, part: int, link: int = link, output: int = output) -> Any:
                return against(robot, robot.embedding.positions(robot.integrate(q, v, t)), link, output)[part]

            turning = -slope(lambda t, path=path: path(t, 0)) @ E.T  # ω×
            w = np.array([turning[2, 1], turning[0, 2], turning[1, 0]])
            near(expected[6 * i : 6 * i + 3], w, SLOPE)
            near(expected[6 * i + 3 : 6 * i + 6], E @ slope(lambda t, path=path: path(t, 1)), SLOPE)


def against(robot: Robot, p: np.ndarray, link: int, output: int) -> tuple[np.ndarray, np.ndarray]:
    """The pose of a link, seen from another that carries it."""
    X = Transform.identity()
    while link != output:
        X = X @ robot.tree.links[link].kind.transform(p[robot.tree.positions(link)]) @ robot.tree.links[link].placement
        link = robot.tree.links[link].parent
    return np.asarray(X.E, float), np.asarray(X.r, float)
