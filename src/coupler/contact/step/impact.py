"""Impacts that rebound, as steps of a program: the rounds of restitution.py, behind the problem of a step.

That problem has closed the gaps, and positions move with what it gives. Here velocities start anew, from those without
impulses, and rounds of impacts change them, at the contacts and limits that have pressed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from coupler.contact.kernels import clear, copy
from coupler.contact.restitution import (
    LAG,
    RESTING_SPEED,
    Restitution,
    can_rebound,
    energy_parts,
    energy_scale,
    hits,
    impact_coefficients,
    impact_impulse,
    takes_part,
)
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene
from coupler.contact.step.blocks import More, OwnKernel, shared
from coupler.contact.step.interaction import InteractingBlocks
from coupler.contact.step.refinement import Refinement
from coupler.contact.step.relaxation import Relaxation
from coupler.graph import Vector, View, Window, constants, fields
from coupler.passes import Sweep

MOST_ROUNDS = 60  # of a step, the last one without restitution: 60 balls in a row hand an impact on
_UNLIMITED = 1e10  # rad/s or m/s: stands for a limit that is not reached, so that all numbers stay finite
_INELASTIC = Restitution(0.0)
_STATE = ("hit", "approaching", "settling", "first", "rounds", "residual", "scale")


class Impacts:
    """The impacts of a program.

    Attributes:
        told: buffers for the velocities of all contacts: `free` after a step without impulses, `approach` before it.
        jump: by what impacts change velocities once positions have moved.
    """

    def __init__(
        self, sweep: Sweep[Any, Any], scene: ContactScene, blocks: InteractingBlocks, parts: Mapping[str, Vector]
    ) -> None:
        """Args: a program, what it takes into account, its problem, and parts of what a step leads to: see `Layout`."""
        laws = [(pair.restitution or _INELASTIC) for pair in scene.pairs for _ in range(pair.count)]
        builder = self._builder = sweep.builder
        self._robot, self._scene, self._blocks, self._laws, self._parts = sweep.robot, scene, blocks, laws, parts
        self.told = {name: builder.scratch(name, 3 * len(laws)) for name in ("free", "approach")}
        self._given, self._last = (builder.scratch(f"impact_{name}", blocks.rows.total) for name in ("given", "last"))
        self._contacts = builder.records("impact", len(laws), came=3, before=3, e=3)
        self._energy = builder.scratch("impact_energy", 3)
        self._state = {name: builder.scratch(f"impact_{name}", 1) for name in _STATE}
        self._step, self.jump = (builder.scratch(f"v_{name}", sweep.robot.nv) for name in ("step", "jump"))

    def begin(self) -> None:
        """Writes that nothing has jumped."""
        for buffer in (self.jump, self._given, self._blocks.flags["pressed"], self._state["hit"]):
            clear(self._builder, buffer)

    def write(self, relaxation: Relaxation, refinement: Refinement, apply_impulses: Callable[[], None]) -> None:
        """Writes the rounds, from impulses that have closed gaps to those that make velocities.

        Velocities stay those that positions move with; `jump` is what is to be added to them then.

        Args:
            relaxation, refinement: solve the problem.
            apply_impulses: writes the pass from x to velocities.
        """
        builder, state, rows = self._builder, self._scalars(), range(self._robot.nv)
        self._loop(_press, self._own, "active")
        with builder.repeat(until=_nothing_hits, at_most=1, rare=True, state=state):
            copy(builder, self._parts["v"], self._step, self._robot.nv)
            self._begin()
            with builder.repeat(until=_at_rest, at_most=MOST_ROUNDS, state=state):
                self._round(relaxation, refinement)
            self._loop(_total, self._own)
            apply_impulses()
            window = {"v": self._parts["v"], "step": self._step, "jump": self.jump}
            builder.loop(_part, view=fields(**{name: buffer.at(rows) for name, buffer in window.items()}))

    def _begin(self) -> None:
        """Velocities without impulses, and limits for the time after the step."""
        blocks = self._blocks
        blocks.given, blocks.given_where = self._given, "pressed"
        blocks.each(_forget, _hold_at_limits)
        copy(self._builder, blocks.flags["pressed"], blocks.flags["active"], blocks.contacts)  # which take part
        for flag in ("active", "pressed"):
            blocks.list_flags(flag)
        self._builder.loop(_begin, state=self._scalars())
        self._look()
        self._builder.loop(_decide, state=self._scalars())

    def _round(self, relaxation: Relaxation, refinement: Refinement) -> None:
        scene, parts, residual = self._scene, self._parts, self._state["residual"]

        def more(contacts: Indices) -> Window:
            pace = constants(np.full(len(contacts), 1.0 / scene.step))
            lag = constants(np.full(len(contacts), LAG[scene.integrator]))
            return self._own(contacts) | fields(gap=parts["gaps"].at(contacts), pace=pace, lag=lag)

        self._loop(_choosing, more)
        self._blocks.list_flags("active")
        relaxation.solve(scene.tolerance, scene.sweeps, residual, parts["sweeps"])
        refinement.solve(scene.tolerance, residual, parts["iterations"])
        self._builder.loop(_note_worst, view=fields(own=residual.at(0), all=parts["residual"].at(0)))
        self._loop(_taking, self._own, "active")
        self._look()
        self._keep_energy()
        self._builder.loop(_decide, state=self._scalars())

    def _look(self) -> None:
        """Writes the steps to velocities with which contacts come to the next round, and to whether they hit."""
        self._blocks.sum_up()
        self._blocks.measure_change(where="pressed")
        self._builder.loop(_look_anew, state=self._scalars())
        self._loop(_look, self._own)

    def _keep_energy(self) -> None:
        """Writes the steps that cut a round short which would feed energy."""
        builder, state, energy = self._builder, self._scalars(), fields(energy=self._energy.at(0, 3))
        clear(builder, self._energy)
        self._loop(_add_energy, lambda own: self._own(own) | fields(energy=self._energy.at([0] * len(own), 3)))
        builder.loop(_scale, state=state | energy)
        with builder.repeat(until=_feeds_nothing, at_most=1, state=state):
            self._loop(_cut, self._own)
            self._look()
            builder.loop(_done, state=state)

    def _loop(self, kernel: Callable[[Restitution], OwnKernel], more: More, flag: str = "pressed") -> None:
        """Writes a loop over contacts that have a flag, with a kernel for each kind of law."""
        for law, contacts in self._kinds():
            window = self._blocks.of(contacts) | more(contacts)
            self._builder.loop(kernel(law), own=window, **self._blocks.among(flag, contacts))

    def _kinds(self) -> list[tuple[Restitution, list[int]]]:
        """Laws that differ in more than numbers, with their contacts, which have as many rows."""
        found: dict[tuple[str, bool, int], list[int]] = {}
        for contact, law in enumerate(self._laws):
            found.setdefault((law.form, law.elastic, self._blocks.width(contact)), []).append(contact)
        return [(self._laws[contacts[0]], contacts) for contacts in found.values()]

    def _own(self, contacts: Indices) -> Window:
        """What impacts know of contacts."""
        laws, at = [self._laws[k] for k in contacts], [3 * k for k in contacts]
        least = [-1.0 if law.threshold is None else law.threshold for law in laws]
        known = {name: buffer.at(at, 3) for name, buffer in self.told.items()}
        known |= {"given": self._blocks.place(contacts, self._given), "last": self._blocks.place(contacts, self._last)}
        numbers = {"normal": [law.normal for law in laws], "tangential": [law.tangential for law in laws]}
        numbers["least"] = least
        window = fields(**known, **{name: constants(np.array(values)) for name, values in numbers.items()})
        state = shared(**self._state, joining=self._blocks.joining)
        return window | self._contacts[contacts] | state(contacts)

    def _scalars(self) -> Window:
        return fields(**{name: buffer.at(0) for name, buffer in self._state.items()})


# Kernels of a problem


def _nothing_hits(state: View) -> Any:
    return state.hit <= 0.0


def _begin(state: View) -> None:
    state.first, state.rounds, state.settling = np.array(1.0), np.array(0.0), np.array(0.0)


def _look_anew(state: View) -> None:
    state.hit = state.approaching = np.array(0.0)


def _decide(state: View) -> None:
    """A round that settles is the last one: it comes when nothing rebounds any more, or in the end."""
    state.approaching = np.where(state.settling > 0.0, 0.0, state.approaching)
    late = state.rounds >= MOST_ROUNDS - 1.0
    state.settling = np.where((state.hit <= 0.0) | late, 1.0, 0.0)
    state.first, state.rounds = np.where(state.rounds > 0.0, 0.0, 1.0), state.rounds + 1.0


def _scale(state: View) -> None:
    state.scale = energy_scale(state.energy)


def _feeds_nothing(state: View) -> Any:
    return state.scale >= 1.0


def _done(state: View) -> None:
    state.scale = np.array(1.0)


def _at_rest(state: View) -> Any:
    return state.approaching <= 0.0


def _note_worst(view: View) -> None:
    view.all = np.maximum(view.all, view.own)


def _part(view: View) -> None:
    view.jump, view.v = view.v - view.step, view.step


# Kernels of blocks


def _hold_at_limits(own: View) -> None:
    """A joint that a step takes to a limit must not go beyond; other limits are far away."""
    w, own.impulse = own.w[0], 0.0 * own.impulse
    own.low = np.where(w > own.low + RESTING_SPEED, -_UNLIMITED, 0.0)
    own.high = np.where(w < own.high - RESTING_SPEED, _UNLIMITED, 0.0)


def _forget(own: View) -> None:
    own.impulse = 0.0 * own.impulse


def _press(law: Restitution) -> OwnKernel:
    def press(own: View) -> None:
        """Whether a contact has pressed (of λ_n ⊥ w_n, to rounding, it is w_n that is zero), and comes as an impact."""
        pressed = own.A[0, 0] * own.impulse[0] > own.w[0]
        own.pressed = np.where(pressed, 1.0, 0.0)
        if law.elastic:
            fast = hits(own.least, own.free[0], own.free[0] - own.approach[0])
            hit = pressed & (own.joining <= 0.0) & fast & can_rebound(own.normal, own.tangential)
            own.hit = np.maximum(own.hit, np.where(hit, 1.0, 0.0))

    return press


def _look(law: Restitution) -> OwnKernel:
    def look(own: View) -> None:
        own.came = own.free + own.dw[:3]
        own.approaching = np.maximum(own.approaching, np.where(own.came[0] < -RESTING_SPEED, 1.0, 0.0))
        if law.elastic:
            fast = hits(own.least, own.came[0], own.free[0] - own.approach[0])
            hit = fast & can_rebound(own.normal, own.tangential)
            own.hit = np.maximum(own.hit, np.where(hit, 1.0, 0.0))

    return look


def _choosing(law: Restitution) -> OwnKernel:
    def choose(own: View) -> None:
        """Whether a contact takes part in a round, and by which law."""
        settling, w, change = own.settling > 0.0, own.came[0], own.free[0] - own.approach[0]
        elastic = can_rebound(own.normal, own.tangential) if law.elastic else False
        own.active = np.where(takes_part(elastic, w, settling), 1.0, 0.0)
        own.e, own.last, own.before = np.zeros(3), 0.0 * own.last, own.came
        target = own.free
        if law.elastic:
            closure, approach = own.gap * own.pace, own.approach[0]
            first = impact_coefficients(own.normal, own.tangential, w, approach, change, closure, own.lag)
            e = np.where(own.first > 0.0, first, np.stack([own.normal, own.tangential, own.tangential]))
            own.e = np.where(np.logical_not(settling) & hits(own.least, w, change), e, 0.0)
            if law.form == "velocity":
                target = own.free + own.e * own.came
        own.b = np.concatenate([target, own.b[3:]])  # what turns has no gap, and does not rebound

    return choose


def _taking(law: Restitution) -> OwnKernel:
    def take(own: View) -> None:
        """What a round does is given to those that follow."""
        straight = impact_impulse(law.form, own.friction[0], own.e, own.impulse[:3], own.w[:3], own.came)
        own.last = np.concatenate([straight, own.impulse[3:]])
        own.given, own.impulse = own.given + own.last, 0.0 * own.impulse

    return take


def _add_energy(law: Restitution) -> OwnKernel:
    def add_energy(own: View) -> None:
        own.energy = own.energy + energy_parts(own.e[0], own.last[:3], own.before, own.came)

    return add_energy


def _cut(law: Restitution) -> OwnKernel:
    def cut(own: View) -> None:
        own.given = own.given - (1.0 - own.scale) * own.last

    return cut


def _total(law: Restitution) -> OwnKernel:
    def total(own: View) -> None:
        own.impulse = own.given

    return total
