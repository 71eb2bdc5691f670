"""Newton's method for loops without a solution, as steps of the program of a contact step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.kernels import assign
from coupler.contact.scene import Layout
from coupler.graph import Vector, View, Window, constants, fields
from coupler.model.joint import Joint
from coupler.model.tolerances import CLOSED
from coupler.passes import Sweep


class Closing:
    """Newton's method for all loops without a solution, started from positions and shifts of their joints."""

    def __init__(self, sweep: Sweep[Any, Any], layout: Layout) -> None:
        self._sweep, self._layout, robot = sweep, layout, sweep.robot
        self._program = robot.states.closing_program
        builder, tree = sweep.builder, robot.tree
        sizes = {"p": tree.nq, "step": tree.nv, "weight": tree.nv, "q": tree.nq}
        sizes["phi"] = next(x.size for x in self._program.outputs if x.name == "phi")
        # Newton's method finds what loops over joints need to know of closed loops.
        self._shared = sweep.trees if sweep.trees and sweep.trees.all_loops else None
        found = {"q": self._shared.q, "phi": self._shared.phi} if self._shared else {}
        self._vectors = {x: found.get(x) or builder.scratch(f"closing_{x}", size) for x, size in sizes.items()}
        start = {"p": robot.states.neutral, "step": np.zeros(tree.nv), "weight": np.ones(tree.nv)}
        for name, values in start.items():  # joints outside such loops stay there
            builder.loop(_fill, entry=fields(x=self._vectors[name].at(range(len(values))), value=constants(values)))

    def ends(self, links: Sequence[int], kind: Joint) -> Window:
        """The fields for the position that each joint starts from, and for how far it moves first."""
        tree, links = self._sweep.robot.tree, list(links)
        position = self._vectors["p"].at(tree.q_start[links], kind.nq)
        return fields(position=position, shift=self._vectors["step"].at(tree.v_start[links], kind.nv))

    def close(self, q: Vector) -> None:
        """Writes the steps that close the loops, and copies the positions of their joints to q.

        A loop that stays open makes the step's results invalid.
        """
        builder, robot, phi = self._sweep.builder, self._sweep.robot, self._vectors["phi"]
        builder.call(self._program, self._shared.scratch() if self._shared else None, **self._vectors)
        if self._sweep.gap is not None:  # otherwise the tree alone closes all loops, and none can be open
            gap = self._sweep.gap.at([0] * phi.size)
            builder.loop(_note_open_loops, row=fields(phi=phi.at(range(phi.size)), gap=gap))
        places = [int(p) for link in self._layout.loop_links for p in robot.tree.positions(link)]
        source, target = self._vectors["q"].at(places), q.at(robot.embedding.q_place[places])
        builder.loop(assign, row=fields(source=source, target=target))


def _fill(entry: View) -> None:
    entry.x = entry.value


def _note_open_loops(row: View) -> None:
    """Marks the configuration as invalid if a loop does not close."""
    row.gap = np.maximum(row.gap, np.where(np.abs(row.phi) < CLOSED, 0.0, 1.0))
