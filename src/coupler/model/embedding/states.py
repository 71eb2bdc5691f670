"""Configurations of a robot: closing them, packing them from names, drawing them at random, and judging them.

Everything here works on the positions p and velocities w of all joints; see coordinates.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.graph import Executable, Program, compile
from coupler.model.embedding.assembly import described, outside_limits, what_is_open
from coupler.model.embedding.choice import pivots
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.motion import Motion
from coupler.model.embedding.newton import newton_program
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.tolerances import CLOSED, GIVEN, MADE_CLOSED, SINGULAR, TINY, WITHIN_LIMITS
from coupler.model.wording import in_state, listed

_WELL = 0.05  # coordinates are well away from singular where their quality is above this part of what it usually is
_LARGEST = 48  # rows of a cluster that Newton's program solves for; larger ones are closed by NumPy
_AT_LIMIT = 0.4  # of the positions of samples: what comes near each other does so there more often than between
_DRAWS = 8  # how many configurations are drawn at once
_TRIES, _STRICT = 16, 12  # how often that is done for loops that have none yet, and in how many of these limits count
_READABLE = 7.0  # a quaternion is taken, and normalized, if its length is within this of 1 as a logarithm: 1000 times
_NEARLY_SINGULAR = 0.2  # of its usual quality: where a loop's rates are less independent, a motion may end
_HALVINGS = 30  # of a way, to find how far on it loops close
_SHORT, _STEPS = 0.2, 40  # the length of a step, rad or m, that stays on a branch, and how many are made


class States:
    """The configurations of a robot.

    Attributes:
        origin: the states that these are those of other parameters of, whose programs they share; see `with_given`.
    """

    origin: States | None = None

    def __init__(self, embedding: Embedding, neutral: np.ndarray) -> None:
        self.embedding, self.neutral = embedding, neutral.copy()
        self.neutral.setflags(write=False)
        self.closure, self.tree = embedding.closure, embedding.tree
        self.motion = Motion(self.tree, compiled=True)
        loops = zip(self.closure.loops, embedding.choices, embedding.explicit, strict=True)
        self._implicit = {
            i: loop.keeping(choice.rows) for i, (loop, choice, explicit) in enumerate(loops) if not explicit
        }

    def with_given(self, parameters: np.ndarray) -> States:
        """The same states, with programs that are given these parameters; see variants.py."""
        other, embedding, closure = copy(self), copy(self.embedding), copy(self.closure)
        other.origin, embedding.origin, closure.origin = self, self.embedding, self.closure
        other.tree = closure.tree = replace(self.tree, given=parameters)
        other.embedding, other.closure, embedding.closure = embedding, closure, closure
        return other

    @cached_property
    def _newton(self) -> Executable:
        return compile(self.closing_program) if self.origin is None else self.origin._newton

    @cached_property
    def closing_program(self) -> Program:
        """(p, step, weight) → q, φ: Newton's way to a closed configuration, see `newton_program`.

        Raises:
            ModelError: for clusters with too many constraints for one program.
        """
        for loop in self._implicit.values():
            if loop.kept > _LARGEST:
                raise ModelError(
                    f"{described(loop, self.tree)}: {loop.kept} constraints are too many to be closed within a "
                    f"program, which takes {_LARGEST}"
                )
        return newton_program(self.tree, [*self._implicit.values()])

    @cached_property
    def _is_too_large(self) -> bool:
        """Whether a cluster has too many constraints for Newton's program."""
        return any(loop.kept > _LARGEST for loop in self._implicit.values())

    @cached_property
    def dependent(self) -> np.ndarray:
        """For each entry of w, 1 where it follows from others, else 0."""
        weight = np.ones(self.tree.nv)
        weight[self.embedding.v_index] = 0.0
        return weight

    @cached_property
    def _usual_quality(self) -> np.ndarray:
        """For each loop how far its coordinates are from singular, where nothing is special."""
        usual = self.embedding.quality(self.neutral)
        pairs = zip(self.embedding.choices, self.embedding.explicit, usual, strict=True)
        return np.array([neutral if explicit else choice.quality for choice, explicit, neutral in pairs])

    def moved(self, p: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Closed positions after moving from p with w: independent ones exactly, the others as the loops demand."""
        q = self.closed(p, w, self.dependent, "the others follow the independent ones, which may be out of reach")
        if self.embedding.solutions:
            q = self.embedding.positions(q[..., self.embedding.q_index])
            self.check_solved(q)
        return q

    def closed(self, p: np.ndarray, step: np.ndarray, weight: np.ndarray, condition: str = "") -> np.ndarray:
        """Closed positions near integrate(p, step), where entries of weight 0 are not moved any further.

        Newton's method is tried first; where it fails, the slower and surer one of `Closure.assemble`.

        Args:
            p: where to start.
            step: the velocities with which p is moved first.
            weight: for each entry of w, how willingly it moves.
            condition: what is asked besides, for a message.

        Raises:
            ModelError: for loops that stay open, in one state or in any of a batch.
        """
        if not self._implicit:
            return self.motion.integrate(p, step)
        q, failed = self._approach(p, step, weight)
        if failed.any():
            start = np.broadcast_to(self.motion.integrate(p, step), q.shape)[failed]
            closure = self.closure.of_states(q.shape[:-1], failed)
            q[failed] = closure.assemble(start, np.broadcast_to(weight, (*q.shape[:-1], len(weight)))[failed])
            self.check_closed(q, condition)
        return q

    def _approach(self, p: np.ndarray, step: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions by Newton's method, and for which states it failed; for all where clusters are too large for it."""
        if self._is_too_large:
            q = self.motion.integrate(p, step)
            return q, np.ones(q.shape[:-1], bool)
        q, phi = self._newton(p, step, weight, *self.tree.inputs_of(self._newton))
        return q, ~(np.abs(phi).max(axis=-1) < MADE_CLOSED)

    def check_quaternions(self, p: np.ndarray, tolerance: float = _READABLE) -> None:
        """Refuses orientations whose quaternions are too long or too short, by the logarithm of their length."""
        for link in self.motion.turning:
            entries = self.tree.positions(link)[-4:]
            with np.errstate(all="ignore"):
                length = np.linalg.norm(p[..., entries], axis=-1)
            wrong = ~(np.abs(np.log(np.maximum(length, TINY))) < tolerance)
            if wrong.any():
                state = [int(i) for i in np.argwhere(wrong)[0]]
                raise ModelError(
                    f"joint {self.tree.links[link].joint!r}: its quaternion has the length {length[tuple(state)]:.6g}"
                    f"{in_state(state)}; it must be 1; robot.close(q) makes it so"
                )

    def check_solved(self, p: np.ndarray) -> None:
        """Refuses positions that a coupling's solution does not give."""
        if self.embedding.solutions and not np.isfinite(p).all():
            self.check_closed(p)

    def check_closed(self, p: np.ndarray, condition: str = "") -> None:
        """Refuses positions at which a loop is open."""
        if not self.closure.loops:
            return
        phi = self.closure.at(p)[0]
        gaps = self.closure.gaps(phi)
        wrong = np.argwhere(~(gaps < CLOSED))
        if wrong.size:
            *state, i = (int(x) for x in wrong[0])
            what = described(self.closure.loops[i], self.tree)
            finite = np.isfinite(gaps[tuple(wrong[0])])
            here = phi[tuple(state)] if finite else p[tuple(state)]
            reason = what_is_open(self.closure, i, here) if finite else self._no_solution(here)
            why = f"; {condition}" if condition else ""
            raise ModelError(f"{what} does not close{in_state(state)}: {reason}{why}")

    def _no_solution(self, p: np.ndarray) -> str:
        """That there is no solution at positions of one state, and which joints do not reach, if a γ can tell."""
        for solution in self.embedding.solutions:
            beyond_reach = getattr(solution.function.function, "beyond_reach", None)
            joints = beyond_reach(p[self.tree.positions_of(solution.inputs)]) if beyond_reach else ()
            if joints:
                names = listed(self.tree.links[solution.outputs[number]].joint for number in joints)
                return (
                    f"there is no solution: {names} cannot reach from one end of their leg to the other; on the way "
                    f"from the neutral configuration they reach up to {self._last_reached(solution.inputs, p)}"
                )
        return "there is no solution"

    def _last_reached(self, links: Sequence[int], p: np.ndarray) -> str:
        """The positions of joints furthest on the way from neutral to positions of one state at which loops close."""
        entries, goal = self.tree.positions_of(links), self.neutral.copy()
        goal[entries] = p[entries]
        way, near, far = self.motion.difference(self.neutral, goal), 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            q = self.motion.integrate(self.neutral, middle * way)[self.embedding.q_index]
            near, far = (middle, far) if np.isfinite(self.embedding.positions(q)).all() else (near, middle)
        at = self.motion.integrate(self.neutral, near * way)
        told = [(self.tree.links[link].joint, at[self.tree.positions(link)]) for link in links]
        return ", ".join(f"{joint} {' '.join(f'{x:.4g}' for x in position)}" for joint, position in told)

    def check_regular(self, p: np.ndarray) -> None:
        """Refuses positions at which the independent velocities do not determine the others."""
        wrong = np.argwhere(~(self.embedding.quality(p) > SINGULAR))
        if not wrong.size:
            return
        *state, i = (int(x) for x in wrong[0])
        loop, choice = self.closure.loops[i], self.embedding.choices[i]
        K = self.closure.at(p[tuple(state)])[1][self.closure.places[i][1][choice.rows]]
        names = [self.tree.joint_of(int(column)) for column in loop.columns]
        chosen = listed(dict.fromkeys(names[j] for j in choice.independent))
        what = f"{described(loop, self.tree)} is singular{in_state(state)}"
        if not np.isfinite(K).all():
            raise ModelError(f"{what}: {chosen} does not determine the velocities of the others")
        sigma = np.linalg.svd(K, compute_uv=False)
        if sigma[-1] <= SINGULAR * sigma[0]:
            raise ModelError(f"{what}: it has more freedoms there than elsewhere, whatever coordinates are chosen")
        others = np.setdiff1d(np.arange(len(names)), pivots(K, len(choice.rows)))
        better = listed(dict.fromkeys(names[j] for j in others))
        raise ModelError(f"{what}: {chosen} does not determine the others; choose {better} as independent instead")

    def extra_freedoms(self, p: np.ndarray) -> str:
        """Which loop without a solution has more freedoms at positions p, of one state, than elsewhere, or nearly so.

        Nothing, if none has.
        """
        qualities: dict[str, float] = {}
        for i, loop in self._implicit.items():
            entries = self.closure.places[i][1][self.embedding.choices[i].rows]
            K_at_p, K_at_neutral = (self.closure.at(x)[1][entries] for x in (p, self.neutral))
            quality, normal = (
                sigma[-1] / sigma[0] for sigma in (_singular_values(K_at_p), _singular_values(K_at_neutral))
            )
            if quality < _NEARLY_SINGULAR * normal:
                qualities[described(loop, self.tree)] = quality
        return min(qualities, key=lambda name: qualities[name]) if qualities else ""

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Closed positions away from singularities and, wherever such are found, within limits."""
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
        """About as many closed positions within limits, many of them at limits; fewer where loops seldom close."""
        p = np.stack([self.motion.random(rng) for _ in range(count)])
        limits = np.where(rng.random(p.shape) < 0.5, *self.motion.limits)
        p = np.where((rng.random(p.shape) < _AT_LIMIT) & np.isfinite(limits), limits, p)
        if self._implicit:
            draws, goods = zip(*(self._draw(rng, strict=True) for _ in range(-(-count // _DRAWS))), strict=True)
            drawn, good = np.concatenate(draws), np.concatenate(goods)
            p = p[: good.sum(axis=0).min()]  # as many as there are for each loop, which do not mind each other
            for i in range(good.shape[1]):
                own = self.closure.loop_of_position == i
                p[:, own] = drawn[good[:, i]][: len(p), own]
        p = self.embedding.positions(p[:, self.embedding.q_index])
        return p[np.isfinite(p).all(axis=1)]

    def _draw(self, rng: np.random.Generator, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        """Positions drawn at random and closed, and for each draw and loop whether it is good."""
        goals = np.stack([self.motion.random(rng) for _ in range(_DRAWS)])
        way = rng.uniform(0.0, 1.0, (_DRAWS, 1)) * self.motion.difference(self.neutral, goals)
        drawn = self.motion.integrate(self.neutral, way)
        drawn = self.embedding.positions(drawn[:, self.embedding.q_index])
        if self._implicit:
            drawn, failed = self._approach(drawn, np.zeros(way.shape[1]), np.ones(way.shape[1]))
            if failed.all():
                drawn = self.closure.assemble(drawn)
        good = self.closure.gaps(self.closure.at(drawn)[0]) < MADE_CLOSED
        good &= self.embedding.quality(drawn) > _WELL * self._usual_quality
        if strict:
            outside = outside_limits(self.tree, drawn) > WITHIN_LIMITS
            for i, loop in enumerate(self.closure.loops):
                good[:, i] &= ~outside[:, self.tree.positions_of(loop.links)].any(axis=1)
        return drawn, good

    def packed(self, values: Mapping[str, Any], number: Mapping[str, int]) -> np.ndarray:
        """Closed positions with these joints where they are given, and the others near neutral."""
        given = {joint: shaped(joint, value, self.tree.links[number[joint]].kind.nq) for joint, value in values.items()}
        p = np.broadcast_to(self.neutral, (*batch_of(given), len(self.neutral))).copy()
        for joint, value in given.items():
            p[..., self.tree.positions(number[joint])] = value
        self.check_quaternions(p)
        p = self.motion.normalize(p)
        spread = self.embedding.positions(p[..., self.embedding.q_index])
        self.check_solved(spread)
        self._check_dependent(given, number, p, spread)
        weight, hold, complete = np.ones(self.tree.nv), [], []
        for i, loop in self._implicit.items():
            named = [link for link in loop.links if self.tree.links[link].joint in given]
            if len(named) < len(loop.links):
                hold += [self.tree.links[link].joint for link in named]
                weight[self.tree.velocities_of(named)] = 0.0
            else:
                complete.append(i)
        closed = self._followed(spread, weight, held(hold))
        if complete:  # what is closed already is left as it is, to the last bit
            gaps = self.closure.gaps(self.closure.at(spread)[0])
            for i in complete:
                own, fits = self.closure.loop_of_position == i, gaps[..., i, None] < CLOSED
                closed[..., own] = np.where(fits, spread[..., own], closed[..., own])
        return closed

    def _followed(self, p: np.ndarray, weight: np.ndarray, condition: str) -> np.ndarray:
        """Closed positions with what has weight 0 as in p, on the branch that leads there from the neutral ones.

        A loop may close in several ways. Small steps from neutral stay on its branch; where they get stuck, p is closed
        as it stands.
        """
        given, nothing = self._positions_of(weight == 0.0), np.zeros(len(weight))
        way = np.where(weight == 0.0, self.motion.difference(self.neutral, p), 0.0)
        steps = min(int(np.ceil(np.abs(way).max(initial=0.0) / _SHORT)), _STEPS)
        try:
            follower = np.where(given, self.neutral, p)
            for _ in range(steps):
                follower = self.closed(follower, way / steps, weight)
            return self.closed(np.where(given, p, follower), nothing, weight)
        except ModelError:
            return self.closed(p, nothing, weight, condition)

    def _positions_of(self, entries: np.ndarray) -> np.ndarray:
        """Which entries of p belong to joints that have some of these entries of w."""
        sizes = np.diff(self.tree.q_start)
        joints = np.array([entries[self.tree.velocities(link)].any() for link in range(len(sizes))])
        return np.repeat(joints, sizes)

    def _check_dependent(self, given: Mapping[str, Any], number: Mapping[str, int], p: Any, spread: Any) -> None:
        """What is given for a dependent joint must be what its solution says."""
        for joint in given:
            entries = self.tree.positions(number[joint])
            apart = np.abs(p[..., entries] - spread[..., entries]).max()
            if not apart < GIVEN:
                cluster = [own for own in self.embedding.solutions if number[joint] in own.dependent]
                inputs = listed(self.tree.links[link].joint for own in cluster for link in own.inputs)
                raise ModelError(
                    f"joint {joint!r} depends on {inputs}, which put it elsewhere, by {apart:.3g}; leave it out, or "
                    "make it an actuator and ask for a configuration of actuators"
                )


def _singular_values(K: np.ndarray) -> np.ndarray:
    return np.linalg.svd(np.nan_to_num(K), compute_uv=False) + TINY


def shaped(joint: str, value: Any, size: int) -> np.ndarray:
    """Positions or velocities of a joint, with their entries along the last axis; those of a single entry have none."""
    array = numbers(f"joint {joint!r}: what it is given", value, () if size == 1 else (size,), batch=True)
    return array[..., None] if size == 1 else array


def batch_of(values: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """The leading dimensions that arrays have in common."""
    try:
        return np.broadcast_shapes(*(value.shape[:-1] for value in values.values()))
    except ValueError:
        shapes_by_name = ", ".join(f"{name}: {value.shape[:-1]}" for name, value in values.items())
        raise ModelError(f"leading (batch) dimensions do not fit together: {shapes_by_name}") from None


def held(joints: Iterable[str]) -> str:
    """That joints are held, for messages; nothing where none is."""
    names = listed(joints)
    return f"held is {names}" if names else ""
