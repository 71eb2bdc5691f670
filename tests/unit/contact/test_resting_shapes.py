"""Convex shapes that lie on each other stay there: on their faces, caps and sides."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import coupler
from coupler.contact.collision.geometry import contacts
from coupler.model import Box, Capsule, Cylinder, Free, Geometry, Hull, Plane
from coupler.spatial import Transform
from effort import every
from transforms import random_transform

UPRIGHT, LYING = [1.0, 0.0, 0.0, 0.0], [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
TURNS = np.arange(6) * np.pi / 3.0
NUT = Hull([[0.1 * np.cos(turn), 0.1 * np.sin(turn), z] for turn in TURNS for z in (-0.05, 0.05)])
LOWER: dict[str, Geometry] = {
    "box": Box((0.6, 0.6, 0.1)),
    "cylinder": Cylinder(0.4, 0.1),
    "hull": Hull(list(product((-0.3, 0.3), (-0.3, 0.3), (-0.05, 0.05)))),
}
UPPER: dict[str, tuple[Geometry, float, list[float]]] = {  # form, height of its centre, turn
    "box": (Box((0.2, 0.2, 0.1)), 0.05, UPRIGHT),
    "upright cylinder": (Cylinder(0.1, 0.1), 0.05, UPRIGHT),
    "lying cylinder": (Cylinder(0.1, 0.3), 0.1, LYING),
    "hull": (NUT, 0.05, UPRIGHT),
    "lying capsule": (Capsule(0.05, 0.2), 0.05, LYING),
}


@pytest.mark.parametrize(("lower", "upper"), every(4, product(LOWER, UPPER)))
def test_what_lies_on_something_stays(lower: str, upper: str) -> None:
    form, height, turn = UPPER[upper]
    b = coupler.RobotBuilder("two")
    for name, shape, mass in (("low", LOWER[lower], 2.0), ("top", form, 1.0)):
        b.body(name, mass=mass, inertia=(0.02 * mass,) * 3)
        b.joint(f"{name} floats", Free(), "ground", name)
        b.shape(name, shape, friction=0.6)
    b.shape("ground", Plane(), friction=0.6)
    robot = b.build()
    q = robot.pack_q({"low floats": [0, 0, 0.05, *UPRIGHT], "top floats": [0.03, 0.02, 0.1 + height, *turn]})
    simulation = coupler.Simulation(robot, step=1e-3, q=q)
    for _ in range(200):
        simulation.step()
        assert simulation.status.solved
    np.testing.assert_allclose(simulation.q, q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(simulation.v, 0.0, rtol=0, atol=1e-7)
    assert simulation.contact_forces[:, 2].max() < 3.0 * 9.81


GEOMS: dict[str, tuple[Geometry, str]] = {
    "box": (Box((0.5, 0.8, 1.1)), 'type="box" size="0.25 0.4 0.55"'),
    "cylinder": (Cylinder(0.35, 0.6), 'type="cylinder" size="0.35 0.3"'),
    "capsule": (Capsule(0.2, 0.7), 'type="capsule" size="0.2 0.35"'),
    "hull": (NUT, 'type="mesh" mesh="nut"'),
}


@pytest.mark.parametrize(("a", "b"), [("box", "box"), ("box", "cylinder"), ("cylinder", "capsule"), ("box", "hull")])
def test_shapes_are_as_far_apart_as_mujoco_says(a: str, b: str) -> None:
    mujoco = pytest.importorskip("mujoco", reason="it is compared with")
    vertices = " ".join(f"{x:.17g}" for x in NUT.vertices.ravel())
    bodies = "".join(f"<body><freejoint/><geom {GEOMS[name][1]}/></body>" for name in (a, b))
    text = f'<mujoco><asset><mesh name="nut" vertex="{vertices}"/></asset><worldbody>{bodies}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.ccd_tolerance, model.opt.ccd_iterations = 1e-12, 200
    data, rng, apart = mujoco.MjData(model), np.random.default_rng(7), 0
    for _ in range(30):
        places = [random_transform(rng), random_transform(rng)]
        for i, X in enumerate(places):
            data.qpos[7 * i : 7 * i + 3] = X.r
            mujoco.mju_mat2Quat(data.qpos[7 * i + 3 : 7 * i + 7], X.E.T.ravel())
        mujoco.mj_kinematics(model, data)
        expected = mujoco.mj_geomDistance(model, data, 0, 1, 100.0, None)
        at = [Transform(X.reshape(3, 3).T, r) for X, r in zip(data.xmat[1:], data.xpos[1:], strict=True)]
        found = min(contact.gap for contact in contacts(GEOMS[a][0], GEOMS[b][0], *at))
        if expected > 1e-3:
            apart += 1
            assert found == pytest.approx(expected, abs=1e-6)
    assert apart > 8
