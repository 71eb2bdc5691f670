"""Every algorithm runs on floats, unchanged: the same answers as from its trace."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.algorithms import (
    aba,
    crba,
    dca,
    efpa,
    factorization,
    joint_forces,
    kinematics,
    mass_matrix_inverse,
    rnea,
    totals,
)
from coupler.contact.step import relaxation
from coupler.graph import GraphError, Program, compile
from coupler.kinematics import frame_place
from coupler.model import Revolute, Sphere
from effort import sweep
from random_robots import sample

ROBOTS = ["tree", "rod loop", "series", "nested", "parallel", "geared loops"]


INVERSES = ["forward dynamics", "inverse", "factors", "solve", "inverse osim", "divide and conquer"]


def programs(robot: coupler.Robot) -> dict[str, tuple[Program, tuple[str, ...]]]:
    frames = [frame_place(robot, body) for body in robot.body_names[-2:]]
    found: dict[str, tuple[Any, tuple[str, ...]]] = {
        "forward dynamics": (aba.forward_dynamics_program(robot, True), ("q", "v", "x", "f")),
        "inverse dynamics": (rnea.inverse_dynamics_program(robot, True), ("q", "v", "x", "f")),
        "mass matrix": (crba.mass_matrix_program(robot), ("q",)),
        "factors": (factorization.mass_matrix_factors_program(robot), ("q",)),
        "inverse": (mass_matrix_inverse.mass_matrix_inverse_program(robot), ("q",)),
        "solve": (factorization.mass_matrix_solve_program(robot), ("q", "x")),
        "product": (factorization.mass_matrix_product_program(robot), ("q", "x")),
        "inverse osim": (efpa.inverse_osim_program(robot, frames), ("q",)),
        "joint forces": (joint_forces.joint_forces_program(robot), ("q", "v", "x")),
        "energy": (totals.kinetic_energy_program(robot), ("q", "v")),
        "jacobian rate": (kinematics.frame_jacobian_rate_program(robot, *frames[0], False), ("q", "v")),
    }
    if all(len(set(cluster.outputs)) == 1 for cluster in robot.cluster_tree.clusters[1:]):
        found["divide and conquer"] = dca.divide_and_conquer_program(robot, frames), ("q", "v", "x")
    return found


@pytest.mark.parametrize("name", sweep(ROBOTS, ["tree", "rod loop"]))
def test_floats_and_traces_agree(name: str) -> None:
    robot, rng = sample(name).robot, np.random.default_rng(3)
    q, v = robot.random_state(rng)
    given = {"q": q, "v": v, "x": rng.normal(size=robot.nv), "f": rng.normal(size=6 * len(robot.bodies))}
    condition = float(np.linalg.cond(coupler.mass_matrix(robot, q)))
    limits = dict.fromkeys(INVERSES, max(1e-13, 1e-15 * condition))  # rounding counts that many times
    on_floats = programs(robot.with_backend("python"))
    for title, (program, names) in programs(robot).items():
        inputs = [given[key] for key in names]
        results = [
            compile(on_floats[title][0], backend="python")(*inputs),
            compile(program, backend="interpreter")(*inputs),
        ]
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in results), strict=True):
            limit = limits.get(title, 1e-13) * max(1.0, np.abs(other).max(initial=0.0))
            np.testing.assert_allclose(one, other, rtol=0.0, atol=limit, err_msg=title)


@pytest.mark.parametrize("name", ["mini_cheetah", "planar_leg_linkage"])
def test_a_step_with_contact_runs_on_floats(name: str) -> None:
    robot = coupler.robots.load(name).with_floor(friction=0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coupler.ModelWarning)  # it starts in the floor, which is all the better
        one, other = (coupler.Simulation(robot.with_backend(x), step=1e-3) for x in ("python", "llvm"))
        other.step()
        if name == "mini_cheetah":
            q = robot.neutral()
            q[2] -= other.gaps.min()
            one.reset(q)
            other.reset(q)
        else:
            other.reset()
    for _ in range(2):
        one.step()
        other.step()
        np.testing.assert_allclose(one.q, other.q, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(one.v, other.v, rtol=0.0, atol=1e-11)
        # Of twelve contacts of one body, impulses are not unique: rounding moves them along those that do the same.
        np.testing.assert_allclose(one.state.values, other.state.values, rtol=0.0, atol=1e-6)
        one.restore(other.state)
    assert (other.contact_forces != 0.0).any() == (name == "mini_cheetah")


def test_functions_of_couplings_are_called_with_floats() -> None:
    seen: list[np.ndarray] = []

    def pull(positions: Any) -> Any:
        if getattr(positions, "dtype", None) == np.float64:
            seen.append(positions)
        return np.array([positions[1] - positions[0] - 0.1 * np.sin(positions[0])])

    b = coupler.RobotBuilder("coupled")
    for i, parent in enumerate(("ground", "one")):
        b.body(("one", "two")[i], mass=1.0, centre=(0.1, 0.0, 0.0), inertia=np.eye(3))
        b.joint(f"j{i}", Revolute(axis=(0, 1, 0)), parent, ("one", "two")[i], at=(0.3, 0, 0))
    b.couple("pull", ["j0", "j1"], pull)
    robot = b.build()
    q = robot.pack_q({"j0": 0.4})
    a = coupler.forward_dynamics(robot, q, np.zeros(1), np.ones(1))
    seen.clear()
    debugged = coupler.forward_dynamics(robot.with_backend("python"), q, np.zeros(1), np.ones(1))
    np.testing.assert_allclose(debugged, a, rtol=1e-13)
    assert seen
    np.testing.assert_allclose(seen[0], [0.4, 0.4 + 0.1 * np.sin(0.4)], rtol=1e-12)


def test_a_debugger_meets_floats_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[type]] = {"a pass": set(), "a sweep over contacts": set()}

    def inward(cluster: Any) -> Any:
        seen["a pass"] |= {type(x) for values in (cluster.G, cluster.bodies[0].S) for x in values.ravel()}
        return backward(cluster)

    def update(block: Any, friction: Any, lam: Any, w: Any) -> Any:
        seen["a sweep over contacts"] |= {type(x) for x in (*lam, *w)}
        return project(block, friction, lam, w)

    backward, project = aba.inward, relaxation.cone_at_rest
    monkeypatch.setattr(aba, "inward", inward)
    monkeypatch.setattr(relaxation, "cone_at_rest", update)
    robot = coupler.robots.load("four_bar").with_backend("python")
    coupler.forward_dynamics(robot, *robot.random_state(0), np.zeros(robot.nv))
    b = coupler.RobotBuilder("ball")
    b.object("ball", Sphere(0.1), mass=1.0, at=(0, 0, 0.1))
    coupler.Simulation(b.build().with_floor().with_backend("python"), step=1e-3).step()
    assert seen == {"a pass": {np.float64}, "a sweep over contacts": {np.float64}}


def test_a_program_for_python_runs_nowhere_else() -> None:
    program = aba.forward_dynamics_program(coupler.robots.load("four_bar").with_backend("python"))
    for backend in ("interpreter", "llvm"):
        with pytest.raises(GraphError, match="its program is for the back end 'python' only"):
            compile(program, backend=backend)(np.zeros(3), np.zeros(1), np.zeros(1))
    assert "forward_dynamics" in repr(program)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(
        coupler.ModelError, match="backend must be one of 'llvm', 'interpreter', 'python', got 'fortran'"
    ):
        coupler.robots.load("four_bar").with_backend("fortran")  # type: ignore[arg-type]
