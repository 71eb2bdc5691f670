"""How methods scale with the number of links of a chain [001, Fig. 11, 13; 000, Fig. 3].

According to the papers, the time of projection and of Lagrange multipliers grows with the cube of the number of links,
that of cluster algorithms linearly. Short chains are compared with all methods compiled: what is zero by structure is
left out, and compilation takes longer and longer. For long ones, the baselines' matrices are dense and solved by
LAPACK, as in the papers' library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.baselines import lagrange_program, projected_osim_program, projection_program, with_armatures
from coupler.algorithms.efpa import inverse_osim_program
from coupler.algorithms.pv_osim import pv_osim_program
from coupler.robots import load
from coupler.studies.dense import dense_times
from coupler.studies.report import best_times, full, note, progress, save_table, verdict, with_pyplot
from coupler.studies.speed import Make, at_effectors, sampled

SHORT = (2, 4, 8, 12, 24)  # for all methods; (6, 16, 20) with --full
LONG = (48, 192, 384)  # for cluster algorithms, and for baselines with dense matrices; 1,000 of the former
FURTHEST = 1000
SECONDS = 0.1  # of measurement for each method
DENSE = ", dense"
DENSE_FROM = (24, 96, 192, 384)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    Attributes:
        chains: names of the bundled robots to compare.
        cluster: name and program of the cluster algorithm.
        others: programs of the methods to compare it with.
        further: other programs that grow linearly.
        dense: the methods to compare it with on long chains; see dense.py.
        seed: the seed of the chains' random parameters; None for chains of identical links.
    """

    chains: tuple[str, ...]
    cluster: tuple[str, Make]
    others: Mapping[str, Make]
    further: Mapping[str, Make]
    dense: tuple[str, ...]
    seed: int | None = None


def _approximate(make: Make) -> Make:
    """A function that makes the program for the robot with armatures instead of rotors."""
    return lambda robot: make(with_armatures(robot, [body for body in robot.body_names if "rotor" in body]))


FORWARD = Figure(
    ("geared_chain", "belt_chain"),
    ("C-ABA", forward_dynamics_program),
    {"projection": projection_program, "multipliers": lagrange_program},
    {"approximate ABA": _approximate(forward_dynamics_program)},
    ("projection", "multipliers"),
)
OSIM = Figure(
    ("belt_chain",),
    ("C-EFPA", at_effectors(inverse_osim_program)),
    {"projected EFPA": at_effectors(projected_osim_program)},
    {
        "approximate EFPA": _approximate(at_effectors(inverse_osim_program)),
        "PV-OSIM on clusters": at_effectors(pv_osim_program),
    },
    ("projected EFPA",),
)
FIGURES = {
    "000-fig3": Figure(FORWARD.chains, FORWARD.cluster, FORWARD.others, FORWARD.further, FORWARD.dense, seed=0),
    "001-fig11": FORWARD,
    "001-fig13": OSIM,
}
Times = dict[str, dict[int, float]]  # µs of one state, by method and number of links


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    figure = FIGURES[name]
    times = {chain: measured(figure, chain) for chain in figure.chains}
    methods = list(dict.fromkeys(method for by_method in times.values() for method in by_method))
    rows: list[list[Any]] = []
    for chain, by_method in times.items():
        for links in sorted({n for by_links in by_method.values() for n in by_links}):
            rows.append([chain, links, *(by_method[method].get(links, float("nan")) for method in methods)])
    note(
        "Times are of one state on one thread, the best of many: in a batch, in lanes, for compiled methods; one state "
        "a call for those with dense matrices, which LAPACK solves."
    )
    save_table(folder / f"{name}.csv", ["chain", "links", *(f"{method}, µs" for method in methods)], rows)
    for chain, by_method in times.items():
        judge(figure, chain, by_method)
    if len(times) > 1:
        judge_chains(figure, times)
    draw_times(folder / f"{name}.png", times)


