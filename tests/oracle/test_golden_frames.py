"""Contact points, mass matrices and operational-space inertias of the reference robots, against their numbers.

Reached, relative to the largest entry: 8e-15 for positions, 1e-13 for Jacobians, 2e-14 for mass matrices, and 4e-13 for
inverse operational-space inertias, the last three of PlanarLegLinkage, whose states come near to a singularity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coupler
import golden
from coupler.algorithms.crba import mass_matrix_entries, mass_matrix_program
from coupler.algorithms.efpa import inverse_osim_program
from coupler.graph import Interpreter
from coupler.kinematics import frame_place
from coupler.model import Robot
from effort import sweep

if not golden.FOLDER.is_dir():
    pytest.skip(f"no reference files: {golden.FOLDER} is no folder (set COUPLER_GOLDEN)", allow_module_level=True)

EXACT = 1e-12

every_file = pytest.mark.parametrize("name", golden.swept())


def states(name: str) -> tuple[Robot, np.ndarray, list[tuple[golden.Data, np.ndarray, np.ndarray]]]:
    """A robot, where the file's independent velocities are in v, and the file's states with q and v."""
    robot, model = golden.robot(name), golden.load(name)["model"]
    chosen = [joint for cluster in model["clusters"] for joint in golden.independent(model, cluster)]
    order = np.concatenate([np.arange(robot.nv)[robot.v_slice(joint)] for joint in chosen])
    found = []
    for state in golden.load(name)["states"]:
        spans = {joint: np.array(state["q_span"][span]) for joint, span in golden.spans(model, "num_positions")}
        v = np.zeros(robot.nv)
        v[order] = state["yd"]
        found.append((state, robot.pack_q({joint: x[0] if len(x) == 1 else x for joint, x in spans.items()}), v))
    return robot, order, found


def near(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max(initial=1.0))


# Each point of each robot has five programs of its own: the short run takes the first and the last one.
FILES = golden.names(states=True)
PARTS = {"ends": lambda points: points[:: max(len(points) - 1, 1)], "between": lambda points: points[1:-1]}


@pytest.mark.parametrize(
    ("name", "part"),
    sweep([(name, part) for name in FILES for part in PARTS], [(name, "ends") for name in FILES]),
)
def test_contact_points(name: str, part: str) -> None:
    """Where they are, how they move, and their Jacobians along the world's axes and along their own."""
    robot, order, found = states(name)
    for state, q, v in found:
        for contact in PARTS[part](state["contacts"]):
            point = contact["name"]
            T, J = coupler.frame_pose(robot, q, point), coupler.frame_jacobian(robot, q, point, axes="world")
            near(T[:3, 3], contact["position"])
            near(J[:, order], contact["J_world"])
            near(coupler.frame_velocity(robot, q, v, point, axes="world")[3:], contact["velocity"])
            own = coupler.frame_jacobian(robot, q, point)
            near(np.concatenate([T[:3, :3] @ own[:3], T[:3, :3] @ own[3:]]), J)
            near(own @ v, coupler.frame_velocity(robot, q, v, point))


@every_file
def test_mass_matrices(name: str) -> None:
    robot, order, found = states(name)
    q = np.stack([q for _, q, _ in found])
    for (state, one, v), H in zip(found, coupler.mass_matrix(robot, q), strict=True):
        near(H[np.ix_(order, order)], state["H"])
        np.testing.assert_array_equal(H, H.T)
        np.testing.assert_array_equal(H, coupler.mass_matrix(robot, one))
        near(coupler.kinetic_energy(robot, one, v), 0.5 * v @ H @ v)
    entries = Interpreter(mass_matrix_program(robot))(q)
    near(coupler.mass_matrix(robot, q)[(..., *mass_matrix_entries(robot))], entries)


@every_file
def test_inverse_operational_space_inertias(name: str) -> None:
    """C-EFPA against the file, and against J H⁻¹ Jᵀ; on the interpreter, too."""
    robot, _, found = states(name)
    points = [point for point in golden.load(name)["model"]["contact_points"] if point["is_end_effector"]]
    frames = [point["name"] for point in sorted(points, key=lambda point: point["end_effector_index"])]
    q = np.stack([q for _, q, _ in found])
    together = coupler.inverse_osim(robot, q, frames)
    for (state, one, _), omega in zip(found, together, strict=True):
        near(omega, state["lambda_inv"])
        np.testing.assert_array_equal(omega, omega.T)
        np.testing.assert_array_equal(omega, coupler.inverse_osim(robot, one, frames))
        J = np.concatenate([coupler.frame_jacobian(robot, one, frame) for frame in frames])
        near(omega, J @ np.linalg.solve(coupler.mass_matrix(robot, one), J.T))
    program = inverse_osim_program(robot, [frame_place(robot, frame) for frame in frames])
    near(Interpreter(program)(q).reshape(together.shape), together)
