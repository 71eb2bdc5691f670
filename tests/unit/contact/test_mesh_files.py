"""The vertices of meshes from their files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from coupler.children import ChildError
from coupler.contact.collision import mesh_files
from coupler.contact.collision.mesh_files import mesh_triangles, mesh_vertices
from coupler.contact.collision.meshes import hull_of
from coupler.model import (
    Mesh,
    ModelError,
)
from mesh_samples import BLOCK, TRIANGLES, ascii_stl, ball, binary_stl, obj


@pytest.mark.parametrize("write", [binary_stl, ascii_stl])
def test_an_stl_gives_each_vertex_once(tmp_path: Path, write: Callable[[Path, np.ndarray], Path]) -> None:
    found = mesh_vertices(write(tmp_path / "block.STL", TRIANGLES))
    np.testing.assert_array_equal(found, np.unique(BLOCK, axis=0))


def test_an_obj_gives_its_vertices(tmp_path: Path) -> None:
    np.testing.assert_array_equal(mesh_vertices(obj(tmp_path / "ball.obj", ball())), np.unique(ball(), axis=0))


def test_an_obj_may_have_colours_comments_and_other_lines(tmp_path: Path) -> None:
    lines = ["# v 9 9 9", "v 0 0 0", "vn 0 0 1", "\tv  1\t0 0 0.5 0.5 0.5", "", "v 0 1e0 0 1.0 # a corner", "vt 0 0"]
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "corner.obj").write_bytes(end.join(lines).encode())
        np.testing.assert_array_equal(mesh_vertices(tmp_path / "corner.obj"), [[0, 0, 0], [0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("block.stl", b"", r"block\.stl: it is not an STL file"),
        ("block.stl", b"x" * 200, r"block\.stl: it is not an STL file: .* this has 200; export it again"),
        ("block.stl", b"solid nothing\nendsolid", r"block\.stl: it has no vertices; export it again as STL or OBJ"),
        ("block.stl", b"solid\nvertex 1 2\n", r"block\.stl, line 2: 'vertex' wants three numbers, got 'vertex 1 2'"),
        ("block.obj", b"v 1 2 3\nv 1 2 high\n", r"block\.obj, line 2: 'v' wants three numbers"),
        ("block.obj", b"v 1 2 3\n\nv\n", r"block\.obj, line 3: 'v' wants three numbers, got 'v'"),
        ("block.obj", b"v 1 2 3\nv nan 0 0\n", r"block\.obj: a vertex is not a finite number"),
        ("block.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\n", r"block\.obj: it is flat, .* give a thin Box"),
        ("block.obj", b"v 0 0 0\n", r"block\.obj: it is flat"),
    ],
)
def test_a_file_that_is_no_mesh_is_refused(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError, match=message):
        hull_of(Mesh(tmp_path / name))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.stl: there is no such file; name the folder of its package"):
        hull_of(Mesh(tmp_path / "none.stl"))
    with pytest.raises(ModelError, match="it cannot be read"):
        hull_of(Mesh(tmp_path))


DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="centimeter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="12">0 0 0 1 0 0 0 2 0 0 0 3
</float_array><technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles count="4">
<input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2 0 1 3 0 2 3 1 2 3</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s"><node><translate>10 0 0</translate>
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>
"""


def test_a_dae_is_read_by_coal_in_its_unit(tmp_path: Path) -> None:
    pytest.importorskip("coal", reason="coal reads DAE, and is not installed")
    (tmp_path / "part.dae").write_text(DAE)
    expected = [[0.10, 0, 0], [0.10, 0, 0.03], [0.10, 0.02, 0], [0.11, 0, 0]]
    np.testing.assert_allclose(mesh_vertices(tmp_path / "part.dae"), expected, rtol=0, atol=1e-9)
    (tmp_path / "part.dae").write_text("no mesh")
    with pytest.raises(ModelError, match=r"part\.dae: coal cannot read it \(.*\); export it as STL or OBJ"):
        mesh_vertices(tmp_path / "part.dae")


def test_without_coal_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> None:
        raise ChildError("ModuleNotFoundError", "No module named 'coal'")

    monkeypatch.setattr(mesh_files._coal, "ask", absent)
    (tmp_path / "part.dae").write_text(DAE)
    with pytest.raises(ModelError, match=r"part\.dae: without coal only STL and OBJ are read; .*coupler\[mesh\]"):
        mesh_vertices(tmp_path / "part.dae")


def gltf(buffer: str) -> str:
    """A triangle in glTF, whose numbers are in another file."""
    views = [{"buffer": 0, "byteLength": 36}, {"buffer": 0, "byteOffset": 36, "byteLength": 6}]
    points = {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [8, 8, 8]}
    indices = {"bufferView": 1, "componentType": 5123, "count": 3, "type": "SCALAR"}
    mesh = {"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}
    rest = {"scenes": [{"nodes": [0]}], "scene": 0, "nodes": [{"mesh": 0}], "meshes": [mesh], "bufferViews": views}
    buffers = [{"byteLength": 42, "uri": buffer}]
    return json.dumps({"asset": {"version": "2.0"}, "buffers": buffers, "accessors": [points, indices]} | rest)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not hold coal back")
def test_a_mesh_reads_what_is_beside_it_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("coal", reason="coal reads glTF, and is not installed")
    folder = tmp_path / "meshes"
    folder.mkdir()
    numbers = np.arange(9, dtype="<f4")
    for place in (tmp_path, folder):
        (place / "numbers.bin").write_bytes(numbers.tobytes() + np.arange(3, dtype="<u2").tobytes())
    (folder / "part.gltf").write_text(gltf("numbers.bin"))
    np.testing.assert_array_equal(mesh_vertices(folder / "part.gltf"), numbers.reshape(3, 3))
    np.testing.assert_array_equal(mesh_triangles(folder / "part.gltf"), numbers.reshape(1, 3, 3))
    (folder / "numbers.bin").unlink()  # which is found by its name alone
    for elsewhere in ("../numbers.bin", str(tmp_path / "numbers.bin")):
        (folder / "part.gltf").write_text(gltf(elsewhere))
        with pytest.raises(ModelError, match=r"part\.gltf: coal cannot read it"):
            mesh_vertices(folder / "part.gltf")
