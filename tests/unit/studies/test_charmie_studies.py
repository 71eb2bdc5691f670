"""The studies of 004: the paper's motion, its curves, times, pictures, loads of actuators, and springs."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from coupler.actuation import actuator_positions
from coupler.dynamics import inverse_dynamics
from coupler.kinematics import body_poses
from coupler.robots.charmie import charmie
from coupler.studies import charmie_controller as controller
from coupler.studies import charmie_figures as figures
from coupler.studies import charmie_springs as springs
from coupler.studies import charmie_times as times
from coupler.studies import charmie_validation as validation
from coupler.studies import run
from coupler.studies.charmie_motion import paper_motion, robot_by_actuators
from coupler.studies.charmie_pictures import MAIN, Stage, bones
from effort import sweep


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.reader(file))


def test_the_motion_is_the_papers() -> None:
    """[004, §6]: from all joints at 0 and actuators at 400 mm, by π/9 rad/s², 3 and 30 mm/s², to rest after 5 s."""
    robot, motion = robot_by_actuators(), paper_motion(1001)
    joints = {motor.name: motor.joints[0] for motor in robot.actuators}
    u = dict(zip(joints, actuator_positions(robot, motion.q).T, strict=True))
    du, ddu = ({name: x[:, robot.v_slice(own).start] for name, own in joints.items()} for x in (motion.v, motion.a))
    early = motion.t < 2.5
    for name in joints:
        rate = 3e-3 if name in ("4d", "5d") else 30e-3 if name in ("1", "2") else np.pi / 9
        np.testing.assert_allclose(ddu[name], np.where(early, -rate, rate), rtol=0, atol=1e-12)
        assert (du[name][0], du[name][-1]) == (0.0, 0.0) and u[name][0] == (0.4 if name in ("4d", "5d") else 0.0)
        assert u[name][-1] - u[name][0] == pytest.approx(-rate * 2.5**2, rel=1e-12)
        np.testing.assert_allclose(np.diff(u[name]), 0.0025 * (du[name][1:] + du[name][:-1]), rtol=0, atol=1e-10)
    robot.check(motion.q)


@pytest.mark.parametrize("name", sweep(["004-fig12", "004-fig13"], ["004-fig13"]))
def test_curves_are_those_of_the_papers_recursion(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "STATES", 41)
    monkeypatch.setattr(validation, "COMPARED", 5)
    monkeypatch.setattr(validation, "with_pyplot", lambda *_: None)
    run(name, tmp_path)
    data = np.load(tmp_path / f"{name}.npz")
    np.testing.assert_allclose(data["ours"][data["compared"]], data["paper"], rtol=0, atol=1e-11)
    out = capsys.readouterr().out
    assert "at 5 instants: agrees" in out
    assert ("fully stopped" if name == "004-fig12" else "612.1 N of weight") in out
    assert len(table(tmp_path / f"{name}.csv")) == 12


@pytest.mark.parametrize("name", sweep([f"004-fig{n}" for n in (4, 6, 8, 11)], ["004-fig4"]))
def test_pictures(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    run(name, tmp_path)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert (
        len(table(tmp_path / f"{name}.csv")) == {"004-fig4": 15, "004-fig6": 27, "004-fig8": 41, "004-fig11": 24}[name]
    )
    assert "agrees" in capsys.readouterr().out


def test_an_animation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image = pytest.importorskip("PIL.Image")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figures, "FRAMES", 5)
    run("004-animation", tmp_path)
    with Image.open(tmp_path / "004-animation.gif") as gif:
        assert gif.n_frames == 5 and gif.info["duration"] == 50


def test_sticks_are_where_bodies_are() -> None:
    pytest.importorskip("matplotlib")
    robot = robot_by_actuators()
    q = paper_motion(11).q[4]
    stage = Stage(robot)
    ends = stage.segments(q).reshape(-1, 3)
    poses = dict(zip(robot.body_names, body_poses(robot, q), strict=True))
    for body in ("12a", "12b", "7c", "5d2", "4slc"):  # where a line begins or ends
        assert np.linalg.norm(ends - poses[body][:3, 3], axis=1).min() < 1e-12
    assert {bone[-1] for bone in bones(robot, auxiliary=False)} == {MAIN}
    stage.show(q)
    first = stage.pixels()
    stage.show(paper_motion(11).q[8])
    again = stage.pixels()
    stage.show(q)
    assert (first != again).any() and (first == stage.pixels()).all()


@pytest.mark.long
def test_times_of_all_rows_of_the_papers_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said of times, which are not those of a test."""
    for name, value in {"STEPS": 8, "RECURSION": 1, "FRAMES": 1, "SECONDS": 1e-4, "LONG": (12,)}.items():
        monkeypatch.setattr(times, name, value)
    monkeypatch.setattr(times, "from_scratch", lambda: (1.0, 0.5))
    monkeypatch.setattr(times, "with_pyplot", lambda *_: None)
    run("004-table5", tmp_path)
    head, *rows = table(tmp_path / "004-table5.csv")
    assert [row[:2] for row in rows] == [[model, kind] for model in times.PAPER for kind in ("kinematics", "dynamics")]
    assert head[2:] == [*times.WAYS, "paper", "paper, drawn"]
    assert [float(row[-2]) for row in rows] == [0.211, 0.482, 0.269, 0.715, 0.325, 0.947, 2.409, 7.856]
    assert "CHARMIE, dynamics with initialisation: paper 7.856 s, here 1 s from scratch" in capsys.readouterr().out


