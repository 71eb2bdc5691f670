"""The files of an SDFormat description: the main one, and the models that it includes.

They are in the main file's folder, or in a folder that the user has named. Nothing is fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from coupler.io.limits import ELEMENTS, INCLUDED
from coupler.io.packages import Packages, real_path
from coupler.io.sdf.elements import NAMESPACE
from coupler.io.urdf.meshes import Resolver
from coupler.io.xml import Element, parse_file
from coupler.model import ModelError
from coupler.model.wording import clipped, listed

OLDEST, NEWEST = (1, 4), (1, 11)
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})?")
_URI = re.compile(r"(model|package)://([^/]*)/*(.*)", re.DOTALL)


class Absent(ModelError):
    """An included model that is not there, or may not be read."""


def version_of(root: Element) -> tuple[int, int]:
    """The version of a file, from its root element.

    Raises:
        ModelError: for a version that is not read.
    """
    version = _version(root.require("version"))
    if version < OLDEST or version[0] > NEWEST[0]:
        raise root.error(
            f"its version is {clipped(root.get('version'))}; SDFormat 1.4 to 1.11 is read: convert it by `gz sdf -p`"
        )
    return version


def _version(text: str) -> tuple[int, int]:
    """A version as two numbers; zeros if the text is no version."""
    match = _VERSION.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


class Library:
    """Finds and reads the files of a description.

    Attributes:
        roots: the root elements of the main file, and of all files whose models are included.
    """

    def __init__(self, root: Element, packages: Mapping[str, Path]) -> None:
        self._folder, self._named = real_path(root.file).parent, packages
        self._packages = Packages(root.file, packages)
        self.roots = [_with_names(root)]
        self._parsed = {real_path(root.file): root}
        self._elements = 0
        self._resolvers: dict[Path, Resolver] = {}
        self.count(root, root)

    def count(self, element: Element, at: Element) -> None:
        """Counts an element and all in it towards the limit on the size of a description.

        Raises:
            ModelError: naming the element `at` which the limit is exceeded.
        """
        self._elements += sum(1 for _ in element.walk())
        if self._elements > ELEMENTS:
            raise at.error(f"with what it includes, it has more than {ELEMENTS} elements, the most that are read")

    def included(self, include: Element) -> tuple[Element, Element]:
        """The root element of the file that an <include> names, and the model in it.

        Raises:
            Absent: for a file that is not there or may not be read, or in which there is no model.
            ModelError: for a file that cannot be read.
        """
        path = self._path(include)
        with include.blamed():
            root = self._parse(path)
        if root.tag != "sdf":
            raise include.error(f"{path} is not SDFormat, which begins with <sdf>; only that can be included")
        models = root.all("model")
        if len(models) != 1:
            names = listed(model.get("name") for model in models)
            raise _absent(include, f"{path} must hold one model to be included; it holds {names or 'none'}")
        self.count(models[0], include)
        self.roots += [] if root in self.roots else [root]
        return root, models[0]

    def _parse(self, path: Path) -> Element:
        """The root element of a file; each file is read only once."""
        if path not in self._parsed:
            if len(self._parsed) > INCLUDED:
                raise ModelError(f"it includes more than {INCLUDED} files, the most that are read")
            self._parsed[path] = _with_names(parse_file(path))
        return self._parsed[path]

    def resolver(self, file: Path) -> Resolver:
        """The resolver that finds the meshes of a file."""
        if file not in self._resolvers:
            self._resolvers[file] = Resolver(file, self._named, within=self._folder)
        return self._resolvers[file]

    def resolvers(self) -> Iterator[Resolver]:
        yield from self._resolvers.values()

    def _path(self, include: Element) -> Path:
        uri = include.need("uri")
        name = uri.word().replace("\\", "/")
        if not name:
            raise uri.error("it names no file")
        uri_parts = _URI.match(name)
        if "://" in name and uri_parts is None and not name.startswith("file://"):
            raise _absent(
                uri, f"{name!r} is not downloaded: put the model into the file's folder, and include it by its path"
            )
        with uri.blamed():
            folder = include.file.parent
            if uri_parts is None:
                path = real_path(folder / name.removeprefix("file://"))
            else:
                path = real_path(self._place(uri_parts[2], folder) / uri_parts[3])
            if self._packages.allows(path) and os.path.isdir(path):
                path = real_path(path / self._main_file(path))
        if not self._packages.allows(path):
            raise uri.error(f"{name!r} leads to {path}, outside the file's folder; name its folder in packages={{...}}")
        if not os.path.isfile(path):
            hint = f"; name the folder of {uri_parts[2]!r} in packages={{...}}" if uri_parts else ""
            raise _absent(uri, f"there is no file {path}{hint}")
        return path

    def _place(self, name: str, folder: Path) -> Path:
        """The folder of a model: a package's folder, the including file's own, or one in the main file's folder."""
        usual = folder if name and real_path(folder).name == name else self._folder / name
        return self._packages.named.get(name, usual)

    def _main_file(self, folder: Path) -> str:
        """The file of a model's folder: the one of the newest version that its model.config names, or model.sdf."""
        config = real_path(folder / "model.config")
        if not self._packages.allows(config) or not os.path.isfile(config):
            return "model.sdf"
        versions = [(_version(file.get("version")), file.word()) for file in self._parse(config).all("sdf")]
        fitting = [entry for entry in versions if entry[0] <= NEWEST] or versions
        return max(fitting, default=((0, 0), "model.sdf"))[1] or "model.sdf"


def _with_names(root: Element) -> Element:
    """Gives coupler's own elements the attribute `name`; files hide their names in an attribute others do not read."""
    ours = f"{NAMESPACE}:name"
    for element in root.walk():
        if element.tag.startswith(f"{NAMESPACE}:") and element.has(ours) and not element.has("name"):
            element.attributes["name"] = element.attributes.pop(ours)
    return root


def _absent(element: Element, message: str) -> Absent:
    return Absent(str(element.error(message)))
