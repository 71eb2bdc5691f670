"""The line that tells how far a run is."""

from __future__ import annotations

import pytest

from coupler.simulate import progress
from coupler.simulate.progress import Progress


def test_a_long_run_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(clock)))
    with Progress(200, 0.01, True) as shown:
        for k in range(200):
            shown.update(k + 1)
    *_, line = capsys.readouterr().err.strip().split("\r")
    assert line.startswith("[" + "=" * 24 + "] 2.00 of 2.00 s, ")
    assert "× real time, 0 s left" in line


def test_short_runs_and_those_without_a_terminal_tell_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for shown in (True, None):
        with Progress(200, 0.01, shown) as bar:
            for k in range(200):
                bar.update(k + 1)
    assert capsys.readouterr().err == ""
