"""Where a robot's file may lead: its own folder, the packages that the user names, and the package that it belongs to.

A file belongs to the package whose folder is the nearest above it with a package.xml; the package goes by the name that
is given there, and by the folder's. Every other folder, whatever it is called, is outside. Symbolic links are resolved
before a path is judged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from coupler.io.xml import parse_file
from coupler.model import ModelError


class Packages:
    """The folders that a robot's file may lead to.

    Attributes:
        folder: the file's folder.
        within: the folder of the main file, if other files include this one.
        named: folders of packages by name: those that the user names, and the one that the file belongs to.
        package: the folder of the package that the file belongs to, or None.
    """

    def __init__(self, file: Path, named: Mapping[str, Path], within: Path | None = None) -> None:
        """Finds the folders for a file.

        Args:
            named: folders by name, as the user gives them.
            within: the folder of the main file, without links, where the file is included by another.
        """
        self.folder, self.within = real_path(file).parent, within
        above = (self.folder, *self.folder.parents)
        self.package = next((folder for folder in above if os.path.isfile(folder / "package.xml")), None)
        self.named = {} if self.package is None else dict.fromkeys(_names(self.package), self.package)
        self.named |= {name: real_path(path) for name, path in named.items()}

    @property
    def allowed(self) -> list[Path]:
        """All folders that the file may lead to."""
        main = [] if self.within is None else [self.within]
        return list(dict.fromkeys([self.folder, *main, *self.named.values()]))

    def allows(self, path: Path) -> bool:
        """Whether a path without links is in one of the folders."""
        return any(path.is_relative_to(folder) for folder in self.allowed)


def real_path(path: Path) -> Path:
    """A path without symbolic links and dots.

    Raises:
        ModelError: for what cannot be a path.
    """
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: it is not a path: {error}") from None


def _names(folder: Path) -> list[str]:
    """The names of the package in a folder."""
    try:
        inside = parse_file(folder / "package.xml").find("name")
    except ModelError:  # it cannot be read, and so gives no name
        inside = None
    return list(dict.fromkeys(name for name in (folder.name, inside.word() if inside else "") if name))
