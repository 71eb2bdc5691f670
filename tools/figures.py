"""Draws docs/figures, for the tutorial and the theory: python tools/figures.py; needs coupler[plot]."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Polygon
from PIL import Image

import coupler
from coupler.view.recording import Recording
from coupler.view.render import Stage

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
BLUE, ORANGE, GREEN, GREY, DARK = "#2f6fb2", "#d9822b", "#3a8f5c", "#9aa3ad", "#222831"
CRANK, COUPLER, ROCKER, GROUND = 0.5, 0.85, 0.75, 0.9  # m, of the four-bar


def main() -> None:
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "coupler", "font.family": "sans-serif", "font.size": 11}
    )
    FOLDER.mkdir(exist_ok=True)
    coupler.robots.load("mit_humanoid_leg").draw(FOLDER / "geared_leg.svg")
    for name, draw in {"embedding": embedding, "contact": contact}.items():
        figure = draw()
        figure.savefig(FOLDER / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
    hopper()
    for path in sorted(FOLDER.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def hopper() -> None:
    """Draws the leg of the tutorial after it has landed."""
    names: dict[str, Any] = {}
    page = (FOLDER.parent / "tutorial.md").read_text().split("## A batch")[0]
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(block, names)
    stage = Stage(Recording.of(names["hopper"], names["log"][-1:]), (640, 420))
    picture = Image.fromarray(np.round(255 * stage.draw(0)).astype(np.uint8))
    picture.quantize(64, dither=Image.Dither.NONE).save(FOLDER / "hopper.png", "PNG", optimize=True)


def rocker_of(crank: np.ndarray) -> np.ndarray:
    """The angle of the rocker that closes the four-bar, on one branch."""
    x, y = CRANK * np.cos(crank) - GROUND, CRANK * np.sin(crank)
    reach = np.hypot(x, y)
    return np.arctan2(y, x) - np.arccos((reach**2 + ROCKER**2 - COUPLER**2) / (2 * reach * ROCKER))


def embedding() -> Any:
    """Draws a four-bar, and the curve of its closed configurations with tangent G and normal K."""
    figure, (machine, curve) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=(1, 1.3))
    here = 1.6
    draw_four_bar(machine, here)

    angles = np.linspace(0, 4.4, 400)
    rocker = np.unwrap(rocker_of(angles))
    at = np.array([here, float(np.interp(here, angles, rocker))])
    slope = float((np.interp(here + 1e-2, angles, rocker) - at[1]) / 1e-2)
    tangent, normal = (np.array(x) / np.hypot(1.0, slope) for x in ([1.0, slope], [-slope, 1.0]))
    curve.plot(angles, rocker, color=BLUE, lw=2.4)
    curve.text(0.95, float(rocker.min()) - 0.12, r"closed: $\phi(q)=0$ or $q=\gamma(y)$", color=BLUE)
    arrow(curve, at, at + 1.1 * tangent, ORANGE)
    curve.text(*(at + 1.1 * tangent + [0.12, -0.3]), r"velocities $G\,\dot{y}$", color=ORANGE)
    arrow(curve, at, at + 0.8 * normal, GREEN)
    curve.text(*(at + 0.8 * normal + [0.35, 0.08]), r"forces of the loop $K^{\top}\lambda$", color=GREEN, ha="center")
    curve.plot(*at, "o", color=DARK, ms=7)
    curve.set(xlabel=r"crank angle, the independent coordinate $y$", ylabel="rocker angle", aspect="equal")
    curve.set(xlim=(0, 4.8), ylim=(float(rocker.min()) - 0.5, float(rocker.max()) + 0.75))
    clean(curve)
    return figure


def draw_four_bar(axes: Axes, angle: float) -> None:
    rocker = float(rocker_of(np.array(angle)))
    a, d = np.zeros(2), np.array([GROUND, 0.0])
    b = CRANK * np.array([np.cos(angle), np.sin(angle)])
    c = d + ROCKER * np.array([np.cos(rocker), np.sin(rocker)])
    for ends, colour, text, shift in (
        ((a, b), ORANGE, "crank", (-0.3, -0.03)),
        ((b, c), BLUE, "coupler", (-0.14, 0.09)),
        ((d, c), GREEN, "rocker", (0.04, 0.0)),
    ):
        axes.plot(*np.transpose(ends), color=colour, lw=5, solid_capstyle="round", zorder=2)
        middle = (ends[0] + ends[1]) / 2
        axes.text(middle[0] + shift[0], middle[1] + shift[1], text, color=colour)
    for point in (a, d):
        axes.add_patch(Polygon(point + np.array([[0, 0], [-0.06, -0.1], [0.06, -0.1]]), color=GREY, zorder=1))
    for point in (a, b, d):
        axes.plot(*point, "o", color="white", mec=DARK, ms=7, zorder=3)
    axes.plot(*c, "o", color="white", mec="#c0392b", mew=2, ms=9, zorder=3)
    axes.text(c[0] - 0.05, c[1] + 0.07, "the joint that\ncloses the loop", color="#c0392b", ha="center")
    axes.set(aspect="equal", xlim=(-0.5, 1.2), ylim=(-0.2, 1.05))
    axes.axis("off")


def contact() -> Any:
    """Draws the law of contact: either a gap or a force; the friction cone; sticking and sliding."""
    figure, (normal, cone, slide) = plt.subplots(1, 3, figsize=(10.5, 3.4))

    normal.plot([0, 0], [0, 1], color=BLUE, lw=4, solid_capstyle="round")
    normal.plot([0, 1], [0, 0], color=BLUE, lw=4, solid_capstyle="round")
    normal.text(0.07, 0.72, "touches:\nit presses", color=BLUE)
    normal.text(0.42, 0.07, "opens: no force", color=BLUE)
    normal.set(xlabel=r"$w_n + g/h$, how the gap goes on", ylabel=r"normal impulse $\lambda_n$")
    normal.set(xlim=(-0.12, 1.1), ylim=(-0.12, 1.1), title="never both")
    clean(normal)

    cone.add_patch(Polygon([[0, 0], [-0.62, 1], [0.62, 1]], color=BLUE, alpha=0.15, lw=0))
    cone.plot([-0.62, 0, 0.62], [1, 0, 1], color=BLUE, lw=2)
    arrow(cone, (0, 0), (0.26, 0.85), GREEN)
    cone.text(0.05, 0.93, "sticks", color=GREEN)
    arrow(cone, (0, 0), (-0.45, 0.726), ORANGE)
    cone.text(-0.86, 0.74, "slides", color=ORANGE)
    arrow(cone, (0, -0.07), (0.5, -0.07), DARK)
    cone.text(0.16, -0.2, r"$w_t$, sliding", color=DARK)
    cone.text(0.42, 0.42, r"$|\lambda_t|\leq\mu\,\lambda_n$", color=BLUE)
    cone.set(aspect="equal", xlim=(-0.95, 0.95), ylim=(-0.28, 1.1), title="the friction cone")
    cone.axis("off")

    speeds = np.array([-1.0, 0.0, 0.0, 1.0])
    slide.plot(speeds, [1, 1, -1, -1], color=BLUE, lw=4, solid_joinstyle="round")
    slide.text(0.07, -0.35, "sticks", color=BLUE)
    slide.text(0.3, -0.85, "slides", color=BLUE)
    slide.set(xlabel=r"sliding velocity $w_t$", ylabel=r"friction $\lambda_t$", title="most dissipation")
    slide.set(xlim=(-1.1, 1.1), ylim=(-1.35, 1.35))
    clean(slide)
    slide.set_yticks([-1, 1], [r"$-\mu\lambda_n$", r"$\mu\lambda_n$"])
    figure.tight_layout()
    return figure


def arrow(axes: Axes, start: Any, end: Any, colour: str) -> None:
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=16, color=colour, lw=2.2, shrinkA=0, zorder=4)
    )


def clean(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


if __name__ == "__main__":
    main()