def test_arms_are_those_of_the_papers_recursion() -> None:
    robot, chain = times.arm(6)
    q, v, a = np.random.default_rng(2).normal(size=(3, 6))
    loads = chain.loads(*(dict(zip(chain.links, map(float, x), strict=True)) for x in (q, v, a)))
    expected = [loads.torque[name]["xyz".index(link.JO)] for name, link in chain.links.items()]
    np.testing.assert_allclose(inverse_dynamics(robot, q, v, a), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("module", sweep(controller.EXPORTED, ["actuators by joints, A"]))
def test_operations_are_counted_and_the_controllers_program_is_right(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "STATES", 5)
    monkeypatch.setattr(controller, "CALLS", 10)
    modules = {name: controller.MODULES[name] for name in dict.fromkeys(("inverse dynamics", module))}
    monkeypatch.setattr(controller, "MODULES", modules)
    monkeypatch.setattr(controller, "EXPORTED", {module: controller.EXPORTED[module]})
    run("004-controller", tmp_path)
    _, *rows = table(tmp_path / "004-controller.csv")
    for row in rows:
        assert sum(map(int, row[2:-2])) == int(row[-2])
    counts = [int(row[-2]) for row in rows if row[1] == "inverse dynamics"]
    assert counts == sorted(counts) and counts[-1] < 20_000
    assert all((tmp_path / f"{controller.EXPORTED[module]}{suffix}").is_file() for suffix in (".c", ".h"))
    assert "better: written" in capsys.readouterr().out


def test_the_controllers_program_is_written_without_a_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    controller._controller(tmp_path, times.arm(2)[0])
    assert "better: written, but no compiler is here to try it with" in capsys.readouterr().out
    assert all((tmp_path / f"{function}.c").is_file() for function in controller.EXPORTED.values())


@pytest.mark.long
def test_loads_of_actuators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    run("004-sizing", tmp_path)
    head, *rows = table(tmp_path / "004-sizing.csv")
    assert len(rows) == 21 and head[:2] == ["actuator", "units"]
    peak = {row[0]: float(row[head.index("peak speed")]) for row in rows}
    assert peak["4d"] == pytest.approx(7.5e-3, rel=1e-9) and peak["8a"] == pytest.approx(2.5 * np.pi / 9, rel=1e-9)
    assert (tmp_path / "004-sizing.png").is_file() and "4d" in capsys.readouterr().out


@pytest.mark.long
def test_springs_balance_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The robot with the springs that were found needs what was expected, and less than with springs nearby."""
    pytest.importorskip("scipy")
    monkeypatch.setattr(springs, "STATES", 41)
    monkeypatch.setattr(springs, "with_pyplot", lambda *_: None)
    run("004-springs", tmp_path)
    out = capsys.readouterr().out
    assert out.count("from what was expected: agrees") == 2
    _, *rows = table(tmp_path / "004-springs.csv")
    rms = {(row[0], row[1]): float(row[2]) for row in rows}
    assert (
        rms["4d", "optimised"] < 0.02 * rms["4d", "no springs"]
        and rms["5d", "optimised"] < 0.3 * rms["5d", "no springs"]
    )
    assert all(rms[actuator, "optimised"] < rms[actuator, "as bundled"] for actuator in ("4d", "5d"))


@pytest.mark.long
def test_forces_of_springs_are_linear_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which the search for springs rests on."""
    monkeypatch.setattr(springs, "STATES", 9)
    bare = springs.sized(dict.fromkeys(springs.SPRINGS))
    column = bare.names.index("5d")
    one, two = (
        springs.sized({**dict.fromkeys(springs.SPRINGS), "5s": springs._spring("5s", k, T0)}).forces[:, column]
        - bare.forces[:, column]
        for k, T0 in ((500.0, 10.0), (1000.0, 20.0))
    )
    np.testing.assert_allclose(two, 2 * one, rtol=0, atol=1e-10)
    assert np.abs(one).max() > 1.0
    assert charmie().nv == bare.forces.shape[1]
