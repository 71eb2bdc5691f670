"""Configurations of a robot, drawn at random or packed from positions by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coupler.model.embedding.closed_states import ClosedStates
from coupler.model.errors import ModelError
from coupler.model.numbers import batch_of, shaped
from coupler.model.tolerances import CLOSED, GIVEN, MADE_CLOSED, WITHIN_LIMITS
from coupler.model.wording import clause, listed

_WELL = 0.05  # configurations are well away from singular if their quality is above this part of the usual one
_AT_LIMIT = 0.4  # share of sampled positions that are at a limit: bodies come close to each other there most often
_DRAWS = 8  # configurations that are drawn at once
_TRIES, _STRICT = 16, 12  # how often that is done for loops without a good one, and in how many of these limits count
_SHORT, _STEPS = 0.2, 40  # rad or m: the length of a step that stays on its branch; and the most steps


class States(ClosedStates):
    """The configurations of a robot; see `ClosedStates`."""

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Random closed positions away from singularities and, where such are found, within limits."""
        p = self.motion.random(rng)
        owner, waiting = self.closure.loop_of_position, np.ones(len(self.closure.loops), bool)
        p[owner < len(waiting)] = self.neutral[owner < len(waiting)]
        for attempt in range(_TRIES):
            if not waiting.any():
                break
            drawn, good = self._draw(rng, strict=attempt < _STRICT)
            for i in np.flatnonzero(waiting & good.any(axis=0)):
                p[owner == i] = drawn[np.argmax(good[:, i])][owner == i]
                waiting[i] = False
        return self.closed(p, np.zeros(len(self.dependent)), self.dependent)

    def samples(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Up to `count` closed positions within limits, many of them at limits; fewer where loops seldom close."""
        p = np.stack([self.motion.random(rng) for _ in range(count)])
        limits = np.where(rng.random(p.shape) < 0.5, *self.tree.limits)
        p = np.where((rng.random(p.shape) < _AT_LIMIT) & np.isfinite(limits), limits, p)
        if self.implicit:
            draws, goods = zip(*(self._draw(rng, strict=True) for _ in range(-(-count // _DRAWS))), strict=True)
            drawn, good = np.concatenate(draws), np.concatenate(goods)
            p = p[: good.sum(axis=0).min()]  # as many as there are for every loop: loops do not depend on each other
            for i in range(good.shape[1]):
                entries = self.closure.loop_of_position == i
                p[:, entries] = drawn[good[:, i]][: len(p), entries]
        p = self.embedding.positions(p[:, self.embedding.q_index])
        return p[np.isfinite(p).all(axis=1)]

    def _draw(self, rng: np.random.Generator, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        """Random closed positions, and for each of them and each loop whether it is good."""
        goals = np.stack([self.motion.random(rng) for _ in range(_DRAWS)])
        way = rng.uniform(0.0, 1.0, (_DRAWS, 1)) * self.motion.difference(self.neutral, goals)
        drawn = self.motion.integrate(self.neutral, way)
        drawn = self.embedding.positions(drawn[:, self.embedding.q_index])
        if self.implicit:
            drawn, failed = self.approach(drawn, np.zeros(way.shape[1]), np.ones(way.shape[1]))
            if failed.all():
                drawn = self.closure.assemble(drawn)
        good = self.closure.gaps(self.closure.at(drawn)[0]) < MADE_CLOSED
        good &= self.embedding.quality(drawn) > _WELL * self.usual_quality
        if strict:
            outside = self.tree.outside_limits(drawn) > WITHIN_LIMITS
            for i, loop in enumerate(self.closure.loops):
                good[:, i] &= ~outside[:, self.tree.positions_of(loop.links)].any(axis=1)
        return drawn, good

    def packed(self, values: Mapping[str, Any], number: Mapping[str, int]) -> np.ndarray:
        """Closed positions in which these joints have the given values and the others are near neutral."""
        given = {joint: shaped(joint, value, self.tree.links[number[joint]].kind.nq) for joint, value in values.items()}
        parameters = {"parameters": self.tree.given} if self.tree.given is not None and self.closure.loops else {}
        p = np.broadcast_to(self.neutral, (*batch_of(given | parameters), len(self.neutral))).copy()
        for joint, value in given.items():
            p[..., self.tree.positions(number[joint])] = value
        self.check_quaternions(p)
        p = self.motion.normalize(p)
        spread = self.embedding.positions(p[..., self.embedding.q_index])
        self.check_solved(spread)
        self._check_dependent(given, number, p, spread)
        weight, hold, complete = np.ones(self.tree.nv), [], []
        for i, loop in self.implicit.items():
            named = [link for link in loop.links if self.tree.links[link].joint in given]
            if len(named) < len(loop.links):
                hold += [self.tree.links[link].joint for link in named]
                weight[self.tree.velocities_of(named)] = 0.0
            else:
                complete.append(i)
        closed = self._followed(spread, weight, held(hold))
        if complete:  # what is closed already stays the same to the last bit
            gaps = self.closure.gaps(self.closure.at(spread)[0])
            for i in complete:
                entries, fits = self.closure.loop_of_position == i, gaps[..., i, None] < CLOSED
                closed[..., entries] = np.where(fits, spread[..., entries], closed[..., entries])
        return closed

    def _followed(self, p: np.ndarray, weight: np.ndarray, condition: str) -> np.ndarray:
        """Closed positions with joints of weight 0 as in p, on the branch of the neutral configuration.

        A loop may close in several ways. Small steps from neutral stay on its branch; in states in which they get
        stuck, p itself is closed.
        """
        given = self._positions_of(weight == 0.0)
        way = np.where(weight == 0.0, self.motion.difference(self.neutral, p), 0.0)
        steps = min(int(np.ceil(np.abs(way).max(initial=0.0) / _SHORT)), _STEPS)
        follower, stuck = np.where(given, self.neutral, p), np.zeros((*p.shape[:-1], 1), bool)
        for _ in range(steps):
            follower, failed = self.attempted(follower, np.where(stuck, 0.0, way / steps), weight)
            stuck |= failed[..., None]
            follower = np.where(stuck, p, follower)
            if stuck.all():
                break
        nothing = np.zeros(len(weight))
        closed, failed = self.attempted(np.where(given, p, follower), nothing, weight)
        return (
            self.closed(np.where(failed[..., None], p, closed), nothing, weight, condition) if failed.any() else closed
        )

    def _positions_of(self, entries: np.ndarray) -> np.ndarray:
        """Flags for the entries of p of joints that have some of these entries of w."""
        sizes = np.diff(self.tree.q_start)
        joints = np.array([entries[self.tree.velocities(link)].any() for link in range(len(sizes))])
        return np.repeat(joints, sizes)

    def _check_dependent(self, given: Mapping[str, Any], number: Mapping[str, int], p: Any, spread: Any) -> None:
        """Raises a ModelError for a dependent joint whose given position is not the one that its solution gives."""
        for joint in given:
            entries = self.tree.positions(number[joint])
            apart = np.abs(p[..., entries] - spread[..., entries]).max(initial=0.0)
            if not apart < GIVEN:
                cluster = [solution for solution in self.embedding.solutions if number[joint] in solution.dependent]
                inputs = listed(self.tree.links[link].joint for solution in cluster for link in solution.inputs)
                raise ModelError(
                    f"joint {joint!r} depends on {inputs}, which put it elsewhere, by {apart:.3g}; leave it out, or "
                    "make it an actuator and ask for a configuration of actuators"
                )


def held(joints: Iterable[str]) -> str:
    """A phrase for messages that says which joints are held; empty if none is."""
    joints = list(joints)
    return clause(joints, "joint {} is held", "joints {} are held") if joints else ""
