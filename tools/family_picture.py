"""Draws some bundled robots side by side, for the head of the README: docs/robots.png.

python tools/family_picture.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np

import coupler
from coupler.view.recording import Recording
from coupler.view.render import Stage

PICTURE = Path(__file__).parents[1] / "docs" / "robots.png"
HEIGHT = 400
WIDTHS = {"mini_cheetah": 380, "tello_with_arms": 220, "rh5_manus": 340, "charmie": 320}
POSES: dict[str, dict[str, Any]] = {"mini_cheetah": {"hip": -0.8, "knee": 1.6}}


def main() -> None:
    row = [drawn(name, width) for name, width in WIDTHS.items()]
    matplotlib.image.imsave(PICTURE, np.round(255.0 * np.concatenate(row, axis=1)).astype(np.uint8))
    print(f"saved {PICTURE.name}, {PICTURE.stat().st_size / 1000:.0f} kB")


def drawn(name: str, width: int) -> np.ndarray:
    """A robot in its pose, HEIGHT × width × 3, from 0 to 1."""
    robot = coupler.robots.load(name)
    bent = POSES.get(name, {})
    q = robot.pack_q({j: x for j in robot.independent_joints for part, x in bent.items() if part in j})
    nothing: Any = np.zeros((1, 0, 3))
    still = Recording(robot, np.zeros(1), q[None], nothing, nothing, log=None)  # type: ignore[arg-type]
    return Stage(still, (width, HEIGHT)).draw(0)


if __name__ == "__main__":
    main()
