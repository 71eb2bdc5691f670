"""Drift and penetration of a chain that lands, with Euler's and with a Runge-Kutta method [002, §4.1, Fig. 8].

The paper drops a planar chain of 3 bodies of mass and length 1 whose ends P and Q meet the line y = 0 (here z = 0)
without friction or restitution, so that its centre of mass should not move along x. Bodies are thin rods here.

The cases are (a) Euler's method; and a Runge-Kutta method where (b) overlaps count in full, (c) overlaps count as
touching, and (d) overlaps count up to 1e-5 m. The paper integrates with forward Euler, in coordinates of the first
body. Positions must be updated with the new velocities, though, or gaps close by h |v| too much: "forward" shows that.
"floating" is (a) with the first body moving along straight lines, as simulations integrate free joints. The drift is
then the same: the momentum of a chain depends on angles that change within a step.

The depth of an impact with the Runge-Kutta method does not depend on how overlaps count: the force that stops a body
acts during the whole step, in which it moves on by h |v| / 2. (d) then reduces the depth by 1e-5 m per step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np

from coupler.contact import solve
from coupler.contact.formulations import contact_rows, recursive_problem, unimpeded
from coupler.contact.pairs import pairs_of
from coupler.inertia import mass_matrix_solve
from coupler.kinematics import centre_of_mass
from coupler.model import Free, Planar, Plane, Revolute, Robot, RobotBuilder
from coupler.simulate.simulation import Simulation
from coupler.studies.report import progress, save_table, verdict, with_pyplot

BODIES, MASS, LENGTH = 3, 1.0, 1.0  # number, kg, m
HEIGHT, ANGLE = 2.3, pi / 6  # of the first body's centre, m, and how far the chain points downwards, rad
STEP, DURATION = 1e-3, 3.0  # s
BOUNCE = 0.1  # s after the first impact, during which a bounce would be seen
TOUCHING = 1e-5  # m: an end nearer than this touches the ground; the depth that case (d) allows


def chain(floating: bool = False) -> Robot:
    """Thin rods along x; the first moves in a plane, as in the paper, or is free. P and Q are the ends."""
    b = RobotBuilder(f"falling_chain_of_{BODIES}")
    moment = MASS * LENGTH**2 / 12.0
    for i in range(BODIES):
        b.body(f"rod{i}", MASS, (0.5 * LENGTH * (i > 0), 0, 0), (moment,) * 3)  # about its axis it does not turn
    b.joint("base", Free() if floating else Planar(normal=(0, 1, 0)), "ground", "rod0")
    for i in range(1, BODIES):
        at = (LENGTH if i > 1 else 0.5 * LENGTH, 0, 0)
        b.joint(f"hinge{i}", Revolute(axis=(0, 1, 0)), f"rod{i - 1}", f"rod{i}", at)
    b.contact("P", "rod0", (-0.5 * LENGTH, 0, 0))
    b.contact("Q", f"rod{BODIES - 1}", (LENGTH, 0, 0))
    b.shape("ground", Plane(), friction=0.0)
    return b.build()


def start(robot: Robot) -> np.ndarray:
    """The configuration from which it is dropped; a planar joint's q is (z, x, angle)."""
    turn = [cos(0.5 * ANGLE), 0, sin(0.5 * ANGLE), 0]
    free = isinstance(next(joint.kind for joint in robot.joints if joint.name == "base"), Free)
    return robot.pack_q({"base": [0, 0, HEIGHT, *turn] if free else [HEIGHT, 0, ANGLE]})


@dataclass(frozen=True, eq=False)
class Landing:
    """The result of a run.

    Attributes:
        drift: the shift of the centre of mass along x after each step, m.
        gaps: the heights of P and Q above the ground before each step, m.
    """

    drift: np.ndarray
    gaps: np.ndarray

    @property
    def first(self) -> int:
        """The first step at whose start an end is nearer to the ground than it moves in a step, at about 1 m/s."""
        return int((self.gaps.min(axis=1) < STEP).argmax())

    def numbers(self) -> list[float]:
        """Drift at the end; depth of the first impact, and the median after it, in contact; bounce. All in m."""
        depth, after_impact = np.maximum(-self.gaps, 0.0), slice(self.first, self.first + round(BOUNCE / STEP))
        end = self.gaps[self.first].argmin()
        impact = self.first + int(depth[after_impact, end].argmax())
        touching = depth[impact + 1 :][self.gaps[impact + 1 :] < TOUCHING]
        return [
            abs(self.drift[-1]),
            depth[impact, end],
            float(np.median(touching)) if len(touching) else 0.0,
            self.gaps[after_impact, end].max(),
        ]


def simulated(robot: Robot, integrator: str, penetration: str) -> Landing:
    """Drops the chain, with overlaps that count in one of the paper's ways, and nothing else."""
    options: dict[str, Any] = {"integrator": integrator, "penetration": penetration, "recovery": np.inf}
    log = Simulation(robot, STEP, q=start(robot), **options).run(DURATION, on_energy_gain="ignore")
    return Landing(_drift(robot, log.q), log.gaps[:-1])


