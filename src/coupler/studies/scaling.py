"""How methods scale with the number of links of a chain [001, Fig. 11, 13; 000, Fig. 3].

According to the papers, the time of projection and of Lagrange multipliers grows with the cube of the number of links,
that of cluster algorithms linearly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.baselines import lagrange_program, projected_osim_program, projection_program
from coupler.algorithms.efpa import inverse_osim_program
from coupler.robots import load
from coupler.studies.report import best_times, save_table, with_pyplot
from coupler.studies.speed import Make, at_effectors, sampled

__all__ = ["run"]

LENGTHS = (2, 4, 6, 8, 12, 16, 20, 24)
LONG = (48, 96, 200, 400, 1000)  # for the cluster algorithm alone


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    Attributes:
        chains: names of the bundled robots to compare.
        methods: programs of the methods to compare, the cluster algorithm first.
        seed: the seed of the chains' random parameters; None for chains of identical links.
    """

    chains: tuple[str, ...]
    methods: Mapping[str, Make]
    seed: int | None = None


FORWARD = {"C-ABA": forward_dynamics_program, "projection": projection_program, "multipliers": lagrange_program}
OSIM = {"C-EFPA": at_effectors(inverse_osim_program), "projected EFPA": at_effectors(projected_osim_program)}
FIGURES = {
    "000-fig3": Figure(("geared_chain", "belt_chain"), FORWARD, seed=0),
    "001-fig11": Figure(("geared_chain", "belt_chain"), FORWARD),
    "001-fig13": Figure(("belt_chain",), OSIM),
}


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    figure = FIGURES[name]
    cluster, *others = figure.methods
    rows: list[list[Any]] = []
    for chain in figure.chains:
        for links in (*LENGTHS, *LONG):
            robot, states = load(chain, links=links, seed=figure.seed), max(16, 4096 // links // 16 * 16)
            methods = figure.methods if links <= max(LENGTHS) else {cluster: figure.methods[cluster]}
            times = best_times([sampled(make, robot, states) for make in methods.values()], 0.5)
            values = [1e6 * seconds / states for seconds in times] + [float("nan")] * (1 + len(others) - len(times))
            rows.append([chain, links, *values, 1e3 * values[0] / links])
            print(f"{chain}, {links} links", flush=True)
    head = ["chain", "links", *(f"{method}, µs" for method in figure.methods), f"{cluster} per link, ns"]
    save_table(folder / f"{name}.csv", head, rows)
    for chain in figure.chains:
        times_of = {row[1]: row[2:] for row in rows if row[0] == chain}
        growth = [np.log(times_of[24][i] / times_of[12][i]) / np.log(2) for i in range(len(figure.methods))]
        powers = ", ".join(f"{method} {power:.1f}" for method, power in zip(figure.methods, growth, strict=True))
        print(f"{chain}: from 12 to 24 links, time grows with the power {powers} (paper: {cluster} 1, others 3)")
        ratio = times_of[1000][-1] / times_of[12][-1]
        print(f"{chain}: per link, {cluster} takes {ratio:.2f} times as long with 1,000 links as with 12")
        ratios = [times_of[24][i] / times_of[24][0] for i in range(1, 1 + len(others))]
        gains = ", ".join(f"{ratio:.1f} times that of {method}" for ratio, method in zip(ratios, others, strict=True))
        print(f"{chain}: with 24 links, the speed of {cluster} is {gains}")
    if len(figure.chains) > 1:
        print("(paper: the gain is larger for gears than for belts, whose clusters are larger)")

    def draw(plt: Any) -> None:
        for chain in figure.chains:
            chain_rows = [row for row in rows if row[0] == chain]
            for i, method in enumerate(figure.methods):
                plt.loglog(
                    [row[1] for row in chain_rows], [row[2 + i] for row in chain_rows], "o-", label=f"{chain}, {method}"
                )
        plt.xlabel("links")
        plt.ylabel("time per state, µs")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)
