"""Large clusters whose joints are looped over: steps give the same as where all is spelled out."""

from __future__ import annotations

import numpy as np
import pytest

from coupler import Simulation
from coupler.contact.step import fitting
from coupler.graph import Executable, compile
from coupler.model import Fixed, Free, Prismatic, Revolute, Robot, RobotBuilder, Sphere, Spherical
from coupler.passes import ClusterShape

CHAINS, LINKS = 4, 6


def foot(b: RobotBuilder, name: str, on: str, at: tuple[float, float, float]) -> None:
    """A sole that hangs on a body by chains of hinges, no two of which are alike."""
    b.body(f"{name}sole", mass=0.5, inertia=(0.002, 0.003, 0.002))
    for k in range(CHAINS):
        x, y = np.cos(2 * np.pi * k / CHAINS + 0.1), np.sin(2 * np.pi * k / CHAINS + 0.1)
        last, place = on, (at[0] + 0.1 * x, at[1] + 0.1 * y, at[2])
        for i in range(LINKS):
            link, axis = f"{name}chain{k}_{i}", (-y, x, 0.0) if i % 2 == 0 else (x, y, 0.3 * (-1) ** (i // 2))
            b.body(link, mass=0.05 + 0.01 * k, centre=(0, 0.003 * i, -0.02), inertia=(1e-4, 2e-4, 1.5e-4))
            hinge = Revolute(axis=axis, stiffness=20.0, damping=0.05, armature=1e-5)
            b.joint(link, hinge, last, link, at=place)
            last, place = link, (0.0, 0.0, -0.04)
        if k:
            b.loop(f"{name}rim{k}", Spherical(), last, f"{name}sole", at=place, meets=(0.1 * x, 0.1 * y, 0.0))
        else:
            b.joint(f"{name}sole", Fixed(), last, f"{name}sole", at=(-0.1 * x, -0.1 * y, -0.04))
    b.shape(f"{name}sole", Sphere(0.01), at=(0.05, 0.0, -0.01), name=f"{name}ball")


def on_ground() -> Robot:
    b = RobotBuilder("a foot on the ground")
    foot(b, "", "ground", (0.0, 0.0, 0.3))
    b.floor()
    return b.build()


def on_hip() -> Robot:
    """Two feet, of which one is lifted, on a body that flies."""
    b = RobotBuilder("two feet")
    b.body("hip", mass=3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hip", Free(), "ground", "hip", at=(0.0, 0.0, 0.2602))  # the right foot just above the floor
    b.body("shank", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("lift", Prismatic(), "hip", "shank", at=(0.0, 0.2, 0.1))
    foot(b, "left", "shank", (0.0, 0.0, 0.0))
    foot(b, "right", "hip", (0.0, -0.2, 0.0))
    b.floor()
    return b.build()


def started(robot: Robot, integrator: str) -> Simulation:
    rng = np.random.default_rng(3)
    v = 0.3 * rng.normal(size=robot.nv)
    return Simulation(robot, 1e-3, q=robot.neutral(), v=v, integrator=integrator)


def executable_of(simulation: Simulation) -> Executable:
    return simulation._engine.executable


def after(simulation: Simulation, steps: int = 4) -> np.ndarray:
    for _ in range(steps):
        simulation.step()
    return np.concatenate([simulation.q, simulation.v])


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
@pytest.mark.parametrize("make", [on_ground, on_hip])
def test_steps_are_those_that_are_spelled_out(make, integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looped = started(make(), integrator)
    found = after(looped)
    assert "tree_H" in {buffer.name for buffer in executable_of(looped).program.buffers}
    monkeypatch.setattr(ClusterShape, "can_be_looped", False)
    spelled_out = started(make(), integrator)
    wanted = after(spelled_out)
    assert "tree_H" not in {buffer.name for buffer in executable_of(spelled_out).program.buffers}
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


def test_many_states_at_once_and_the_interpreter() -> None:
    simulation = started(on_ground(), "midpoint")
    states = []
    for _ in range(3):
        states.append(simulation._state.copy())
        simulation.step()
    run, tau = executable_of(simulation), np.zeros((3, simulation.robot.nv))
    together = run(np.array(states), tau)
    for state, own in zip(states, together, strict=True):
        np.testing.assert_array_equal(run(state, tau[0]), own)
    reference = compile(run.program, backend="interpreter")(np.array(states), tau)
    np.testing.assert_allclose(together, reference, rtol=0, atol=1e-11 * np.abs(reference).max())


def test_velocities_are_solved_for_where_rounds_do_not_get_there(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = after(started(on_ground(), "midpoint"), 1)
    monkeypatch.setattr(fitting, "_GAIN", 0.0)  # no round is worth another
    monkeypatch.setattr(fitting, "_ENOUGH", 0.0)
    found = after(started(on_ground(), "midpoint"), 1)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
