"""Arrays in npz files that are complete at any time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from coupler.files import open_file
from coupler.model import ModelError
from coupler.model.outputs import written_whole
from coupler.model.wording import clipped


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes arrays to a file, completely or not at all.

    Raises:
        ModelError: if it cannot be written. An existing file then stays.
    """
    with written_whole(path) as file:
        np.savez(file, **arrays)


def load_arrays(path: Path, names: Iterable[str], others: Iterable[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of a file, by name: all `names`, and those of the `others` that exist.

    Raises:
        ModelError: for a file that does not exist, is not an npz file, or lacks an array, naming it.
    """
    try:
        with open_file(path) as file, _archive(path, file) as archive:
            _check_sizes(path, archive, os.fstat(file.fileno()).st_size)
            there = (name for name in others if name in archive)
            return {name: _array(path, archive, name) for name in dict.fromkeys((*names, *there))}
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: it cannot be read: {error.strerror or error}") from None


def _archive(path: Path, file: BinaryIO) -> np.lib.npyio.NpzFile:
    try:
        archive = np.load(file, allow_pickle=False)
    except Exception:  # what is no archive raises errors of many kinds
        archive = None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ModelError(f"{path}: it is not an npz file, or only part of one")
    return archive


def _check_sizes(path: Path, archive: np.lib.npyio.NpzFile, size: int) -> None:
    """Refuses a file that unpacks into more than its own size: our arrays are not compressed."""
    members = archive.zip.infolist() if archive.zip is not None else []
    if sum(member.file_size for member in members) > size:
        raise ModelError(f"{path}: its arrays are compressed, which coupler's own files never are")


def _array(path: Path, archive: np.lib.npyio.NpzFile, name: str) -> np.ndarray:
    if name not in archive:
        raise ModelError(f"{path}: there is no array {name!r} in it")
    try:
        return archive[name]
    except OSError:
        raise
    except Exception as error:  # a damaged archive or header raises errors of many kinds
        raise ModelError(f"{path}: its array {name!r} cannot be read: {clipped(error, 1000, quote=False)}") from None
