"""Reads a mesh with coal in a separate process: a job for `coupler.children`, which imports nothing of ours.

coal reads many formats, some of which refer to further files, and a damaged file may crash it. Only numbers come back.
"""

from __future__ import annotations

from typing import Any


def prepare() -> None:
    """Imports coal.

    Raises:
        ImportError: if it is not installed.
    """
    import coal  # type: ignore[import-not-found]  # noqa: F401


def run(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The vertices of a mesh, and its triangles if `faces` is set, because fetching them one by one is slow.

    Args:
        request: the `file`, and whether `faces` are wanted.

    Raises:
        ValueError, RuntimeError: for a file that coal cannot read.
    """
    import coal  # type: ignore[import-not-found]
    import numpy as np

    model: Any = coal.MeshLoader().load(request["file"], np.ones(3))
    triangles = [model.tri_indices(i) for i in range(model.num_tris if request["faces"] else 0)]
    corners = [[int(triangle[k]) for k in range(3)] for triangle in triangles]
    vertices = np.array(model.vertices(), dtype=float).reshape(-1, 3)
    return {}, {"vertices": vertices, "triangles": np.array(corners, dtype=np.int64).reshape(-1, 3)}
