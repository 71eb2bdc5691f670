"""How a file is to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Closures", "Options"]

# A file, pairs of frames (with what holds them), False for none, or None for what is found beside the robot's file.
Closures = str | Path | Sequence[Sequence[str]] | bool | None


@dataclass(frozen=True)
class Options:
    """How a file is to be read; see `load`."""

    closures: Closures = None
    floating: bool = False
    packages: Mapping[str, Path] = field(default_factory=dict)
    gravity: Any = None
    lock_idle: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)
