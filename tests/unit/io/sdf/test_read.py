"""Models and worlds in SDFormat: links, frames, shapes, gravity, several models, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    Mesh,
    ModelError,
    ModelWarning,
    Plane,
    Robot,
    Sphere,
)
from coupler.rotation import from_euler, quaternion_from_matrix
from sdf_samples import joint, link, sdf

Read = Callable[..., Robot]
TWO = link("a", "0 0 1 0 0 0") + link("b", "0.3 0 0 0 0.2 0")
HINGE = joint("j", "revolute", "a", "b", "0 1 0")


def world(inside: str, version: str = "1.11") -> str:
    return f'<sdf version="{version}"><world name="there">{inside}</world></sdf>'


def model(inside: str, name: str = "robot", **attributes: str) -> str:
    given = "".join(f' {word}="{value}"' for word, value in attributes.items())
    return f'<model name="{name}"{given}>{inside}</model>'


# Where it stands


def test_a_model_that_hangs_on_nothing_floats(read: Read) -> None:
    robot = read(sdf("<pose>1 2 3 0.1 0.2 0.3</pose>" + TWO + HINGE))
    base = robot.joints[0]
    assert (base.name, type(base.kind), base.parent, base.child) == ("floating_base", Free, "ground", "a")
    R = from_euler(0.1, 0.2, 0.3)
    start = [*(np.array([1, 2, 3]) + R @ [0, 0, 1]), *quaternion_from_matrix(R)]
    np.testing.assert_allclose(robot.joint_positions(robot.neutral())["floating_base"], start, atol=1e-15)
    pose = coupler.frame_pose(robot, robot.neutral(), "b")
    np.testing.assert_allclose(pose[:3, 3], np.array([1, 2, 3]) + R @ [0.3, 0, 0], atol=1e-14)


def test_parts_that_hang_on_nothing_float_each(read: Read) -> None:
    robot = read(sdf(TWO))
    assert robot.joint_names == ["a_floating", "b_floating"] and robot.nv == 12


def test_a_model_floats_by_its_canonical_link(read: Read) -> None:
    robot = read(sdf(TWO + HINGE, canonical_link="b"))
    assert robot.joints[0].child == "b" and "the tree goes from child to parent by 'j'" in robot.remarks


def test_a_model_that_is_fixed_to_the_world(read: Read) -> None:
    robot = read(sdf(TWO + HINGE + joint("w", "fixed", "world", "a")))
    assert robot.nv == 1 and robot.joint_names == ["j", "w"]
    with pytest.raises(ModelError, match="floating=True is for a robot that may float, but joints connect all of"):
        read(sdf(TWO + HINGE + joint("w", "fixed", "world", "a")), floating=True)
    assert read(sdf(TWO + HINGE), floating=True).nv == 7


def test_what_is_static_is_part_of_the_ground(read: Read) -> None:
    floor = "<static>true</static>" + link(
        "floor", "0 0 -1 0 0 0", '<collision name="c"><geometry><plane/></geometry></collision>'
    )
    robot = read(world(model(floor, "ground_plane") + model("<pose>0 0 2 0 0 0</pose>" + TWO + HINGE)))
    assert robot.body_names == ["a", "b"] and robot.name == "robot" and robot.warnings == ()
    (shape,) = robot.shapes
    assert (shape.body, type(shape.geometry), shape.group, shape.meets) == ("ground", Plane, 1, -1)
    np.testing.assert_array_equal(shape.at.r, (0, 0, -1))


def test_a_file_in_which_nothing_moves_is_a_robot_that_stands(read: Read) -> None:
    robot = read(sdf("<static>1</static>" + TWO + HINGE))
    assert robot.nv == 0 and robot.joint_names == ["ground_to_a", "ground_to_b"]
    assert all(type(one.kind) is Fixed for one in robot.joints)


def test_a_joint_to_a_static_model_is_one_to_the_ground(read: Read) -> None:
    post = model("<static>true</static><pose>1 0 0 0 0 0</pose>" + link("pole", "0 0 1 0 0 0"), "post")
    robot = read(world(post + model(TWO + HINGE) + joint("tie", "fixed", "post::pole", "robot::a")))
    tie = next(one for one in robot.joints if one.name == "tie")
    assert robot.nv == 1 and (tie.parent, tie.child) == ("ground", "a")


# Several models


def test_models_of_a_world_are_one_robot(read: Read) -> None:
    robot = read(world(model(TWO + HINGE, "left") + model("<pose>1 0 0 0 0 0</pose>" + TWO + HINGE, "right")))
    assert robot.name == "there" and robot.nv == 14
    assert robot.body_names == ["left::a", "left::b", "right::a", "right::b"]
    assert robot.joint_names == ["left::a_floating", "right::a_floating", "left::j", "right::j"]


def test_models_beside_each_other_are_one_robot(read: Read) -> None:
    text = f'<sdf version="1.6">{model(TWO + HINGE, "left")}{model(TWO + HINGE, "right")}</sdf>'
    assert read(text).nv == 14


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('<sdf version="1.6"/>', "there is no <model> in it"),
        (world(""), "there is no <model> in it"),
        (
            '<sdf version="1.6"><world name="x"/><world name="y"/></sdf>',
            "it holds 'x', 'y'; a file may hold one <world>",
        ),
        (
            '<sdf version="1.6"><world name="x"/><model name="y"/></sdf>',
            "it holds 'x', 'y'; a file may hold one <world>",
        ),
        (world(model(TWO, "x") * 2), "there is a model 'x' in the world already"),
        ("<sdf><model name='x'/></sdf>", "it needs the attribute 'version'"),
        ("<sdf version='1.3'/>", "its version is '1.3'; SDFormat 1.4 to 1.11 is read"),
        ("<sdf version='2.0'/>", "its version is '2.0'"),
        ("<sdf version='one'/>", "its version is 'one'"),
        (sdf(""), "robot 'robot' has no bodies"),
        (sdf(link("world")), "its name is reserved in SDFormat"),
        (sdf(link("__a__")), "its name is reserved in SDFormat"),
        (sdf(link("a") * 2), "there is a link of this name already, in line 3"),
        (sdf(link("a", "[relative_to='b']1 0 0 0 0 0")), "there is no frame 'b' in model 'robot'; there are 'a'"),
        (sdf(link("a", "[relative_to='a']1 0 0 0 0 0")), "its pose is relative to itself, by way of others"),
        (
            sdf(link("a", "[relative_to='b']1 0 0 0 0 0") + link("b", "[relative_to='a']1 0 0 0 0 0")),
            "its pose is relative to itself, by way of others",
        ),
        (
            sdf(link("a") + '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'),
            "it is attached to itself, by way of others",
        ),
        (
            sdf(
                link("a")
                + "".join(
                    f'<frame name="{x}" attached_to="{y}"><pose relative_to="a"/></frame>' for x, y in ("fg", "gf")
                )
            ),
            "it is attached to itself, by way of others",
        ),
        (sdf(link("a"), placement_frame="f"), "there is no frame 'f'"),
        (sdf(link("a"), canonical_link="f"), "there is no frame 'f'"),
        (sdf(link("a", "1 2 3")), "what it holds must be 6 numbers"),
        (sdf(link("a", "[rotation_format='quat_xyzw']1 2 3 0 0 0 0")), "its quaternion has no length"),
        (sdf(link("a", "[rotation_format='matrix']1 2 3 0 0 0")), "its rotation_format must be"),
        (sdf("<static>maybe</static>" + link("a")), "it must be true or false, got 'maybe'"),
        (sdf(link("a", inside="<kinematic>true</kinematic>")), "it is kinematic"),
    ],
)
def test_files_that_are_wrong(text: str, told: str, read: Read) -> None:
    with pytest.raises(ModelError) as error:
        read(text)
    assert told in str(error.value) and "robot.sdf" in str(error.value)


def test_closures_are_for_urdf(read: Read) -> None:
    with pytest.raises(ModelError, match="SDFormat has its loops as joints; closures are for URDF"):
        read(sdf(TWO + HINGE), closures=[("a", "b")])


def test_a_newer_version_is_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match=r"robot\.sdf is SDFormat 1\.12, which is read as 1\.11"):
        read(sdf(TWO + HINGE, "1.12"))


# Gravity


@pytest.mark.parametrize(
    ("text", "gravity"),
    [
        (sdf(TWO + HINGE), (0, 0, -9.81)),
        (world(model(TWO + HINGE)), (0, 0, -9.8)),
        (world("<gravity>1 2 3</gravity>" + model(TWO + HINGE)), (1, 2, 3)),
        (world("<physics type='ode'><gravity>1 2 3</gravity></physics>" + model(TWO + HINGE), "1.5"), (1, 2, 3)),
    ],
)
def test_gravity_is_that_of_the_world(text: str, gravity: tuple[float, ...], read: Read) -> None:
    robot = read(text)
    np.testing.assert_array_equal(robot.gravity, gravity)
    assert robot.warnings == ()
    np.testing.assert_array_equal(read(text, gravity=(0, 0, -1)).gravity, (0, 0, -1))


def test_gravity_that_is_switched_off_is_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match="gravity is not switched off for 'c': it acts on all bodies"):
        read(sdf(TWO + link("c", inside="<gravity>false</gravity>")))


# Links and frames


def test_a_link_that_says_nothing_has_the_formats_inertia(read: Read) -> None:
    robot = read(sdf('<link name="a"/><link name="b"><inertial><mass>3</mass></inertial></link>'))
    a, b = robot.bodies.values()
    assert (a.mass, b.mass) == (1.0, 3.0)
    np.testing.assert_array_equal(a.inertia, np.eye(3))
    np.testing.assert_array_equal(b.inertia, np.eye(3))


def test_the_inertia_is_about_the_axes_of_its_pose(read: Read) -> None:
    moments = "<inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz></inertia>"
    pose = '<pose degrees="true">1 2 3 0 0 90</pose>'
    robot = read(sdf(f'<link name="a"><inertial>{pose}<mass>2</mass>{moments}</inertial></link>'))
    np.testing.assert_array_equal(robot.bodies["a"].centre, (1, 2, 3))
    np.testing.assert_allclose(robot.bodies["a"].inertia, np.diag([0.2, 0.1, 0.25]), atol=1e-16)


def test_an_inertia_that_no_body_has_is_told(read: Read) -> None:
    moments = "<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.3</izz></inertia>"
    with pytest.warns(ModelWarning, match="no real body has the inertia of 'a'"):
        read(sdf(f'<link name="a"><inertial><mass>2</mass>{moments}</inertial></link>'))
    with pytest.raises(ModelError, match='auto="true" is not supported: write out'):
        read(sdf('<link name="a"><inertial auto="true"/></link>'))


def test_frames_have_names_in_the_robot(read: Read) -> None:
    frames = '<frame name="f" attached_to="b"><pose>1 0 0 0 0 0</pose></frame><frame name="g" attached_to="f"/>'
    frames += '<frame name="h"><pose>0 1 0 0 0 0</pose></frame>'
    robot = read(sdf(TWO + HINGE + joint("w", "fixed", "world", "a") + frames))
    assert robot.frame_names == ["h", "f", "g"]  # the model's frame is the canonical link's
    np.testing.assert_allclose(coupler.frame_pose(robot, robot.neutral(), "h")[:3, 3], (0, 1, 0), atol=1e-15)
    turn = from_euler(0, 0.2, 0)
    for name in ("f", "g"):
        place = np.array([0.3, 0, 0]) + turn @ [1, 0, 0]
        np.testing.assert_allclose(coupler.frame_pose(robot, robot.neutral(), name)[:3, 3], place, atol=1e-15)


def test_frames_of_the_world_are_told(read: Read) -> None:
    frame = '<frame name="corner"><pose>5 0 0 0 0 0</pose></frame>'
    placed = '<pose relative_to="corner">0 1 0 0 0 0</pose>'
    robot = read(world(frame + model(placed + TWO + HINGE)))
    assert "frames that are fixed to the world are left out: 'corner'" in robot.remarks
    np.testing.assert_allclose(coupler.frame_pose(robot, robot.neutral(), "b")[:3, 3], (5.3, 1, 0), atol=1e-15)


def test_a_link_called_ground_is_renamed(read: Read) -> None:
    with pytest.warns(ModelWarning, match="link 'ground' is renamed 'ground_link'"):
        assert read(sdf(link("ground"))).body_names == ["ground_link"]


def test_chains_of_thousands_of_frames(read: Read) -> None:
    frames = "".join(
        f'<frame name="f{i}" attached_to="f{i + 1}"><pose relative_to="f{i + 1}">0 0 0.001 0 0 0</pose></frame>'
        for i in range(3000)
    )
    robot = read(sdf(link("a") + frames + '<frame name="f3000" attached_to="a"/>'))
    np.testing.assert_allclose(coupler.frame_pose(robot, robot.neutral(), "f0")[:3, 3], (0, 0, 3.0), atol=1e-12)


# Shapes


def shape(form: str, tag: str = "collision", more: str = "") -> str:
    return f'<{tag} name="s">{more}<geometry>{form}</geometry></{tag}>'


@pytest.mark.parametrize(
    ("form", "kind", "numbers"),
    [
        ("<box><size>1 2 3</size></box>", Box, {"size": (1, 2, 3)}),
        ("<sphere><radius>2</radius></sphere>", Sphere, {"radius": 2}),
        ("<sphere/>", Sphere, {"radius": 1}),
        ("<cylinder><radius>2</radius><length>3</length></cylinder>", Cylinder, {"radius": 2, "length": 3}),
        ("<capsule><radius>2</radius><length>3</length></capsule>", Capsule, {"radius": 2, "length": 3}),
        ("<capsule/>", Capsule, {"radius": 0.5, "length": 1}),
        ("<ellipsoid><radii>1 2 3</radii></ellipsoid>", Ellipsoid, {"radii": (1, 2, 3)}),
        ("<mesh><uri>m.stl</uri><scale>1 2 3</scale></mesh>", Mesh, {"scale": (1, 2, 3)}),
        ("<mesh><uri>model://here/m.stl</uri></mesh>", Mesh, {"scale": (1, 1, 1)}),
        ("<mesh><uri>file://m.stl</uri></mesh>", Mesh, {"scale": (1, 1, 1)}),
    ],
)
@pytest.mark.parametrize("tag", ["visual", "collision"])
def test_shapes(form: str, kind: type, numbers: dict[str, object], tag: str, read: Read, tmp_path: Path) -> None:
    (tmp_path / "m.stl").write_text("")
    robot = read(sdf(link("a", inside=shape(form, tag, "<pose>1 2 3 0 0 0</pose>"))), packages={"here": tmp_path})
    (found,) = robot.shapes
    assert (found.name, found.body, type(found.geometry)) == ("s", "a", kind)
    assert (found.visible, found.touches) == (tag == "visual", tag == "collision")
    np.testing.assert_array_equal(found.at.r, (1, 2, 3))
    for name, value in numbers.items():
        np.testing.assert_array_equal(getattr(found.geometry, name), value)
    assert robot.warnings == ()


def test_the_pose_of_a_shape_may_be_relative_to_another_frame(read: Read) -> None:
    sphere = shape("<sphere/>", "visual", '<pose relative_to="b">0 0 1 0 0 0</pose>')
    robot = read(sdf(link("a", "1 0 0 0 0 0", sphere) + link("b", "0 3 0 0 0 0") + HINGE))
    np.testing.assert_array_equal(robot.shapes[0].at.r, (-1, 3, 1))


def test_a_plane_faces_along_its_normal(read: Read) -> None:
    robot = read(sdf(link("a", inside=shape("<plane><normal>0 2 0</normal><size>9 9</size></plane>"))))
    np.testing.assert_allclose(robot.shapes[0].at.E.T @ [0, 0, 1], (0, 1, 0), atol=1e-15)


@pytest.mark.parametrize(
    ("surface", "friction", "told"),
    [
        ("", None, ""),
        ("<friction><ode><mu>0.7</mu><mu2>0.7</mu2><fdir1>0 0 0</fdir1></ode></friction>", 0.7, ""),
        ("<friction><ode><mu>0.7</mu><mu2>0.3</mu2></ode></friction>", 0.7, "1 × <mu2>"),
        ("<friction><bullet><friction>0.2</friction></bullet></friction>", 0.2, ""),
        ("<bounce><restitution_coefficient>0</restitution_coefficient></bounce>", None, ""),
        ("<bounce><restitution_coefficient>0.5</restitution_coefficient></bounce>", None, "1 × <bounce>"),
        ("<contact><ode><kp>1e6</kp></ode></contact>", None, ""),
    ],
)
def test_surfaces(surface: str, friction: float | None, told: str, read: Read) -> None:
    text = sdf(link("a", inside=shape("<sphere/>", more=f"<surface>{surface}</surface>")))
    if told:
        with pytest.warns(ModelWarning, match=told):
            robot = read(text)
    else:
        robot = read(text)
    assert robot.shapes[0].friction == friction


@pytest.mark.parametrize(
    ("torsional", "torsion", "told"),
    [
        ("<coefficient>0.5</coefficient><patch_radius>0.02</patch_radius>", 3 * np.pi / 16 * 0.5 * 0.02, ""),
        ("<coefficient>0.5</coefficient><surface_radius>0.02</surface_radius>", None, ""),
        ("<use_patch_radius>0</use_patch_radius><surface_radius>1</surface_radius>", None, "1 × <surface_radius>"),
        ("<patch_radius>0.02</patch_radius><ode><slip>0</slip></ode>", 3 * np.pi / 16 * 0.02, ""),
        ("<patch_radius>0.02</patch_radius><ode><slip>1</slip></ode>", 3 * np.pi / 16 * 0.02, "1 × <ode>"),
    ],
)
def test_friction_against_spin(torsional: str, torsion: float | None, told: str, read: Read) -> None:
    surface = f"<surface><friction><torsional>{torsional}</torsional></friction></surface>"
    text = sdf(link("a", inside=shape("<sphere/>", more=surface)))
    if told:
        with pytest.warns(ModelWarning, match=told):
            robot = read(text)
    else:
        robot = read(text)
    assert robot.shapes[0].torsion == (None if torsion is None else pytest.approx(torsion, rel=1e-15))


def test_links_of_a_model_meet_only_if_it_says_so(read: Read) -> None:
    ball = link("a", inside=shape("<sphere/>")) + link("b", inside=shape("<sphere/>"))
    both = world(model(ball, "x") + model(ball, "y") + model("<self_collide>true</self_collide>" + ball, "z"))
    shapes = {found.body: found for found in read(both).shapes}

    def meet(first: str, second: str) -> bool:
        one, two = shapes[first], shapes[second]
        return bool(one.group & two.meets or two.group & one.meets)

    assert not meet("x::a", "x::b") and not meet("y::a", "y::b")
    assert meet("z::a", "z::b") and meet("x::a", "y::b") and meet("x::a", "z::a") and meet("y::b", "z::b")
    floor = read(both).with_floor().shapes[-1]
    assert all(floor.meets & found.group for found in shapes.values())


def test_bitmasks(read: Read) -> None:
    masks = "<surface><contact><collide_bitmask>0x05</collide_bitmask>{}</contact></surface>"
    category = "<category_bitmask>2</category_bitmask>"
    one, two = (
        read(sdf(link("a", inside=shape("<sphere/>", more=masks.format(more))))).shapes[0] for more in ("", category)
    )
    assert (one.group, one.meets, two.group, two.meets) == (5, 5, 2, 5)
    with pytest.raises(ModelError, match="it must be a whole number from 0 to 65535, got '-1'"):
        read(sdf(link("a", inside=shape("<sphere/>", more=masks.format("").replace("0x05", "-1")))))


def test_colours(read: Read) -> None:
    material = "<material><ambient>1 0 0 1</ambient><diffuse>0 1 0 1</diffuse></material>"
    looks = shape("<sphere/>", "visual", material + "<transparency>0.25</transparency>")
    np.testing.assert_array_equal(read(sdf(link("a", inside=looks))).shapes[0].colour, (0, 1, 0, 0.75))


def test_what_is_not_modelled_is_told_in_kinds(read: Read) -> None:
    inside = '<sensor name="s" type="imu"/>' + shape("<heightmap><uri>x</uri></heightmap>") + "<light name='l'/>"
    text = sdf(link("a", inside=inside) + '<plugin name="p" filename="x.so"><a/></plugin>' * 3)
    with pytest.warns(ModelWarning) as told:
        robot = read(text)
    assert robot.warnings == ("not modelled, and left out: 3 × <plugin>, 1 × <sensor>, 1 × <heightmap>",)
    assert len(told) == 1


def test_meshes_that_are_not_there_are_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match="1 mesh not found: 'x.stl'; name the folder of 'far' in packages="):
        read(sdf(link("a", inside=shape("<mesh><uri>model://far/x.stl</uri></mesh>"))))
    with pytest.warns(ModelWarning, match="1 mesh outside the file's folder left out: '../x.stl'"):
        read(sdf(link("a", inside=shape("<mesh><uri>../x.stl</uri></mesh>"))))


# Precision


def test_the_precision_is_that_of_the_files_digits(read: Read) -> None:
    """A planar loop of rounded right angles closes and moves."""
    links = link("base", "0 0 0 0 0 0") + "".join(
        link(f"l{i}", pose)
        for i, pose in enumerate(("0 0 0 1.5708 0 0", "0 0 0.2 1.5708 0 0", "0.4 0 0 1.5708 0 0.0"), 1)
    )
    hinge = "0 0 1"
    joints = joint("w", "fixed", "world", "base") + joint("a", "revolute", "base", "l1", hinge)
    joints += joint("b", "revolute", "l1", "l2", hinge, "0 0 0 0.00003 0 0")
    joints += joint("c", "revolute", "base", "l3", hinge) + joint("d", "revolute", "l2", "l3", hinge, "0 0.2 0 0 0 0")
    with pytest.warns(ModelWarning, match="follow from others to"):
        robot = read(sdf(links + joints))
    assert robot.nv == 1
