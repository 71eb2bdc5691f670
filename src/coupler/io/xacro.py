"""URDF that is written with xacro's macros, through xacrodoc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coupler.io.options import Options
from coupler.io.xml import Element, parse, parse_file
from coupler.model import ModelError

__all__ = ["expand"]


def expand(path: Path, options: Options) -> Element:
    """The root element of the URDF that a xacro file stands for.

    `$(find NAME)` is a folder that the user named, or one above the file that has this name or a package.xml. Macros
    are programs: expand those only that you would run.

    Raises:
        ModelError: for a file that cannot be expanded, and where xacrodoc is not installed.
    """
    parse_file(path)  # refuses entities before anything else reads it
    try:
        from xacrodoc import XacroDoc, packages
    except ImportError:
        raise ModelError(
            f"{path}: to read xacro, install xacrodoc: pip install 'coupler[xacro]'; or expand it by hand"
        ) from None
    found: dict[str, Any] = {above.name: above for above in reversed(path.resolve().parents) if above.name}
    packages.update_package_cache(found | dict(options.packages))
    try:
        document = XacroDoc.from_file(path, subargs=dict(options.arguments), resolve_packages=False)
        text = document.to_urdf_string()
    except Exception as error:  # whatever the macros do
        raise ModelError(f"{path}: xacro cannot expand it: {error}") from None
    finally:
        packages.reset()
    return parse(text.encode(), path)
