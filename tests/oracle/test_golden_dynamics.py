"""Forward and inverse dynamics of the reference robots, against the numbers of an independent implementation.

One state at a time and all at once, compiled and on the interpreter. The files keep 15 digits and were cross-checked to
1e-13 among themselves. Reached here, relative to the largest entry of a state: 6e-14 for accelerations and 5e-14 for
forces, both of PlanarLegLinkage, and 2e-14 of all others. Mass matrices, with ones on their diagonals: 5e-13.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import golden
from coupler import bias_force, forward_dynamics, inverse_dynamics
from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import Interpreter
from coupler.model import Robot

if not golden.FOLDER.is_dir():
    pytest.skip(f"no reference files: {golden.FOLDER} is no folder (set COUPLER_GOLDEN)", allow_module_level=True)

EXACT = 5e-13  # relative to the largest entry of a state
MASS = 5e-12  # of a mass matrix with ones on its diagonal; its columns are differences of larger forces

Dynamics = Callable[..., np.ndarray]

every_file = pytest.mark.parametrize("name", golden.swept())


@dataclass(frozen=True, eq=False)
class Golden:
    """The states of a file, stacked; velocities, accelerations and forces in the robot's order.

    Attributes:
        robot: which.
        q, v: the states.
        tau, a, a_loaded: forces, and the accelerations that they cause without and with external forces.
        given, needs, needs_loaded: accelerations, and the forces that they need without and with external forces.
        H, C: mass matrices and bias forces.
        f_ext: a force on each body.
    """

    robot: Robot
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    a: np.ndarray
    a_loaded: np.ndarray
    given: np.ndarray
    needs: np.ndarray
    needs_loaded: np.ndarray
    H: np.ndarray
    C: np.ndarray
    f_ext: np.ndarray


@cache
def states(name: str) -> Golden:
    robot, model, data = golden.robot(name), golden.load(name)["model"], golden.load(name)["states"]
    chosen = [joint for cluster in model["clusters"] for joint in golden.independent(model, cluster)]
    order = np.concatenate([np.arange(robot.nv)[robot.v_slice(joint)] for joint in chosen])

    def of(key: str) -> np.ndarray:
        return np.array([state[key] for state in data], float)

    def vectors(key: str) -> np.ndarray:
        return of(key)[:, np.argsort(order)]

    spanning = of("q_span")
    positions = {joint: spanning[:, own] for joint, own in golden.spans(model, "num_positions")}
    q = robot.pack_q({joint: x[:, 0] if x.shape[1] == 1 else x for joint, x in positions.items()})
    return Golden(
        robot,
        q,
        v=vectors("yd"),
        tau=vectors("tau"),
        a=vectors("ydd_caba"),
        a_loaded=vectors("ydd_caba_fext"),
        given=vectors("ydd_in"),
        needs=vectors("tau_crnea"),
        needs_loaded=vectors("tau_crnea_fext"),
        H=of("H")[:, np.argsort(order)][:, :, np.argsort(order)],
        C=vectors("C"),
        f_ext=of("fext"),
    )


@cache
def interpreter(make: Callable[..., Any], robot: Robot, external: bool) -> Interpreter:
    return Interpreter(make(robot, external))


def interpreted(make: Callable[..., Any]) -> Dynamics:
    """The public function without its compiler."""

    def function(robot: Robot, q: np.ndarray, v: np.ndarray, x: np.ndarray, f_ext: np.ndarray | None = None) -> Any:
        run = interpreter(make, robot, f_ext is not None)
        forces = [] if f_ext is None else [f_ext.reshape(*f_ext.shape[:-2], -1)]
        return run(q, v, x, *forces)

    return function


back_ends = pytest.mark.parametrize(
    ("forward", "inverse"),
    [
        pytest.param(forward_dynamics, inverse_dynamics, id="compiled"),
        pytest.param(interpreted(forward_dynamics_program), interpreted(inverse_dynamics_program), id="interpreted"),
    ],
)


def gap(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest entry of each state."""
    assert found.shape == expected.shape
    return float((np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)).max())


@every_file
@back_ends
def test_forward_dynamics(name: str, forward: Dynamics, inverse: Dynamics) -> None:
    s = states(name)
    assert gap(forward(s.robot, s.q, s.v, s.tau), s.a) < EXACT
    assert gap(forward(s.robot, s.q, s.v, s.tau, s.f_ext), s.a_loaded) < EXACT
    assert gap(forward(s.robot, s.q[0], s.v[0], s.tau[0]), s.a[0]) < EXACT
    assert gap(forward(s.robot, s.q[0], s.v[0], s.tau[0], s.f_ext[0]), s.a_loaded[0]) < EXACT


@every_file
@back_ends
def test_inverse_dynamics(name: str, forward: Dynamics, inverse: Dynamics) -> None:
    s = states(name)
    assert gap(inverse(s.robot, s.q, s.v, s.given), s.needs) < EXACT
    assert gap(inverse(s.robot, s.q, s.v, s.given, s.f_ext), s.needs_loaded) < EXACT
    assert gap(inverse(s.robot, s.q[0], s.v[0], s.given[0]), s.needs[0]) < EXACT
    assert gap(inverse(s.robot, s.q[0], s.v[0], s.given[0], s.f_ext[0]), s.needs_loaded[0]) < EXACT


@every_file
def test_every_state_on_its_own(name: str) -> None:
    """Compiled: the same as in the batch, to the last bit."""
    s = states(name)
    for function, x in ((forward_dynamics, s.tau), (inverse_dynamics, s.given)):
        batch, loaded = function(s.robot, s.q, s.v, x), function(s.robot, s.q, s.v, x, s.f_ext)
        for i in range(len(s.q)):
            np.testing.assert_array_equal(function(s.robot, s.q[i], s.v[i], x[i]), batch[i])
            np.testing.assert_array_equal(function(s.robot, s.q[i], s.v[i], x[i], s.f_ext[i]), loaded[i])


@every_file
def test_bias_force(name: str) -> None:
    s = states(name)
    assert gap(bias_force(s.robot, s.q, s.v), s.C) < EXACT
    assert gap(bias_force(s.robot, s.q[0], s.v[0]), s.C[0]) < EXACT
    jump = inverse_dynamics(s.robot, s.q, s.v, s.given, s.f_ext) - inverse_dynamics(s.robot, s.q, s.v, s.given)
    assert gap(bias_force(s.robot, s.q, s.v, s.f_ext), s.C + jump) < EXACT


@every_file
@back_ends
def test_mass_matrix(name: str, forward: Dynamics, inverse: Dynamics) -> None:
    """Column by column, H eᵢ = ID(q, 0, eᵢ) − ID(q, 0, 0), scaled to ones on the diagonal."""
    s = states(name)
    rest = np.zeros(s.robot.nv)
    columns = inverse(s.robot, s.q[:, None], rest, np.eye(s.robot.nv)) - inverse(s.robot, s.q, rest, rest)[:, None]
    diagonal = np.diagonal(s.H, axis1=1, axis2=2)
    scale = np.sqrt(diagonal[:, :, None] * diagonal[:, None, :])
    difference = np.abs(columns - s.H) / scale
    assert difference.max() < MASS
