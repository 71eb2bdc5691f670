"""The formats of logs: each has the numbers of the log, whether it is in memory or in a file."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import ModelError, Simulation, robots
from coupler.simulate.logs import Log
from coupler.simulate.logs.columns import COLUMNS


@pytest.fixture(scope="module", params=["float64", "float32"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Log:
    """A leg that falls onto a floor, in a file."""
    robot = robots.load("planar_leg_linkage").with_floor()
    path = tmp_path_factory.mktemp("logs") / "run.clog"
    return Simulation(robot).run(0.2, log=path, every=3, dtype=request.param)


@pytest.fixture(autouse=True)
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coupler.simulate.logs.log._PART", 10_000)


def copied(log: Log) -> Log:
    """A copy of a log in memory, with numbers that are not finite, and a note in several scripts."""
    columns: dict[str, Any] = {name: np.array(getattr(log, name)) for name in log.columns}
    columns["gaps"][0] = np.inf
    columns["kinetic"][1] = np.nan
    about = {name: getattr(log, name) for name in ("robot", "step", "contacts", "joints")}
    return Log(**about, note='a "note", ünd\n中文', **columns)


def logs(log: Log) -> list[Log]:
    return [log, copied(log), log[::2], log[:0]]


@pytest.mark.parametrize("suffix", [".clog", ".npz", ".CLOG", ".Npz"])
def test_what_is_saved_is_loaded(log: Log, tmp_path: Path, suffix: str) -> None:
    for given in logs(log):
        found = Log.load(given.save(tmp_path / f"run{suffix}"))
        for name in ("robot", "step", "contacts", "joints", "columns", "note"):
            assert getattr(found, name) == getattr(given, name)
        for name in COLUMNS:
            assert getattr(found, name).dtype == getattr(given, name).dtype
            np.testing.assert_array_equal(getattr(found, name), getattr(given, name), err_msg=name)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_may_be_saved_onto_itself(log: Log, tmp_path: Path) -> None:
    path = log.save(tmp_path / "run.clog")
    mine = Log.load(path)
    mine[::2].save(path)
    np.testing.assert_array_equal(Log.load(path).q, log.q[::2])


def test_tables_have_a_field_for_each_number(log: Log, tmp_path: Path) -> None:
    for given in logs(log):
        with open(given.save(tmp_path / "run.csv"), newline="") as file:
            names, *lines = list(csv.reader(file))
        assert names[:3] == ["times", "q[0]", "q[1]"] and names[-1] == "sweeps" and "forces[0][2]" in names
        table = np.array(lines, dtype=float).reshape(len(given), len(names))
        found = dict(zip(names, table.T, strict=True))
        for name in ("times", "sweeps", "kinetic"):
            kind = getattr(given, name).dtype
            np.testing.assert_array_equal(found[name].astype(kind), getattr(given, name), err_msg=name)
        own = table[:, [name.startswith("forces[") for name in names]]
        np.testing.assert_array_equal(own.astype(given.forces.dtype), given.forces.reshape(own.shape))


def test_mcap_files_have_a_topic_for_each_column(log: Log, tmp_path: Path) -> None:
    reader = pytest.importorskip("mcap.reader", reason="MCAP files are written by the package mcap")
    for given in logs(log):
        with open(given.save(tmp_path / "run.mcap"), "rb") as file:
            found = reader.make_reader(file)
            (about,) = found.iter_metadata()
            messages = list(found.iter_messages())
        assert json.loads(about.metadata["note"]) == given.note
        assert json.loads(about.metadata["contacts"]) == list(given.contacts)
        assert len(messages) == len(given) * (len(COLUMNS) - 1)
        for name in COLUMNS[1:]:
            own = [message for _, channel, message in messages if channel.topic == f"/{name}"]
            values = [json.loads(message.data, parse_constant=refused)["value"] for message in own]
            wanted = getattr(given, name)
            wanted = np.where(np.isfinite(wanted), wanted, np.nan)
            np.testing.assert_array_equal(np.array(values, dtype=float).reshape(wanted.shape), wanted, err_msg=name)
            np.testing.assert_allclose([message.log_time for message in own], given.times * 1e9, atol=1.0)


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_recordings_of_rerun_have_the_columns_over_time(log: Log, tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="recordings of Rerun are written by the package rerun-sdk")
    for given in logs(log):
        path = given.save(tmp_path / "run.rrd")
        tool = shutil.which("rerun", path=str(Path(sys.executable).parent))
        assert tool is not None
        subprocess.run([tool, "rrd", "verify", str(path)], capture_output=True, check=True)
        printed = subprocess.run([tool, "rrd", "print", "-v", str(path)], capture_output=True, text=True, check=True)
        for name in COLUMNS[1:] if len(given) else ():
            assert f"/{name}" in printed.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["run.rrd"]


@pytest.mark.parametrize(("suffix", "module", "extra"), [(".mcap", "mcap.writer", "mcap"), (".rrd", "rerun", "rerun")])
def test_without_its_package_the_way_out_is_told(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match=rf"pip install 'coupler\[{extra}\]'"):
        log.save(tmp_path / f"run{suffix}")
    assert not list(tmp_path.iterdir())


def test_other_suffixes_are_refused(log: Log, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"run.bag: logs are saved as '.clog', '.npz', '.csv', '.mcap', '.rrd'"):
        log.save(tmp_path / "run.bag")
    with pytest.raises(ModelError, match="there is no folder"):
        log.save(tmp_path / "none" / "run.csv")
    assert not list(tmp_path.iterdir())
