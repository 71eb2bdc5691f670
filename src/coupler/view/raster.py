"""Pictures without a browser or a graphics card: triangles with a depth buffer, shaded by a light."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coupler.model.tolerances import TINY
from coupler.view.camera import Camera
from coupler.view.figure.surface import Surface

_FINE = 2  # pixels across one of the picture, which are then averaged
_CHUNK = 1 << 16  # pixels that are looked at together
_NEAR = 1e-3  # of the distance to what is looked at: nothing nearer is drawn
_EDGE = 1e-9  # weights of corners that are less below zero are rounding: pixels on edges belong to a triangle
_SIDEWAYS = 1e-9  # twice its area in pixels: a smaller triangle is seen from the side
_AMBIENT, _DIFFUSE, _SHINE = 0.62, 0.42, 0.10
_LIGHT = np.array([-0.45, 0.65, 0.62])  # from the camera: to the right, up, and towards it
_SKY, _HORIZON = np.array([1.0, 1.0, 1.0]), np.array([0.955, 0.965, 0.98])


@dataclass(frozen=True, eq=False)
class Painted:
    """A surface in the world with a colour.

    Attributes:
        surface: the surface, in the world, m.
        colour: red, green and blue, from 0 to 1.
        flat: whether each triangle is shaded by itself.
        lit: whether it is shaded at all.
    """

    surface: Surface
    colour: np.ndarray
    flat: bool = False
    lit: bool = True


def picture(painted: list[Painted], camera: Camera, width: int, height: int) -> np.ndarray:
    """The picture, height × width × 3, from 0 to 1.

    Args:
        painted: the surfaces.
        camera: the camera.
        width, height: the size of the picture, px.
    """
    wide, tall = _FINE * width, _FINE * height
    back = np.linspace(0.0, 1.0, tall)[:, None, None]
    image = np.broadcast_to((1.0 - back) * _SKY + back * _HORIZON, (tall, wide, 3)).reshape(-1, 3).copy()
    corners, normals, colours, lit = _seen(painted, camera, wide, tall)
    depth, owner = np.full(wide * tall, np.inf), np.full(wide * tall, -1)
    planes, nearness = _planes(corners), 1.0 / corners[:, :, 2]
    for triangles, pixels, weights in _fragments(corners, planes, wide, tall):
        z = 1.0 / np.einsum("nk,nk->n", weights, nearness[triangles])
        np.minimum.at(depth, pixels, z)
        first = z <= depth[pixels]
        owner[pixels[first]] = triangles[first]
    seen = np.flatnonzero(owner >= 0)
    if len(seen):
        front = owner[seen]
        weights = _weights(planes[front], seen % wide, seen // wide)
        normal = np.einsum("nk,nkj->nj", weights, normals[front])
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), TINY)
        facing = np.abs(normal @ (_LIGHT / np.linalg.norm(_LIGHT)))
        shade = _AMBIENT + _DIFFUSE * facing
        shine = _SHINE * facing**24
        bright = np.where(lit[front], shade, 1.0)[:, None] * colours[front]
        bright += np.where(lit[front], shine, 0.0)[:, None]
        image[seen] = np.clip(bright, 0.0, 1.0)
    return image.reshape(height, _FINE, width, _FINE, 3).mean(axis=(1, 3))


def _seen(
    painted: list[Painted], camera: Camera, wide: int, tall: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Triangles in front of the camera: corners (pixels and depth), normals in its axes, colours, and which are lit."""
    away = camera.target - camera.position
    away = away / np.linalg.norm(away)
    right = np.cross(away, camera.up)
    right = right / np.linalg.norm(right)
    axes = np.stack([right, np.cross(right, away), away])
    scale = 0.5 * tall / np.tan(0.5 * camera.field)
    corners, normals = [np.zeros((0, 3, 3))], [np.zeros((0, 3, 3))]
    colours, lit = [np.zeros((0, 3))], [np.zeros(0, dtype=bool)]
    for piece in painted:
        points = (piece.surface.vertices - camera.position) @ axes.T
        triangles = points[piece.surface.triangles]
        across = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        if piece.flat or not piece.lit:
            normal = np.repeat(across[:, None], 3, axis=1)
        else:
            smooth = np.zeros_like(points)
            for k in range(3):
                np.add.at(smooth, piece.surface.triangles[:, k], across)
            normal = smooth[piece.surface.triangles]
        normal = normal / np.maximum(np.linalg.norm(normal, axis=2, keepdims=True), TINY)
        near = _NEAR * float(np.linalg.norm(camera.target - camera.position))
        kept = (triangles[:, :, 2] > near).all(axis=1)
        if piece.lit and not piece.flat:  # closed surfaces, whose far side is not seen
            kept &= np.einsum("ni,ni->n", across, triangles[:, 0]) > 0.0  # by these axes, all is seen in a mirror
        projected = triangles[kept]
        flat = scale * projected[:, :, :2] / projected[:, :, 2:] * [1.0, -1.0] + [wide / 2, tall / 2]
        corners.append(np.concatenate([flat, projected[:, :, 2:]], axis=2))
        normals.append(normal[kept] * [1.0, 1.0, -1.0])  # towards the camera
        colours.append(np.tile(piece.colour[:3], (int(kept.sum()), 1)))
        lit.append(np.full(int(kept.sum()), piece.lit))
    return np.concatenate(corners), np.concatenate(normals), np.concatenate(colours), np.concatenate(lit)


