"""The cost of three ways to set up the contact problem, on short chains."""

from __future__ import annotations

import csv
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

from coupler.contact.formulations import touches
from coupler.contact.pairs import pairs_of
from coupler.dynamics import forward_dynamics
from coupler.studies import formulations, run
from effort import sweep


def test_the_chain_is_the_papers() -> None:
    """Rods of mass and length 1 at height 1, which fall freely and may touch the ground with both ends."""
    robot = formulations.chain(4)
    q, v = robot.neutral(), np.zeros(robot.nv)
    found = touches(robot, q, pairs_of(robot))
    assert robot.mass == 4.0 and robot.nv == 6
    assert [touch.pair.one.name for touch in found] == ["P", "Q"]
    assert [touch.contact.gap for touch in found] == pytest.approx([1.0, 1.0], abs=1e-15)
    np.testing.assert_allclose([touch.contact.point[0] for touch in found], [0.0, 4.0], atol=1e-14)
    a = forward_dynamics(robot, q, v, v)
    np.testing.assert_allclose(np.sort(np.abs(a)), [0.0] * 5 + [9.81], atol=1e-12)


def test_the_three_ways_give_the_same() -> None:
    robot = formulations.chain(5)
    q, v = robot.random_state(1)
    (a, A), *others = (way(q, v) for way in formulations.ways(robot, ["rod0", "rod4"]))
    for b, B in others:
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-12 * np.abs(a).max())
        np.testing.assert_allclose(B, A, rtol=0, atol=1e-12 * np.abs(A).max())


COSTS: list[tuple[str, list[int]]] = [("002-fig5", [0]), ("002-fig6", [0, 1, 2])]  # the second has the first in it


@pytest.mark.parametrize(("name", "contacts"), sweep(COSTS, [COSTS[1]]))
def test_costs_of_short_chains(
    name: str, contacts: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plt = MagicMock()
    monkeypatch.setattr(formulations, "with_pyplot", lambda path, draw: draw(plt))
    monkeypatch.setattr(formulations, "BODIES", (2, 4))
    monkeypatch.setattr(formulations, "SECONDS", 0.01)
    monkeypatch.setattr(formulations, "DURATION", 0.02)
    run(name, tmp_path)
    with (tmp_path / f"{name}.csv").open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert [(row[0], row[1]) for row in rows] == [(n, str(c)) for n in ("2", "4") for c in contacts]
    table = np.load(tmp_path / f"{name}.npz")["table"]
    assert table.shape == (len(rows), len(head))
    assert (table[:, 2:] > 0.0).all()
    assert plt.loglog.call_count == 3 * len(contacts)
    out = capsys.readouterr().out
    assert "traditional 3, ABA 1, DCA 1" in out
    difference = float(out.split("motions of 4 bodies: ")[1].split()[0])
    assert difference < 1e-12


@pytest.mark.parametrize("ends", sweep(["", "PQ"], [""]))
def test_motions_are_the_same_in_the_air_and_on_the_ground(ends: str) -> None:
    assert formulations.largest_difference(ends) < 1e-9  # after 600 steps, and impacts that magnify rounding
