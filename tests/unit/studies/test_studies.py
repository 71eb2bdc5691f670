"""Studies print their tables, save their data, and meet what the papers say where that can be said of any machine."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coupler import ModelError
from coupler.cli import main
from coupler.studies import STUDIES, report, run, scaling, speed
from effort import sweep


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.reader(file))


def test_torque_errors_are_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """001, Fig. 14: 4.31 and 1.04 N m RMS, to the digits that the paper gives."""
    assert main(["study", "001-fig14", "--out", str(tmp_path)]) == 0
    knee = next(row for row in table(tmp_path / "001-fig14.csv") if "knee" in row[0])
    assert [round(float(knee[i]), 2) for i in (1, 3)] == [4.31, 1.04]
    assert np.load(tmp_path / "001-fig14.npz")["exact"].shape == (2000, 5)
    assert "4.31" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["001-table2", "001-table3", "001-table4"])
def test_tables_of_times(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "ROBOTS", ("geared_chain",))
    monkeypatch.setattr(speed, "best_times", lambda calls: report.best_times(calls, 0.01))
    run(name, tmp_path)
    head, row = table(tmp_path / f"{name}.csv")
    assert row[0] == "geared_chain"
    assert len(head) == len(row)


@pytest.mark.parametrize("name", sweep(["000-fig3", "001-fig11", "001-fig13"], []))
def test_scaling(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = replace(scaling.FIGURES[name], chains=scaling.FIGURES[name].chains[:1])
    monkeypatch.setattr(scaling, "FIGURES", {name: figure})
    monkeypatch.setattr(scaling, "LENGTHS", (12, 24))
    monkeypatch.setattr(scaling, "LONG", (1000,))
    monkeypatch.setattr(scaling, "best_times", lambda calls, _: report.best_times(calls, 0.01))
    run(name, tmp_path)
    assert [row[1] for row in table(tmp_path / f"{name}.csv")[1:]] == ["12", "24", "1000"]


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
