"""Studies print their tables, save their data, and meet what the papers say where that can be said of any machine."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import numpy as np
import pytest

from coupler import ModelError, robots, studies
from coupler.cli import main
from coupler.studies import STUDIES, complexity, dense, report, run, scaling, speed
from effort import sweep


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.reader(file))


def test_torque_errors_are_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """001, Fig. 14: 4.31 and 1.04 N m RMS, to the digits that the paper gives."""
    assert main(["study", "001-fig14", "--out", str(tmp_path)]) == 0
    knee = next(row for row in table(tmp_path / "001-fig14.csv") if "knee" in row[0])
    assert [round(float(knee[i]), 2) for i in (1, 3)] == [4.31, 1.04]
    assert [float(knee[i]) for i in (6, 7)] == pytest.approx([39.2, 9.5], rel=0.03)  # % of the largest torque
    assert np.load(tmp_path / "001-fig14.npz")["exact"].shape == (2000, 5)
    out = capsys.readouterr().out
    assert "N m: paper 4.31 (said of the ankle), here 4.31 (knee): agrees" in out and "differs" not in out


@pytest.mark.parametrize("name", sweep([*speed.TABLES, *speed.FIGURES], ["001-table2", "001-table4", "001-fig10"]))
def test_tables_of_times(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "ROBOTS", ("geared_chain",))
    monkeypatch.setattr(speed, "best_times", lambda calls: report.best_times(calls, 0.01))
    record = run(name, tmp_path)
    head, row = table(tmp_path / f"{name}.csv")
    assert row[0] == "geared_chain"
    assert len(head) == len(row)
    of_paper = speed.TABLES[speed.FIGURES.get(name, name)]
    named = [told.what for told in record.verdicts]
    assert all(any(method in what for what in named) for method in (*of_paper.others, *of_paper.further))
    assert "batch of 1024" in capsys.readouterr().out


def test_tables_are_of_the_papers_robots() -> None:
    assert tuple(robots.load(robot).nv for robot in speed.ROBOTS) == speed.FREEDOMS
    assert all(len(values) == len(speed.ROBOTS) for own in speed.TABLES.values() for values in own.paper.values())


@pytest.mark.parametrize(
    ("added", "paper", "found"),
    [
        ([-5.0, 3.0], [-35.0, -34.0], "better: to be exact"),
        ([-35.0, -34.0], [-35.0, -34.0], "agrees"),
        ([200.0, 210.0], [80.0, 70.0], "better"),
        ([80.0, 75.0], [80.0, 70.0], "agrees"),
        ([40.0, 30.0], [80.0, 90.0], "differs: slower as well"),
        ([80.0, -10.0], [80.0, 6.0], "differs: faster on two"),
    ],
)
def test_times_are_judged(added: list[float], paper: list[float], found: str) -> None:
    assert speed._judged(added, paper, ["one", "two"]).startswith(found)


@pytest.mark.parametrize("name", sweep(["000-fig3", "001-fig11", "001-fig13"], ["001-fig13"]))
def test_scaling(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = scaling.FIGURES[name]
    monkeypatch.setattr(scaling, "SHORT", (2, 4))
    monkeypatch.setattr(scaling, "LONG", (6, 8))
    monkeypatch.setattr(scaling, "DENSE_FROM", (4, 6, 8))
    monkeypatch.setattr(scaling, "FURTHEST", 10)
    monkeypatch.setattr(scaling, "SECONDS", 0.001)
    monkeypatch.setattr(scaling, "with_pyplot", lambda path, draw: draw(drawing()))
    monkeypatch.setattr(scaling, "dense_times", lambda *given: dense._measured(*given))
    monkeypatch.setattr(dense, "SECONDS", 0.001)
    record = run(name, tmp_path)
    rows = table(tmp_path / f"{name}.csv")[1:]
    assert [row[1] for row in rows] == ["2", "4", "6", "8", "10"] * len(figure.chains)
    powers = [told for told in record.verdicts if "power of growth" in told.what]
    assert len(powers) == len(figure.chains) * (1 + len(figure.further) + len(figure.dense) + len(figure.others))


def test_dense_matrices_are_measured_in_a_process_of_their_own() -> None:
    found = dense.dense_times("geared_chain", None, [2, 3], ["projection"])
    assert list(found) == ["projection"] and list(found["projection"]) == [2, 3]
    assert all(seconds > 0.0 for seconds in found["projection"].values())
    with pytest.raises(ModelError, match=r"the measurement of dense matrices failed.*no_chain"):
        dense.dense_times("no_chain", None, [2], ["projection"])


def test_complexity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complexity, "LOOPS", (3, 4, 5))
    monkeypatch.setattr(complexity, "EFFECTORS", (1, 2, 4))
    monkeypatch.setattr(complexity, "LINKS", 4)
    monkeypatch.setattr(complexity, "SECONDS", 0.001)
    monkeypatch.setattr(complexity, "with_pyplot", lambda path, draw: draw(drawing()))
    record = run("001-complexity", tmp_path)
    assert len(record.verdicts) == 5
    assert len(table(tmp_path / "001-complexity.csv")) == 1 + 2 * 3 + 2 * 3


def test_rings_close() -> None:
    robot = complexity.ring(6)
    assert (robot.nv, len(robot.bodies)) == (4, 6)
    robot.check(robot.neutral())


def drawing() -> MagicMock:
    """A pyplot on which nothing is drawn."""

    def subplots(rows: int, columns: int, *, squeeze: bool = True, **_: Any) -> tuple[Any, Any]:
        panels = [Mock() for _ in range(columns)]
        return Mock(), panels if squeeze else [panels] * rows

    plt = MagicMock()
    plt.subplots.side_effect = subplots
    return plt


# One page of all


@pytest.fixture
def three_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The studies are one that tells everything, one that fails, and a real one."""

    def telling(name: str, folder: Path) -> None:
        report.note("Times are <of> nothing.")
        report.verdict("growth", "1", "2", "differs: & because")
        report.save_table(folder / f"{name}.csv", ["a", "b"], [["x", 1.0]])
        (folder / "x.png").write_bytes(b"picture")
        monkeypatch.setitem(report.__dict__, "seen", report.full())

    def failing(name: str, folder: Path) -> None:
        raise ValueError("there is no <data>")

    modules = {"telling": SimpleNamespace(run=telling), "failing": SimpleNamespace(run=failing)}
    real = studies.import_module
    monkeypatch.setattr(studies, "import_module", lambda name: modules.get(name.split(".")[-1]) or real(name))
    few = {"000-a": ("telling", "tells"), "000-b": ("failing", "fails"), "001-fig14": STUDIES["001-fig14"]}
    monkeypatch.setattr(studies, "STUDIES", few)


