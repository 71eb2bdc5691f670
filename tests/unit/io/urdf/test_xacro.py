"""URDF that is written with xacro's macros."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coupler.io.load import load
from coupler.model import ModelError, ModelWarning, Robot

Load = Callable[..., Robot]

MACROS = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:macro name="rod" params="name mass"><link name="${name}"><inertial><mass value="${mass}"/>
<inertia ixx="${mass / 2}" iyy="0.1" izz="0.1"/></inertial></link></xacro:macro></robot>"""


@pytest.fixture
def robot(tmp_path: Path) -> Load:
    """Loads what stands in a xacro <robot>, in the folder `legs/urdf`."""
    pytest.importorskip("xacrodoc", reason="xacrodoc expands xacro files, and is not installed")
    folder = tmp_path / "legs" / "urdf"
    folder.mkdir(parents=True)

    def robot(text: str, before: str = "", **options: Any) -> Robot:
        path = folder / "leg.urdf.xacro"
        path.write_text(f'{before}<robot name="leg" xmlns:xacro="http://www.ros.org/wiki/xacro">\n{text}</robot>')
        return load(path, **options)

    return robot


def body(mass: str) -> str:
    moments = '<inertia ixx="0.1" iyy="0.1" izz="0.1"/>'
    return f'<link name="a"><inertial><mass value="{mass}"/>{moments}</inertial></link>'


def test_macros_and_sums_are_expanded(robot: Load) -> None:
    found = robot('<xacro:property name="m" value="0.25"/>' + body("${2 * m}"))
    assert found.bodies["a"].mass == 0.5
    assert (found.name, found.warnings) == ("leg", ())


def test_arguments_are_given_or_have_defaults(robot: Load) -> None:
    text = '<xacro:arg name="mass" default="0.3"/>' + body("$(arg mass)")
    assert robot(text).bodies["a"].mass == 0.3
    assert robot(text, arguments={"mass": "0.7"}).bodies["a"].mass == 0.7


@pytest.mark.parametrize("named", [False, True])
def test_packages_are_named_or_are_folders_above(named: bool, robot: Load, tmp_path: Path) -> None:
    """A folder that the user names comes before one above the file."""
    parts = tmp_path / ("elsewhere" if named else "legs") / "parts.xacro"
    parts.parent.mkdir(exist_ok=True)
    parts.write_text(MACROS)
    text = '<xacro:include filename="$(find legs)/parts.xacro"/><xacro:rod name="a" mass="0.2"/>'
    found = robot(text, packages={"legs": tmp_path / "elsewhere"} if named else None)
    assert found.bodies["a"].inertia[0, 0] == 0.1


def test_a_package_is_known_by_its_own_description(robot: Load, tmp_path: Path) -> None:
    (tmp_path / "legs" / "package.xml").write_text("<package><name>leg_description</name></package>")
    (tmp_path / "legs" / "parts.xacro").write_text(MACROS)
    found = robot('<xacro:include filename="$(find leg_description)/parts.xacro"/><xacro:rod name="a" mass="0.2"/>')
    assert found.bodies["a"].mass == 0.2


def test_one_robots_packages_are_unknown_to_the_next(robot: Load, tmp_path: Path) -> None:
    (tmp_path / "parts.xacro").write_text(MACROS)
    text = '<xacro:include filename="$(find parts_of_one)/parts.xacro"/><xacro:rod name="a" mass="0.2"/>'
    assert robot(text, packages={"parts_of_one": tmp_path}).bodies["a"].mass == 0.2
    with pytest.raises(ModelError, match=r"leg\.urdf\.xacro: xacro cannot expand it: .*parts_of_one"):
        robot(text)


def test_meshes_of_packages_are_found_and_absent_ones_told(robot: Load, tmp_path: Path) -> None:
    shape = '<visual><geometry><mesh filename="package://legs/{}"/></geometry></visual>'
    (tmp_path / "legs" / "thigh.stl").write_bytes(b"")
    text = body("1").replace("</link>", shape.format("thigh.stl") + "</link>")
    assert robot(text).shapes[0].geometry.path == tmp_path / "legs" / "thigh.stl"  # type: ignore[attr-defined]
    with pytest.warns(ModelWarning, match="1 mesh not found: 'shin.stl'"):
        robot(text.replace("thigh.stl", "shin.stl"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("<xacro:rod name='a'/>", "rod"),
        (body("${1 +}"), ""),
        (body("${unknown}"), "unknown"),
        (body("$(arg unknown)"), "unknown"),
        ('<xacro:include filename="$(find legs)/gone.xacro"/>', "gone.xacro"),
    ],
)
def test_what_cannot_be_expanded_is_refused(text: str, named: str, robot: Load) -> None:
    with pytest.raises(ModelError, match=rf"leg\.urdf\.xacro: xacro cannot expand it: .*{named}"):
        robot(text)


def test_mistakes_of_the_robot_itself_name_the_element(robot: Load) -> None:
    with pytest.raises(
        ModelError,
        match=r"leg\.urdf\.xacro, line \d+ of what it expands to, <link name='a'>: body 'a': its mass must be",
    ):
        robot(body("${-1}"))


ENTITY = '<!DOCTYPE robot [<!ENTITY mass "3">]>\n'


def test_entities_are_refused(robot: Load) -> None:
    with pytest.raises(ModelError, match=r"leg\.urdf\.xacro, line 1: it declares the entity 'mass'; entities are refu"):
        robot(body("&mass;"), before=ENTITY)


def test_entities_of_included_files_are_refused_too(robot: Load, tmp_path: Path) -> None:
    (tmp_path / "legs" / "parts.xacro").write_text(ENTITY + MACROS.replace('"${mass}"', '"&mass;"'))
    with pytest.raises(ModelError, match=r"entities are refused"):
        robot('<xacro:include filename="$(find legs)/parts.xacro"/><xacro:rod name="a" mass="0.2"/>')


def test_a_file_is_included_from_the_folder_of_the_one_that_names_it(robot: Load, tmp_path: Path) -> None:
    """Wherever the program runs."""
    parts = tmp_path / "legs" / "urdf" / "parts"
    parts.mkdir()
    (parts / "rod.xacro").write_text(MACROS)
    found = robot('<xacro:include filename="parts/rod.xacro"/><xacro:rod name="a" mass="0.2"/>')
    assert found.bodies["a"].mass == 0.2


def test_what_is_no_xml_is_refused_before_it_is_expanded(tmp_path: Path) -> None:
    path = tmp_path / "leg.xacro"
    path.write_text("<robot>\n<link></robot>")
    with pytest.raises(ModelError, match=r"leg\.xacro, line 2: it is not XML"):
        load(path)


def test_without_xacrodoc_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "leg.xacro"
    path.write_text("<robot/>")
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    with pytest.raises(
        ModelError, match=r"leg\.xacro: to read xacro, install xacrodoc: pip install 'coupler\[xacro\]'"
    ):
        load(path)
