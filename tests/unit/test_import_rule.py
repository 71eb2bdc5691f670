"""Who may import whom: the layout shows the architecture, and this test keeps it so."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "coupler"

EVERYONES = {"forks", "grouping"}
# What each room may import of ours, besides itself and these.
ALLOWED: dict[str, set[str]] = {
    "forks": set(),
    "grouping": set(),
    "spatial": {"linear"},
    "rotation": set(),
    "zeros": set(),
    "rows": {"zeros"},
    "linear": {"rows", "zeros"},
    "files": set(),
    "threads": set(),
    "blas": set(),
    "children": set(),
    "graph": {"files", "threads", "rows"},
    "model": {"blas", "files", "spatial", "rotation", "linear", "graph"},
    "mechanisms": {"spatial", "rotation", "model"},
    "passes": {"spatial", "rotation", "linear", "zeros", "model", "graph"},
    "algorithms": {"spatial", "rotation", "linear", "model", "mechanisms", "passes"},
    "robots": {"spatial", "rotation", "model", "mechanisms"},
    "compiled": {"graph", "model"},
    "kinematics": {"spatial", "model", "passes", "algorithms", "compiled"},
    "inertia": {"model", "algorithms", "compiled"},
    "dynamics": {"model", "algorithms", "compiled", "kinematics"},
    "forces": {"model", "algorithms", "compiled", "dynamics"},
    "actuation": {"model", "passes", "algorithms", "compiled", "dynamics"},
    "reaching": {"linear", "graph", "model", "passes", "algorithms", "compiled", "actuation"},
    "sizing": {"model", "actuation"},
    "contact": {
        *("files", "children", "spatial", "rotation", "linear", "graph", "model", "passes", "algorithms"),
        *("compiled", "kinematics", "dynamics", "inertia"),
    },
    "simulate": {
        *("files", "threads", "spatial", "rotation", "graph", "model", "compiled"),
        *("kinematics", "dynamics", "inertia", "actuation", "contact"),
    },
    "design": {"files", "graph", "model"},
    "view": {"files", "spatial", "rotation", "model", "kinematics", "inertia", "contact", "simulate"},
    "convert": {"spatial", "rotation", "model", "kinematics", "io"},
    "io": {"files", "children", "spatial", "rotation", "model", "mechanisms", "robots"},
}
# `robot.save`, `robot.draw`, `log.plot`, and what meshes and hulls weigh: all that a room asks of one above it.
UPWARDS = {("model/robot.py", "coupler.io.save"), ("model/robot.py", "coupler.view.robot_graph")}
UPWARDS |= {("simulate/logs/log.py", "coupler.view.log_plots")}
UPWARDS |= {
    ("model/solids.py", "coupler.contact.collision.meshes"),
    ("model/solids.py", "coupler.contact.collision.faces"),
}
# Imported only where they are used, so that `import coupler` stays light and works without them.
HEAVY = {"llvmlite", "yaml", "mujoco", "pinocchio", "coal", "viser", "matplotlib", "gymnasium", "ray", "cupy"}
HEAVY |= {"xacrodoc", "mcap", "rerun", "PIL", "playwright", "scipy"}


def rooms() -> list[str]:
    return sorted(p.stem for p in PACKAGE.iterdir() if p.stem in ALLOWED)


def imports(room: str) -> Iterator[tuple[Path, str]]:
    """Every module imported in a room, wherever in its files."""
    place = PACKAGE / room
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are absolute"
                yield path, node.module or ""
                yield from ((path, f"{node.module}.{alias.name}") for alias in node.names if node.module == "coupler")


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_only_what_it_may(room: str) -> None:
    for path, module in imports(room):
        parts = module.split(".")
        if parts[0] == "coupler" and len(parts) > 1:
            place = path.relative_to(PACKAGE).as_posix()
            assert parts[1] in ALLOWED[room] | {room} | EVERYONES or (place, module) in UPWARDS, (
                f"{place} imports {module}"
            )


def test_the_layers_of_the_compiler_are_as_documented() -> None:
    """docs/architecture.md lists them; each uses only those above it."""
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    listing = page.split("## The compiler's layers")[1].split("```")[1]
    known = {path.stem for path in (PACKAGE / "graph").iterdir()} - {"__init__", "__pycache__"}
    layers = [word.rstrip(",/") for word in listing.split() if word.rstrip(",/") in known]
    order = {name: i for i, name in reversed(list(enumerate(layers)))}
    assert order.keys() == known
    for path, module in imports("graph"):
        own = path.relative_to(PACKAGE / "graph").parts[0].removesuffix(".py")
        parts = module.split(".")
        if own != "__init__" and parts[:2] == ["coupler", "graph"] and len(parts) > 2 and parts[2] != own:
            assert order[parts[2]] < order[own], f"{own} imports {parts[2]}, which is listed below it"


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = "import sys, coupler, coupler.graph; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert not HEAVY & set(loaded)


def test_rooms_that_many_programs_do_not_use_are_imported_when_they_are_first_used() -> None:
    script = (
        "import sys, coupler\n"
        "rooms = lambda: {name.split('.')[1] for name in sys.modules if name.startswith('coupler.')}\n"
        "assert not rooms() & {'contact', 'simulate', 'design', 'view', 'convert'}, rooms()\n"
        "from coupler import *\n"
        "assert all(name in globals() and name in dir(coupler) for name in coupler.__all__)\n"
        "assert Simulation is coupler.simulate.Simulation and callable(view) and coupler.contact\n"
        "assert not hasattr(coupler, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
