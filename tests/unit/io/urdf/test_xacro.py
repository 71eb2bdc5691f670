"""URDF that is written with xacro's macros: expanded if asked, and then in a process that can do nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coupler.io.load import load
from coupler.io.urdf import xacro
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

    def robot(text: str, before: str = "", name: str = "leg.urdf.xacro", **options: Any) -> Robot:
        path = folder / name
        path.write_text(f'{before}<robot name="leg" xmlns:xacro="http://www.ros.org/wiki/xacro">\n{text}</robot>')
        return load(path, xacro=options.pop("xacro", True), **options)

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
    with pytest.raises(ModelError, match="it has no argument 'mas'; it has 'mass'"):
        robot(text, arguments={"mas": "0.7"})
    with pytest.warns(ModelWarning, match="macros of xacro are not expanded: .* load it with xacro=True"):
        robot('<xacro:property name="m" value="1"/>' + body("2"), xacro=False, name="leg.urdf")


def test_packages_are_named(robot: Load, tmp_path: Path) -> None:
    """A folder that the user names comes before that which the file belongs to."""
    parts = tmp_path / "elsewhere" / "parts.xacro"
    parts.parent.mkdir(exist_ok=True)
    parts.write_text(MACROS)
    (tmp_path / "legs" / "package.xml").write_text("<package/>")
    text = '<xacro:include filename="$(find legs)/parts.xacro"/><xacro:rod name="a" mass="0.2"/>'
    assert robot(text, packages={"legs": tmp_path / "elsewhere"}).bodies["a"].inertia[0, 0] == 0.1


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
    (tmp_path / "legs" / "package.xml").write_text("<package/>")
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
        ('<xacro:include filename="gone.xacro"/>', "gone.xacro"),
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
    (tmp_path / "legs" / "urdf" / "parts.xacro").write_text(ENTITY + MACROS.replace('"${mass}"', '"&mass;"'))
    with pytest.raises(ModelError, match=r"entities are refused"):
        robot('<xacro:include filename="parts.xacro"/><xacro:rod name="a" mass="0.2"/>')


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
        load(path, xacro=True)


def test_without_xacrodoc_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "leg.xacro"
    path.write_text("<robot/>")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "xacro.py").write_text("raise ModuleNotFoundError('xacro')")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    with pytest.raises(
        ModelError, match=r"leg\.xacro: to read xacro, install xacrodoc: pip install 'coupler\[xacro\]'"
    ):
        load(path, xacro=True)


# What an author might want


def test_macros_are_expanded_only_if_asked(robot: Load) -> None:
    with pytest.raises(ModelError, match=r"leg\.urdf\.xacro: .* which are programs: .* xacro=True .*--trust"):
        robot(body("1"), xacro=False)


def test_macros_in_a_file_of_another_name_are_expanded_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "leg.urdf"
    path.write_text(f'<robot name="leg" xmlns:xacro="http://www.ros.org/wiki/xacro">{body("${1 + 1}")}</robot>')
    assert load(path, xacro=True).bodies["a"].mass == 2.0
    with pytest.raises(ModelError, match="must be a number"):
        load(path)


# Out of xacro's fence, which knows no frames: a generator that looks at its own while it runs, and from there up to
# the functions of xacro itself, to what they have imported.
FRAME = "(lambda l: (l.append((l[0].gi_frame" + 6 * ".f_back" + " for _ in [1])), [x for x in l[0]][0])[1])([])"
SYSTEM = FRAME + ".f_globals['os'].system('touch {}')"
READ = FRAME + ".f_globals['os'].listdir('/etc')"


def test_a_macro_runs_no_other_program(robot: Load, tmp_path: Path) -> None:
    mark = tmp_path / "legs" / "urdf" / "mark"
    for text in (SYSTEM.format(mark), READ):
        with pytest.raises(ModelError, match=r"leg\.urdf\.xacro: its macros were stopped: it tries to "):
            robot(body("${" + text + "}"))
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "${xacro.load_yaml('/etc/passwd')}",
        "${xacro.load_yaml('../../secret.yaml')}",
        "$(find legs)",
        "$(env HOME)",
        "${open('/etc/passwd').read()}",
    ],
)
def test_a_macro_reads_nothing_elsewhere(text: str, robot: Load, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("1.0")
    with pytest.raises(ModelError, match=r"leg\.urdf\.xacro: (its macros were stopped|xacro cannot expand it)") as told:
        robot(body(text))
    assert "root:" not in str(told.value)


@pytest.mark.parametrize("name", ["/etc/*", "../../*.xacro", "../../secret.xacro", "link.xacro"])
def test_nothing_is_included_from_elsewhere(name: str, robot: Load, tmp_path: Path) -> None:
    (tmp_path / "secret.xacro").write_text(MACROS)
    (tmp_path / "legs" / "urdf" / "link.xacro").symlink_to(tmp_path / "secret.xacro")
    with pytest.raises(ModelError, match=r"its macros were stopped: it tries to read .* packages="):
        robot(f'<xacro:include filename="{name}"/>{body("1")}')


def test_a_macro_that_never_ends_is_ended(robot: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xacro._child, "seconds", 1)
    with pytest.raises(ModelError, match="it takes longer than 1 s"):
        robot(body("${[0 for a in range(10**9) for b in range(10**9)]}"))


def test_a_macro_that_wants_all_memory_gets_none(robot: Load) -> None:
    with pytest.raises(ModelError, match=r"xacro cannot expand it"):
        robot(body("${'a' * 10**11}"))
