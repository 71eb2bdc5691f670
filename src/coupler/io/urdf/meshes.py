"""Resolving the file names of meshes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from coupler.io.packages import Packages, real_path
from coupler.model import ModelError
from coupler.model.wording import clipped, counted, listed

_PACKAGE = re.compile(r"(?:package|model)://([^/]*)/*(.*)", re.DOTALL)


class Resolver:
    """Finds meshes, without opening them.

    Paths are relative to the folder of the robot's file. `package://NAME/...` is relative to a folder that the user
    named, to that of the package that the file belongs to if it has this name, to one of this name in the main file's
    folder where files include others, and else to the file's folder.

    Attributes:
        absent: names of files that do not exist.
        unknown: names of packages that files refer to, but that the user has not named.
        outside: names of files outside the allowed folders, and their paths.
        above: the folder of the package that the file belongs to, if meshes are there and not beside the file.
    """

    def __init__(self, file: Path, packages: Mapping[str, Path], within: Path | None = None) -> None:
        self._packages = Packages(file, packages, within)
        self._named = [real_path(folder) for folder in packages.values()]
        self.absent: list[str] = []
        self.unknown: set[str] = set()
        self.outside: dict[str, Path] = {}
        self.above: Path | None = None

    def __call__(self, name: str) -> Path | None:
        """The path of a file; None if it is outside the robot's folder and the packages."""
        try:
            path = real_path(self._path(name.replace("\\", "/")))
        except ModelError:  # not a valid file name
            self.absent.append(name)
            return None
        if not self._packages.allows(path):
            self.outside[name] = path
            return None
        if not os.path.isfile(path):
            self.absent.append(name)
            package = _PACKAGE.match(name)
            self.unknown |= {package[1]} - {"", *self._packages.named} if package else set()
        elif not any(path.is_relative_to(folder) for folder in (self._packages.folder, *self._named)):
            self.above = self._packages.package
        return path

    def _path(self, name: str) -> Path:
        folder = self._packages.folder
        package = _PACKAGE.match(name)
        if package is None:
            return folder / name.removeprefix("file://")
        usual = folder if package[1] else self._packages.package or folder  # some exporters leave out the name
        if self._packages.within is not None and package[1] and os.path.isdir(self._packages.within / package[1]):
            usual = self._packages.within / package[1]
        return self._packages.named.get(package[1], usual) / package[2]

    def warnings(self) -> list[str]:
        """Warnings about meshes that are missing, or outside the allowed folders."""
        warnings = []
        if self.absent:
            names = listed(dict.fromkeys(name.rsplit("/", 1)[-1] for name in self.absent), 3)
            unknown = listed(sorted(self.unknown), 3)
            hint = f"; name the folder of {unknown} in packages={{...}}" if self.unknown else ""
            warnings.append(f"{counted(len(self.absent), 'mesh', 'meshes')} not found: {names}{hint}")
        if self.outside:
            where = clipped(next(iter(self.outside.values())), 1000, quote=False)
            warnings.append(
                f"{counted(len(self.outside), 'mesh', 'meshes')} outside the file's folder left out: "
                f"{listed(self.outside, 3)}; the first leads to {where}: name its folder in packages={{...}}"
            )
        return warnings
