"""The files that make up a model in MJCF, checked before MuJoCo opens them.

A model includes files, attaches other models and names meshes. All of them must be in its own folder, or in one that
the user has named, so that an untrusted file cannot read anything else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from coupler.io.limits import INCLUDED
from coupler.io.mjcf.amounts import check_amounts
from coupler.io.packages import real_path
from coupler.io.xml import Element, parse_file


class Files:
    """All elements of a model, those of included files and attached models among them.

    Attributes:
        root: the root element of the main file.
        elements: all elements, in the order in which MuJoCo reads them.
    """

    def __init__(self, root: Element, packages: Mapping[str, Path]) -> None:
        """Follows the model through its files.

        Args:
            root: the root element of the main file.
            packages: folders by name, in which files may also be.

        Raises:
            ModelError: for a file outside the allowed folders, one that cannot be read, a circular inclusion, and a
                model beyond the limits.
        """
        self.root, self.elements = root, list[Element]()
        self._allowed = [real_path(root.file.parent), *(real_path(Path(folder)) for folder in packages.values())]
        self._folders: list[Path] = []
        self._strip = False
        self._included: dict[Element, Element] = {}
        self._follow(root, ())
        check_amounts(root, self._included)
        self._named: dict[tuple[str, str], Element] = {}
        for element in self.elements:
            self._named.setdefault((element.tag, element.attributes.get("name", "")), element)

    def where(self, tag: str, name: str) -> Element:
        """The element with this tag and name; the root if there is none."""
        return self._named.get((tag, name), self.root) if name else self.root

    def blamed_element(self, tag: str, name: str, line: int) -> Element:
        """The element that MuJoCo complains about, or the root if that is unclear: MuJoCo names lines, but no files."""
        candidates = [e for e in self.elements if tag in ("", e.tag) and name in ("", e.attributes.get("name"))]
        on_line = [e for e in candidates if e.line == line]
        if not name and any(element.file != self.root.file for element in self.elements):
            return self.root
        return on_line[0] if on_line else candidates[0] if name and len(candidates) == 1 else self.root

    @property
    def places(self) -> dict[str, Any]:
        """The folders in which meshes may be, as `compiling.locate` takes them."""
        return {"places": [str(folder.absolute()) for folder in self._folders], "strip": self._strip}

    @property
    def allowed(self) -> list[Path]:
        """The folders that may be read: the main file's, its target's if it is a link, and the user's packages."""
        return [*self._allowed, real_path(self.root.file).parent]

    def undefined(self) -> Element | None:
        """The first element with a NaN."""
        values = ((e, name, value) for e in self.elements for name, value in e.attributes.items())
        return next((e for e, name, value in values if name != "name" and "nan" in value.lower().split()), None)

    def _follow(self, root: Element, above: tuple[Path, ...]) -> None:
        """Adds the elements of a model, of files that it includes (in place), and of models that it attaches."""
        folder, file = root.file.parent, real_path(root.file)
        self._folders.append(folder)
        elements = list(self._expanded(root, folder, {file}))
        self.elements += elements
        directories = self._directories(elements)
        for element in elements:
            for attribute, text in element.attributes.items():
                if attribute.startswith("file") and element.tag != "include":
                    path = self._asset(element, _plain(text.strip()), root, directories)
                    if element.tag == "model":
                        if path in (*above, file):
                            raise element.error(f"the model attaches itself by way of {text!r}")
                        with element.blamed():
                            attached = parse_file(path)
                        self._follow(attached, (*above, file))

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
            if len(seen) > INCLUDED:
                raise element.error(f"the model includes more than {INCLUDED} files")
            seen.add(path)
            with element.blamed():
                included = self._included[element] = parse_file(path)
            yield from self._expanded(included, folder, seen)

    def _directories(self, elements: list[Element]) -> dict[str, str]:
        """The folders of meshes and textures; of several settings the last one counts."""
        folders = {"meshdir": "", "texturedir": ""}
        for element in elements:
            if element.tag == "compiler":
                folders |= dict.fromkeys(folders, element.get("assetdir")) if element.has("assetdir") else {}
                folders |= {name: element.get(name) for name in folders if element.has(name)}
                self._strip = element.flag("strippath", self._strip)
        return {name: _plain(text) for name, text in folders.items()}

    def _asset(self, element: Element, text: str, root: Element, directories: Mapping[str, str]) -> Path:
        """The path of an asset, wherever MuJoCo may look for it."""
        folder, name = root.file.parent, PurePosixPath(text).name if self._strip else text
        if element.tag == "model":
            return self._allow(element, folder / text)
        path = folder / directories["texturedir" if element.tag == "texture" else "meshdir"] / name
        if element.file != root.file and not os.path.exists(path):
            path = element.file.parent / name
        if element.tag not in ("mesh", "texture", "hfield"):
            self._allow(element, folder / name)
        return self._allow(element, path)

    def _allow(self, element: Element, path: Path) -> Path:
        real = real_path(path)
        if not any(real.is_relative_to(folder) for folder in self._allowed):
            raise element.error(
                f"it leads to {real}, outside the model's folder, {self._allowed[0]}: move the file there, or name "
                "its folder in packages={'any name': folder}"
            )
        return real


def _plain(text: str) -> str:
    return text.replace("\\", "/")
