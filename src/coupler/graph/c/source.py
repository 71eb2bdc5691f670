"""The text of C files: functions with lines of bounded width, and the two files of a program."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from coupler.files import whole_file
from coupler.graph.errors import GraphError

WIDTH = 110  # characters of a line


@dataclass(frozen=True)
class Source:
    """A rendered program: the name of its function and files, the text of <name>.h, and that of <name>.c."""

    name: str
    header: str
    source: str

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Writes <name>.h and <name>.c into a folder, each completely or not at all.

        Args:
            folder: the folder for the files; it must exist.

        Returns:
            The paths of the header and of the source.

        Raises:
            GraphError: if there is no such folder, or it cannot be written to.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise GraphError(f"{folder}: there is no such folder; make it first")
        paths = folder / f"{self.name}.h", folder / f"{self.name}.c"
        for path, text in zip(paths, (self.header, self.source), strict=True):
            try:
                with whole_file(path) as file:
                    file.write(text.encode())
            except OSError as error:
                raise GraphError(f"{path}: it cannot be written: {error.strerror or error}") from None
        return paths


def function(head: str, lines: Iterable[str]) -> str:
    """The definition of a function with that head and body."""
    body = [part for line in lines for part in wrapped(f"    {line}")]
    return "\n".join([*wrapped(head), "{", *body, "}", ""])


def wrapped(line: str) -> list[str]:
    """The line, broken after commas where it is too long."""
    if len(line) <= WIDTH:
        return [line]
    indent = "    " + line[: len(line) - len(line.lstrip())]
    glued = re.sub("(?<!,) ", "\xa0", line)
    parts = textwrap.wrap(glued, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\xa0", " ") for part in parts]
