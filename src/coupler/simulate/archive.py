"""Arrays in npz files that are whole whenever one looks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from coupler.files import temporary_beside, whole_file
from coupler.model import ModelError

__all__ = ["check_target", "load_arrays", "save_arrays"]


def check_target(path: Path) -> None:
    """Refuses a place that cannot be written to, by trying; what is there stays.

    Raises:
        ModelError: naming the place and what is wrong with it.
    """
    if os.path.isdir(path):
        raise ModelError(f"{path}: it is a folder; name a file in it")
    if not os.path.isdir(path.parent):
        raise ModelError(f"{path}: there is no folder {path.parent}; make it first")
    beside = temporary_beside(path)
    try:
        beside.touch()
        beside.unlink()
    except (OSError, ValueError) as error:
        raise _unwritten(path, error) from None


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes arrays to a file, completely or not at all.

    Raises:
        ModelError: where it cannot be written. What was there stays then.
    """
    try:
        with whole_file(path) as file:
            np.savez(file, **arrays)  # not compressed: that saves a third of the room and takes ten times as long
    except OSError as error:
        raise _unwritten(path, error) from None


def load_arrays(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Some arrays of a file, by name.

    Raises:
        ModelError: for a file that is not there, is no npz file, or lacks an array, naming it.
    """
    try:
        with path.open("rb") as file, _archive(path, file) as archive:
            return {name: _array(path, archive, name) for name in names}
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: it cannot be read: {error.strerror or error}") from None


def _archive(path: Path, file: BinaryIO) -> np.lib.npyio.NpzFile:
    try:
        archive = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, BadZipFile):
        archive = None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ModelError(f"{path}: it is not an npz file, or only part of one")
    return archive


def _array(path: Path, archive: np.lib.npyio.NpzFile, name: str) -> np.ndarray:
    if name not in archive:
        raise ModelError(f"{path}: there is no array {name!r} in it")
    try:
        return archive[name]
    except (ValueError, EOFError, BadZipFile) as error:
        raise ModelError(f"{path}: its array {name!r} cannot be read: {error}") from None


def _unwritten(path: Path, error: Exception) -> ModelError:
    return ModelError(f"{path}: it cannot be written: {getattr(error, 'strerror', None) or error}")
