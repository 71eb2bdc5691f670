"""Pictures of motions: that they are made, and that what they show is where the robot was."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import ModelError, frame_pose, robots
from coupler.contact.pairs import pairs_of
from coupler.model import Plane, Robot, Shape
from coupler.simulate.logs import Log, LogWriter
from coupler.spatial import Transform
from coupler.view import motion as motion_module
from coupler.view import plot_motion, plotting
from coupler.view.skeleton import Skeleton, View, outline
from coupler.view.stick_figures import Strip
from reference.stepping import contact_step

drawing = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def cheetah() -> Robot:
    floor = Shape("floor", "ground", Plane(), Transform.identity(), friction=0.8)
    return replace(robots.load("mini_cheetah"), shapes=(floor,))


@pytest.fixture(scope="module")
def landing(cheetah: Robot) -> Log:
    """Held by springs at its joints, it drops to its feet and goes on a little."""
    pairs = [pair for pair in pairs_of(cheetah) if "foot" in pair.one.name]
    bent = {"hip": -0.8, "knee": 1.6}
    legs = {name: angle for name in cheetah.independent_joints for part, angle in bent.items() if part in name}
    q = cheetah.pack_q({**legs, "floating_base": [0, 0, 0.33, 1, 0, 0, 0]})
    v, wanted, h, start = cheetah.pack_v({"floating_base": [0, 0, 0, 0.5, 0, 0]}), q[7:].copy(), 4e-3, None
    writer = LogWriter(None, cheetah, h, [pair.one.name for pair in pairs])
    for k in range(60):
        tau = np.concatenate([np.zeros(6), -60.0 * (q[7:] - wanted) - 4.0 * v[6:]])
        done = contact_step(cheetah, q, v, tau, h, pairs, start=start)
        start, contacts = done.solution.impulses, [touch.contact for touch in done.touches]
        own = zip(contacts, start.reshape(-1, 3), strict=True)
        writer.append(
            time=k * h,
            q=q,
            v=v,
            tau=tau,
            gaps=np.array([contact.gap for contact in contacts]),
            forces=np.array([contact.frame.T @ impulse for contact, impulse in own]) / h,
            points=np.array([contact.point for contact in contacts]),
            residual=done.solution.residual,
            sweeps=done.solution.iterations,
        )
        q, v = done.q, done.v
    return writer.log()


def page(robot: Robot, log: Log) -> Any:
    return motion_module._page(robot, log, np.arange(len(log)), "a run")


@drawing
def test_a_landing_is_drawn(cheetah: Robot, landing: Log, tmp_path: Path) -> None:
    path = plot_motion(cheetah, landing, tmp_path / "run.png", title="It lands")
    content = path.read_bytes()
    assert content.startswith(PNG) and len(content) > 50_000
    assert plot_motion(cheetah, landing, tmp_path / "run.svg").read_text().count("<svg") == 1


@drawing
def test_every_axis_has_its_unit(cheetah: Robot, landing: Log) -> None:
    strip, heights, forces, energies, errors = page(cheetah, landing).axes
    labels = [axes.get_ylabel() for axes in (strip, heights, forces, energies)]
    assert labels == ["z (m)", "height (m)", "force (N)", "energy (J)"]
    assert errors.get_yscale() == "log" and errors.get_xlabel() == "time (s)"
    assert [text.get_text() for text in errors.get_legend().get_texts()] == [
        "contact residual (m/s)",
        "loop errors (m or rad)",
    ]


@drawing
def test_figures_stand_above_their_instants(cheetah: Robot, landing: Log) -> None:
    strip, *panels = page(cheetah, landing).axes
    slots = strip.get_xticks()
    assert 6 <= len(slots) <= 10
    times = np.linspace(landing.times[0], landing.times[-1], len(slots))
    across = strip.transData.transform(np.column_stack([slots, slots]))[:, 0]
    for axes in panels:
        below = axes.transData.transform(np.column_stack([times, times]))[:, 0]
        np.testing.assert_allclose(across, below, atol=1e-6)  # pixels


@drawing
def test_one_metre_is_as_long_along_both_axes(cheetah: Robot, landing: Log) -> None:
    strip = page(cheetah, landing).axes[0]
    (x0, y0), (x1, y1) = strip.transData.transform([(0.0, 0.0), (1.0, 1.0)])
    assert x1 - x0 == pytest.approx(y1 - y0, rel=1e-9)


@drawing
def test_arrows_have_the_directions_and_lengths_of_forces(cheetah: Robot, landing: Log) -> None:
    strip = page(cheetah, landing).axes[0]
    (arrows,) = (artist for artist in strip.collections if type(artist).__name__ == "Quiver")
    shown = Strip(cheetah, landing, np.arange(len(landing)), 9.8)
    at = np.searchsorted(landing.times, shown.times)
    forces = landing.forces[at].reshape(-1, 3)
    pushed = forces[np.linalg.norm(forces[:, ::2], axis=1) > 0.01 * cheetah.mass * 9.81][:, ::2]
    assert len(pushed) >= 8
    ratio = np.column_stack([arrows.U, arrows.V]) / pushed
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-6)
    np.testing.assert_allclose(arrows.XY[:, 1], 0.0, atol=2e-3)  # feet touch the ground


@drawing
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_short_runs_are_drawn_too(cheetah: Robot, landing: Log, rows: int, tmp_path: Path) -> None:
    plot_motion(cheetah, landing[:rows], tmp_path / "run.png")
    assert len(page(cheetah, landing[:rows]).axes[0].get_xticks()) == rows


@drawing
def test_a_run_that_blew_up_is_drawn_as_far_as_it_went_and_says_so(
    cheetah: Robot, landing: Log, tmp_path: Path
) -> None:
    q, potential, forces = landing.q.copy(), landing.potential.copy(), landing.forces.copy()
    q[40:], potential[40:], forces[40:] = np.nan, np.nan, np.nan
    note = "ModelError: $it$ blew up " + "very " * 40
    about = ("robot", "step", "contacts", "joints", *landing.columns)
    whole: dict[str, Any] = {name: getattr(landing, name) for name in about}
    broken = Log(**whole | {"q": q, "potential": potential, "forces": forces}, note=note)
    assert plot_motion(cheetah, broken, tmp_path / "run.png").exists()
    told = [text.get_text() for text in page(cheetah, broken[:40]).texts]
    assert told[1] == "0.156 s in steps of 4 ms"
    assert told[2].startswith("ended early: ModelError: $it$ blew up very") and told[2].endswith("…")


@drawing
def test_a_linkage_without_contacts_has_no_panel_of_forces(tmp_path: Path) -> None:
    robot = robots.load("four_bar")
    writer, q, v = LogWriter(None, robot, 1e-2), robot.neutral(), np.ones(robot.nv)
    for k in range(20):
        writer.append(time=1e-2 * k, q=q, v=v, tau=np.zeros(robot.nv))
        q = robot.integrate(q, v, 1e-2)
    labels = [axes.get_ylabel() for axes in page(robot, writer.log()).axes]
    assert labels == ["y (m)", "height (m)", "energy (J)", "error"]
    assert plot_motion(robot, writer.log(), tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")


@drawing
def test_what_cannot_be_drawn_is_told(cheetah: Robot, landing: Log, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the log is of robot 'mini_cheetah', whose joints are not those of 'tello'"):
        plot_motion(robots.load("tello"), landing, tmp_path / "run.png")
    with pytest.raises(ModelError, match="has no finite states to draw"):
        plot_motion(cheetah, landing[:0], tmp_path / "run.png")
    with pytest.raises(ModelError, match=r"run.odd: the picture cannot be written: Format 'odd' is not supported"):
        plot_motion(cheetah, landing, tmp_path / "run.odd")
    with pytest.raises(ModelError, match=r"there is no folder .*none; make it first"):
        plot_motion(cheetah, landing, tmp_path / "none" / "run.png")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_way_out_is_told(
    cheetah: Robot, landing: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModelError, match=r"pip install 'coupler\[plot\]'"):
        plot_motion(cheetah, landing, tmp_path / "run.png")


@drawing
def test_pyplot_is_not_touched(tmp_path: Path) -> None:
    script = (
        "import sys; from coupler import robots; from coupler.simulate.logs import LogWriter; "
        "from coupler.view import plot_motion; robot = robots.load('four_bar'); w = LogWriter(None, robot, 0.1); "
        "w.append(time=0.0, q=robot.neutral(), v=[0.0], tau=[0.0]); plot_motion(robot, w.log(), sys.argv[1]); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    run = [sys.executable, "-c", script, str(tmp_path / "run.png")]
    assert subprocess.check_output(run, text=True).strip() == "False"


def test_figures_do_not_reach_into_each_other(cheetah: Robot, landing: Log) -> None:
    strip = Strip(cheetah, landing, np.arange(len(landing)), 9.8)
    spans = []
    for k, pose in enumerate(strip._figures):
        x = pose.points()[:, 0] + strip._shift(k)
        spans.append((x.min(), x.max()))
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_the_points_of_a_figure_are_where_the_robot_is(cheetah: Robot) -> None:
    skeleton = Skeleton(cheetah)
    q, _ = cheetah.random_state(3)
    pose = skeleton.at(q)
    seen = np.concatenate(pose.links)
    names = [name for body in cheetah.bodies.values() for name in body.contacts]
    names += [joint.child for joint in cheetah.joints if joint.name.endswith("link_joint")]
    for name in names:
        x, y, z = frame_pose(cheetah, q, name)[:3, 3]
        assert np.abs(seen - [x, z, y]).max(axis=1).min() < 1e-12, name
    np.testing.assert_allclose(pose.base, q[[0, 2, 1]], atol=1e-15)


def test_rotors_are_left_out(cheetah: Robot) -> None:
    pose = Skeleton(cheetah).at(cheetah.neutral())
    assert (len(pose.links), len(pose.joints)) == (13, 12)  # of 25 bodies
    assert len(Skeleton(robots.load("geared_chain", links=5)).at(np.zeros(5)).links) == 5


@pytest.mark.parametrize("name", robots.names())
def test_sticks_meet_at_joints_and_loops(name: str) -> None:
    """All but those that slide along each other."""
    robot = robots.load(name)
    pose = Skeleton(robot).at(robot.random_state(1)[0])
    apart = [np.linalg.norm(one - other) for one, other in pose.connections]
    sliding = sum(joint.kind.kind == "prismatic" for joint in robot.joints)
    assert sum(length > 1e-9 for length in apart) == sliding
    assert all(len(points) > 1 for points in pose.links)


def test_up_is_against_gravity() -> None:
    assert View.of(robots.load("mini_cheetah")).names == ("x", "z")
    assert View.of(robots.load("four_bar")).names == ("x", "y")
    assert View.of(robots.load("geared_chain", links=2)).names == ("y", "−x")
    assert View.of(robots.load("mini_cheetah").with_gravity((0, 0, 0))).names == ("x", "z")


def test_an_outline_goes_around_its_points() -> None:
    square = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
    inside = np.random.default_rng(0).uniform(0.1, 0.9, (20, 2))
    np.testing.assert_array_equal(outline(np.concatenate([inside, square])), square)
    np.testing.assert_array_equal(outline(np.array([(0, 0), (2, 2), (1, 1)])), [(0, 0), (2, 2)])
    np.testing.assert_array_equal(outline(np.array([(1, 2), (1, 2)])), [(1, 2)])


def test_long_lines_keep_their_peaks() -> None:
    times, values = np.arange(50_001.0), np.zeros(50_001)
    values[[17, 25_000, 50_000]] = 3.0, -2.0, 1.0
    t, y = plotting.thinned(times, values)
    assert len(t) < 2 * plotting.POINTS + 20 and (np.diff(t) >= 0).all()
    assert {(17.0, 3.0), (25_000.0, -2.0), (50_000.0, 1.0)} <= set(zip(t.tolist(), y.tolist(), strict=True))
