"""Expanding xacro into URDF, with xacrodoc, if the user asks for it.

Macros are programs: what stands in `${...}` is Python, and there are ways out of any fence that is built in Python. So
they are expanded only on request, and then in a process that may read the file's folder and named packages, and do
nothing else: see `coupler.children`.
"""

from __future__ import annotations

from pathlib import Path

from coupler.children import Child, ChildError
from coupler.io.limits import MEMORY, SECONDS
from coupler.io.packages import Packages, real_path
from coupler.io.reading import Options
from coupler.io.xml import Element, parse, parse_file
from coupler.model import ModelError
from coupler.model.wording import clipped, listed

_child = Child(Path(__file__).with_name("expansion.py"), SECONDS, MEMORY)


def expand(path: Path, options: Options) -> Element:
    """The root element of the URDF that a xacro file expands to.

    `$(find NAME)` is a folder that the user named, or the package that the file belongs to.

    Raises:
        ModelError: if the user has not asked for it, for a file that cannot be expanded or reaches for what is not
            its own, and where xacrodoc is not installed.
    """
    if not options.xacro:
        raise ModelError(
            f"{path}: it is written with xacro's macros, which are programs: expanding them runs what its author "
            "wrote. If you trust the author, pass xacro=True (on the command line --trust); or expand the file "
            "yourself, and load the URDF"
        )
    parse_file(path)  # refuses entities, and what is too large, before anything else reads it
    file, packages = real_path(path), Packages(path, options.packages)
    named = {name: str(folder) for name, folder in packages.named.items()}
    request = {"file": str(file), "packages": named, "arguments": dict(options.arguments)}
    try:
        answer, _ = _child.ask(request, packages.allowed)
        text, known = str(answer["urdf"]), answer["arguments"]
    except ChildError as error:
        raise _refused(path, error) from None
    unknown = [name for name in options.arguments if name not in known]
    if unknown:
        raise ModelError(f"{path}: it has no argument {clipped(unknown[0])}; it has {listed(known) or 'none'}")
    return parse(text.encode(), path, " of what it expands to")


def _refused(path: Path, error: ChildError) -> ModelError:
    if error.kind == "ModuleNotFoundError":
        return ModelError(
            f"{path}: to read xacro, install xacrodoc: pip install 'coupler[xacro]'; or expand the file yourself"
        )
    if error.kind == "PermissionError":
        return ModelError(
            f"{path}: its macros were stopped: {error}. Includes are read from the file's folder and from "
            "packages={'name': folder} only"
        )
    return ModelError(f"{path}: xacro cannot expand it: {clipped(error, 1000, quote=False)}")
