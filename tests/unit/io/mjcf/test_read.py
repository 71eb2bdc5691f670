"""Robots from MJCF: what each part of the format becomes, against MuJoCo's own numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.io.mjcf.read import read_mjcf
from coupler.io.reading import Options
from coupler.io.xml import parse_file
from coupler.model import (
    Box,
    Capsule,
    Continuous,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    Mesh,
    ModelError,
    Plane,
    Prismatic,
    Revolute,
    Robot,
    Sphere,
    Spherical,
)
from coupler.rotation import about_x, about_z, matrix_from_quaternion
from mjcf_peer import Peer
from peers import batch_of, gap

mujoco: Any = pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed (pip install 'mujoco>=4')")

EXACT = 1e-12  # relative to the largest entry; 1e-13 is reached

INERTIAL = '<inertial pos="0.01 0.02 0.03" mass="1.5" fullinertia="0.05 0.06 0.07 0.001 0.002 -0.003"/>'
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 2\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


@pytest.fixture(autouse=True)
def _nothing_is_left_in_the_working_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """MuJoCo likes to write a log there."""
    before, empty = Path.cwd(), tmp_path_factory.mktemp("cwd")
    os.chdir(empty)
    yield
    os.chdir(before)
    assert not list(empty.iterdir())


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a model, of which the world and other sections are given; its path."""

    def write(world: str, rest: str = "", file: str = "robot.xml") -> Path:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<mujoco><compiler angle="radian"/>\n{rest}\n<worldbody>\n{world}\n</worldbody></mujoco>')
        return path

    return write


def read(path: Path, **options: Any) -> tuple[Robot, list[str]]:
    builder, untold = read_mjcf(parse_file(path), Options(**options))
    return builder.build(), untold


def body(name: str, inside: str = '<joint axis="0 1 0"/>', place: str = "") -> str:
    return f'<body name="{name}" {place}>{INERTIAL}{inside}</body>'


def agree(path: Path, robot: Robot) -> None:
    """Places of all bodies and sites, H, c and accelerations, and equalities are MuJoCo's, in 3 random states."""
    peer, batch = Peer(path), batch_of(robot)
    H, c = coupler.mass_matrix(robot, batch.q), coupler.bias_force(robot, batch.q, batch.v)
    a = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, (q, v) in enumerate(zip(batch.q, batch.v, strict=True)):
        A, b = peer.move(robot, q, v)
        expected = peer.equations(A, b)
        assert gap(H[i], expected.H) < EXACT
        assert gap(c[i], expected.c) < EXACT
        assert gap(a[i], expected.accelerations(batch.tau[i])) < EXACT
        error, J = peer.rows()
        assert np.abs(error).max(initial=0.0) < EXACT
        assert np.abs(J @ A).max(initial=0.0) < EXACT * np.abs(J).max(initial=1.0)
        for i in range(1, peer.model.nbody):
            place(robot, q, peer.model.body(i).name, peer.data.xmat[i], peer.data.xpos[i])
        for i in range(peer.model.nsite):
            place(robot, q, peer.model.site(i).name, peer.data.site_xmat[i], peer.data.site_xpos[i])


def place(robot: Robot, q: np.ndarray, name: str, R: np.ndarray, x: np.ndarray) -> None:
    """A body or site is where MuJoCo has it."""
    expected = np.column_stack([R.reshape(3, 3), x])
    assert np.abs(coupler.frame_pose(robot, q, name)[:3] - expected).max() < EXACT


# Joints


def test_joints_of_every_type_with_all_their_properties(write: Any) -> None:
    passive = 'stiffness="3" springref="0.3" damping="0.2" armature="0.05" frictionloss="0.4"'
    inner = body("slider", f'<joint name="slide" type="slide" axis="1 2 0" range="-1 2" {passive}/>', 'pos="0 0 1"')
    ball = body("ball", '<joint name="ball" type="ball" stiffness="2" damping="0.1" armature="0.02" pos="0.1 0 0.2"/>')
    free = body("base", '<joint name="base" type="free" damping="0.3"/>', 'pos="1 2 3" euler="0.1 0.2 0.3"')
    turn = f'<joint name="turn" axis="0 1 0" range="-2 2" actuatorfrcrange="-5 5" {passive}/>{inner}'
    spin = body("wheel", '<joint name="spin" axis="1 0 1" pos="0.3 0.2 0.1"/>', 'euler="0.3 0.2 0.1" pos="2 0 0"')
    path = write(body("arm", turn, 'pos="0 1 0" euler="0.5 0 0"') + ball + free + spin)
    robot, untold = read(path)
    assert untold == []
    assert robot.joint_names == ["turn", "slide", "ball", "base", "spin"]
    kinds = {joint.name: joint.kind for joint in robot.joints}
    assert [type(kind) for kind in kinds.values()] == [Revolute, Prismatic, Spherical, Free, Continuous]
    for name in ("turn", "slide"):
        kind = kinds[name]
        found = np.ravel([kind.stiffness, kind.rest, kind.damping, kind.armature, kind.friction])
        np.testing.assert_array_equal(found, [3, 0.3, 0.2, 0.05, 0.4])
    assert (kinds["turn"].lower, kinds["turn"].upper, kinds["turn"].effort_limit) == (-2, 2, 5)
    assert (kinds["slide"].lower, kinds["slide"].upper, kinds["slide"].effort_limit) == (-1, 2, np.inf)
    agree(path, robot)


def test_a_position_keeps_its_meaning_where_the_file_has_a_reference(write: Any) -> None:
    turn = '<joint name="turn" axis="1 2 3" ref="0.7" pos="0.1 0.2 0.3" stiffness="2" springref="1"/>'
    slide = body("slider", '<joint name="slide" type="slide" axis="0 1 1" ref="0.2" stiffness="3"/>', 'pos="1 0 0"')
    path = write(body("arm", turn + slide, 'pos="0 1 0" euler="0.5 0 0"'))
    robot, _ = read(path)
    agree(path, robot)
    assert [float(joint.start[0]) for joint in robot.joints if joint.start is not None] == [0.7, 0.2]
    q = robot.pack_q({"turn": 0.7, "slide": 0.2})
    np.testing.assert_allclose(coupler.frame_pose(robot, q, "arm")[:3, :3], about_x(0.5), atol=1e-15)


