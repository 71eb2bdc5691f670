"""STL written as text, made binary: MuJoCo reads only the binary form."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from coupler.files import open_file
from coupler.model import ModelError

_HEAD = 84  # bytes before the triangles of a binary file: a comment, and how many triangles there are
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_VERTEX = re.compile(rb"^\s*vertex\s+(\S+)\s+(\S+)\s+(\S+)", re.MULTILINE)


def is_text_stl(path: Path) -> bool:
    """Whether a file is an STL written as text. Some binary files begin with "solid" too, but have the right size."""
    try:
        with open_file(path) as file:
            head, size = file.read(_HEAD), path.stat().st_size
    except OSError:
        return False
    count = int.from_bytes(head[80:], "little")
    return head.lstrip()[:5].lower() == b"solid" and size != _HEAD + count * _TRIANGLE.itemsize


def binary_stl(data: bytes, name: str) -> bytes:
    """The binary form of an STL written as text. MuJoCo takes no normals from the file, and so they are zero.

    Args:
        data: the content of the file.
        name: the name of the file, for messages.

    Raises:
        ModelError: for vertices that are not numbers, or not three to a triangle.
    """
    try:
        vertices = np.array([[float(x) for x in match] for match in _VERTEX.findall(data)], dtype="<f4")
    except ValueError as error:
        raise ModelError(f"mesh {name}: a vertex is not three numbers ({error}); export it again") from None
    if not len(vertices) or len(vertices) % 3:
        raise ModelError(f"mesh {name}: it has {len(vertices)} vertices, not three to a triangle; export it again")
    triangles = np.zeros(len(vertices) // 3, _TRIANGLE)
    triangles["corners"] = vertices.reshape(-1, 3, 3)
    return name.encode()[:80].ljust(80) + len(triangles).to_bytes(4, "little") + triangles.tobytes()
