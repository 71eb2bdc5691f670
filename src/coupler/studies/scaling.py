"""How methods scale with the number of links of a chain [001, Fig. 11, 13; 000, Fig. 3].

The papers say that projection and Lagrange multipliers grow with the cube of the links, cluster algorithms linearly.
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
    """What is compared.

    Attributes:
        chains: names of robots.
        methods: the cluster algorithm first.
        seed: of the chains' random parameters; uniform ones if None.
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
        own = {row[1]: row[2:] for row in rows if row[0] == chain}
        growth = [np.log(own[24][i] / own[12][i]) / np.log(2) for i in range(len(figure.methods))]
        told = ", ".join(f"{method} {power:.1f}" for method, power in zip(figure.methods, growth, strict=True))
        print(f"{chain}: from 12 to 24 links time grows with the power {told} (paper: {cluster} 1, others 3)")
        print(f"{chain}: {cluster} per link at 1,000 links is {own[1000][-1] / own[12][-1]:.2f} times that at 12")
        gains = ", ".join(f"{own[24][i] / own[24][0]:.1f} of {method}" for i, method in enumerate(others, 1))
        print(f"{chain}: with 24 links the speed of {cluster} is {gains}")
    if len(figure.chains) > 1:
        print("(paper: the gain is larger for gears than for belts, whose clusters are larger)")

    def draw(plt: Any) -> None:
        for chain in figure.chains:
            own = [row for row in rows if row[0] == chain]
            for i, method in enumerate(figure.methods):
                plt.loglog([row[1] for row in own], [row[2 + i] for row in own], "o-", label=f"{chain}, {method}")
        plt.xlabel("links")
        plt.ylabel("time per state, µs")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)
