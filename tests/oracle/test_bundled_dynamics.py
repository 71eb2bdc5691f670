"""Bundled robots at reference states, carried over by name: every output of the reference, one by one and together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coupler
import golden
from effort import sweep

if not golden.FOLDER.is_dir():
    pytest.skip(f"no reference files: {golden.FOLDER} is no folder (set COUPLER_GOLDEN)", allow_module_level=True)

EXACT = (
    1e-10  # relative to the largest entry; two states of the planar leg are nearly flat and reach 1.2e-11, others 1e-13
)
BUNDLED = {
    "mini_cheetah": "MiniCheetah.json",
    "mit_humanoid": "MIT_Humanoid.json",
    "tello": "Tello.json",
    "geared_chain": "RevoluteChainWithRotor12_uniform.json",
    "belt_chain": "RevolutePairChainWithRotor12_uniform.json",
    "four_bar": "urdf_four_bar.json",
    "planar_leg_linkage": "PlanarLegLinkage.json",
}


def near(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max(initial=1.0))


@pytest.mark.parametrize("name", sweep(BUNDLED, ["mini_cheetah", "geared_chain", "four_bar"]))
def test_reference_states(name: str) -> None:
    robot, data = coupler.robots.load(name), golden.load(BUNDLED[name])
    model, states = data["model"], data["states"]
    chosen = [joint for cluster in model["clusters"] for joint in golden.independent(model, cluster)]
    order = np.concatenate([np.arange(robot.nv)[robot.v_slice(joint)] for joint in chosen])
    points = [point for point in model["contact_points"] if point["is_end_effector"]]
    frames = [point["name"] for point in sorted(points, key=lambda point: point["end_effector_index"])]

    def vector(key: str) -> np.ndarray:
        result = np.zeros((len(states), robot.nv))
        result[:, order] = [state[key] for state in states]
        return result

    q = []
    for state in states:
        spans = {joint: np.array(state["q_span"][span]) for joint, span in golden.spans(model, "num_positions")}
        q.append(robot.pack_q({joint: x[0] if len(x) == 1 else x for joint, x in spans.items()}))
    q, v, tau, a = np.array(q), vector("yd"), vector("tau"), vector("ydd_in")
    f_ext = np.array([state["fext"] for state in states])
    results = {
        "ydd_caba": coupler.forward_dynamics(robot, q, v, tau),
        "ydd_caba_fext": coupler.forward_dynamics(robot, q, v, tau, f_ext),
        "tau_crnea": coupler.inverse_dynamics(robot, q, v, a),
        "tau_crnea_fext": coupler.inverse_dynamics(robot, q, v, a, f_ext),
        "C": coupler.bias_force(robot, q, v),
    }
    H, omega = coupler.mass_matrix(robot, q), coupler.inverse_osim(robot, q, frames)
    for i, state in enumerate(states):
        for key, found in results.items():
            near(found[i, order], state[key])
        near(H[i][np.ix_(order, order)], state["H"])
        near(omega[i], state["lambda_inv"])
        np.testing.assert_array_equal(coupler.forward_dynamics(robot, q[i], v[i], tau[i]), results["ydd_caba"][i])
        np.testing.assert_array_equal(coupler.inverse_dynamics(robot, q[i], v[i], a[i]), results["tau_crnea"][i])
