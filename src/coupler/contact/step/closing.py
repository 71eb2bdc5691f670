"""Newton's method for the loops of a robot, as steps of the program that moves it."""

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
    """Newton's method for all loops without a solution, from positions and steps of their joints."""

    def __init__(self, sweep: Sweep[Any, Any], layout: Layout) -> None:
        self._sweep, self._layout, robot = sweep, layout, sweep.robot
        self._program = robot.states.closing_program
        builder, tree = sweep.builder, robot.tree
        sizes = {"p": tree.nq, "step": tree.nv, "weight": tree.nv, "q": tree.nq}
        sizes["phi"] = next(x.size for x in self._program.outputs if x.name == "phi")
        # What loops over joints are to know of closed loops, Newton's method finds anyway.
        self._shared = sweep.trees if sweep.trees and sweep.trees.all_loops else None
        found = {"q": self._shared.q, "phi": self._shared.phi} if self._shared else {}
        self._vectors = {x: found.get(x) or builder.scratch(f"closing_{x}", size) for x, size in sizes.items()}
        known = {"p": robot.states.neutral, "step": np.zeros(tree.nv), "weight": np.ones(tree.nv)}
        for name, values in known.items():  # joints that no loop holds stay where they are
            builder.loop(_fill, entry=fields(x=self._vectors[name].at(range(len(values))), value=constants(values)))

    def ends(self, links: Sequence[int], kind: Joint) -> Window:
        """Where joints have their position and step."""
        tree, links = self._sweep.robot.tree, list(links)
        position = self._vectors["p"].at(tree.q_start[links], kind.nq)
        return fields(position=position, shift=self._vectors["step"].at(tree.v_start[links], kind.nv))

    def close(self, q: Vector) -> None:
        """Writes the steps that close loops, to some of the positions in q; what stays open makes results invalid."""
        builder, robot, phi = self._sweep.builder, self._sweep.robot, self._vectors["phi"]
        builder.call(self._program, self._shared.scratch() if self._shared else None, **self._vectors)
        if self._sweep.gap is not None:  # else all rows of loops follow from the tree, and none can be open
            gap = self._sweep.gap.at([0] * phi.size)
            builder.loop(_note_open_loops, row=fields(phi=phi.at(range(phi.size)), gap=gap))
        places = [int(p) for link in self._layout.loop_links for p in robot.tree.positions(link)]
        source, target = self._vectors["q"].at(places), q.at(robot.embedding.q_place[places])
        builder.loop(assign, row=fields(source=source, target=target))


def _fill(entry: View) -> None:
    entry.x = entry.value


def _note_open_loops(row: View) -> None:
    """A loop that does not close makes the configuration invalid."""
    row.gap = np.maximum(row.gap, np.where(np.abs(row.phi) < CLOSED, 0.0, 1.0))
