"""The demo's main job: a quadruped with all its rotors drops, stands, is pushed, and recovers."""

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

__all__ = ["land"]

STEP, DURATION = 1e-3, 4.0  # s
DROP = 0.5  # m, from the feet to the floor
STIFFNESS, DAMPING = 80.0, 4.0  # of each joint, N m/rad and N m s/rad
PUSH, PUSHED = np.array([60.0, 0.0, 0.0]), (2.0, 2.15)  # N, on the base, and between which times, s
ANGLES = {"hip": -0.8, "knee": 1.6}  # rad


@dataclass(frozen=True, eq=False)
class _Balance:
    """Where energy came from and went, J."""

    before: float
    after: float
    motors: float
    push: float
    contact: float

    @property
    def error(self) -> float:
        """What the balance misses: the error of steps of finite length."""
        return self.after - self.before - self.motors - self.push - self.contact


def land(folder: Path) -> None:
    """Runs it, prints what happened, and saves a log and, with matplotlib, a picture."""
    robot = load("mini_cheetah").with_floor(friction=0.8)
    legs = {name: angle for name in robot.independent_joints for part, angle in ANGLES.items() if part in name}
    q = robot.pack_q(legs)
    feet = [name for name in robot.frame_names if name.endswith("foot_contact")]
    q[2] = DROP - min(frame_pose(robot, q, foot)[2, 3] for foot in feet)
    simulation, wanted = Simulation(robot, STEP, q=q), q[7:].copy()

    def control(t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Each joint is held where it started; somebody pushes the base forward."""
        tau = np.concatenate([np.zeros(6), STIFFNESS * (wanted - q[7:]) - DAMPING * v[6:]])
        pushed = PUSHED[0] <= t < PUSHED[1]
        return tau, simulation.wrench("Floating Base", PUSH) if pushed else None

    text = f"It drops by {DROP:g} m, each joint held by a spring and a damper, and is pushed after {PUSHED[0]:g} s."
    print(fitted(f"{text} {len(simulation.contacts)} places of it may touch the floor."))
    start = time.perf_counter()
    for force in (None, simulation.wrench("Floating Base", PUSH)):  # compiles both kinds of step
        simulation.step(np.zeros(robot.nv), force)
    first = time.perf_counter() - start
    simulation.reset()
    start = time.perf_counter()
    log = simulation.run(DURATION, control, log=folder / "landing.npz")
    seconds = time.perf_counter() - start
    print(columns(_told(robot, log, first, seconds, _balance(robot, log, feet)), "  "))
    _picture(robot, log, folder)


def _told(robot: Robot, log: Log, first: float, seconds: float, balance: _Balance) -> dict[str, str]:
    weight = -robot.mass * robot.gravity[2]
    height, forward = log.q[:, 2], log.q[:, 0]
    touched = log.times[np.argmax(log.forces[:, :, 2].sum(axis=1) > 0.0)]
    before = forward[np.searchsorted(log.times, PUSHED[0])]
    moved = np.abs(forward[log.times >= PUSHED[0]] - before).max()
    closure = max((float(np.max(error)) for error in robot.loop_errors(log.q).values()), default=0.0)
    peak = log.forces[:, :, 2].sum(axis=1).max()
    return {
        "lands": f"after {touched:.3f} s, at first with {peak / weight:.0f} times its weight; its base goes down to "
        f"{height.min():.3f} m",
        "pushed": f"by {np.linalg.norm(PUSH):g} N for {PUSHED[1] - PUSHED[0]:.2g} s, it moves by {moved * 1e3:.0f} mm",
        "recovers": f"in the end its base is at {height[-1]:.3f} m, {abs(forward[-1] - before) * 1e3:.1f} mm from "
        f"before, and moves with {np.linalg.norm(log.v[-1, 3:6]):.1g} m/s",
        "weighs": f"{weight:.3f} N; the floor bears {log.forces[-1, :, 2].sum():.3f} N",
        "time": f"{DURATION:g} s in {seconds:.2f} s, {DURATION / seconds:.0f} times real time, control in Python "
        f"included; {first:.1f} s before that to compile",
        "contacts": f"overlap by {max(-log.gaps.min(), 0.0):.1g} m at most, and keep their laws to "
        f"{log.residuals.max():.1g} m/s in {log.sweeps.mean():.1f} sweeps on average",
        "loops": f"closed to {closure:.1g} rad",
        "energy": f"{balance.before:.2f} J and {balance.motors:+.2f} J of motors, {balance.push:+.2f} J of the push, "
        f"{balance.contact:+.2f} J of contacts make {balance.after:.2f} J; {balance.error:+.2g} J are the steps' error",
    }


def _balance(robot: Robot, log: Log, feet: list[str]) -> _Balance:
    """Energies, and works by the mean of velocities before and after each step."""
    total, mean = log.kinetic + log.potential, 0.5 * (log.v[1:] + log.v[:-1])
    motors = STEP * float(np.sum(log.tau[:-1] * mean))
    pushed = (log.times >= PUSHED[0] - 1e-9) & (log.times < PUSHED[1] - 1e-9)
    base = frame_velocity(robot, log.q, log.v, "Floating Base", axes="world")[:, 3:]
    push = STEP * float(np.sum((0.5 * (base[1:] + base[:-1]) @ PUSH)[pushed[:-1]]))
    contact = 0.0
    for name in feet:
        (number,) = [i for i, contact in enumerate(log.contacts) if contact.startswith(f"{name} ")]
        speed = frame_velocity(robot, log.q, log.v, name, axes="world")[:, 3:]
        contact += STEP * float(np.sum(log.forces[:-1, number] * 0.5 * (speed[1:] + speed[:-1])))
    return _Balance(float(total[0]), float(total[-1]), motors, push, contact)


def _picture(robot: Robot, log: Log, folder: Path) -> None:
    from coupler.view import plot_motion

    saved = [folder / "landing.npz"]
    try:
        saved.append(plot_motion(robot, log, folder / "landing.png", title="Mini Cheetah with all its rotors"))
    except ModelError as error:  # no matplotlib
        print(fitted(str(error)))
    for path in saved:
        print(f"saved {path}")
