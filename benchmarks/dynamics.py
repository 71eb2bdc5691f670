"""Forward and inverse dynamics side by side with Pinocchio, in one process, as ratios.

    pip install pin scipy
    python benchmarks/dynamics.py

(a) trees: a quadruped and a humanoid without rotors, against `aba` and `rnea`; batches against `abaInParallel` and
    `rneaInParallel`, which loop in C++.
(b) a geared rotor at every joint, against the best exact way there: `crba` and `nonLinearEffects` of all links and
    rotors, projected with numpy on the independent joints, and a Cholesky solution. (Its mimic joints would be exact,
    too, but have no `aba`, and their `crba` takes longer than the larger one with its projection.)
(c) chains of planar four-bars, against `constraintDynamics`. It needs mu > 0, for a planar loop has a row too many;
    one proximal step is timed, which leaves an error of about mu, and ten are checked. (`lcaba` takes longer.)

Pinocchio is given positions and velocities of all joints in its own order, ready made. It has no batch entry for (b)
and (c): a batch is a Python loop there, and the cost of the call is told apart below. Its wheel is built for any
x86-64 processor. Every pair is checked to agree before it is timed. Times are the best of many, taken in turns, and
all pairs are gone through several times, because machines are shared and noisy.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as many threads as everything else

import numpy as np

import coupler
from common.pinocchio_tree import PinocchioTree
from common.timing import best_times
from coupler import Robot, RobotBuilder
from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import Builder, Program, View, fields, symbol
from coupler.graph import compile as compile_program
from coupler.graph.elementary import DOUBLE, sincos
from coupler.graph.llvm import chosen
from coupler.graph.measure import operations
from coupler.graph.rewrite import rewrite
from coupler.model import Revolute, Spherical

DRAWN, STATES = 64, 4096  # random states that are checked, and how many a batch has: copies of them
MU = 1e-10
PASSES = 4  # how often all pairs are gone through

Call = Callable[[], Any]


@dataclass(frozen=True)
class Contest:
    """A quantity of a robot that both libraries compute; targets are the least ratios wanted, 0 for none."""

    robot: Robot
    quantity: str
    program: Program
    ours: Callable[..., np.ndarray]  # of the robot and the state
    state: tuple[np.ndarray, ...]  # what ours takes, for a batch
    one: Call
    batch: dict[int, Call]  # by the number of threads
    targets: tuple[float, float]  # one call, batch


@dataclass
class Measured:
    """Seconds: for one call, ours, theirs and our compiled program's; for a state of a batch, by threads."""

    one: tuple[float, float, float]
    batch: dict[int, tuple[float, float]]


# Contests


def tree_contests(pin: Any, robot: Robot) -> list[Contest]:
    """(a) Forward and inverse dynamics of a tree."""
    peer, (q, v, x) = PinocchioTree(pin, robot), random_states(robot)
    model, data, pool = peer.model, peer.data, pin.ModelPool(peer.model, 2)
    whole = peer.positions(q), peer.velocities(q, v), peer.spread(x)
    columns = [np.asfortranarray(part.T) for part in whole]
    out = np.zeros((model.nv, STATES), order="F")
    first = [part[0].copy() for part in whole]
    contests = []
    for quantity, make, ours, one, batch, targets in (
        ("forward", forward_dynamics_program, coupler.forward_dynamics, pin.aba, pin.abaInParallel, (1.5, 25)),
        ("inverse", inverse_dynamics_program, coupler.inverse_dynamics, pin.rnea, pin.rneaInParallel, (1.5, 15)),
    ):
        theirs = np.array([one(model, data, *(part[i] for part in whole)) for i in range(DRAWN)])
        check(robot, quantity, ours(robot, q, v, x)[:DRAWN], peer.gathered(theirs), 1e-9)
        batch(1, pool, *columns, out)
        check(robot, f"{quantity}, batch", out.T[:DRAWN], theirs, 1e-12)
        calls = {n: lambda n=n, batch=batch: batch(n, pool, *columns, out) for n in (1, 2)}
        single = lambda one=one: one(model, data, *first)  # noqa: E731
        contests.append(Contest(robot, quantity, make(robot), ours, (q, v, x), single, calls, targets))
    return contests


