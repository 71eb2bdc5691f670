"""Expanding xacro into URDF, with xacrodoc."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from coupler.io.reading import Options
from coupler.io.xml import Element, parse, parse_file
from coupler.model import ModelError

__all__ = ["expand"]

_LOCK = Lock()  # xacro has global state


def expand(path: Path, options: Options) -> Element:
    """The root element of the URDF that a xacro file expands to.

    `$(find NAME)` is a folder that the user named, or one above the file that has this name. Macros are programs:
    expand only those that you would run.

    Raises:
        ModelError: for a file that cannot be expanded, and where xacrodoc is not installed.
    """
    parse_file(path)  # refuses entities before anything else reads it
    try:
        import xacro
        from xacrodoc import XacroDoc, packages
    except ImportError:
        raise ModelError(
            f"{path}: to read xacro, install xacrodoc: pip install 'coupler[xacro]'; or expand the file yourself"
        ) from None
    packages_above: dict[str, Any] = {above.name: above for above in reversed(path.resolve().parents) if above.name}
    given = {name: folder.resolve() for name, folder in options.packages.items()}
    absolute = path.resolve()
    with _LOCK, _without_entities(xacro):
        xacro.init_stacks(str(absolute))  # included files are relative to it
        packages.update_package_cache(packages_above | given)
        try:
            document = XacroDoc.from_file(absolute, subargs=dict(options.arguments), resolve_packages=False)
            text = document.to_urdf_string()
        except ModelError:
            raise
        except Exception as error:  # macros may raise anything
            raise ModelError(f"{path}: xacro cannot expand it: {error}") from None
        finally:
            packages.reset()
            xacro.init_stacks(None)
    return parse(text.encode(), path, " of what it expands to")


@contextmanager
def _without_entities(xacro: Any) -> Iterator[None]:
    """A context in which xacro also refuses entities in the files that it includes."""
    original = xacro.parse

    def checked(text: Any, filename: Any = None) -> Any:
        if filename and Path(filename).is_file():
            parse_file(Path(filename))
        return original(text, filename)

    xacro.parse = checked
    try:
        yield
    finally:
        xacro.parse = original
