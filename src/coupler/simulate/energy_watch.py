"""A watch on the energy of a run: energy that no work explains is an error of the method, and keeps growing."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.kinematics import frame_pose, frame_velocity
from coupler.model import ModelError
from coupler.model.errors import warn
from coupler.model.wording import listed
from coupler.simulate.engine import Engine
from coupler.simulate.failures import fastest_joint, or_midpoint, or_servos

GAINS = ("stop", "warn", "ignore")  # what a run can do about energy from nowhere

EVERY = 10  # steps between two checks, unless something suddenly moves
_SUDDENLY = 2.0  # times the largest velocity so far
GAIN = 0.1  # of the largest kinetic energy plus the range of the potential energy: what a sound step never gains
_RUNAWAY = 1e4  # rad or m: what moves further in a step is out of bounds, even if work explains its energy
_CREEP = 0.02  # m/s: the energy of a robot at this speed is too small to report


def known_gain(name: Any) -> str:
    """The chosen reaction to energy from nowhere, refused unless it is one of `GAINS`."""
    if name not in GAINS:
        raise ModelError(f"on_energy_gain must be one of {listed(GAINS)}, got {name!r}")
    return str(name)


class Ledger:
    """The energies of running states, of any leading dimensions, compared with the work done on them.

    Contacts, dampers and dry friction take energy away. So the sum of kinetic and potential energy, minus the work of
    motors, of forces on bodies, and of contacts and limits that part overlaps, may fall, but not rise. Its rise since
    its lowest value is energy that the method has made up.
    """

    def __init__(self, engine: Engine, batch: tuple[int, ...] = ()) -> None:
        self._engine, self._velocities = engine, engine.layout.places["v"]
        self._parting, self._touching = engine.layout.places["parting"], engine.layout.places["touching"].start
        impulses = engine.layout.places["impulses"]
        self._of_joints = slice(impulses.start + engine.layout.contact_rows.total, impulses.stop)
        self._limits = _limits_in_state(engine)
        self._work, self._kinetic, self._lowest = np.zeros(batch), np.zeros(batch), np.full(batch, np.inf)
        self._low, self._high = np.full(batch, np.inf), np.full(batch, -np.inf)
        self._least = least_gain(engine)

    def add_work(
        self,
        before: np.ndarray,
        after: np.ndarray,
        tau: Any,
        f_ext: np.ndarray | None = None,
        *,
        driven: np.ndarray | None = None,
    ) -> None:
        """Adds the work of forces in a step.

        Args:
            before: (..., layout.state), the states before it.
            after: (..., layout.size), its result.
            tau: (..., nv), forces at independent joints; None for none.
            f_ext: (bodies, 6), forces on bodies, for a single state; None for none.
            driven: the entries of tau that may be other than zero; None for all.
        """
        stopped = after[..., self._touching] > 0.0
        if self._engine.layout.joints:
            stopped = stopped | after[..., self._of_joints].any(axis=-1)
        if driven is not None:
            entries = self._velocities.start + driven
            if tau is not None and len(driven):
                self._add(tau[..., driven], before[..., entries], after[..., entries], stopped)
        elif tau is not None:
            self._add(tau, before[..., self._velocities], after[..., self._velocities], stopped)
        if f_ext is not None:
            first, last = (_powers(self._engine, state, f_ext) for state in (before, after))
            self._add(np.ones(len(first)), first, last, stopped)
        if after.shape[-1] > self._engine.layout.size:
            self._work = self._work + np.sum(after[..., self._engine.motor_layout.places["motor_work"]], axis=-1)
        self._work = self._work + np.sum(after[..., self._parting], axis=-1)
        rows, velocities = self._limits
        if rows.size and (impulses := after[..., rows]).any():
            self._work = self._work + np.sum(np.maximum(impulses * after[..., velocities], 0.0), axis=-1)

    def _add(self, forces: Any, first: np.ndarray, last: np.ndarray, stopped: np.ndarray) -> None:
        """Adds the work of forces in a step, in which their velocities change from the first to the last.

        A joint that is stopped within a step may have moved with either velocity. The most work that each force can
        have done counts then, τ v for the better v, because contacts undo what forces do in between.
        """
        power = _dot(forces, first + last)
        if stopped.any():
            power = power + stopped * _dot(np.abs(forces), np.abs(last - first))
        self._work = self._work + 0.5 * self._engine.step * power

    def gained(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The energy that the method has made up, J, NaN where it is unknown; and which states to report.

        States are reported if they have gained too much, or if their velocities are out of bounds.
        """
        kinetic, potential = self._engine.energies(states)
        total = np.where(is_between_phases(self._engine, states), np.nan, kinetic + potential - self._work)
        with np.errstate(invalid="ignore"):
            gained = total - self._lowest
            self._lowest, self._kinetic = np.fmin(self._lowest, total), np.fmax(self._kinetic, kinetic)
            self._low, self._high = np.fmin(self._low, potential), np.fmax(self._high, potential)
            too_much = gained > GAIN * (self._kinetic + self._high - self._low) + self._least
            return gained, too_much | (_fastest(self._engine, states) > _RUNAWAY / self._engine.step)