def geared_contest(pin: Any, robot: Robot) -> Contest:
    """(b) Forward dynamics with rotors: H = Gᵀ H_tree G, c = Gᵀ c_tree."""
    peer, (q, v, tau) = PinocchioTree(pin, robot), random_states(robot)
    from scipy.linalg.lapack import dposv  # type: ignore  # the quickest Cholesky solution for a single matrix

    model, data, crba, nle = peer.model, peer.data, pin.crba, pin.nonLinearEffects
    G = peer.motion_matrix()
    p, w = peer.positions(q), peer.velocities(q, v)
    n, m = G.shape
    H, c = np.zeros((STATES, n, n)), np.zeros((STATES, n))
    first = p[0].copy(), w[0].copy(), tau[0].copy()

    def one(p: np.ndarray, w: np.ndarray, tau: np.ndarray) -> np.ndarray:
        right = tau - nle(model, data, p, w) @ G
        return dposv(G.T @ crba(model, data, p) @ G, right)[1]

    def batch() -> np.ndarray:
        for i in range(STATES):
            H[i] = crba(model, data, p[i])
            c[i] = nle(model, data, p[i], w[i])
        projected = G.T @ (H.reshape(-1, n) @ G).reshape(STATES, n, m)
        return np.linalg.solve(projected, (tau - c @ G)[..., None])[..., 0]

    ours = coupler.forward_dynamics(robot, q, v, tau)
    check(robot, "forward, batch", ours, batch(), 1e-9)
    check(robot, "forward", ours[0], one(*first), 1e-9)
    program = forward_dynamics_program(robot)
    state, calls = (q, v, tau), {1: batch}
    return Contest(robot, "forward", program, coupler.forward_dynamics, state, lambda: one(*first), calls, (0, 30))


def loop_contest(pin: Any, robot: Robot) -> Contest:
    """(c) Forward dynamics with loops that are held together by points."""
    peer, (q, v, tau) = PinocchioTree(pin, robot), random_states(robot)
    loops, datas = peer.point_constraints()
    pin.initConstraintDynamics(peer.model, peer.data, loops, datas)
    whole = peer.positions(q), peer.velocities(q, v), peer.spread(tau)
    first = [part[0].copy() for part in whole]
    model, data, dynamics = peer.model, peer.data, pin.constraintDynamics
    quick, sure = pin.ProximalSettings(1e-14, MU, 1), pin.ProximalSettings(1e-14, MU, 10)

    def batch(settings: Any = quick, states: int = STATES) -> np.ndarray:
        out = np.empty((states, model.nv))
        for i, (p, w, x) in enumerate(zip(*(part[:states] for part in whole), strict=True)):
            out[i] = dynamics(model, data, p, w, x, loops, datas, settings)
        return out

    def one() -> np.ndarray:
        return dynamics(model, data, *first, loops, datas, quick)

    ours = coupler.forward_dynamics(robot, q, v, tau)[:DRAWN]
    check(robot, "forward, ten steps", ours, peer.gathered(batch(sure, DRAWN)), 1e-9)
    away = check(robot, "forward, one step", ours, peer.gathered(batch(quick, DRAWN)), 1e-5)
    print(f"{robot.name}: after one step with mu = {MU:g} Pinocchio is {away:.0e} away, relative to the largest entry")
    program = forward_dynamics_program(robot)
    return Contest(robot, "forward", program, coupler.forward_dynamics, (q, v, tau), one, {1: batch}, (2, 30))


# Robots and states


def without_rotors(robot: Robot) -> Robot:
    """The links of a geared robot alone."""
    b = RobotBuilder(f"{robot.name}_no_rotors", robot.gravity)
    for body in robot.bodies.values():
        if "rotor" not in body.name:
            b.body(body.name, body.mass, body.centre, body.inertia, ideal=body.ideal)
    for joint in robot.joints:
        if "rotor" not in joint.child:
            b.joint(joint.name, joint.kind, joint.parent, joint.child, joint.placement)
    return b.build()


