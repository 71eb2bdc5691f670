"""The vertices and triangles of mesh files: we read STL and OBJ, coal reads other formats."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np

from coupler.children import Child, ChildError
from coupler.files import read_file
from coupler.model.errors import ModelError
from coupler.model.wording import clipped

_LARGEST = 512 << 20  # bytes: ten million triangles
_HEAD = 84  # bytes before the triangles of a binary STL: a comment, and the number of triangles
_EXPORT = "export it as STL or OBJ"
_SECONDS, _MEMORY = 60, 4 << 30  # limits for coal to read a mesh
_coal = Child(Path(__file__).with_name("mesh_job.py"), _SECONDS, _MEMORY)
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])


def mesh_vertices(path: Path) -> np.ndarray:
    """n × 3, the distinct vertices of a mesh, in the file's unit; for DAE, which states its unit, in m.

    All vertices in the file count, whether triangles use them or not. The up axis of a DAE is ignored, as other readers
    of URDF do.

    Raises:
        ModelError: if the file does not exist, is not a mesh or of an unknown kind, or has no vertices or invalid
            numbers.
    """
    path = Path(path)
    data, kind = _data(path), path.suffix.lower()
    read = {".stl": _stl, ".obj": _obj}.get(kind)
    vertices = _by_coal(path, data, False)[0] if read is None else read(path, data)
    if not len(vertices):
        raise ModelError(f"mesh {path}: it has no vertices; export it again as STL or OBJ")
    _check_finite(path, vertices)
    return np.unique(vertices, axis=0)


def mesh_triangles(path: Path) -> np.ndarray:
    """m × 3 × 3, the corners of all triangles, in the same unit; larger polygons are cut into triangles.

    Raises:
        ModelError: as for `mesh_vertices`, and for a file without triangles.
    """
    path = Path(path)
    data, kind = _data(path), path.suffix.lower()
    if kind == ".stl":
        vertices_of_triangles = _stl(path, data)
        corners = vertices_of_triangles[: len(vertices_of_triangles) // 3 * 3]
    else:
        vertices, faces = (_obj(path, data), _obj_faces(path, data)) if kind == ".obj" else _by_coal(path, data, True)
        if len(faces) and not (faces.min() >= 0 and faces.max() < len(vertices)):
            raise ModelError(f"mesh {path}: a triangle has a corner that is not among the vertices; export it again")
        corners = vertices[faces.reshape(-1)]
    if not len(corners):
        raise ModelError(f"mesh {path}: it has no triangles; export it again as STL or OBJ")
    _check_finite(path, corners)
    return corners.reshape(-1, 3, 3)


def _data(path: Path) -> bytes:
    try:
        return read_file(path, _LARGEST)
    except OSError as error:
        reason = error.strerror or error
        why = "there is no such file" if isinstance(error, FileNotFoundError) else f"it cannot be read ({reason})"
        raise ModelError(f"mesh {path}: {why}; name the folder of its package, or give a simpler shape") from None


def _check_finite(path: Path, vertices: np.ndarray) -> None:
    if not np.isfinite(vertices).all():
        raise ModelError(f"mesh {path}: a vertex is not a finite number; export it again")


def _stl(path: Path, data: bytes) -> np.ndarray:
    count = int.from_bytes(data[80:_HEAD], "little")
    if len(data) >= _HEAD and len(data) == _HEAD + count * _TRIANGLE.itemsize:  # also if it begins with "solid"
        return np.frombuffer(data, _TRIANGLE, count, _HEAD)["corners"].reshape(-1, 3).astype(float)
    if data.lstrip()[:5].lower() != b"solid":
        raise ModelError(
            f"mesh {path}: it is not an STL file: a binary one of {count} triangles has "
            f"{_HEAD + count * _TRIANGLE.itemsize} bytes, this has {len(data)}; export it again"
        )
    return _rows(path, data, "vertex")


def _obj(path: Path, data: bytes) -> np.ndarray:
    return _rows(path, data, "v")


def _obj_faces(path: Path, data: bytes) -> np.ndarray:
    """m × 3, the numbers of vertices. A face numbers them from 1, or backwards from the last one as −1, −2, ..."""
    triangles, vertices = list[list[int]](), 0
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        first, *corners = line.split() or [""]
        vertices += first == "v"
        if first == "f":
            try:
                given = [int(corner.split("/")[0]) for corner in corners]
            except ValueError:
                raise ModelError(f"mesh {path}, line {number}: a face names vertices by number, got {line!r}") from None
            face = [i - 1 if i > 0 else vertices + i for i in given]
            triangles += [[face[0], *pair] for pair in pairwise(face[1:])]
    return np.array(triangles, dtype=int).reshape(-1, 3)


def _rows(path: Path, data: bytes, word: str) -> np.ndarray:
    """The three numbers after a word, in all lines that begin with it."""
    lines, rows = data.decode("utf-8", "replace").splitlines(), []
    chosen = [line for line in lines if line.split(None, 1)[:1] == [word]]
    with suppress(ValueError):  # NumPy reads them four times as fast, but does not say in which line it fails
        return np.loadtxt(chosen, usecols=(1, 2, 3), comments=None, ndmin=2) if chosen else np.zeros((0, 3))
    for number, line in enumerate(lines, 1):
        first, *values = line.split(maxsplit=4) or [""]
        if first == word:
            try:
                x, y, z = map(float, values[:3])
            except ValueError:
                raise ModelError(f"mesh {path}, line {number}: {word!r} wants three numbers, got {line!r}") from None
            rows.append((x, y, z))
    return np.array(rows).reshape(-1, 3)


def _by_coal(path: Path, data: bytes, faces: bool) -> tuple[np.ndarray, np.ndarray]:
    """Vertices, n × 3, and triangles, m × 3, if requested. coal may read the mesh's folder and no other."""
    place = Path(os.path.realpath(path))
    try:
        _, arrays = _coal.ask({"file": str(place), "faces": faces}, [place.parent])
        vertices, triangles = arrays["vertices"].reshape(-1, 3).astype(float), arrays["triangles"].reshape(-1, 3)
    except ChildError as error:
        if error.kind in ("ImportError", "ModuleNotFoundError"):
            raise ModelError(
                f"mesh {path}: without coal only STL and OBJ are read; convert it, or: pip install 'coupler[mesh]'"
            ) from None
        message = re.search(r"message: (.*)", str(error), re.DOTALL)
        why = " ".join((message[1] if message else str(error)).split())
        raise ModelError(f"mesh {path}: coal cannot read it ({clipped(why, 500, quote=False)}); {_EXPORT}") from None
    except (KeyError, ValueError) as error:
        raise ModelError(f"mesh {path}: coal's answer cannot be used ({error}); {_EXPORT}") from None
    unit = re.search(rb'<unit\b[^<>]{0,500}\bmeter="([^"<>]{0,50})"', data) if path.suffix.lower() == ".dae" else None
    try:
        scale = float(unit[1]) if unit else 1.0  # which coal does not look at
    except ValueError:
        raise ModelError(f"mesh {path}: its unit must be a number of metres, got {unit[1]!r}") from None  # type: ignore[index]
    return vertices * scale, triangles.astype(int)
