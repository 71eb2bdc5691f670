"""The files that make a model in MJCF, looked at before MuJoCo sees them.

A model includes files, attaches other models and names meshes. All of them must lie in its own folder, or in one that
the user has named, so that a file from elsewhere reads nothing that it should not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from coupler.io.xml import Element, parse_file
from coupler.model import ModelError

__all__ = ["Files"]

_MOST = 200  # files that a model may include


class Files:
    """All elements of a model, those of included files and attached models among them.

    Attributes:
        root: of the main file.
        elements: in the order in which MuJoCo reads them.
    """

    def __init__(self, root: Element, packages: Mapping[str, Path]) -> None:
        """Follows the model through its files.

        Raises:
            ModelError: for a file outside of the allowed folders, one that cannot be read, and a circle.
        """
        self.root, self.elements = root, list[Element]()
        self._allowed = [_real(root.file.parent), *(_real(Path(folder)) for folder in packages.values())]
        self._folders: list[Path] = []
        self._strip = False
        self._follow(root, ())
        self._named: dict[tuple[str, str], Element] = {}
        for element in self.elements:
            self._named.setdefault((element.tag, element.attributes.get("name", "")), element)

    def where(self, tag: str, name: str) -> Element:
        """The element with that name; the root where it has none."""
        return self._named.get((tag, name), self.root) if name else self.root

    def accused(self, tag: str, name: str, line: int) -> Element:
        """The element that MuJoCo finds fault with, as far as that is clear: it names lines, but no files."""
        found = [e for e in self.elements if tag in ("", e.tag) and name in ("", e.attributes.get("name"))]
        there = [e for e in found if e.line == line]
        if not name and any(element.file != self.root.file for element in self.elements):
            return self.root
        return there[0] if there else found[0] if name and len(found) == 1 else self.root

    def locate(self, file: str, folder: str) -> Path | None:
        """The path of a mesh, for its file and folder as MuJoCo has them; None where there is no such file."""
        names = (file, PurePosixPath(_plain(file)).name) if self._strip else (file,)
        for path in (own / _plain(folder) / _plain(name) for own in self._folders for name in names):
            if os.path.isfile(path):
                return _real(path)
        return None

    def undefined(self) -> Element | None:
        """The first element with a number that is none."""
        values = ((e, name, value) for e in self.elements for name, value in e.attributes.items())
        return next((e for e, name, value in values if name != "name" and "nan" in value.lower().split()), None)

    def _follow(self, root: Element, above: tuple[Path, ...]) -> None:
        """Takes in a model: what it includes, in place, and what it attaches."""
        folder, own = root.file.parent, _real(root.file)
        self._folders.append(folder)
        elements = list(self._expanded(root, folder, {own}))
        self.elements += elements
        directories = self._directories(elements)
        for element in elements:
            for attribute, text in element.attributes.items():
                if attribute.startswith("file") and element.tag != "include":
                    path = self._asset(element, _plain(text.strip()), root, directories)
                    if element.tag == "model":
                        if path in (*above, own):
                            raise element.error(f"the model attaches itself by way of {text!r}")
                        with element.blamed():
                            attached = parse_file(path)
                        self._follow(attached, (*above, own))

    def _expanded(self, root: Element, folder: Path, seen: set[Path]) -> Iterator[Element]:
        """The elements of a file, and those of what it includes."""
        for element in root.walk():
            yield element
            if element.tag != "include":
                continue
            text = _plain(element.require("file"))
            places = folder / text, element.file.parent / text  # MuJoCo looks in the main file's folder first
            path = self._allow(element, next((place for place in places if os.path.exists(place)), places[0]))
            if path in seen:
                raise element.error(f"{text!r} is included already: a file may be included once, and not by itself")
            if len(seen) > _MOST:
                raise element.error(f"the model includes more than {_MOST} files")
            seen.add(path)
            with element.blamed():
                included = parse_file(path)
            yield from self._expanded(included, folder, seen)

    def _directories(self, elements: list[Element]) -> dict[str, str]:
        """Where meshes and textures are; of several settings the last counts."""
        found = {"meshdir": "", "texturedir": ""}
        for element in elements:
            if element.tag == "compiler":
                found |= dict.fromkeys(found, element.get("assetdir")) if element.has("assetdir") else {}
                found |= {name: element.get(name) for name in found if element.has(name)}
                self._strip = element.flag("strippath", self._strip)
        return {name: _plain(text) for name, text in found.items()}

    def _asset(self, element: Element, text: str, root: Element, directories: Mapping[str, str]) -> Path:
        """The path of an asset, wherever MuJoCo may look for it."""
        folder, own = root.file.parent, PurePosixPath(text).name if self._strip else text
        if element.tag == "model":
            return self._allow(element, folder / text)
        path = folder / directories["texturedir" if element.tag == "texture" else "meshdir"] / own
        if element.file != root.file and not os.path.exists(path):
            path = element.file.parent / own
        if element.tag not in ("mesh", "texture", "hfield"):
            self._allow(element, folder / own)
        return self._allow(element, path)

    def _allow(self, element: Element, path: Path) -> Path:
        real = _real(path)
        if not any(real.is_relative_to(folder) for folder in self._allowed):
            raise element.error(
                f"it leads to {real}, outside of the model's folder {self._allowed[0]}: move the file there, or name "
                "its folder in packages={'any name': folder}"
            )
        return real


def _plain(text: str) -> str:
    return text.replace("\\", "/")


def _real(path: Path) -> Path:
    """Without links and dots."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: it is no path: {error}") from None
