"""What all tests of random robots share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_disk_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty one for each run, which its workers share: robots that differ in numbers alone are compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        base = tmp_path_factory.getbasetemp()
        patch.setenv("COUPLER_CACHE", str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"))
        yield
