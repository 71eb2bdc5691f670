"""Sweeps over designs: in this process, in others, on Ray; interrupted, resumed, and with workers that are lost."""

from __future__ import annotations

import logging
import os
import pickle
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, Robot, RobotBuilder
from coupler.design import Designs
from coupler.design.identity import identity
from coupler.design.record import SweepFile
from coupler.model import Hull, Revolute, Rod
from coupler.model.compose import compose
from design_samples import TIMES as T
from design_samples import Fragile, arm, effort


def expected(stiffness: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """m g lever − spring, by hand."""
    x, z = 0.2 * np.cos(T), -0.2 * np.sin(T)
    gap = np.hypot(x, 0.5 - z)
    pull = stiffness[:, None] * (gap - 0.1) / gap
    gravity = mass[:, None] * 9.81 * 0.3 * np.cos(T)
    return -(gravity - pull * (0.5 * 0.2 * np.cos(T)))


STIFFNESS, MASS = np.linspace(50.0, 400.0, 23), np.linspace(1.0, 3.0, 23)
BOTH = {"stiffness:spring": STIFFNESS, "mass:bar": MASS}


def check(found: Designs) -> None:
    assert len(found) == 23
    np.testing.assert_allclose(found["tau"], expected(STIFFNESS, MASS), rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("at_once", [1, 5, 64])
def test_designs_are_measured_in_batches(at_once: int) -> None:
    found = coupler.sweep(arm(), BOTH, effort, at_once=at_once)
    check(found)
    best = found.best("peak")
    assert found["peak"][best] == found["peak"].min()
    assert found.best("peak", largest=True) == int(found["peak"].argmax())
    own = found.design(best)
    tau = coupler.inverse_dynamics(arm().with_parameters(own), T[:, None], np.zeros((5, 1)), np.zeros((5, 1)))
    np.testing.assert_allclose(tau[:, 0], found["tau"][best], rtol=0.0, atol=1e-12)
    assert str(found).startswith("23 designs by 'stiffness:spring', 'mass:bar'")


def test_a_grid_combines_all_values() -> None:
    found = coupler.sweep(arm(), {"stiffness:spring": [50.0, 100.0, 150.0], "mass:bar": [1.0, 2.0]}, effort, grid=True)
    assert found["mass:bar"].tolist() == [1.0, 2.0] * 3
    assert found["stiffness:spring"].tolist() == [50.0, 50.0, 100.0, 100.0, 150.0, 150.0]
    np.testing.assert_allclose(found["tau"], expected(found["stiffness:spring"], found["mass:bar"]), atol=1e-11)


def test_vectors_are_parameters_too(tmp_path: Path) -> None:
    points = np.array([[0.0, 0.0, 0.4], [0.1, 0.0, 0.5]])
    found = coupler.sweep(arm(), {"first_point:spring": points}, lambda robot: effort(robot)["peak"])
    assert found["result"].shape == (2,)
    lines = found.to_csv(tmp_path / "designs.csv").read_text().splitlines()
    assert lines[0] == "design,first_point:spring[0],first_point:spring[1],first_point:spring[2],result"
    np.testing.assert_array_equal(float(lines[2].split(",")[-1]), found["result"][1])


def test_a_sweep_goes_on_from_its_file(tmp_path: Path) -> None:
    file, notes = tmp_path / "sweep.db", tmp_path / "asked"
    notes.touch()

    def asked() -> list[int]:
        return [int(line) for line in notes.read_text().split()]

    def interrupted(robot: Robot) -> Any:
        with notes.open("a") as written:
            written.write(f"{robot.parameters['mass:bar'].size}\n")
        if len(asked()) == 3:
            raise KeyboardInterrupt
        return effort(robot)

    with pytest.raises(KeyboardInterrupt):
        coupler.sweep(arm(), BOTH, interrupted, at_once=5, file=file)
    assert asked() == [5, 5, 5]
    check(coupler.sweep(arm(), BOTH, interrupted, at_once=5, file=file))
    assert asked() == [5, 5, 5, 5, 5, 3]  # two shares were there
    check(coupler.sweep(arm(), BOTH, interrupted, at_once=5, file=file))
    assert len(asked()) == 6


FACTOR = 1.0


def scaled(robot: Robot) -> np.ndarray:
    return FACTOR * effort(robot)["peak"]


def through_another(robot: Robot) -> np.ndarray:
    return scaled(robot)


class Scaling:
    """Uses a global variable, in a method and in a property."""

    def __call__(self, robot: Robot) -> np.ndarray:
        return self.factor * effort(robot)["peak"]

    @property
    def factor(self) -> float:
        return FACTOR


@dataclass
class Settings:
    factor: float
    log: Any = field(default_factory=lambda: logging.getLogger(f"sweep {time.monotonic_ns()}"))  # never the same


def test_numbers_that_a_function_uses_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are global, or around it, in whatever they are kept, or those of a function that it calls."""
    for measure, name in (
        (scaled, "'FACTOR'"),
        (through_another, "'scaled'"),
        (partial(scaled), "the function"),
        (Scaling(), "the function"),
    ):
        file = tmp_path / f"{type(measure).__name__} {name}.db"
        coupler.sweep(arm(), BOTH, measure, file=file)
        coupler.sweep(arm(), BOTH, measure, file=file)
        with monkeypatch.context() as changed:
            changed.setitem(globals(), "FACTOR", 2.0)
            with pytest.raises(ModelError, match=f"belongs to another sweep: {name}.* is not the same"):
                coupler.sweep(arm(), BOTH, measure, file=file)

    def held_by(held: Any) -> Any:
        return lambda robot: effort(robot)["peak"] + 0.0 * len(str(held))

    long = np.zeros(5000)
    for one, other in (
        ([1.0, 2.0], [1.0, 2.5]),
        ({"k": 1.0}, {"k": 2.0}),
        (Settings(1.0), Settings(2.0)),
        (SimpleNamespace(k=1.0), SimpleNamespace(k=2.0)),
        (Fraction(1, 3), Fraction(2, 3)),
        (deque([1.0]), deque([2.0])),
        (long, np.where(np.arange(5000) == 2500, 1.0, long)),
        ([long], [long + 1e-9]),
        (arm(), arm().with_gravity((0, 0, -1.6))),
        (np.random.default_rng(1), np.random.default_rng(2)),
        ([SimpleNamespace(k=1.0), SimpleNamespace(k=2.0)], [SimpleNamespace(k=1.0), SimpleNamespace(k=3.0)]),
        *((lambda x: 2.0 * x, lambda x: 3.0 * x),),
    ):
        file = tmp_path / f"{type(one).__name__}{id(one)}.db"
        coupler.sweep(arm(), BOTH, held_by(one), file=file)
        again = replace(one, log=logging.getLogger("another")) if isinstance(one, Settings) else deepcopy(one)
        coupler.sweep(arm(), BOTH, held_by(again), file=file)
        with pytest.raises(ModelError, match="another sweep: 'held', which the function uses, is not the same"):
            coupler.sweep(arm(), BOTH, held_by(other), file=file)


def test_the_file_of_another_sweep_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sweep.db"
    coupler.sweep(arm(), BOTH, effort, file=file)
    for other in ({"mass:bar": MASS}, {**BOTH, "mass:bar": MASS + 1.0}):
        with pytest.raises(ModelError, match="belongs to another sweep"):
            coupler.sweep(arm(), other, effort, file=file)
    with pytest.raises(ModelError, match="belongs to another sweep"):
        coupler.sweep(arm(), BOTH, lambda robot: effort(robot)["peak"], file=file)
    wrong = tmp_path / "wrong.db"
    wrong.write_text("this is no database, but a text that is long enough to be looked at as one" * 20)
    with pytest.raises(ModelError, match=r"wrong\.db: it cannot be used for a sweep"):
        coupler.sweep(arm(), BOTH, effort, file=wrong)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE shares SET results = x'00'")
    with pytest.raises(ModelError, match="a share of it cannot be read"):
        coupler.sweep(arm(), BOTH, effort, file=file)


def test_processes_share_the_work(tmp_path: Path) -> None:
    """One of them is lost, and its share is done again."""
    check(coupler.sweep(arm(), BOTH, Fragile(str(tmp_path / "marker")), at_once=8, on="processes", workers=2))


SCRIPT = """
import coupler, os, time, sys
from pathlib import Path
from design_samples import arm

def waits(robot):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    coupler.sweep(arm(), {"mass:bar": [1.0, 2.0]}, waits, at_once=1, on="processes", workers=1)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_processes_end_with_the_one_that_sweeps(tmp_path: Path) -> None:
    """Even if that is killed, and cannot end them."""
    script, pids = tmp_path / "sweeps.py", tmp_path / "pids"
    script.write_text(SCRIPT)
    pids.mkdir()
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, str(script), str(pids)], env=known) as sweeping:
        assert holds_soon(lambda: any(pids.iterdir()))
        sweeping.kill()
    (worker,) = (int(path.name) for path in pids.iterdir())
    assert holds_soon(lambda: not is_running(worker))


