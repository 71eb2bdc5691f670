"""Files that a user asks for: refused at once where they cannot be written, and written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from coupler.files import temporary_beside, whole_file
from coupler.model.errors import ModelError
from coupler.model.wording import clipped


def check_target(path: Any) -> Path:
    """The path, after trying that a file can be written there; an existing file stays.

    Raises:
        ModelError: naming the path and what is wrong with it.
    """
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise ModelError(f"the file to write must be given by its path, got {clipped(path)}")
    path = Path(path)
    if os.path.isdir(path):
        raise ModelError(f"{path}: it is a folder; name a file in it")
    if not os.path.isdir(path.parent):
        raise ModelError(f"{path}: there is no folder {path.parent}; make it first")
    beside = temporary_beside(path)
    try:
        beside.touch()
        beside.unlink()
    except (OSError, ValueError) as error:
        raise unwritten(path, error) from None
    return path


def made_folder(path: Path) -> Path:
    """The path of a folder, which is created if it does not exist.

    Raises:
        ModelError: if it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ModelError(f"{path}: it is a file; name a folder") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: the folder cannot be made: {getattr(error, 'strerror', None) or error}") from None
    return path


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing that replaces an existing one once all is written.

    Raises:
        ModelError: if it cannot be written. An existing file then stays.
    """
    try:
        with whole_file(path) as file:
            yield file
    except OSError as error:
        raise unwritten(path, error) from None


def unwritten(path: Path, error: Exception) -> ModelError:
    """The error that a file cannot be written, and why."""
    return ModelError(f"{path}: it cannot be written: {getattr(error, 'strerror', None) or error}")