def landing_with_forward_euler(robot: Robot) -> Landing:
    """Drops the chain, and moves it with the velocities before each step, not with those after contact."""
    q, v, tau, pairs = start(robot), np.zeros(robot.nv), np.zeros(robot.nv), pairs_of(robot)
    positions, gaps, impulses = [q], [], None
    for _ in range(round(DURATION / STEP)):
        problem, touches = recursive_problem(robot, q, v, tau, STEP, pairs)
        impulses = solve(problem, start=impulses).impulses
        push = contact_rows(robot, q, touches).T @ impulses
        after = unimpeded(robot, q, v, tau, STEP) + mass_matrix_solve(robot, q, push)
        q, v = robot.integrate(q, v, STEP), after
        positions.append(q)
        gaps.append([touch.contact.gap for touch in touches])
    return Landing(_drift(robot, np.array(positions)), np.array(gaps))


def _drift(robot: Robot, q: np.ndarray) -> np.ndarray:
    x = centre_of_mass(robot, q)[:, 0]
    return x[1:] - x[0]


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    robot = chain()
    progress(f"six ways to land, {DURATION:g} s each in steps of {STEP:g} s")
    landings = {
        "a": simulated(robot, "euler", "position"),
        "floating": simulated(chain(floating=True), "euler", "position"),
        "forward": landing_with_forward_euler(robot),
        "b": simulated(robot, "rk4", "position"),
        "c": simulated(robot, "rk4", "velocity"),
        "d": simulated(robot, "rk4", "limited"),
    }
    t = STEP * np.arange(round(DURATION / STEP))
    arrays = {f"{case}_{what}": getattr(fall, what) for case, fall in landings.items() for what in ("drift", "gaps")}
    np.savez(folder / f"{name}.npz", t=t, **arrays)
    head = [
        "case",
        f"drift after {DURATION:g} s, m",
        "depth of first impact, m",
        "median depth after it, in contact, m",
    ]
    head += [f"height {BOUNCE:g} s after it, m"]
    numbers = {case: fall.numbers() for case, fall in landings.items()}
    save_table(folder / f"{name}.csv", head, [[case, *of_case] for case, of_case in numbers.items()])
    judge(numbers)

    def draw(plt: Any) -> None:
        figure, panels = plt.subplots(2, 2, figsize=(12, 8), sharex=True, layout="constrained")
        for case, panel in zip("abcd", panels.ravel(), strict=True):
            panel.plot(t, landings[case].drift, label="drift")
            for end, gap in zip("PQ", landings[case].gaps.T, strict=True):
                panel.plot(t, np.minimum(gap, 0.0), label=f"penetration of {end}")
            panel.axhline(-TOUCHING, color="k", linestyle=":", label="paper: −1e-5 m, of (a), and the limit of (d)")
            panel.set(title=f"({case})", xlabel="time, s", ylabel="m")
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    with_pyplot(folder / f"{name}.png", draw)


def judge(numbers: Mapping[str, Sequence[float]]) -> None:
    """Prints verdicts: the paper's statement on each case, and the finding here."""
    a, b, c, d = (numbers[case] for case in "abcd")
    outcome = "agrees" if 1e3 < a[0] / b[0] < 1e6 else "differs: by more than an order of magnitude"
    verdict("(a) drift of Euler over Runge-Kutta, (b)", "O(10⁴)", f"{a[0] / b[0]:.1e}", outcome)
    outcome = "agrees" if a[2] < 1e-4 else "differs: deeper"
    verdict("(a) depth with Euler, median after the first impact", "O(10⁻⁵) m", f"{a[2]:.1e} m", outcome)
    outcome = "agrees" if b[3] > 10.0 * c[3] else "differs: no bounce"
    verdict("(b) bounce after an inelastic impact", "unexpected", f"{b[3]:.2g} m high, (c) {c[3]:.1g} m", outcome)
    ratio = c[2] / max(a[2], TOUCHING)
    outcome = "agrees" if ratio > 30.0 else "differs: less deep"
    verdict("(c) depth over that of (a), or over 1e-5 m", "two orders of magnitude", f"{ratio:.0f}", outcome)
    ratio = c[2] / max(d[2], 1e-12)
    outcome = (
        "better: at rest overlaps vanish" if ratio > 300.0 else "agrees" if ratio > 30.0 else "differs: less of it"
    )
    verdict(
        "(d) error after the first impact, median of (c) over (d)", "two orders of magnitude", f"{ratio:.1e}", outcome
    )
    outcome = "differs: the gap is open when forces are computed, so that no limit on depth changes the first impact"
    measured = f"{c[1]:.2e} and {d[1]:.2e} m"
    verdict(
        "(d) depth of the first impact itself, (c) and (d)",
        "said to shrink",
        measured,
        outcome if d[1] > 0.5 * c[1] else "agrees",
    )
    outcome = "agrees" if a[0] / d[0] > 1e3 else "differs: less"
    verdict("(d) drift of Euler over Runge-Kutta", "four orders of magnitude", f"{a[0] / d[0]:.1e}", outcome)
