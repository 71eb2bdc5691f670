"""What links look like and touch with, and where the meshes are that a file names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.io.load import load
from coupler.io.urdf.meshes import Resolver
from coupler.io.urdf.origins import origin, rotation_of
from coupler.io.xml import parse
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    Mesh,
    ModelError,
    ModelWarning,
    Plane,
    Robot,
    Shape,
    Sphere,
)
from coupler.rotation import about_x, about_y, about_z

Read = Callable[..., Robot]

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Loads a link with what stands in it; the file is in the folder `arms/urdf`."""
    folder = tmp_path / "arms" / "urdf"
    folder.mkdir(parents=True)

    def read(inside: str, beside: str = "", **options: Any) -> Robot:
        path = folder / "arm.urdf"
        path.write_text(f'<robot name="arm">\n<link name="a">{INERTIAL}\n{inside}</link>{beside}</robot>')
        return load(path, **options)

    return read


def visual(geometry: str, more: str = "", attributes: str = "") -> str:
    return f"<visual {attributes}>{more}<geometry>{geometry}</geometry></visual>"


def collision(geometry: str, more: str = "", attributes: str = "") -> str:
    return visual(geometry, more, attributes).replace("visual", "collision")


def mesh(name: str, scale: str = "") -> str:
    return visual(f'<mesh filename="{name}" {scale}/>')


def only(robot: Robot) -> Shape:
    (shape,) = robot.shapes
    return shape


# Forms


FORMS: dict[str, Geometry] = {
    '<box size="1 2 3"/>': Box((1, 2, 3)),
    '<sphere radius="0.5"/>': Sphere(0.5),
    '<cylinder radius="0.5" length="2"/>': Cylinder(0.5, 2),
    '<capsule radius="0.5" length="2"/>': Capsule(0.5, 2),
    '<cylinder radius="0.5" length="2" as="capsule"/>': Capsule(0.5, 2),
    '<ellipsoid radii="1 2 3"/>': Ellipsoid((1, 2, 3)),
    '<sphere radius="3" radii="1 2 3"/>': Ellipsoid((1, 2, 3)),
    '<box size="20 20 0.002" as="plane"/>': Plane(),
    '<box size="20 20 0" as="plane"/>': Plane(),
}


@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize("element", [visual, collision])
def test_a_form_is_read_as_it_is_or_is_meant(text: str, element: Callable[..., str], read: Read) -> None:
    found = read(element(text))
    assert found.warnings == ()
    assert type(only(found).geometry) is type(FORMS[text])
    for name, value in vars(FORMS[text]).items():
        np.testing.assert_array_equal(getattr(only(found).geometry, name), value)


def test_a_shape_has_its_place_and_name(read: Read) -> None:
    shape = only(read(visual('<sphere radius="1"/>', '<origin xyz="1 2 3" rpy="0.3 -0.5 0.7"/>', 'name="ball"')))
    assert (shape.name, shape.body) == ("ball", "a")
    np.testing.assert_array_equal(shape.at.r, (1, 2, 3))
    np.testing.assert_allclose(shape.at.E.T, about_z(0.7) @ about_y(-0.5) @ about_x(0.3), atol=1e-16)


def test_a_visual_is_seen_and_touches_nothing_and_a_collision_is_not_seen(read: Read) -> None:
    seen, touching = read(visual('<sphere radius="1"/>') + collision('<sphere radius="2"/>')).shapes
    assert (seen.visible, seen.touches, seen.group, seen.meets) == (True, False, 0, 0)
    assert (touching.visible, touching.touches, touching.group, touching.meets) == (False, True, 1, 1)
    assert touching.friction is None


def test_groups_and_friction_are_read(read: Read) -> None:
    shape = only(read(collision('<sphere radius="1"/>', attributes='group="2" meets="5" friction="0.8"')))
    assert (shape.group, shape.meets, shape.friction) == (2, 5, 0.8)
    everything = only(read(collision('<sphere radius="1"/>', attributes='meets="-1"')))
    assert everything.meets == -1  # as a floor's
    still = only(read(collision('<sphere radius="1"/>', attributes='group="0" meets="0"')))
    assert not still.touches