def _fragments(
    corners: np.ndarray, planes: np.ndarray, wide: int, tall: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pixels within triangles, some at a time: the triangle of each, the pixel, and its weights of the corners."""
    size = np.array([wide, tall])
    low = np.clip(np.floor(corners[:, :, :2].min(axis=1) - 0.5), 0, size).astype(int)
    high = np.clip(np.ceil(corners[:, :, :2].max(axis=1) + 0.5), 0, size).astype(int)
    area = np.prod(np.maximum(high - low, 0), axis=1)
    order = np.flatnonzero(area)
    ends, across = np.cumsum(area[order]), (high - low)[:, 0]
    start = 0
    while start < len(order):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + _CHUNK)), start + 1)
        chosen = order[start:stop]
        triangle = np.repeat(chosen, area[chosen])
        place = np.arange(len(triangle)) - np.repeat(np.cumsum(area[chosen]) - area[chosen], area[chosen])
        y, x = np.divmod(place, across[triangle])
        x, y = x + low[triangle, 0], y + low[triangle, 1]
        weights = _weights(planes[triangle], x, y)
        inside = weights.min(axis=1) >= -_EDGE
        yield triangle[inside], (y * wide + x)[inside], weights[inside]
        start = stop


def _planes(corners: np.ndarray) -> np.ndarray:
    """Coefficients of the weights of triangles' three corners at a pixel, (n, 3, 3): of x, of y, and the constant."""
    p, q = np.roll(corners[:, :, :2], -1, axis=1), np.roll(corners[:, :, :2], -2, axis=1)  # the other two corners
    by_x, by_y = p[:, :, 1] - q[:, :, 1], q[:, :, 0] - p[:, :, 0]
    constant = p[:, :, 0] * q[:, :, 1] - p[:, :, 1] * q[:, :, 0]
    whole = constant.sum(axis=1)
    some = np.abs(whole) > _SIDEWAYS
    planes = np.stack([by_x, by_y, constant], axis=1) / np.where(some, whole, 1.0)[:, None, None]
    planes[~some] = np.array([[0.0], [0.0], [-1.0]])  # seen from the side: nothing is within
    return planes


def _weights(planes: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Weights of corners at the centres of pixels, (n, 3); one is negative for pixels outside of a triangle."""
    return planes[:, 0] * (x + 0.5)[:, None] + planes[:, 1] * (y + 0.5)[:, None] + planes[:, 2]
