"""Limits and dry friction of joints in the program of a step: a row of the contact problem for each such joint."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from coupler.contact.laws import joint_parts
from coupler.contact.relaxation import Relaxation, rows_of
from coupler.contact.scene import Layout
from coupler.graph import Buffer, View, Window, constants, fields
from coupler.passes import Cluster, Shape, Sweep

__all__ = ["JointBlocks"]

_FAR = 1e10  # rad or m: where a joint has no limit


class JointBlocks:
    """The joints that have limits or dry friction, in a program.

    States tell impulses of limits and of friction apart. Solved for is their sum: two rows of one joint would hand each
    other impulses for ever.
    """

    def __init__(self, sweep: Sweep, layout: Layout, relaxation: Relaxation) -> None:
        self._sweep, self._layout, self._relaxation = sweep, layout, relaxation
        self._first = 3 * layout.contacts

    def measure(self) -> None:
        """Writes the steps to velocities of joints after a step without impulses, and to those that reach limits."""
        sweep, layout = self._sweep, self._layout
        cluster_of = sweep.robot.cluster_tree.cluster_of
        shape_of = {k: i for i, (_, clusters) in enumerate(sweep.shapes) for k in clusters}
        groups: dict[Hashable, list[int]] = {}
        for row, (link, j) in enumerate(layout.joints):
            k = cluster_of[link]
            groups.setdefault((shape_of[k], sweep.instances[k].links.index(link), j), []).append(row)
        for (number, i, j), rows in groups.items():  # type: ignore[misc]
            window = sweep.window(number, [cluster_of[layout.joints[row][0]] for row in rows])
            window |= fields(own=self._relaxation.b.at([self._first + row for row in rows])) | self._sides(rows)
            sweep.builder.loop(_measuring(sweep.shapes[number][0], i, j), here=window)

    def _sides(self, rows: Sequence[int]) -> Window:
        """Limits of joints, and where the velocities go that reach them."""
        kinds = [(self._sweep.robot.tree.links[link].kind, j, (link, j)) for link, j in self._joints(rows)]
        found = fields()
        for name, far, side in (("lower", -_FAR, self._relaxation.low), ("upper", _FAR, self._relaxation.high)):
            limits = [getattr(kind, name)[j] if own in self._layout.limited else far for kind, j, own in kinds]
            found |= fields(**{f"to_{name}": side.at(rows), name: constants(np.clip(limits, -_FAR, _FAR))})
        return found

    def _joints(self, rows: Sequence[int]) -> list[tuple[int, int]]:
        return [self._layout.joints[row] for row in rows]

    def begin(self, start: Buffer) -> None:
        """Writes the steps from impulses of a state to those that sweeps start from."""
        for limited, rubbing, rows in self._groups():
            own = fields(own=self._relaxation.impulses.at([self._first + row for row in rows]))
            window = own | self._told(start, limited, rubbing, rows)
            self._sweep.builder.loop(_joining(limited, rubbing), here=window)

    def end(self, impulses: Buffer) -> None:
        """Writes the steps from solved impulses to those of a state."""
        for limited, rubbing, rows in self._groups():
            window = rows_of(self._relaxation.joints(), rows) | self._told(impulses, limited, rubbing, rows)
            self._sweep.builder.loop(_parting(limited, rubbing), here=window)

    def _groups(self) -> list[tuple[bool, bool, list[int]]]:
        """Whether joints have limits, whether they have friction, and which of them have the same."""
        groups: dict[tuple[bool, bool], list[int]] = {}
        for row, joint in enumerate(self._layout.joints):
            groups.setdefault((joint in self._layout.limited, joint in self._layout.rubbing), []).append(row)
        return [(*key, rows) for key, rows in groups.items()]

    def _told(self, impulses: Buffer, limited: bool, rubbing: bool, rows: Sequence[int]) -> Window:
        """Where a state has the impulses of joints: first those of all limits, then those of friction."""
        found, joints, layout = fields(), self._joints(rows), self._layout
        if limited:
            found |= fields(limit=impulses.at([self._first + layout.limited.index(joint) for joint in joints]))
        if rubbing:
            first = self._first + len(layout.limited)
            found |= fields(friction=impulses.at([first + layout.rubbing.index(joint) for joint in joints]))
        return found


def _measuring(shape: Shape, i: int, j: int) -> Callable[[View], None]:
    def measuring(here: View) -> None:
        cluster = Cluster(here, shape, True, later=True, moving=False)
        here.own = cluster.G[shape.starts[i] + j] @ cluster.read("u")
        q = cluster.q[i][j] if shape.kinds[i].nq == shape.kinds[i].nv else 0.0
        here.to_lower, here.to_upper = (here.lower - q) / here.step, (here.upper - q) / here.step

    return measuring


def _joining(limited: bool, rubbing: bool) -> Callable[[View], None]:
    def joining(here: View) -> None:
        here.own = (here.limit if limited else 0.0) + (here.friction if rubbing else 0.0)

    return joining


def _parting(limited: bool, rubbing: bool) -> Callable[[View], None]:
    def parting(here: View) -> None:
        limit = friction = here.own[0]
        if limited and rubbing:
            w = here.rows @ here.all + here.b
            limit, friction = joint_parts(here.a[0], here.low, here.high, here.bound, here.own[0], w[0])
        if limited:
            here.limit = limit
        if rubbing:
            here.friction = friction

    return parting
