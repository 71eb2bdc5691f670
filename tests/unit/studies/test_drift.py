"""The drift of energy of a swinging chain, which the paper gives to an order of magnitude."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

from coupler.inertia import mass_matrix
from coupler.kinematics import frame_pose
from coupler.simulate import integrate_motion
from coupler.studies import drift, run


def test_the_chain_is_the_papers() -> None:
    """8 thin rods of mass and length 1 in a horizontal line: 8³/3 kg m² about the first hinge."""
    robot = drift.chain()
    H = mass_matrix(robot, np.zeros(8))
    assert robot.mass == 8.0
    assert abs(H[0, 0] - 8.0**3 / 3.0) < 1e-12
    assert abs(H[7, 7] - 1.0 / 3.0) < 1e-14


def test_the_chain_falls_down() -> None:
    """A single rod of length l from rest: a = 3 g / 2 l about its hinge, downwards."""
    motion = integrate_motion(drift.chain(1), [0.0], [0.0], 1e-3, 1e-3)
    assert abs(motion.v[-1, 0] - 1e-3 * 1.5 * 9.81) < 1e-9
    assert frame_pose(drift.chain(1), [0.1], "rod0")[2, 0] < 0.0  # its axis then points below the horizontal


def test_errors_of_euler_are_a_million_times_those_of_runge_and_kutta(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plt = MagicMock()
    monkeypatch.setattr(drift, "with_pyplot", lambda path, draw: draw(plt))
    run("002-fig7", tmp_path)
    errors = np.load(tmp_path / "002-fig7.npz")
    assert errors["t"].shape == errors["rk4"].shape == (2001,)
    ratio = np.abs(errors["explicit_euler"]).max() / np.abs(errors["rk4"]).max()
    assert 1e6 < ratio < 1e7
    out = capsys.readouterr().out
    assert f"paper O(10^6), here {ratio:.1e}: agrees" in out
    assert len((tmp_path / "002-fig7.csv").read_text(encoding="utf-8").splitlines()) == 5
    assert plt.semilogy.call_count == 4
