"""Many states of a robot at once, under controls that are known beforehand: batches in lanes and threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.compiled import thread_count
from coupler.contact.restitution import Restitution
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.model.wording import in_state
from coupler.simulate.engine import Engine, engine_of
from coupler.simulate.options import SimulationOptions, positive_integer
from coupler.threads import for_each

__all__ = ["Rollout", "rollout"]

_CHUNK = 256  # states that a thread simulates from start to end, so that their 300 kB stay in its cache


@dataclass(frozen=True, eq=False)
class Rollout:
    """The motion of a batch of states, with any leading dimensions, under T controls each.

    Attributes:
        times: (T + 1,), s.
        q: (..., T + 1, nq), the start first, and then after each control.
        v: (..., T + 1, nv).
        residuals: (..., T), by how much the last step of each control missed the laws of contact, m/s.
        contacts: the names of the candidate contacts.
        forces: (..., T, contacts, 3), if asked for: contact forces in the last step of each control, on the first body
            of each pair, along the world's axes, N.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    residuals: np.ndarray
    contacts: tuple[str, ...]
    forces: np.ndarray | None = None


def rollout(
    robot: Robot,
    q0: Any,
    v0: Any,
    controls: Any,
    step: float = SimulationOptions.step,
    *,
    hold: int = 1,
    forces: bool = False,
    contacts: str | Iterable[str] = SimulationOptions.contacts,
    friction: float = SimulationOptions.friction,
    restitution: Restitution | float | None = SimulationOptions.restitution,
    penetration: str | float = SimulationOptions.penetration,
    limits: bool = SimulationOptions.limits,
    tolerance: float = SimulationOptions.tolerance,
    sweeps: int = SimulationOptions.sweeps,
) -> Rollout:
    """Simulates a batch of states, each under its own controls, or all under the same.

    Args:
        robot: the robot, with what it may touch, as for `Simulation`.
        q0: (..., nq), the configurations to start from.
        v0: (..., nv), the velocities there.
        controls: (..., T, nv), forces at independent joints.
        step: the length of a step, h, s.
        hold: for how many steps each control is held.
        forces: whether contact forces are returned.
        contacts, friction, restitution, penetration, limits, tolerance, sweeps: as for `Simulation`.

    Raises:
        ModelError: for arguments of wrong shape or that are not finite, and where a state cannot go on; it is named.
    """
    options = SimulationOptions(
        step=step,
        contacts=contacts,
        friction=friction,
        restitution=restitution,
        penetration=penetration,
        limits=limits,
        tolerance=tolerance,
        sweeps=sweeps,
    )
    engine, hold = engine_of(robot, options), positive_integer("hold", hold)
    state = engine.start(q0, v0)
    given = np.asarray(controls)
    if given.ndim < 2 or given.shape[-1] != robot.nv:
        raise ModelError(f"controls must have the shape (..., T, {robot.nv}), got {given.shape}")
    given = numbers("controls", given, given.shape[-2:], batch=True)
    try:
        batch = np.broadcast_shapes(state.shape[:-1], given.shape[:-2])
    except ValueError:
        raise ModelError(
            f"q0 and v0 are states of {state.shape[:-1]}, which do not fit controls of {given.shape[:-2]}"
        ) from None
    return _in_chunks(engine, np.broadcast_to(state, (*batch, state.shape[-1])), given, hold, forces)


def _in_chunks(engine: Engine, state: np.ndarray, controls: np.ndarray, hold: int, with_forces: bool) -> Rollout:
    """Simulates all states, in chunks that threads share."""
    batch, count, states = state.shape[:-1], controls.shape[-2], int(np.prod(state.shape[:-1], dtype=int))
    sizes: dict[str, tuple[int, ...]] = {"q": (engine.robot.nq,), "v": (engine.robot.nv,), "residual": (1,)}
    if with_forces:
        sizes["forces"] = engine.layout.contacts, 3
    recorded = {name: np.empty((count + 1, states, *size)) for name, size in sizes.items()}  # time first: fast to fill
    state = np.ascontiguousarray(state).reshape(states, -1)
    controls = np.broadcast_to(controls, (*batch, *controls.shape[-2:])).reshape(states, count, engine.robot.nv)

    def simulate_chunk(first: int) -> None:
        own = slice(first, min(first + _CHUNK, states))
        parts = {name: array[:, own] for name, array in recorded.items()}
        try:
            _simulate(engine, state[own], controls[own], hold, parts)
        except _Stopped as stopped:
            where = tuple(int(i) for i in np.unravel_index(first + stopped.state, batch)) if batch else ()
            raise ModelError(f"after {stopped.time:.6g} s{in_state(where)}: {stopped}") from None

    engine.executable  # noqa: B018  (compiled once, not by each thread)
    for_each(simulate_chunk, range(0, states, _CHUNK), thread_count())
    times = engine.step * hold * np.arange(count + 1)
    results = {
        name: np.moveaxis(array, 0, 1).reshape(*batch, count + 1, *sizes[name]) for name, array in recorded.items()
    }
    forces = results["forces"][..., 1:, :, :] if with_forces else None
    return Rollout(times, results["q"], results["v"], results["residual"][..., 1:, 0], engine.contacts, forces)


class _Stopped(ModelError):
    """A state that cannot go on.

    Attributes:
        state: its number in the chunk.
        time: how far it came, s.
    """

    def __init__(self, error: ModelError, state: int, time: float) -> None:
        super().__init__(str(error))
        self.state, self.time = state, time


def _simulate(
    engine: Engine, states: np.ndarray, controls: np.ndarray, hold: int, recorded: dict[str, np.ndarray]
) -> None:
    """Simulates a chunk of states from start to end, and writes what comes of each control to `recorded`."""
    places, size = engine.layout.places, engine.layout.state
    results = [np.empty((len(states), engine.layout.size)) for _ in range(2)]  # of this step and of the one before
    for name in ("q", "v"):
        recorded[name][0] = states[:, places[name]]
    for t in range(controls.shape[1]):
        for i in range(hold):
            results.reverse()
            try:
                engine.advance_batch(states, controls[:, t], results[0])
            except ModelError as error:
                failed = int(np.argmin(np.isfinite(results[0]).all(axis=1)))
                raise _Stopped(error, failed, (t * hold + i) * engine.step) from None
            states = results[0][:, :size]
        for name in ("q", "v", "residual"):
            recorded[name][t + 1] = results[0][:, places[name]]
        if "forces" in recorded:
            recorded["forces"][t + 1] = engine.forces(results[0])
