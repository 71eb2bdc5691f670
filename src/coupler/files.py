"""Files on disk: written whole or not at all, and read only if they are files, and not larger than expected.

A file is written under another name first, then put in its place by one rename.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

__all__ = ["claimed", "open_file", "read_file", "release", "temporary_beside", "whole_file"]

_WHAT = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
_READ_FLAGS = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to read that may be a stranger's.

    Raises:
        OSError: for what cannot be read, or is no file but a pipe, device or folder; `strerror` says which.
    """
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _READ_FLAGS))  # noqa: SIM115
    except ValueError as error:  # a path with a zero in it
        raise OSError(errno.EINVAL, str(error)) from None
    with file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"it is a {_WHAT.get(stat.S_IFMT(mode), 'device')}, not a file")
        yield file


def read_file(path: Path, most: int) -> bytes:
    """The content of a file that may be a stranger's.

    Args:
        path: the file.
        most: how many bytes it may have.

    Raises:
        OSError: as `open_file`, and for what is larger.
    """
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most / (1 << 20):g} MiB, the most that is read")
    return data


def _put_if_absent(temporary: Path, path: Path) -> None:
    """Gives a file a name that no other has."""
    try:
        os.link(temporary, path)  # which, unlike a rename, fails if another process came first
    except FileExistsError:
        raise
    except (OSError, NotImplementedError, AttributeError):  # the file system, or the system, has no hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(temporary, path)  # of two processes that come here at once the later one stays


def claimed(file: IO[bytes]) -> bool:
    """Whether an open file is now this one's, until it is closed or its process ends; not if it is another's already.

    Where the system has no such claims, nobody has one.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has none
        pass
    return True


def release(file: IO[bytes]) -> None:
    """Gives up the claim on a file, also for processes that were forked off since."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_UN)


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
        FileExistsError: if there is a file that is not to be replaced, whoever wrote it, and however shortly before;
            on file systems without hard links, unless both came within microseconds.
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
            _put_if_absent(temporary, path)
    finally:
        with suppress(OSError):  # gone after a rename; and an interrupt under way must not turn into an OSError
            temporary.unlink()
