"""Scenes of several robots and objects: what they do together."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import RobotBuilder, Simulation
from coupler.model import Box, Capsule, Cylinder, Sphere
from coupler.rotation import about_z
from models_folder import ABSENT, loaded
from pick_and_stack import FINGER, SIDE, pick_and_stack


def test_two_quadrupeds_that_collide_keep_their_momentum() -> None:
    """Afloat, head on, one with three times the speed of the other: trunks meet, and legs go on swinging."""
    dog = coupler.robots.load("mini_cheetah").with_shape("trunk", Box((0.4, 0.2, 0.12)), body="Floating Base")
    b = RobotBuilder("collision", gravity=(0, 0, 0))
    b.attach(dog, "a/")
    b.attach(dog, "b/", at=(0.5, 0.05, 0.02), turned=about_z(np.pi))
    pair = b.build()
    v = pair.pack_v({"a/floating_base": [0, 0, 0, 3.0, 0, 0], "b/floating_base": [0, 0, 0, 1.0, 0, 0]})
    simulation = Simulation(pair, v=v)
    assert {name.split(",")[0] for name in simulation.contacts} == {"a/trunk on b/trunk"}
    before = coupler.momentum(pair, simulation.q, simulation.v)
    log = simulation.run(0.1)
    assert log.forces.any()
    assert log.gaps.min() > -1e-4  # what turns by ω h overlaps by (ω h)² of its size: steps are straight
    assert simulation.status.solved
    after = coupler.momentum(pair, simulation.q, simulation.v)
    assert after == pytest.approx(before, abs=1e-3 * np.abs(before).max())  # near contacts steps are of first order
    speeds = [simulation.v[pair.v_slice(f"{name}/floating_base")][3] for name in "ab"]
    assert speeds[0] < 3.0 - 0.1
    assert sum(speeds) < 1e-2 + 4.0  # along their own axes, which point at each other


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_the_gripper_of_the_example_is_driven_where_the_example_drives_it() -> None:
    arm = loaded("ufactory_xarm7/xarm7_nomesh.xml")
    assert arm.independent_joints == [f"joint{i}" for i in range(1, 8)] + [FINGER]


@pytest.mark.long
@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.filterwarnings("ignore:.*no impulses were found")  # in two steps, when the pads hit the box
def test_an_arm_picks_up_a_box_and_stacks_it() -> None:
    simulation = pick_and_stack(loaded("ufactory_xarm7/xarm7_nomesh.xml"))
    positions = simulation.robot.joint_positions(simulation.q)
    lower, upper = positions["lower"], positions["upper"]
    assert upper[2] == pytest.approx(1.5 * SIDE, abs=1e-6)
    assert lower[:3] == pytest.approx([0.45, 0.10, SIDE / 2], abs=1e-4)
    assert upper[:2] == pytest.approx(lower[:2], abs=2e-3)
    assert np.abs(simulation.v).max() < 1e-3


def test_a_pile_in_which_any_two_bodies_may_touch_is_solved() -> None:
    """Twelve bodies fall on each other: the coupling of nodes is found state by state; lanes agree with one state."""
    rng = np.random.default_rng(0)
    b = RobotBuilder("pile")
    b.floor(friction=0.6)
    for i in range(12):
        form = (Box((0.1, 0.1, 0.1)), Sphere(0.05), Capsule(0.04, 0.08), Cylinder(0.05, 0.1))[i % 4]
        b.object(f"body{i}", form, at=(*rng.uniform(-0.08, 0.08, 2), 0.1 + 0.2 * i), density=500.0)
    pile = b.build()
    simulation = Simulation(pile)
    log = simulation.run(0.6)
    assert log.residuals.max() < 1e-8
    speeds = np.linalg.norm(log.v.reshape(-1, 12, 6) * ([0.08] * 3 + [1.0] * 3), axis=2)  # of surfaces, about; m/s
    motion = 1e-3 * np.sort(speeds)[:, -2:].sum(axis=1)  # the most that two bodies approach each other in a step
    # An edge that comes down beside those that touch already is first seen where the step ends.
    assert (log.gaps.min(axis=1) > -0.5 * motion - 1e-5).all()
    q, v = np.array(simulation.q), np.array(simulation.v)
    together = coupler.rollout(pile, np.stack([q] * 3), np.stack([v] * 3), np.zeros((3, 5, pile.nv)))
    alone = Simulation(pile, q=q, v=v)
    for _ in range(5):
        alone.step()
    assert np.array_equal(together.q[:, -1], np.stack([alone.q] * 3))