def test_several_joints_of_a_body_are_a_chain(write: Any) -> None:
    joints = '<joint name="x" type="slide" axis="1 0 0" pos="1 1 1"/><joint name="turn" axis="0 1 0" pos="0 0.2 0.3"/>'
    joints += '<joint name="turn_carrier" axis="0 0 1" ref="0.4" pos="0.1 0 0"/>'
    path = write(body("turn_carrier", joints, 'pos="0 1 0" euler="0.5 0.1 0"'))
    robot, _ = read(path)
    assert robot.joint_names == ["x", "turn", "turn_carrier"]
    assert robot.body_names == ["turn_carrier", "x_carrier", "turn_carrier_2"]
    assert robot.bodies["x_carrier"].massless
    agree(path, robot)


def test_exact_axes_stay_exact(write: Any) -> None:
    """Quarter turns by quaternions with few digits leave no 1e-17."""
    quarter = 'quat="0.707107 0 0 0.707107" pos="1e-17 0 1"'
    robot, _ = read(write(body("arm", "<joint/>", quarter)))
    np.testing.assert_array_equal(robot.joints[0].placement.E.T, [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(robot.joints[0].placement.r, [0, 0, 1])


def test_motors_add_their_inertia_and_damping_by_the_square_of_the_gear(write: Any) -> None:
    """After an actuator of three outputs, which has three gears."""
    actuators = '<orientation joint="ball"/><motor joint="turn" gear="3" armature="0.1" damping="0.5"/>'
    world = body("ball", '<joint name="ball" type="ball"/>') + body("arm", '<joint name="turn" armature="0.01"/>')
    path = write(world, f"<actuator>{actuators}</actuator>")
    robot, untold = read(path)
    assert untold == ["1 actuator with several controls"]
    assert robot.actuated_joints == ["ball", "turn"]
    assert robot.actuators[0].gears == {"turn": 3.0}
    assert float(robot.joints[1].kind.armature[0]) == pytest.approx(0.91, rel=1e-15)
    agree(path, robot)


def test_actuators_that_are_not_modelled_are_told(write: Any) -> None:
    world = body("arm", '<joint name="a"/><site name="s"/>') + body("b", '<joint name="b"/>')
    world += body("c", '<joint name="c"/>') + body("f", '<freejoint name="f"/>')
    motors = '<motor joint="a"/><motor joint="b" ctrlrange="-1 1"/><muscle joint="a" lengthrange="0 1"/>'
    motors += '<motor site="s"/><motor joint="f"/><position joint="c" kp="2" timeconst="0.1"/>'
    motors += '<intvelocity joint="c" kp="3" actrange="-1 1"/>'
    robot, untold = read(write(world, f"<actuator>{motors}</actuator>"))
    assert robot.actuator_names == ["a", "b", "a_2", "actuator", "c", "c_2"]
    assert [actuator.kind for actuator in robot.actuators] == ["motor"] * 4 + ["position", "motor"]
    assert robot.actuators[1].effort == (-1.0, 1.0)
    assert untold == [
        "1 muscle, which is a motor here",
        "1 actuator whose gear is zero",
        "1 delay of an actuator",
        "1 actuator's law: it is a motor here",
    ]


def test_a_limit_for_several_actuators_together_is_told(write: Any) -> None:
    motors = '<actuator><motor joint="a" gear="2"/><motor joint="a" ctrlrange="-1 9"/></actuator>'
    robot, untold = read(write(body("arm", '<joint name="a" actuatorfrcrange="-3 3"/>'), motors))
    assert [actuator.effort for actuator in robot.actuators] == [(-np.inf, np.inf), (-1.0, 9.0)]
    assert untold == []  # it limits their sum
    servos = motors.replace("</actuator>", '<position joint="a" kp="3"/></actuator>')
    robot, untold = read(write(body("arm", '<joint name="a" actuatorfrcrange="-3 3"/>'), servos))
    assert [actuator.effort for actuator in robot.actuators] == [(-np.inf, np.inf), (-1.0, 9.0), (-np.inf, np.inf)]
    assert untold == []
    limited = servos.replace('kp="3"', 'kp="3" forcerange="-4 4"')
    robot, untold = read(write(body("arm", '<joint name="a" actuatorfrcrange="-3 3"/>'), limited))
    assert [actuator.effort for actuator in robot.actuators] == [(-1.5, 1.5), (-1.0, 3.0), (-3.0, 3.0)]
    assert untold == ["1 actfrcrange of several actuators, which keep it in another way"]


def test_an_actuator_of_a_joint_that_an_equality_holds_is_told(write: Any) -> None:
    world = body("arm", '<joint name="a"/>') + body("b", '<joint name="b"/>')
    rest = '<equality><joint joint1="a"/></equality><tendon><fixed name="t"><joint joint="a" coef="1"/>'
    rest += '<joint joint="b" coef="2"/></fixed></tendon><actuator><motor joint="a"/><motor tendon="t"/></actuator>'
    robot, untold = read(write(world, rest))
    assert [dict(actuator.gears) for actuator in robot.actuators] == [{"b": 2.0}]
    assert untold == ["1 actuator of fixed joints"]


def test_flags_of_the_file_are_heeded(write: Any) -> None:
    joint = '<joint name="turn" axis="0 1 0" range="-1 1" stiffness="2" damping="1" frictionloss="1"/>'
    flags = 'gravity="disable" spring="disable" damper="disable" constraint="disable"'
    equality = '<equality><connect body1="arm" anchor="0 0 0"/></equality>'
    path = write(body("arm", joint + '<geom size="0.1"/>'), f"<option><flag {flags}/></option>{equality}")
    robot, untold = read(path)
    kind = robot.joints[0].kind
    assert not np.any([kind.stiffness, kind.damping, kind.friction])
    assert isinstance(kind, Continuous)
    assert not robot.loops
    assert not robot.gravity.any()
    assert not robot.shapes[0].touches
    assert untold == ["1 equality switched off"]


def test_gravity_is_the_files_unless_another_is_asked_for(write: Any) -> None:
    path = write(body("arm"), '<option gravity="1 2 3"/>')
    np.testing.assert_array_equal(read(path)[0].gravity, [1, 2, 3])
    np.testing.assert_array_equal(read(path, gravity=(0, 0, -1.62))[0].gravity, [0, 0, -1.62])


# Bodies, names, floating bases


def test_what_has_no_name_is_called_after_what_it_is_or_belongs_to(write: Any) -> None:
    inner = f'<body>{INERTIAL}<joint/><joint axis="0 1 0"/><site/><site/></body>'
    world = f'<body>{INERTIAL}{inner}</body>{body("body_1")}<site/><geom size="1"/>'
    rest = '<equality><connect body1="body_1" body2="world" anchor="0 0 0"/></equality>'
    builder, _ = read_mjcf(parse_file(write(world, rest)), Options())
    assert list(builder._bodies) == ["body_1_2", "body_2", "body_1", "body_2_joint_carrier", "world"]
    assert list(builder._joints) == ["body_1_2_weld", "body_2_joint", "body_2_joint_2", "body_1_joint", "world_weld"]
    assert list(builder._frames) == ["world_site", "body_2_site", "body_2_site_2"]
    assert list(builder._loops) == ["connect_1"]
    assert [shape.name for shape in builder._shapes] == ["ground_geom"]
    assert builder.name == "robot"


def test_names_that_are_taken_are_told(write: Any) -> None:
    rest = '<equality><joint name="arm" joint1="arm" joint2="turn"/></equality>'
    other = body("ground", '<joint name="turn"/>')
    robot, _ = read(write(body("arm", '<joint name="arm"/><site name="arm"/>') + other, rest))
    assert robot.body_names == ["arm", "ground_body"]
    assert robot.frame_names == ["arm_site"]
    assert [coupling.name for coupling in robot.couplings] == ["arm_equality"]
    assert robot.warnings == (
        "3 parts are renamed, since their names are taken: body 'ground' to 'ground_body', site 'arm' to 'arm_site', "
        "equality 'arm' to 'arm_equality'",
    )


def test_bodies_without_joints_are_welded(write: Any) -> None:
    path = write(body("base", body("tool", "", 'pos="0 0 1" euler="0.1 0.2 0.3"'), 'pos="1 0 0"') + body("arm"))
    robot, _ = read(path)
    assert robot.joint_names == ["base_weld", "tool_weld", "arm_joint"]
    assert robot.nv == 1
    agree(path, robot)


def test_an_inertia_that_no_real_body_has_is_told(write: Any) -> None:
    thin = '<body name="thin" pos="0 0 1"><inertial pos="0 0 0" mass="0" diaginertia="1 1 1"/></body>'
    robot, _ = read(write(body("arm", "<joint/>" + thin)))
    assert robot.warnings == ("1 inertia that no real body has: 'thin'",)
    assert robot.bodies["thin"].ideal


def test_a_floating_base_has_its_place_in_the_world(write: Any) -> None:
    path = write(body("base", body("arm"), 'pos="1 2 3" euler="0 0 0.5"'))
    robot, _ = read(path, floating=True)
    assert robot.joint_names == ["floating_base", "arm_joint"]
    start = robot.joints[0].start
    assert start is not None
    np.testing.assert_allclose(start[:3], [1, 2, 3])
    np.testing.assert_allclose(matrix_from_quaternion(start[3:]), about_z(0.5), atol=1e-15)


def test_a_base_that_is_made_to_float_can_be_held_by_an_equality(write: Any) -> None:
    path = write(body("base", body("arm")), '<equality><connect body1="base" anchor="0 0 0"/></equality>')
    assert read(path)[0].nv == 1
    assert read(path, floating=True)[0].nv == 4


def test_a_base_that_floats_already_stays(write: Any) -> None:
    robot, _ = read(write(body("base", '<freejoint name="base"/>')), floating=True)
    assert robot.joint_names == ["base"]


def test_only_one_body_without_joints_can_be_made_to_float(write: Any) -> None:
    with pytest.raises(ModelError, match=r"robot\.xml, line 1, <mujoco>: .*one root body, but there are 'a', 'b'"):
        read(write(body("a") + body("b")), floating=True)
    with pytest.raises(ModelError, match=r"line 4, <body name='a'>: .*without joints, but 'a' has 'a_joint'"):
        read(write(body("a")), floating=True)


# Equalities


PAIR = 'pos="0 1 0" euler="0.5 0.1 0"'


def two(first: str = "<freejoint/>", second: str = "<freejoint/>") -> str:
    """Two bodies with sites, in general position."""
    site = '<site name="{0}" pos="{1}" euler="0.3 0.2 0.1"/>'
    one = body("one", first + site.format("here", "0.1 0.2 0.3"), 'pos="1 0 0" euler="0.2 0 0.1"')
    return one + body("other", second + site.format("there", "-0.1 0.2 -0.3"), PAIR)


@pytest.mark.parametrize(
    ("equality", "freedoms"),
    [
        ('<connect body1="one" body2="other" anchor="0.1 0.2 0.3"/>', 9),
        ('<connect body1="one" anchor="0.1 0.2 0.3"/>', 9),
        ('<connect site1="here" site2="there"/>', 9),
        ('<weld body1="one" body2="other"/>', 6),
        ('<weld body1="one" body2="other" anchor="0.1 0.2 0.3" relpose="1 2 3 0.5 0.1 0.7 0.3"/>', 6),
        ('<weld body1="other" body2="one" relpose="1 2 3 0.5 0.1 0.7 0.3"/>', 6),
        ('<weld site1="here" site2="there"/>', 6),
        ('<weld body1="other"/>', 6),
        ('<weld body1="one" body2="other" torquescale="0.1" anchor="0.1 0 0"/>', 6),
    ],
)
def test_points_and_frames_held_together(write: Any, equality: str, freedoms: int) -> None:
    path = write(two(), f"<equality>{equality}</equality>")
    robot, untold = read(path)
    assert (robot.nv, untold) == (freedoms, [])
    agree(path, robot)


@pytest.mark.parametrize(
    "equality", ['<weld body1="one" body2="other" anchor="1 2 3"/>', '<weld site1="there" site2="here"/>']
)
def test_a_floating_body_that_is_welded_hangs_on_the_other(write: Any, equality: str) -> None:
    path = write(two('<joint type="ball"/>'), f"<equality>{equality}</equality>")
    robot, _ = read(path)
    assert [(type(joint.kind), joint.parent) for joint in robot.joints] == [(Spherical, "ground"), (Fixed, "one")]
    assert robot.warnings == ("free joint 'other_joint' is made fixed, since a weld holds its body on 'one'",)
    agree(path, robot)


def test_a_circle_of_welded_floating_bodies_is_cut_once(write: Any) -> None:
    rest = '<equality><weld body1="one" body2="other"/><weld name="again" body1="other" body2="one"/></equality>'
    robot, _ = read(write(two(), rest))
    assert robot.nv == 6
    assert robot.warnings[1] == (
        "1 equality left out, since the bodies are rigidly attached already: 'again of other and one'"
    )


def test_a_weld_within_a_chain_is_a_loop_of_six_rows(write: Any) -> None:
    joints = "".join(f'<joint name="x{i}" type="slide" axis="{axis}"/>' for i, axis in enumerate(("1 0 0", "0 1 0")))
    first = body("one", joints + '<joint name="x2" type="slide" axis="0 0 1"/><joint name="b" type="ball"/>')
    second = body("other", '<joint name="turn" axis="0 1 0"/>', PAIR)
    path = write(first + second, '<equality><weld body1="one" body2="other"/></equality>')
    robot, _ = read(path)
    assert (robot.nv, [type(loop.kind) for loop in robot.loops]) == (1, [Fixed])
    agree(path, robot)


def test_a_weld_that_holds_no_orientation_is_a_point(write: Any) -> None:
    robot, _ = read(write(two(), '<equality><weld body1="one" body2="other" torquescale="0"/></equality>'))
    assert [type(loop.kind) for loop in robot.loops] == [Spherical]


def test_an_equality_of_bodies_that_are_one_is_left_out(write: Any) -> None:
    rest = '<equality><connect name="idle" body1="one" body2="tool" anchor="0 0 0"/></equality>'
    robot, _ = read(write(body("one", "<joint/>" + body("tool", "")), rest))
    assert not robot.loops
    assert robot.warnings == (
        "1 equality left out, since the bodies are rigidly attached already: 'idle of one and tool'",
    )


@pytest.mark.parametrize("polynomial", ["0.1 2", "0 -3 0 0 0", "0.1 1.5 0.2", "0.3 1 -0.2 0.1 0.05"])
def test_coupled_joints_about_their_references(write: Any, polynomial: str) -> None:
    world = body("one", '<joint name="x" axis="0 1 0" ref="0.4"/>') + body(
        "other", '<joint name="y" ref="-0.3"/>', PAIR
    )
    path = write(world, f'<equality><joint joint1="y" joint2="x" polycoef="{polynomial}"/></equality>')
    robot, _ = read(path)
    assert (robot.nv, robot.independent_joints, robot.couplings[0].name) == (1, ["x"], "coupling_1")
    agree(path, robot)


def test_equalities_that_lock_joints_make_them_fixed(write: Any) -> None:
    """One by itself, one with it, one before it by a cubic, and one that is left alone."""
    names = "abcd"
    refs = dict(zip(names, (0.1, 0.2, 0.0, 0.4), strict=True))
    world = "".join(body(n, f'<joint name="{n}" axis="0 1 0" pos="0.1 0 0" ref="{refs[n]}"/>', PAIR) for n in names)
    rest = '<equality><joint joint1="b" joint2="a" polycoef="0 2"/><joint joint1="a" polycoef="0.5"/></equality>'
    rest += '<equality><joint joint1="b" joint2="c" polycoef="0 0 0 8"/></equality>'
    path = write(world, rest)
    robot, _ = read(path)
    assert robot.warnings == ("equalities hold 3 joints, which are made fixed: 'a', 'b', 'c'",)
    assert robot.independent_joints == ["d"]
    peer = Peer(path)
    peer.data.qpos[:] = [0.6, 1.2, 0.5, 0.7]
    mujoco.mj_forward(peer.model, peer.data)
    assert np.abs(peer.rows()[0]).max() < 1e-15
    for i, name in enumerate(names, 1):
        place(robot, robot.pack_q({"d": 0.7}), name, peer.data.xmat[i], peer.data.xpos[i])


@pytest.mark.parametrize(
    ("equalities", "message"),
    [
        ('<joint joint1="x"/><joint name="again" joint1="x" polycoef="1"/>', r"again.*'x' at 1, and another .* at 0"),
        ('<joint joint1="y"/><joint name="no" joint1="y" joint2="x" polycoef="1 0 1"/>', r"no position of joint 'x'"),
    ],
)
def test_equalities_that_contradict_each_other_are_refused(write: Any, equalities: str, message: str) -> None:
    world = body("one", '<joint name="x"/>') + body("other", '<joint name="y"/>')
    with pytest.raises(ModelError, match=f"line 2, <joint name=.*{message}"):
        read(write(world, f"<equality>{equalities}</equality>"))


# Frames, shapes, springs, keyframes


def test_sites_are_frames_on_bodies_and_on_the_world(write: Any) -> None:
    site = '<site name="{}" pos="1 2 3" euler="0.3 0.2 0.1"/>'
    path = write(site.format("origin") + body("arm", '<joint axis="0 1 0"/>' + site.format("tip")))
    robot, _ = read(path)
    assert sorted(robot.frame_names) == ["origin", "tip"]
    assert robot.joint_names == ["arm_joint", "world_weld"]
    agree(path, robot)


def test_shapes_of_every_kind(write: Any) -> None:
    geoms = '<geom type="sphere" size="0.1" rgba="1 0 0 0.5"/><geom type="capsule" size="0.1" fromto="0 0 0 0 2 0"/>'
    geoms += '<geom type="ellipsoid" size="0.1 0.2 0.3" contype="2" conaffinity="5" friction="0.7"/>'
    geoms += '<geom name="drum" type="cylinder" size="0.1 0.2" group="3"/>'
    geoms += '<geom type="box" size="0.1 0.2 0.3" pos="1 2 3" rgba="0 0 0 0" contype="0" conaffinity="0"/>'
    geoms += '<geom size="0.1" material="blue"/>'
    rest = '<asset><material name="blue" rgba="0 0 1 1"/></asset>'
    robot, _ = read(write('<geom type="plane" size="1 1 1"/>' + body("arm", "<joint/>" + geoms), rest))
    floor, ball, rod, egg, drum, crate, blue = robot.shapes
    kinds = [type(shape.geometry) for shape in robot.shapes]
    assert kinds == [Plane, Sphere, Capsule, Ellipsoid, Cylinder, Box, Sphere]
    assert (floor.body, drum.body, drum.name, ball.name) == ("ground", "arm", "drum", "arm_geom")
    assert isinstance(rod.geometry, Capsule)
    assert (rod.geometry.radius, rod.geometry.length) == (0.1, 2.0)
    np.testing.assert_allclose(rod.at.r, [0, 1, 0])
    np.testing.assert_allclose(np.abs(rod.at.E[2]), [0, 1, 0], atol=1e-15)
    assert isinstance(crate.geometry, Box)
    np.testing.assert_array_equal(crate.geometry.size, [0.2, 0.4, 0.6])
    np.testing.assert_array_equal(crate.at.r, [1, 2, 3])
    assert (egg.group, egg.meets, egg.friction) == (2, 5, 0.7)
    assert [shape.visible for shape in robot.shapes] == [True, True, True, True, False, False, True]
    assert [shape.touches for shape in robot.shapes] == [True] * 5 + [False, True]
    assert floor.colour is None
    np.testing.assert_allclose(ball.colour, [1, 0, 0, 0.5])
    np.testing.assert_allclose(blue.colour, [0, 0, 1, 1])


@pytest.mark.parametrize(
    "mesh", ['scale="1 -2 1"', 'refpos="0.1 0.2 0" scale="1 2 3"', 'scale="2 2 2" refquat="1 2 3 4"']
)
def test_a_mesh_is_placed_as_in_its_file(write: Any, tmp_path: Path, mesh: str) -> None:
    """MuJoCo moves a mesh to its centre and principal axes; its corners stay where they are."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "part.obj").write_text(TETRAHEDRON)
    rest = f'<compiler meshdir="assets"/><asset><mesh name="part" file="part.obj" {mesh}/></asset>'
    geom = '<geom type="mesh" mesh="part" pos="1 2 3" euler="0.1 0.2 0.3"/>'
    path = write(body("arm", f"<joint/>{geom}"), rest)
    robot, _ = read(path)
    (shape,) = robot.shapes
    assert isinstance(shape.geometry, Mesh)
    assert shape.geometry.path == (tmp_path / "assets" / "part.obj").resolve()
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 2.0]])
    found = shape.at.r + (shape.geometry.scale * corners) @ shape.at.E
    model = mujoco.MjModel.from_xml_path(str(path))
    expected = model.geom_pos[0] + model.mesh_vert @ matrix_from_quaternion(model.geom_quat[0]).T
    order = [np.argsort(np.round(points, 6) @ (1.0, 3.1, 7.7)) for points in (found, expected)]
    np.testing.assert_allclose(found[order[0]], expected[order[1]], atol=1e-6)  # which MuJoCo keeps in single precision


def test_a_mesh_that_is_turned_before_it_is_stretched_is_left_out(write: Any, tmp_path: Path) -> None:
    (tmp_path / "part.obj").write_text(TETRAHEDRON)
    rest = '<asset><mesh name="part" file="part.obj" refquat="1 2 3 4" scale="1 2 3"/></asset>'
    robot, untold = read(write(body("arm", '<joint/><geom type="mesh" mesh="part"/>'), rest))
    assert (robot.shapes, untold) == ((), ["1 shape without a volume, or rotated before it is scaled"])


def test_a_tendon_between_two_sites_is_a_spring(write: Any) -> None:
    site = '<site name="{}" pos="{}"/>'
    arm = body("arm", '<joint axis="0 1 0"/>' + site.format("a", "0.5 0.1 0"))
    tendon = '<tendon><spatial name="coil" stiffness="50" springlength="0.4" damping="2">{}</spatial>'
    tendon += '<spatial stiffness="5">{}</spatial></tendon>'
    sites = '<site site="a"/><site site="b"/>'
    path = write(arm + site.format("b", "0 0.5 1"), tendon.format(sites, sites))
    robot, untold = read(path)
    assert untold == []
    coil, other = robot.elements
    assert (coil.name, coil.first, coil.second, coil.free_length) == ("coil", "arm", "ground", 0.4)
    assert other.name == "tendon_2"
    agree(path, robot)


def test_an_equality_of_tendons_that_are_sums_of_joints_is_a_coupling(write: Any) -> None:
    joint = '<joint name="{0}" axis="0 1 0" ref="{1}"/>'
    arms = "".join(body(name, joint.format(name, ref)) for name, ref in (("a", 0), ("b", 0.1), ("c", 0), ("d", -0.2)))
    term = '<joint joint="{}" coef="{}"/>'
    one = f'<fixed name="one">{term.format("a", 2)}{term.format("b", -3)}{term.format("c", 0.5)}</fixed>'
    two = f'<fixed name="two">{term.format("d", 4)}</fixed>'
    kept = '<tendon name="{}" tendon1="{}" tendon2="{}" polycoef="{} {} 0 0 0"/>'
    single = kept.format("single", "one", "", 0.2, 1).replace('tendon2=""', "")
    pair = kept.format("pair", "one", "two", 0.1, 0.5)
    found = []
    for equality in (single, pair):
        robot, untold = read(write(arms, f"<tendon>{one}{two}</tendon><equality>{equality}</equality>"))
        assert untold == [] if equality is pair else ["1 tendon other than a spring between two sites"]
        found.append(robot)
        assert robot.nv == 3
    for seed in range(3):
        q = [found[i].joint_positions(found[i].random_state(seed)[0]) for i in range(2)]
        length = [2 * x["a"] - 3 * (x["b"] - 0.1) + 0.5 * x["c"] for x in q]
        assert length[0] == pytest.approx(0.2, abs=1e-14)
        assert length[1] == pytest.approx(0.1 + 0.5 * 4 * (q[1]["d"] + 0.2), abs=1e-13)


def test_tendons_that_share_their_first_joint_relate_it_twice(write: Any) -> None:
    arms = "".join(body(name, f'<joint name="{name}" axis="0 1 0"/>') for name in "abc")
    sums = "".join(f'<fixed name="a{x}"><joint joint="a" coef="1"/><joint joint="{x}" coef="2"/></fixed>' for x in "bc")
    robot, untold = read(
        write(arms, f'<tendon>{sums}</tendon><equality><tendon tendon1="ab"/><tendon tendon1="ac"/></equality>')
    )
    assert (robot.nv, untold) == (1, [])
    p = robot.joint_positions(robot.random_state(0)[0])
    assert p["a"] + 2 * p["b"] == pytest.approx(0.0, abs=1e-12)
    assert p["a"] + 2 * p["c"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("<equality><tendon tendon1='sum'/></equality>", "its factor of joint 'j', 9.99989e-321, is too small beside"),
        ("<actuator><motor joint='j' gear='1e200'/></actuator>", r"the gear of an actuator is too large: 1e\+200"),
    ],
)
def test_factors_that_no_number_holds_are_refused(write: Any, rest: str, told: str) -> None:
    tendon = '<tendon><fixed name="sum"><joint joint="j" coef="1e-320"/><joint joint="k" coef="1"/></fixed></tendon>'
    with pytest.raises(ModelError, match=told):
        read(write(body("a", '<joint name="j"/>') + body("b", '<joint name="k"/>'), tendon + rest))


def test_other_tendons_are_told(write: Any) -> None:
    sites = '<site site="a"/><site site="b"/>'
    rest = f"""<tendon><spatial stiffness="50" springlength="0.4 0.5">{sites}</spatial><spatial>{sites}</spatial>
        <spatial stiffness="1">{sites}<site site="c"/></spatial>
        <fixed stiffness="1"><joint joint="turn" coef="1"/></fixed>
        <spatial damping="1" range="0 1" limited="true">{sites}</spatial></tendon>"""
    world = body("arm", '<joint name="turn"/><site name="a"/>') + '<site name="b" pos="0 0 1"/><site name="c"/>'
    robot, untold = read(write(world, rest))
    assert untold == [
        "4 tendons other than a spring between two sites",
        "limit, friction or armature of 1 such spring",
    ]
    assert len(robot.elements) == 1


def test_keyframes_have_the_files_positions_and_velocities(write: Any) -> None:
    ball = body("ball", '<joint name="ball" type="ball"/>' + body("arm", '<joint name="turn" ref="0.5"/>'))
    rest = '<keyframe><key name="home" qpos="1 2 3 0.8 0.6 0 0 0 0.6 0.8 0 0.3" qvel="1 2 3 4 5 6 7 8 9 10"/><key/>'
    rest += "</keyframe>"
    path = write(body("base", '<freejoint name="base"/>' + ball), rest)
    robot, untold = read(path)
    assert (list(robot.keyframes), untold) == (["home", "key_2"], [])
    q, v = robot.keyframes["home"]
    peer = Peer(path)
    A, _ = peer.move(robot, q, v)
    np.testing.assert_allclose(peer.data.qpos, peer.model.key_qpos[0], atol=1e-15)
    np.testing.assert_allclose(A @ v, np.arange(1.0, 11.0), atol=1e-14)
    assert float(robot.joint_positions(robot.keyframes["key_2"][0])["turn"]) == 0.5


# What is not modelled


def test_what_is_not_modelled_is_counted(write: Any) -> None:
    joints = '<joint name="turn" stiffness="1 2" damping="1 2" actuatorfrcrange="-1 2" springdamper="0 0"/>'
    ball = body("ball", '<joint name="ball" type="ball" range="0 1" limited="true"/>', 'gravcomp="1"')
    free = body("base", '<joint name="base" type="free" stiffness="1" armature="1" frictionloss="1"/><geom name="g"/>')
    world = body("arm", joints + '<geom name="h"/>') + ball + free + body("target", "", 'mocap="true"')
    rest = """<default><geom size="0.1"/></default><option density="1.2"/>
        <contact><pair geom1="g" geom2="h"/><exclude body1="arm" body2="base"/></contact>
        <tendon><fixed name="cable"><joint joint="turn" coef="1"/></fixed></tendon>
        <equality><tendon tendon1="cable"/><connect body1="base" anchor="0 0 0" active="false"/></equality>
        <actuator><position joint="turn"/><motor joint="ball" gear="2" armature="1"/><motor tendon="cable"/></actuator>
        <sensor><jointpos joint="turn"/></sensor>
        <keyframe><key ctrl="1 0 0"/></keyframe>"""
    robot, untold = read(write(world, rest))
    assert robot.remarks[0] == "1 sensor left out; sites are kept as frames"
    assert "ctrl and act of 1 keyframe left out: a keyframe is a state" in robot.remarks
    assert untold == [
        "1 equality switched off",
        "1 equality of tendons or flexes",
        "the fluid around the bodies",
        "1 limit of a ball joint",
        "1 stiffness of a free joint",
        "1 armature or friction of a free joint",
        "1 stiffness that is not constant",
        "1 damping that is not constant",
        "1 actfrcrange that is not symmetric",
        "1 armature or damping of an actuator",
        "1 gravcomp of a body",
        "1 mocap body, which stands still",
    ]


def test_what_changes_contacts_limits_and_actuators_is_counted(write: Any) -> None:
    """MuJoCo keeps shapes apart by their margins, and stops joints that much before their limits."""
    world = body("a", '<joint name="j" range="-1 1" margin="0.01"/><geom name="g" margin="0.02"/>')
    world += body("b", '<joint name="k"/><geom name="h"/><geom margin="0.1" contype="0" conaffinity="0"/>')
    rest = """<default><geom size="0.1"/></default><contact><pair geom1="g" geom2="h" margin="0.1"/></contact>
        <option actuatorgroupdisable="1" o_margin="0.1"><flag override="enable" filterparent="disable"/></option>
        <tendon><fixed name="cable" actuatorfrcrange="-1 1"><joint joint="j" coef="1"/></fixed></tendon>
        <actuator><motor joint="j" group="1"/><motor name="motor" joint="k"/>
        <motor name="winch" tendon="cable"/></actuator>"""
    robot, untold = read(write(world, rest))
    assert [actuator.name for actuator in robot.actuators] == ["motor", "winch"]
    assert untold == [
        "1 actuator that is switched off",
        "1 actuatorfrcrange of a tendon",
        "contacts between the bodies of a joint, which the file switches on",
        "the contact override of <option>",
        "2 margins of geoms or pairs, which MuJoCo keeps apart",
        "1 margin of a joint limit",
    ]
    rest = '<option><flag actuation="disable" contact="disable" limit="disable"/></option>'
    rest += '<actuator><motor joint="j"/></actuator>'
    robot, untold = read(write(world.replace("geom ", 'geom size="0.1" '), rest))
    assert not robot.actuators and untold == ["1 actuator that is switched off"]


def test_what_mujoco_warns_of_is_told(write: Any) -> None:
    cloth = '<flexcomp name="cloth" type="grid" count="3 3 1" spacing="1 1 1" radius="0.01" dim="2" mass="1"/>'
    robot, untold = read(write(cloth))
    assert untold == ["1 flex"]
    assert robot.warnings[0].startswith("MuJoCo warns: flex 'cloth' is not rigid")


# Files


def test_shapes_without_their_files_are_left_out_and_counted(write: Any) -> None:
    rest = """<asset><mesh name="part" file="gone.stl"/><texture name="skin" type="2d" file="gone.png"/>
        <material name="paint" texture="skin" rgba="1 0 0 1"/>
        <hfield name="hill" file="hill.png" size="1 1 1 1"/></asset>
        <default><default class="scan"><geom mesh="part"/></default></default>
        <contact><pair geom1="hull" geom2="ball"/></contact>"""
    geoms = '<geom name="hull" type="mesh" mesh="part"/><geom name="ball" size="0.1" material="paint"/>'
    world = '<geom class="scan" type="hfield" hfield="hill"/><geom type="mesh" mesh="part"/>'
    world += body("arm", f'<joint/>{geoms}<site name="s" type="mesh" mesh="part"/>') + body("b", "<freejoint/>")
    robot, untold = read(write(world, rest))
    assert untold == ["2 shapes whose meshes are missing", "1 shape whose <hfield> is missing"]
    assert [shape.name for shape in robot.shapes] == ["ball"]
    np.testing.assert_allclose(robot.shapes[0].colour, [1, 0, 0, 1])


@pytest.mark.parametrize("rule", ["", '<compiler inertiafromgeom="true"/>'])
def test_a_missing_mesh_that_a_mass_comes_from_is_refused(write: Any, rule: str) -> None:
    rest = f'{rule}<asset><mesh name="part" file="gone.stl"/></asset>'
    inertial = INERTIAL if rule else ""
    world = f'<body name="arm">{inertial}<joint/><geom type="mesh" mesh="part"/></body>'
    with pytest.raises(ModelError, match=r"line 4, <body name='arm'>: .*'arm' comes from mesh 'part'.*'gone.stl'"):
        read(write(world, rest))


def test_a_missing_mesh_without_mass_of_its_own_is_left_out(write: Any) -> None:
    rest = '<asset><mesh name="part" file="gone.stl"/></asset>'
    world = '<body name="arm"><joint/><geom size="0.1"/><geom type="mesh" mesh="part" mass="0"/></body>'
    assert read(write(world, rest))[1] == ["1 shape whose meshes are missing"]


def test_included_files_and_attached_models_are_followed(write: Any, tmp_path: Path) -> None:
    """An include is sought beside the main file, then beside the one that includes it."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(f'<x>{body("arm")}<include file="hand.xml"/></x>')
    (tmp_path / "parts" / "hand.xml").write_text(f"<x>{body('hand')}</x>")
    write(body("tool"), file="parts/tool.xml")
    rest = '<asset><model name="tool" file="parts/tool.xml"/></asset>'
    path = write('<include file="parts/arm.xml"/><attach model="tool" body="tool" prefix="my_"/>', rest)
    assert read(path)[0].body_names == ["arm", "hand", "my_tool"]


def test_errors_in_included_files_name_them(write: Any, tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text('<x>\n<body name="arm"><joint/></body></x>')
    with pytest.raises(ModelError, match=r"arm\.xml, line 2, <body name='arm'>: MuJoCo rejects it: mass and inertia"):
        read(write('<include file="arm.xml"/>'))


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        ('<include file="../other.xml"/>', "<include>"),
        ('<include file="{outside}/other.xml"/>', "<include>"),
        ('<include file="link.xml"/>', "<include>"),
        ('<asset><mesh name="m" file="../m.obj"/></asset>', "<mesh name='m'>"),
        ('<compiler meshdir="../assets"/><asset><mesh name="m" file="m.obj"/></asset>', "<mesh name='m'>"),
        ('<compiler assetdir="/"/><asset><texture name="t" type="2d" file="t.png"/></asset>', "<texture name='t'>"),
        (r'<asset><hfield name="h" size="1 1 1 1" file="..\..\h.png"/></asset>', "<hfield name='h'>"),
        ('<asset><texture name="t" type="cube" fileup="../t.png"/></asset>', "<texture name='t'>"),
        ('<asset><model name="m" file="../other.xml"/></asset>', "<model name='m'>"),
        ('<deformable><skin name="s" file="../s.skn"/></deformable>', "<skin name='s'>"),
    ],
)
def test_files_outside_of_the_models_folder_are_refused(write: Any, tmp_path: Path, rest: str, line: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "other.xml").write_text("<mujoco/>")
    (tmp_path / "model" / "link.xml").symlink_to(tmp_path / "other.xml")
    path = write(body("arm"), rest.format(outside=tmp_path), "model/robot.xml")
    with pytest.raises(ModelError, match=rf"robot\.xml, line 2, {line}: it leads to .*, outside .* packages="):
        read(path)


def test_a_folder_that_the_user_names_may_be_read(write: Any, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "m.obj").write_text(TETRAHEDRON)
    rest = '<compiler meshdir="../assets"/><asset><mesh name="m" file="m.obj"/></asset>'
    path = write(body("arm", '<joint/><geom type="mesh" mesh="m"/>'), rest, "model/robot.xml")
    robot, _ = read(path, packages={"assets": tmp_path / "assets"})
    assert isinstance(robot.shapes[0].geometry, Mesh)


def test_paths_may_be_stripped_and_are_absolute(write: Any, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "m.obj").write_text(TETRAHEDRON)
    rest = '<compiler assetdir="assets" strippath="true"/><asset><mesh name="m" file="C:\\cad\\m.obj"/></asset>'
    path = write(body("arm", '<joint/><geom type="mesh" mesh="m"/>'), rest)
    form = read(Path(os.path.relpath(path)))[0].shapes[0].geometry
    assert isinstance(form, Mesh)
    assert form.path == (tmp_path / "assets" / "m.obj").resolve()


def test_circles_of_files_are_refused(write: Any, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text('<x>\n<include file="b.xml"/></x>')
    (tmp_path / "b.xml").write_text('<x>\n\n<include file="a.xml"/></x>')
    with pytest.raises(ModelError, match=r"b\.xml, line 3, <include>: 'a\.xml' is included already"):
        read(write('<include file="a.xml"/>'))
    path = write(body("arm"), '<asset><model name="me" file="robot.xml"/></asset>')
    with pytest.raises(ModelError, match=r"<model name='me'>: the model attaches itself"):
        read(path)


def test_a_missing_include_is_told(write: Any) -> None:
    with pytest.raises(
        ModelError, match=r"robot\.xml, line 4, <include>: .*gone\.xml: it cannot be read: No such file"
    ):
        read(write('<include file="gone.xml"/>'))


# Mistakes


@pytest.mark.parametrize(
    ("inside", "rest", "message"),
    [
        ('<inertial pos="0 0 0" mass="nan" diaginertia="1 1 1"/>', "", r"line 4, <inertial>: it contains a NaN"),
        (
            '<inertial pos="0 0 0" mass="1" diaginertia="1 1 -1"/>',
            "",
            r"line 4, <body name='arm'>: MuJoCo rejects it: mass",
        ),
        (
            '<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 2 0 0"/>',
            "",
            r"line 4, <body name='arm'>: MuJoCo rejects it: .*positive eigenvalues",
        ),
        (
            INERTIAL,
            '<equality><connect body1="arm" body2="hand" anchor="0 0 0"/></equality>',
            r"line 2, <equality>: MuJoCo rejects it: unknown element 'hand'",
        ),
        (INERTIAL, '<keyframe><key qpos="1 2 3"/></keyframe>', "MuJoCo rejects it: keyframe '': .* got 3$"),
        (INERTIAL + "<spring/>", "", r"line 4, <spring>: MuJoCo rejects it: Schema violation"),
        (INERTIAL + '<joint name="a" damping="-1"/>', "", r"line 4, <body name='arm'>: .*damping"),
    ],
)
def test_mistakes_are_told_with_their_line(write: Any, inside: str, rest: str, message: str) -> None:
    joint = "" if "joint" in inside else "<joint/>"
    with pytest.raises(ModelError, match=message):
        read(write(f'<body name="arm">{inside}{joint}</body>', rest))


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("raise ModuleNotFoundError('mujoco')", r"needs MuJoCo: pip install 'coupler\[mjcf\]'"),
        ("__version__ = '3.3.0'", r"needs MuJoCo 4 or newer, not 3\.3\.0: pip install -U 'coupler\[mjcf\]'"),
    ],
)
def test_a_missing_or_old_mujoco_is_told(
    module: str, told: str, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "mujoco.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    with pytest.raises(ModelError, match=told):
        read(write(body("arm")))
