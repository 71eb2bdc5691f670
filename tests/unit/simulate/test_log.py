"""Logs of runs: what is in them, in memory and in files, and how they end."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import ModelError, kinetic_energy, potential_energy, robots
from coupler.model import ModelWarning, Robot
from coupler.simulate.logs import Log, LogWriter
from coupler.simulate.logs import writer as writer_module
from coupler.simulate.logs.columns import COLUMNS

NAMES = ("left", "right")
ABOUT = ("robot", "step", "contacts", "joints", "columns", "note")
FILES = pytest.mark.parametrize("name", ["run.clog", "run.npz"])


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
    assert [getattr(one, name) for name in ABOUT] == [getattr(other, name) for name in ABOUT]
    for name in one.columns:
        assert getattr(one, name).dtype == getattr(other, name).dtype, name
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


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
        assert set(file) == {*COLUMNS, "robot", "step", "contacts", "joints", "note"}
        assert file["contacts"].dtype.kind == file["note"].dtype.kind == "U"
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_npz_files_of_the_first_version_are_read(robot: Robot, tmp_path: Path) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 5)
    log = writer.log()
    words = {name: np.array(getattr(log, name), dtype=str) for name in ("robot", "contacts", "joints", "note")}
    arrays: dict[str, Any] = {name: getattr(log, name) for name in COLUMNS} | words
    np.savez(tmp_path / "old.npz", **arrays, step=1e-3)
    same(Log.load(tmp_path / "old.npz"), log)


@FILES
def test_the_log_of_a_file_is_read_from_there_column_by_column(robot: Robot, tmp_path: Path, name: str) -> None:
    memory = LogWriter(None, robot, 1e-3, NAMES)
    filled(memory, robot, 300)
    with LogWriter(tmp_path / name, robot, 1e-3, NAMES) as writer:
        for k in range(300):
            writer.append(**row(robot, k))
            if k % 70 == 5:
                same(writer.log()[: k + 1], memory.log()[: k + 1])
    log = writer.log()
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert not set(COLUMNS) & set(vars(log))
    assert log.q is log.q and set(COLUMNS) & set(vars(log)) == {"q"}
    same(log, memory.log())
    same(Log.load(tmp_path / name), memory.log())


@FILES
def test_another_log_in_its_place_is_told_and_never_read(robot: Robot, tmp_path: Path, name: str) -> None:
    logs = []
    for _ in range(2):
        with LogWriter(tmp_path / name, robot, 1e-3, NAMES) as writer:
            filled(writer, robot, 3)
        logs.append(writer.log())
    assert len(logs[1].q) == 3
    with pytest.raises(ModelError, match=f"{name}: another log has taken its place"):
        _ = logs[0].q
    (tmp_path / name).unlink()
    with pytest.raises(ModelError, match=f"{name}: there is no such file"):
        _ = logs[1].v


@pytest.mark.parametrize(
    "rows", [slice(3, 9), slice(None, None, 7), slice(-4, None), slice(None, None, -3), slice(9, 2)]
)
def test_a_log_is_cut_by_slices(robot: Robot, tmp_path: Path, rows: slice) -> None:
    with LogWriter(tmp_path / "run.clog", robot, 1e-3, NAMES) as writer:
        for k in range(40):
            writer.append(**row(robot, k))
            if k % 6 == 0:
                writer.flush()
    whole, cut = writer.log(), writer.log()[rows]
    assert len(cut) == len(whole.times[rows])
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name)[rows], err_msg=name)
    np.testing.assert_array_equal(cut[1:3].q, whole.q[rows][1:3])
    with pytest.raises(TypeError, match=r"such as log\[10:20\], not by 3"):
        whole[3]  # type: ignore[index]


def test_a_log_is_made_of_arrays_that_fit_together() -> None:
    about: dict[str, Any] = {"robot": "mine", "step": 0.01, "contacts": [], "joints": ["a"]}
    log = Log(**about, times=[0, 1, 2], q=np.zeros((3, 2)), note="by hand")
    assert (len(log), log.columns, log.times.dtype, log.note) == (3, ("times", "q"), "<f8", "by hand")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"q": [[1.0]]}, "a log needs 'times', a list of numbers"),
        ({"times": [[0.0]]}, "a log needs 'times', a list of numbers"),
        ({"times": "noon"}, "times must be numbers, got 'noon'"),
        ({"times": [0, 1], "q": np.zeros((3, 2))}, r"q has the shape \(3, 2\), and must have 2 rows like the times"),
        ({"times": [0.0], "speed": [1.0]}, "speed is unknown"),
        ({"times": [0.0], "forces": np.zeros((1, 2, 3))}, r"forces has the shape \(2, 3\) in a row, and must have"),
    ]
    for columns, told in wrong:
        with pytest.raises(ModelError, match=told):
            Log(**about, **columns)


def test_the_working_folder_may_change(robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    for name in ("run.clog", "run.npz"):
        monkeypatch.chdir(tmp_path)
        with LogWriter(name, robot, 1e-3, NAMES) as writer:
            filled(writer, robot, 3)
            monkeypatch.chdir(tmp_path / "other")
        assert len(writer.log().q) == 3
        monkeypatch.chdir(tmp_path)
        log = Log.load(name)
        monkeypatch.chdir(tmp_path / "other")
        assert len(log.q) == 3
    assert not list((tmp_path / "other").iterdir())


def test_parts_are_the_log(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 50)
    log = writer.log()
    monkeypatch.setattr("coupler.simulate.logs.log._PART", 1000)
    parts = list(log.parts())
    assert len(parts) > 5
    for name in COLUMNS:
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(log, name))
    assert [len(part) for part in log[:0].parts()] == []


def test_columns_are_chosen_and_the_others_told(robot: Robot, tmp_path: Path) -> None:
    everything = LogWriter(None, robot, 1e-3, NAMES)
    filled(everything, robot, 9)
    for path in (None, tmp_path / "run.clog", tmp_path / "run.npz"):
        with LogWriter(path, robot, 1e-3, NAMES, record=["kinetic", "forces"]) as writer:
            filled(writer, robot, 9)
        for log in (writer.log(), *([Log.load(path)] if path else [])):
            assert log.columns == ("times", "forces", "kinetic")
            for name in log.columns:
                np.testing.assert_array_equal(getattr(log, name), getattr(everything.log(), name))
            with pytest.raises(ModelError, match="no 'q', which was not recorded; it has 'times', 'forces', 'kinetic'"):
                _ = log.q
            assert hasattr(log, "forces") and not hasattr(log, "q")
            with pytest.raises(AttributeError, match="a log has no 'speed'"):
                _ = log.speed
    assert LogWriter(None, robot, 1e-3, record="q").log().columns == ("times", "q")
    assert LogWriter(None, robot, 1e-3, record=()).log().columns == ("times",)
    with pytest.raises(ModelError, match="record: there is no column 'force'; there are 'times', 'q'"):
        LogWriter(None, robot, 1e-3, record=["force"])


@pytest.mark.parametrize("name", [None, "run.clog", "run.npz"])
def test_float32_takes_half_the_room_and_rounds(robot: Robot, tmp_path: Path, name: str | None) -> None:
    exact = LogWriter(None, robot, 1e-3, NAMES)
    filled(exact, robot, 9)
    path = tmp_path / name if name else None
    with LogWriter(path, robot, 1e-3, NAMES, dtype="float32") as writer:
        filled(writer, robot, 9)
    for log in (writer.log(), *([Log.load(path)] if path else [])):
        assert (log.times.dtype, log.q.dtype, log.kinetic.dtype, log.sweeps.dtype) == ("<f8", "<f4", "<f4", "<i4")
        for column in COLUMNS:
            rounded = getattr(exact.log(), column).astype(getattr(log, column).dtype)
            np.testing.assert_array_equal(getattr(log, column), rounded, err_msg=column)
    with pytest.raises(ModelError, match="dtype: logs are kept in float64 or float32, not in 'int8'"):
        LogWriter(None, robot, 1e-3, dtype="int8")


def test_a_log_of_a_file_is_pickled_with_its_rows(robot: Robot, tmp_path: Path) -> None:
    with LogWriter(tmp_path / "run.clog", robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 9)
    log = writer.log()
    sent = pickle.dumps(log[2:5])
    same(copy.deepcopy(log), log)
    (tmp_path / "run.clog").unlink()
    received = pickle.loads(sent)
    np.testing.assert_array_equal(received.sweeps, [2, 3, 4])
    assert not received.q.flags.writeable


def test_the_arrays_of_a_log_cannot_be_written_to(robot: Robot) -> None:
    writer = LogWriter(None, robot, 1e-3, NAMES)
    filled(writer, robot, 2)
    log = writer.log()
    with pytest.raises(ValueError, match="read-only"):
        log.q[0] = 0.0
    with pytest.raises(AttributeError, match="a log cannot be changed"):
        log.q = log.q  # type: ignore[misc]
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
    with pytest.raises(ModelError, match=r"run.npz: it is not the log of a run: gaps has the shape \(3,\) in a row"):
        Log.load(path)
    arrays["gaps"] = np.zeros((3, 2))
    np.savez(path, **arrays)
    with pytest.raises(ModelError, match=r"gaps has the shape \(3, 2\), and must have 2 rows like the times"):
        Log.load(path)
    del arrays["joints"]
    np.savez(path, **arrays)
    with pytest.raises(ModelError, match=r"run.npz: there is no array 'joints' in it"):
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
        ("", "it is a folder; name a file in it"),
        (tmp_path / f"{'long' * 70}.clog", "it cannot be written: File name too long"),
        (tmp_path / "run.csv", "run.csv: a run writes .clog files, or .npz; `Log.save` writes others from them"),
    ):
        with pytest.raises(ModelError, match=told):
            LogWriter(path, robot, 1e-3)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def fail(writer: LogWriter, robot: Robot, rows: int, error: BaseException) -> None:
    with writer:
        filled(writer, robot, rows)
        raise error


@FILES
@pytest.mark.parametrize(
    ("error", "note"),
    [(KeyboardInterrupt(), "interrupted"), (ModelError("the leg broke"), "ModelError: the leg broke")],
)
def test_an_exception_leaves_a_log_that_says_so(
    robot: Robot, tmp_path: Path, name: str, error: BaseException, note: str
) -> None:
    path = tmp_path / name
    with pytest.raises(type(error)):
        fail(LogWriter(path, robot, 1e-3, NAMES), robot, 4, error)
    assert (len(Log.load(path)), Log.load(path).note) == (4, note)


@FILES
def test_a_file_of_an_earlier_run_stays_until_there_is_something_to_replace_it(
    robot: Robot, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    with LogWriter(path, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 4)
    with pytest.raises(KeyboardInterrupt):
        fail(LogWriter(path, robot, 1e-3, NAMES), robot, 0, KeyboardInterrupt())
    assert (len(Log.load(path)), Log.load(path).note) == (4, "")
    with LogWriter(path, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 2)
        assert len(Log.load(path)) == 4
    assert len(Log.load(path)) == 2
    with LogWriter(path, robot, 1e-3, NAMES):
        pass
    assert len(Log.load(path).forces) == 0


@FILES
@pytest.mark.skipif(os.name != "posix", reason="claims on files are POSIX's")
def test_a_file_that_another_run_writes_is_refused(robot: Robot, tmp_path: Path, name: str) -> None:
    late = LogWriter(tmp_path / name, robot, 1e-3, NAMES)  # which finds nothing yet
    with LogWriter(tmp_path / name, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 2)
        writer.flush()
        with pytest.raises(ModelError, match="another run writes it; choose another file, or end that run"):
            LogWriter(tmp_path / name, robot, 1e-3, NAMES)
        filled(late, robot, 3)
        with pytest.warns(ModelWarning, match="not written for now: .*: it cannot be written: another run writes it"):
            late.flush()
        filled(writer, robot, 2)
    assert len(Log.load(tmp_path / name)) == len(writer.log().q) == 4
    late.close()
    assert len(Log.load(tmp_path / name)) == len(late.log().q) == 3


def test_a_closed_log_takes_no_more_rows(robot: Robot) -> None:
    with LogWriter(None, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 2)
    with pytest.raises(ModelError, match="closed"):
        filled(writer, robot, 1)
    assert len(writer.log()) == 2


def test_rows_are_written_each_half_second_and_slow_ones_at_once(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(writer_module, "monotonic", lambda: now)
    path, seen = tmp_path / "run.clog", list[int]()
    with LogWriter(path, robot, 1e-3, NAMES) as writer:
        for k, pause in enumerate([0.125] * 8 + [0.375] * 4 + [2.5] * 3):
            now += pause
            writer.append(**row(robot, k))
            seen.append(len(Log.load(path)) if path.exists() else 0)
    assert seen == [0, 0, 3, 3, 3, 6, 6, 6, 9, 10, 11, 12, 13, 14, 15]


@FILES
def test_a_full_disk_does_not_end_a_run_and_nothing_is_lost_when_there_is_room_again(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    class Full:
        """A disk that has room for so many records, takes half of the next one, and then nothing."""

        def __init__(self, file: Any) -> None:
            self._file, self.room = file, 0

        def __getattr__(self, asked: str) -> Any:
            return getattr(self._file, asked)

        def write(self, data: Any) -> int:
            if self.room:
                self.room -= 1
                return self._file.write(data)
            self._file.write(data[: len(data) // 2])
            raise OSError(28, "No space left on device")

    expected = LogWriter(None, robot, 1e-3, NAMES)
    filled(expected, robot, 6)
    with LogWriter(tmp_path / name, robot, 1e-3, NAMES) as writer:
        filled(writer, robot, 2)
        writer.flush()
        assert writer._file is not None
        disk: Any = Full(writer._file._file)
        writer._file._file = disk
        for k in (2, 3, 4):
            writer.append(**row(robot, k))
            if k == 2:
                with pytest.warns(ModelWarning, match="not written for now: .*clog: it cannot be written: No space"):
                    writer.flush()
            writer.flush()  # which warns no more
        same(writer.log(), expected.log()[:5])
        assert len(Log.load(writer._file.path)) == 2
        disk.room = 1
        same(writer.log(), expected.log()[:5])
        assert len(Log.load(writer._file.path)) == 3
        disk.room = 10
        writer.append(**row(robot, 5))
    same(Log.load(tmp_path / name), expected.log())
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_disk_that_stays_full_ends_a_run_before_memory_is_full_as_well(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    monkeypatch.setattr(writer_module, "_MOST_WAITING", 1000)
    writer = LogWriter(tmp_path / "run.clog", robot, 1e-3, NAMES)
    filled(writer, robot, 2)
    with pytest.warns(ModelWarning, match="No space left"):
        writer.flush()
    filled(writer, robot, 10)
    with pytest.raises(ModelError, match=r"run.clog: it cannot be written: No space left"):
        writer.flush()
    with pytest.raises(ModelError, match=r"run.clog: it cannot be written: No space left"):
        writer.close()
    assert len(writer.log()) == 12
    writer = LogWriter(tmp_path / "run.clog", robot, 1e-3, NAMES)
    with pytest.raises(ZeroDivisionError) as caught:
        fail(writer, robot, 1, ZeroDivisionError())
    assert "the log is lost: " in caught.value.__notes__[0]
    assert not list(tmp_path.iterdir())
    assert len(writer.log()) == 1
