"""Loading a robot from its file, whatever the format."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coupler.model import ModelError, ModelWarning, Robot

__all__ = ["Options", "load"]

Closures = str | Path | Sequence[Sequence[str]] | bool | None


@dataclass(frozen=True)
class Options:
    """How a file is to be read; see `load`."""

    closures: Closures = None
    floating: bool = False
    packages: Mapping[str, Path] = field(default_factory=dict)
    gravity: Any = None
    lock_idle: bool = False
