"""Joints that end elsewhere than at their child's origin, and loops that are held along some axes only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coupler
from coupler.model import Fixed, Held, ModelError, Prismatic, Revolute, Robot, RobotBuilder, Spherical
from coupler.spatial import Transform
from random_robots import place

INERTIA = {"mass": 1.3, "centre": (0.1, -0.2, 0.05), "inertia": (0.02, 0.03, 0.04)}


def chain(kinds: list[Any], meets: list[Transform], at: list[Transform], *, direct: bool) -> Robot:
    """Bodies whose joints end off their origins, said directly or by a massless body at the joint's end."""
    b, parent = RobotBuilder("chain"), "ground"
    for i, (kind, end, start) in enumerate(zip(kinds, meets, at, strict=True)):
        b.body(f"body{i}", **INERTIA)
        b.frame(f"tip{i}", f"body{i}", (0.1, 0.2, 0.3))
        if direct:
            b.joint(f"joint{i}", kind, parent, f"body{i}", start, meets=end)
        else:
            b.body(f"end{i}")
            b.joint(f"joint{i}", kind, parent, f"end{i}", start)
            b.joint(f"weld{i}", Fixed(), f"end{i}", f"body{i}", end.inverse())
        parent = f"body{i}"
    return b.build()


def test_a_joint_that_ends_off_the_childs_origin_is_one_with_a_massless_body_there() -> None:
    rng = np.random.default_rng(3)
    kinds = [Revolute(axis=(1, 2, 3)), Spherical(), Fixed(), Prismatic(axis=(0, 1, 0)), Revolute()]
    meets, at = [place(rng) for _ in kinds], [place(rng) for _ in kinds]
    one, other = (chain(kinds, meets, at, direct=direct) for direct in (True, False))
    q, v = one.random_state(1)
    tau = rng.normal(size=one.nv)
    np.testing.assert_allclose(
        coupler.forward_dynamics(one, q, v, tau), coupler.forward_dynamics(other, q, v, tau), rtol=1e-12
    )
    ends, bodies = (coupler.joint_forces(robot, q, v, tau).joints for robot in (other, one))
    for i in (0, 1, 3, 4):
        expected = meets[i].inverse().inverse_force(ends[f"joint{i}"])
        np.testing.assert_allclose(bodies[f"joint{i}"], expected, rtol=1e-11, atol=1e-11)
    for frame in ("body0", "body2", "body4", "tip1", "tip4"):
        found, expected = (coupler.frame_pose(robot, q, frame) for robot in (one, other))
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_where_a_joint_ends_may_be_a_point_and_a_rotation() -> None:
    b = RobotBuilder("door")
    b.body("leaf", **INERTIA)
    turned = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    b.joint("hinge", Revolute(), "ground", "leaf", meets=(0.5, 0, 0), meets_turned=turned)
    pose = coupler.frame_pose(b.build(), [0.0], "leaf")
    np.testing.assert_allclose(pose[:3, 3], (0, 0.5, 0), atol=1e-16)  # the body's −y is the joint's x


def test_a_rotation_that_is_none_is_refused() -> None:
    b = RobotBuilder("door")
    with pytest.raises(ModelError, match="'hinge': its rotation is not a rotation matrix"):
        b.joint("hinge", Revolute(), "ground", "leaf", meets_turned=2.0 * np.eye(3))


def crank(kind: Any) -> Robot:
    """A crank whose rod slides on the ground; the rod's end is kept on the x axis."""
    b = RobotBuilder("crank")
    b.body("crank", 1.0, (0.1, 0, 0), (0.01, 0.01, 0.01))
    b.body("rod", 1.0, (0.3, 0, 0), (0.03, 0.03, 0.03))
    b.joint("turn", Revolute(), "ground", "crank", start=1.0, independent=True)
    b.joint("pin", Revolute(), "crank", "rod", (0.2, 0, 0), start=-1.3)
    b.loop("slide", kind, "ground", "rod", meets=(0.6, 0, 0))
    return b.build()


def test_a_point_held_on_a_line_moves_as_a_slider_without_mass_would_have_it() -> None:
    held = crank(Held([[0, 0, 0, 0, 1, 0]]))
    q = held.pack_q({"turn": 1.0})
    p = held.joint_positions(q)
    assert 0.2 * np.sin(1.0) + 0.6 * np.sin(1.0 + p["pin"]) == pytest.approx(0.0, abs=1e-12)
    # One independent velocity: the kinetic energy's Hessian by differences of exact positions.
    h = 1e-6
    there, back = (held.joint_positions(held.pack_q({"turn": 1.0 + s * h}))["pin"] for s in (1, -1))
    assert held.joint_velocities(q, [1.0])["pin"] == pytest.approx((there - back) / (2 * h), rel=1e-8)


@pytest.mark.parametrize("axes", [[[0] * 6], [[0, 0, 0, 1, 0, 0], [0, 0, 0, 2, 0, 0]], [[1, 2]]])
def test_axes_that_hold_nothing_are_refused(axes: Any) -> None:
    with pytest.raises(ModelError, match="held: its axes must be"):
        Held(axes)
