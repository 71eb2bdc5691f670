"""Resolving the file names of meshes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["Resolver"]


class Resolver:
    """Finds meshes, without opening them.

    Paths are relative to the folder of the robot's file. `package://NAME/...` is relative to a folder that the user
    named, or to the nearest one above the file that has this name or contains a package.xml.
    """

    def __init__(self, file: Path, packages: Mapping[str, Path]) -> None:
        self.folder, self.packages = file.resolve().parent, {name: path.resolve() for name, path in packages.items()}
        self.absent: list[str] = []  # names of files that do not exist
        self.outside: list[str] = []  # names of files outside the allowed folders

    def __call__(self, name: str) -> Path | None:
        """The path of a file; None if it is outside the robot's folder and the named packages."""
        path, allowed = self._path(name.replace("\\", "/"))
        try:
            path = path.resolve()
        except (OSError, ValueError):  # not a valid file name
            self.absent.append(name)
            return None
        if not any(path.is_relative_to(folder) for folder in allowed):
            self.outside.append(name)
            return None
        if not _is_file(path):
            self.absent.append(name)
        return path

    def _path(self, name: str) -> tuple[Path, list[Path]]:
        """The path of a file, and the folders in which it may be."""
        allowed = [self.folder, *self.packages.values()]
        package = re.match(r"(?:package|model)://([^/]*)/*(.*)", name)
        if package is None:
            return self.folder / name.removeprefix("file://"), [*allowed, *self._package_folders()]
        if package[1] in self.packages:
            return self.packages[package[1]] / package[2], allowed
        for above in (self.folder, *self.folder.parents):
            if package[1] and above.name == package[1]:
                return above / package[2], [above]
        for above in self._package_folders():
            return above / package[2], [above]
        return self.folder / package[2], allowed

    def _package_folders(self) -> list[Path]:
        """The folder of the package that the file belongs to, if there is one."""
        folders = [above for above in (self.folder, *self.folder.parents) if (above / "package.xml").is_file()]
        return folders[:1]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # not a valid file name
        return False
