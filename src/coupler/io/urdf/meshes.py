"""Where the files that a robot's file names are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["Resolver"]


class Resolver:
    """Finds meshes, without opening them.

    A path counts from the folder of the robot's file. `package://NAME/...` counts from a folder that the user named, or
    else from the nearest one above the file that has this name or holds a package.xml.
    """

    def __init__(self, file: Path, packages: Mapping[str, Path]) -> None:
        self.folder, self.packages = file.resolve().parent, {name: path.resolve() for name, path in packages.items()}
        self.absent: list[str] = []  # what is not there
        self.outside: list[str] = []  # what lies elsewhere

    def __call__(self, name: str) -> Path | None:
        """The path that a file name means; None for one outside of the robot's and the named folders."""
        path, allowed = self._path(name.replace("\\", "/"))
        try:
            path = path.resolve()
        except (OSError, ValueError):  # a name that no file can have
            self.absent.append(name)
            return None
        if not any(path.is_relative_to(folder) for folder in allowed):
            self.outside.append(name)
            return None
        if not _is_there(path):
            self.absent.append(name)
        return path

    def _path(self, name: str) -> tuple[Path, list[Path]]:
        """A path, and the folders that it may be in."""
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
        """The package that the file belongs to, if it belongs to one."""
        found = [above for above in (self.folder, *self.folder.parents) if (above / "package.xml").is_file()]
        return found[:1]


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False
