"""Files on disk: written completely or not at all, and read only if they are regular files of limited size.

A file is written under a temporary name first, and then renamed into place.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None


_WHAT = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
_READ_FLAGS = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for reading that need not be trusted.

    Raises:
        OSError: for a file that cannot be read, and for a pipe, device or folder; `strerror` says what it is.
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


def read_file(path: Path, at_most: int) -> bytes:
    """The content of a file that need not be trusted.

    Args:
        at_most: the largest number of bytes that it may have.

    Raises:
        OSError: as `open_file`, and for a larger file.
    """
    with open_file(path) as file:
        data = file.read(at_most + 1)
    if len(data) > at_most:
        raise OSError(errno.EFBIG, f"it is larger than {at_most / (1 << 20):g} MiB, the most that is read")
    return data


def _put_if_absent(temporary: Path, path: Path) -> None:
    """Renames a temporary file, unless a file of that name exists."""
    try:
        os.link(temporary, path)  # which, unlike a rename, fails if another process came first
    except FileExistsError:
        raise
    except (OSError, NotImplementedError, AttributeError):  # the file system, or the system, has no hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(temporary, path)  # of two processes that come here at once the later one stays


def claimed(file: IO[bytes]) -> bool:
    """Locks an open file until it is closed or this process ends; false if another process has locked it.

    On systems and file systems without such locks, the result is always true.
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
    """Unlocks a file, also for processes that were forked since it was locked."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_UN)


def temporary_beside(path: Path, suffix: str = ".tmp") -> Path:
    """A new hidden name in the same folder, for a file that will replace the path."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}{suffix}")


@contextmanager
def whole_file(
    path: Path, *, suffix: str = ".tmp", mode: int = 0o666, sync: bool = True, replace: bool = True
) -> Iterator[BinaryIO]:
    """Opens a file for writing that replaces the path once it is complete; after an error, the old file remains.

    Args:
        path: the final path.
        suffix: the end of its temporary name, under which a killed process leaves it behind.
        mode: its permissions, before the user's mask.
        sync: whether to flush it to disk before it replaces the path, so that a power failure leaves one or the other.
        replace: whether it may replace an existing file.

    Raises:
        FileExistsError: if a file exists that must not be replaced, even if another process wrote it just before; on
            file systems without hard links, unless both came within microseconds.
        OSError: if it cannot be written.
    """
    opener = partial(os.open, mode=mode)
    with whole_path(path, suffix, replace=replace) as temporary, open(temporary, "xb", opener=opener) as file:
        yield file
        if sync:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def whole_path(path: Path, suffix: str = ".tmp", *, replace: bool = True) -> Iterator[Path]:
    """`whole_file` for a file that other code writes: yields the temporary path to write to."""
    temporary = temporary_beside(path, suffix)
    try:
        yield temporary
        if replace:
            os.replace(temporary, path)
        else:
            _put_if_absent(temporary, path)
    finally:
        with suppress(OSError):  # gone after a rename; and an interrupt under way must not turn into an OSError
            temporary.unlink()
