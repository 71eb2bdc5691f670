"""Robots built from the reference files, against what an independent implementation says of them.

Names, sizes and clusters; positions, velocities and constraints of all joints; poses, contact points, Jacobians and
mass matrices, which are computed here by walking the tree: frames, axes and inertias are compared end to end.

The files keep 15 digits and close their loops up to 1e-12. Numbers are compared at a file's positions as they are. To
pack these by name closes the loops, which moves joints by the gap over the smallest singular value of K: 3e-9 in the
most singular of the states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from coupler.model import Robot
from coupler.spatial import Transform

if not golden.FOLDER.is_dir():
    pytest.skip(f"no reference files: {golden.FOLDER} is no folder (set COUPLER_GOLDEN)", allow_module_level=True)

EXACT = 1e-13  # relative to the largest entry where that exceeds one; loops add to it, see State
CLOSED = 1e-12  # the largest loop error of the files, m or the sine of an angle

every_model = pytest.mark.parametrize("name", golden.names())
every_state = pytest.mark.parametrize("name", golden.names(states=True))


def gap(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry where that exceeds one."""
    found, expected = np.asarray(found), np.asarray(expected, float)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max(initial=0.0) / np.abs(expected).max(initial=1.0))


class State:
    """A state of a reference file.

    Attributes:
        q, v: as the file has them; its loops are left as they are.
        positions, velocities: of all joints, by name.
        order: where the file's independent velocities are in v, in its order.
        tolerance: of what is computed through K_D⁻¹, the smaller the further a loop is from singular.
    """

    def __init__(self, name: str, number: int) -> None:
        self.robot, data = golden.robot(name), golden.load(name)
        self.model, self.data = data["model"], data["states"][number]
        self.positions = _by_joint(self.model, "num_positions", self.data["q_span"])
        self.velocities = _by_joint(self.model, "num_velocities", self.data["qd_span"])
        self.q, self.v = np.zeros(self.robot.nq), np.zeros(self.robot.nv)
        for joint in self.robot.position_joints:
            self.q[self.robot.q_slice(joint)] = self.positions[joint]
        chosen = [joint for c in self.model["clusters"] for joint in golden.independent(self.model, c)]
        self.order = np.concatenate([np.arange(self.robot.nv)[self.robot.v_slice(joint)] for joint in chosen])
        self.v[self.order] = self.data["yd"]
        self.tolerance = EXACT
        for loop in self.data["clusters"]:
            independent = np.array(self.model["clusters"][loop["cluster"]]["constraint"]["independent"])
            K = np.array(loop["K"])
            weakest = np.linalg.norm(K[:, ~independent], -2)
            self.tolerance = max(self.tolerance, EXACT * float(np.linalg.norm(K, 2) / weakest))


def _by_joint(model: golden.Data, count: str, values: Any) -> dict[str, np.ndarray]:
    """The entries of each joint; of a joint with a single one, the number."""
    found = {joint: np.array(values[span], float) for joint, span in golden.spans(model, count)}
    return {joint: entries[0] if len(entries) == 1 else entries for joint, entries in found.items()}


def states(name: str) -> list[State]:
    return [State(name, number) for number in range(len(golden.load(name)["states"]))]


# Models


@every_model
def test_sizes_and_names(name: str) -> None:
    robot, model = golden.robot(name), golden.load(name)["model"]
    assert (robot.nq, robot.nv) == (model["nq"], model["nv"])
    assert (robot.tree.q_start[-1], robot.tree.v_start[-1]) == (model["nq_span"], model["nv_span"])
    assert robot.body_names == [body["name"] for body in model["bodies"]]
    assert robot.joint_names == [body["joint"]["name"] for body in model["bodies"]]
    assert sorted(robot.frame_names) == sorted(contact["name"] for contact in model["contact_points"])
    assert [0, 0, 0, *robot.gravity] == model["gravity"]


@every_model
def test_clusters(name: str) -> None:
    """The finest partition. Two bodies that no constraint joins make two clusters, though a file may make them one."""
    robot, model = golden.robot(name), golden.load(name)["model"]
    expected: list[list[str]] = []
    for cluster in model["clusters"]:
        bodies = [model["bodies"][i]["name"] for i in cluster["bodies"]]
        expected += [bodies] if cluster["constraint"]["num_constraints"] else [[body] for body in bodies]
    found = [[robot.tree.links[i].name for i in cluster.bodies] for cluster in robot.cluster_tree.clusters[1:]]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


@every_model
def test_independent_joints(name: str) -> None:
    robot, model = golden.robot(name), golden.load(name)["model"]
    expected = [joint for cluster in model["clusters"] for joint in golden.independent(model, cluster)]
    assert sorted(robot.independent_joints) == sorted(expected)
    spanning = {joint for c in model["clusters"] if c["constraint"]["implicit"] for joint in golden.joints(model, c)}
    assert set(robot.position_joints) == spanning | set(expected)


@every_model
def test_constraints_at_a_random_state(name: str) -> None:
    """K G = 0, K g = k, and the G of gears, belts and differentials; those from URDF are built from ratios alone."""
    robot, model = golden.robot(name), golden.load(name)["model"]
    q, v = robot.random_state(1)
    robot.check(q)
    G, g = robot.explicit_constraint(q, v)
    K, k = robot.implicit_constraint(q, v)
    assert gap(K @ G, np.zeros((len(K), robot.nv))) < EXACT * np.abs(K).max(initial=1.0) * np.abs(G).max()
    assert gap(K @ g, k) < 1e-12
    for cluster in model["clusters"]:
        if not cluster["constraint"]["implicit"]:
            rows, columns = entries(robot, model, cluster)
            assert gap(G[np.ix_(rows, columns)], cluster["constraint"]["G"]) < EXACT
            assert gap(g[rows], np.zeros(len(rows))) < EXACT


