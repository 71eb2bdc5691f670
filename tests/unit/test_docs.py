"""The examples in the documentation run as they stand, one after the other on each page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import coupler
import coupler.model

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Of the model, what users name in annotations at most, or what belongs to its inside.
_TYPES = {"ClosedForm", "ClosureChoice", "Geometry", "LoopKind", "find_clusters", "joints_of_loop", "nearest_inertia"}


@pytest.mark.parametrize("page", [p for p in PAGES if "```python" in p.read_text()], ids=lambda page: page.name)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_site_has_every_page() -> None:
    """Sphinx, which `make docs` runs, warns of a page that no list leads to."""
    listed = (ROOT / "docs" / "index.md").read_text().splitlines()
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index", "README"} <= set(listed)
    overview = (ROOT / "docs" / "README.md").read_text()
    assert all(
        f"({path.name})" in overview for path in (ROOT / "docs").glob("*.md") if path.stem not in ("index", "README")
    )


def test_the_reference_has_every_public_name() -> None:
    pages = " ".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.rst"))
    documented = {line.rsplit(".", 1)[1] for line in pages.splitlines() if line.startswith(".. auto")}
    modules = {"robots", "convert", "view"}
    for name in set(coupler.__all__) - modules | set(coupler.model.__all__) - _TYPES:
        assert name in documented, name


def test_the_gallery_is_true() -> None:
    sections = (ROOT / "docs" / "gallery.md").read_text().split("\n## ")[1:]
    assert sorted(section.split("\n")[0] for section in sections) == sorted(coupler.robots.names())
    for section in sections:
        name = section.split("\n")[0]
        robot = coupler.robots.load(name, **({"links": 6} if "chain" in name else {}))
        told = {
            word.rstrip("s"): int(count)
            for count, word in re.findall(r"(\d+) (freedoms?|loop joints?|couplings?)", section)
        }
        expected = {"freedom": robot.nv, "loop joint": len(robot.loops), "coupling": len(robot.couplings)}
        assert told == {word: count for word, count in expected.items() if count}, name
        assert (ROOT / "docs" / "gallery" / f"{name}.png").stat().st_size < 40_000
