"""Pictures and films of a run without a browser: PNG, GIF, and MP4 where ffmpeg is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

from coupler.files import whole_path
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.model.outputs import check_target, unwritten
from coupler.model.tree import GROUND
from coupler.simulate import Log
from coupler.view.arrows import COLOUR, HEAD, HEAD_LENGTH, SHAFT, arrow_extents
from coupler.view.camera import Camera, grid_cell
from coupler.view.figure import Colouring, Figure, Surface
from coupler.view.figure.surface import bar, cone, joined
from coupler.view.plotting import matplotlib_module
from coupler.view.raster import Painted, picture
from coupler.view.recording import Recording
from coupler.view.skeleton import outline

_GRID, _SHADOW = np.array([0.80, 0.82, 0.86]), np.array([0.87, 0.88, 0.90])
_LIGHT = np.array([0.35, -0.25, 1.0])  # shadows fall along it, whose last entry is along up
_ABOVE = 5e-4  # of the robot's size: how far shadows are above the ground
_MOST = 1800  # frames


def render(
    robot: Robot,
    log: Log,
    path: str | Path,
    *,
    time: float | None = None,
    size: tuple[int, int] | None = None,
    frames_per_second: float = 20.0,
    speed: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Draws a run: one instant as ".png", or all of it as ".gif" or ".mp4".

    Args:
        path: the file to write.
        time: the instant of a PNG, s; the last one, if not given.
        size: width and height, px; 960 × 640 for a picture and 480 × 320 for a film, if not given.
        frames_per_second: frame rate of the film.
        speed: speed of the run in the film; 0.1 is ten times slower.
        progress: called with the number of finished frames and the number of all frames.

    Returns:
        The path.

    Raises:
        ModelError: for another suffix, a log that cannot be shown, a path that cannot be written to, and without
            matplotlib or, for MP4, ffmpeg.
    """
    path, recording = check_target(path), Recording.of(robot, log)
    write = {".png": _save_png, ".gif": _save_gif, ".mp4": _save_mp4}.get(path.suffix.lower())
    if write is None:
        raise ModelError(f"{path}: pictures are .png, and films .gif or .mp4, by the suffix of the file")
    usual = (960, 640) if path.suffix.lower() == ".png" else (480, 320)
    width, height = numbers("size", usual if size is None else size, (2,)).astype(int).tolist()
    if not (16 <= width <= 8192 and 16 <= height <= 8192):
        raise ModelError(f"size: width and height must be from 16 to 8192 px, got {width} × {height}")
    if not (frames_per_second > 0.0 and speed > 0.0):
        raise ModelError("frames_per_second and speed must be above zero")
    if time is not None and not recording.start <= time <= recording.end:
        raise ModelError(f"time: the log goes from {recording.start:g} to {recording.end:g} s, got {time:g}")
    if path.suffix.lower() == ".png":
        rows = np.array([recording.row(recording.end if time is None else time)])
    else:
        rows = recording.frames(frames_per_second / speed, _MOST)
    stage = Stage(recording, (width - width % 2, height - height % 2))

    def frames() -> Iterator[np.ndarray]:
        for done, row in enumerate(rows):
            yield np.round(255.0 * stage.draw(int(row))).astype(np.uint8)
            if progress is not None:
                progress(done + 1, len(rows))

    try:
        with whole_path(path, path.suffix.lower()) as temporary:
            write(temporary, frames(), frames_per_second)
    except OSError as error:
        raise unwritten(path, error) from None
    return path


