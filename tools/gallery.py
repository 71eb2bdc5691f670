"""Draws the bundled robots for docs/gallery.md: python tools/gallery.py [NAME ...]; needs coupler[plot]."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

import coupler
from coupler.view.render import render

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
SIZE, COLOURS = (480, 360), 64
LARGEST = 40_000  # bytes of a picture
OPTIONS = {"geared_chain": {"links": 6}, "belt_chain": {"links": 6}}


def pose(robot: coupler.Robot, name: str) -> np.ndarray:
    """A configuration that shows how a robot is built."""
    bent = {
        "mini_cheetah": {"hip": -0.8, "knee": 1.6},
        "geared_chain": {"link": 0.3},
        "belt_chain": {"link": 0.3},
    }.get(name, {})
    known = {joint: x for joint in robot.independent_joints for part, x in bent.items() if part in joint}
    return robot.pack_q(known) if known else robot.neutral()


def draw(name: str) -> Path:
    """Writes the picture of a robot, with few colours, which makes it small."""
    robot = coupler.robots.load(name, **OPTIONS.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coupler.ModelWarning)  # of what floats and touches nothing
        simulation = coupler.Simulation(robot, q=pose(robot, name), contacts=())
    path = FOLDER / f"{name}.png"
    render(robot, simulation.run(0.0), path, size=SIZE)
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    data = io.BytesIO()
    small.save(data, "PNG", optimize=True)
    if data.tell() > LARGEST:
        raise SystemExit(f"{path}: {data.tell()} bytes are more than {LARGEST}")
    path.write_bytes(data.getvalue())
    return path


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or coupler.robots.names():
        path = draw(name)
        print(f"{path.name}: {path.stat().st_size} bytes")
