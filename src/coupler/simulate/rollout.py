"""Many robots at once, under controls that are known beforehand: batches in lanes and threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.pairs import FRICTION
from coupler.contact.restitution import Restitution
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.simulate.engine import Engine, engine_of

__all__ = ["Rollout", "rollout"]


@dataclass(frozen=True, eq=False)
class Rollout:
    """What becomes of states under controls, T of them, for a batch of any dimensions.

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
    step: float = 1e-3,
    *,
    hold: int = 1,
    forces: bool = False,
    contacts: str | Iterable[str] = "*",
    friction: float = FRICTION,
    restitution: Restitution | float | None = None,
    penetration: str | float = "position",
    limits: bool = True,
    tolerance: float = 1e-9,
    sweeps: int = 200,
) -> Rollout:
    """Simulates a batch of states, each under its own controls, or all under the same.

    Args:
        robot: with what it may touch, as for `Simulation`.
        q0: (..., nq), where to start.
        v0: (..., nv).
        controls: (..., T, nv), forces at independent joints.
        step: h, s.
        hold: for how many steps each control is held.
        forces: whether contact forces are wanted.
        contacts, friction, restitution, penetration, limits, tolerance, sweeps: as for `Simulation`.

    Raises:
        ModelError: for arguments of wrong shape or that are not finite, and where a state cannot go on; it is named.
    """
    engine = engine_of(
        robot,
        step,
        contacts,
        friction=friction,
        restitution=restitution,
        penetration=penetration,
        limits=limits,
        tolerance=tolerance,
        sweeps=sweeps,
    )
    if not isinstance(hold, int | np.integer) or hold < 1:
        raise ModelError(f"hold must be a whole number from 1 on, got {hold!r}")
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
    return _rolled(engine, np.broadcast_to(state, (*batch, state.shape[-1])), given, hold, forces)


def _rolled(engine: Engine, state: np.ndarray, controls: np.ndarray, hold: int, with_forces: bool) -> Rollout:
    batch, count, n = state.shape[:-1], controls.shape[-2], engine.layout.contacts
    places, size, nv = engine.layout.places, engine.layout.state, engine.robot.nv
    q = np.empty((*batch, count + 1, engine.robot.nq))
    v, residuals = np.empty((*batch, count + 1, nv)), np.empty((*batch, count))
    forces = np.empty((*batch, count, n, 3)) if with_forces else None
    state = np.ascontiguousarray(state).reshape(-1, size)  # one leading dimension goes straight to machine code
    flat = int(np.prod(batch, dtype=int))
    controls = np.broadcast_to(controls, (*batch, count, nv)).reshape(flat, count, nv)
    for name, target in (("q", q), ("v", v)):
        target[..., 0, :] = state[:, places[name]].reshape(*batch, -1)
    memory = [np.empty((flat, engine.layout.size)) for _ in range(2)]  # of this step and of the one before
    for t in range(count):
        after = _held(engine, state, controls[:, t], hold, t, memory, batch)
        state = after[:, :size]
        for name, target in (("q", q), ("v", v)):
            target[..., t + 1, :] = after[:, places[name]].reshape(*batch, -1)
        if forces is not None:
            forces[..., t, :, :] = engine.forces(after).reshape(*batch, n, 3)
        residuals[..., t] = after[:, places["residual"]].reshape(batch)
    times = engine.step * hold * np.arange(count + 1)
    return Rollout(times, q, v, residuals, engine.contacts, forces)


def _held(
    engine: Engine,
    states: np.ndarray,
    tau: np.ndarray,
    hold: int,
    t: int,
    memory: list[np.ndarray],
    batch: tuple[int, ...],
) -> np.ndarray:
    """What states lead to under the control number t."""
    for i in range(hold):
        memory.reverse()
        try:
            engine.advance_batch(states, tau, memory[0])
        except ModelError as error:
            time = (t * hold + i) * engine.step
            within = f", of a batch of {batch}" if len(batch) > 1 else ""
            raise ModelError(f"after {time:.6g} s{within}: {error}") from None
        states = memory[0][:, : engine.layout.state]
    return memory[0]
