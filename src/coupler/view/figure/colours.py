"""Colours of bodies: by the file, by cluster or by body."""

from __future__ import annotations

import colorsys
from typing import Literal, get_args

import numpy as np

from coupler.model import ModelError, Robot
from coupler.model.tree import GROUND
from coupler.model.wording import listed

Colouring = Literal["file", "cluster", "body"]

METAL = (0.27, 0.29, 0.33)  # of joints
STONE = (0.46, 0.48, 0.52)  # of what stands on the ground
ACCENT = (0.95, 0.45, 0.10)  # of loops, and of what a user pulls with

# Told apart by most eyes, and bright enough to be shaded.
_PALETTE = (
    (0.24, 0.49, 0.74),
    (0.90, 0.62, 0.15),
    (0.22, 0.62, 0.52),
    (0.80, 0.42, 0.58),
    (0.55, 0.45, 0.75),
    (0.62, 0.72, 0.25),
    (0.35, 0.68, 0.83),
    (0.75, 0.55, 0.42),
)
_TINTS = ((1.0, 0.0), (1.0, 0.30), (0.0, 0.30))  # towards white or black, and how far
_GOLDEN = 0.618034  # of a turn of the colour wheel, which never comes back to where it was


def body_colours(robot: Robot, colouring: Colouring) -> dict[str, np.ndarray]:
    """The colour of every body, "ground" among them: red, green and blue from 0 to 1.

    Args:
        colouring: "cluster": bodies of a cluster have one colour; "body": each link has its own; "file": the file's
            colours, and colours of clusters where the file gives none.
    """
    if colouring not in get_args(Colouring):
        raise ModelError(f"colours must be one of {listed(get_args(Colouring))}, got {colouring!r}")
    colours = {GROUND: np.array(STONE)}
    cluster_of = robot.cluster_tree.cluster_of
    for body in robot.bodies:
        link = robot.tree.place[body][0]
        number = link if colouring == "body" else cluster_of[link]
        colours[body] = np.array(_colour(number - 1) if link else STONE)
    return colours


def _colour(number: int) -> tuple[float, float, float]:
    """The colour with this number: from the palette, then its lighter and darker versions, then the colour wheel."""
    again, which = divmod(number, len(_PALETTE))
    if again < len(_TINTS):
        towards, part = _TINTS[again]
        red, green, blue = ((1.0 - part) * x + part * towards for x in _PALETTE[which])
        return red, green, blue
    lightness = (0.50, 0.60, 0.42)[number % 3]
    return colorsys.hls_to_rgb((0.58 + _GOLDEN * number) % 1.0, lightness, 0.40)
