"""Impacts that rebound, as steps of a program: the rounds of restitution.py, after the contact problem of a step.

The contact problem has closed the gaps, and positions move with its impulses. Then velocities start anew from those
without impulses, and rounds of impacts change them, at the contacts and limits that have pressed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from coupler.contact.kernels import clear, copy
from coupler.contact.restitution import LAG, Restitution
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene
from coupler.contact.solution import ENOUGH
from coupler.contact.step import impact_kernels as kernels
from coupler.contact.step.blocks import BlockKernel, More, shared
from coupler.contact.step.impact_kernels import MOST_ROUNDS
from coupler.contact.step.interaction import InteractingBlocks
from coupler.contact.step.refinement import Refinement
from coupler.contact.step.relaxation import Relaxation
from coupler.graph import Vector, Window, constants, fields
from coupler.grouping import grouped
from coupler.passes import Sweep

_INELASTIC = Restitution(0.0)
_STATE = ("hit", "approaching", "settling", "first", "rounds", "residual", "scale")


class Impacts:
    """The impacts of a step.

    Args:
        results: the parts of the step's results; see `Layout`.

    Attributes:
        velocities: buffers for the velocities of all contacts: `free` after a step without impulses, and `approach`
            before it.
        jump: nv, what impacts add to velocities once positions have moved.
    """

    def __init__(
        self, sweep: Sweep[Any, Any], scene: ContactScene, blocks: InteractingBlocks, results: Mapping[str, Vector]
    ) -> None:
        laws = [(pair.restitution or _INELASTIC) for pair in scene.pairs for _ in range(pair.count)]
        builder = self._builder = sweep.builder
        self._robot, self._scene, self._blocks, self._laws, self._results = sweep.robot, scene, blocks, laws, results
        self.velocities = {name: builder.scratch(name, 3 * len(laws)) for name in ("free", "approach")}
        self._given, self._last = (builder.scratch(f"impact_{name}", blocks.rows.total) for name in ("given", "last"))
        self._contacts = builder.records("impact", len(laws), came=3, before=3, e=3)
        self._energy = builder.scratch("impact_energy", 3)
        self._state = {name: builder.scratch(f"impact_{name}", 1) for name in _STATE}
        self._position_v, self.jump = (builder.scratch(f"v_{name}", sweep.robot.nv) for name in ("step", "jump"))

    def begin(self) -> None:
        """Writes the steps that clear what impacts of the previous step have left."""
        for buffer in (self.jump, self._given, self._blocks.flags["pressed"], self._state["hit"]):
            clear(self._builder, buffer)

    def write(self, relaxation: Relaxation, refinement: Refinement, apply_impulses: Callable[[], None]) -> None:
        """Writes the rounds, from impulses that have closed gaps to those that give velocities.

        Velocities stay those with which positions move; `jump` is the rest.

        Args:
            relaxation, refinement: solve the contact problem.
            apply_impulses: writes the pass from x to velocities; see `Columns`.
        """
        builder, state, rows = self._builder, self._scalars(), range(self._robot.nv)
        self._loop(kernels.pressing, self._fields, "active")
        with builder.repeat(until=kernels.nothing_hits, at_most=1, rare=True, state=state):
            copy(builder, self._results["v"], self._position_v, self._robot.nv)
            self._begin()
            with builder.repeat(until=kernels.nothing_approaches, at_most=MOST_ROUNDS, state=state):
                self._round(relaxation, refinement)
            self._loop(lambda _: kernels.sum_up, self._fields)
            apply_impulses()
            vectors = {"v": self._results["v"], "position_v": self._position_v, "jump": self.jump}
            builder.loop(kernels.part_jump, row=fields(**{name: vector.at(rows) for name, vector in vectors.items()}))

    def _begin(self) -> None:
        """Writes the steps that restore velocities without impulses, with limits as they are after the step."""
        blocks = self._blocks
        blocks.given, blocks.given_where = self._given, "pressed"
        blocks.each(kernels.clear_impulse, kernels.hold_at_limits)
        copy(self._builder, blocks.flags["pressed"], blocks.flags["active"], blocks.contacts)  # these take part
        for flag in ("active", "pressed"):
            self._builder.list_flags(blocks.flags[flag])
        self._builder.loop(kernels.begin_rounds, state=self._scalars())
        self._look()
        self._builder.loop(kernels.decide, state=self._scalars())

    def _round(self, relaxation: Relaxation, refinement: Refinement) -> None:
        """Writes a round: chooses contacts and their laws, solves for impulses, and looks at the velocities."""
        scene, results, residual = self._scene, self._results, self._state["residual"]

        def more(contacts: Indices) -> Window:
            pace = constants(np.full(len(contacts), 1.0 / scene.step))
            lag = constants(np.full(len(contacts), LAG[scene.integrator]))
            return self._fields(contacts) | fields(gap=results["gaps"].at(contacts), pace=pace, lag=lag)

        clear(self._builder, self._blocks.flags["refined"])  # of islands that may take part no longer
        self._loop(kernels.choosing, more)
        self._builder.list_flags(self._blocks.flags["active"])
        relaxation.solve(scene.tolerance, scene.sweeps, residual, results["sweeps"])
        refinement.solve(scene.tolerance, residual, results["iterations"], enough=ENOUGH)
        self._builder.loop(kernels.keep_worst, residuals=fields(round=residual.at(0), worst=results["residual"].at(0)))
        self._loop(kernels.taking, self._fields, "active")
        self._look()
        self._keep_energy()
        self._builder.loop(kernels.decide, state=self._scalars())

    def _look(self) -> None:
        """Writes the steps that store the velocities with which contacts enter the next round, and whether they hit."""
        self._blocks.sum_up()
        self._blocks.measure_change(where="pressed")
        self._builder.loop(kernels.clear_findings, state=self._scalars())
        self._loop(kernels.looking, self._fields)

    def _keep_energy(self) -> None:
        """Writes the steps that scale a round down if it would add energy."""
        builder, state, energy = self._builder, self._scalars(), fields(energy=self._energy.at(0, 3))
        clear(builder, self._energy)
        with_energy = lambda rows: self._fields(rows) | fields(energy=self._energy.at([0] * len(rows), 3))  # noqa: E731
        self._loop(lambda _: kernels.add_energy, with_energy)
        builder.loop(kernels.find_scale, state=state | energy)
        with builder.repeat(until=kernels.adds_no_energy, at_most=1, state=state):
            self._loop(lambda _: kernels.scale_down, self._fields)
            self._look()
            builder.loop(kernels.clear_scale, state=state)

    def _loop(self, kernel: Callable[[Restitution], BlockKernel], more: More, flag: str = "pressed") -> None:
        """Writes loops over contacts that have a flag, with a kernel for each kind of law."""
        for law, contacts in self._kinds():
            window = self._blocks.of(contacts) | more(contacts)
            self._builder.loop(kernel(law), block=window, **self._blocks.among(flag, contacts))

    def _kinds(self) -> list[tuple[Restitution, list[int]]]:
        """Laws that differ in more than numbers, with their contacts, which have equally many rows."""
        laws = self._laws
        kinds = grouped(range(len(laws)), lambda k: (laws[k].form, laws[k].elastic, self._blocks.width(k)))
        return [(laws[contacts[0]], contacts) for contacts in kinds.values()]

    def _fields(self, contacts: Indices) -> Window:
        """Fields of contacts for kernels besides `Blocks.of`: velocities, impulses of rounds, laws, and the state."""
        laws, at = [self._laws[k] for k in contacts], [3 * k for k in contacts]
        places = {name: buffer.at(at, 3) for name, buffer in self.velocities.items()}
        places |= {"given": self._blocks.place(contacts, self._given), "last": self._blocks.place(contacts, self._last)}
        table = {
            "normal": [law.normal for law in laws],
            "tangential": [law.tangential for law in laws],
            "threshold": [-1.0 if law.threshold is None else law.threshold for law in laws],
        }
        window = fields(**places, **{name: constants(np.array(values)) for name, values in table.items()})
        state = shared(**self._state, joining=self._blocks.joining)
        return window | self._contacts[contacts] | state(contacts)

    def _scalars(self) -> Window:
        return fields(**{name: buffer.at(0) for name, buffer in self._state.items()})
