"""The cost of three ways to set up the contact problem of a step [002, §3.4, Fig. 5, 6].

The paper drops planar chains of identical bodies, of mass and length 1, free at both ends, from rest in a horizontal
line at height 1 [002, Fig. 4]. Both ends, P and Q, may touch the ground. It measures 2 s of motion in Matlab. Here
the time is that of one step: of what differs between the ways, accelerations without contact and A of the bodies that
may touch [002, §2.3, step 1], and of the solution for contact forces, which is the same for all. All of it is compiled,
one state a call: H and its Cholesky factors; C-ABA and C-EFPA in one pass; divide and conquer. Code without branches
takes the same time in all states, so one state suffices. A short chain shows that all three ways give the same motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba_with_osim import dynamics_and_osim_program
from coupler.algorithms.baselines.traditional import traditional_program
from coupler.algorithms.dca import divide_and_conquer_program
from coupler.contact import solve
from coupler.contact.divide_and_conquer import divide_and_conquer_problem
from coupler.contact.formulations import contact_rows, recursive_problem, traditional_problem, unimpeded
from coupler.contact.pairs import pairs_of
from coupler.graph import Builder, View, compile, fields
from coupler.inertia import mass_matrix_solve
from coupler.model import Planar, Plane, Revolute, Robot, RobotBuilder
from coupler.studies.report import full, median_times, note, progress, save_table, verdict, with_pyplot

BODIES = (1, 2, 4, 8, 16, 32, 64, 128)
LONGER = (256,)  # with --full
NEAR = (2, 3, 4, 5, 6, 7, 9)  # short chains, to find where recursion becomes cheaper
MASS, LENGTH, HEIGHT = 1.0, 1.0, 1.0  # kg, m, m
FIGURES = {"002-fig5": ("",), "002-fig6": ("", "P", "PQ")}  # the ends that may touch the ground, case by case
PROGRAMS = {
    "traditional": traditional_program,
    "ABA": dynamics_and_osim_program,
    "DCA": divide_and_conquer_program,
}
PAPER = {"traditional": 3, "ABA": 1, "DCA": 1}  # powers of growth
CROSSING = 7  # freedoms, beyond which recursion is faster than H
LONGEST = 3  # growth is fitted to so many of the longest chains
STEP, DURATION, FALLING = 1e-3, 0.6, 4  # s, s, bodies of the chain whose motion is simulated
SECONDS = 0.4  # of measurement for each chain and number of contacts


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


def ways(robot: Robot, bodies: Sequence[str]) -> dict[str, Any]:
    """Three compiled functions of q, v and τ: accelerations without contact, and A of the given bodies, row by row."""
    frames = [robot.tree.place[body] for body in bodies]
    return {method: compile(make(robot, frames)) for method, make in PROGRAMS.items()}


def solving_program(contacts: int) -> Any:
    """The program (A, n, w) → impulses of frictionless contacts, one or two of them on bodies of their own.

    A is that of bodies, n the normals as rows in the bodies' frames, w velocities along them without contact.
    """
    b = Builder("solving")
    sizes = {"A": (6 * contacts) ** 2, "n": 6 * contacts, "w": contacts}
    given = {name: b.input(name, size) for name, size in sizes.items()}
    buffers = {**given, "impulses": b.output("impulses", contacts)}

    def solve(problem: View) -> None:
        rows = np.zeros((contacts, 6 * contacts), dtype=object)
        for i in range(contacts):
            rows[i, 6 * i : 6 * i + 6] = problem.n[6 * i : 6 * i + 6]
        A = rows @ problem.A.reshape(6 * contacts, -1) @ rows.T
        alone = [np.where(w < 0.0, -w / A[i, i], 0.0) for i, w in enumerate(problem.w)]
        problem.impulses = np.array(alone if contacts == 1 else _both_or_one(A, problem.w, alone))

    b.loop(solve, problem=fields(**{x: buffer.at(0, buffer.size) for x, buffer in buffers.items()}))
    return b.build()


def _both_or_one(A: Any, w: Any, alone: Sequence[Any]) -> list[Any]:
    """The impulses of two contacts: both push, or one pushes and the other parts, or none pushes."""
    both = np.array([A[0, 1] * w[1] - A[1, 1] * w[0], A[0, 1] * w[0] - A[0, 0] * w[1]]) / (
        A[0, 0] * A[1, 1] - A[0, 1] ** 2
    )
    first_parts = w[0] + A[0, 1] * alone[1]  # velocities of each if only the other pushes
    second_parts = w[1] + A[0, 1] * alone[0]
    push = np.where(both[0] > 0.0, np.where(both[1] > 0.0, 1.0, 0.0), 0.0)
    only_first = np.where(second_parts >= 0.0, alone[0], 0.0)
    only_second = np.where(second_parts >= 0.0, 0.0, np.where(first_parts >= 0.0, alone[1], 0.0))
    return [np.where(push > 0.5, both[0], only_first), np.where(push > 0.5, both[1], only_second)]


def largest_difference(ends: str) -> float:
    """The largest difference of positions, m and rad, between the motions of a falling chain in the three ways."""
    robot = chain(FALLING)
    pairs = [pair for pair in pairs_of(robot) if pair.one.name in ends]
    problems = traditional_problem, recursive_problem, divide_and_conquer_problem
    motions: list[Any] = []
    for free, problem in zip(ways(robot, ()).values(), problems, strict=True):
        q, v, tau, motion = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv), []
        q[-1], v[-2] = 0.3, 1.0  # so that one end comes down first, and the chain rotates
        for _ in range(round(DURATION / STEP)):
            if pairs:
                contacts, touches = problem(robot, q, v, tau, STEP, pairs)
                push = contact_rows(robot, q, touches).T @ solve(contacts).impulses
                v = unimpeded(robot, q, v, tau, STEP) + mass_matrix_solve(robot, q, push)
            else:
                v = v + STEP * free(q, v, tau)[0]
            q = robot.integrate(q, v, STEP)
            motion.append(q)
        motions.append(motion)
    return float(np.abs(np.array(motions[1:]) - motions[0]).max())


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    cases, rows = FIGURES[name], list[list[Any]]()
    for bodies in (*BODIES, *(LONGER if full() else ())):
        progress(f"{bodies} bodies: {', '.join(PROGRAMS)}")
        rows += [measured(bodies, ends) for ends in cases]
    head = ["bodies", "contacts", *(f"{method}, µs" for method in PROGRAMS), "solve, µs"]
    head += [f"{method} and solve, µs" for method in PROGRAMS]
    head += [*(f"{method}, operations" for method in PROGRAMS), "ABA, depth", "DCA, depth"]
    note(
        "Times are medians of one state a call, all compiled, on one thread: of setting up a step's contact problem, "
        "of its solution for frictionless contacts, which is the same in all ways, and of both together."
    )
    save_table(folder / f"{name}.csv", head, rows)
    table = np.array(rows, dtype=float)
    np.savez(folder / f"{name}.npz", table=table, head=np.array(head))
    for contacts in range(len(cases)):
        _judge_growth(contacts, table[table[:, 1] == contacts])
    if len(cases) > 1:
        _judge_contacts(table)
    _judge_crossing(cases[-1])
    difference = largest_difference(cases[-1])
    outcome = "agrees" if difference < 1e-9 else "differs: rounding is magnified by impacts"
    verdict(f"largest difference of the three motions of {FALLING} bodies", "none", f"{difference:.1e}", outcome)
    draw_times(folder / f"{name}.png", table)


def measured(bodies: int, ends: str) -> list[Any]:
    """A row of the table, for a chain whose ends, so many of them, may touch the ground."""
    robot = chain(bodies)
    (q, v), tau = robot.random_state(0), np.zeros(robot.nv)
    touching = [{"P": "rod0", "Q": f"rod{bodies - 1}"}[end] for end in ends]
    functions = ways(robot, touching)
    calls: list[Callable[[], Any]] = [partial(function, q, v, tau) for function in functions.values()]
    if ends:
        normals = np.tile([0.0, 0.1, 0.0, 0.0, 0.0, 1.0], len(ends))
        A = functions["ABA"](q, v, tau)[1] + 1e-9 * np.eye(6 * len(ends)).ravel()  # regular, of a single body too
        calls.append(partial(compile(solving_program(len(ends))), A, normals, -np.ones(len(ends))))
    times = [1e6 * seconds for seconds in median_times(calls, SECONDS)]
    setup, solving = times[: len(functions)], times[-1] if ends else 0.0
    programs = [function.program for function in functions.values()]
    counts, depths = [p.operations().total() for p in programs], [p.depth() for p in programs[1:]]
    return [bodies, len(ends), *setup, solving, *(time + solving for time in setup), *counts, *depths]


_SETUP, _TOGETHER, _OPERATIONS, _DEPTH = 2, 6, 9, 12  # first columns


def _judge_growth(contacts: int, rows: np.ndarray) -> None:
    """Prints how cost grows with the number of bodies, beside the paper's statement."""
    n, end, what = rows[:, 0], rows[-1], f"{contacts} contacts"
    for i, (method, paper) in enumerate(PAPER.items()):
        time, count = (growth(n, rows[:, first + i]) for first in (_SETUP, _OPERATIONS))
        last = float(np.log2(rows[-1, _OPERATIONS + i] / rows[-2, _OPERATIONS + i]))
        outcome = f"differs: between n² for H and n³ for its factors still; the last doubling has {last:.2f}"
        outcome = "agrees" if abs(count - paper) < 0.25 else outcome
        measured = f"{count:.2f} in operations, {time:.2f} in time"
        verdict(f"{what}: power of growth of {method}, to {n[-1]:.0f} bodies", str(paper), measured, outcome)
    ratio = end[_SETUP + 2] / end[_SETUP + 1]
    outcome = "agrees" if ratio > 1.0 else "differs: faster here"
    verdict(f"{what}: time of DCA over ABA, {n[-1]:.0f} bodies", "above 1", f"{ratio:.1f}", outcome)
    doubled = rows[-1, _DEPTH:] - rows[-2, _DEPTH:]
    measured = (
        f"depth {end[_DEPTH + 1]:.0f}, of ABA {end[_DEPTH]:.0f}; doubling adds {doubled[1]:.0f} and {doubled[0]:.0f}"
    )
    outcome = "agrees" if doubled[1] < 0.5 * doubled[0] else "differs: chains are too short to show it"
    verdict(f"{what}: DCA on n processors, {n[-1]:.0f} bodies", "O(log n)", measured, outcome)


