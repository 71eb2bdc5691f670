"""Where other people's robots are: the folder `models` beside the checkout, or the one that COUPLER_MODELS names."""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path

from coupler.io import load
from coupler.model import ModelWarning, Robot

__all__ = ["ABSENT", "FOLDER", "files", "loaded"]

FOLDER = Path(os.environ.get("COUPLER_MODELS", Path(__file__).resolve().parents[2] / "shared" / "models"))

ABSENT = "" if FOLDER.is_dir() else f"no robots of others: {FOLDER} is no folder (set COUPLER_MODELS)"


def files(suffix: str) -> list[str]:
    """The files that end so, by their path in the folder."""
    return sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob(f"*{suffix}"))


@cache
def loaded(name: str) -> Robot:
    """The robot of a file, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load(FOLDER / name)
