"""A log as one HTML file, which plays in any browser without a server or a network."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from coupler.model import ModelError, Robot
from coupler.model.outputs import check_target, written_whole
from coupler.simulate import Log
from coupler.view.browser.overlays import Overlays
from coupler.view.browser.player import camera_states
from coupler.view.browser.server import started
from coupler.view.browser.viewer import scene_of
from coupler.view.recording import Recording

_MOST = 1800  # frames: a minute of 30 a second; longer runs have fewer a second

# Each time a page starts again from the beginning, viser first goes back to its own light, a picture all around, and
# fades in. Our light needs no such picture: without it nothing flashes, and a machine without a graphics card keeps up.
_STEADY = b"""<style>canvas { opacity: 1 !important }</style>
<script>
const get = window.fetch;
window.fetch = (what, ...more) =>
  String(what.url ?? what).startsWith("data:image/jpeg") ? new Promise(() => {}) : get(what, ...more);
</script>
"""


def save_page(
    robot: Robot, log: Log, path: str | Path, *, frames_per_second: float = 30.0, trace: Iterable[str] = ()
) -> Path:
    """Writes a page that plays a log, with contacts and their forces.

    Args:
        robot: the robot that moved.
        log: the log of the run.
        path: the page to write, ".html".
        frames_per_second: frames for each second of the run, up to 1800 frames in all.
        trace: names of frames, contact points or bodies whose paths are drawn.

    Returns:
        The path.

    Raises:
        ModelError: without viser, for a log that cannot be shown, an unknown frame, or a path that cannot be
            written to.
    """
    path, recording = check_target(path), Recording.of(robot, log)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ModelError(f"{path}: pages are HTML files; call it {path.with_suffix('.html').name}")
    if not frames_per_second > 0.0:
        raise ModelError(f"frames_per_second must be above zero, got {frames_per_second!r}")
    ways = recording.traces(trace)
    server = started()
    try:
        scene = scene_of(server, robot, camera_states(recording))
        overlays = Overlays(server.viser, scene.figure.size, recording.force_scale(scene.figure.size))
        overlays.trace(ways)
        rows = recording.frames(frames_per_second, _MOST)
        recorder = server.viser.get_scene_serializer()
        shown = recording.times[rows[0]]
        for row, poses in zip(rows, scene.figure.poses(recording.q[rows]), strict=True):
            recorder.insert_sleep(float(recording.times[row] - shown))
            shown = recording.times[row]
            scene.show(poses)
            overlays.show(recording, row)
        page = recorder.as_html()
    finally:
        server.stop()
    title = f"<title>{escape(robot.name)}</title>"
    with written_whole(path) as file:
        file.write(page.encode().replace(b"<title>Viser</title>", title.encode() + _STEADY, 1))
    return path
