"""The cost of three ways to set up the contact problem of a step [002, §3.4, Fig. 5, 6].

The paper drops planar chains of identical bodies, of mass and length 1, free at both ends, from rest in a horizontal
line at height 1 [002, Fig. 4]. Both ends, P and Q, may touch the ground. It measures 2 s of motion in Matlab. Here
the time is that of one step, and only of what differs between the ways: accelerations without contact, and A of the
bodies that may touch [002, §2.3, step 1]; the rest is the same for all. Code without branches takes the same time in
all states, so one state suffices. A short chain shows that all three ways give the same motion.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.crba import mass_matrix_program
from coupler.algorithms.dca import divide_and_conquer_program
from coupler.algorithms.efpa import inverse_osim_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.contact.divide_and_conquer import divide_and_conquer, divide_and_conquer_problem
from coupler.contact.formulations import recursive_problem, traditional_problem
from coupler.contact.pairs import pairs_of
from coupler.contact.stepping import contact_step
from coupler.dynamics import bias_force, forward_dynamics, inverse_osim
from coupler.inertia import mass_matrix
from coupler.kinematics import frame_jacobian
from coupler.model import Planar, Plane, Revolute, Robot, RobotBuilder
from coupler.studies.report import save_table, with_pyplot

__all__ = ["chain", "run"]

BODIES = (1, 2, 4, 8, 16, 32, 64, 128)
MASS, LENGTH, HEIGHT = 1.0, 1.0, 1.0  # kg, m, m
FIGURES = {"002-fig5": ("",), "002-fig6": ("", "P", "PQ")}  # the ends that may touch the ground, case by case
METHODS = ("traditional", "ABA", "DCA")
LONGEST = 3  # growth is fitted to so many of the longest chains
STEP, DURATION, FALLING = 1e-3, 0.6, 4  # s, s, bodies of the chain whose motion is simulated
SECONDS, ROUNDS = 0.5, 5  # time of measurement for each chain and number of contacts, and rounds that share it


def chain(bodies: int) -> Robot:
    """Thin rods along x, hinged about y, the first free to move in the plane x-z, with the ground below."""
    b = RobotBuilder(f"chain_of_{bodies}")
    moment = MASS * LENGTH**2 / 12.0
    for i in range(bodies):
        b.body(f"rod{i}", MASS, (0.5 * LENGTH, 0, 0), (0.0, moment, moment))
        kind, parent, at = Revolute(axis=(0, 1, 0)), f"rod{i - 1}", (LENGTH, 0, 0)
        if not i:
            kind, parent, at = Planar(normal=(0, 1, 0)), "ground", (0, 0, HEIGHT)
        b.joint(f"joint{i}", kind, parent, f"rod{i}", at)
    b.contact("P", "rod0", (0, 0, 0))
    b.contact("Q", f"rod{bodies - 1}", (LENGTH, 0, 0))
    b.shape("ground", Plane(), friction=0.0)
    return b.build()


def ways(robot: Robot, bodies: Sequence[str]) -> list[Callable[[Any, Any], Any]]:
    """Three functions of q and v that compute accelerations without contact, and A of the given bodies."""
    tau = np.zeros(robot.nv)

    def traditional(q: Any, v: Any) -> Any:
        factor = np.linalg.cholesky(mass_matrix(robot, q))
        columns = np.vstack([-bias_force(robot, q, v), *(frame_jacobian(robot, q, body) for body in bodies)]).T
        half = np.linalg.solve(factor, columns)
        return np.linalg.solve(factor.T, half[:, 0]), half[:, 1:].T @ half[:, 1:]

    def recursive(q: Any, v: Any) -> Any:
        return forward_dynamics(robot, q, v, tau), inverse_osim(robot, q, bodies) if bodies else np.zeros((0, 0))

    return [traditional, recursive, lambda q, v: divide_and_conquer(robot, q, v, tau, bodies)]


def work(robot: Robot, bodies: Sequence[str]) -> tuple[list[float], list[int]]:
    """Operations of the three ways, and depths of the last two; factors count n³/3, solves 2 n² per column."""
    frames, n = [robot.tree.place[body] for body in bodies], robot.nv
    trees = [mass_matrix_program(robot), inverse_dynamics_program(robot)]
    recursive = [forward_dynamics_program(robot), *([inverse_osim_program(robot, frames)] if frames else [])]
    divided = [divide_and_conquer_program(robot, frames)]
    counts = [float(sum(p.operations().total() for p in ps)) for ps in (trees, recursive, divided)]
    counts[0] += n**3 / 3 + 2 * n**2 * (1 + 6 * len(frames))
    return counts, [max(p.depth() for p in ps) for ps in (recursive, divided)]


def median_times(cases: Sequence[Sequence[Callable[[], Any]]]) -> list[list[float]]:
    """The median time of each function of each case, s; all take turns, because machines are shared.

    Garbage collection is off meanwhile: it would visit all traced nodes, which takes longer than a call.
    """
    samples: list[list[list[float]]] = [[[] for _ in functions] for functions in cases]
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for functions, times in zip(cases, samples, strict=True):
                _sample(functions, times, SECONDS / ROUNDS)
    finally:
        if collecting:
            gc.enable()
    return [[float(np.median(own)) for own in times] for times in samples]


def _sample(functions: Sequence[Callable[[], Any]], times: Sequence[list[float]], seconds: float) -> None:
    """Calls functions in turns for some seconds; a first call of each does not count."""
    for function in functions:
        function()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for function, own in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            own.append(time.perf_counter() - start)


def largest_difference(ends: str) -> float:
    """The largest difference of positions, m and rad, between the motions of a falling chain in the three ways."""
    robot = chain(FALLING)
    pairs = [pair for pair in pairs_of(robot) if pair.one.name in ends]
    problems = traditional_problem, recursive_problem, divide_and_conquer_problem
    motions: list[Any] = []
    for free, problem in zip(ways(robot, ()), problems, strict=True):
        q, v, motion = robot.neutral(), np.zeros(robot.nv), []
        q[-1], v[-2] = 0.3, 1.0  # so that one end comes down first, and the chain rotates
        for _ in range(round(DURATION / STEP)):
            if pairs:
                done = contact_step(robot, q, v, np.zeros(robot.nv), STEP, pairs, formulation=problem)
                q, v = done.q, done.v
            else:
                v = v + STEP * free(q, v)[0]
                q = robot.integrate(q, v, STEP)
            motion.append(q)
        motions.append(motion)
    return float(np.abs(np.array(motions[1:]) - motions[0]).max())


def growth(bodies: np.ndarray, values: np.ndarray) -> float:
    """The exponent with which values grow with the number of bodies, fitted to the longest chains."""
    return float(np.polyfit(np.log(bodies[-LONGEST:]), np.log(values[-LONGEST:]), 1)[0])


def run(name: str, folder: Path) -> None:
    cases = FIGURES[name]
    rows: list[list[Any]] = []
    timed: list[list[Callable[[], Any]]] = []
    for bodies in BODIES:
        robot = chain(bodies)
        q, v = robot.random_state(0)
        for ends in cases:
            touching = list(dict.fromkeys({"P": "rod0", "Q": f"rod{bodies - 1}"}[end] for end in ends))
            timed.append([partial(way, q, v) for way in ways(robot, touching)])
            counts, depths = work(robot, touching)
            rows.append([bodies, len(ends), *counts, *depths])
        print(f"{bodies} bodies", flush=True)
    rows = [
        [*row[:2], *(1e6 * t for t in times), *row[2:]] for row, times in zip(rows, median_times(timed), strict=True)
    ]
    head = ["bodies", "contacts", *(f"{method}, µs" for method in METHODS)]
    head += [*(f"{method}, operations" for method in METHODS), "ABA, depth", "DCA, depth"]
    save_table(folder / f"{name}.csv", head, rows)
    table = np.array(rows, dtype=float)
    np.savez(folder / f"{name}.npz", table=table, head=np.array(head))
    print("(H is set up in n² operations and factorised by LAPACK, so its n³ shows only beyond these lengths)")
    for contacts in range(len(cases)):
        _print_growth(contacts, table[table[:, 1] == contacts])
    if len(cases) > 1:
        _print_contacts(table)
    print(f"largest difference between the three motions of {FALLING} bodies: {largest_difference(cases[-1]):.1e}")

    def draw(plt: Any) -> None:
        for i, method in enumerate(METHODS):
            for contacts in range(len(cases)):
                own = table[table[:, 1] == contacts]
                plt.loglog(own[:, 0], own[:, 2 + i], "o-", label=f"{method}, {contacts} contacts")
        plt.xlabel("bodies")
        plt.ylabel("time to set up a step's problem, µs")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)


def _print_growth(contacts: int, own: np.ndarray) -> None:
    """Prints how cost grows with the number of bodies, beside what the paper says."""
    n, last = own[:, 0], own[-1]
    for what, first in (("time grows", 2), ("operations grow", 5)):
        powers = ", ".join(f"{method} {growth(n, own[:, first + i]):.2f}" for i, method in enumerate(METHODS))
        print(f"{contacts} contacts: {what} with the power {powers} (paper: traditional 3, ABA 1, DCA 1)")
    print(f"{contacts} contacts: DCA takes {last[4] / last[3]:.1f} times as long as ABA (paper: DCA is slower)")
    doubled = own[-1, 8:] - own[-2, 8:]
    print(
        f"{contacts} contacts: depth {last[8]:.0f} of ABA, {last[9]:.0f} of DCA; the last doubling added "
        f"{doubled[0]:.0f} and {doubled[1]:.0f} (paper: DCA is O(log n) on n processors)"
    )


def _print_contacts(table: np.ndarray) -> None:
    """Prints how much contacts add to the cost of each further body, beside what the paper says."""
    none, one, two = (table[table[:, 1] == contacts] for contacts in range(3))
    for i, method in enumerate(METHODS):
        added = [(case[-1, 5 + i] - case[-2, 5 + i]) / (none[-1, 5 + i] - none[-2, 5 + i]) for case in (one, two)]
        print(
            f"{method}: operations per further body, over those without contact: {added[0]:.2f} with one contact, "
            f"{added[1]:.2f} with two (paper: ABA and DCA are parallel with one and steeper with two)"
        )
