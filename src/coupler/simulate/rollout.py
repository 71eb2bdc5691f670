"""Many states of a robot at once, under controls that are known beforehand: batches in lanes and threads."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.compiled import thread_count
from coupler.model import ModelError, ModelWarning, Robot
from coupler.model.numbers import as_array, numbers
from coupler.model.wording import counted, in_state
from coupler.simulate.engine import Engine, engine_of
from coupler.simulate.failures import why_not
from coupler.simulate.first_warnings import warn_of_overlaps, warn_of_selection
from coupler.simulate.options import Rebound, SimulationOptions, Turning, positive_integer
from coupler.simulate.status import Unsolved
from coupler.simulate.watch import EVERY, Ledger, gain_told, known_gain
from coupler.threads import for_each

_CHUNK, _LEAST_CHUNK = 1024, 32  # states, at most and at least, that a thread simulates from start to end
_CHUNK_NUMBERS = 2**19  # of these states, where they have many: to start each step from Python costs as much as a few


@dataclass(frozen=True, eq=False)
class Rollout:
    """The motion of a batch of states, with any leading dimensions, under T controls each.

    Attributes:
        times: (T + 1,), s.
        q: (..., T + 1, nq), the start first, and then after each control.
        v: (..., T + 1, nv), velocities there.
        residuals: (..., T), by how much the steps of each control violate the laws of contact, at most, m/s.
        sweeps: (..., T), the most sweeps and further iterations of the contact solver in a step of each control.
        touching: (..., T), how many contacts press in the last step of each control.
        stops: (...,), the time at which a state could not go on, s; infinite for those that reached the end. From that
            time on, the state's rows are NaN.
        contacts: the names of the candidate contacts.
        forces: (..., T, contacts, 3), if asked for: contact forces in the last step of each control, on the first body
            of each pair, along the world's axes, N.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    residuals: np.ndarray
    sweeps: np.ndarray
    touching: np.ndarray
    stops: np.ndarray
    contacts: tuple[str, ...]
    forces: np.ndarray | None = None

    def __str__(self) -> str:
        """What there is in it, in a few lines."""
        states = counted(self.stops.size, "state")
        controls = counted(len(self.times) - 1, "control")
        lines = [f"rollout of {states}, from {self.times[0]:g} to {self.times[-1]:g} s, {controls} each"]
        stopped = int(np.isfinite(self.stops).sum())
        lines.append(f"  stopped   {stopped} of {states}" + (f", from {self.stops.min():g} s on" if stopped else ""))
        if self.contacts and self.residuals.size:
            lines.append(f"  residual  {np.nanmax(self.residuals, initial=0.0):.2g} m/s at the most")
        arrays = ["q", "v", "residuals", *(["forces"] if self.forces is not None else [])]
        lines.append(f"  arrays    {', '.join(f'{name} {getattr(self, name).shape}' for name in arrays)}")
        return "\n".join(lines)


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
        The motion of all states. A state that cannot go on stops, and a warning says so; the others go on.

    Raises:
        ModelError: for arguments of wrong shape or that are not finite, and where no state can go on.
    """
    options, hold = SimulationOptions.among(locals()), positive_integer("hold", hold)
    engine = engine_of(robot, options)
    engine = engine if forces else engine.brief()
    gains = known_gain(on_energy_gain)
    warn_of_selection(engine)
    state = engine.start(q0, v0)
    given = _given_controls(engine, controls, motors, rates)
    numbers_given = () if robot.given is None else robot.given.packed.shape[:-1]
    try:
        batch = np.broadcast_shapes(state.shape[:-1], numbers_given, *(own.shape[:-2] for own in given))
    except ValueError:
        shapes = " and ".join(str(own.shape[:-2]) for own in given)
        others = f"controls of {shapes}" + (f" and parameters of {numbers_given}" if numbers_given else "")
        raise ModelError(f"q0 and v0 are states of {state.shape[:-1]}, which do not fit {others}") from None
    return _in_chunks(engine, np.broadcast_to(state, (*batch, state.shape[-1])), given, hold, forces, gains)


def _given_controls(engine: Engine, controls: Any, motors: Any, rates: Any) -> list[np.ndarray]:
    """Forces at independent joints, (..., T, nv), and what controls actuators, if they act, (..., T, n)."""
    if motors is None:
        if rates is not None:
            raise ModelError("rates: they are those of targets; give motors, too")
        return [_over_time("controls", controls, engine.robot.nv)]
    engine.check_actuators()
    own = _over_time("motors", motors, len(engine.robot.actuators))
    moving = own if rates is None else _over_time("rates", rates, len(engine.robot.actuators))
    tau = np.zeros((own.shape[-2], engine.robot.nv))
    if controls is not None:
        tau = _over_time("controls", controls, engine.robot.nv)
    for name, other in (("controls", tau), ("rates", moving)):
        if other.shape[-2] != own.shape[-2]:
            raise ModelError(f"{name} are {other.shape[-2]} in a row, and motors {own.shape[-2]}")
    try:
        batch = np.broadcast_shapes(own.shape[:-1], moving.shape[:-1])
    except ValueError:
        raise ModelError(f"motors of {own.shape[:-2]} states do not fit rates of {moving.shape[:-2]}") from None
    return [tau, engine.controls(own, None if rates is None else moving, batch)]


def _over_time(name: str, given: Any, width: int) -> np.ndarray:
    """Numbers that a user gave, (..., T, width)."""
    values = as_array(name, given)
    if values.ndim < 2 or values.shape[-1] != width:
        raise ModelError(f"{name} must have the shape (..., T, {width}), got {values.shape}")
    return numbers(name, values, values.shape[-2:], batch=True)


def _in_chunks(
    engine: Engine, state: np.ndarray, given: Sequence[np.ndarray], hold: int, with_forces: bool, gains: str
) -> Rollout:
    """Simulates all states, in chunks that threads share."""
    batch, count, states = state.shape[:-1], given[0].shape[-2], int(np.prod(state.shape[:-1], dtype=int))
    sizes: dict[str, tuple[int, ...]] = {"q": (engine.robot.nq,), "v": (engine.robot.nv,)}
    sizes |= dict.fromkeys(("residual", "sweeps", "touching"), (1,))
    if with_forces:
        sizes["forces"] = engine.layout.contacts, 3
    recorded = {name: np.empty((count + 1, states, *size)) for name, size in sizes.items()}  # time first: fast to fill
    state = np.ascontiguousarray(state).reshape(states, state.shape[-1])
    controls = [np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(states, count, x.shape[-1]) for x in given]

    size = _chunk(states, engine.layout.size)
    stops, reasons, gained = np.full(states, np.inf), dict[int, str](), dict[int, str]()
    gaps = np.full((-(-states // size), engine.layout.contacts), np.inf)  # the least to start with, of each chunk
    unsolved = Unsolved()
    rooms: list[list[np.ndarray]] = []  # of chunks that have ended: memory that is new costs as much as a few steps

    def simulate_chunk(first: int) -> Iterator[None]:
        own = slice(first, min(first + size, states))
        own_engine = engine.of_states(batch, own)
        parts = {name: array[:, own] for name, array in recorded.items()}
        layout = engine.layout if len(controls) == 1 else engine.motor_layout
        try:
            room = rooms.pop()
        except IndexError:
            room = [engine.room(min(size, states), layout.size) for _ in range(2)]
        chunk = _Chunk(own_engine, room, state[own], stops[own], gaps[first // size], gains)
        yield from chunk.simulate([x[own] for x in controls], hold, parts)
        rooms.append(room)
        reasons.update({first + i: reason for i, reason in chunk.reasons.items()})
        gained.update({first + i: gain for i, gain in chunk.gained.items()})
        unsolved.jammed = max(unsolved.jammed, chunk.jammed)

    engine.prepare(motors=len(controls) > 1)  # once, not by each thread
    if gains != "ignore" and states:
        engine.of_states(batch, slice(0, 1)).energies(state[:1])
    for_each(simulate_chunk, range(0, states, size), thread_count())
    warn_of_overlaps(engine.robot, engine.scene, gaps.min(axis=0, initial=np.inf), engine.contacts)
    _tell_stops(batch, stops, reasons)
    _tell_gains(batch, states, gained)
    times = engine.step * hold * np.arange(count + 1)
    unsolved.note_all(recorded["residual"][1:], times)
    unsolved.warn(engine.robot, states * count)
    results = {
        name: np.moveaxis(array, 0, 1).reshape(*batch, count + 1, *sizes[name]) for name, array in recorded.items()
    }
    forces = results["forces"][..., 1:, :, :] if with_forces else None
    residuals, sweeps, touching = (results[name][..., 1:, 0] for name in ("residual", "sweeps", "touching"))
    statistics = residuals, sweeps, touching, stops.reshape(batch)
    return Rollout(times, results["q"], results["v"], *statistics, engine.contacts, forces)


def _chunk(states: int, size: int) -> int:
    """How many states to simulate together, of so many, with so many numbers each: all threads have some."""
    most = min(_CHUNK, _CHUNK_NUMBERS // size, -(-states // thread_count()))
    return max(-(-most // _LEAST_CHUNK), 1) * _LEAST_CHUNK


def _tell_stops(batch: tuple[int, ...], stops: np.ndarray, reasons: dict[int, str]) -> None:
    """Warns of states that could not go on; an error if none could."""
    if not reasons:
        return
    first = min(reasons, key=lambda state: (stops[state], state))
    where = tuple(int(i) for i in np.unravel_index(first, batch)) if batch else ()
    text = f"after {stops[first]:.6g} s{in_state(where)}: {reasons[first]}"
    if len(reasons) == len(stops):
        raise ModelError(text)
    message = f"{len(reasons)} of {len(stops)} states cannot go on, the first {text}; the others do"
    warnings.warn(message, ModelWarning, stacklevel=4)


def _tell_gains(batch: tuple[int, ...], states: int, gained: dict[int, str]) -> None:
    """Warns of states that have gained energy and go on."""
    if gained:
        first = min(gained)
        where = tuple(int(i) for i in np.unravel_index(first, batch)) if batch else ()
        message = f"{len(gained)} of {states} states gain energy; the first{in_state(where)}: {gained[first]}"
        warnings.warn(message, ModelWarning, stacklevel=4)


class _Chunk:
    """States that are simulated together.

    Attributes:
        reasons: why states could not go on, by their number.
        gained: of those that go on, which have gained energy.
        jammed: the deepest overlap that was left as it is, m; see `StepStatus`.
    """

    def __init__(
        self,
        engine: Engine,
        room: Sequence[np.ndarray],
        states: np.ndarray,
        stops: np.ndarray,
        gaps: np.ndarray,
        gains: str,
    ) -> None:
        """Starts from some states.

        Args:
            engine: takes the steps.
            room: memory for the results of a step and the one before, of these states or more; see `Engine.room`.
            states: (n, layout.state), to start from.
            stops: (n,), where to note when they stop.
            gaps: (contacts,), where to note the least that they start with.
            gains: what to do with those that gain energy.
        """
        self._engine, self._stops, self._gaps = engine, stops, gaps
        lanes = math.prod(room[0].shape[1:-1])
        self._results = [own[: -(-len(states) // lanes)] for own in room]
        self._batch = self._results[0].shape[:-1]
        self._states = self._start = self._laid_out(states)
        self.reasons: dict[int, str] = {}
        self.gained: dict[int, str] = {}
        self.jammed = 0.0
        self._ledger, self._gains = None if gains == "ignore" else Ledger(engine, self._batch), gains

    def _laid_out(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of states, (n, ...), as steps take them; lanes that are to spare have the last state."""
        spare = math.prod(self._batch) - len(rows)
        padded = rows if not spare else np.concatenate([rows, np.repeat(rows[-1:], spare, axis=0)])
        return padded.reshape(*self._batch, *rows.shape[1:])

    def _rows(self, array: np.ndarray) -> np.ndarray:
        """The reverse: those of all states, (n, ...)."""
        if len(self._batch) == 1:
            return array
        return array.reshape(math.prod(self._batch), *array.shape[len(self._batch) :])[: len(self._stops)]

    def simulate(self, controls: Sequence[np.ndarray], hold: int, recorded: dict[str, np.ndarray]) -> Iterator[None]:
        """Simulates from start to end, and writes what comes of each control to `recorded`; yields after each step."""
        engine, places = self._engine, self._engine.layout.places
        controls = [self._laid_out(x) for x in controls]
        for name in ("q", "v"):
            recorded[name][0] = self._rows(self._states[..., places[name]])
        for t in range(controls[0].shape[-2]):
            residual, sweeps = recorded["residual"][t + 1], recorded["sweeps"][t + 1]
            residual[:] = sweeps[:] = 0.0
            for i in range(hold):
                self._step([x[..., t, :] for x in controls], t * hold + i)
                result = self._results[0]
                if not t and not i:
                    self._gaps[:] = self._rows(result[..., places["gaps"]]).min(axis=0)
                np.maximum(residual, self._rows(result[..., places["residual"]]), out=residual)
                self.jammed = max(self.jammed, float(result[..., places["jammed"]].max()))
                taken = result[..., places["sweeps"]] + result[..., places["iterations"]]
                np.maximum(sweeps, self._rows(taken), out=sweeps)
                yield
            for name in ("q", "v", "touching"):
                recorded[name][t + 1] = self._rows(self._results[0][..., places[name]])
            if "forces" in recorded:
                recorded["forces"][t + 1] = self._rows(engine.forces(self._results[0]))
            if self.reasons:
                for array in recorded.values():
                    array[t + 1, self._stops < np.inf] = np.nan

    def _step(self, controls: Sequence[np.ndarray], steps: int) -> None:
        """One step of all states, after some. Those that cannot go on start anew, so that numbers stay finite."""
        self._results.reverse()
        result, size, time = self._results[0], self._engine.layout.state, steps * self._engine.step
        failed = self._engine.advance_batch(self._states, controls[0], result, *controls[1:])
        if failed is not None and self._ledger is not None:  # what has failed may have gained energy before
            self._look_at_energy(self._ledger, self._states, time)
        if self._ledger is not None:
            self._ledger.add_work(self._states, result, controls[0])
            if (steps + 1) % EVERY == 0:
                self._look_at_energy(self._ledger, result[..., :size], time + self._engine.step)
        if failed is not None:
            for i in np.flatnonzero(self._rows(failed) & (self._stops == np.inf)):
                self._stops[i], at = time, np.unravel_index(i, self._batch)
                one = self._engine.of_states((len(self._stops),), int(i))
                self.reasons[int(i)] = why_not(one, self._states[at], result[at])
            result[failed] = 0.0
            result[failed, :size] = self._start[failed]
        self._states = result[..., :size]

    def _look_at_energy(self, ledger: Ledger, states: np.ndarray, time: float) -> None:
        """Stops states that have gained energy, once the step is taken, or notes them."""
        gained, too_much = (self._rows(own) for own in ledger.gained(states))
        for i in np.flatnonzero(too_much & (self._stops == np.inf)):
            message = gain_told(self._engine, time, float(gained[i]), states[np.unravel_index(i, self._batch)])
            if self._gains == "warn":
                self.gained.setdefault(int(i), message)
            else:
                self._stops[i] = time
                self.reasons[int(i)] = f'{message}; on_energy_gain="warn" goes on'
