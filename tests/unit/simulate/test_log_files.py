"""Files of logs that grow: safe when their run is killed, readable meanwhile, bounded in memory, wary of strangers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import ModelError, Simulation, robots
from coupler.model import Robot
from coupler.simulate.logs import Log, LogWriter
from coupler.simulate.logs.columns import COLUMNS
from effort import samples
from mutations import damaged

FRAME = 20  # bytes


@pytest.fixture(scope="module")
def robot() -> Robot:
    return robots.load("four_bar")


def written(robot: Robot, path: Path, rows: int = 12, every: int = 4, **options: Any) -> Log:
    """A log with a record for every so many rows."""
    q, v = robot.random_state(0)
    with LogWriter(path, robot, 1e-3, ["tip"], **options) as writer:
        for k in range(rows):
            touch = {"gaps": np.ones(1), "forces": np.full((1, 3), float(k)), "points": np.ones((1, 3))}
            writer.append(time=float(k), q=q, v=v, tau=v, sweeps=k, **touch)
            if k % every == every - 1:
                writer.flush()
    return writer.log()


def read_all(path: Path) -> Log:
    """A log of which each column has been read."""
    log = Log.load(path)
    for name in log.columns:
        assert len(getattr(log, name)) == len(log)
    return log


# Runs that are killed, and readers meanwhile

ENDLESS = """
import sys
import numpy as np
from coupler import robots
from coupler.simulate.logs import LogWriter

robot = robots.load("four_bar")
q, v = robot.random_state(0)
with LogWriter(sys.argv[1], robot, 1e-3, ["tip"]) as writer:
    for k in range(10**9):
        writer.append(time=k, q=q, v=v, tau=v, gaps=np.ones(1), forces=np.ones((1, 3)), points=np.ones((1, 3)))
        if k % 7 == 6:
            writer.flush()
            print(k + 1, flush=True)
"""


@pytest.mark.parametrize(("name", "lines"), [("run.clog", 1), ("run.clog", 200), ("run.npz", 30)])
def test_what_was_flushed_is_there_meanwhile_and_after_the_run_is_killed(tmp_path: Path, name: str, lines: int) -> None:
    path = tmp_path / ("run.npz.clog" if name == "run.npz" else name)
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        told = 0
        try:
            for k in range(lines):
                told = int(run.stdout.readline())
                if k % 10 == 0:
                    log = Log.load(path)
                    assert len(log) >= told
                    np.testing.assert_array_equal(log.times, np.arange(len(log)))
        finally:
            run.kill()
        told = max([told, *map(int, run.stdout.read().split("\n")[:-1])])
    log = read_all(path)
    assert len(log) >= told
    np.testing.assert_array_equal(log.times, np.arange(len(log)))
    assert np.isfinite(log.kinetic).all()
    assert log.note == "there is no end in the file: its run still writes it, or was killed"


ENDLESS_RUN = """
import sys
import coupler

