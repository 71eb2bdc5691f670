"""Logs of runs: what is in them, and that their files are whole however a run ends."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import ModelError, kinetic_energy, potential_energy, robots
from coupler.model import ModelWarning, Robot
from coupler.simulate import log as log_module
from coupler.simulate.log import Log, LogWriter

NAMES = ("left", "right")


@pytest.fixture(scope="module")
def robot() -> Robot:
    return robots.load("four_bar")


def row(robot: Robot, k: int) -> dict[str, Any]:
    """A row that is different for each k, for two contacts."""
    rng = np.random.default_rng(k)
    q, v = robot.random_state(rng)
    parts = {"gaps": (2,), "forces": (2, 3), "points": (2, 3)}
    return {"time": 0.1 * k, "q": q, "v": v, "tau": rng.normal(size=robot.nv), "residual": 1e-9 * k, "sweeps": k} | {
        name: rng.normal(size=shape) for name, shape in parts.items()
    }


def filled(writer: LogWriter, robot: Robot, rows: int) -> None:
    for k in range(rows):
        writer.append(**row(robot, k))


def same(one: Log, other: Log) -> None:
    for field in fields(Log):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)


def test_rows_come_back_as_they_were_given_across_chunks(robot: Robot) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 300)
    log = writer.log()
    assert len(log) == len(writer) == 300
    for k in (0, 63, 64, 127, 128, 299):
        given = row(robot, k)
        assert (log.times[k], log.residuals[k], log.sweeps[k]) == (given["time"], given["residual"], k)
        for name in ("q", "v", "tau", "gaps", "forces", "points"):
            np.testing.assert_array_equal(getattr(log, name)[k], given[name], err_msg=name)
    assert (log.robot, log.step, log.contacts, log.note) == ("four_bar", 1e-3, NAMES, "")
    assert log.joints == tuple(robot.independent_joints)


def test_energies_are_those_of_the_states(robot: Robot) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 70)
    log = writer.log()
    np.testing.assert_allclose(log.kinetic, [kinetic_energy(robot, q, v) for q, v in zip(log.q, log.v, strict=True)])
    np.testing.assert_allclose(log.potential, [potential_energy(robot, q) for q in log.q])


def test_states_without_an_energy_have_none_and_spoil_no_other(robot: Robot) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    for k, factor in enumerate((1.0, np.nan, 1.0, 1e200, 1.0)):
        given = row(robot, k)
        writer.append(**given | {"v": given["v"] * factor})
    log = writer.log()
    np.testing.assert_array_equal(np.isfinite(log.kinetic), [True, False, True, False, True])
    assert log.kinetic[4] == kinetic_energy(robot, log.q[4], log.v[4])


def test_one_row_of_several_is_kept(robot: Robot) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES, every=3)
    filled(writer, robot, 8)
    np.testing.assert_array_equal(writer.log().sweeps, [0, 3, 6])
    with pytest.raises(ModelError, match="every must be a whole number from 1 on, got 0"):
        LogWriter(None, robot, 1e-3, every=0)


def test_a_run_without_contacts_needs_none_of_their_columns(robot: Robot, tmp_path: Path) -> None:
    with LogWriter(tmp_path / "run.npz", robot, 1e-3) as writer:
        writer.append(time=0.0, q=robot.neutral(), v=[0.5], tau=[0.0])
    log = Log.load(tmp_path / "run.npz")
    assert log.gaps.shape == (1, 0) and log.forces.shape == log.points.shape == (1, 0, 3)
    assert log.contacts == () and log.kinetic[0] > 0.0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"q": np.zeros(1)}, r"a row of the log: q has the shape \(1,\), and must have"),
        ({"forces": np.zeros(3)}, r"forces has the shape \(3,\), and must have \(2, 3\)"),
        ({"gaps": 0.0}, r"gaps has the shape \(\), and must have \(2,\)"),
        ({"time": "noon"}, "times must be numbers, got 'noon'"),
    ],
)
def test_a_row_of_another_shape_is_refused_and_not_counted(robot: Robot, wrong: dict[str, Any], told: str) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 2)
    with pytest.raises(ModelError, match=told):
        writer.append(**row(robot, 2) | wrong)
    assert len(writer.log()) == 2


def test_a_saved_log_comes_back_and_needs_no_pickles(robot: Robot, tmp_path: Path) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    writer.note = "stopped: a leg is long"
    filled(writer, robot, 5)
    path = writer.log().save(tmp_path / "run.npz")
    same(Log.load(path), writer.log())
    with np.load(path, allow_pickle=False) as file:
        assert set(file) == {field.name for field in fields(Log)}
        assert file["contacts"].dtype.kind == file["note"].dtype.kind == "U"
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_the_arrays_of_a_log_cannot_be_written_to(robot: Robot) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 2)
    log = writer.log()
    with pytest.raises(ValueError, match="read-only"):
        log.q[0] = 0.0
    filled(writer, robot, 1)
    assert (len(log), len(writer.log())) == (2, 3)


def test_a_log_whose_arrays_do_not_fit_together_is_refused(robot: Robot, tmp_path: Path) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 2)
    path = writer.log().save(tmp_path / "run.npz")
    with np.load(path) as file:
        arrays: dict[str, Any] = dict(file)
    arrays["gaps"] = np.zeros((2, 3))
    np.savez(path, **arrays)
    with pytest.raises(ModelError, match=r"run.npz: it is no log of a run: gaps has the shape \(2, 3\)"):
        Log.load(path)
    del arrays["tau"]
    np.savez(path, **arrays)
    with pytest.raises(ModelError, match=r"run.npz: there is no array 'tau' in it"):
        Log.load(path)


def test_files_that_are_no_logs_are_told(robot: Robot, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none.npz: there is no such file"):
        Log.load(tmp_path / "none.npz")
    with pytest.raises(ModelError, match="it cannot be read: Is a directory"):
        Log.load(tmp_path)
    plain, whole = tmp_path / "array.npy", tmp_path / "whole.npz"
    np.save(plain, np.zeros(3))
    with LogWriter(whole, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 3)
    half = whole.read_bytes()[: whole.stat().st_size // 2]
    for content in (b"", b"time, q\n0.0, 1.0\n", plain.read_bytes(), half):
        (tmp_path / "odd.npz").write_bytes(content)
        with pytest.raises(ModelError, match=r"odd.npz: it is not an npz file, or only part of one"):
            Log.load(tmp_path / "odd.npz")
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, times=np.array([{}], dtype=object))
    with pytest.raises(ModelError, match=r"pickled.npz: its array 'times' cannot be read"):
        Log.load(pickled)


def test_a_place_that_cannot_be_written_to_is_told_before_the_run(robot: Robot, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, told in (
        (tmp_path / "none" / "run.npz", "there is no folder .*none; make it first"),
        (tmp_path / "file" / "run.npz", "there is no folder .*file; make it first"),
        (tmp_path, "it is a folder; name a file in it"),
        (tmp_path / ("long" * 70), "it cannot be written: File name too long"),
    ):
        with pytest.raises(ModelError, match=told):
            LogWriter(path, robot, 1e-3)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def fail(writer: LogWriter, robot: Robot, rows: int, error: BaseException) -> None:
    with writer:
        filled(writer, robot, rows)
        raise error


@pytest.mark.parametrize(
    ("error", "note"),
    [(KeyboardInterrupt(), "interrupted"), (ModelError("the leg broke"), "ModelError: the leg broke")],
)
def test_an_exception_leaves_a_log_that_says_so(robot: Robot, tmp_path: Path, error: BaseException, note: str) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(type(error)):
        fail(LogWriter(path, robot, 1e-3, NAMES), robot, 4, error)
    assert (len(Log.load(path)), Log.load(path).note) == (4, note)


def test_a_file_of_an_earlier_run_stays_until_there_is_something_to_replace_it(robot: Robot, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with LogWriter(path, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 4)
    with pytest.raises(KeyboardInterrupt):
        fail(LogWriter(path, robot, 1e-3, NAMES), robot, 0, KeyboardInterrupt())
    assert (len(Log.load(path)), Log.load(path).note) == (4, "")
    with LogWriter(path, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 2)
        assert len(Log.load(path)) == 4
    assert len(Log.load(path)) == 2


def test_a_closed_log_takes_no_more_rows(robot: Robot) -> None:
    with LogWriter(None, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 2)
    with pytest.raises(ModelError, match="closed"):
        filled(writer, robot, 1)
    assert len(writer.log()) == 2


def test_writing_goes_on_at_growing_intervals(robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time between them, writings come at 1, 2, 3, 4, 5, 7, 9, 12, 15, ... rows: their sum stays linear."""
    monkeypatch.setattr(log_module, "_INTERVAL", 0.0)
    written: list[int] = []
    save = log_module.save_arrays
    monkeypatch.setattr(log_module, "save_arrays", lambda p, a: (written.append(len(a["times"])), save(p, a)))
    with LogWriter(tmp_path / "run.npz", robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 200)
    assert written[:9] == [1, 2, 3, 4, 5, 7, 9, 12, 15]
    assert written[-1] == 200 and sum(written) < 6 * 200


