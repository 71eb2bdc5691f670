"""URDF that is written with xacro's macros, through xacrodoc."""

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

_LOCK = Lock()  # xacro has state of its own


def expand(path: Path, options: Options) -> Element:
    """The root element of the URDF that a xacro file stands for.

    `$(find NAME)` is a folder that the user named, or one above the file that has this name or a package.xml. Macros
    are programs: expand those only that you would run.

    Raises:
        ModelError: for a file that cannot be expanded, and where xacrodoc is not installed.
    """
    parse_file(path)  # refuses entities before anything else reads it
    try:
        import xacro
        from xacrodoc import XacroDoc, packages
    except ImportError:
        raise ModelError(
            f"{path}: to read xacro, install xacrodoc: pip install 'coupler[xacro]'; or expand it by hand"
        ) from None
    found: dict[str, Any] = {above.name: above for above in reversed(path.resolve().parents) if above.name}
    given = {name: folder.resolve() for name, folder in options.packages.items()}
    whole = path.resolve()
    with _LOCK, _careful(xacro):
        xacro.init_stacks(str(whole))  # from which paths of included files count
        packages.update_package_cache(found | given)
        try:
            document = XacroDoc.from_file(whole, subargs=dict(options.arguments), resolve_packages=False)
            text = document.to_urdf_string()
        except ModelError:
            raise
        except Exception as error:  # whatever the macros do
            raise ModelError(f"{path}: xacro cannot expand it: {error}") from None
        finally:
            packages.reset()
            xacro.init_stacks(None)
    return parse(text.encode(), path, " of what it expands to")


@contextmanager
def _careful(xacro: Any) -> Iterator[None]:
    """Has xacro refuse entities in the files that it includes, too."""
    read = xacro.parse

    def careful(text: Any, filename: Any = None) -> Any:
        if filename and Path(filename).is_file():
            parse_file(Path(filename))
        return read(text, filename)

    xacro.parse = careful
    try:
        yield
    finally:
        xacro.parse = read