def four_bars(count: int) -> Robot:
    """Planar four-bars, each on the rocker of the one before; the crank can make full turns."""
    rng, b, on, turn = np.random.default_rng(1), RobotBuilder(f"four_bars_{count}"), "ground", Revolute(axis=(0, 1, 0))
    for i in range(count):
        for part in ("crank", "coupler", "rocker"):
            b.body(f"{part}{i}", rng.uniform(0.5, 1.0), rng.uniform(-0.2, 0.2, 3), rng.uniform(0.01, 0.015, 3))
        b.joint(f"shoulder{i}", turn, on, f"crank{i}", at=(0.1, 0, 0), independent=True)
        b.joint(f"elbow{i}", turn, f"crank{i}", f"coupler{i}", at=(0.2, 0, 0))
        b.joint(f"pivot{i}", turn, on, f"rocker{i}", at=(0.6, 0, 0))
        b.loop(f"tip{i}", Spherical(), f"coupler{i}", f"rocker{i}", at=(0.5, 0, 0), meets=(0.4, 0, 0))
        on = f"rocker{i}"
    return b.build()


def random_states(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and as many numbers as v, for a batch."""
    rng = np.random.default_rng(0)
    drawn = [(*robot.random_state(rng), rng.normal(size=robot.nv)) for _ in range(DRAWN)]
    q, v, x = (np.tile(np.array(part), (STATES // DRAWN, 1)) for part in zip(*drawn, strict=True))
    return q, v, x


def check(robot: Robot, what: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> float:
    """The difference of two results, relative to the largest entry of a state; too large a one ends the benchmark."""
    away = float((np.abs(ours - theirs).max(axis=-1) / np.abs(theirs).max(axis=-1)).max())
    if not away < tolerance:
        sys.exit(f"{robot.name}, {what}: the two differ by {away:.2g}, more than {tolerance:g}; nothing is timed")
    return away


# Times


def measure(contest: Contest) -> Measured:
    batch: dict[int, tuple[float, float]] = {}
    for threads, theirs in contest.batch.items():
        os.environ["COUPLER_THREADS"] = str(threads)
        fresh = contest.robot.with_gravity(contest.robot.gravity)  # has nothing compiled yet
        mine, other = best_times(lambda fresh=fresh: contest.ours(fresh, *contest.state), theirs, budget=0.6)
        batch[threads] = mine / STATES, other / STATES
    first = [part[0].copy() for part in contest.state]
    bare = compile_program(contest.program)
    bare(*first)
    calls = (lambda: contest.ours(contest.robot, *first), contest.one, lambda: bare.one(*first))
    mine, other, alone = best_times(*calls, budget=0.4)
    return Measured((mine, other, alone), batch)


def quickest(runs: Iterable[Measured]) -> Measured:
    """The best of several measurements of a contest."""
    runs = list(runs)
    one = np.min([run.one for run in runs], axis=0).tolist()
    batch = {n: np.min([run.batch[n] for run in runs], axis=0).tolist() for n in runs[0].batch}
    return Measured(tuple(one), batch)


def peaks() -> tuple[float, float]:
    """Fused multiply-adds, and pairs of a load and a store, of a full register that one core does in a second."""
    b, rows, width, chain = Builder("peaks"), 1000, 12, 20

    def fuse(s: View) -> None:
        x = s.x
        for _ in range(chain):
            x = x * s.x + s.x
        s.y = x

    starts = [0] * (rows // chain)
    b.loop(fuse, s=fields(x=b.input("x", width).at(starts, width), y=b.output("y", width).at(starts, width)))
    fused = compile_program(b.build())
    b, size = Builder("copies"), 24
    x, y, memory = b.input("x", size), b.output("y", size), b.scratch("memory", 2 * size)

    def copy(s: View) -> None:
        s.to = s.of

    b.loop(copy, s=fields(of=x.at(0, size), to=memory.at(0, size)))
    there, back = np.arange(rows) % 2 * size, (1 - np.arange(rows) % 2) * size
    b.loop(copy, s=fields(of=memory.at(there, size), to=memory.at(back, size)))
    b.loop(copy, s=fields(of=memory.at(0, size), to=y.at(0, size)))
    copied, states = compile_program(b.build()), 32 * chosen().lanes(np.dtype(float))
    some, more = np.full((states, width), 0.1), np.full((states, size), 0.1)
    first, second = best_times(lambda: fused(some), lambda: copied(more), budget=1.0)
    registers = states / chosen().lanes(np.dtype(float))
    return rows * width * registers / first, rows * size * registers / second


def empty_call(contest: Contest) -> float:
    """Seconds for a call of a program that has the inputs and outputs of the contest's, and next to nothing to do."""
    b, program = Builder("nothing"), contest.program
    inputs = {x.name: b.input(x.name, x.size).at(0, x.size) for x in program.inputs}
    outputs = {x.name: b.output(x.name, x.size).at(0, x.size) for x in program.outputs}

    def kernel(s: View) -> None:
        for x in program.outputs:
            setattr(s, x.name, s.q[: x.size])

    b.loop(kernel, s=fields(**inputs, **outputs))
    run, first = compile_program(b.build()), [part[0].copy() for part in contest.state]
    run(*first)
    return best_times(lambda: run.one(*first), budget=0.3)[0]


# What is computed


def work(program: Program) -> Counter[str]:
    """Operations as they are compiled for one state, sines and cosines spelled out, and loads and stores."""
    count, pair = Counter[str](), operations(sincos(symbol("x"), DOUBLE))
    for case in program.cases():
        own = operations(rewrite(case.kernel.outputs, ["share_reciprocals", "fuse_multiply_add"]))
        pairs = max(own.pop("sin", 0), own.pop("cos", 0))
        for op, n in pair.items():
            own[op] += n * pairs
        own["sincos"] += pair.total() * pairs
        own["load"] += len(case.kernel.loads)
        own["store"] += len(case.kernel.stores)
        for op, n in own.items():
            count[op] += n * case.rows
    return count


def print_work(contests: list[Contest], times: list[Measured]) -> None:
    """Prints operations, loads and stores, the least time that the units for each need, and what limits the program."""
    fused, copied = peaks()
    lanes, shares = chosen().lanes(np.dtype(float)), []
    told(
        f"What coupler computes for a state of a batch, on one thread. One core of this machine was seen to do "
        f"{fused / 1e9:.2f} billion fused multiply-adds of {lanes} lanes a second ({2 * lanes * fused / 1e9:.0f} "
        f"GFlop/s), and {copied / 1e9:.2f} billion loads with stores."
    )
    print(f"\n{'':33}{'operations':^24}{'':23}{'least µs for':^18}{'measured':>10}")
    print(f"{'robot':24}{'quantity':9}{'traced':>8}{'compiled':>9}{'sincos':>7}", end="")
    print(f"{'loads':>7}{'stores':>7}{'GFlop/s':>9}{'products':>9}{'stores':>9}{'µs':>10}")
    for contest, measured in zip(contests, times, strict=True):
        count, seconds = work(contest.program), measured.batch[1][0]
        total = sum(n for op, n in count.items() if op not in ("load", "store", "sincos"))
        products, stores = (count["mul"] + count["fma"]) / (lanes * fused), count["store"] / (lanes * copied)
        shares.append(products / seconds)
        print(f"{contest.robot.name:24}{contest.quantity:9}{contest.program.operations().total():>8}{total:>9}", end="")
        print(f"{count['sincos'] / total:>7.0%}{count['load']:>7}{count['store']:>7}", end="")
        print(f"{(total + count['fma']) / seconds / 1e9:>9.1f}{products * 1e6:>9.3f}{stores * 1e6:>9.3f}", end="")
        print(f"{seconds * 1e6:>10.3f}")
    told(
        f"In a batch the multipliers are busy for {min(shares):.0%} to {max(shares):.0%} of the time. The rest is "
        "waiting for what one operation needs from another, registers that are spilled to memory (the compiler's own "
        "loads and stores, which are not counted here), what one pass hands to the next through memory that is larger "
        "than the first cache, and copying states into lanes and out of them. An addition that is not fused is free "
        "where a processor has units of its own for it. A sine and cosine is some forty operations, which the trace "
        "counts as two."
    )


def print_calls(contests: list[Contest], times: list[Measured]) -> None:
    told(
        "Where the time of one call goes, µs: Python around the compiled program, the way into it (the call of a "
        "program that does nothing but check that numbers are finite), and the program itself."
    )
    print(f"\n{'robot':24}{'quantity':9}{'call':>8}{'around':>9}{'way in':>9}{'program':>9}{'Pinocchio':>11}")
    for contest, measured in zip(contests, times, strict=True):
        (mine, theirs, alone), entry = measured.one, empty_call(contest)
        parts = (mine, mine - alone, entry, alone - entry, theirs)
        numbers = "".join(f"{x * 1e6:>{w}.2f}" for x, w in zip(parts, (8, 9, 9, 9, 11), strict=True))
        print(f"{contest.robot.name:24}{contest.quantity:9}{numbers}")


# Telling


def print_table(contests: list[Contest], times: list[Measured]) -> None:
    print(f"\n{'':24}{'':9}{'one call, µs':^36}{'a state of a batch, µs':^38}")
    print(f"{'robot':24}{'quantity':9}{'coupler':>9}{'pinocchio':>10}{'ratio':>8}{'':9}", end="")
    print(f"{'coupler':>9}{'pinocchio':>10}{'ratio':>8}{'':8}{'threads':>8}")
    for contest, measured in zip(contests, times, strict=True):
        for threads, (mine, theirs) in measured.batch.items():
            first = threads == 1
            one = comparison(*measured.one[:2], contest.targets[0], digits=2) if first else " " * 36
            print(f"{contest.robot.name:24}{contest.quantity:9}{one}", end="")
            print(f"{comparison(mine, theirs, contest.targets[1], digits=3)}{threads:>7}")
    print("\n'<-' marks what is below its target, which stands in brackets.")


def comparison(ours: float, theirs: float, target: float, digits: int) -> str:
    ratio = theirs / ours
    wanted = f" ({target:g})" if target else ""
    verdict = "<-" if ratio < target else ""
    return f"{ours * 1e6:>9.{digits}f}{theirs * 1e6:>10.2f}{ratio:>8.1f}{wanted:6}{verdict:3}"


def print_fairness(contests: list[Contest], times: list[Measured]) -> None:
    """Prints the ratios of (b) and (c) that would result if Pinocchio's loop were in C++."""
    pairs = list(zip(contests, times, strict=True))
    call = float(
        np.median([measured.one[1] - measured.batch[1][1] for contest, measured in pairs if 2 in contest.batch])
    )
    ratios = []
    for contest, measured in pairs:
        if 2 not in contest.batch:
            mine, theirs = measured.batch[1]
            calls = 1 if contest.robot.loops else 2
            ratios.append(f"{contest.robot.name} {(theirs - calls * call) / mine:.0f}")
    told(
        f"A call from Python costs Pinocchio about {call * 1e6:.1f} µs (aba and rnea, one call against a state of a "
        f"batch). Without it, the ratios in batch where its loop is Python's would be about {', '.join(ratios)}."
    )


def told(text: str) -> None:
    print("\n" + textwrap.fill(text, 118))


def main() -> None:
    try:
        import pinocchio as pin  # type: ignore
        import scipy  # type: ignore  # noqa: F401
    except ImportError as error:
        print(f"skipped: this compares with Pinocchio, and there is no module {error.name}; pip install pin scipy")
        return
    target = chosen()
    print(f"Pinocchio {pin.__version__}; {target.cpu}, {target.lanes(np.dtype(float))} lanes of float64, ", end="")
    print(f"{os.cpu_count()} processors; batches of {STATES} states\n")
    os.environ["COUPLER_THREADS"] = "1"
    load = coupler.robots.load
    trees = [without_rotors(load("mini_cheetah")), load("mit_humanoid", rotors=False)]
    geared = [load("mini_cheetah"), load("mit_humanoid"), load("geared_chain", links=12, seed=1)]
    contests = [contest for robot in trees for contest in tree_contests(pin, robot)]
    contests += [geared_contest(pin, robot) for robot in geared]
    contests += [loop_contest(pin, four_bars(count)) for count in (1, 4, 8)]
    print(f"All pairs agree to 1e-9 on {DRAWN} random states.")
    runs = [[measure(contest) for contest in contests] for _ in range(PASSES)]
    times = [quickest(own) for own in zip(*runs, strict=True)]
    print_table(contests, times)
    print_fairness(contests, times)
    print_calls(contests, times)
    print_work(contests, times)


if __name__ == "__main__":
    main()
