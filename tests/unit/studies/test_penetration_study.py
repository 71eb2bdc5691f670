"""Drift and penetration of a chain that lands, which the paper gives to orders of magnitude."""

from __future__ import annotations

import csv
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

from coupler.contact.formulations import touches
from coupler.contact.pairs import pairs_of
from coupler.kinematics import centre_of_mass
from coupler.studies import penetration, run


@pytest.mark.parametrize("floating", [False, True])
def test_the_chain_is_the_papers(floating: bool) -> None:
    """The first body's centre at (0, 2.3), all at −30°: ends at 2.3 + 0.25 and 2.3 − 1.25, centre at 2.3 − 0.5."""
    robot = penetration.chain(floating)
    q = penetration.start(robot)
    assert robot.mass == 3.0
    assert centre_of_mass(robot, q) == pytest.approx([np.cos(np.pi / 6), 0.0, 1.8], abs=1e-14)
    pairs = pairs_of(robot)
    assert [pair.friction for pair in pairs] == [0.0, 0.0]
    assert [touch.contact.gap for touch in touches(robot, q, pairs)] == pytest.approx([2.55, 1.05], abs=1e-14)


@pytest.mark.long
def test_runge_and_kutta_drifts_less_and_limits_keep_it_from_bouncing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until one end has landed, which takes 0.46 s, and been dragged along."""
    plt, panel, panels = MagicMock(), MagicMock(), np.empty((2, 2), object)
    panels.fill(panel)
    plt.subplots.return_value = MagicMock(), panels
    monkeypatch.setattr(penetration, "with_pyplot", lambda path, draw: draw(plt))
    monkeypatch.setattr(penetration, "DURATION", 0.65)
    run("002-fig8", tmp_path)
    with (tmp_path / "002-fig8.csv").open(encoding="utf-8") as file:
        rows = {row[0]: [float(x) for x in row[1:5]] for row in list(csv.reader(file))[1:]}
    drift, first, median, height = (dict(zip(rows, column, strict=True)) for column in zip(*rows.values(), strict=True))
    assert drift["a"] == pytest.approx(drift["floating"], rel=1e-6)
    assert all(drift["a"] > 1e3 * drift[case] for case in "bcd")
    speed = np.sqrt(2.0 * 9.81 * 1.05)
    assert first["a"] < 1e-5
    assert 0.5 * penetration.STEP * speed < first["forward"] <= 1.01 * penetration.STEP * speed
    assert all(0.1 * penetration.STEP * speed < first[case] <= 0.51 * penetration.STEP * speed for case in "bcd")
    assert median["a"] < 1e-4 and median["d"] < 1e-1 * median["c"]
    assert height["b"] > 0.1 > 10 * max(height[case] for case in "acd")
    arrays = np.load(tmp_path / "002-fig8.npz")
    assert arrays["d_gaps"].shape == (650, 2) and arrays["t"].shape == (650,)
    out = capsys.readouterr().out
    assert "(d) error after the first impact, median of (c) over (d): paper two orders of magnitude" in out
    assert "(d) depth of the first impact itself" in out
    assert panel.plot.call_count == 12
