"""What holds for all tests."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

# Tracing makes many objects that last. Looking through them less often for what nobody holds saves a tenth of the time.
gc.set_threshold(200_000, 50, 50)

LONG_CASES = frozenset((Path(__file__).parent / "long_cases.txt").read_text(encoding="utf-8").splitlines())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the cases of sweeps as long that tools/long_cases.py has chosen by the time that they take."""
    for item in items:
        if item.nodeid in LONG_CASES:
            item.add_marker(pytest.mark.long)