class EnergyWatch:
    """Compares the energy of a running simulation with the work done on it.

    Args:
        gains: one of `GAINS`.

    Attributes:
        on: whether it still checks.
    """

    def __init__(self, engine: Engine, gains: str) -> None:
        self._engine, self._gains = engine, gains
        self._ledger, self.on, self._fastest = Ledger(engine), gains != "ignore", 0.0

    def note(self, steps: int, time: float, before: np.ndarray, after: np.ndarray, tau: Any, f_ext: Any) -> None:
        """Checks a step.

        Args:
            steps: the number of steps taken, with this one.
            time: when it ended, s.
            before: the state before it.
            after: (layout.size,), its result.
            tau: (nv,), forces at independent joints; None for none.
            f_ext: (bodies, 6), forces on bodies; None for none.

        Raises:
            ModelError: if energy comes from nowhere, and the run is to stop then.
        """
        self._ledger.add_work(before, after, tau, None if f_ext is None else np.asarray(f_ext, dtype=float))
        velocities = self._engine.layout.places["v"]
        if steps == 1:
            self._fastest = np.abs(before[velocities]).max()
        fast = np.abs(after[velocities]).max()
        if steps % EVERY and fast <= _SUDDENLY * self._fastest:
            return
        self._fastest = max(self._fastest, fast)
        after = after[: self._engine.layout.state]
        gained, too_much = self._ledger.gained(after)
        if too_much:
            text = gain_told(self._engine, time, float(gained), after, tau)
            if self._gains == "stop":
                raise ModelError(f'{text}; on_energy_gain="warn" goes on')
            warn(text)
            self.on = False  # once


def is_between_phases(engine: Engine, states: np.ndarray) -> np.ndarray:
    """For each state, (...,), whether its contacts were stopped, and will rebound in place in the next step.

    The rebound returns some of the energy that the first phase has taken.
    """
    return np.asarray(states[..., engine.layout.places["pending"]].any(axis=-1))


def least_gain(engine: Engine) -> float:
    """The largest energy gain that is too small to report, J."""
    return 0.5 * engine.robot.mass * _CREEP**2


def _limits_in_state(engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """The entries of a state that are impulses at limits, and velocities of these joints, except dependent ones."""
    robot, layout, rows, velocities = engine.robot, engine.layout, list[int](), list[int]()
    if not layout.limited:
        return np.array(rows, int), np.array(velocities, int)
    places = {int(entry): layout.places["w"].start + i for i, entry in enumerate(robot.embedding.unsolved_entries)}
    places |= {int(entry): layout.places["v"].start + i for i, entry in enumerate(robot.embedding.v_index)}
    first = layout.places["impulses"].start + layout.contact_rows.total
    for row, (link, j) in enumerate(layout.limited, first):
        entry = int(robot.tree.velocities(link)[j])
        if entry in places:
            rows.append(row)
            velocities.append(places[entry])
    return np.array(rows, int), np.array(velocities, int)


def gain_told(engine: Engine, time: float, gained: float, state: np.ndarray, tau: Any = None) -> str:
    """A message that a state has gained energy or that velocities are out of bounds, when, and what may help.

    Args:
        tau: forces at joints, if they may be those of a controller.
    """
    joint, speed, better = fastest_joint(engine, state)
    if not speed * engine.step <= _RUNAWAY:
        return (
            f"robot {engine.robot.name!r}: velocities are out of bounds by {time:.6g} s, joint {joint!r} moves with "
            f"{speed:.3g} rad/s or m/s; forces may be too strong, as those of a stiff controller are, for steps of "
            f"{engine.step:g} s; shorter steps may do{or_midpoint(engine)}{or_servos(tau)}"
        )
    return (
        f"robot {engine.robot.name!r} has gained {gained:.3g} J by {time:.6g} s that nobody put in: the step of "
        f"{engine.step:g} s is too long for how fast joint {joint!r} moves, {speed:.3g} rad/s or m/s; steps of "
        f"{better:.2g} s may do{or_midpoint(engine)}{or_servos(tau)}"
    )


def _fastest(engine: Engine, states: np.ndarray) -> np.ndarray:
    """(...,): the largest entry of v, rad/s or m/s; NaN counts as infinite."""
    return np.nan_to_num(np.abs(states[..., engine.layout.places["v"]]).max(axis=-1), nan=np.inf)


def _dot(forces: Any, velocities: np.ndarray) -> Any:
    return np.dot(forces, velocities) if velocities.ndim == 1 else np.einsum("...i,...i->...", forces, velocities)


def _powers(engine: Engine, state: np.ndarray, f_ext: np.ndarray) -> np.ndarray:
    """The powers of forces on bodies in a state, W; they are along the world's axes about its origin."""
    robot, powers = engine.robot, list[float]()
    q, v = (state[engine.layout.places[name]] for name in ("q", "v"))
    for i in np.flatnonzero(f_ext.any(axis=1)):
        body, (moment, force) = robot.body_names[i], f_ext[i].reshape(2, 3)
        velocity, r = frame_velocity(robot, q, v, body, axes="world"), frame_pose(robot, q, body)[:3, 3]
        powers.append(moment @ velocity[:3] + force @ (velocity[3:] - np.cross(velocity[:3], r)))
    return np.array(powers)
