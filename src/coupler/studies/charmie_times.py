"""How long kinematics and dynamics of 1,000 steps take, of arms and of CHARMIE [004, Table 5].

Kinematics are the poses of all bodies, from positions of actuators: CHARMIE's loops are closed first. Dynamics are
besides that the forces and torques in all joints and loops. A time is

- "1,000 at once": of one call for all steps, in SIMD lanes, on one thread, but for closing CHARMIE's loops, which all
  processors share;
- "one a call": of 1,000 calls in Python for one step each;
- "from scratch": of a new process, from importing coupler to the result of 1,000 steps, with nothing in the cache of
  compiled code; "again" with what the first run left there;
- "recursion": of the paper's own recursion in NumPy, on this machine, one step after the other;
- "drawn": of the same, one a call, with each step drawn in 3-D by matplotlib.

The recursion and drawing take long: they are timed for some steps, and scaled to 1,000.

The paper's times include its initialisation, and are from another machine. Its arms are not described: ours are the
first joints of CHARMIE's left arm, fixed to the ground.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.joint_forces import joint_forces_program
from coupler.algorithms.kinematics import body_poses_program
from coupler.graph import compile
from coupler.model import ModelError, Revolute, Robot, RobotBuilder
from coupler.robots._legged import inertia_matrix
from coupler.robots.charmie import ARM, WEIGHTS
from coupler.studies.charmie_chain import Chain, Link, charmie_chain
from coupler.studies.charmie_loops import forces_of
from coupler.studies.charmie_motion import RATES, actuator_motion, by_body, paper_motion, robot_by_actuators
from coupler.studies.charmie_pictures import Stage
from coupler.studies.report import best_times, note, save_table, verdict, with_pyplot

STEPS = 1000
ARMS = (2, 4, 6)
LONG = (12, 24, 48)  # joints of longer arms, which repeat those of CHARMIE's
RECURSION, FRAMES = 20, 10  # steps of the recursion, and frames, from which the time of 1,000 follows
SECONDS = 0.5  # for each time, while they take turns
PAPER = {  # s: kinematics, dynamics, both with graphics
    "2-DOF Arm": (0.211, 0.482, 35.810, 36.140),
    "4-DOF Arm": (0.269, 0.715, 36.955, 37.838),
    "6-DOF Arm": (0.325, 0.947, 37.672, 38.080),
    "CHARMIE": (2.409, 7.856, 328.254, 334.150),
}
WANTED = 10e-3  # s, of CHARMIE's dynamics
WAYS = ("1,000 at once", "one a call", "recursion", "drawn")

Calls = dict[str, Callable[[], Any]]


def arm(joints: int) -> tuple[Robot, Chain]:
    """The first joints of CHARMIE's arm on the ground, over and over: for coupler, and for the paper's recursion."""
    b, links, carrier = RobotBuilder(f"arm_{joints}"), {}, "ground"
    for i in range(joints):
        number = list(ARM)[i % len(ARM)]
        (_, axis, _, at), (mass, centre, moments) = ARM[number], WEIGHTS[number]
        name, place = f"link_{i + 1}", np.array(at) / 1e3
        b.body(name, mass, np.array(centre) / 1e3, inertia_matrix(moments))
        b.joint(name, Revolute(axis=axis), carrier, name, place, actuated=True)
        before = "" if carrier == "ground" else carrier
        JO = "xyz"[axis.index(1)]
        links[name] = Link("R", JO, before, place, mass, np.array(centre) / 1e3, inertia_matrix(moments))
        carrier = name
    return b.build(), Chain(links)


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    models = {f"{joints}-DOF Arm": _arm_calls(joints) for joints in ARMS} | {"CHARMIE": _charmie_calls()}
    print("compiled", flush=True)
    rows: list[list[Any]] = []
    for (model, calls), paper in zip(models.items(), PAPER.values(), strict=True):
        times: dict[str, float] = {}
        for way in WAYS:  # quick ones by themselves, so that they are called often
            of_way = {name: call for name, call in calls.items() if name.endswith(way)}
            times |= dict(zip(of_way, best_times(list(of_way.values()), SECONDS), strict=True))
        for kind, without, drawn in (("kinematics", paper[0], paper[2]), ("dynamics", paper[1], paper[3])):
            ways = (f"{kind}, {way}" for way in WAYS)
            rows.append([model, kind, *(_of_all(way, times.get(way)) for way in ways), without, drawn])
        print(f"{model} timed", flush=True)
    note(
        "Times are of 1,000 steps, best of many: closing loops and placing all bodies, and for dynamics the forces in "
        "all joints as well; in one call for all steps, in one call a step, by the paper's recursion in NumPy, and "
        "with drawing by matplotlib. The paper's are of Python on an AMD Ryzen 5 5600X, initialisation included."
    )
    head = ["s of 1,000 steps", "", *WAYS, "paper", "paper, drawn"]
    save_table(folder / f"{name}.csv", head, rows)
    for model, kind, once, *_, drawn, without, with_graphics in rows:
        outcome = f"better: {without / once:,.0f} times as fast"
        verdict(f"{model}, {kind}, all steps in one call", f"{without:g} s", f"{once:.2g} s", outcome)
        if drawn:
            outcome = "better" if drawn < with_graphics else "differs: drawing is slower here"
            verdict(f"{model}, {kind} with graphics", f"{with_graphics:g} s", f"{drawn:.3g} s", outcome)
    dynamics, one_a_call = rows[-1][2:4]
    outcome = "better: at once within 10 ms" if dynamics <= WANTED else "differs: more than the 10 ms that are wanted"
    measured = f"{1e3 * dynamics:.2g} ms at once, {1e3 * one_a_call:.2g} ms one step a call"
    verdict("CHARMIE, dynamics", f"{rows[-1][-2]:g} s", measured, outcome)
    first, again = from_scratch()
    measured = f"{first:.2g} s from scratch, {again:.2g} s again"
    outcome = "better" if first < rows[-1][-2] else "differs: compiling takes longer"
    verdict("CHARMIE, dynamics with initialisation", f"{rows[-1][-2]:g} s", measured, outcome)
    _linear(name, folder, rows)


def from_scratch() -> tuple[float, float]:
    """Seconds of new processes for CHARMIE's dynamics of 1,000 steps: with an empty cache, and with what that left.

    As in `best_times`, the shorter of the time that passes and CPU time, which some systems do not report.
    """
    script = "from coupler.studies.charmie_times import whole; whole()"
    with tempfile.TemporaryDirectory() as cache:
        times = []
        for _ in range(2):
            start, before = time.perf_counter(), os.times()
            subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "COUPLER_CACHE": cache})
            passed, after = time.perf_counter() - start, os.times()
            processor = after.children_user + after.children_system - before.children_user - before.children_system
            times.append(min(passed, processor or passed))
    return times[0], times[1]


def whole() -> None:
    """Computes all of CHARMIE's dynamics of 1,000 steps once."""
    _dynamics(robot_by_actuators(), STEPS)


