"""The studies of 003 on RH5 Manus: its trajectories and actuators, and what their tables say."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from coupler.dynamics import inverse_dynamics
from coupler.model import ModelError
from coupler.studies import boxing, embedding, hybrid, rh5, run, torso
from effort import sweep
from models_folder import ABSENT, FOLDER

WANTED = 1e-10  # m, m/s, m/s² and N: of Table II


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.reader(file))


def drawn(module: Any, monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """Lets a study draw on nothing."""
    plt = MagicMock()

    def subplots(rows: int, columns: int, **_: Any) -> tuple[Any, np.ndarray]:
        axes = np.empty(rows * columns, object)
        for i in range(len(axes)):
            axes[i] = MagicMock()
        return MagicMock(), axes.reshape(rows, columns).squeeze()

    plt.subplots.side_effect = subplots
    monkeypatch.setattr(module, "with_pyplot", lambda path, draw: draw(plt))
    return plt


@pytest.mark.parametrize(("way", "rows"), [("numerical", 10), ("hybrid", 6), ("analytical", 0)])
def test_the_three_ways_are_the_papers(way: str, rows: int) -> None:
    robot = rh5.reduced(way)
    assert (rh5.numerical_rows(robot), robot.nv) == (rows, 13)
    assert robot.independent_joints[:3] == ["BodyPitch", "BodyRoll", "BodyYaw"]


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.parametrize(("way", "rows"), sweep([("numerical", 30), ("hybrid", 20)], []))
def test_the_complete_robot_is_the_papers(way: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUPLER_MODELS", str(FOLDER))
    robot = rh5.full(way)
    assert (rh5.numerical_rows(robot), robot.tree.nv, robot.nv) == (rows, 61, 20)
    assert {T: len([x for x in rh5.decay_times(robot).values() if x == T]) for T in (0.01, 0.02)} == {0.01: 4, 0.02: 8}


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_the_complete_robot_is_not_bundled(folder: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COUPLER_MODELS", raising=False)
    if folder is not None:
        monkeypatch.setenv("COUPLER_MODELS", str(tmp_path / folder))
    with pytest.raises(ModelError, match="set COUPLER_MODELS"):
        run("003-fig9", tmp_path)


@pytest.mark.parametrize("make", [rh5.cycloids, rh5.wandering, boxing.boxing])
def test_trajectories_are_smooth_and_within_limits(make: Any) -> None:
    robot = rh5.reduced("numerical")
    motion = make(robot, 2.0, 2001) if make is rh5.cycloids else make(robot, *([2001] * (make is rh5.wandering)))
    lower, upper = rh5.independent_limits(robot)
    assert (motion.y >= lower - 1e-12).all() and (motion.y <= upper + 1e-12).all()
    h = motion.t[1] - motion.t[0]
    for x, rate in ((motion.y, motion.v), (motion.v, motion.a)):
        middle = (x[2:] - x[:-2]) / (2 * h)
        assert np.abs(middle - rate[1:-1]).max() < 0.01 * np.abs(rate).max()
    robot.check(motion.positions(robot))


def test_actuators_do_the_work_of_the_independent_joints() -> None:
    robot = rh5.reduced("numerical")
    motion = rh5.cycloids(robot, 1.0, 21)
    seen = rh5.actuation(robot, motion)
    tau = inverse_dynamics(robot, motion.positions(robot), motion.v, motion.a)
    np.testing.assert_allclose((seen.force * seen.velocity).sum(axis=1), (tau * motion.v).sum(axis=1), atol=1e-10)
    names = robot.actuated_joints
    same = names.index("BodyYaw"), robot.v_slice("BodyYaw").start
    np.testing.assert_allclose(seen.force[:, same[0]], tau[:, same[1]], atol=1e-10)


def test_the_torso_is_closed_to_rounding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torso, "STATES", 101)
    drawn(torso, monkeypatch)
    run("003-table2", tmp_path)
    for row in table(tmp_path / "003-table2.csv")[1:]:
        assert max(float(row[1]), float(row[3])) < WANTED
        assert float(row[5]) > 0.05  # they move
    out = capsys.readouterr().out
    assert "paper 6 and 0, here 6 and 0: agrees" in out and "1.15e-04 and 1.13e-04" in out and "differs" not in out


@pytest.mark.parametrize("ways", [("hybrid",), pytest.param(rh5.WAYS, marks=pytest.mark.long)])
def test_embedded_loops_have_the_accelerations_of_the_mass_matrix(
    ways: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """003, Fig. 10: the paper gives a root mean square error of zero."""
    monkeypatch.setattr(embedding, "STATES", 41)
    monkeypatch.setattr(embedding, "WAYS", ways)
    drawn(embedding, monkeypatch)
    run("003-fig10", tmp_path)
    rows = table(tmp_path / "003-fig10.csv")[1:]
    assert [row[:2] for row in rows] == [
        [way, {"numerical": "10", "hybrid": "6", "analytical": "0"}[way]] for way in ways
    ]
    assert all(float(row[i]) < 1e-11 * float(row[2]) for row in rows for i in (3, 5))


@pytest.mark.parametrize("name", sweep(["003-fig7", "003-fig9"], ["003-fig7"]))
def test_costs_of_closing_loops(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said of times, which are not those of a test."""
    if name == "003-fig9" and ABSENT:
        pytest.skip(ABSENT)
    monkeypatch.setenv("COUPLER_MODELS", str(FOLDER))
    monkeypatch.setattr(hybrid, "CALLS", 16)
    monkeypatch.setattr(hybrid, "PART", 8)
    monkeypatch.setattr(hybrid, "SECONDS", 0.001)
    kept = ("inverse, projected", "inverse, C-RNEA")
    monkeypatch.setattr(hybrid, "RESULTS", {result: hybrid.RESULTS[result] for result in kept})
    monkeypatch.setattr(hybrid, "STABILIZED", {kept[0]: hybrid.STABILIZED[kept[0]]})
    monkeypatch.setattr(hybrid, "FIGURES", {name: replace(hybrid.FIGURES[name], further={})})
    plt = drawn(hybrid, monkeypatch)
    run(name, tmp_path)
    ways = [hybrid.BAUMGARTE, *hybrid.FIGURES[name].rows]
    head, *rows = table(tmp_path / f"{name}.csv")
    assert [row[:2] for row in rows] == [[way, called] for called in hybrid.CALLED for way in ways]
    assert head[2:] == [hybrid.CLOSING, *kept]
    for way, _, closing, *times in rows:
        assert (float(closing) > 0.0) == (way in ("numerical", "hybrid"))
        assert all(float(time) > float(closing) for time in times if time)
    out = capsys.readouterr().out
    for way, count in hybrid.FIGURES[name].rows.items():
        assert f"{way}, rows that are closed numerically: paper {count}, here {count}: agrees" in out
    baseline = sum(slow == hybrid.BAUMGARTE for slow, _ in hybrid.FIGURES[name].ratios)  # which is projected alone
    assert out.count("inverse dynamics, ") == 4 * len(hybrid.FIGURES[name].ratios) - 2 * baseline
    assert plt.bar.call_count == len(ways)


@pytest.mark.parametrize(
    ("ratio", "found"), [(5.5, "agrees"), (3.2, "agrees"), (12.0, "better"), (1.1, "differs: because")]
)
def test_gains_are_judged_by_half_and_twice(ratio: float, found: str) -> None:
    assert hybrid._judged(ratio, 5.0, "because").startswith(found)


def test_a_boxers_poses(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn(boxing, monkeypatch)
    run("003-fig5", tmp_path)
    rows = np.array(table(tmp_path / "003-fig5.csv")[1:], dtype=float)
    assert (
        rows[2, 1] - rows[0, 1] > 0.25 and rows[6, 4] - rows[0, 4] > 0.25
    )  # the left hand goes forward, then the right
    assert "differs: the paper's motion is not public" in capsys.readouterr().out


@pytest.mark.long
def test_a_boxers_actuators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn(boxing, monkeypatch)
    run("003-fig6", tmp_path)
    for row in table(tmp_path / "003-fig6.csv")[1:]:
        assert max(float(row[1]), float(row[2])) < 1e-9
        assert float(row[3]) < 1e-3
    assert "differs" not in capsys.readouterr().out
