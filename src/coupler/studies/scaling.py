"""How forward dynamics of chains scales with their number of links [001, Fig. 11].

The paper says that projection and Lagrange multipliers grow with the cube of the links and C-ABA grows linearly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.baselines import lagrange_program, projection_program
from coupler.robots import load
from coupler.studies.report import best_times, save_table, with_pyplot
from coupler.studies.speed import sampled

__all__ = ["run"]

CHAINS = {"geared_chain": (2, 4, 6, 8, 12, 16, 20, 24), "belt_chain": (2, 4, 6, 8, 12, 16, 20, 24)}
LONG = (48, 96, 200, 400, 1000)  # for C-ABA alone
METHODS = {"C-ABA": forward_dynamics_program, "projection": projection_program, "multipliers": lagrange_program}


def run(name: str, folder: Path) -> None:
    rows: list[list[Any]] = []
    for chain, lengths in CHAINS.items():
        for links in (*lengths, *LONG):
            robot, states = load(chain, links=links), max(8, 4096 // links)
            methods = METHODS if links <= max(lengths) else {"C-ABA": forward_dynamics_program}
            times = best_times([sampled(make, robot, states) for make in methods.values()], 0.5)
            values = [1e6 * seconds / states for seconds in times] + [float("nan")] * (3 - len(times))
            rows.append([chain, links, *values, 1e3 * values[0] / links])
            print(f"{chain}, {links} links", flush=True)
    head = ["chain", "links", *(f"{method}, µs" for method in METHODS), "C-ABA per link, ns"]
    save_table(folder / f"{name}.csv", head, rows)
    for chain in CHAINS:
        own = {row[1]: row[2:] for row in rows if row[0] == chain}
        growth = [np.log(own[24][i] / own[12][i]) / np.log(2) for i in range(3)]
        told = ", ".join(f"{method} {power:.1f}" for method, power in zip(METHODS, growth, strict=True))
        print(f"{chain}: from 12 to 24 links time grows with the power {told} (paper: C-ABA 1, others 3)")
        print(f"{chain}: C-ABA per link at 1,000 links is {own[1000][3] / own[12][3]:.2f} times that at 12")

    def draw(plt: Any) -> None:
        for chain in CHAINS:
            own = [row for row in rows if row[0] == chain]
            for i, method in enumerate(METHODS):
                plt.loglog([row[1] for row in own], [row[2 + i] for row in own], "o-", label=f"{chain}, {method}")
        plt.xlabel("links")
        plt.ylabel("time per state, µs")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)