def _dynamics(robot: Robot, steps: int) -> tuple[np.ndarray, np.ndarray]:
    motion = paper_motion(steps)
    poses, forces = compile(body_poses_program(robot)), compile(joint_forces_program(robot))
    return poses(motion.q), forces(motion.q, motion.v, motion.a)


def _arm_calls(joints: int) -> Calls:
    robot, chain = arm(joints)
    t = np.linspace(0.0, 2.5, STEPS)
    a = np.full((STEPS, joints), -RATES["turns"])
    v, q = a * t[:, None], 0.5 * a * t[:, None] ** 2
    states = [
        [dict(zip(chain.links, map(float, x[k]), strict=True)) for x in (q, v, a)]
        for k in np.linspace(0, STEPS - 1, RECURSION).astype(int)
    ]
    return _calls(robot, chain, lambda: q, v, a, states, lambda state: chain.loads(*state))


def _charmie_calls() -> Calls:
    robot, chain = robot_by_actuators(), charmie_chain()
    _, positions, v, a = actuator_motion(STEPS)
    q = robot.pack_q(positions)
    states = [by_body(robot, q[k], v[k], a[k]) for k in np.linspace(0, STEPS - 1, RECURSION).astype(int)]
    return _calls(robot, chain, lambda: robot.pack_q(positions), v, a, states, lambda state: forces_of(chain, *state))


