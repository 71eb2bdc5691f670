"""The files beside a URDF that may describe its loops, or which links do not touch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from coupler.io.content import content_of
from coupler.io.limits import YAML_BYTES
from coupler.io.packages import real_path
from coupler.io.urdf.description import Description
from coupler.model import ModelError
from coupler.model.wording import clause

_LOOKED_AT = 20  # files in a robot's folder


def beside(d: Description, name: str, remedy: str) -> Path | None:
    """The file of this name in the folder of a robot's file, if there is one.

    A link that leads elsewhere is not followed: a warning says so, and what to do.
    """
    path = d.root.file.with_name(name)
    if not os.path.lexists(path):
        return None
    real = real_path(path)
    if not real.is_relative_to(real_path(path.parent)):
        d.warnings.append(f"{path.name} is a link to {real}, outside the robot's folder, and is not read; {remedy}")
        return None
    if not os.path.isfile(path):
        d.warnings.append(f"{path.name} is not a regular file, and is not read")
        return None
    return path


def files_beside(d: Description) -> Iterator[Path]:
    """The files beside a robot's file that may describe its loops."""
    for name in (d.root.file.stem, "submechanisms"):
        for suffix in (".yaml", ".yml"):
            path = beside(d, name + suffix, "name it in closures=... if it describes the loops")
            if path is not None:
                yield path


def warn_of_unused(d: Description) -> None:
    """Warns of files in the folder that describe loops, but do not have the name under which they would be used."""
    unused = []
    with suppress(OSError, ModelError):
        files = sorted(path for path in d.root.file.parent.iterdir() if path.suffix in (".yaml", ".yml"))
        for path in files[:_LOOKED_AT]:
            if not path.is_symlink() and os.path.isfile(path) and _mentions_loops(path):
                unused.append(path.name)
    if unused:
        d.warnings.append(
            clause(unused, "{} beside it describes loops, but is", "{} beside it describe loops, but are")
            + f" not used; pass closures={unused[0]!r} if these are its loops"
        )


def _mentions_loops(path: Path) -> bool:
    return re.search(rb"^(closed_loop|submechanisms)\s*:", content_of(path, YAML_BYTES), re.MULTILINE) is not None
