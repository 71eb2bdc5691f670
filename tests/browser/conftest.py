"""A headless Chromium, which renders in software, and pages of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pytest

# As root, Chromium refuses to run in its sandbox; the others make it draw without a graphics card.
FLAGS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
SIZE = {"width": 620, "height": 260}
PANEL = 330  # px at the right
NO_NOTES = ".mantine-Notifications-root { display: none !important }"  # that it renders in software, over the scene
PATIENCE = 40.0  # s: machines are busy


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    pytest.importorskip("viser", reason="the viewer needs viser: pip install 'coupler[view]'")
    playwright = pytest.importorskip("playwright.sync_api", reason="there is no playwright, which drives browsers")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[[str], Any]]:
    """Opens addresses, and waits until something coloured is to be seen."""
    pages = []

    def opened(address: str) -> Any:
        page = chromium.new_page(viewport=SIZE)
        pages.append(page)
        page.goto(address)
        page.add_style_tag(content=NO_NOTES)
        wait_for(lambda: coloured(picture(page)) > 300)
        return page

    yield opened
    for page in pages:
        page.close()


def picture(page: Any, panel: int = PANEL) -> np.ndarray:
    """The scene without the panel at its right, so many px wide: height × width × 3, from 0 to 1."""
    from matplotlib.image import imread

    clip = {"x": 0, "y": 0, "width": SIZE["width"] - panel, "height": SIZE["height"]}
    return imread(BytesIO(page.screenshot(clip=clip, timeout=1e3 * PATIENCE)), format="png")[:, :, :3]


def coloured(image: np.ndarray) -> int:
    """How many pixels are coloured clearly: neither ground nor sky."""
    return int((np.ptp(image, axis=2) > 0.25).sum())


def wait_for(condition: Callable[[], bool]) -> None:
    """Waits until something holds; fails if it does not come to."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.3)
