"""Expanding xacro into URDF, in a process of its own: a job for `coupler.children`; it imports nothing of ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.parsers import expat


def prepare() -> None:
    """Imports all that expanding may need, before the folders that it may read are restricted."""
    import glob  # noqa: F401
    import math  # noqa: F401

    import xacro  # noqa: F401
    import xacrodoc  # noqa: F401
    import yaml  # noqa: F401


def run(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The URDF that a file expands to.

    Args:
        request: the `file`, the folders of `packages` by name, and `arguments` by name.

    Returns:
        The text, and the names of the arguments that the file and those that it includes have.
    """
    import xacro
    from xacrodoc import XacroDoc, packages

    original, known = xacro.parse, set[str]()

    def parse(text: Any, filename: Any = None) -> Any:
        if filename:
            _refuse_entities(Path(filename).read_bytes(), str(filename))
        document: Any = original(text, filename)
        known.update(element.getAttribute("name") for element in document.getElementsByTagName("xacro:arg"))
        known.update(re.findall(r"\$\(arg\s+([^)\s]+)\s*\)", document.toxml()))
        return document

    xacro.parse = parse
    xacro.init_stacks(request["file"])  # included files are relative to it
    packages.update_package_cache(request["packages"])
    document = XacroDoc.from_file(request["file"], subargs=request["arguments"], resolve_packages=False)
    return {"urdf": document.to_urdf_string(), "arguments": sorted(known)}, {}


def _refuse_entities(data: bytes, name: str) -> None:
    """Refuses included files that declare entities, as `coupler.io.xml` does for the main file."""

    def declared(entity: str, *_: object) -> None:
        raise ValueError(f"{name} declares the entity {entity!r}; entities are refused: write out what they stand for")

    reader = expat.ParserCreate()
    reader.EntityDeclHandler = declared
    reader.Parse(data, True)