class Stage:
    """A robot, the ground, and a camera that sees all of a run."""

    def __init__(self, recording: Recording, size: tuple[int, int], colouring: Colouring | None = None) -> None:
        self.figure, self._recording, self._size = Figure(recording.robot), recording, size
        self._colours = self.figure.colours(colouring or self.figure.default_colouring())
        rows = np.unique(np.linspace(0, len(recording.times) - 1, 12).astype(int))
        bounds = [self.figure.bounds(poses) for poses in self.figure.poses(recording.q[rows])]
        self._low, self._high = np.min([b[0] for b in bounds], axis=0), np.max([b[1] for b in bounds], axis=0)
        self.camera = Camera.around(self._low, self._high, self.figure.up, size[0] / size[1])
        self._scale = recording.force_scale(self.figure.size)
        self._level = self._ground_level()
        self._grid = Painted(self._lines(), _GRID, lit=False)

    def draw(self, row: int) -> np.ndarray:
        """The picture of a row, height × width × 3, from 0 to 1."""
        figure, poses = self.figure, self.figure.poses(self._recording.q[row])
        painted = [self._grid, *self._shadows(poses)]
        for solid, colour in zip(figure.solids, self._colours, strict=True):
            T = figure.pose(poses, solid.body)
            painted.append(Painted(solid.surface.moved(T[:3, :3], T[:3, 3]), colour[:3], solid.flat))
        thin = 0.0018 * figure.size
        for lines in (figure.springs(poses), figure.rod_ends(poses), figure.cables(poses)):
            if len(lines):
                painted.append(Painted(joined(bar(a, b, thin) for a, b in lines if (a != b).any()), _GRID * 0.5))
        points, forces = self._recording.pressed(row)
        if len(points):
            extents = arrow_extents(forces, self._scale, figure.size)
            arrows = joined(self._arrow(*each) for each in zip(points, extents, strict=True))
            painted.append(Painted(arrows, np.array(COLOUR)))
        return picture(painted, self.camera, *self._size)

    def _ground_level(self) -> float:
        """The height of the ground, along up, m: of a level floor, or of the robot's lowest point."""
        up = self.figure.up
        for shape in self.figure.planes:
            link, X = self._recording.robot.tree.place[shape.body]
            at = shape.at @ X
            if link == 0 and at.E[2] @ up > 0.999:
                return float(at.r @ up)
        return min(float(self._low @ up), float(self._high @ up)) - 0.01 * self.figure.size

    def _lines(self) -> Surface:
        """A grid on the ground, around the robot."""
        up = self.figure.up
        a, b = (axis for axis in np.eye(3) if not axis @ up)
        extent = float(np.linalg.norm(self._high - self._low))
        cell = grid_cell(extent)
        middle = (self._low + self._high) / 2
        count = int(np.clip(np.ceil(1.5 * extent / cell), 5, 20))
        wide = 0.0012 * extent
        centre = cell * np.round((middle @ a) / cell) * a + cell * np.round((middle @ b) / cell) * b + self._level * up
        strips = []  # from crossing to crossing: long triangles would take long to draw
        for along, across in ((a, b), (b, a)):
            for i, j in product(range(-count, count + 1), range(-count, count)):
                ends = [centre + cell * (i * across + (j + side) * along) for side in (0.0, 1.0)]
                corners = [end + side * wide * across for end in ends for side in (-1.0, 1.0)]
                strips.append(Surface(np.array(corners), np.array([[0, 1, 2], [1, 3, 2]])))
        return joined(strips)

    def _shadows(self, poses: np.ndarray) -> list[Painted]:
        """The shadows of solids on the ground, as convex outlines just above it."""
        up, shadows = self.figure.up, []
        a, b = (axis for axis in np.eye(3) if not axis @ up)
        for solid in self.figure.solids:
            if solid.body == GROUND:
                continue
            T = self.figure.pose(poses, solid.body)
            points = solid.surface.vertices @ T[:3, :3].T + T[:3, 3]
            heights = points @ up - self._level
            points, heights = points[heights > 0.0], heights[heights > 0.0]
            flat = np.stack([points @ a + _LIGHT[0] * heights, points @ b + _LIGHT[1] * heights], axis=1)
            corners = outline(flat) if len(flat) else flat
            if len(corners) > 2:
                above = (self._level + _ABOVE * self.figure.size) * up
                around = corners[:, :1] * a + corners[:, 1:] * b + above
                count = len(around) - 2
                fan = np.stack([np.zeros(count, int), np.arange(count) + 1, np.arange(count) + 2], axis=1)
                shadows.append(Surface(around, fan))
        return [Painted(joined(shadows), _SHADOW, lit=False)] if shadows else []

    def _arrow(self, point: np.ndarray, extent: np.ndarray) -> Surface:
        size, tip = self.figure.size, point + extent
        neck = tip - extent * min(0.9, HEAD_LENGTH * size / float(np.linalg.norm(extent)))
        return joined([bar(point, neck, SHAFT * size), cone(neck, tip, HEAD * size)])


def _save_png(path: Path, frames: Iterator[np.ndarray], per_second: float) -> None:
    matplotlib_module("matplotlib.image").imsave(path, next(frames), format="png")


def _save_gif(path: Path, frames: Iterator[np.ndarray], per_second: float) -> None:
    Image = matplotlib_module("PIL.Image")  # which matplotlib brings
    first, *rest = [Image.fromarray(frame).convert("P", palette=Image.Palette.ADAPTIVE) for frame in frames]
    first.save(
        path, format="GIF", save_all=True, append_images=rest, duration=max(round(1000 / per_second), 20), loop=0
    )


def _save_mp4(path: Path, frames: Iterator[np.ndarray], per_second: float) -> None:
    program = shutil.which("ffmpeg")
    if program is None:
        raise ModelError(f"{path.suffix} films need the program ffmpeg, which is not installed; a .gif needs none")
    first = next(frames)
    shape = f"{first.shape[1]}x{first.shape[0]}"
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", shape, "-r", f"{per_second:g}", "-i", "-"]
    wanted = ["-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", str(path)]
    command = [program, "-loglevel", "error", "-y", *given, *wanted]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        try:
            for frame in (first, *frames):
                process.stdin.write(frame.tobytes())
            process.stdin.close()
        except BrokenPipeError:
            pass  # its messages say why
        messages = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
    if process.returncode:
        raise ModelError(f"ffmpeg could not write the film: {messages[-1] if messages else process.returncode}")
