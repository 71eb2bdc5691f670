"""Compiled machine code on disk, so that a graph is compiled once per account and not once per process.

Running a file from disk is running code, so an entry counts as ours only if all of this holds:

1. The folder (symlinks to it are followed) is a directory of the current user that nobody else can write.
2. The entry is a regular file (no symlink, device or pipe) of the current user that nobody else can write, of bounded
   size. The open descriptor is asked, so the file cannot be exchanged between the check and the read.
3. It carries an HMAC-SHA256 over format version, key and code under 32 random bytes in the file ``secret`` next to it,
   which nobody else may read. Truncated, altered, renamed entries fail it, as do those made elsewhere.

Owner and mode are checked where the system has them (POSIX); elsewhere the HMAC and the system's own protection of the
user's folder remain. Anything that fails is a miss, and a miss costs a compilation and nothing else.

Not defended against: who can already read and write this user's files has the secret too, and needs no cache to run
code as this user. Nor is the code judged: `load` returns what `store` was given, and all that shaped the code has to be
in the key, which is the caller's part.

``COUPLER_CACHE`` moves the cache to another folder or, as ``off``, ``0`` or empty, turns it off.
"""

import hashlib
import hmac
import os
import re
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path

from coupler.files import whole_file

LIMIT = 256 << 20  # bytes in the folder above which the least recently used entries go
ENTRY_LIMIT = 64 << 20  # bytes of one file; larger ones are neither written nor read

_MAGIC = b"coupler\x01"  # the last byte is the format version
_HEADER = len(_MAGIC) + hashlib.sha256().digest_size
_SUFFIX = ".coupler"  # of temporary files too: what a killed writer left is evicted like any old entry
_SECRET_SIZE = 32
_OTHERS_WRITE, _OTHERS_ANY = 0o022, 0o077
# NOFOLLOW: a symlink is not an entry. NONBLOCK: opening a planted pipe must not wait for its other end.
_READ_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

# Bytes stored since the folder was last measured. Measuring costs a stat per entry, tens of milliseconds in a full
# cache, so a process does it at its first store and then once in a while; threads racing here merely shift the moment.
_unswept = LIMIT


def digest(*parts: str | bytes) -> str:
    """Returns the SHA-256, in hex, of the parts in order; where one part ends and the next begins counts."""
    # surrogatepass: any str has a digest, also a file name that is not valid Unicode
    raw = (part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts)
    return hashlib.sha256(_frame(*raw)).hexdigest()


def folder() -> Path | None:
    """Returns where the cache lies (it need not exist yet), or None if it is off or there is no home folder."""
    try:
        if (chosen := os.environ.get("COUPLER_CACHE")) is not None:
            return None if chosen.lower() in ("off", "0", "") else Path(chosen).expanduser()
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:  # the XDG specification has relative paths ignored
            xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
            base = xdg if xdg.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # pathlib found no home folder
        return None
    return base / "coupler" if base.is_absolute() else None


def load(key: str) -> bytes | None:
    """Returns the code under a key (lower-case hex), or None for anything but what `store` wrote on this account."""
    if (path := _path(key)) is None:
        return None
    try:
        secret, entry = _secret(path.parent), _read(path, ENTRY_LIMIT, _OTHERS_WRITE)
    except OSError:
        return None
    code = entry[_HEADER:]
    if not hmac.compare_digest(entry[:_HEADER], _seal(secret, key, code)):
        return None
    with suppress(OSError):  # the last use decides what is evicted; a read-only cache still serves
        os.utime(path)
    return code


def store(key: str, code: bytes) -> None:
    """Keeps code under a key (lower-case hex) if possible; trouble with folder or disk is passed over in silence."""
    global _unswept
    if (path := _path(key)) is None or _HEADER + len(code) > ENTRY_LIMIT:
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, _seal(_secret(path.parent, make=True), key, code) + code)
        _unswept += len(code)
        if _unswept > LIMIT // 64:
            _unswept = 0
            _shrink(path.parent, LIMIT, keep=path)  # clocks jump: what was just stored stays, whatever its time says


def clear() -> int:
    """Removes every entry, and no file of another kind, and returns how many files that were."""
    with suppress(OSError):  # no folder, nothing to remove
        return _shrink(where, -1) if (where := folder()) else 0  # -1: a file of no bytes goes as well
    return 0


def _path(key: str) -> Path | None:
    if not re.fullmatch("[0-9a-f]{1,128}", key):  # it becomes a file name; some file systems ignore case
        raise ValueError(f"a cache key is 1 to 128 lower-case hex digits, not {key!r}")
    return where / (key + _SUFFIX) if (where := folder()) else None


def _frame(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _seal(secret: bytes, key: str, code: bytes) -> bytes:
    return _MAGIC + hmac.digest(secret, _frame(_MAGIC, key.encode(), code), "sha256")


def _ours(info: os.stat_result, kind: int, forbidden: int) -> bool:
    # The effective user: a set-user-id program must not trust the folder of whoever started it.
    mine = not hasattr(os, "geteuid") or (info.st_uid == os.geteuid() and not info.st_mode & forbidden)
    return mine and stat.S_IFMT(info.st_mode) == kind


def _read(path: Path, limit: int, forbidden: int) -> bytes:
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _READ_FLAGS)) as file:
        info = os.fstat(file.fileno())
        if not _ours(info, stat.S_IFREG, forbidden) or info.st_size > limit:
            raise PermissionError(f"{path} is not a file of this cache")
        return file.read(info.st_size)


def _secret(where: Path, make: bool = False) -> bytes:
    if not _ours(where.stat(), stat.S_IFDIR, _OTHERS_WRITE):
        raise PermissionError(f"{where} is not a folder that this user alone can write")
    path = where / "secret"
    if make:
        with suppress(FileNotFoundError):
            info = path.lstat()
            if not _ours(info, stat.S_IFREG, _OTHERS_ANY) or info.st_size != _SECRET_SIZE:
                # Set aside, not deleted: in a folder the user chose, a file of this name may be the user's own. Two
                # processes doing this at once may replace each other's secret, which costs a miss and no more.
                os.replace(path, where / "secret.old")
        if not os.path.lexists(path):
            # If another process comes first, both go on to read that one's secret.
            with suppress(FileExistsError):
                _write(path, secrets.token_bytes(_SECRET_SIZE), replace=False)
    if len(secret := _read(path, _SECRET_SIZE, _OTHERS_ANY)) != _SECRET_SIZE:
        raise PermissionError(f"{path} is damaged")
    return secret


def _write(path: Path, data: bytes, replace: bool = True) -> None:
    # Not synced: what a power cut leaves short or empty is a miss like other damage.
    with whole_file(path, suffix=_SUFFIX, mode=0o600, sync=False, replace=replace) as file:
        file.write(data)


def _shrink(where: Path, limit: int, keep: Path | None = None) -> int:
    files: list[tuple[int, int, Path]] = []
    with os.scandir(where) as listing:
        for item in listing:
            with suppress(OSError):  # another process removed it
                if item.name.endswith(_SUFFIX) and item.is_file(follow_symlinks=False):
                    info = item.stat(follow_symlinks=False)
                    files.append((info.st_mtime_ns, info.st_size, where / item.name))
    removed, total = 0, sum(size for _, size, _ in files)
    for _, size, path in sorted(files):  # the least recently used first
        if total > limit and path != keep:
            with suppress(OSError):  # another process was faster, or still has it open
                path.unlink()
                removed += 1
            total -= size
    return removed