def _judge_contacts(table: np.ndarray) -> None:
    """Prints how much contacts add to the cost of each further body, beside the paper's statement."""
    cases = [table[table[:, 1] == contacts] for contacts in range(3)]
    slopes = np.array([[case[-1, _OPERATIONS + i] - case[-2, _OPERATIONS + i] for case in cases] for i in range(3)])
    for method, (none, one, two) in zip(PROGRAMS, slopes, strict=True):
        measured = f"{one / none:.2f} with one, {two / none:.2f} with two"
        if method == "traditional":
            paper, agrees = "parallel, shifted by the solution", two / none < 1.5
        else:
            paper, agrees = "parallel with one, steeper with two", one / none < 1.05 and two > 1.01 * one
        outcome = "agrees" if agrees else "differs: its handles cost little beside the rest"
        verdict(f"{method}: operations per further body over those without contact", paper, measured, outcome)
    shares = [100.0 * case[-1, 5] / case[-1, _TOGETHER + 1] for case in cases[1:]]
    measured = f"{shares[0]:.0f} and {shares[1]:.0f} % of a step by ABA with {table[-1, 0]:.0f} bodies"
    verdict("solution for one and two contacts", "the same in all ways", measured, "agrees")


def _judge_crossing(ends: str) -> None:
    """Prints from how many freedoms on recursion costs less than H and its factors. [002, §3.4]"""
    fewer, faster = list[int](), list[int]()
    progress(f"{', '.join(map(str, NEAR))} bodies: where recursion becomes cheaper")
    for bodies in NEAR:
        row, freedoms = measured(bodies, ends), bodies + 2
        fewer += [freedoms] if row[_OPERATIONS + 1] < row[_OPERATIONS] else []
        faster += [freedoms] if row[_SETUP + 1] < row[_SETUP] else []
    tried = [bodies + 2 for bodies in NEAR]
    first = _from(fewer, tried)
    ours = f"fewer operations from n = {first}, less time from n = {_from(faster, tried)}"
    outcome = "better: already on shorter chains" if first <= CROSSING else "agrees"
    outcome = outcome if first <= CROSSING + 2 else "differs: on longer chains only"
    what = f"freedoms n from which ABA costs less than H and its factors, {len(ends)} contacts"
    verdict(what, f"n > {CROSSING}", ours, outcome)


