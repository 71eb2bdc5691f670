"""Compiled steps of a robot in a scene, for one state and for batches, with errors that explain themselves."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np

from coupler.compiled import on_bodies, remembered
from coupler.contact.candidates import Candidates, given_row
from coupler.contact.formulations import touches
from coupler.contact.pairs import Pair, pairs_of
from coupler.contact.restitution import Restitution
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step_program import contact_step_program
from coupler.contact.stepping import gap_seen
from coupler.graph import Executable, compile
from coupler.model import Free, ModelError, ModelWarning, Robot
from coupler.model.numbers import numbers
from coupler.model.words import counted, in_state, listed

__all__ = ["Engine", "engine_of"]

_MOST = 96  # candidate contacts: their A has (3 · 96)² entries, for each state that is in work
_DEEP = 1e-4  # m: from here on an overlap at the start is told


def engine_of(robot: Robot, step: float, contacts: str | Iterable[str], **options: Any) -> Engine:
    """The engine of a robot for these options, made once."""
    names = contacts if isinstance(contacts, str) else tuple(contacts)
    key = Engine, step, names, *options.items()
    try:
        return remembered(robot, key, Engine, step, names, *options.values())
    except TypeError:  # something is of a wrong type, and cannot be a key: the engine says what
        return Engine(robot, step, names, *options.values())


class Engine:
    """A robot that may touch, in steps of one length.

    Attributes:
        robot: which.
        step: h, s.
        scene: what a step takes into account.
        layout: where vectors have what.
        contacts: the names of all candidate contacts.
    """

    def __init__(
        self,
        robot: Robot,
        step: float,
        contacts: str | Sequence[str],
        friction: float,
        restitution: Restitution | float | None,
        penetration: str | float,
        limits: bool,
        tolerance: float,
        sweeps: int,
    ) -> None:
        """Args: see `Simulation`."""
        self.robot, self.step = robot, float(numbers("step", step, ()))
        if self.step <= 0.0:
            raise ModelError(f"step must be above zero, got {self.step:g} s")
        if restitution is not None and not isinstance(restitution, Restitution):
            restitution = Restitution(restitution)
        gap_seen(0.0, penetration)  # which says what is wrong with it
        if not isinstance(sweeps, int | np.integer) or sweeps < 1:
            raise ModelError(f"sweeps must be a whole number from 1 on, got {sweeps!r}")
        tolerance = float(numbers("tolerance", tolerance, (), least=0.0))
        pairs = _chosen(pairs_of(robot, friction, restitution=restitution), contacts)
        self.scene = ContactScene(tuple(pairs), self.step, tolerance, int(sweeps), limits, penetration=penetration)
        self.layout = Layout(robot, self.scene)
        candidates = Candidates(robot, pairs)
        self.contacts, self._searched = tuple(candidates.names), candidates.searched
        self._check_size()

    def _check_size(self) -> None:
        if self.layout.contacts > _MOST:
            pairs = sorted(self.scene.pairs, key=lambda pair: -pair.count)
            most = [f"{pair.one.name} on {pair.other.name} ({pair.count})" for pair in pairs[:3]]
            raise ModelError(
                f"robot {self.robot.name!r} has {self.layout.contacts} candidate contacts, and a step takes {_MOST}: "
                f'name those that matter, as in contacts=["*foot*"], or use groups of shapes; most are of '
                f"{', '.join(most)}"
            )

    def warn_of_nothing(self) -> None:
        """Tells that a robot will fall for ever."""
        if not self.layout.contacts and any(isinstance(joint.kind, Free) for joint in self.robot.joints):
            text = f"robot {self.robot.name!r} floats, and can touch nothing: robot.with_floor() adds a floor"
            warnings.warn(text, ModelWarning, stacklevel=3)

    @property
    def short(self) -> Any:
        """(state, tau) → what a step leads to, or None if that takes another way: see `Executable.one`."""
        return _no_short_way if self._searched or "plain" not in self.__dict__ else self.plain.one

    @cached_property
    def plain(self) -> Executable:
        """(state, tau) → what a step leads to; with contacts as a third input, if some are searched for."""
        return compile(contact_step_program(self.robot, self.scene), backend=self.robot.backend)

    @cached_property
    def pushed(self) -> Executable:
        """The same with f_ext as the last input."""
        scene = replace(self.scene, external=True)
        return compile(contact_step_program(self.robot, scene), backend=self.robot.backend)

    def start(self, q: Any, v: Any) -> np.ndarray:
        """States to start from, (..., state), without impulses.

        Raises:
            ModelError: for a configuration that the robot cannot have.
        """
        robot = self.robot
        q = np.array(robot.neutral() if q is None else numbers("q", q, (robot.nq,), batch=True))
        v = np.zeros(robot.nv) if v is None else numbers("v", v, (robot.nv,), batch=True)
        try:
            shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        except ValueError:
            raise ModelError(
                f"q and v have leading dimensions {q.shape[:-1]} and {v.shape[:-1]}, which differ"
            ) from None
        if not shape:  # states of a batch are judged by their first step
            robot.check(q)
        state = np.zeros((*shape, self.layout.state))
        state[..., self.layout.places["q"]], state[..., self.layout.places["v"]] = q, v
        return state

    def warn_of_overlaps(self, q: np.ndarray) -> None:
        """Tells what overlaps at the start."""
        found = [(touch.contact.gap, name) for touch, name in self._touches(q) if touch.contact.gap < -_DEEP]
        if found:
            gap, name = min(found)
            text = (
                f"robot {self.robot.name!r} overlaps at the start in {counted(len(found), 'contact')}, {name} by "
                f"{-gap * 1e3:.3g} mm, and the first step parts them with {-gap / self.step:.3g} m/s; start elsewhere, "
                'or let overlaps shrink slowly with penetration="limited"'
            )
            warnings.warn(text, ModelWarning, stacklevel=4)

    def _touches(self, q: np.ndarray) -> Any:
        return zip(touches(self.robot, q, self.scene.pairs), self.contacts, strict=True)

    def advance(self, state: np.ndarray, tau: Any, f_ext: Any = None) -> np.ndarray:
        """What a step leads to, (..., layout.size).

        Args:
            state: (..., layout.state).
            tau: (..., nv), forces at independent joints.
            f_ext: (..., bodies, 6), forces on bodies about the world's origin; none if not given.

        Raises:
            ModelError: for arguments of a wrong shape or that are not finite, and where a step is not possible.
        """
        given = self._forces("tau", tau, state.shape[:-1], (self.robot.nv,)), *self._given(state)
        if f_ext is None:
            after = self.plain(state, *given)
        else:
            loads = self._forces("f_ext", f_ext, state.shape[:-1], (len(self.robot.bodies), 6))
            after = self.pushed(state, *given, on_bodies(self.robot, loads))
        if not np.isfinite(after).all():
            self._explain(state, after)
        return after

    def advance_batch(self, states: np.ndarray, tau: np.ndarray, after: np.ndarray) -> None:
        """The same for finite arrays of one leading dimension, written to an array: new memory costs time."""
        self.plain(states, tau, *self._given(states), out=after)
        if not all(np.isfinite(after[:, self.layout.places[name]]).all() for name in ("v", "residual")):
            wrong = int(np.argmin(np.isfinite(after).all(axis=1)))
            self._explain(states[wrong], after[wrong])

    def _given(self, states: np.ndarray) -> list[np.ndarray]:
        """The contacts that are searched for, state by state; nothing, if there are none."""
        if not self._searched:
            return []
        q = states[..., self.layout.places["q"]]
        rows = [
            np.concatenate([given_row(touch.contact) for touch in touches(self.robot, one, self._searched)])
            for one in q.reshape(-1, self.robot.nq)
        ]
        return [np.array(rows).reshape(*q.shape[:-1], -1)]

    def _forces(self, name: str, given: Any, batch: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
        """Forces of one state, or of a batch, which may be the same for all."""
        values = numbers(name, np.zeros(shape) if given is None else given, shape, batch=bool(batch))
        try:
            return np.broadcast_to(values, (*batch, *shape))
        except ValueError:
            raise ModelError(f"{name} has the shape {values.shape}, for states of {batch}") from None

    def _explain(self, state: np.ndarray, after: np.ndarray) -> None:
        """Raises what is wrong with a step that has no finite result."""
        where = [int(i) for i in np.argwhere(~np.isfinite(after).all(axis=-1))[0]] if after.ndim > 1 else []
        own = state[tuple(where)]
        try:
            self.robot.check(own[self.layout.places["q"]])
        except ModelError as error:
            raise ModelError(f"{error}{in_state(where)}") from None
        fast = float(np.abs(own[self.layout.places["v"]]).max(initial=0.0))
        raise ModelError(
            f"robot {self.robot.name!r}: a step of {self.step:g} s is not possible{in_state(where)}: a loop cannot "
            f"close, or numbers grow out of bounds (the largest velocity is {fast:.3g}); shorter steps or weaker "
            "forces may help"
        )

    def forces(self, after: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): contact forces on the first body of each pair, along the world's axes, N."""
        n, places = self.layout.contacts, self.layout.places
        impulses = after[..., places["impulses"]][..., : 3 * n].reshape(*after.shape[:-1], n, 3)
        frames = after[..., places["frames"]].reshape(*after.shape[:-1], n, 3, 3)
        return np.einsum("...ni,...nij->...nj", impulses, frames) / self.step

    def points(self, after: np.ndarray) -> np.ndarray:
        """(..., contacts, 3): where contacts are, m."""
        return after[..., self.layout.places["points"]].reshape(*after.shape[:-1], self.layout.contacts, 3)


def _no_short_way(state: np.ndarray, tau: Any) -> None:
    """Gives no result."""


def _chosen(pairs: Sequence[Pair], contacts: str | Sequence[str]) -> list[Pair]:
    """The pairs that are called like one of the patterns, or a shape of which is."""
    patterns = [contacts] if isinstance(contacts, str) else list(contacts)
    names = [(pair.one.name, pair.other.name, pair.name) for pair in pairs]
    for pattern in patterns:
        if pattern != "*" and not any(fnmatchcase(name, pattern) for both in names for name in both):
            known = listed(dict.fromkeys(name for *both, _ in names for name in both))
            raise ModelError(f"contacts: nothing that may touch is called {pattern!r}; there are {known or 'none'}")
    return [
        pair
        for pair, both in zip(pairs, names, strict=True)
        if any(fnmatchcase(name, pattern) for pattern in patterns for name in both)
    ]
