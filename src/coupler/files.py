"""Files that are whole whenever one looks: written under another name first, then put in their place by one rename."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["temporary_beside", "whole_file"]


def temporary_beside(path: Path, suffix: str = ".tmp") -> Path:
    """A new name in the same folder, hidden, for a file that is to take the path's place."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}{suffix}")


@contextmanager
def whole_file(
    path: Path, *, suffix: str = ".tmp", mode: int = 0o666, sync: bool = True, replace: bool = True
) -> Iterator[BinaryIO]:
    """Opens a file to write to that takes its place once all is written; after an error, what was there stays.

    Args:
        path: where it goes.
        suffix: the end of its name until then, which a killed process leaves behind.
        mode: its permissions, less what the user's mask takes away.
        sync: whether it is on the disk before it takes its place, so that a power failure leaves one or the other.
        replace: whether a file that is there gives way to it.

    Raises:
        FileExistsError: if there is a file that is not to be replaced, whoever wrote it, and however shortly before.
        OSError: where it cannot be written.
    """
    temporary = temporary_beside(path, suffix)
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)  # which, unlike a rename, fails if another process came first
    finally:
        with suppress(OSError):  # gone after a rename; and an interrupt under way must not turn into an OSError
            temporary.unlink()
