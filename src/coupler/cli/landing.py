"""The main part of the demo: a quadruped with all its rotors drops, stands, is pushed, and recovers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coupler.cli.output import columns, fitted
from coupler.kinematics import frame_pose, frame_velocity
from coupler.model import ModelError, Robot
from coupler.robots import load
from coupler.simulate import Log, Simulation

STEP, DURATION = 1e-3, 4.0  # s
DROP = 0.5  # m, from the feet to the floor
STIFFNESS, DAMPING = 80.0, 4.0  # of each joint, N m/rad and N m s/rad
PUSH, PUSHED = np.array([60.0, 0.0, 0.0]), (2.0, 2.15)  # N, on the base, and between which times, s
ANGLES = {"hip": -0.8, "knee": 1.6}  # rad
_ROUNDING = 1e-9  # s, far below a step: times are sums of steps, and so not exactly multiples of them


@dataclass(frozen=True, eq=False)
class _Balance:
    """The energy balance of the run, J: total energy at start and end, and the work done on the robot."""

    start: float
    end: float
    motors: float
    push: float
    contact: float

    @property
    def error(self) -> float:
        """The error of the balance, J, which is due to the finite length of steps."""
        return self.end - self.start - self.motors - self.push - self.contact


def land(folder: Path) -> None:
    """Runs the landing, prints what happened, and saves a log and, with matplotlib, a picture."""
    robot = load("mini_cheetah").with_floor(friction=0.8)
    legs = {name: angle for name in robot.independent_joints for part, angle in ANGLES.items() if part in name}
    q = robot.pack_q(legs)
    feet = [name for name in robot.frame_names if name.endswith("foot_contact")]
    q[2] = DROP - min(frame_pose(robot, q, foot)[2, 3] for foot in feet)
    simulation, wanted = Simulation(robot, STEP, q=q), q[7:].copy()

    def control(t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Holds each joint where it started, and pushes the base forward for a while."""
        tau = np.concatenate([np.zeros(6), STIFFNESS * (wanted - q[7:]) - DAMPING * v[6:]])
        pushed = PUSHED[0] <= t < PUSHED[1]
        return tau, simulation.wrench("Floating Base", PUSH) if pushed else None

    text = f"It drops from {DROP:g} m, its joints held by springs and dampers, and is pushed after {PUSHED[0]:g} s."
    print(fitted(f"{text} {len(simulation.contacts)} of its points may touch the floor."))
    start = time.perf_counter()
    for force in (
        None,
        simulation.wrench("Floating Base", PUSH),
    ):  # compiles the step with and without an external force
        simulation.step(np.zeros(robot.nv), force)
    first = time.perf_counter() - start
    simulation.reset()
    start = time.perf_counter()
    log = simulation.run(DURATION, control, log=folder / "landing.npz")
    seconds = time.perf_counter() - start
    print(columns(_summary(robot, log, first, seconds, _balance(robot, log, feet)), "  "))
    _picture(robot, log, folder)


def _summary(robot: Robot, log: Log, first: float, seconds: float, balance: _Balance) -> dict[str, str]:
    weight = -robot.mass * robot.gravity[2]
    height, forward = log.q[:, 2], log.q[:, 0]
    touched = log.times[np.argmax(log.forces[:, :, 2].sum(axis=1) > 0.0)]
    before_push = forward[np.searchsorted(log.times, PUSHED[0])]
    moved = np.abs(forward[log.times >= PUSHED[0]] - before_push).max()
    closure = max((float(np.max(error)) for error in robot.loop_errors(log.q).values()), default=0.0)
    peak = log.forces[:, :, 2].sum(axis=1).max()
    return {
        "lands": f"after {touched:.3f} s, with a peak force of {peak / weight:.0f} times its weight; its base comes "
        f"down to {height.min():.3f} m",
        "pushed": f"by {np.linalg.norm(PUSH):g} N for {PUSHED[1] - PUSHED[0]:.2g} s, it moves {moved * 1e3:.0f} mm",
        "recovers": f"at the end its base is at {height[-1]:.3f} m, {abs(forward[-1] - before_push) * 1e3:.1f} mm from "
        f"where it was before the push, and moves at {np.linalg.norm(log.v[-1, 3:6]):.1g} m/s",
        "weighs": f"{weight:.3f} N; the floor carries {log.forces[-1, :, 2].sum():.3f} N",
        "time": f"{DURATION:g} s in {seconds:.2f} s, {DURATION / seconds:.0f} times real time, including "
        f"control in Python; {first:.1f} s before that to compile",
        "contacts": f"overlap by {max(-log.gaps.min(), 0.0):.1g} m at most, with contact laws satisfied to "
        f"{log.residuals.max():.1g} m/s in {log.sweeps.mean():.1f} sweeps on average",
        "loops": f"closed to {closure:.1g} rad",
        "energy": f"{balance.start:.2f} J at the start, {balance.motors:+.2f} J from motors, {balance.push:+.2f} J "
        f"from the push, {balance.contact:+.2f} J from contacts, {balance.end:.2f} J at the end; {balance.error:+.2g} "
        "J are the error of the steps",
    }


def _balance(robot: Robot, log: Log, feet: list[str]) -> _Balance:
    """The energy balance; work is computed with the mean of the velocities before and after each step."""
    total, mean = log.kinetic + log.potential, 0.5 * (log.v[1:] + log.v[:-1])
    motors = STEP * float(np.sum(log.tau[:-1] * mean))
    pushed = (log.times >= PUSHED[0] - _ROUNDING) & (log.times < PUSHED[1] - _ROUNDING)
    base = frame_velocity(robot, log.q, log.v, "Floating Base", axes="world")[:, 3:]
    push = STEP * float(np.sum((0.5 * (base[1:] + base[:-1]) @ PUSH)[pushed[:-1]]))
    contact = 0.0
    for name in feet:
        (number,) = [i for i, label in enumerate(log.contacts) if label.startswith(f"{name} ")]
        speed = frame_velocity(robot, log.q, log.v, name, axes="world")[:, 3:]
        contact += STEP * float(np.sum(log.forces[:-1, number] * 0.5 * (speed[1:] + speed[:-1])))
    return _Balance(float(total[0]), float(total[-1]), motors, push, contact)


def _picture(robot: Robot, log: Log, folder: Path) -> None:
    from coupler.view import plot_motion, save_page

    saved, title = [folder / "landing.npz"], "Mini Cheetah with all its rotors"
    page = folder / "landing.html"
    for draw in (
        lambda: plot_motion(robot, log, folder / "landing.png", title=title),
        lambda: save_page(robot, log, page),
    ):
        try:
            saved.append(draw())
        except ModelError as error:  # no matplotlib, or no viser
            print(fitted(str(error)))
    for path in saved:
        print(f"saved {path}")
    if page in saved:
        print(f"open {page} in a browser to see it land")
