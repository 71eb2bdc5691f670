"""Pictures, films and plots of logs without a browser, and what a log says of itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.cli import main
from coupler.model import Box, ModelError, Sphere
from coupler.simulate import Log
from coupler.view.camera import Camera
from coupler.view.figure.surface import ball, box
from coupler.view.log_plots import line_names
from coupler.view.raster import Painted, picture
from coupler.view.recording import Recording
from coupler.view.render import Stage, render

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def robot() -> coupler.Robot:
    b = coupler.RobotBuilder("box")
    b.object("box", Box((0.2, 0.2, 0.2)), at=(0, 0, 0.2))
    return b.build().with_floor(friction=0.6)


@pytest.fixture(scope="module")
def log(robot: coupler.Robot) -> Any:
    return coupler.Simulation(robot, q=[0, 0, 0.2, 1, 0, 0, 0]).run(0.3, every=5)


@pytest.fixture(scope="module")
def swing() -> Any:
    """The log of a bundled robot."""
    return coupler.Simulation(coupler.robots.load("planar_leg_linkage")).run(0.1, every=5)


def test_a_picture_shows_the_robot_and_its_shadow(robot: coupler.Robot, log: Log) -> None:
    stage = Stage(Recording.of(robot, log), (120, 80))
    first, last = (stage.draw(row) for row in (0, len(log) - 1))
    assert first.shape == (80, 120, 3) and first.min() >= 0.0 and first.max() <= 1.0
    assert ((np.ptp(first, axis=2) > 0.25).mean() > 0.01) and np.abs(first - last).max() > 0.2


def test_what_is_within_a_closed_surface_is_not_seen() -> None:
    camera = Camera.around(np.full(3, -0.6), np.full(3, 0.6), np.array([0.0, 0.0, 1.0]))
    inside, outside = Painted(ball(0.3), np.array([1.0, 0, 0])), Painted(box(np.ones(3)), np.array([0, 0, 1.0]))
    image = picture([inside, outside], camera, 60, 60)
    red, _, blue = np.moveaxis(image, 2, 0)
    assert (blue - red > 0.3).sum() > 500 and not (red - blue > 0.1).any()


def test_pictures_and_films_are_written(robot: coupler.Robot, log: Log, tmp_path: Path) -> None:
    from PIL import Image

    done: list[tuple[int, int]] = []
    options: dict[str, Any] = {"size": (64, 48), "frames_per_second": 10.0}
    with Image.open(render(robot, log, tmp_path / "a.png", **options)) as image:
        assert image.size == (64, 48)
    path = render(robot, log, tmp_path / "a.gif", progress=lambda *now: done.append(now), **options)
    with Image.open(path) as film:
        assert 2 <= getattr(film, "n_frames", 1) <= 4  # those that are alike are one
    assert done[-1] == (4, 4)
    if shutil.which("ffmpeg"):
        assert render(robot, log, tmp_path / "a.mp4", **options).stat().st_size > 500
    else:
        with pytest.raises(ModelError, match="ffmpeg"):
            render(robot, log, tmp_path / "a.mp4", **options)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    for size in (100, (8, 8), (np.nan, 50)):
        with pytest.raises(ModelError, match="size"):
            render(robot, log, tmp_path / "b.png", size=size)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="by the suffix"):
        render(robot, log, tmp_path / "a.tiff")
    with pytest.raises(ModelError, match="joints are not those"):
        render(coupler.robots.load("four_bar"), log, tmp_path / "b.png")


def test_cones_are_those_of_the_floor(robot: coupler.Robot, log: Log) -> None:
    recording = Recording.of(robot, log)
    tips, axes, slopes = recording.cones(len(log) - 1)
    assert len(tips) and (axes == [0.0, 0.0, 1.0]).all() and (slopes == 0.6).all()


def test_every_contact_that_presses_has_a_cone_about_its_normal() -> None:
    """On a ramp of a height field, on a box and on a plane; the force of each is within its cone."""
    b = coupler.RobotBuilder("things")
    b.floor(friction=0.3)
    b.terrain(np.array([[0.0, 0.0], [0.4, 0.4]]), (2.0, 1.0), at=(4.0, 0.0, 0.5), friction=0.7)
    b.object("ball", Sphere(0.1), at=(4.0, 0.0, 0.7 + 0.1 * np.sqrt(1.04)), friction=0.2)
    b.object("crate", Box((0.4, 0.4, 0.4)), at=(0.0, 0.0, 0.2), friction=0.5)
    b.object("lid", Box((0.2, 0.2, 0.1)), at=(0.05, 0.0, 0.45), friction=0.1)
    b.object("left", Sphere(0.1), at=(0.0, 2.0, 0.1))
    b.object("right", Sphere(0.1), at=(0.0, 2.21, 0.1))
    b.contact_pair("left", "right", friction=0.05)
    robot = b.build()
    simulation = coupler.Simulation(robot, v=robot.pack_v({"left": [0, 0, 0, 0, 1, 0]}))
    recording = Recording.of(robot, simulation.run(0.015))
    seen = set()
    for row in range(1, len(recording.times)):
        tips, axes, slopes = recording.cones(row)
        points, forces = recording.pressed(row)
        assert len(tips) == (np.linalg.norm(recording.forces[row], axis=1) > 0.0).sum()
        np.testing.assert_allclose(np.linalg.norm(axes, axis=1), 1.0)
        for point, force in zip(points, forces, strict=True):
            k = int(np.flatnonzero((tips == point).all(axis=1))[0])
            along = force @ axes[k]
            assert np.linalg.norm(force - along * axes[k]) <= slopes[k] * along * (1.0 + 1e-3) + 1e-9
            seen.add((*np.round(axes[k], 3), float(slopes[k])))
    up = (0.0, 0.0, 1.0)
    ramp = (-0.196, 0.0, 0.981)
    assert {(*up, 0.5), (*ramp, 0.7), (0.0, -1.0, 0.0, 0.05)} <= seen


def test_rows_are_the_nearest_in_time(robot: coupler.Robot, log: Log) -> None:
    recording = Recording.of(robot, log)
    assert [recording.row(t) for t in (-1.0, 0.0, 0.0026, 0.3, 9.0)] == [0, 0, 1, 60, 60]
    assert recording.frames(10.0, 100).tolist() == [0, 20, 40, 60]


def test_a_log_says_what_is_in_it(log: Log) -> None:
    text = str(log)
    assert text.startswith("log of box: 61 rows, from 0 to 0.3 s")
    for word in ("energy", "contacts", "residual", "columns"):
        assert word in text
    assert "0 rows" in str(log[:0])
    assert "energy" not in str(Log(robot="x", step=1.0, contacts=(), joints=(), times=[0.0], q=[[1.0]]))


def test_a_log_plots_itself(robot: coupler.Robot, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert log.plot() == Path("box.png")
    assert log.plot("all.svg", robot).stat().st_size > 1000
    with pytest.raises(ModelError, match="no rows"):
        log[:0].plot("none.png")


def test_lines_of_a_plot_are_called_like_joints() -> None:
    robot = coupler.robots.load("four_bar")  # q holds three joints, v one
    log = Log(robot="four_bar", step=1.0, contacts=(), joints=("joint1",), times=[0.0], q=[robot.neutral()], v=[[0.0]])
    assert line_names(log, "q", robot) == ["joint1", "joint3", "joint2"] == robot.position_joints
    assert line_names(log, "v", robot) == line_names(log, "v", None) == ["joint1"]
    assert line_names(log, "q", None) == ["q[0]", "q[1]", "q[2]"]


def test_verbs_draw_logs(swing: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = swing.save(tmp_path / "run.clog")
    assert main(["plot", str(path)]) == 0 and (tmp_path / "run_plot.png").exists()
    assert main(["plot", str(path)]) == 1 and "--force" in capsys.readouterr().err
    assert main(["render", str(path), str(tmp_path / "run.png"), "--size", "40x30", "--time", "0.05"]) == 0
    assert main(["render", str(path), str(tmp_path / "b.png"), "--size", "wide"]) == 2
    assert main(["render", str(path), str(tmp_path / "b.png"), "--robot", "four_bar"]) == 1
    assert "--robot FILE" in capsys.readouterr().err
    assert main(["view", str(path), "--simulate"]) == 1
    assert main(["view", "four_bar", "--save", "page.html"]) == 1


def test_a_log_of_an_unknown_robot_wants_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(robot="mine", step=1.0, contacts=(), joints=("a",), times=[0.0, 1.0], q=[[1.0], [2.0]], v=[[0.0], [1.0]])
    path = log.save(tmp_path / "mine.npz")
    assert main(["render", str(path), str(tmp_path / "a.png")]) == 1
    assert "--robot FILE" in capsys.readouterr().err
    assert main(["plot", str(path)]) == 0  # which needs no robot
