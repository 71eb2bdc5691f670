"""A robot that is saved can be read again, wherever its meshes lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coupler import Robot, RobotBuilder
from coupler.cli import main
from coupler.contact.collision.mesh_files import mesh_triangles
from coupler.io.load import load
from coupler.model import Mesh, ModelError, ModelWarning, Revolute
from mesh_samples import TRIANGLES, ascii_stl, binary_stl


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def robot(*meshes: Path) -> Robot:
    b = RobotBuilder("arm")
    b.body("arm", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("turn", Revolute(), "ground", "arm")
    for mesh in meshes:
        b.shape("arm", Mesh(mesh))
    return b.build()


def meshes_of(found: Robot) -> list[Path]:
    return [shape.geometry.path for shape in found.shapes if isinstance(shape.geometry, Mesh)]


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_meshes_from_elsewhere_are_copied_beside_the_file(suffix: str, source: Path, target: Path) -> None:
    if suffix == ".xml":
        pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    (source / "other").mkdir()
    first, second = binary_stl(source / "a.stl", TRIANGLES), binary_stl(source / "other" / "a.stl", 2 * TRIANGLES)
    found = load(robot(first, second, first).save(target / f"arm{suffix}"))
    assert {path.name for path in (target / "arm_meshes").iterdir()} == {"a.stl", "a_.stl"}
    assert [path.read_bytes() for path in meshes_of(found)] == [p.read_bytes() for p in (first, second, first)]
    assert all(path.is_relative_to(target) for path in meshes_of(found))
    again = load(found.save(target / f"again{suffix}"))  # from its own folder, which needs no more copies
    assert meshes_of(again) == meshes_of(found) and not (target / "again_meshes").exists()


@pytest.mark.parametrize("inside", [True, False])
def test_mjcf_gets_binary_copies_of_meshes_that_are_text(inside: bool, source: Path, target: Path) -> None:
    pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    mesh = ascii_stl((target if inside else source) / "a.stl", TRIANGLES)
    (copy,) = meshes_of(load(robot(mesh).save(target / "arm.xml")))
    assert copy == target / "arm_meshes" / "a.stl"
    np.testing.assert_array_equal(mesh_triangles(copy), mesh_triangles(mesh))
    (kept,) = meshes_of(load(robot(mesh).save(target / "arm.urdf")))
    assert kept.read_bytes() == mesh.read_bytes()


@pytest.mark.parametrize(
    ("text", "why"),
    [("solid a\nvertex 1 2 x", "a vertex is not three numbers"), ("solid a\nvertex 1 2 3", "it has 1 vertices, not")],
)
def test_a_mesh_that_cannot_be_made_binary_is_refused(text: str, why: str, source: Path, target: Path) -> None:
    (source / "a.stl").write_text(text)
    with pytest.raises(ModelError, match=rf"mesh a\.stl: {why}"):
        robot(source / "a.stl").save(target / "arm.xml")
    assert list(target.iterdir()) == []


def test_meshes_in_the_folder_stay_where_they_are(target: Path) -> None:
    mesh = binary_stl(target / "a.stl", TRIANGLES)
    assert meshes_of(load(robot(mesh).save(target / "arm.urdf"))) == [mesh]
    assert sorted(path.name for path in target.iterdir()) == ["a.stl", "arm.urdf"]


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_meshes_that_are_not_there_are_left_out_and_told(suffix: str, source: Path, target: Path) -> None:
    with pytest.warns(ModelWarning, match=r"1 mesh not found, and left out: 'gone\.stl'"):
        robot(source / "gone.stl").save(target / f"arm{suffix}")


def test_what_cannot_be_saved_leaves_no_meshes_behind(source: Path, target: Path) -> None:
    arm = robot(binary_stl(source / "a.stl", TRIANGLES))
    b = RobotBuilder("odd")
    b.body(" odd ", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("turn", Revolute(), "ground", " odd ")
    b.shape(" odd ", Mesh(meshes_of(arm)[0]))
    with pytest.raises(ModelError, match="cannot be written"):
        b.build().save(target / "odd.urdf")
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_the_command_line_copies_them_too(
    suffix: str, source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if suffix == ".xml":
        pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    robot(binary_stl(source / "a.stl", TRIANGLES)).save(source / "arm.urdf")
    assert main(["convert", str(source / "arm.urdf"), str(target / f"arm{suffix}")]) == 0, capsys.readouterr()
    assert [path.name for path in meshes_of(load(target / f"arm{suffix}"))] == ["a.stl"]