def _from(holds: Sequence[int], tried: Sequence[int]) -> int:
    """The first tried number from which on `holds` is true for all."""
    missing = [n for n in tried if n not in holds]
    return min((n for n in holds if n > max(missing, default=0)), default=max(tried) + 1)


def draw_times(path: Path, table: np.ndarray) -> None:
    """Draws a panel for each number of contacts: set-up alone, set-up and solution, and the paper's powers."""
    counts = sorted({*table[:, 1].astype(int).tolist()})

    def draw(plt: Any) -> None:
        _, panels = plt.subplots(1, len(counts), figsize=(6 * len(counts), 5), squeeze=False)
        for panel, contacts in zip(panels[0], counts, strict=True):
            rows = table[table[:, 1] == contacts]
            for i, method in enumerate(PROGRAMS):
                panel.loglog(rows[:, 0], rows[:, _SETUP + i], "o-", color=f"C{i}", label=method)
                if contacts:
                    label = f"{method} and solution"
                    panel.loglog(rows[:, 0], rows[:, _TOGETHER + i], ":", color=f"C{i}", label=label)
                ends = rows[-2:, 0]
                power = 1.3 * rows[-1, _SETUP + i] * (ends / ends[-1]) ** PAPER[method]
                panel.loglog(ends, power, "k--", linewidth=0.8)
            panel.plot([], [], "k--", linewidth=0.8, label="paper's powers: 3, 1, 1")
            panel.set_title(f"{contacts} contacts")
            panel.set_xlabel("bodies")
            panel.set_ylabel("time of one step, µs")
            panel.legend(fontsize="small")

    with_pyplot(path, draw)


def growth(bodies: np.ndarray, values: np.ndarray) -> float:
    """The exponent with which values grow with the number of bodies, fitted to the longest chains."""
    return float(np.polyfit(np.log(bodies[-LONGEST:]), np.log(values[-LONGEST:]), 1)[0])
