"""`coupler.view`: what it takes, where it listens, and what it says without viser."""

from __future__ import annotations

import socket
import sys
import time
from threading import Thread
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.cli import main
from coupler.model import Box, ModelError
from coupler.view.browser.tree_panel import named, tree_html
from coupler.view.pulling import Pull


def test_without_viser_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ModelError, match=r"pip install 'coupler\[view\]'"):
        coupler.view(coupler.robots.load("four_bar"))
    assert main(["view", "four_bar"]) == 1
    assert "pip install 'coupler[view]'" in capsys.readouterr().err


def test_what_cannot_be_shown_is_refused() -> None:
    robot = coupler.robots.load("four_bar")
    log = coupler.Simulation(robot).run(0.01)
    for given, options, told in (
        (("four_bar",), {}, "view takes a robot or a simulation"),
        ((robot, 3), {}, "a log or a rollout"),
        ((robot, log), {"q": robot.neutral()}, "its own states"),
        ((robot,), {"controller": lambda t, q, v: None}, "act in simulations"),
        ((coupler.Simulation(robot), log), {}, "as it runs"),
    ):
        with pytest.raises(ModelError, match=told):
            coupler.view(*given, **options)  # type: ignore[arg-type]


def test_a_port_in_use_takes_the_next_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("viser")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with coupler.view(coupler.robots.load("four_bar"), port=port) as viewer:
            panel: Any = viewer.shown
            assert viewer.url.startswith("http://127.0.0.1:") and viewer.url != f"http://127.0.0.1:{port}"
            assert capsys.readouterr().out == f"open {viewer.url}\n"
            q = panel.posing.robot.pack_q({"joint1": 0.5})
            viewer.show(q)
            assert panel.sliders[0].value == pytest.approx(0.5)
            with pytest.raises(ModelError, match="loop1"):
                viewer.show(q + np.array([0.3, 0.0, 0.0]))
        viewer.stop()  # a second time does nothing
    with pytest.raises(ModelError, match="no such address"):
        coupler.view(coupler.robots.load("four_bar"), host="nowhere.invalid")
    with pytest.raises(ModelError, match="65535"):
        coupler.view(coupler.robots.load("four_bar"), port=0)
    with pytest.raises(ModelError, match="65535"):
        coupler.view(coupler.robots.load("four_bar"), port=True)


def test_viewers_of_several_threads_listen_on_ports_of_their_own() -> None:
    pytest.importorskip("viser")
    robot, viewers = coupler.robots.load("four_bar"), list[Any]()
    threads = [Thread(target=lambda: viewers.append(coupler.view(robot, port=8400, quiet=True))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for viewer in viewers:
        viewer.stop()
    assert len({viewer.url for viewer in viewers}) == 4


def test_a_controller_that_raises_pauses_the_simulation_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("viser")
    simulation = coupler.Simulation(coupler.robots.load("four_bar"))
    with coupler.view(simulation, controller=lambda t, q, v: 1 / 0, quiet=True, port=8400) as viewer:
        live: Any = viewer.shown
        end = time.monotonic() + 60.0
        while live.running and time.monotonic() < end:
            time.sleep(0.05)
        assert not live.running and live.wrong == "the controller raised ZeroDivisionError: division by zero"
    assert "ZeroDivisionError" in capsys.readouterr().err  # with the line of the user's program


def test_many_joints_are_folded() -> None:
    pytest.importorskip("viser")
    robot = coupler.robots.load("geared_chain", links=90)
    with coupler.view(robot, quiet=True, port=8400) as viewer:
        panel: Any = viewer.shown
        assert len(panel.sliders) == 90
        viewer.show(robot.random_state(0)[0])


def test_names_are_found_whole_or_in_part() -> None:
    robot = coupler.robots.load("mini_cheetah")
    assert named(robot, "HR_hip_rotor") == ("HR_hip_rotor", 3)
    assert named(robot, "fl_KNEE")[0] == "FL_knee_link"
    assert named(robot, "") == named(robot, "tail") == ("", 0)
    html = tree_html(robot, "cluster")
    assert html.count("data-name=") == 13 + html.count("[data-name=")


def test_a_pull_lifts_a_box_and_comes_to_rest() -> None:
    b = coupler.RobotBuilder("box")
    b.object("box", Box((0.2, 0.2, 0.2)))
    robot = b.build().with_floor(height=-1.0)
    simulation = coupler.Simulation(robot, q=[0, 0, 0, 1, 0, 0, 0])
    pull = Pull(robot, simulation.q, "box", [0.0, 0.0, 0.1], 0.35, 1e-3)
    assert np.ptp(pull.ends(simulation.q), axis=0).max() < 1e-12
    pull.target = pull.target + np.array([0.0, 0.0, 0.3])
    for _ in range(1500):
        simulation.step(None, pull.force(simulation.q, simulation.v))
    start, end = pull.ends(simulation.q)
    sag = robot.mass * 9.81 / pull.stiffness
    np.testing.assert_allclose(end - start, [0.0, 0.0, sag], atol=1e-3)
    assert np.abs(simulation.v).max() < 1e-2
