"""A robot in viser's scene: its solids, loops, springs and the ground under it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model.tree import GROUND
from coupler.view.camera import Camera, grid_cell
from coupler.view.figure import Colouring, Figure
from coupler.view.figure.colours import ACCENT
from coupler.view.figure.surface import turned_to

if TYPE_CHECKING:
    from viser import ViserServer

_FAINT = 0.13  # the opacity of bodies that are not highlighted
_GLASS = 0.4  # the opacity of bodies that are made transparent
_SPRING = (90, 96, 108)
_MOVED = 1e-9  # m and parts of a quaternion: a body that moved less is not sent


class RobotScene:
    """A robot in a scene.

    Attributes:
        figure: what the robot looks like.
        poses: the poses of all bodies that are shown now.
        highlighted: names of the highlighted bodies; empty if there are none.
    """

    def __init__(self, server: ViserServer, figure: Figure) -> None:
        self.figure, self._server = figure, server
        self.poses = figure.poses(figure.robot.neutral())
        self._shown = np.full((len(figure.bodies), 7), np.nan)
        scene = server.scene
        self._frames = [scene.add_frame(_node(body), show_axes=False) for body in figure.bodies]
        self._meshes: list[Any] = []
        self._colouring: Colouring = figure.default_colouring()
        self.highlighted: frozenset[str] = frozenset()
        self._see_through = False
        for k, (solid, colour) in enumerate(zip(figure.solids, figure.colours(self._colouring), strict=True)):
            mesh = scene.add_mesh_simple(
                f"{_node(solid.body)}/{k}",
                solid.surface.vertices,
                solid.surface.triangles,
                color=rgb(colour),
                opacity=None if colour[3] >= 1.0 else float(colour[3]),
                flat_shading=solid.flat,
                side="double" if solid.flat else "front",
            )
            self._meshes.append(mesh)
        thin = 0.0022 * figure.size
        self._springs = _lines(scene, "/springs", _SPRING, thin) if figure.robot.elements else None
        self._cables = _lines(scene, "/cables", _SPRING, thin) if len(figure.cables(self.poses)) else None
        self._rods = _lines(scene, "/rods", rgb(ACCENT), 4.0 * thin) if len(figure.rod_ends(self.poses)) else None
        self._gaps = _lines(scene, "/loops", rgb(ACCENT), 1.5 * thin) if len(figure.loop_ends(self.poses)) else None
        self.show(self.poses)

    def show(self, poses: np.ndarray) -> None:
        """Moves all bodies to their poses, (1 + bodies, 4, 4); bodies that have not moved are not sent again."""
        self.poses = poses
        places = np.concatenate([wxyz_of(poses), poses[:, :3, 3]], axis=1)
        moved = ~(np.abs(places - self._shown).max(axis=1) < _MOVED)
        with self._server.atomic():
            for i in np.flatnonzero(moved):
                frame = self._frames[i]
                frame.wxyz, frame.position = places[i, :4], places[i, 4:]
            for lines, points in (
                (self._springs, self.figure.springs),
                (self._cables, self.figure.cables),
                (self._rods, self.figure.rod_ends),
                (self._gaps, self.figure.loop_ends),
            ):
                if lines is not None:
                    lines.points = points(poses).astype(np.float32)
        self._shown[moved] = places[moved]

    def colour(self, colouring: Colouring) -> None:
        """Colours all bodies by another rule."""
        self._colouring = colouring
        self._paint()

    def see_through(self, wanted: bool) -> None:
        """Makes all bodies transparent or not, so that forces and loops within them are seen."""
        self._see_through = wanted
        self._paint()

    def highlight(self, bodies: Iterable[str]) -> None:
        """Makes all bodies but these transparent; no body if none is given."""
        self.highlighted = frozenset(bodies)
        self._paint()

    def _paint(self) -> None:
        with self._server.atomic():
            colours = self.figure.colours(self._colouring)
            for solid, mesh, colour in zip(self.figure.solids, self._meshes, colours, strict=True):
                faint = bool(self.highlighted) and solid.body not in self.highlighted
                mesh.color = rgb(colour)
                opacity = _FAINT if faint else float(colour[3]) * (_GLASS if self._see_through else 1.0)
                mesh.opacity = None if opacity >= 1.0 else opacity

    def on_click(self, callback: Callable[[str], None]) -> None:
        """Calls a function with the name of a body that is clicked; the body under the cursor is outlined."""
        for solid, mesh in zip(self.figure.solids, self._meshes, strict=True):
            if solid.body != GROUND:
                mesh.on_click(lambda _, body=solid.body: callback(body))

    def on_drag(self, callback: Callable[[str, Any], None]) -> None:
        """Calls a function with the name of a body and the event while it is dragged."""
        for solid, mesh in zip(self.figure.solids, self._meshes, strict=True):
            if solid.body != GROUND:

                async def dragged(event: Any, body: str = solid.body) -> None:  # in order, as coroutines are called
                    callback(body, event)

                mesh.on_drag("left")(dragged)


def dress(server: ViserServer, figure: Figure, low: np.ndarray, high: np.ndarray) -> None:
    """Adds light, the ground, and a camera that sees all between two corners, 3 each, m."""
    scene, up = server.scene, figure.up
    scene.set_up_direction(tuple(up))
    scene.world_axes.visible = False
    camera = Camera.around(low, high, up)
    server.initial_camera.up = tuple(up)
    server.initial_camera.position = tuple(camera.position)
    server.initial_camera.look_at = tuple(camera.target)
    server.initial_camera.fov = camera.field
    away = float(np.linalg.norm(camera.position - camera.target))
    server.initial_camera.near, server.initial_camera.far = 0.005 * away, 100.0 * away
    _light(scene, camera)
    extent = float(np.linalg.norm(high - low))
    cell = grid_cell(extent)
    for k, (rotation, place) in enumerate(_grounds(figure, low, high)):
        scene.add_grid(
            f"/floor{k or ''}",
            plane="xy",
            cell_size=cell,
            section_size=5.0 * cell,
            cell_color=(214, 218, 224),
            section_color=(176, 182, 192),
            infinite_grid=True,
            fade_distance=7.0 * away,
            fade_strength=1.6,
            plane_color=(246, 247, 249),
            plane_opacity=1.0,
            shadow_opacity=0.22,
            wxyz=wxyz_of(rotation),
            position=tuple(place),
        )


def _light(scene: Any, camera: Camera) -> None:
    """Adds light from the sky and from the camera's side to viser's own light, which casts shadows.

    Viser's default, light from a picture all around, takes seconds a frame without a graphics card.
    """
    scene.configure_environment_map(None)
    scene.configure_default_lights(cast_shadow=True)
    scene.add_light_hemisphere("/lights/sky", sky_color=(255, 255, 255), ground_color=(190, 190, 200), intensity=2.4)
    back = camera.position - camera.target
    aside = np.cross(camera.up, back)
    scene.add_light_directional("/lights/front", intensity=0.9, position=tuple(back - 0.6 * aside + 0.5 * camera.up))


def _grounds(figure: Figure, low: np.ndarray, high: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rotations and places of grids: floors, or else the level of the lowest point."""
    planes = [shape for shape in figure.planes if figure.robot.tree.place[shape.body][0] == 0]
    if planes:
        place = figure.robot.tree.place
        poses = []
        for shape in planes:
            X = shape.at @ place[shape.body][1]
            poses.append((np.asarray(X.E).T, np.asarray(X.r)))
        return poses
    level = min(float(low @ figure.up), float(high @ figure.up))
    return [(turned_to(figure.up), (level - 0.01 * figure.size) * figure.up)]