def test_a_full_disk_does_not_end_a_run(robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_module, "_INTERVAL", 0.0)
    monkeypatch.setattr("os.replace", full)
    path = tmp_path / "run.npz"
    writer = LogWriter(path, robot, 1e-3, NAMES)
    with pytest.warns(ModelWarning, match="not written for now: .*run.npz: it cannot be written: No space left"):
        filled(writer, robot, 1)
    with pytest.raises(ModelError, match=r"run.npz: it cannot be written: No space left"):
        writer.close()
    writer = LogWriter(path, robot, 1e-3, NAMES)
    with pytest.warns(ModelWarning, match="No space left"), pytest.raises(ZeroDivisionError) as caught:
        fail(writer, robot, 1, ZeroDivisionError())
    assert "the log is lost: " in caught.value.__notes__[0]
    assert not list(tmp_path.iterdir())
    assert len(writer.log()) == 1


ENDLESS = """
import sys
import numpy as np
from coupler import robots
from coupler.simulate import log

log._INTERVAL, log._GROWTH = 0.0, 1.0
robot = robots.load("four_bar")
q, v = robot.random_state(0)
with log.LogWriter(sys.argv[1], robot, 1e-3, ["tip"]) as writer:
    for k in range(10**9):
        writer.append(time=k, q=q, v=v, tau=v, gaps=np.ones(1), forces=np.ones((1, 3)), points=np.ones((1, 3)))
"""


@pytest.mark.parametrize("looks", [1, 10, 40])
def test_a_log_is_whole_while_it_is_written_and_after_its_run_is_killed(tmp_path: Path, looks: int) -> None:
    """The run does nothing but write its file again and again, so that it is killed in the middle of it."""
    path = tmp_path / "run.npz"
    with subprocess.Popen([sys.executable, "-c", ENDLESS, str(path)]) as run:
        try:
            while not path.exists() and run.poll() is None:
                time.sleep(0.01)
            seen = Log.load(path)
            for _ in range(looks):
                time.sleep(0.003)
                seen = Log.load(path)
        finally:
            run.kill()
    log = Log.load(path)
    assert len(log) >= len(seen) > 0
    np.testing.assert_array_equal(log.times, np.arange(len(log)))
    assert np.isfinite(log.kinetic).all()
