"""The viewer in a real browser: what is seen, and what sliders, buttons and the mouse do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from browser.conftest import NO_NOTES, SIZE, coloured, picture, wait_for
from coupler.model import Box
from coupler.view import save_page
from coupler.view.browser.tree_panel import cluster_bodies

Opened = Callable[[str], Any]
BAR = -40  # px: where a saved page has its controls
ORANGE = np.array([0.95, 0.55, 0.25])  # about what loops are drawn in, when lit


@pytest.fixture(scope="module")
def log() -> Any:
    """A leg that swings, with a four-bar in it."""
    return coupler.Simulation(coupler.robots.load("planar_leg_linkage")).run(0.5, every=10)


def view(*given: Any, **options: Any) -> Any:
    return coupler.view(*given, port=8300, quiet=True, **options)


def orange(image: np.ndarray) -> int:
    return int((np.abs(image - ORANGE).max(axis=2) < 0.22).sum())


def red(image: np.ndarray) -> int:
    return int((image[:, :, 0] - image[:, :, 1:].max(axis=2) > 0.35).sum())


def at_rest(page: Any) -> np.ndarray:
    """A saved page without its controls, when nothing moves any more."""
    seen = [picture(page, 0)]

    def still() -> bool:
        seen.append(picture(page, 0))
        return len(seen) > 4 and np.abs(seen[-1] - seen[-3])[:BAR].max() < 0.02

    wait_for(still)
    return seen[-1][:BAR]


def within(image: np.ndarray) -> tuple[int, int]:
    """A pixel, from the left and from above, with coloured ones all around."""
    patches = np.lib.stride_tricks.sliding_window_view(np.ptp(image, axis=2) > 0.25, (7, 7))
    y, x = np.argwhere(patches.all(axis=(2, 3)))[0]
    return int(x) + 3, int(y) + 3


def press(page: Any, key: str, times: int) -> None:
    slider = page.get_by_role("slider").first
    slider.focus()
    for _ in range(times):
        slider.press(key)


def test_a_slider_turns_the_crank_and_the_four_bar_stays_closed(opened: Opened) -> None:
    robot = coupler.robots.load("four_bar")
    with view(robot) as viewer:
        page = opened(viewer.url)
        before, panel = picture(page), viewer.shown
        assert orange(before) > 20  # the loop
        start = panel.posing.q.copy()
        press(page, "ArrowLeft", 30)
        wait_for(lambda: abs(panel.posing.values[0] - start[0]) > 0.2)
        wait_for(lambda: np.abs(picture(page) - before).max() > 0.3)
        moved = np.abs(panel.posing.q - start)
        assert moved.min() > 0.2  # all joints of the loop follow
        assert max(robot.loop_errors(panel.posing.q).values()) < 1e-9
        ends = panel.scene.figure.loop_ends(panel.scene.poses)
        np.testing.assert_allclose(ends[:, 0], ends[:, 1], atol=1e-9)
        assert page.get_by_text("loop1").first.is_visible()
        page.reload()  # a browser that leaves and returns is served again
        page.add_style_tag(content=NO_NOTES)
        wait_for(lambda: coloured(picture(page)) > 300)


def test_the_end_of_the_reach_is_told_on_screen(opened: Opened) -> None:
    with view(coupler.robots.load("five_bar")) as viewer:
        page = opened(viewer.url)
        press(page, "End", 1)
        wait_for(lambda: page.get_by_text("it does not come further").count() > 0)
        assert viewer.shown.posing.message


def test_a_log_is_scrubbed(opened: Opened, log: Any) -> None:
    with view(coupler.robots.load("planar_leg_linkage"), log) as viewer:
        player = viewer.shown.transport
        page = opened(viewer.url)
        page.get_by_role("button", name="Pause").click()
        wait_for(lambda: not player.playing)
        press(page, "Home", 1)
        wait_for(lambda: player.time == log.times[0])
        first = picture(page)
        press(page, "End", 1)
        wait_for(lambda: player.time > 0.45)
        wait_for(lambda: np.abs(picture(page) - first).max() > 0.3)
        page.get_by_role("button", name="Play").click()
        wait_for(lambda: player.playing)


def test_dragging_pulls_a_body(opened: Opened) -> None:
    b = coupler.RobotBuilder("box")
    b.object("box", Box((0.4, 0.4, 0.4)))
    robot = b.build().with_floor()
    simulation = coupler.Simulation(robot)
    with view(simulation) as viewer:
        page = opened(viewer.url)
        start = simulation.q.copy()
        y, x = np.median(np.nonzero(np.ptp(picture(page), axis=2) > 0.25), axis=1)  # the middle of the box
        page.mouse.move(x, y)
        page.mouse.down()
        for higher in (20, 60, 100):
            page.mouse.move(x, y - higher, steps=3)
        wait_for(lambda: viewer.shown.simulation.q[2] > start[2] + 0.02)
        page.mouse.up()
        wait_for(lambda: viewer.shown.pull is None)
        page.get_by_role("button", name="reset", exact=True).click()
        page.get_by_role("button", name="Pause").click()
        wait_for(lambda: not viewer.shown.running)


def test_a_saved_page_plays_from_its_file_without_a_network(chromium: Any, tmp_path: Path) -> None:
    robot = coupler.robots.load("planar_leg_linkage")
    robot = robot.with_gravity(0.01 * robot.gravity)
    log = coupler.Simulation(robot).run(5.0, every=100)  # pages loop: longer than a slow frame
    path = save_page(robot, log, tmp_path / "run.html", trace=["foot"])
    context, asked = chromium.new_context(viewport=SIZE, offline=True), list[str]()
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(path.as_uri())
        page.add_style_tag(content=NO_NOTES)
        time = page.locator("input").first
        time.wait_for()
        first = time.input_value()
        wait_for(lambda: time.input_value() != first)  # it plays
        pictures = []
        for instant in ("0.53", "4.53"):  # other than what the field may show, tenths, so that it changes and pauses
            time.fill(instant)
            time.press("Enter")
            pictures.append(at_rest(page))
        assert min(map(coloured, pictures)) > 300
        assert np.abs(pictures[0] - pictures[1]).max() > 0.3  # the robot moves
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    finally:
        context.close()


def test_the_cluster_under_the_cursor_is_highlighted(opened: Opened) -> None:
    robot = coupler.robots.load("planar_leg_linkage")
    with view(robot) as viewer:
        page, scene = opened(viewer.url), viewer.shown.scene
        page.get_by_role("tab", name="Clusters").click()
        row = page.locator("[data-name]").nth(0)
        own = set(cluster_bodies(robot, 1))
        assert row.get_attribute("data-name") in own
        before = picture(page)
        row.hover()
        wait_for(lambda: scene.highlighted == own)
        wait_for(lambda: coloured(picture(page)) < 0.8 * coloured(before))  # the others are faint
        page.get_by_text("Colour by").hover()
        wait_for(lambda: not scene.highlighted)
        page.mouse.click(*within(before))
        wait_for(lambda: bool(scene.highlighted))

        def nobody_is_found() -> bool:  # what the click puts into the field may arrive later than what is typed
            page.locator("input.mantine-TextInput-input:visible").fill("nobody")
            return page.get_by_text("nothing is called 'nobody'").count() > 0

        wait_for(nobody_is_found)
        assert not scene.highlighted


def test_contacts_of_a_log_are_drawn(opened: Opened) -> None:
    b = coupler.RobotBuilder("box")
    b.object("box", Box((0.4, 0.4, 0.4)), colour=(0.2, 0.4, 0.9, 1.0))
    robot = b.build().with_floor()
    log = coupler.Simulation(robot).run(0.05)
    with view(robot, log) as viewer:
        page = opened(viewer.url)
        page.get_by_role("button", name="Pause").click()
        wait_for(lambda: red(picture(page)) > 20)  # forces and points
        cones, before = page.get_by_role("checkbox", name="Friction cones"), picture(page)
        cones.check()
        wait_for(lambda: viewer.shown.overlays.cones and np.abs(picture(page) - before).max() > 0.1)
        page.get_by_role("checkbox", name="Forces").uncheck()
        page.get_by_role("checkbox", name="Points").uncheck()
        wait_for(lambda: red(picture(page)) < 20)
        assert page.get_by_text("Contact forces (N)").count() == 1  # plots


def test_a_simulation_is_paused_stepped_reset_and_made_weightless(opened: Opened) -> None:
    robot = coupler.robots.load("planar_leg_linkage").with_gravity((0.0, -9.81, 0.0))
    simulation = coupler.Simulation(robot)
    with view(simulation) as viewer:
        live, page = viewer.shown, opened(viewer.url)
        wait_for(lambda: live.simulation.time > 0.05)
        page.get_by_role("button", name="Pause").click()
        wait_for(lambda: not live.running)
        wait_for(lambda: page.get_by_text("paused").count() > 0)
        stopped = live.simulation.time
        page.get_by_role("button", name="step", exact=True).click()
        wait_for(lambda: live.simulation.time == pytest.approx(stopped + simulation.step_size))
        page.get_by_role("button", name="reset", exact=True).click()
        wait_for(lambda: live.simulation.time == 0.0)
        press(page, "Home", 1)  # gravity
        wait_for(lambda: page.get_by_role("textbox").first.input_value() == "0")
        page.get_by_role("button", name="Run").click()
        wait_for(lambda: live.simulation.time > 0.05)
        assert np.abs(live.simulation.v).max() < 1e-9  # nothing makes it fall


def test_a_rollout_is_shown_side_by_side(opened: Opened) -> None:
    robot = coupler.robots.load("four_bar")
    q0, v0 = np.tile(robot.neutral(), (70, 1)), np.linspace(-3.0, 3.0, 70)[:, None]
    with view(robot, coupler.rollout(robot, q0, v0, np.zeros((70, 50, 1)))) as viewer:
        page = opened(viewer.url)
        assert page.get_by_text("64 of 70 robots").count() == 1
        page.get_by_role("button", name="Pause").click()
        press(page, "Home", 1)
        wait_for(lambda: viewer.shown.transport.time == 0.0)
        first = picture(page)
        press(page, "End", 1)
        wait_for(lambda: np.abs(picture(page) - first).max() > 0.2)
        wait_for(lambda: page.get_by_role("textbox").first.input_value() == "0.05")


def test_a_stranger_is_refused_and_a_guest_is_let_in(opened: Opened, chromium: Any) -> None:
    with view(coupler.robots.load("four_bar"), host="0.0.0.0") as viewer:
        address = f"http://127.0.0.1:{viewer.url.split(':')[2].split('/')[0]}"
        stranger = chromium.new_page()
        answer = stranger.goto(address)
        assert answer.status == 403 and "token" in stranger.inner_text("body")
        stranger.close()
        opened(f"{address}/?{viewer.url.split('?')[1]}")
