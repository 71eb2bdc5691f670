"""`coupler convert` writes a robot, reads it again, and tells whether it is the same."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from coupler import Robot, RobotBuilder, robots
from coupler.cli import convert, main
from coupler.cli.agreement import agreement
from coupler.mechanisms import gear
from coupler.model import Free, Helical, ModelError, Planar, Revolute, Universal
from effort import sweep

Y = (0.0, 1.0, 0.0)


def geared(independent: str = "hip", mass: float = 2.0, ratio: float = 6.0) -> Robot:
    """A link and its rotor; either may be the independent one."""
    b = RobotBuilder("leg")
    b.body("thigh", mass, (0.05, 0, -0.1), (0.02, 0.02, 0.002))
    b.body("rotor", 0.1, (0, 0, 0), (1e-4, 2e-4, 1e-4))
    b.joint("hip", Revolute(axis=Y), "ground", "thigh")
    b.joint("motor", Revolute(axis=Y), "ground", "rotor", (0, 0.05, 0))
    if independent == "hip":
        b.couple("gears", ["hip", "motor"], gear(ratio), independent=["hip"])
    else:
        b.couple("gears", ["motor", "hip"], gear(1 / ratio), independent=["motor"])
    return b.build()


def test_robots_agree_whichever_joints_are_independent() -> None:
    apart = agreement(geared("hip"), geared("motor"))
    assert list(apart) == ["mass", "mass matrix", "bias force", "forward dynamics"]
    assert max(apart.values()) < 1e-13


def test_loops_agree_whichever_joints_are_independent() -> None:
    """Where coordinates are other joints of a loop, P is not constant, and its rate p counts."""

    def linkage(independent: str) -> Robot:
        b = RobotBuilder("press")
        for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
            b.body(name, 1.0, (length / 2, 0.01, 0), (1e-3, 2e-2, 2e-2))
        for name, parent, child, at in (("a", "ground", "crank", 0.0), ("b", "crank", "coupler", 0.2)):
            b.joint(name, Revolute(axis=Y), parent, child, (at, 0, 0), independent=name == independent)
        b.joint("c", Revolute(axis=Y), "ground", "rocker", (0.6, 0, 0), independent=independent == "c")
        b.loop("tip", Revolute(axis=Y), "coupler", "rocker", at=(0.5, 0, 0), meets=(0.4, 0, 0))
        return b.build()

    for seed in range(5):
        assert max(agreement(linkage("a"), linkage("b"), seed).values()) < 1e-10


def test_robots_that_do_not_agree() -> None:
    apart = agreement(geared(), geared(mass=2.2))
    assert apart["mass"] == pytest.approx(0.2 / 2.1, rel=1e-12) and apart["mass matrix"] > 1e-2
    with pytest.raises(ModelError, match="they have 1 and 18 freedoms"):
        agreement(geared(), robots.load("mini_cheetah"))


BUNDLED = ["mini_cheetah", "mit_humanoid_leg", "planar_leg_linkage", "six_bar", "slider_crank"]


@pytest.mark.parametrize("name", sweep(BUNDLED, ["mit_humanoid_leg", "six_bar"]))
def test_bundled_robots_are_the_same_when_read_again(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "robot.urdf"
    status = main(["convert", name, str(out)])
    captured = capsys.readouterr()
    assert (status, captured.err) == (0, "")
    assert captured.out.startswith(f"saved {out}: ")
    assert "\n  forward dynamics  " in captured.out


def test_a_file_is_not_overwritten_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "robot.urdf"
    out.write_text("precious")
    assert main(["convert", "four_bar", str(out)]) == 1
    assert capsys.readouterr().err == f"coupler: {out} exists already; --force overwrites it\n"
    assert out.read_text() == "precious"
    assert main(["convert", "four_bar", str(out), "--force"]) == 0
    assert out.read_text() != "precious"


def test_what_a_format_cannot_hold_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The differentials of this robot are functions of its own."""
    assert main(["convert", "tello", str(tmp_path / "tello.xml")]) == 1
    assert "its function cannot be written to a file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_mjcf_is_written_and_read_again_where_mujoco_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "four_bar.xml"
    assert main(["convert", "four_bar", str(out)]) == 0
    told = capsys.readouterr().out
    if find_spec("mujoco") is None:
        assert told.endswith("not read back and compared: reading MJCF needs MuJoCo, which is not installed\n")
    else:
        assert "\n  forward dynamics  " in told
    assert out.read_text().startswith("<")


def test_joints_that_mjcf_says_as_several_are_compared_by_what_they_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed (pip install mujoco)")
    b = RobotBuilder("split")
    for name in ("cart", "arm", "hand", "bird"):
        b.body(name, 1.0, (0.1, 0.2, 0.3), (0.02, 0.03, 0.04))
    b.joint("floor", Planar(normal=(0, 0.6, 0.8)), "ground", "cart", (0.1, 0, 0))
    b.joint("cross", Universal(), "cart", "arm", (0.2, 0, 0))
    b.joint("screw", Helical(axis=Y, pitch=0.1), "arm", "hand", (0.2, 0, 0))
    b.joint("flight", Free(), "hand", "bird", (0.2, 0, 0))
    path = b.build().save(tmp_path / "split.urdf")
    assert main(["convert", str(path), str(tmp_path / "split.xml")]) == 0
    told = capsys.readouterr()
    assert "\n  accelerations of bodies  " in told.out and told.err == ""


def test_a_format_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "four_bar", str(tmp_path / "robot.txt")]) == 1
    assert "robot.txt" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> Robot:
        raise ModelError("it makes no sense")

    monkeypatch.setattr(convert, "load_file", fail)
    assert main(["convert", "four_bar", str(tmp_path / "robot.urdf")]) == 1
    told = "coupler: not saved, since the written file could not be read back: it makes no sense\n"
    assert capsys.readouterr() == ("", told)
    assert list(tmp_path.iterdir()) == []
    out = tmp_path / "old.urdf"
    out.write_text("old")
    assert main(["convert", "four_bar", str(out), "--force"]) == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_another_robot_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = robots.load("four_bar")
    heavy = replace(robot, gravity=2 * np.asarray(robot.gravity))
    monkeypatch.setattr(convert, "load_file", lambda *_, **__: heavy)
    assert main(["convert", "four_bar", str(tmp_path / "robot.urdf")]) == 1
    told = "coupler: the written file describes a different robot: see bias force, forward dynamics\n"
    assert capsys.readouterr().err == told
    monkeypatch.setattr(convert, "load_file", lambda *_, **__: robots.load("five_bar"))
    assert main(["convert", "four_bar", str(tmp_path / "other.urdf")]) == 1
    assert "the written file describes a different robot: they have 1 and 2 freedoms" in capsys.readouterr().err


def test_sdf_is_written_read_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "robot.sdf"
    for command in (["convert", "five_bar", str(out)], ["convert", str(out), str(tmp_path / "robot.urdf")]):
        assert main(command) == 0
        assert "read back and compared at a random state" in capsys.readouterr().out
    assert main(["info", str(out)]) == 0
    assert "loops are closed by" in capsys.readouterr().out
    assert main(["check", str(out)]) in (0, 1)
    (tmp_path / "robot.world").write_text(out.read_text())
    assert main(["info", str(tmp_path / "robot.world")]) == 0
