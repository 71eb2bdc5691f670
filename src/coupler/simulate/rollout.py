"""Many states of a robot at once, under controls known beforehand: batches in lanes and threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.compiled import thread_count
from coupler.model import ModelError, Robot
from coupler.model.errors import warn
from coupler.model.numbers import as_array, numbers, positive_integer
from coupler.model.wording import counted, in_state, index_of
from coupler.simulate.energy_watch import known_gain
from coupler.simulate.engine import Engine, engine_of
from coupler.simulate.options import Rebound, SimulationOptions, Turning
from coupler.simulate.rollout_chunk import Chunk
from coupler.simulate.start_warnings import warn_of_overlaps, warn_of_selection
from coupler.simulate.status import Unsolved, are_solved
from coupler.threads import for_each

_CHUNK, _LEAST_CHUNK = 1024, 32  # states, at most and at least, that a thread simulates from start to end
_CHUNK_NUMBERS = 2**19  # of all states of a chunk: starting a step from Python costs as much as computing a few states


@dataclass(frozen=True, eq=False, repr=False)
class Rollout:
    """The motion of a batch of states, with any leading dimensions, under T controls each.

    Attributes:
        times: (T + 1,), s.
        q: (..., T + 1, nq), at the start and after each control.
        v: (..., T + 1, nv), the velocities there.
        residuals: (..., T), the largest violation of the laws of contact in the steps of each control, m/s.
        solved: (..., T), whether all these steps are solved, as `StepStatus` says; false where a state took none.
        sweeps: (..., T), the largest number of sweeps and further iterations of the contact solver in a step of each
            control.
        touching: (..., T), the number of pressing contacts in the last step of each control.
        stops: (...,), the time at which a state could not continue, s; infinite for those that reached the end. After
            that time, the state's rows are NaN, and all of them where q0 and v0 are not those of a state.
        reasons: why states could not continue, by their index in the batch.
        contacts: the names of the candidate contacts.
        forces: (..., T, contacts, 3), if asked for: contact forces in the last step of each control, on the first body
            of each pair, along the world's axes, N.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    residuals: np.ndarray
    solved: np.ndarray
    sweeps: np.ndarray
    touching: np.ndarray
    stops: np.ndarray
    reasons: dict[tuple[int, ...], str]
    contacts: tuple[str, ...]
    forces: np.ndarray | None = None

    def __str__(self) -> str:
        """A summary in a few lines."""
        states = counted(self.stops.size, "state")
        controls = counted(len(self.times) - 1, "control")
        lines = [f"rollout of {states}, from {self.times[0]:g} to {self.times[-1]:g} s, {controls} each"]
        stopped = int(np.isfinite(self.stops).sum())
        lines.append(f"  stopped   {stopped} of {states}" + (f", from {self.stops.min():g} s on" if stopped else ""))
        if self.contacts and self.residuals.size:
            lines.append(f"  residual  {np.nanmax(self.residuals, initial=0.0):.2g} m/s at most")
        arrays = ["q", "v", "residuals", *(["forces"] if self.forces is not None else [])]
        lines.append(f"  arrays    {', '.join(f'{name} {getattr(self, name).shape}' for name in arrays)}")
        return "\n".join(lines)

    __repr__ = __str__


