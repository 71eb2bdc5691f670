"""Passes over clusters: order, memory, and what a cluster sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler import forward_dynamics, mass_matrix, robots
from coupler.graph import GraphError, compile
from coupler.model import Revolute, Robot, RobotBuilder
from coupler.passes import (
    ClusterRecord,
    Coordinate,
    Indexed,
    Record,
    Sweep,
    Visit,
    afterwards,
    collected,
    entry,
    provided,
    symmetric,
)
from random_robots import sample


def chain(bodies: int) -> Robot:
    b = RobotBuilder("chain")
    for i in range(bodies):
        b.body(f"b{i}", float(i + 1), (0.1, 0, 0), (0.1, 0.1, 0.1))
        b.joint(f"j{i}", Revolute(axis=(0, 1, 0)), f"b{i - 1}" if i else "ground", f"b{i}", (0.3, 0, 0))
    return b.build()


class Masses(Record):
    """What a body carries, collected, and then what carries it, in the same memory."""

    beyond = collected(())
    before = afterwards(())


class Freedoms(ClusterRecord):
    x, beyond, before = Coordinate(), Coordinate(), Coordinate()


def test_inward_collects_and_outward_hands_on() -> None:
    """Mass that hangs on each joint, and mass between it and the ground."""

    def inward(cluster: Visit[Masses, Freedoms]) -> None:
        (body,) = cluster.bodies
        total = body.inertia.m + (body.memory.beyond if body.carries else 0.0)
        cluster.memory.beyond = np.array([total])
        if not body.output.grounded:
            body.output.collect(beyond=total)

    def outward(cluster: Visit[Masses, Freedoms]) -> None:
        (body,) = cluster.bodies
        total = body.inertia.m + (0.0 if body.output.grounded else body.output.memory.before)
        cluster.memory.before = np.array([total])
        if body.carries:
            body.memory.before = total

    robot = chain(4)
    sweep = Sweep(robot, "masses", body=Masses, cluster=Freedoms)
    for name in ("beyond", "before"):
        sweep.output(name)
    sweep.inward(inward)
    sweep.outward(outward)
    program = sweep.build()
    for backend in ("interpreter", "python", "llvm"):
        beyond, before = compile(program, backend=backend)()
        np.testing.assert_array_equal(beyond, [10.0, 9.0, 7.0, 4.0])
        np.testing.assert_array_equal(before, [1.0, 3.0, 6.0, 10.0])
    assert len(program.kernels()) <= 6  # those that carry nothing, and those on the ground, differ


def test_records_tell_their_fields() -> None:
    class Base(Record):
        v = entry(6)
        I = collected(symmetric(3))  # noqa: E741

    class More(Base):
        a = afterwards(6)
        P = provided()
        Omega = Indexed()

    assert More.layout("kept") == {"v": 6}
    assert More.layout("collected") == {"I": symmetric(3)}
    assert More.layout("afterwards") == {"a": 6}

    class Sized(ClusterRecord):
        Y = entry(lambda shape: None if shape.on_ground else (shape.freedoms, 6))

    grounded, carried = (shape for shape, _ in Sweep(chain(2), "shapes").shapes)
    assert Sized.layout("kept", grounded) == {}
    assert Sized.layout("kept", carried) == {"Y": (1, 6)}


def test_two_bodies_that_carry_a_cluster_share_articulated_inertia() -> None:
    """They have memory for a common block if bodies collect Iᴬ, and none in programs that need no such block."""

    class Articulated(Record):
        IA = collected(symmetric(6))

    robot = sample("geared loops").robot
    sweep = Sweep(robot, "articulated", body=Articulated)
    coupled = [members for shape, members in sweep.shapes if shape.couples]
    assert coupled
    for members in coupled:
        assert sweep.windows(members).pairs[0].keys() == {"IA"}
        assert Sweep(robot, "masses", body=Masses).windows(members).pairs == []


def test_a_field_that_nobody_declared_is_an_error_with_its_name() -> None:
    def outward(cluster: Visit[Any, Any]) -> None:
        cluster.bodies[0].memory.view.speed = np.zeros(6)

    sweep = Sweep(chain(2), "typo", body=Masses)
    with pytest.raises(GraphError, match="has no field 'speed' to write"):
        sweep.outward(outward, carriers=True)


@pytest.mark.parametrize("name", ["series", "geared loops", "differential"])
def test_a_cluster_knows_its_motion(name: str) -> None:
    """v = X v_λ + S ẏ of all bodies: their energy is that of the mass matrix."""

    class Velocities(Record):
        v = entry(6)

    class Kinetic(ClusterRecord):
        energy = provided()

    def outward(cluster: Visit[Velocities, Kinetic]) -> None:
        cluster.remember()
        for body in cluster.bodies:
            above: Any = body.Xo @ body.output.v
            v = above + body.S @ cluster.v  # [001, eq. 33]
            cluster.memory.energy += 0.5 * np.array([v @ (body.inertia @ v)])
            if body.carries:
                body.memory.v = v

    robot = sample(name).robot
    sweep = Sweep(robot, "energy", body=Velocities, cluster=Kinetic)
    sweep.inputs("q", "v")
    total = sweep.total("energy", 1)
    sweep.outward(outward)
    sweep.finish("T", 1, lambda x: x, total)
    q, v = robot.random_state(1)
    T = float(compile(sweep.build(), backend="python")(q, v)[0])
    np.testing.assert_allclose(T, 0.5 * v @ mass_matrix(robot, q) @ v, rtol=1e-12)  # these robots have no armatures


def test_breakpoints_see_floats_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/debugging.md promises: D of C-ABA is an array of floats, in every cluster."""
    from coupler.algorithms import aba, articulated

    seen: list[Any] = []
    gather = articulated.articulated

    def spied(cluster: Any, p: Any = None) -> Any:
        I = gather(cluster, p)  # noqa: E741
        seen.append(np.asarray(I.D).dtype)
        return I

    robot = robots.load("four_bar").with_backend("python")
    q, v = robot.random_state(0)
    program = aba.forward_dynamics_program(robot)
    monkeypatch.setattr(aba, "articulated", spied)
    compile(program, backend="python")(q, v, np.zeros(robot.nv))
    assert seen and all(dtype == np.float64 for dtype in seen)
    np.testing.assert_allclose(
        forward_dynamics(robot, q, v, np.zeros(robot.nv)),
        forward_dynamics(robots.load("four_bar"), q, v, np.zeros(robot.nv)),
        rtol=1e-12,
    )
