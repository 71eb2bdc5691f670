"""Contact problems that sweeps have not solved: Newton's method and an interior point, as steps of a program.

Sweeps end soon where contacts are few and masses alike. They stall where heavy things stand on light ones, in stacks,
and where more points touch than are needed. There, each iteration takes one linear system (elimination.py) by one of
two rules:

- Newton's method on the laws as they are, from where the sweeps ended. It ends in a few iterations, or is given up once
  an iteration does not halve the residual.
- An interior point, predictor and corrector, from impulses that press all contacts. It comes near a solution from
  anywhere; from its sixth iteration on, each third time, Newton's method is tried from there.

Every state follows its own rule in every iteration. The best impulses of all iterations are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.answers import (
    SOFT,
    interior_disc,
    interior_normal,
    longest_in_cone,
    longest_positive,
    newton_disc,
    newton_normal,
)
from coupler.contact.blocks import Blocks, Kernel, Ways, change_of_velocities, push, shared, velocities
from coupler.contact.elimination import Elimination
from coupler.contact.relaxation import Relaxation
from coupler.graph import Buffer, View, Window, constants, fields

__all__ = ["Refinement"]

_ITERATIONS = 120  # at most, of both rules together
_NEWTON = 8.0  # iterations of Newton's method in a row
_INTERIOR = 40.0  # iterations of the interior point
_FIRST_TRY, _NEXT_TRY = 6.0, 3.0  # iterations of the interior point before Newton's method is tried, and tried again
_STALLED, _STALLS = 0.05, 3.0  # a step so short, so often in a row, ends the interior point
_SHORT = 0.2  # after a step so short, the next one only centres
_INSIDE = 0.995  # of the longest step, so that all stays inside
_LEAST_SIGMA = 1e-3
_LEFT = 10.0  # times the tolerance: what sweeps may leave

_ENDLESS = 1e30  # a length, or a residual, that is above all others
_FAR_LIMIT = 1e4  # times the largest velocity: a joint's limit beyond that plays no part

_STATE = (
    *("by_newton", "by_interior", "starts"),  # 1 for the rule that is followed, and where the second one starts
    *("limit", "least", "before", "error"),  # residuals, m/s: to reach, the best, of the last iteration, of this one
    *("tried", "turns", "left", "stalls", "centring"),  # counts of iterations, and whether the next one only centres
    *("speed", "scale"),  # how large velocities and impulses are
    *("kappa", "products", "count", "sigma", "length"),  # of the interior point
    *("better", "accepted"),  # 1 if this iteration's impulses are the best so far, and if they are gone on from
)
_CONTACT = {
    "point": 3,
    "best": 3,
    "inner": 3,
    "s": 3,
    "phi": (),
    "d_inner": 3,
    "d_s": 3,
    "d_phi": (),
    "gap": 3,
    "e0": (),
}
# Of joints, what has three entries is of friction, and of the lower and upper limit.
_JOINT = _CONTACT | {"point": 1, "best": 1, "near": 3, "part_p": 3, "part_Q": 3}


class Refinement:
    """What follows the sweeps over the active blocks of a problem."""

    def __init__(self, blocks: Blocks, columns: Ways, relaxation: Relaxation) -> None:
        builder = blocks.builder
        self._blocks, self._relaxation, self._builder, self._columns = blocks, relaxation, builder, columns
        self._system = Elimination(blocks, columns)
        self._state = {name: builder.scratch(f"refinement_{name}", 1) for name in _STATE}
        self._contacts = builder.records("refined_contact", blocks.contacts, **_CONTACT)
        self._joints = builder.records("refined_joint", blocks.joints, **_JOINT)

    def solve(self, tolerance: float, residual: Buffer, iterations: Buffer) -> None:
        """Writes the steps from impulses that sweeps have left, with that residual, to better ones.

        Args:
            tolerance: the residual to reach, m/s; times the largest entry of b, if that is above 1 m/s.
            residual: 1, m/s.
            iterations: 1, how many there were; these are added.
        """
        builder, blocks, right = self._builder, self._blocks, self._system.right
        state = fields(**{name: buffer.at(0) for name, buffer in self._state.items()})
        state |= fields(residual=residual.at(0), iterations=iterations.at(0), tolerance=constants([tolerance]))
        builder.loop(_clear_scales, state=state)
        self._run(_scale_contact, _scale_joint)
        builder.loop(_begin, state=state)
        with builder.repeat(until=_good_enough, at_most=1, state=state):
            self._run(_keep, _keep)
            with builder.repeat(until=_ended, at_most=_ITERATIONS, state=state):
                builder.loop(_clear_sums, state=state)
                self._follow_rules()
                self._run(_start_contact, _start_joint, "starting")
                blocks.sum_up(_push_contact, _push_joint, self._more)
                self._run(_multiply_contact, _multiply_joint, "interior")
                builder.loop(_average, state=state)
                self._run(_newton_contact, _newton_joint, "newton")
                self._run(_predict_contact, _predict_joint, "interior")
                self._system.factor()
                self._system.solve()
                self._run(_direct_contact, _direct_joint, "interior", right)
                builder.loop(_look_ahead, state=state)
                self._run(_foresee_contact, _foresee_joint, "interior")
                builder.loop(_center, state=state)
                self._run(_step_contact, _step_joint, "newton", right)
                self._run(_correct_contact, _correct_joint, "interior")
                self._system.solve()
                self._run(_direct_contact, _direct_joint, "interior", right)
                builder.loop(_stay_inside, state=state)
                self._run(_advance_contact, _advance_joint, "interior")
                blocks.sum_up()
                self._relaxation.judge(self._state["error"])
                builder.loop(_decide, state=state)
                self._run(_take, _take)
            self._run(_restore, _restore)
            blocks.sum_up()
            self._relaxation.judge(residual)

    def _more(self, blocks: Sequence[int]) -> Window:
        """Further fields of blocks of one kind."""
        first = blocks[0] < self._blocks.contacts
        records = self._contacts if first else self._joints
        return records[[i if first else i - self._blocks.contacts for i in blocks]] | shared(**self._state)(blocks)

    def _run(self, contact: Kernel, joint: Kernel, where: str = "active", vector: Buffer | None = None) -> None:
        self._blocks.run(contact, joint, where, self._more, vector)

    def _follow_rules(self) -> None:
        """Writes the steps to the flags of blocks, from the rule that a state follows."""
        blocks = self._blocks.all
        flags = {name: buffer.at(blocks) for name, buffer in self._blocks.flags.items()}
        rules = {name: self._state[name].at([0] * len(blocks)) for name in ("by_newton", "by_interior", "starts")}
        self._builder.loop(_follow_rule, own=fields(**flags, **rules))


# States: how large their numbers are, and which rule they follow


def _clear_scales(state: View) -> None:
    state.speed = state.scale = state.limit = np.array(0.0)


def _begin(state: View) -> None:
    state.limit = state.tolerance * np.maximum(state.limit, 1.0)
    state.speed = state.speed + laws.TINY
    state.scale = np.maximum(state.scale, state.speed)
    state.least = state.before = state.error = state.residual
    state.by_newton, state.by_interior = np.array(1.0), np.array(0.0)
    state.starts = state.tried = state.turns = state.stalls = state.centring = np.array(0.0)
    state.left = np.array(_FIRST_TRY)


def _good_enough(state: View) -> Any:
    return state.residual <= _LEFT * state.limit


def _ended(state: View) -> Any:
    return (state.least <= state.limit) | (state.by_newton + state.by_interior <= 0.0)


def _clear_sums(state: View) -> None:
    state.iterations = state.iterations + 1.0
    state.products = state.count = np.array(0.0)
    state.length = np.array(_ENDLESS)


def _average(state: View) -> None:
    state.kappa, state.sigma = state.products / np.maximum(state.count, 1.0), state.centring


def _look_ahead(state: View) -> None:
    state.length, state.products = np.minimum(state.length, 1.0), np.array(0.0)


def _center(state: View) -> None:
    part = state.products / (np.maximum(state.count, 1.0) * state.kappa + laws.TINY)
    state.sigma = np.where(state.centring > 0.0, 1.0, np.clip(part * part * part, _LEAST_SIGMA, 1.0))
    state.length = np.array(_ENDLESS)


def _stay_inside(state: View) -> None:
    state.length = np.minimum(_INSIDE * state.length, 1.0)


def _decide(state: View) -> None:
    """Whether this iteration was good, and which rule comes next."""
    newton, interior = state.by_newton > 0.0, state.by_interior > 0.0
    finite = state.error == state.error
    error = np.where(finite, state.error, _ENDLESS)
    state.better = np.where(error < state.least, 1.0, 0.0)
    state.least = np.minimum(state.least, error)
    # Newton's method goes on while it halves the residual.
    halved, tried = newton & (error < 0.5 * state.before), state.tried + state.by_newton
    goes_on = halved & (tried < _NEWTON)
    # The interior point goes on until it is spent, and tries Newton's method now and then.
    turns, left = state.turns + state.by_interior, state.left - state.by_interior
    stalls = np.where(interior, np.where(state.length < _STALLED, state.stalls + 1.0, 0.0), state.stalls)
    tries = interior & finite & (left <= 0.0)
    spent = (turns >= _INTERIOR) | (stalls >= _STALLS) | (interior & np.logical_not(finite))
    back = newton & np.logical_not(goes_on)
    state.starts = np.where(back & (turns <= 0.0), 1.0, 0.0)
    state.by_newton = np.where(goes_on | tries, 1.0, 0.0)
    state.by_interior = np.where((back | (interior & np.logical_not(tries))) & np.logical_not(spent), 1.0, 0.0)
    state.accepted = np.where(halved | tries, 1.0, 0.0)
    state.before = np.where(halved | tries, error, state.before)
    state.tried, state.turns, state.stalls = np.where(goes_on, tried, 0.0), turns, stalls
    state.left = np.where(tries, _NEXT_TRY, left)
    state.centring = np.where(interior, np.where(state.length < _SHORT, 1.0, 0.0), state.centring)


# Blocks of both kinds


def _follow_rule(own: View) -> None:
    own.newton, own.interior, own.starting = (
        own.active * rule for rule in (own.by_newton, own.by_interior, own.starts)
    )


def _keep(own: View, ways: list[View]) -> None:
    own.point = own.best = own.impulse
    own.inner, own.s, own.phi = np.zeros(3), np.ones(3), np.array(1.0)


def _take(own: View, ways: list[View]) -> None:
    own.best = np.where(own.better > 0.0, own.impulse, own.best)
    own.point = np.where(own.accepted > 0.0, own.impulse, own.point)


def _restore(own: View, ways: list[View]) -> None:
    own.impulse = own.best


# Contacts


def _scale_contact(own: View, ways: list[View]) -> None:
    n, t = _root_masses(own)
    fast = np.maximum(n * np.abs(own.b[0]), t * np.maximum(np.abs(own.b[1]), np.abs(own.b[2])))
    own.speed = np.maximum(own.speed, fast)
    own.limit = np.maximum(own.limit, np.maximum(np.abs(own.b[0]), np.maximum(np.abs(own.b[1]), np.abs(own.b[2]))))
    own.scale = np.maximum(own.scale, own.impulse[0] / n)


def _root_masses(own: View) -> tuple[Any, Any]:
    """√r of the normal and of the tangents: with them as units all contacts look alike."""
    return np.sqrt(own.normal_step), np.sqrt(own.tangent_step)


def _push_contact(own: View, ways: list[View]) -> None:
    push(ways, np.where(own.newton > 0.0, own.point, own.inner))


def _newton_contact(own: View, ways: list[View]) -> None:
    lam, w = own.point, velocities(own, ways)
    p, q = newton_normal(own.A[0, 0] + laws.TINY, lam[0], w[0])
    _answer(own, p, q, *newton_disc(own.mobility, own.friction, np.maximum(lam[0], 0.0), lam[1:], w[1:]))


def _answer(own: View, pn: Any, qn: Any, pt: Any, rate: Any, Qt: Any) -> None:
    """p and Q of a contact, from those of its normal, and of its tangents with their rate by the normal impulse."""
    own.p = np.concatenate([np.array([pn]), pt + pn * rate])
    below = np.concatenate([(qn * rate)[:, None], Qt], axis=1)
    own.Q = np.concatenate([np.array([[qn, 0.0, 0.0]]), below])


def _step_contact(own: View, ways: list[View]) -> None:
    own.impulse = laws.inside_cone(own.friction, own.point + own.p - own.Q @ change_of_velocities(ways))


def _start_contact(own: View, ways: list[View]) -> None:
    n, t = _root_masses(own)
    least = np.minimum(n, t)
    own.inner, own.s = (np.stack([x, 0.0, 0.0]) for x in (least * own.scale, own.speed / least))
    own.phi = own.speed / least


def _multiply_contact(own: View, ways: list[View]) -> None:
    own.products = own.products + own.inner @ own.s + own.inner[0] * own.phi
    own.count = own.count + 2.0


def _predict_contact(own: View, ways: list[View]) -> None:
    _interior_contact(own, velocities(own, ways), 0.0, 0.0, np.zeros(2))


def _correct_contact(own: View, ways: list[View]) -> None:
    dn, dt, dsn, dst = own.d_inner[0], own.d_inner[1:], own.d_s[0], own.d_s[1:]
    keep = 1.0 - own.centring  # a step that only centres has no second order
    second = own.friction**2 * dn * dst + own.d_phi * dt
    terms = keep * (dn * dsn), keep * (dn * own.d_phi + dt @ dst), keep * second
    _interior_contact(own, velocities(own, ways), *terms)


def _interior_contact(own: View, w: Any, second_n: Any, second_0: Any, second: Any) -> None:
    n, t, target = own.inner[0], own.inner[1:], own.sigma * own.kappa
    own.gap = gap = w - own.s
    e = -(own.friction**2 * n * own.s[1:] + own.phi * t) - second
    e0 = target - (n * own.phi + t @ own.s[1:]) - second_0
    normal = interior_normal(n, own.s[0], gap[0], target - n * own.s[0] - second_n)
    _answer(own, *normal, *interior_disc(own.friction, n, own.phi, t, own.s[1:], gap[1:], e0, e))
    own.e0 = e0


def _direct_contact(own: View, ways: list[View]) -> None:
    change = change_of_velocities(ways)
    own.d_inner, own.d_s = own.p - own.Q @ change, change + own.gap
    n, t, dn, dt = own.inner[0], own.inner[1:], own.d_inner[0], own.d_inner[1:]
    own.d_phi = (own.e0 - own.phi * dn - t @ own.d_s[1:] - own.s[1:] @ dt) / n
    mu = own.friction
    for step in (
        longest_positive(n, dn),
        longest_positive(own.s[0], own.d_s[0]),
        longest_in_cone(mu * n, mu * dn, t, dt),
        longest_in_cone(own.phi, own.d_phi, mu * own.s[1:], mu * own.d_s[1:]),
    ):
        own.length = np.minimum(own.length, step)


def _foresee_contact(own: View, ways: list[View]) -> None:
    inner, s, phi = (x + own.length * dx for x, dx in _inside(own))
    own.products = own.products + inner @ s + inner[0] * phi


def _inside(own: View) -> list[tuple[Any, Any]]:
    """What the interior point changes of a block, and its changes."""
    return [(own.inner, own.d_inner), (own.s, own.d_s), (own.phi, own.d_phi)]


def _advance_contact(own: View, ways: list[View]) -> None:
    own.inner, own.s, own.phi = (x + own.length * dx for x, dx in _inside(own))
    own.impulse = laws.inside_cone(own.friction, own.inner)


# Joints: friction is a disc of one row, and limits are normals, of which the upper one pushes back.


def _scale_joint(own: View, ways: list[View]) -> None:
    mass = 1.0 / np.sqrt(own.a + laws.TINY)
    own.speed = np.maximum(own.speed, mass * np.abs(own.b[0]))
    own.limit = np.maximum(own.limit, np.abs(own.b[0]))
    own.scale = np.maximum(own.scale, np.abs(own.impulse[0]) / mass)


def _push_joint(own: View, ways: list[View]) -> None:
    push(ways, np.where(own.newton > 0.0, own.point, _together(own.inner)))


def _together(parts: Any) -> Any:
    return np.array([parts[0] + parts[1] - parts[2]])


def _newton_joint(own: View, ways: list[View]) -> None:
    target, held, brake = laws.joint_regime(own.a, own.low, own.high, own.bound, own.point[0], velocities(own, ways)[0])
    stiff = 1.0 / (SOFT * (own.a + laws.TINY))
    own.p = np.array([np.where(held, (target - velocities(own, ways)[0]) * stiff, brake - own.point[0])])
    own.Q = np.array([[np.where(held, stiff, 0.0)]])


def _step_joint(own: View, ways: list[View]) -> None:
    own.impulse = own.point + own.p - own.Q @ change_of_velocities(ways)


def _start_joint(own: View, ways: list[View]) -> None:
    mass = 1.0 / np.sqrt(own.a + laws.TINY)
    reach = _FAR_LIMIT * own.speed / mass
    apart = np.stack([0.0, own.b[0] - own.low, own.high - own.b[0]])
    near = np.where(apart < reach, 1.0, 0.0) * np.stack([np.where(own.bound > 0.0, 1.0, 0.0), 1.0, 1.0])
    own.near, own.inner = near, near * np.stack([0.0, mass * own.scale, mass * own.scale])
    own.s = np.stack([0.0, own.speed / mass, own.speed / mass])
    own.phi = own.scale * own.speed


def _multiply_joint(own: View, ways: list[View]) -> None:
    own.products = own.products + own.inner @ own.s + own.near[0] * own.phi
    own.count = own.count + own.near[0] + own.near[1] + own.near[2]


def _predict_joint(own: View, ways: list[View]) -> None:
    _interior_joint(own, velocities(own, ways)[0], np.zeros(3), 0.0)


def _correct_joint(own: View, ways: list[View]) -> None:
    keep, (dt, _, _), (ds, _, _) = 1.0 - own.centring, own.d_inner, own.d_s
    second = own.d_inner * own.d_s
    second = keep * np.stack([dt * ds, second[1], second[2]])
    _interior_joint(own, velocities(own, ways)[0], second, keep * own.d_phi * dt)


def _interior_joint(own: View, w: Any, second: Any, second_disc: Any) -> None:
    target, near = own.sigma * own.kappa, own.near
    own.gap = gap = near * (np.stack([w, w - own.low, own.high - w]) - own.s)
    t, s = own.inner[:1], own.s[:1]
    own.e0 = near[0] * (target - own.phi - t @ s - second[0])
    e = -(own.bound**2 * s + own.phi * t) - np.array([second_disc])
    p, _, Q = interior_disc(own.bound, 1.0, own.phi, t, s, gap[:1], own.e0, e)
    parts = [(near[0] * p[0], near[0] * Q[0, 0])]
    for k in (1, 2):
        each = interior_normal(own.inner[k], own.s[k], gap[k], target - own.inner[k] * own.s[k] - second[k])
        parts.append((near[k] * each[0], near[k] * each[1]))
    own.part_p, own.part_Q = (np.stack(values) for values in zip(*parts, strict=True))
    own.p, own.Q = _together(own.part_p), np.array([[parts[0][1] + parts[1][1] + parts[2][1]]])


def _direct_joint(own: View, ways: list[View]) -> None:
    change = change_of_velocities(ways)[0] * np.array([1.0, 1.0, -1.0])
    own.d_inner, own.d_s = own.part_p - own.part_Q * change, own.near * (change + own.gap)
    t, s, dt, ds = own.inner[:1], own.s[:1], own.d_inner[:1], own.d_s[:1]
    own.d_phi = own.near[0] * (own.e0 - t @ ds - s @ dt)
    for step in (
        *(longest_positive(x[k], dx[k]) for x, dx in _inside(own)[:2] for k in (1, 2)),
        longest_in_cone(own.bound, 0.0, t, dt),
        longest_in_cone(own.phi, own.d_phi, own.bound * s, own.bound * ds),
    ):
        own.length = np.minimum(own.length, step)


def _foresee_joint(own: View, ways: list[View]) -> None:
    inner, s, phi = (x + own.length * dx for x, dx in _inside(own))
    own.products = own.products + inner @ s + own.near[0] * phi


def _advance_joint(own: View, ways: list[View]) -> None:
    own.inner, own.s, own.phi = (x + own.length * dx for x, dx in _inside(own))
    own.impulse = _together(own.inner)