@every_model
def test_neutral_and_random_configurations_are_closed(name: str) -> None:
    robot = golden.robot(name)
    configurations = np.stack([robot.neutral(), *(robot.random_state(seed)[0] for seed in range(5))])
    robot.check(configurations)
    for q in configurations:  # which may be open by as much as counts as closed, and move by more when packed
        assert gap(robot.pack_q(robot.joint_positions(q)), q) < 1e-6


def entries(robot: Robot, model: golden.Data, cluster: golden.Data) -> tuple[np.ndarray, np.ndarray]:
    """Where a cluster's joints are in w, and its independent ones in v, in the file's order."""
    tree = robot.tree
    rows = [tree.velocities(tree.number[joint]) for joint in golden.joints(model, cluster)]
    columns = [np.arange(robot.nv)[robot.v_slice(joint)] for joint in golden.independent(model, cluster)]
    return np.concatenate(rows), np.concatenate(columns)


# States


@every_state
def test_packing(name: str) -> None:
    """By name and back: what is closed is left as it is, but for the length of quaternions."""
    for state in states(name):
        q = state.robot.pack_q(state.positions)
        assert gap(q, state.q) < 1e-15
        assert np.array_equal(state.robot.pack_v(state.velocities), state.v)
        chosen = {joint: state.velocities[joint] for joint in state.robot.independent_joints}
        assert np.array_equal(state.robot.pack_v(chosen), state.v)


@every_state
def test_loops_are_closed(name: str) -> None:
    for state in states(name):
        state.robot.check(state.q)
        assert all(error <= CLOSED for error in state.robot.loop_errors(state.q).values())


@every_state
def test_positions_and_velocities(name: str) -> None:
    for state in states(name):
        positions = state.robot.joint_positions(state.q)
        velocities = state.robot.joint_velocities(state.q, state.v)
        assert positions.keys() == velocities.keys() == state.positions.keys()
        for joint in positions:
            assert gap(positions[joint], state.positions[joint]) < EXACT
            assert gap(velocities[joint], state.velocities[joint]) < state.tolerance


@every_state
def test_loop_constraints(name: str) -> None:
    """G and g are those of the file; K and k are, too, up to an invertible factor from the left."""
    for state in states(name):
        G, g = state.robot.explicit_constraint(state.q, state.v)
        K, k = state.robot.implicit_constraint(state.q, state.v)
        for expected in state.data["clusters"]:
            cluster = state.model["clusters"][expected["cluster"]]
            rows, columns = entries(state.robot, state.model, cluster)
            own = np.abs(K[:, rows]).max(axis=1) > 0.0
            K_own, k_own = K[np.ix_(own, rows)], k[own]
            assert K_own.shape == np.shape(expected["K"])
            assert gap(G[np.ix_(rows, columns)], expected["G"]) < state.tolerance
            assert gap(g[rows], expected["g"]) < state.tolerance
            factor = np.array(expected["K"]) @ np.linalg.pinv(K_own)
            assert gap(factor @ K_own, expected["K"]) < state.tolerance
            assert gap(factor @ k_own, expected["k"]) < state.tolerance
            others = np.delete(G[rows], columns, axis=1)
            assert not others.any() and not np.delete(K[own], rows, axis=1).any()


@every_state
def test_poses(name: str) -> None:
    for state in states(name):
        poses, _ = walk(state)
        for body, expected in zip(state.model["bodies"], state.data["bodies"], strict=True):
            link, place = state.robot.tree.place[body["name"]]
            X = place @ poses[link]
            assert gap(X.r, expected["p"]) < EXACT
            assert gap(X.E.T, expected["R_body_to_world"]) < EXACT


@every_state
def test_contact_points(name: str) -> None:
    """Their positions, velocities and Jacobians: angular and linear, in the world's axes at the point."""
    for state in states(name):
        poses, jacobians = walk(state)
        for point, expected in zip(state.model["contact_points"], state.data["contacts"], strict=True):
            offset = state.robot.bodies[point["body"]].contacts[point["name"]]
            link, place = state.robot.tree.place[point["body"]]
            X = place @ poses[link]
            J = Transform(X.E.T, offset) @ (place @ jacobians[link])
            assert gap(X.r + X.E.T @ offset, expected["position"]) < EXACT
            assert gap(J[:, state.order], expected["J_world"]) < state.tolerance
            assert gap(J[3:] @ state.v, expected["velocity"]) < state.tolerance


@every_state
def test_mass_matrix(name: str) -> None:
    """H = Σ Jᵀ I J over all links, scaled to ones on its diagonal."""
    for state in states(name):
        _, jacobians = walk(state)
        links = zip(state.robot.tree.links, jacobians, strict=True)
        H = np.sum([J.T @ (link.inertia @ J) for link, J in links], axis=0)
        expected = np.array(state.data["H"])
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert gap(H[np.ix_(state.order, state.order)] / scale, expected / scale) < state.tolerance


def walk(state: State) -> tuple[list[Transform], list[np.ndarray]]:
    """For every link the transform from the world to it, and J: its velocity is J v, in its own frame."""
    tree, p = state.robot.tree, state.robot.embedding.positions(state.q)
    G, _ = state.robot.explicit_constraint(state.q)
    X, J = [Transform.identity()], [np.zeros((6, state.robot.nv))]
    for i, link in enumerate(tree.links[1:], 1):
        own = p[tree.positions(i)]
        up = link.kind.transform(own) @ link.placement
        X.append(up @ X[link.parent])
        J.append(up @ J[link.parent] + link.kind.subspace(own) @ G[tree.velocities(i)])
    return X, J
