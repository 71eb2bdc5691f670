"""Robots built from the reference files, against what an independent implementation says of them.

Names, sizes and clusters; positions, velocities and constraints of all joints; poses, contact points, Jacobians and
mass matrices, which are computed here by walking the tree: frames, axes and inertias are compared end to end.

The files keep 15 digits, and close their loops up to 1e-12. A closed configuration near such a state differs from it by
that over the smallest singular value of K, and so does whatever follows from it.
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

EXACT = 1e-13  # relative to the largest entry, or absolute below one: what is computed without closing a loop
CLOSED = 1e-12  # the loop errors of states that the files say are closed that well

every_model = pytest.mark.parametrize("name", golden.names())
every_state = pytest.mark.parametrize("name", golden.names(states=True))


def gap(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry where that exceeds one."""
    found, expected = np.asarray(found), np.asarray(expected, float)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max(initial=0.0) / np.abs(expected).max(initial=1.0))


class State:
    """A state of a reference file, packed by name."""

    def __init__(self, name: str, number: int) -> None:
        self.robot, data = golden.robot(name), golden.load(name)
        self.model, self.data = data["model"], data["states"][number]
        self.positions = _by_joint(self.model, "num_positions", self.data["q_span"])
        self.velocities = _by_joint(self.model, "num_velocities", self.data["qd_span"])
        chosen = [joint for c in self.model["clusters"] for joint in golden.independent(self.model, c)]
        self.order = np.concatenate([np.arange(self.robot.nv)[self.robot.v_slice(joint)] for joint in chosen])
        self.q, v = self.robot.pack_q(self.positions), np.zeros(self.robot.nv)
        v[self.order] = self.data["yd"]
        self.v = self.robot.pack_v({joint: v[self.robot.v_slice(joint)] for joint in chosen})
        self.tolerance = EXACT + 10.0 * self._openness()

    def _openness(self) -> float:
        """How far the state may be from closed in its joints' positions: the gap over what closes it."""
        gaps = [np.linalg.norm(c["phi"]) / np.linalg.svd(c["K"], compute_uv=False)[-1] for c in self.data["clusters"]]
        return float(max(gaps, default=0.0))


def _by_joint(model: golden.Data, count: str, values: Any) -> dict[str, np.ndarray]:
    return {joint: np.array(values[span], float) for joint, span in golden.spans(model, count)}


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
    assert sorted(robot.independent_joints()) == sorted(expected)
    spanning = {joint for c in model["clusters"] if c["constraint"]["implicit"] for joint in golden.joints(model, c)}
    in_q = {link.joint for i, link in enumerate(robot.tree.links) if np.isin(robot.tree.positions(i), _q(robot)).any()}
    assert in_q == spanning | set(expected)


def _q(robot: Robot) -> np.ndarray:
    return robot.embedding.q_index


@every_model
def test_constant_constraints(name: str) -> None:
    """G of gears, belts and differentials, at a random state; those from URDF are built from ratios alone."""
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
    for q in configurations:
        assert gap(robot.pack_q(robot.joint_positions(q)), q) < 1e-9


def entries(robot: Robot, model: golden.Data, cluster: golden.Data) -> tuple[np.ndarray, np.ndarray]:
    """Where a cluster's joints are in w, and its independent ones in v, in the file's order."""
    tree = robot.tree
    rows = [tree.velocities(tree.number[joint]) for joint in golden.joints(model, cluster)]
    columns = [np.arange(robot.nv)[robot.v_slice(joint)] for joint in golden.independent(model, cluster)]
    return np.concatenate(rows), np.concatenate(columns)


# States


@every_state
def test_positions_and_velocities(name: str) -> None:
    for state in states(name):
        positions = state.robot.joint_positions(state.q)
        velocities = state.robot.joint_velocities(state.q, state.v)
        assert positions.keys() == state.positions.keys()
        scale = max(1.0, *(np.abs(x).max() for x in state.velocities.values()))
        for joint, expected in state.positions.items():
            assert gap(np.atleast_1d(positions[joint]), expected) < state.tolerance
        for joint, expected in state.velocities.items():
            assert gap(np.atleast_1d(velocities[joint]), expected) < state.tolerance * scale


