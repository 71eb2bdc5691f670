"""Meshes of a robot that is saved: what its file can refer to, wherever the file and the meshes lie.

Readers look for meshes in the file's folder. A mesh that is there stays where it is; one from elsewhere is copied into
a folder beside the file, NAME_meshes; one that does not exist is left out. Of an STL that is written as text, MJCF gets
a binary copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from coupler.files import read_file, whole_file
from coupler.io.packages import real_path
from coupler.io.stl import binary_stl, is_text_stl
from coupler.io.taken_names import TakenNames
from coupler.model import Mesh, Robot, Shape
from coupler.model.wording import counted, listed

_LARGEST = 512 << 20  # bytes of a mesh


class SavedMeshes:
    """The meshes of a robot that goes to a file.

    Args:
        file: the file that it goes to.
        binary: whether the file's readers take no STL that is written as text.

    Attributes:
        robot: the robot with the future paths of its meshes, and without meshes that cannot be copied.
        copies: the paths of meshes to copy, each with the path of its copy.
        warnings: warnings about meshes that are left out.
    """

    def __init__(self, robot: Robot, file: Path, *, binary: bool = False) -> None:
        self._file, self._names, self._binary = file, TakenNames(), binary
        self.copies: dict[Path, Path] = {}
        lost: list[str] = []
        shapes: list[Shape] = []
        for shape in robot.shapes:
            geometry = shape.geometry
            if isinstance(geometry, Mesh):
                path = self._place(Path(geometry.path))
                if path is None:
                    lost.append(Path(geometry.path).name)
                    continue
                shape = shape if path == Path(geometry.path) else replace(shape, geometry=replace(geometry, path=path))
            shapes.append(shape)
        self.robot = replace(robot, shapes=tuple(shapes)) if lost or self.copies else robot
        names = listed(dict.fromkeys(lost), 3)
        self.warnings = [f"{counted(len(lost), 'mesh', 'meshes')} not found, and left out: {names}"] if lost else []

    def _place(self, path: Path) -> Path | None:
        """The path of a mesh once saved: its own, or that of its copy; None if the mesh is missing."""
        real = real_path(path)
        if real.is_relative_to(real_path(self._file.parent)) and not self._converts(real):
            return path
        if not real.is_file():
            return None
        if real not in self.copies:
            name = self._names.new(real.stem)
            self.copies[real] = self._file.parent / f"{self._file.stem}_meshes" / f"{name}{real.suffix}"
        return self.copies[real]

    def _converts(self, path: Path) -> bool:
        return self._binary and path.suffix.lower() == ".stl" and is_text_stl(path)

    @contextmanager
    def copied(self) -> Iterator[None]:
        """A context in which meshes are copied already; if anything goes wrong in it, the copies go again.

        Raises:
            OSError: for what cannot be copied.
            ModelError: for what cannot be converted.
        """
        made: list[Path] = []
        try:
            for source, target in self.copies.items():
                if not target.parent.exists():
                    target.parent.mkdir()
                    made.append(target.parent)
                made += [] if target.exists() else [target]
                data = read_file(source, _LARGEST)
                if self._converts(source):
                    data = binary_stl(data, source.name)
                with whole_file(target) as file:
                    file.write(data)
            yield
        except BaseException:
            for path in reversed(made):
                with suppress(OSError):
                    path.rmdir() if path.is_dir() else path.unlink()
            raise