def wxyz_of(poses: np.ndarray) -> np.ndarray:
    """The quaternions of poses or rotations, (..., 4), with the scalar first."""
    R = np.moveaxis(poses[..., :3, :3], (-2, -1), (0, 1))
    x, y, z = R[0, 0], R[1, 1], R[2, 2]
    u, v, w = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    a, b, c = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    products = [
        [1 + x + y + z, u, v, w],
        [u, 1 + x - y - z, a, b],
        [v, a, 1 - x + y - z, c],
        [w, b, c, 1 - x - y + z],
    ]  # 4 times those of the entries of the quaternion, of which the row with the largest square is exact
    rows = np.moveaxis(np.array(products), (0, 1), (-2, -1))
    largest = np.diagonal(rows, axis1=-2, axis2=-1).argmax(axis=-1)
    quaternions = np.take_along_axis(rows, largest[..., None, None], axis=-2)[..., 0, :]
    return quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)


def rgb(colour: Any) -> tuple[int, int, int]:
    """Red, green and blue from 0 to 255."""
    red, green, blue = (round(255 * float(min(max(x, 0.0), 1.0))) for x in colour[:3])
    return red, green, blue


def linear_rgb(colour: Any) -> tuple[int, int, int]:
    """Red, green and blue for objects that viser draws in batches, such as arrows: it takes these colours as linear."""
    return rgb([x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in map(float, colour[:3])])


def _lines(scene: Any, name: str, colour: tuple[int, int, int], thickness: float) -> Any:
    return scene.add_line_segments(name, np.zeros((1, 2, 3)), colour, thickness=thickness)


def _node(body: str) -> str:
    """The name of a body's node: a slash in it would make a branch of the scene's tree."""
    return f"/robot/{body.replace('/', '∕')}"
