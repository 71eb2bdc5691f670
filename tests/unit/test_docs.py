"""The documentation is true: its examples run, its links lead somewhere, and its lists are complete."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import coupler
import coupler.contact
import coupler.design
import coupler.graph
import coupler.mechanisms
import coupler.model
import coupler.rotation
import coupler.simulate
import coupler.spatial

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]

# What users name in annotations at most, or what belongs to the inside.
_TYPES = {"ClosedForm", "ClosureChoice", "Geometry", "LoopKind", "find_clusters", "joints_of_loop", "METHODS"}
_TYPES |= {"PARAMETERS", "Array", "Backend", "Slot", "Vector"}
_PUBLIC = [coupler.model, coupler.mechanisms, coupler.simulate, coupler.contact, coupler.convert, coupler.design]
_PUBLIC += [coupler.graph, coupler.spatial, coupler.rotation]


def python_of(page: Path) -> list[str]:
    """The blocks of Python on a page that run as they stand, one after the other."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if python_of(p)], ids=lambda page: page.name)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in python_of(page):
        exec(compile(block, str(page), "exec"), names)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
            if target.startswith("https://"):
                continue
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name}: {target}"
            assert not heading or heading in anchors(path), f"{page.name}: {target}#{heading}"


def anchors(page: Path) -> set[str]:
    """The names by which headings of a page are linked to, as repositories and MyST make them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = (heading.replace("`", "").lower() for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in headings}


def test_the_site_and_the_overview_have_every_page() -> None:
    """Sphinx, which `make docs` runs, warns of a page that no list leads to."""
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index", "README"}
    assert pages <= set((DOCS / "index.md").read_text().splitlines())
    overview = (DOCS / "README.md").read_text()
    assert [page for page in sorted(pages) if f"({page}.md)" not in overview] == []


def test_the_reference_has_every_public_name() -> None:
    pages = " ".join(path.read_text() for path in (DOCS / "reference").glob("*.rst"))
    documented = {line.rsplit(".", 1)[1] for line in pages.splitlines() if line.startswith(".. auto")}
    public = {name for module in _PUBLIC for name in module.__all__} | set(coupler.__all__)
    public -= _TYPES | {"robots", "convert", "view"}
    assert sorted(public - documented) == []


def test_every_public_name_says_what_it_is() -> None:
    """Classes and functions, and what classes offer, have a docstring, their own or a base's."""
    silent = []
    for module in (coupler, *_PUBLIC):
        for name in module.__all__:
            public = getattr(module, name)
            if not (inspect.isclass(public) or inspect.isfunction(public)):
                continue
            offered = {name: public}
            if inspect.isclass(public):
                members = [own for own in inspect.getmembers(public) if not own[0].startswith("_")]
                members = [own for own in members if inspect.isroutine(own[1]) or isinstance(own[1], property)]
                known = {*getattr(public, "__dataclass_fields__", ())}  # which are in the docstring of the class
                known |= {*dir(np)} if public is coupler.graph.Node else set()  # whose methods are NumPy's functions
                offered |= {f"{name}.{key}": x for key, x in members if key not in known}
            silent += [f"{module.__name__}.{key}" for key, value in offered.items() if not inspect.getdoc(value)]
    assert silent == []


def test_the_gallery_is_true() -> None:
    sections = (DOCS / "gallery.md").read_text().split("\n## ")[1:]
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
        assert (DOCS / "gallery" / f"{name}.png").stat().st_size < 40_000


def test_the_notebook_is_the_tutorial() -> None:
    """Its cells are the blocks of the page, which run: `python tools/notebook.py` writes it."""
    tool = importlib.util.spec_from_file_location("notebook", ROOT / "tools" / "notebook.py")
    assert tool is not None and tool.loader is not None
    module = importlib.util.module_from_spec(tool)
    tool.loader.exec_module(module)
    written = (DOCS / "tutorial.ipynb").read_text()
    assert written == module.notebook((DOCS / "tutorial.md").read_text()) + "\n"
    cells = ["".join(cell["source"]) for cell in json.loads(written)["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in cells if not cell.startswith("#")] == [b.rstrip() for b in python_of(DOCS / "tutorial.md")]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_program_of_the_c_page_gives_what_python_gives(tmp_path: Path) -> None:
    page = DOCS / "controller_in_c.md"
    names: dict[str, object] = {}
    for block in python_of(page):
        exec(compile(block.replace("Path(tempfile.mkdtemp())", f"Path({str(tmp_path)!r})"), str(page), "exec"), names)
    program = next(text for text in re.findall(r"```c\n(.*?)```", page.read_text(), re.DOTALL) if "main" in text)
    (tmp_path / "main.c").write_text(program)
    command = next(text for text in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL) if "cc" in text)
    printed = subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert [float(number) for number in printed.split()] == pytest.approx(names["tau"], rel=1e-13)
