"""Other people's robots in MJCF: what is loaded of them against MuJoCo's own reading.

The files are in the folder `models` beside the golden numbers. MuJoCo computes the open tree; its equalities are looked
at as rows that the loaded robot must keep.
"""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.io.mjcf.read import read_mjcf
from coupler.io.reading import Options
from coupler.io.xml import parse_file
from coupler.model import Robot
from effort import sweep
from golden import FOLDER
from mjcf_peer import Peer
from peers import batch_of, gap

pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed (pip install 'mujoco>=4')")

MODELS = FOLDER.parent / "models"
if not MODELS.exists():
    pytest.skip(f"the models are not there: {MODELS}", allow_module_level=True)

EXACT = 1e-11  # relative to the largest entry; 5e-13 is reached, by Cassie's accelerations, and 3e-14 by the others

# Degrees of freedom. Cassie: 32 of joints less 12 rows of connects, of which two follow from others. Reachy Mini: 7
# motors, 2 antennas, and the spin of 6 rods. A weld of a floating body makes it one with the other.
FREEDOMS = {
    "cassie_menagerie/cassie.xml": 22,
    "cassie_menagerie/cassie_nomesh.xml": 22,
    "ufactory_xarm7/hand.xml": 1,
    "ufactory_xarm7/hand_nomesh.xml": 1,
    "ufactory_xarm7/xarm7.xml": 8,
    "ufactory_xarm7/xarm7_nomesh.xml": 8,
    "reachy_mini/mjcf/reachy_mini.xml": 15,
    "reachy_mini/mjcf/reachy_mini_nomesh.xml": 15,
    "mujoco_testdata/armature_equivalence.xml": 2,  # two arms, a rotor geared to one
    "mujoco_testdata/equality_site_body_compare.xml": 3,  # a box on a point, a box welded to the world
    "mujoco_testdata/jdotv_connect_2d.xml": 2,
    "mujoco_testdata/jdotv_connect_3d.xml": 6,
    "mujoco_testdata/jdotv_weld_3d.xml": 3,
    "mujoco_testdata/multiple_constraints.xml": 4,  # a box on a point and a slide; the rest is locked
    "mujoco_testdata/slider_crank.xml": 3,
    "mujoco_testdata/ten_armature_1_equiv.xml": 1,
}


# With meshes or without, the same robot: the large ones without in the short run, the others with.
TWICE = [
    *("cassie_menagerie/cassie.xml", "reachy_mini/mjcf/reachy_mini.xml"),
    *("ufactory_xarm7/hand_nomesh.xml", "ufactory_xarm7/xarm7_nomesh.xml"),
]


@pytest.fixture(scope="module", params=sweep(FREEDOMS, [name for name in FREEDOMS if name not in TWICE]))
def loaded(request: pytest.FixtureRequest) -> tuple[Robot, Peer, int]:
    path = MODELS / request.param
    builder, _ = read_mjcf(parse_file(path), Options())
    return builder.build().with_backend("interpreter"), Peer(path), FREEDOMS[request.param]


def test_dynamics_are_the_open_trees_along_what_the_equalities_leave(loaded: tuple[Robot, Peer, int]) -> None:
    """H, c and accelerations in 3 random closed states."""
    robot, peer, freedoms = loaded
    assert robot.nv == freedoms
    batch = batch_of(robot)
    H, c = coupler.mass_matrix(robot, batch.q), coupler.bias_force(robot, batch.q, batch.v)
    a = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, (q, v) in enumerate(zip(batch.q, batch.v, strict=True)):
        expected = peer.equations(*peer.move(robot, q, v))
        assert gap(H[i], expected.H) < EXACT
        assert gap(c[i], expected.c) < EXACT
        assert gap(a[i], expected.accelerations(batch.tau[i])) < EXACT


def test_closed_states_keep_mujocos_equalities_and_leave_no_freedom_out(loaded: tuple[Robot, Peer, int]) -> None:
    robot, peer, freedoms = loaded
    batch = batch_of(robot)
    for q, v in zip(batch.q, batch.v, strict=True):
        A, _ = peer.move(robot, q, v)
        error, J = peer.rows()
        assert np.abs(error).max(initial=0.0) < 1e-12  # m or rad
        assert np.abs(J @ A).max(initial=0.0) < 1e-12 * np.abs(J).max(initial=1.0)
        assert peer.model.nv - np.linalg.matrix_rank(J, tol=1e-7 if len(J) else None) == freedoms


def test_bodies_and_sites_are_where_mujoco_has_them(loaded: tuple[Robot, Peer, int]) -> None:
    robot, peer, _ = loaded
    model, data, batch = peer.model, peer.data, batch_of(robot)
    for q, v in zip(batch.q, batch.v, strict=True):
        peer.move(robot, q, v)
        for i in (i for i in range(1, model.nbody) if model.body(i).name):
            pose = coupler.frame_pose(robot, q, model.body(i).name)
            assert np.abs(pose[:3, 3] - data.xpos[i]).max() < 1e-12
            assert np.abs(pose[:3, :3] - data.xmat[i].reshape(3, 3)).max() < 1e-12
        for i in (i for i in range(model.nsite) if model.site(i).name in robot.frame_names):
            pose = coupler.frame_pose(robot, q, model.site(i).name)
            assert np.abs(pose[:3, 3] - data.site_xpos[i]).max() < 1e-12
            assert np.abs(pose[:3, :3] - data.site_xmat[i].reshape(3, 3)).max() < 1e-12


def test_named_states_are_the_files(loaded: tuple[Robot, Peer, int]) -> None:
    """Up to the closing of loops: Cassie's are open by 1.5 mm at joints that are 5 cm apart."""
    robot, peer, _ = loaded
    assert list(robot.keyframes) == [peer.model.key(i).name for i in range(peer.model.nkey)]
    for i, (q, _) in enumerate(robot.keyframes.values()):
        for j, name in enumerate(peer.joints()):
            adr, own = peer.model.jnt_qposadr[j], robot.joint_positions(q)[name]
            assert np.abs(peer.model.key_qpos[i, adr : adr + own.size] - own).max() < 0.03  # rad or m
