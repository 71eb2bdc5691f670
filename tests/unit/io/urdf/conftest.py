"""What tests of URDF share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coupler.io.load import load
from coupler.model import Robot


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Robot]:
    """Loads what stands in a <robot>; its first line is line 1 of the file."""

    def read(text: str, **options: Any) -> Robot:
        path = tmp_path / "robot.urdf"
        path.write_text(f'<robot name="robot">{text}</robot>', encoding="utf-8")
        return load(path, **options)

    return read
