"""The vertices of a mesh from its file: STL and OBJ by ourselves, others by coal."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from coupler.files import read_file
from coupler.forks import imports
from coupler.model.errors import ModelError

__all__ = ["mesh_vertices"]

_LARGEST = 512 << 20  # bytes: ten million triangles
_HEAD = 84  # bytes before the triangles of a binary STL: a comment, and how many there are
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])


def mesh_vertices(path: Path) -> np.ndarray:
    """n × 3, each vertex once, in the file's unit; of DAE, which tells its unit, in m.

    All vertices that the file gives count, whether triangles use them or not. The axis that a DAE calls up is not
    looked at, as in other readers of URDF.

    Raises:
        ModelError: if the file is not there, is no mesh, is of a kind that cannot be read, or has none or no numbers.
    """
    path = Path(path)
    try:
        data = read_file(path, _LARGEST)
    except OSError as error:
        told = error.strerror or error
        why = "there is no such file" if isinstance(error, FileNotFoundError) else f"it cannot be read ({told})"
        raise ModelError(f"mesh {path}: {why}; name the folder of its package, or give a simpler shape") from None
    kind = path.suffix.lower()
    read = {".stl": _stl, ".obj": _obj}.get(kind)
    found = _by_coal(path, data) if read is None else read(path, data)
    if not len(found):
        raise ModelError(f"mesh {path}: it has no vertices; export it again as STL or OBJ")
    if not np.isfinite(found).all():
        raise ModelError(f"mesh {path}: a vertex is not a finite number; export it again")
    return np.unique(found, axis=0)


def _stl(path: Path, data: bytes) -> np.ndarray:
    count = int.from_bytes(data[80:_HEAD], "little")
    if len(data) >= _HEAD and len(data) == _HEAD + count * _TRIANGLE.itemsize:  # also if it begins with "solid"
        return np.frombuffer(data, _TRIANGLE, count, _HEAD)["corners"].reshape(-1, 3).astype(float)
    if data.lstrip()[:5].lower() != b"solid":
        raise ModelError(
            f"mesh {path}: it is no STL: a binary one of {count} triangles has {_HEAD + count * _TRIANGLE.itemsize} "
            f"bytes, this has {len(data)}; export it again"
        )
    return _rows(path, data, "vertex")


def _obj(path: Path, data: bytes) -> np.ndarray:
    return _rows(path, data, "v")


def _rows(path: Path, data: bytes, word: str) -> np.ndarray:
    """The three numbers after a word, wherever it begins a line."""
    rows = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        first, *values = line.split(maxsplit=4) or [""]
        if first == word:
            try:
                x, y, z = map(float, values[:3])
            except ValueError:
                raise ModelError(f"mesh {path}, line {number}: {word!r} wants three numbers, got {line!r}") from None
            rows.append((x, y, z))
    return np.array(rows).reshape(-1, 3)


def _by_coal(path: Path, data: bytes) -> np.ndarray:
    try:
        with imports():
            import coal  # type: ignore
    except ImportError:
        raise ModelError(
            f"mesh {path}: without coal only STL and OBJ are read; convert it, or: pip install 'coupler[mesh]'"
        ) from None
    try:
        found = coal.MeshLoader().load(str(path), np.ones(3)).vertices()
    except (ValueError, RuntimeError) as error:
        message = re.search(r"message: (.*)", str(error), re.DOTALL)
        why = " ".join((message[1] if message else str(error)).split())
        raise ModelError(f"mesh {path}: coal cannot read it ({why}); export it as STL or OBJ") from None
    unit = re.search(rb'<unit\b[^<>]{0,500}\bmeter="([^"<>]{0,50})"', data) if path.suffix.lower() == ".dae" else None
    try:
        scale = float(unit[1]) if unit else 1.0  # which coal does not look at
    except ValueError:
        raise ModelError(f"mesh {path}: its unit must be a number of metres, got {unit[1]!r}") from None  # type: ignore[index]
    return np.array(found, dtype=float) * scale
