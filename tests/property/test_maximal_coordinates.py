"""Forward dynamics against maximal coordinates, which know no tree, no cluster, and no independent joints.

Joints of every kind, loops, couplings, springs, dampers, armatures and forces on bodies, in one equation for all
bodies; rows of joints and loops are written by hand (see maximal.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coupler
from coupler.model import Robot
from effort import sweep
from maximal import Maximal
from random_robots import JOINTS, ROBOTS, Sketch, sample

EQUAL = (
    1e-9  # relative to the largest acceleration; 1e-12 is usual, and inertias that differ a thousandfold cost digits
)
BUNDLED = ("mini_cheetah", "tello", "planar_leg_linkage", "slider_crank", "rh5_manus", "charmie")
RANDOM = [name for name in ROBOTS if name != "locked rod"]  # whose lock is no part of the description
SHORT = ("floating tree", "series", "geared loops", "delta", "dressed", "slider_crank")


def dressed() -> Robot:
    """A loop of joints with springs, dampers and armatures, something that it carries, and springs between bodies."""
    rng = np.random.default_rng(11)
    sketch = Sketch(rng, "dressed")

    def passive(kinds: str, parent: str) -> str:
        for kind in kinds.split():
            joint = JOINTS[kind](rng)
            n = joint.nv
            spring = 0.0 if joint.floats else rng.uniform(0, 9, n if joint.nq == n else ())
            parent = sketch.joint(
                replace(joint, stiffness=spring, damping=rng.uniform(0, 1, n), armature=rng.uniform(0, 0.2, n)), parent
            )
        return parent

    base = passive("free", "ground")
    first, second = passive("revolute universal", base), passive("spherical helical", base)
    sketch.loop("universal", first, second)
    passive("planar cylindrical", second)
    b = sketch.builder
    b.spring("damped", base, second, rng.normal(size=3), rng.normal(size=3), stiffness=30.0, damping=2.0)
    b.spring("wound", "ground", first, (0, 0, 1), stiffness=5.0, free_length=0.2, pretension=3.0)
    return sketch.build()


def robot_of(name: str) -> Robot:
    if name == "dressed":
        return dressed()
    return sample(name).robot if name in ROBOTS else coupler.robots.load(name)


@pytest.mark.parametrize("name", sweep(["dressed", *RANDOM, *BUNDLED], SHORT))
def test_accelerations_are_those_of_free_bodies_that_are_held(name: str) -> None:
    robot = robot_of(name)
    rng = np.random.default_rng(3)
    q, v = robot.random_state(rng)
    w = np.concatenate([np.ravel(x) for x in robot.joint_velocities(q, v).values()])
    v = v * min(1.0, 3.0 / np.abs(w).max())
    bodies = Maximal(robot, q, v)
    assert np.abs(bodies.rows @ bodies.V).max(initial=0.0) < 1e-10  # velocities of bodies keep all joints and loops
    assert bodies.free().shape[1] == robot.nv

    tau, f_ext = rng.normal(size=robot.nv), rng.normal(size=(len(robot.bodies), 6))
    a = coupler.forward_dynamics(robot, q, v, tau, f_ext)
    G, g = robot.explicit_constraint(q, v)
    of_joints, spread = G @ a + g, np.zeros(int(robot.tree.v_start[-1]))
    spread[robot.embedding.v_index] = tau
    places = {joint: robot.tree.velocities(link) for joint, link in robot.tree.number.items()}
    expected = bodies.accelerations({joint: spread[place] for joint, place in places.items()}, f_ext)
    scale = max(1.0, *(float(np.abs(x).max()) for x in expected.values()))
    for joint, place in places.items():
        np.testing.assert_allclose(bodies.speeds[joint] @ bodies.V, (G @ v)[place], rtol=0, atol=1e-10)
        np.testing.assert_allclose(of_joints[place], expected[joint], rtol=0, atol=EQUAL * scale)
