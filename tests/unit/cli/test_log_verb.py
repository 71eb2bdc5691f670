"""`coupler log` tells what is in a log, and converts it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from coupler import Simulation, robots
from coupler.cli import main
from coupler.simulate import Log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    robot = robots.load("planar_leg_linkage").with_floor()
    Simulation(robot).run(0.02, log=tmp_path / "run.clog", record=["q", "forces"])
    return tmp_path / "run.clog"


def test_a_log_is_described(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(path)]) == 0
    out = capsys.readouterr().out
    for told in (
        "robot     planar_leg_linkage",
        "rows      21",
        "to        0.02 s",
        "times, q, forces",
        "note      none",
    ):
        assert told in out
    assert main(["log", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["from"], told["step"]) == (21, 0.0, 1e-3)
    assert told["contacts"] == ["end-effector on floor"]


def test_a_log_that_has_no_rows_is_described(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Log.load(path)[:0].save(path.with_name("none.npz"))
    assert main(["log", str(path.with_name("none.npz"))]) == 0
    assert "rows      0\nfrom      none\n" in capsys.readouterr().out


def test_damage_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(data)
    assert main(["log", str(path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"it is damaged at byte \d+; \d+ rows? before that may be sound", out)


def test_a_log_is_converted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = path.with_suffix(".npz")
    assert main(["log", str(path), str(out), "--every", "5"]) == 0
    assert capsys.readouterr().out == f"saved {out}: 5 rows\n"
    np.testing.assert_array_equal(Log.load(out).q, Log.load(path).q[::5])
    assert main(["log", str(path), str(out)]) == 1
    assert "exists already; --force overwrites it" in capsys.readouterr().err
    assert main(["log", str(path), str(out), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"saved": str(out), "rows": 21}


def test_what_cannot_be_is_one_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = path.with_suffix(".csv")
    assert main(["log", str(path), str(table)]) == 0
    for arguments, told in (
        ([str(path), str(path.with_suffix(".bag"))], "logs are saved as '.clog'"),
        ([str(table)], "run.csv: it is not a log, which is a .clog or an .npz file"),
        ([str(path.with_name("none.clog"))], "none.clog: there is no such file"),
        ([str(path), "--every", "0"], "--every must be 1 or more, got 0"),
    ):
        capsys.readouterr()
        assert main(["log", *arguments]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line
