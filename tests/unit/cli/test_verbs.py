"""`coupler draw`, `coupler study` and `coupler demo`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from coupler.cli import main
from coupler.simulate import Log
from coupler.studies import STUDIES


def test_a_drawing_is_named_after_its_robot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "four_bar"]) == 0
    assert capsys.readouterr().out == "saved four_bar.svg\n"
    assert Path("four_bar.svg").read_text(encoding="utf-8").startswith("<svg")
    Path("four_bar.svg").write_text("precious")
    assert main(["draw", "four_bar"]) == 1
    assert capsys.readouterr().err == "coupler: four_bar.svg exists already; --force overwrites it\n"
    assert Path("four_bar.svg").read_text() == "precious"
    assert main(["draw", "four_bar", "--force"]) == 0


def test_a_drawing_goes_where_it_is_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tello.svg"
    assert main(["draw", "tello", "--out", str(out)]) == 0
    assert "</svg>" in out.read_text(encoding="utf-8")
    assert main(["draw", "tello", "--out", str(tmp_path / "tello.png")]) == 1
    assert "robots are drawn as SVG; name it 'tello.svg'" in capsys.readouterr().err
    assert main(["draw", "tello", "--out", str(tmp_path / "no" / "tello.svg")]) == 1
    assert f"there is no folder {tmp_path / 'no'}; make it first" in capsys.readouterr().err


def test_studies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study"]) == 0
    out = capsys.readouterr().out
    assert all(name in out and about in out for name, (_, about) in STUDIES.items())


def test_a_mistyped_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "001-fgi14", "--out", str(tmp_path / "results")]) == 1
    assert "there is no study '001-fgi14'; did you mean '001-fig14'? there are '000-fig3', " in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_the_demo_is_a_short_tour_with_a_quadruped_that_lands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(tmp_path / "tour")]) == 0
    out = capsys.readouterr().out
    for told in ("mini_cheetah: 25 bodies", "µs per state in a batch", "armatures", "its loop is closed to"):
        assert told in out.replace("\n", " ")
    for told in (
        "lands",
        "pushed",
        "recovers",
        "times real time",
        "the floor carries 87.427 N",
        "loops",
        "are the error of the steps",
    ):
        assert told in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 101 + len(str(tmp_path))
    assert (tmp_path / "tour" / "mini_cheetah.svg").exists()
    log = Log.load(tmp_path / "tour" / "landing.npz")
    assert log.times[-1] == pytest.approx(4.0)
    assert log.q[0, 2] - log.q[-1, 2] == pytest.approx(0.5, abs=0.03)
    assert log.gaps.min() > -1e-4
    assert (tmp_path / "tour" / "landing.png").exists() == (find_spec("matplotlib") is not None)
