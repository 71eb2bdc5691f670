"""What tests of SDFormat share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coupler.io.load import load
from coupler.model import Robot

Read = Callable[..., Robot]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Loads a text as a file in SDFormat; few states are computed, so that nothing need be compiled."""

    def read(text: str, name: str = "robot.sdf", **options: Any) -> Robot:
        (tmp_path / name).write_text(text)
        return load(tmp_path / name, **options).with_backend("interpreter")

    return read