def holds_soon(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.1)
    return condition()


def is_running(pid: int) -> bool:
    """Whether there is such a process, other than one that has ended and was not asked for how."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_what_a_function_raises_comes_through() -> None:
    def broken(robot: Robot) -> Any:
        raise ZeroDivisionError("by nothing")

    with pytest.raises(ZeroDivisionError, match="by nothing"):
        coupler.sweep(arm(), BOTH, broken)
    with pytest.raises(ModelError, match="cannot be sent to other processes"):
        coupler.sweep(arm(), BOTH, broken, on="processes")


def test_designs_that_cannot_be_have_no_numbers(tmp_path: Path) -> None:
    """A rod of another length, which may be too long for the linkage to close."""
    b = RobotBuilder("swing")
    for i, name in enumerate(("left", "right")):
        b.body(name, mass=1.0, centre=(0.0, 0.0, -0.3), inertia=(0.01, 0.01, 0.01))
        b.joint(f"{name} hinge", Revolute(axis=(0, 1, 0)), "ground", name, at=(0.5 * i, 0.0, 0.0))
    b.loop("rod", Rod(0.55), "left", "right", at=(0.0, 0.0, -0.3), meets=(0.0, 0.0, -0.4))
    robot, lengths = b.build(closure="numerical"), np.array([0.5, 9.0, 0.52, 0.54, 6.0, 8.0, 7.0, 0.56, 0.58])

    def height(robot: Robot) -> dict[str, np.ndarray]:
        q = robot.neutral()
        return {"z": coupler.centre_of_mass(robot, q)[:, 0, 2], "q": q[:, 0]}

    given = {"length:rod": lengths}
    with pytest.raises(ModelError, match=r"cannot close|does not close"):
        coupler.sweep(robot, given, height)
    possible = lengths[lengths < 1.0]
    expected = coupler.sweep(robot, {"length:rod": possible}, height)
    for at_once in (1, 2, 64):
        file = tmp_path / f"{at_once}.db"
        for _ in range(2):
            found = coupler.sweep(robot, given, height, at_once=at_once, errors="nan", file=file)
            can_be = np.isfinite(found["z"])
            np.testing.assert_array_equal(lengths[can_be], possible)
            np.testing.assert_allclose(found["z"][can_be], expected["z"], rtol=0, atol=1e-12)
            assert np.isnan(found["q"][~can_be]).all() and found["q"].shape == (9, robot.nq)
            assert "; none for 4 designs" in str(found)
    with pytest.raises(ModelError, match=r"cannot close|does not close"):
        coupler.sweep(robot, {"length:rod": [8.0, 9.0]}, height, errors="nan")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"errors": "ignore"}, "errors must be one of 'raise', 'nan', got 'ignore'"),
        ({"parameters": {"mass:bat": [1.0]}}, "no parameter 'mass:bat'"),
        ({"parameters": {"mass:bar": 1.0}}, "must have one row for each design"),
        ({"parameters": {"mass:bar": [1.0, -2.0]}}, "0 or more"),
        ({"parameters": {"mass:bar": [1.0], "stiffness:spring": [1.0, 2.0]}}, "grid=True combines them"),
        ({"parameters": {}}, "must go by name"),
        ({"on": "mars"}, "on must be one of .* got 'mars'"),
        ({"at_once": 0}, "at_once must be a whole number from 1 on"),
        ({"grid": "yes"}, "grid must be True or False, got 'yes'"),
        ({"measure": lambda robot: {}}, "measures nothing"),
        ({"measure": lambda robot: 1.0}, r"of the shape \(\) for 23 designs"),
        ({"measure": lambda robot: "x"}, "not real numbers"),
        ({"measure": lambda robot: 1j * np.ones(23)}, "not real numbers"),
        ({"measure": lambda robot: {"mass:bar": np.ones(23)}}, "the name of something else"),
        (
            {"measure": lambda robot: {"x": np.ones((robot.mass.size, robot.mass.size))}, "at_once": 20},
            "different shapes",
        ),
        ({"measure": None}, "must be a function of a robot"),
        ({"workers": 0}, "workers must be a whole number from 1 on"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    given = {"parameters": BOTH, "measure": effort} | changes
    with pytest.raises(ModelError, match=told):
        coupler.sweep(arm(), **given)


def test_results_that_have_no_best() -> None:
    found = Designs({"mass:bar": MASS}, {"all": np.full(23, np.nan), "many": np.ones((23, 2))})
    with pytest.raises(ModelError, match="not a number for any design"):
        found.best("all")
    with pytest.raises(ModelError, match="the best one has no meaning"):
        found.best("many")
    with pytest.raises(ModelError, match="nothing was measured as 'more'"):
        found["more"]


@dataclass(frozen=True)
class Scaled:
    factor: float

    def __call__(self, robot: Robot) -> np.ndarray:
        return self.factor * robot.mass[:, 0]


def test_another_robot_or_another_function_is_another_sweep(tmp_path: Path) -> None:
    """Robots with the same numbers but other axes, and functions of one text that hold something else."""
    file, masses = tmp_path / "sweep.db", {"mass:bar": MASS}
    coupler.sweep(arm(), masses, Scaled(1.0), file=file)
    coupler.sweep(arm(), masses, Scaled(1.0), file=file)
    turned = replace(arm().joints[0], kind=Revolute(axis=(1, 0, 0)))
    other = compose("arm", arm().gravity, arm().bodies, [turned], (), (), arm().elements)
    assert other.parameters.keys() == arm().parameters.keys()
    for robot, function in ((other, Scaled(1.0)), (arm(), Scaled(2.0)), (arm(), partial(Scaled.__call__, Scaled(1.0)))):
        with pytest.raises(ModelError, match="belongs to another sweep"):
            coupler.sweep(robot, masses, function, file=file)


def test_all_parts_of_a_robot_count() -> None:
    """Also what is too long to print, and places that only names refer to."""

    def digest(robot: Robot) -> dict[str, str]:
        return identity(robot, {}, effort, 1)

    def held(tool: float, knee: float) -> Robot:
        b = RobotBuilder("held")
        b.body("link", 1.0, inertia=np.eye(3))
        b.joint("hinge", Revolute(lower=-1.0 - knee), "ground", "link")
        b.frame("tool", "link", (0, 0, tool))
        b.keyframe("home", {"hinge": 0.5})
        return b.build()

    heights, points = np.zeros((40, 40)), np.random.default_rng(0).normal(size=(400, 3))
    bump, moved = heights.copy(), points.copy()
    bump[20, 20] = moved[200, 0] = 0.1
    for one, other in (
        (held(1.0, 0.0), held(2.0, 0.0)),
        (held(1.0, 0.0), held(1.0, 1e-12)),
        (arm().with_terrain(heights, (4, 4)), arm().with_terrain(bump, (4, 4))),
        (arm().with_shape("stone", Hull(points)), arm().with_shape("stone", Hull(moved))),
        (arm(), arm().with_parameters({"mass:bar": 3.0})),
    ):
        assert digest(one) != digest(other)
        one.neutral()
        assert digest(one) == digest(pickle.loads(pickle.dumps(one)))


# Ray


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster of three machines on loopback."""
    ray = pytest.importorskip("ray", reason='sweeps on Ray need it: pip install "coupler[ray]"')
    utils = pytest.importorskip("ray.cluster_utils")
    loopback = {"num_cpus": 1, "node_ip_address": "127.0.0.2"}  # Ray would look for 127.0.0.1 elsewhere
    made = utils.Cluster(initialize_head=True, head_node_args={**loopback, "include_dashboard": False})
    made.add_node(**loopback)
    made.add_node(**loopback)
    ray.init(address=made.address, log_to_driver=False, _node_ip_address="127.0.0.2")
    yield made
    ray.shutdown()
    made.shutdown()


def test_machines_of_a_ray_cluster_share_the_work(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is lost, then the sweep is interrupted, and then a whole machine is lost before it goes on."""
    check(coupler.sweep(arm(), BOTH, Fragile(str(tmp_path / "marker")), at_once=8, on="ray"))
    file, kept = tmp_path / "sweep.db", SweepFile.add

    def interrupted(self: SweepFile, number: int, results: Any) -> None:
        if len(self.done()) == 3:
            raise KeyboardInterrupt
        kept(self, number, results)

    with monkeypatch.context() as patched:
        patched.setattr(SweepFile, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            coupler.sweep(arm(), BOTH, effort, at_once=2, on="ray", file=file)
    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT count(*) FROM shares").fetchone() == (3,)
    check(coupler.sweep(arm(), BOTH, effort, at_once=2, on="ray", file=file))

    def broken(robot: Robot) -> Any:
        raise ZeroDivisionError("by nothing")

    with pytest.raises(ZeroDivisionError):
        coupler.sweep(arm(), BOTH, broken, on="ray")
