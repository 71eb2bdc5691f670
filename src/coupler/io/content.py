"""The content of a file that may come from a stranger."""

from __future__ import annotations

from pathlib import Path

from coupler.files import read_file
from coupler.model import ModelError
from coupler.model.wording import clipped


def content_of(path: Path, at_most: int) -> bytes:
    """The bytes of a file.

    Args:
        at_most: how many bytes it may have.

    Raises:
        ModelError: for what cannot be read, is no regular file, or is larger.
    """
    try:
        return read_file(path, at_most)
    except OSError as error:
        raise ModelError(f"{clipped(path, 1000, quote=False)}: it cannot be read: {error.strerror or error}") from None
