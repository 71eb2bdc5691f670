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
from coupler.graph import compile
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
    ways = formulations.ways(robot, ["rod0", "rod4"])
    (a, A), *others = (way(q, v, np.zeros(robot.nv)) for way in ways.values())
    for b, B in others:
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-12 * np.abs(a).max())
        np.testing.assert_allclose(B, A, rtol=0, atol=1e-12 * np.abs(A).max())


COSTS: list[tuple[str, list[int]]] = [("002-fig5", [0]), ("002-fig6", [0, 1, 2])]  # the second has the first in it


@pytest.mark.parametrize(("name", "contacts"), sweep(COSTS, [COSTS[1]]))
def test_costs_of_short_chains(
    name: str, contacts: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plt = MagicMock()
    plt.subplots.side_effect = lambda rows, columns, **_: (MagicMock(), [[panel] * columns])
    panel = MagicMock()
    monkeypatch.setattr(formulations, "with_pyplot", lambda path, draw: draw(plt))
    monkeypatch.setattr(formulations, "BODIES", (2, 4))
    monkeypatch.setattr(formulations, "NEAR", (2, 3))
    monkeypatch.setattr(formulations, "SECONDS", 0.001)
    monkeypatch.setattr(formulations, "DURATION", 0.02)
    record = run(name, tmp_path)
    with (tmp_path / f"{name}.csv").open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert [(row[0], row[1]) for row in rows] == [(n, str(c)) for n in ("2", "4") for c in contacts]
    table = np.load(tmp_path / f"{name}.npz")["table"]
    assert table.shape == (len(rows), len(head))
    assert (np.delete(table, (1, 5), axis=1) > 0.0).all()
    assert ((table[:, 5] > 0.0) == (table[:, 1] > 0.0)).all()  # what is solved, and takes time
    np.testing.assert_allclose(table[:, 6:9], table[:, 2:5] + table[:, 5:6], rtol=1e-12)
    assert panel.loglog.call_count == sum(6 + 3 * (count > 0) for count in contacts)
    assert "all compiled" in capsys.readouterr().out
    said = {told.what: told for told in record.verdicts}
    assert said["largest difference of the three motions of 4 bodies"].outcome == "agrees"
    crossing = f"freedoms n from which ABA costs less than H and its factors, {contacts[-1]} contacts"
    assert said[crossing].paper == "n > 7"
    if name == "002-fig6":
        assert said["ABA: operations per further body over those without contact"].outcome == "agrees"


def test_recursion_is_cheaper_beyond_seven_freedoms_with_contacts_at_both_ends() -> None:
    """002, §3.4; in operations, which are the same on every machine."""
    cheaper = []
    for bodies in (5, 6):
        robot = formulations.chain(bodies)
        frames = [robot.tree.place[body] for body in ("rod0", f"rod{bodies - 1}")]
        traditional, recursive = (
            formulations.PROGRAMS[method](robot, frames).operations().total() for method in ("traditional", "ABA")
        )
        cheaper.append(recursive < traditional)
    assert cheaper == [False, True]


@pytest.mark.parametrize("contacts", [1, 2])
def test_frictionless_contacts_are_solved(contacts: int) -> None:
    """Impulses and the velocities that they leave are not negative, and one of the two is zero for each contact."""
    solve, rng = compile(formulations.solving_program(contacts), backend="interpreter"), np.random.default_rng(0)
    for _ in range(50):
        root = rng.normal(size=(6 * contacts, 6 * contacts))
        A, n, w = root @ root.T, rng.normal(size=(contacts, 6)), rng.normal(size=contacts)
        impulses = solve(A.ravel(), n.ravel(), w)
        rows = np.zeros((contacts, 6 * contacts))
        for i in range(contacts):
            rows[i, 6 * i : 6 * i + 6] = n[i]
        after = rows @ A @ rows.T @ impulses + w
        assert (impulses >= 0.0).all() and (after > -1e-9).all()
        assert np.abs(impulses * after).max() < 1e-9


@pytest.mark.parametrize("ends", sweep(["", "PQ"], [""]))
def test_motions_are_the_same_in_the_air_and_on_the_ground(ends: str) -> None:
    assert formulations.largest_difference(ends) < 1e-9  # after 600 steps, and impacts that magnify rounding