def measured(figure: Figure, chain: str) -> Times:
    """Times of all methods on a chain of more and more links."""
    cluster, cluster_program = figure.cluster
    short = sorted({*SHORT, *((6, 16, 20) if full() else ())})
    times: Times = {}
    for links in (*short, *LONG, FURTHEST):
        robot, states = load(chain, links=links, seed=figure.seed), max(16, 4096 // links // 16 * 16)
        programs = {cluster: cluster_program}
        if links != FURTHEST:
            programs |= figure.further
        if links in short:
            programs |= figure.others
        calls = {method: (sampled(make, robot, states), states) for method, make in programs.items()}
        progress(f"{chain}, {links} links: {', '.join(calls)}")
        best = best_times([call for call, _ in calls.values()], SECONDS)
        for (method, (_, count)), seconds in zip(calls.items(), best, strict=True):
            times.setdefault(method, {})[links] = 1e6 * seconds / count
    progress(f"{chain}, {', '.join(map(str, DENSE_FROM))} links: {', '.join(figure.dense)}, dense")
    for method, by_links in dense_times(chain, figure.seed, DENSE_FROM, figure.dense).items():
        times[method + DENSE] = {links: 1e6 * seconds for links, seconds in by_links.items()}
    return times


def growth(times: Mapping[int, float], start: int, end: int) -> float:
    """The power of the number of links with which a time grows."""
    return float(np.log(times[end] / times[start]) / np.log(end / start))


_BELOW = "below the cube still, where O(n²), to assemble matrices, shows"
_ABOVE = "steeper, where matrices outgrow the caches, which a busy machine shares"


def judge(figure: Figure, chain: str, times: Times) -> None:
    """Prints powers of growth beside the papers' statements."""
    cluster, (middle, end), longest = figure.cluster[0], LONG[-2:], max(SHORT)
    for method in (cluster, *figure.further):
        power = growth(times[method], LONG[0], end)
        outcome = "agrees" if abs(power - 1.0) < 0.25 else "differs: memory outgrows the caches of the processor"
        verdict(f"{chain}: power of growth of {method}, {LONG[0]} to {end} links", "1", f"{power:.2f}", outcome)
    for method in figure.dense:
        power = growth(times[method + DENSE], middle, end)
        outcome = "agrees" if abs(power - 3.0) < 0.5 else f"differs: {_BELOW if power < 3.0 else _ABOVE}"
        verdict(
            f"{chain}: power of growth of {method} with dense matrices, {middle} to {end} links",
            "3",
            f"{power:.2f}",
            outcome,
        )
        first, last = (times[method + DENSE][links] / times[cluster][links] for links in (middle, end))
        outcome = "agrees" if last > first else "differs: it does not grow"
        measured = f"{first:.0f} with {middle} links, {last:.0f} with {end}"
        verdict(f"{chain}: time of {method} with dense matrices over {cluster}", "grows", measured, outcome)
    for method in figure.others:
        power = growth(times[method], longest // 2, longest)
        outcome = (
            "agrees"
            if power > 2.5
            else "differs: compiled without zeros, a short chain costs O(n²) before it costs O(n³)"
        )
        verdict(
            f"{chain}: power of growth of {method}, compiled, {longest // 2} to {longest} links",
            "3",
            f"{power:.2f}",
            outcome,
        )
        ratio = times[method][longest] / times[cluster][longest]
        outcome = "agrees" if ratio > 1.0 else "differs: slower"
        verdict(f"{chain}: time of {method} over {cluster}, {longest} links", "above 1", f"{ratio:.1f}", outcome)
    drop = times[cluster][FURTHEST] / FURTHEST / (times[cluster][longest] / longest)
    note(f"{chain}: per link, {cluster} takes {drop:.2f} times as long with {FURTHEST} links as with {longest}.")


def judge_chains(figure: Figure, times: Mapping[str, Times]) -> None:
    """Prints the gain with gears and with belts."""
    cluster, longest = figure.cluster[0], max(SHORT)
    for method in figure.others:
        gears, belts = (times[chain][method][longest] / times[chain][cluster][longest] for chain in figure.chains)
        outcome = "agrees" if gears > belts else "differs: belts cost no more, since pairs of links share a step"
        measured = f"{gears:.1f} and {belts:.1f} times"
        verdict(
            f"gain over {method} with gears and with belts, {longest} links", "larger with gears", measured, outcome
        )


def draw_times(path: Path, times: Mapping[str, Times]) -> None:
    """Draws a panel for each chain, with lines of the papers' powers."""

    def draw(plt: Any) -> None:
        _, panels = plt.subplots(1, len(times), figsize=(7 * len(times), 6), squeeze=False)
        for panel, (chain, by_method) in zip(panels[0], times.items(), strict=True):
            for method, by_links in by_method.items():
                panel.loglog([*by_links], [*by_links.values()], "o--" if method.endswith(DENSE) else "o-", label=method)
            first = next(iter(by_method.values()))
            ends = np.array([LONG[0], LONG[-1]], float)
            panel.loglog(ends, first[LONG[0]] * ends / ends[0], "k:", label="paper: power 1")
            dense = [by_links for method, by_links in by_method.items() if method.endswith(DENSE)]
            if dense:
                panel.loglog(ends, dense[0][LONG[-1]] * (ends / ends[-1]) ** 3, "k-.", label="paper: power 3")
            panel.set_title(chain)
            panel.set_xlabel("links")
            panel.set_ylabel("time of one state, µs")
            panel.legend(fontsize="small")

    with_pyplot(path, draw)