def _calls(
    robot: Robot,
    chain: Chain,
    closed: Callable[[], np.ndarray],
    v: np.ndarray,
    a: np.ndarray,
    states: list[list[dict[str, float]]],
    recursion: Callable[[Any], Any],
) -> Calls:
    """The calls that are timed for a model; slow ones are made for a few steps only."""
    poses, forces = compile(body_poses_program(robot)), compile(joint_forces_program(robot))
    q, stage = closed(), _stage(robot)
    picked = np.linspace(0, STEPS - 1, FRAMES).astype(int)

    def kinematics() -> Any:
        return poses(closed())

    def dynamics() -> Any:
        q = closed()
        return poses(q), forces(q, v, a)

    def one_by_one(whole: bool) -> None:
        for k in range(STEPS):
            closing = robot.close(q[k]) if robot.nq > robot.nv else q[k]
            poses(closing)
            if whole:
                forces(closing, v[k], a[k])

    def recursions(whole: bool) -> None:
        for state in states:
            chain.placed(state[0])
            if whole:
                recursion(state)

    def drawn(whole: bool) -> None:
        for k in picked:
            if whole:
                forces(q[k], v[k], a[k])
            stage.show(q[k])

    calls: Calls = {"kinematics, 1,000 at once": kinematics, "dynamics, 1,000 at once": dynamics}
    for kind, whole in (("kinematics", False), ("dynamics", True)):
        calls[f"{kind}, one a call"] = partial(one_by_one, whole)
        calls[f"{kind}, recursion"] = partial(recursions, whole)
        if stage is not None:
            calls[f"{kind}, drawn"] = partial(drawn, whole)
    return calls


def _stage(robot: Robot) -> Any:
    """The stage that draws a robot; None without matplotlib."""
    try:
        return Stage(robot)
    except ModelError as error:
        print(error)
        return None


def _of_all(way: str, seconds: float | None) -> float | str:
    """The time of 1,000 steps, from that of those which were timed; empty where none was."""
    if seconds is None:
        return ""
    return seconds * (STEPS / RECURSION if "recursion" in way else STEPS / FRAMES if "drawn" in way else 1.0)


def _linear(name: str, folder: Path, rows_of_models: list[list[Any]]) -> None:
    """Saves times against the number of bodies of arms, and draws them beside the times of all models."""
    counts, calls = [*ARMS, *LONG], []
    for joints in counts:
        robot, _ = arm(joints)
        poses, forces = compile(body_poses_program(robot)), compile(joint_forces_program(robot))
        q, v, a = np.random.default_rng(0).normal(size=(3, STEPS, joints))
        calls += [partial(poses, q), partial(forces, q, v, a)]
    times = 1e3 * np.array(best_times(calls, SECONDS)).reshape(-1, 2)
    rows = [[n, *both, *(1e3 * both / n)] for n, both in zip(counts, times, strict=True)]
    head = ["joints", "kinematics, ms", "forces, ms", "kinematics, µs a joint", "forces, µs a joint"]
    save_table(folder / f"{name}-linear.csv", head, rows)
    for i, kind in enumerate(("kinematics", "forces")):
        power = np.polyfit(np.log(counts[2:]), np.log(times[2:, i]), 1)[0]
        outcome = "agrees" if 0.7 < power < 1.3 else "differs"
        verdict(f"{kind}, from 6 to 48 joints", "linear in bodies", f"time grows with the power {power:.2f}", outcome)

    def draw(plt: Any) -> None:
        _, (left, right) = plt.subplots(1, 2, figsize=(14, 6))
        _draw_models(left, rows_of_models)
        right.loglog(counts, times[:, 0], "o-", label="kinematics")
        right.loglog(counts, times[:, 1], "o-", label="forces in all joints")
        right.loglog(counts, times[-1, 1] * np.array(counts) / counts[-1], "k:", label="paper: linear")
        right.set_xticks(counts, map(str, counts))
        right.minorticks_off()
        right.set(xlabel="joints", ylabel="time of 1,000 states at once, ms")
        right.legend()

    with_pyplot(folder / f"{name}.png", draw)


def _draw_models(axes: Any, rows: list[list[Any]]) -> None:
    """Times of all models, with the paper's as black marks: without graphics, and with them."""
    labels, columns = [f"{model},\n{kind}" for model, kind, *_ in rows], dict(enumerate(WAYS, 2))
    width = 0.8 / len(columns)
    for i, (column, way) in enumerate(columns.items()):
        timed = [(k, row[column]) for k, row in enumerate(rows) if row[column] != ""]
        axes.bar([k + width * i for k, _ in timed], [seconds for _, seconds in timed], width, label=way)
    places = np.arange(len(rows)) + 1.5 * width
    axes.plot(places, [row[-2] for row in rows], "k_", markersize=30, label="paper")
    axes.plot(places, [row[-1] for row in rows], "k_", markersize=30, markeredgewidth=3, label="paper, drawn")
    axes.set_yscale("log")
    axes.set_ylim(top=1e5)
    axes.set_xticks(places, labels, rotation=60, fontsize="small")
    axes.set_ylabel("time of 1,000 steps, s")
    axes.legend(fontsize="small", ncols=2, loc="upper left")