@pytest.mark.usefixtures("three_studies")
def test_all_studies_make_one_page_and_go_on_where_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "--all", "--full", "--out", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "000-b failed: there is no <data>" in told.err and "failed: 000-b" in told.err
    assert report.__dict__["seen"] is True
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "failed: there is no &lt;data&gt;" in page and "Times are &lt;of&gt; nothing." in page
    assert '<tr class="differs"><td>growth</td><td>1</td><td>2</td><td>differs: &amp; because</td></tr>' in page
    assert page.count("<h3 ") == 3 and "RMS torque error" in page
    assert 'src="data:image/png;base64,' in page and 'src="http' not in page and "<link" not in page


def test_verdicts_begin_with_one_of_three_words() -> None:
    with pytest.raises(ValueError, match="begins with agrees, better, differs"):
        report.verdict("growth", "1", "2", "cannot be compared")


@pytest.mark.usefixtures("three_studies")
def test_all_that_succeed_exit_with_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(studies.STUDIES, "000-b")
    monkeypatch.setitem(studies.STUDIES, "003-fig9", STUDIES["003-fig9"])
    monkeypatch.delenv("COUPLER_MODELS", raising=False)
    assert main(["study", "--all", "--out", str(tmp_path)]) == 0
    assert "left out: the complete RH5 Manus is not part of coupler" in (tmp_path / "report.html").read_text()
    assert main(["study", "001-fig14", "--all", "--out", str(tmp_path)]) == 1
    assert "leave out '001-fig14', or --all" in capsys.readouterr().err


def test_times_are_medians_and_best_of_turns() -> None:
    called: list[str] = []
    calls = [lambda: called.append("a"), lambda: called.append("b")]
    assert all(seconds > 0.0 for seconds in (*report.median_times(calls, 0.0), *report.best_times(calls, 0.0)))
    assert called == ["a", "b"] * 8  # a first call each, and three that count


def test_unknown_studies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "nope", "--out", str(tmp_path)]) == 1
    assert "there is no study 'nope'; there are '000-fig3'" in capsys.readouterr().err
    with pytest.raises(ModelError, match="no study"):
        run("nope", tmp_path)


def test_help_lists_the_studies(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["study", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in STUDIES)