def test_a_collision_may_be_the_visual_before_it(read: Read) -> None:
    ball = '<sphere radius="1"/>'
    text = visual(ball, '<origin xyz="1 2 3"/>', 'name="ball"') + collision(ball, attributes='same="true" meets="4"')
    first, second, third = read(text + visual('<sphere radius="2"/>') + collision('<sphere radius="3"/>')).shapes
    assert (first.name, first.visible, first.group, first.meets) == ("ball", True, 1, 4)
    np.testing.assert_array_equal(first.at.r, (1, 2, 3))
    assert (second.visible, second.touches, third.visible, third.touches) == (True, False, False, True)


def test_a_collision_without_a_visual_before_it_is_itself(read: Read) -> None:
    shape = only(read(collision('<sphere radius="1"/>', attributes='same="true"')))
    assert not shape.visible and shape.touches


def test_the_ground_has_shapes_too(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    joint = '<joint name="j" type="revolute"><parent link="ground"/><child link="a"/></joint>'
    floor = collision('<box size="9 9 0.1" as="plane"/>', '<origin xyz="0 0 -1"/>')
    path.write_text(f'<robot><link name="ground">{floor}</link><link name="a">{INERTIAL}</link>{joint}</robot>')
    shape = only(load(path))
    assert shape.body == "ground" and isinstance(shape.geometry, Plane)
    np.testing.assert_array_equal(shape.at.r, (0, 0, -1))


def test_shapes_are_where_the_joint_ends(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    joint = '<joint name="j" type="revolute"><parent link="ground"/><child link="a"/>'
    joint += '<meets xyz="0.5 0 0" rpy="0 0 1.5707963267948966"/></joint>'
    shape = visual('<sphere radius="1"/>', '<origin xyz="1 0 0"/>')
    path.write_text(f'<robot><link name="ground"/><link name="a">{INERTIAL}{shape}</link>{joint}</robot>')
    np.testing.assert_allclose(only(load(path)).at.r, (0.5, 1.0, 0.0), atol=1e-15)


@pytest.mark.parametrize(
    "text", ['<box size="0 0 0"/>', '<box size="1 0 1"/>', '<sphere radius="0"/>', '<cylinder radius="1" length="0"/>']
)
def test_a_form_without_extent_is_no_shape(text: str, read: Read) -> None:
    found = read(visual(text, '<material name="m"/>') + collision(text) + visual('<sphere radius="1"/>'))
    assert isinstance(only(found).geometry, Sphere) and found.warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<visual/>", "<visual>: there is no <geometry> in it"),
        (visual(""), "<geometry>: it must hold one of <box>, <cylinder>"),
        (visual('<box size="1 1 1"/><sphere radius="1"/>'), "<geometry>: it must hold one of"),
        (visual("<cone/>"), "<geometry>: it must hold one of"),
        (visual('<box size="1 1"/>'), "<box>: its size must be 3 numbers, got '1 1'"),
        (visual('<box size="1 -1 1"/>'), "<box>: box: its size must be above zero"),
        (visual("<sphere/>"), "<sphere>: it needs the attribute 'radius'"),
        (visual('<sphere radius="nan"/>'), "<sphere>: its radius must be"),
        (visual('<sphere radius="1 2"/>'), "<sphere>: its radius must be a number, got '1 2'"),
        (visual('<cylinder radius="1"/>'), "<cylinder>: it needs the attribute 'length'"),
        (visual("<mesh/>"), "<mesh>: it needs the attribute 'filename'"),
        (mesh("x.stl", 'scale="1 2"'), "<mesh>: its scale must be one number or three, got '1 2'"),
        (collision('<sphere radius="1"/>', attributes='friction="-1"'), "its friction must be"),
        (collision('<sphere radius="1"/>', attributes='group="1.5"'), "its group must be"),
        (collision('<sphere radius="1"/>', attributes='same="maybe"'), "its same must be true or false"),
        (visual('<sphere radius="1"/>', '<material name="m"><color rgba="1 0 0"/></material>'), "its rgba must be 4"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_with_its_place(text: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"arm\.urdf, line [23], <") as caught:
        read(text)
    assert message in str(caught.value)
    assert str(caught.value).count("arm.urdf") == 1, "an element is named once"


def test_what_a_shape_says_beyond_that_is_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match="1 × <contact_coefficients>"):
        read(collision('<sphere radius="1"/>', "<contact_coefficients/>"))


# Colours

BALL = '<sphere radius="1"/>'
RED = '<material name="red"><color rgba="1 0 0 0.5"/></material>'


def test_a_colour_is_given_where_it_is_used_or_beside_the_links(read: Read) -> None:
    own = only(read(visual(BALL, RED)))
    named = only(read(visual(BALL, '<material name="red"/>'), RED))
    for shape in (own, named):
        np.testing.assert_array_equal(shape.colour, (1, 0, 0, 0.5))
    assert only(read(visual(BALL))).colour is None
    assert only(read(visual(BALL, '<material name="blue"/>'), RED)).colour is None


def test_a_colour_given_with_one_shape_is_known_to_the_next(read: Read) -> None:
    first, second = read(visual(BALL, RED) + visual(BALL, '<material name="red"/>')).shapes
    np.testing.assert_array_equal(second.colour, first.colour)


def test_colours_are_kept_within_bounds_and_textures_are_not_looked_at(read: Read) -> None:
    text = '<material name="odd"><color rgba="2 -1 0.5 1"/><texture filename="wood.png"/></material>'
    found = read(visual(BALL, text) + collision(BALL, RED))
    np.testing.assert_array_equal(found.shapes[0].colour, (1, 0, 0.5, 1))
    assert found.shapes[1].colour is None and found.warnings == ()


# Meshes


@pytest.mark.parametrize(
    ("scale", "factors"),
    [("", (1, 1, 1)), ('scale="0.001"', (0.001,) * 3), ('scale="1 -1 2"', (1, -1, 2)), ('scale="1,2,3"', (1, 2, 3))],
)
def test_a_mesh_is_scaled(scale: str, factors: tuple[float, ...], read: Read, tmp_path: Path) -> None:
    (tmp_path / "arms" / "urdf" / "x.stl").write_bytes(b"")
    geometry = only(read(mesh("x.stl", scale))).geometry
    assert isinstance(geometry, Mesh)
    np.testing.assert_array_equal(geometry.scale, factors)


@pytest.mark.parametrize(
    ("name", "path", "packages"),
    [
        ("x.stl", "arms/urdf/x.stl", {}),
        ("meshes/x.stl", "arms/urdf/meshes/x.stl", {}),
        ("meshes\\x.stl", "arms/urdf/meshes/x.stl", {}),
        ("./meshes/../x.stl", "arms/urdf/x.stl", {}),
        ("file://x.stl", "arms/urdf/x.stl", {}),
        ("package://arms/meshes/x.stl", "arms/meshes/x.stl", {"arms": "arms"}),
        ("model://arms/meshes/x.stl", "arms/meshes/x.stl", {"arms": "arms"}),
        ("package://urdf/x.stl", "arms/urdf/x.stl", {}),
        ("package://arms/x.stl", "else/x.stl", {"arms": "else"}),
        ("package://others/meshes/x.stl", "else/meshes/x.stl", {"others": "else"}),
        ("../../else/x.stl", "else/x.stl", {"any": "else"}),
    ],
)
def test_a_mesh_is_looked_for_where_it_is_meant(
    name: str, path: str, packages: dict[str, str], read: Read, tmp_path: Path
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"")
    found = read(mesh(name), packages={package: tmp_path / folder for package, folder in packages.items()})
    geometry = only(found).geometry
    assert isinstance(geometry, Mesh)
    assert geometry.path == file and found.warnings == ()


@pytest.mark.parametrize(
    "name",
    [
        "package://arms_description/meshes/x.stl",
        "package://arms/meshes/x.stl",
        "../meshes/x.stl",
        "package:///meshes/x.stl",
    ],
)
def test_a_package_is_also_the_nearest_folder_with_a_description(name: str, read: Read, tmp_path: Path) -> None:
    file = tmp_path / "arms" / "meshes" / "x.stl"
    file.parent.mkdir()
    file.write_bytes(b"")
    for folder in (tmp_path, tmp_path / "arms"):
        (folder / "package.xml").write_text("<package><name>arms_description</name></package>")
    found = read(mesh(name))
    geometry = only(found).geometry
    assert isinstance(geometry, Mesh) and geometry.path == file
    assert found.warnings == () and str(tmp_path / "arms") in " ".join(found.remarks)


def test_a_folder_above_is_no_package_just_because_of_its_name(read: Read, tmp_path: Path) -> None:
    """Whoever writes a file could otherwise name any folder of the user's."""
    (tmp_path / "arms" / "x.stl").write_bytes(b"")
    (tmp_path / "package.xml").write_text("<package><name>all</name></package>")  # and not of every package's name
    with pytest.warns(ModelWarning, match=r"1 mesh not found: 'x.stl'; name the folder of 'arms' in packages"):
        found = read(mesh("package://arms/x.stl"))
    assert only(found).geometry.path == tmp_path / "arms" / "urdf" / "x.stl"  # type: ignore[attr-defined]


def test_a_description_of_a_package_that_is_no_file_of_its_kind_names_no_package(read: Read, tmp_path: Path) -> None:
    (tmp_path / "arms" / "x.stl").write_bytes(b"")
    (tmp_path / "arms" / "package.xml").write_bytes(b"<<<")
    assert read(mesh("package://arms/x.stl")).warnings == ()
    with pytest.warns(ModelWarning, match=r"not found"):
        read(mesh("package://arm_description/x.stl"))


def test_a_missing_mesh_is_told_and_its_shape_kept(read: Read, tmp_path: Path) -> None:
    with pytest.warns(ModelWarning, match="3 meshes not found: 'x.stl', 'y.stl'") as caught:
        found = read(mesh("x.stl") + mesh("meshes/y.stl") + mesh("package://none/x.stl"))
    assert len(caught) == 1 and len(found.shapes) == 3
    assert found.shapes[1].geometry.path == tmp_path / "arms/urdf/meshes/y.stl"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    [
        "/etc/hostname",
        "file:///etc/hostname",
        "../secret.stl",
        "package://arms/../secret.stl",
        "package://urdf/../../secret.stl",
        "package://none/../../secret.stl",
    ],
)
def test_a_mesh_elsewhere_is_told_and_left_out(name: str, read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret.stl").write_bytes(b"")
    with pytest.warns(ModelWarning, match=r"1 mesh outside the file's folder left out: .*packages=\{\.\.\.\}"):
        found = read(mesh(name) + visual(BALL))
    assert isinstance(only(found).geometry, Sphere)


def test_a_link_does_not_lead_out_of_the_folder(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret.stl").write_bytes(b"")
    (tmp_path / "arms" / "urdf" / "x.stl").symlink_to(tmp_path / "secret.stl")
    with pytest.warns(ModelWarning, match="1 mesh outside"):
        assert read(mesh("x.stl")).shapes == ()


@pytest.mark.parametrize("packages", ["arms", ["arms"], {"arms": None}])
def test_packages_are_folders_by_name(packages: Any, read: Read) -> None:
    with pytest.raises(ModelError, match=r"^packages"):
        read("", packages=packages)


def test_a_resolver_keeps_what_it_did_not_find(tmp_path: Path) -> None:
    resolve = Resolver(tmp_path / "arm.urdf", {})
    assert resolve("x.stl") == tmp_path / "x.stl"
    assert resolve("/etc/hostname") is None
    assert (resolve.absent, resolve.outside) == (["x.stl"], {"/etc/hostname": Path("/etc/hostname")})


# Places


@pytest.mark.parametrize("rpy", [(0.3, -0.5, 0.7), (-3.0, 1.2, 2.5), (0.0, np.pi / 2, 0.4), (0.0, -np.pi / 2, -2.0)])
def test_angles_turn_about_fixed_axes_one_after_the_other(rpy: tuple[float, ...]) -> None:
    R = rotation_of(np.array(rpy))
    np.testing.assert_allclose(R, about_z(rpy[2]) @ about_y(rpy[1]) @ about_x(rpy[0]), atol=2e-15)


def test_quarter_turns_are_exact() -> None:
    quarter = np.pi / 2
    np.testing.assert_array_equal(rotation_of(np.array([quarter, 0, quarter])), [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_an_origin_is_optional_and_so_are_its_parts() -> None:
    def place(text: str) -> Any:
        return origin(parse(f"<a>{text}</a>".encode(), Path("arm.urdf")))

    for text in ("", "<origin/>", '<origin xyz="0 0 0"/>', '<origin rpy="0 0 0"/>', '<origin xyz="1e-16 0 0"/>'):
        np.testing.assert_array_equal(place(text).r, np.zeros(3))
        np.testing.assert_array_equal(place(text).E, np.eye(3))
    np.testing.assert_array_equal(place('<origin xyz="1e-14 2 3"/>').r, (1e-14, 2, 3))
    np.testing.assert_array_equal(origin(None).r, np.zeros(3))
