"""Reading a mesh with coal, in a process of its own: a job for `coupler.children`; it imports nothing of ours.

coal reads many formats, some of which name further files, and a damaged one may crash it. What comes back are numbers.
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
    """The vertices of a mesh, and its triangles if `faces` are asked for: taking them one by one takes its time.

    Args:
        request: the `file`, and whether `faces` are wanted.

    Raises:
        ValueError, RuntimeError: for what coal cannot read.
    """
    import coal  # type: ignore[import-not-found]
    import numpy as np

    model: Any = coal.MeshLoader().load(request["file"], np.ones(3))
    triangles = [model.tri_indices(i) for i in range(model.num_tris if request["faces"] else 0)]
    corners = [[int(triangle[k]) for k in range(3)] for triangle in triangles]
    vertices = np.array(model.vertices(), dtype=float).reshape(-1, 3)
    return {}, {"vertices": vertices, "triangles": np.array(corners, dtype=np.int64).reshape(-1, 3)}