def rollout(
    robot: Robot,
    q0: Any,
    v0: Any,
    controls: Any = None,
    step: float = SimulationOptions.step,
    *,
    motors: Any = None,
    rates: Any = None,
    hold: int = 1,
    forces: bool = False,
    on_energy_gain: str = "stop",
    contacts: str | Iterable[str] = SimulationOptions.contacts,
    integrator: str = SimulationOptions.integrator,
    friction: float = SimulationOptions.friction,
    restitution: Rebound = SimulationOptions.restitution,
    torsion: Turning = SimulationOptions.torsion,
    rolling: Turning = SimulationOptions.rolling,
    penetration: str | float | None = SimulationOptions.penetration,
    recovery: float = SimulationOptions.recovery,
    limits: bool = SimulationOptions.limits,
    tolerance: float = SimulationOptions.tolerance,
    sweeps: int = SimulationOptions.sweeps,
) -> Rollout:
    """Simulates a batch of states, each under its own controls, or all under the same.

    Args:
        robot: the robot, with what it may touch, as for `Simulation`.
        q0: (..., nq), the configurations to start from.
        v0: (..., nv), the velocities there.
        controls: (..., T, nv), forces at independent joints, N m or N; may be left out where `motors` are given.
        step: the length of a step, h, s.
        motors: (..., T, actuators), controls of `robot.actuators`: forces of motors, targets of servos. Without, no
            actuator acts.
        rates: (..., T, actuators), how fast the targets of position servos move; zero, if not given.
        hold: for how many steps each control is held.
        forces: whether contact forces are returned.
        on_energy_gain: what to do with a state whose energy grows without work done on it, as steps
            that are too long can cause: "stop" it, "warn", or "ignore" it. It is checked every ten steps.
        contacts, integrator, friction, restitution, torsion, rolling, penetration, recovery, limits, tolerance, sweeps:
            as for `Simulation`.

    Returns:
        The motion of all states. A state that cannot go on, or whose q0 and v0 are not those of a state, stops, and a
        warning says so; the others go on.

    Raises:
        ModelError: for arguments of wrong shape, controls that are not finite, and where no state can go on.
    """
    options, hold = SimulationOptions.among(locals()), positive_integer("hold", hold)
    engine = engine_of(robot, options)
    engine = engine if forces else engine.brief()
    gains = known_gain(on_energy_gain)
    warn_of_selection(engine)
    q, v = engine.given(q0, v0)
    inputs = _checked_controls(engine, controls, motors, rates)
    parameters = () if robot.given is None else robot.given.packed.shape[:-1]
    of_states = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    try:
        batch = np.broadcast_shapes(of_states, parameters, *(values.shape[:-2] for values in inputs))
    except ValueError:
        shapes = " and ".join(f"{values.shape[:-2]} in {values.shape}" for values in inputs)
        others = f"controls of {shapes}" + (f" and parameters of {parameters}" if parameters else "")
        advice = "; the last two dimensions of controls are steps and forces"
        raise ModelError(f"q0 and v0 are states of {of_states}, which do not fit {others}{advice}") from None
    return _in_chunks(engine, batch, engine.start_batch(q, v, batch), inputs, hold, forces, gains)


def _checked_controls(engine: Engine, controls: Any, motors: Any, rates: Any) -> list[np.ndarray]:
    """Forces at independent joints, (..., T, nv), and if actuators act, their controls, (..., T, n)."""
    if motors is None:
        if rates is not None:
            raise ModelError("rates are the velocities of targets; give motors as well")
        if controls is None:
            raise ModelError(
                f"give controls, forces (..., T, {engine.robot.nv}) at independent joints for T steps, or motors; "
                f"np.zeros((T, {engine.robot.nv})) lets it move by itself"
            )
        return [_over_time("controls", controls, engine.robot.nv)]
    engine.check_actuators()
    driven = _over_time("motors", motors, len(engine.robot.actuators))
    moving = driven if rates is None else _over_time("rates", rates, len(engine.robot.actuators))
    tau = np.zeros((driven.shape[-2], engine.robot.nv))
    if controls is not None:
        tau = _over_time("controls", controls, engine.robot.nv)
    for name, other in (("controls", tau), ("rates", moving)):
        if other.shape[-2] != driven.shape[-2]:
            raise ModelError(f"{name} are {other.shape[-2]} in a row, and motors {driven.shape[-2]}")
    try:
        batch = np.broadcast_shapes(driven.shape[:-1], moving.shape[:-1])
    except ValueError:
        raise ModelError(f"motors of {driven.shape[:-2]} states do not fit rates of {moving.shape[:-2]}") from None
    return [tau, engine.controls(driven, None if rates is None else moving, batch)]


def _over_time(name: str, given: Any, width: int) -> np.ndarray:
    """Numbers from the user, checked, (..., T, width)."""
    values = as_array(name, given)
    if values.ndim < 2 or values.shape[-1] != width:
        raise ModelError(f"{name} must have the shape (..., T, {width}), got {values.shape}")
    return numbers(name, values, values.shape[-2:], batch=True)


