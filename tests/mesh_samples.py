"""Meshes that tests write: a block, a stair, a ball, and points of a cube and of a cylinder."""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path

import numpy as np

SIZE = np.array([0.5, 0.25, 1.0])  # of the block; its coordinates are exact in the float32 of an STL
BLOCK = 0.5 * SIZE * np.array(list(product((-1.0, 1.0), repeat=3)))
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
TRIANGLES = np.array([BLOCK[list(corners)] for a, b, c, d in QUADS for corners in ((a, b, c), (a, c, d))])
# Two steps of a stair, seen from the side, and that 0.2 m deep.
STAIR = np.array([[x, y, z] for y in (0.0, 0.2) for x, z in [(0, 0), (1, 0), (1, 0.5), (0.5, 0.5), (0.5, 1), (0, 1)]])


def binary_stl(path: Path, triangles: np.ndarray, comment: bytes = b"solid, although binary") -> Path:
    facets = [struct.pack("<12fH", *np.zeros(3), *corners.ravel(), 0) for corners in triangles]
    path.write_bytes(comment.ljust(80) + struct.pack("<I", len(facets)) + b"".join(facets))
    return path


def ascii_stl(path: Path, triangles: np.ndarray) -> Path:
    lines = ["solid block"]
    for corners in triangles:
        lines += ["facet normal 0 0 0", " outer loop", *(f"  vertex {x} {y} {z}" for x, y, z in corners)]
        lines += [" endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid block"]))
    return path


def obj(path: Path, vertices: np.ndarray) -> Path:
    path.write_text("# corners\nvn 0 0 1\n" + "".join(f"v {x} {y} {z} 1.0\n" for x, y, z in vertices) + "f 1 2 3\n")
    return path


def ball(many: int = 642) -> np.ndarray:
    """Points all over a ball of radius 1."""
    z = 1.0 - (2.0 * np.arange(many) + 1.0) / many
    turn = np.pi * (1.0 + 5.0**0.5) * np.arange(many)
    return np.column_stack([np.sqrt(1.0 - z * z) * np.cos(turn), np.sqrt(1.0 - z * z) * np.sin(turn), z])


def grid() -> np.ndarray:
    """Points of a cube, nine along each edge, most of them inside or in its faces."""
    return np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 9)] * 3), axis=-1).reshape(-1, 3)


def rim(many: int = 40) -> np.ndarray:
    """The two rims of a cylinder."""
    turn = 2.0 * np.pi * np.arange(many) / many
    return np.concatenate([np.column_stack([np.cos(turn), np.sin(turn), 0.0 * turn + z]) for z in (-0.5, 0.5)])