@every_state
def test_loops_are_closed(name: str) -> None:
    for state in states(name):
        given = np.zeros(state.robot.nq)
        for joint in state.positions:
            if np.isin(state.robot.tree.positions(state.robot.tree.number[joint]), _q(state.robot)).any():
                given[state.robot.q_slice(joint)] = state.positions[joint]
        for q in (given, state.q):
            assert all(error <= CLOSED for error in state.robot.loop_errors(q).values())
        state.robot.check(given)


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
            tolerance = state.tolerance * np.linalg.cond(expected["K"])
            assert gap(G[np.ix_(rows, columns)], expected["G"]) < tolerance
            assert gap(g[rows], expected["g"]) < tolerance
            factor = np.array(expected["K"]) @ np.linalg.pinv(K_own)
            assert gap(factor @ K_own, expected["K"]) < tolerance
            assert gap(factor @ k_own, expected["k"]) < tolerance
            others = np.delete(G[rows], columns, axis=1)
            assert not others.any() and not np.delete(K[own], rows, axis=1).any()


@every_state
def test_poses(name: str) -> None:
    for state in states(name):
        poses, _ = walk(state)
        for body, expected in zip(state.model["bodies"], state.data["bodies"], strict=True):
            assert gap(poses[body["name"]].r, expected["p"]) < state.tolerance
            assert gap(poses[body["name"]].E.T, expected["R_body_to_world"]) < state.tolerance


@every_state
def test_contact_points(name: str) -> None:
    """Their positions, velocities and Jacobians: angular and linear, in the world's axes at the point."""
    for state in states(name):
        poses, jacobians = walk(state)
        G, _ = state.robot.explicit_constraint(state.q)
        for point, expected in zip(state.model["contact_points"], state.data["contacts"], strict=True):
            X, offset = poses[point["body"]], state.robot.bodies[point["body"]].contacts[point["name"]]
            J = Transform(X.E.T, offset) @ jacobians[point["body"]] @ G
            assert gap(X.r + X.E.T @ offset, expected["position"]) < state.tolerance
            assert gap(J[:, state.order], expected["J_world"]) < state.tolerance
            assert gap((J @ state.v)[3:], expected["velocity"]) < 10.0 * state.tolerance


@every_state
def test_mass_matrix(name: str) -> None:
    """H = Σ Jᵀ I J over all links."""
    for state in states(name):
        robot = state.robot
        _, jacobians = walk(state)
        G, _ = robot.explicit_constraint(state.q)
        H = np.zeros((robot.nv, robot.nv))
        for body in robot.bodies.values():
            J = jacobians[body.name] @ G
            H += J.T @ (body.spatial_inertia() @ J)
        expected = np.array(state.data["H"])
        size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert gap(H[np.ix_(state.order, state.order)] / size, expected / size) < 100.0 * state.tolerance


def walk(state: State) -> tuple[dict[str, Transform], dict[str, np.ndarray]]:
    """For every body the transform from the world to it, and its Jacobian: its velocity is J w, in its own frame."""
    tree = state.robot.tree
    p = state.robot.embedding.positions(state.q)
    X, J = [Transform.identity()], [np.zeros((6, tree.v_start[-1]))]
    for i, link in enumerate(tree.links[1:], 1):
        up = link.kind.transform(p[tree.positions(i)]) @ link.placement
        X.append(up @ X[link.parent])
        J.append(up @ J[link.parent])
        J[i][:, tree.velocities(i)] += link.kind.subspace(p[tree.positions(i)])
    places = {body: tree.place[body] for body in state.robot.bodies}
    return {body: Y @ X[i] for body, (i, Y) in places.items()}, {body: Y @ J[i] for body, (i, Y) in places.items()}