def _in_chunks(
    engine: Engine,
    batch: tuple[int, ...],
    start: tuple[np.ndarray, dict[int, str]],
    inputs: Sequence[np.ndarray],
    hold: int,
    with_forces: bool,
    gains: str,
) -> Rollout:
    """Simulates all states, in chunks that are shared out to threads; `start` is what `Engine.start_batch` returns."""
    (state, reasons), count = start, inputs[0].shape[-2]
    states = len(state)
    sizes: dict[str, tuple[int, ...]] = {"q": (engine.robot.nq,), "v": (engine.robot.nv,)}
    sizes |= dict.fromkeys(("residual", "sweeps", "touching"), (1,))
    if with_forces:
        sizes["forces"] = engine.layout.contacts, 3
    recorded = {name: np.empty((count + 1, states, *size)) for name, size in sizes.items()}  # time first: fast to fill
    controls = [np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(states, count, x.shape[-1]) for x in inputs]

    size = _chunk(states, engine.layout.size)
    stops, gained = np.full(states, np.inf), dict[int, str]()
    stops[list(reasons)] = 0.0
    none = [*reasons]  # states that are none
    gaps = np.full((-(-states // size), engine.layout.contacts), np.inf)  # the least to start with, of each chunk
    least = np.full(states, np.inf)  # the same of each state
    unsolved = Unsolved(engine.scene.tolerance)
    rooms: list[list[np.ndarray]] = []  # of chunks that have ended: memory that is new costs as much as a few steps

    def simulate_chunk(first: int) -> Iterator[None]:
        some = slice(first, min(first + size, states))
        parts = {name: array[:, some] for name, array in recorded.items()}
        layout = engine.layout if len(controls) == 1 else engine.motor_layout
        try:
            room = rooms.pop()
        except IndexError:
            room = [engine.room(min(size, states), layout.size) for _ in range(2)]
        start, ends = (gaps[first // size], least[some]), stops[some]
        chunk = Chunk(engine.of_states(batch, some), room, state[some], ends, *start, gains)
        yield from chunk.simulate([x[some] for x in controls], hold, parts)
        rooms.append(room)
        reasons.update({first + i: reason for i, reason in chunk.reasons.items()})
        gained.update({first + i: gain for i, gain in chunk.gained.items()})
        unsolved.jammed = max(unsolved.jammed, chunk.jammed)

    engine.prepare(motors=len(controls) > 1)  # once, not by each thread
    if gains != "ignore" and states:
        engine.of_states(batch, slice(0, 1)).energies(state[:1])
    for_each(simulate_chunk, range(0, states, size), thread_count())
    q = state[:, engine.layout.places["q"]].reshape(*batch, engine.robot.nq)
    warn_of_overlaps(engine.robot, engine, q, gaps.min(axis=0, initial=np.inf), least.reshape(batch))
    _tell_stops(batch, stops, reasons)
    _tell_gains(batch, states, gained)
    times = engine.step * hold * np.arange(count + 1)
    solved = are_solved(recorded["residual"][1:, :, 0], recorded["v"], engine.scene.tolerance)
    unsolved.note_all(recorded["residual"][1:, :, 0], solved, times)
    unsolved.warn(engine.robot, states * count, "step" if hold == 1 else "control")
    for name in ("q", "v"):
        recorded[name][0, none] = np.nan
    results = {
        name: np.moveaxis(array, 0, 1).reshape(*batch, count + 1, *sizes[name]) for name, array in recorded.items()
    }
    forces = results["forces"][..., 1:, :, :] if with_forces else None
    residuals, sweeps, touching = (results[name][..., 1:, 0] for name in ("residual", "sweeps", "touching"))
    solved = np.moveaxis(solved, 0, 1).reshape(*batch, count)
    statistics = residuals, solved, sweeps, touching, stops.reshape(batch)
    by_index = {index_of(i, batch): reasons[i] for i in sorted(reasons)}
    return Rollout(times, results["q"], results["v"], *statistics, by_index, engine.contacts, forces)


def _chunk(states: int, size: int) -> int:
    """The number of states to simulate together, given their number and size, such that every thread has some."""
    states_per_chunk = min(_CHUNK, _CHUNK_NUMBERS // size, -(-states // thread_count()))
    return max(-(-states_per_chunk // _LEAST_CHUNK), 1) * _LEAST_CHUNK


def _tell_stops(batch: tuple[int, ...], stops: np.ndarray, reasons: dict[int, str]) -> None:
    """Warns of states that could not continue; raises an error if none could."""
    if not reasons:
        return
    first = min(reasons, key=lambda state: (stops[state], state))
    text = f"after {stops[first]:.6g} s{in_state(index_of(first, batch))}: {reasons[first]}"
    if len(reasons) == len(stops):
        raise ModelError(text)
    message = f"{len(reasons)} of {len(stops)} states cannot go on, the first {text}; the others do"
    warn(message)


def _tell_gains(batch: tuple[int, ...], states: int, gained: dict[int, str]) -> None:
    """Warns of states that have gained energy and continue."""
    if gained:
        first = min(gained)
        where = in_state(index_of(first, batch))
        warn(f"{len(gained)} of {states} states gain energy; the first{where}: {gained[first]}")