robot = coupler.robots.load("four_bar")
coupler.Simulation(robot).run(1e6, lambda t, q, v: None, log=sys.argv[1])
"""


def test_a_simulation_that_is_killed_leaves_its_log(tmp_path: Path) -> None:
    path = tmp_path / "run.clog"
    with subprocess.Popen([sys.executable, "-c", ENDLESS_RUN, str(path)]) as run:
        try:
            while run.poll() is None and not (path.exists() and len(Log.load(path)) > 1000):
                time.sleep(0.02)
        finally:
            run.kill()
    log = read_all(path)
    np.testing.assert_allclose(log.times, 1e-3 * np.arange(len(log)), rtol=1e-12)
    assert len(log) > 1000 and np.isfinite(log.kinetic).all() and "was killed" in log.note


@pytest.mark.parametrize("cut", [1, FRAME - 1, FRAME, FRAME + 1, 100, 499])
def test_a_record_that_is_not_complete_is_left_out(robot: Robot, tmp_path: Path, cut: int) -> None:
    """As the end is, which comes after it."""
    path = tmp_path / "run.clog"
    written(robot, path)
    data = path.read_bytes()
    last = data.rindex(b"ROWS")
    path.write_bytes(data[: last + cut])
    log = read_all(path)
    assert (len(log), "was killed" in log.note) == (8, True)
    np.testing.assert_array_equal(log.forces[:, 0, 0], np.arange(8.0))
    for end in (
        b"\0" * 50,
        data[last : data.rindex(b"ENDS") - 1] + b"\1",
    ):  # room given out, and a last byte that is off
        path.write_bytes(data[:last] + end)
        assert len(read_all(path)) == 8


def test_every_beginning_of_a_file_is_read_or_refused(robot: Robot, tmp_path: Path) -> None:
    path = tmp_path / "run.clog"
    written(robot, path)
    data = path.read_bytes()
    head = data.index(b"ROWS")
    path.write_bytes(data[:head])
    assert len(read_all(path)) == 0
    for length in (*range(0, head, 7), head - 1):
        path.write_bytes(data[:length])
        with pytest.raises(
            ModelError, match=r"run.clog: it (is not a log of coupler|is a log of version|has no heading)"
        ):
            read_all(path)
    counts = []
    for length in range(head, len(data), 11):
        path.write_bytes(data[:length])
        counts.append(len(read_all(path)))
    assert sorted(set(counts)) == [0, 4, 8, 12] and counts == sorted(counts)


# Memory


def test_memory_does_not_grow_with_the_rows(robot: Robot, tmp_path: Path) -> None:
    rows = {name: np.zeros((256, *shape)) for name, shape in {"q": (robot.nq,), "v": (1,), "tau": (1,)}.items()}
    rows |= {name: np.zeros(256) for name in ("times", "residuals", "sweeps")} | {"kinetic": np.full(256, np.nan)}
    rows |= {"gaps": np.zeros((256, 4)), "forces": np.zeros((256, 4, 3)), "points": np.zeros((256, 4, 3))}
    rows["q"][:] = robot.neutral()

    def peak(blocks: int) -> int:
        with LogWriter(tmp_path / "run.clog", robot, 1e-3, "abcd") as writer:
            writer.extend(**rows)
            writer.flush()
            tracemalloc.start()
            for _ in range(blocks):
                writer.extend(**rows)
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return found

    few, many = peak(20), peak(400)
    assert (tmp_path / "run.clog").stat().st_size > 25e6
    assert many < 8 << 20
    assert many < few + (4 << 20)
    tracemalloc.start()
    log = Log.load(tmp_path / "run.clog")
    assert sum(part.kinetic[-1] == 0.0 for part in log.parts()) > 5
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found < 8 << 20
    assert len(log.times) == 401 * 256


def test_a_run_with_a_file_gives_the_log_of_one_in_memory(tmp_path: Path) -> None:
    robot = robots.load("five_bar")
    expected = Simulation(robot).run(0.6, every=2)
    for name in ("run.clog", "run.npz"):
        log = Simulation(robot).run(0.6, log=tmp_path / name, every=2)
        assert len(log) == len(expected) == 301
        assert not set(COLUMNS) & set(vars(log))
        for column in COLUMNS:
            np.testing.assert_array_equal(getattr(log, column), getattr(expected, column), err_msg=column)
    few = Simulation(robot).run(0.1, record=["q", "potential"], dtype="float32")
    assert few.columns == ("times", "q", "potential")
    np.testing.assert_array_equal(few[::2].q, expected[:51].q.astype(np.float32))


def test_an_interrupt_right_after_rows_were_handed_over_writes_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extend, handed = LogWriter.extend, list[int]()

    def interrupted(writer: LogWriter, **rows: np.ndarray) -> None:
        extend(writer, **rows)
        if len(writer) > 300 and not handed:
            handed.append(len(writer))
            raise KeyboardInterrupt

    monkeypatch.setattr(LogWriter, "extend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Simulation(robots.load("five_bar")).run(1.0, log=tmp_path / "run.clog")
    np.testing.assert_allclose(Log.load(tmp_path / "run.clog").times, 1e-3 * np.arange(handed[0]), rtol=1e-12)


# Strangers


def test_another_version_is_told(robot: Robot, tmp_path: Path) -> None:
    path = tmp_path / "run.clog"
    written(robot, path)
    path.write_bytes(path.read_bytes().replace(b"coupler log 1\n", b"coupler log 2\n"))
    with pytest.raises(ModelError, match="it is a log of version '2', and this coupler reads version '1'"):
        Log.load(path)


def test_damage_in_the_middle_is_told_where_it_is_read(robot: Robot, tmp_path: Path) -> None:
    path = tmp_path / "run.clog"
    written(robot, path)
    data = bytearray(path.read_bytes())
    second = data.index(b"ROWS", data.index(b"ROWS") + 1)
    data[second + FRAME + 3] ^= 1  # in the times, which come first
    path.write_bytes(data)
    log = Log.load(path)
    assert len(log.q) == 12
    with pytest.raises(ModelError, match=rf"run.clog: it is damaged at byte {second + FRAME}; 4 rows before that may"):
        _ = log.times
    assert len(log[:4].times) == 4
    data[second + 5] ^= 1  # in its frame
    path.write_bytes(data)
    with pytest.raises(ModelError, match=rf"damaged at byte {second}; 4 rows before that may be sound"):
        Log.load(path)


def test_what_follows_the_end_is_told(robot: Robot, tmp_path: Path) -> None:
    path = tmp_path / "run.clog"
    written(robot, path)
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(ModelError, match="it is damaged"):
        Log.load(path)


def sealed(kind: bytes, rows: int, *blocks: bytes, length: int | None = None) -> bytes:
    """A record whose seals are right, whatever it claims."""
    body = b"".join(block + zlib.crc32(block).to_bytes(4, "little") for block in blocks)
    frame = kind + rows.to_bytes(4, "little") + (len(body) if length is None else length).to_bytes(8, "little")
    return frame + zlib.crc32(frame).to_bytes(4, "little") + body


def lying(**changes: Any) -> bytes:
    """The beginning of a file that claims something."""
    told = {"robot": "a", "step": 1e-3, "contacts": [], "joints": ["a"], "columns": {"times": ["<f8", []]}, "run": ""}
    return b"coupler log 1\n" + sealed(b"HEAD", 0, json.dumps(told | changes).encode())


LIES = {
    "no columns": lying(columns={}),
    "no times": lying(columns={"q": ["<f8", [2]]}),
    "columns of another kind": lying(columns=[1, 2]),
    "an unknown column": lying(columns={"times": ["<f8", []], "secrets": ["<f8", []]}),
    "objects": lying(columns={"times": ["|O", []]}),
    "a type that is none": lying(columns={"times": [["<f8"], []]}),
    "a negative size": lying(columns={"times": ["<f8", []], "q": ["<f8", [-1]]}),
    "a huge size": lying(columns={"times": ["<f8", []], "q": ["<f8", [2**62]]}),
    "a size of another kind": lying(columns={"times": ["<f8", []], "q": ["<f8", ["1"]]}),
    "no shape": lying(columns={"times": ["<f8", []], "q": ["<f8", None]}),
    "gaps without contacts": lying(columns={"times": ["<f8", []], "gaps": ["<f8", [3]]}),
    "v unlike tau": lying(columns={"times": ["<f8", []], "v": ["<f8", [3]], "tau": ["<f8", [4]]}),
    "names that are none": lying(joints=[1]),
    "a step that is none": lying(step=[1]),
    "a step beyond all numbers": lying(step=10**400),
    "a deep text": b"coupler log 1\n" + sealed(b"HEAD", 0, b"[" * 200_000),
    "a text that is none": b"coupler log 1\n" + sealed(b"HEAD", 0, b"\xff{"),
    "a list": b"coupler log 1\n" + sealed(b"HEAD", 0, b"[]"),
    "a heading without its end": b"coupler log 1\n" + sealed(b"HEAD", 0, b"{}", length=2**63),
    "a huge heading": b"coupler log 1\n" + sealed(b"HEAD", 0, b" " * (17 << 20)),
    "rows before a heading": b"coupler log 1\n" + sealed(b"ROWS", 1, b"\0" * 8),
    "no rows": lying() + sealed(b"ROWS", 0, b""),
    "more rows than numbers": lying() + sealed(b"ROWS", 2**32 - 1, b"\0" * 8),
    "fewer rows than numbers": lying() + sealed(b"ROWS", 1, b"\0" * 16),
    "another heading": lying() + lying()[14:],
    "another record": lying() + sealed(b"ELSE", 1, b"\0" * 8),
    "an end that is none": lying() + sealed(b"ENDS", 0, b"{"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_refused_in_little_memory(tmp_path: Path, lie: str) -> None:
    path = tmp_path / "lie.clog"
    path.write_bytes(LIES[lie])
    tracemalloc.start()
    with pytest.raises(ModelError, match=r"lie\.clog: "):
        Log.load(path)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_a_claim_of_more_bytes_than_there_are_is_an_incomplete_record(tmp_path: Path) -> None:
    path = tmp_path / "run.clog"
    path.write_bytes(lying() + sealed(b"ROWS", 1, b"\0" * 8) + sealed(b"ROWS", 2**31, b"\0" * 8, length=2**34 + 4))
    assert len(read_all(path)) == 1


@pytest.mark.sampled
def test_damaged_files_are_read_or_refused(robot: Robot, tmp_path: Path) -> None:
    """With seals as they are, and with those of all frames and blocks put right, so that deeper checks are reached."""
    path, rng = tmp_path / "run.clog", np.random.default_rng(3)
    written(robot, path, record=["q", "forces", "sweeps"])
    whole, told = path.read_bytes(), list[str]()
    tokens = ["\0", "ROWS", "ENDS", "HEAD", "<f8", "|O", "[-1]", "99999999", "{", "}", "null", '"', "\u00ff"]
    for k in range(samples(1500, 60_000)):
        recipe = [(int(a), (int(b), int(c), int(d))) for a, b, c, d in rng.integers(0, 10_000, (rng.integers(1, 4), 4))]
        data = damaged(whole, recipe, tokens)
        path.write_bytes(data if k % 2 else repaired(data))
        try:
            log = read_all(path)
        except ModelError as error:
            told.append(str(error))
        else:
            assert len(log) <= 12
    assert len(told) > 500 and all("run.clog: " in text for text in told)


def repaired(data: bytes) -> bytes:
    """A damaged file whose frames and texts have the seals that they ought to have."""
    fixed, at = bytearray(data), 14
    while at + FRAME <= len(fixed):
        fixed[at + 16 : at + FRAME] = zlib.crc32(fixed[at : at + 16]).to_bytes(4, "little")
        length = int.from_bytes(fixed[at + 8 : at + 16], "little")
        end = at + FRAME + length
        if fixed[at : at + 4] != b"ROWS" and length >= 4 and end <= len(fixed):
            fixed[end - 4 : end] = zlib.crc32(fixed[at + FRAME : end - 4]).to_bytes(4, "little")
        at = end
    return bytes(fixed)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_stream_of_a_stranger_is_not_waited_for() -> None:
    with pytest.raises(ModelError, match="it cannot be read: it is a device, not a file"):
        Log.load("/dev/zero")
