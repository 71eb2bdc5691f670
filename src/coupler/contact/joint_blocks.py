"""Limits and dry friction of joints in the program of a step: a row of the contact problem for each such joint."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from coupler.contact.laws import joint_parts, limit_velocities
from coupler.contact.relaxation import Relaxation
from coupler.contact.scene import Layout
from coupler.graph import Buffer, View, Window, constants, fields
from coupler.passes import Cluster, Shape, Sweep

__all__ = ["JointBlocks"]

_FAR = 1e10  # rad or m: stands for a limit that a joint does not have, so that all numbers stay finite


class JointBlocks:
    """The joints that have limits or dry friction, in a program.

    States tell impulses of limits and of friction apart. Solved for is their sum: two rows of one joint would hand each
    other impulses for ever.

    Attributes:
        beyond: by how much a velocity takes a joint beyond its limits, rad/s or m/s; see `look`.
    """

    def __init__(self, sweep: Sweep, layout: Layout, relaxation: Relaxation, bounds: Sequence[float]) -> None:
        """Args: a program, its layout, the problem, and of each joint the largest impulse of its friction."""
        self._sweep, self._layout, self._relaxation, self._bounds = sweep, layout, relaxation, bounds
        self._first, self.beyond = 3 * layout.contacts, sweep.builder.scratch("beyond", 1)

    def measure(self) -> None:
        """Writes the steps to velocities of joints after a step without impulses, and to those that reach limits."""
        for shape, i, j, rows, window in self._clusters(range(len(self._layout.joints))):
            window |= fields(own=self._relaxation.b.at([self._first + row for row in rows])) | self._sides(rows)
            self._sweep.builder.loop(_measuring(shape, i, j), here=window)

    def begin(self, start: Buffer, rows: range) -> None:
        """Writes the steps from impulses of a state to those that sweeps start from."""
        for limited, rubbing, own in self._groups(rows):
            window = self._impulses(own) | self._told(start, limited, rubbing, own)
            self._sweep.builder.loop(_joining(limited, rubbing), here=window)

    def defer(self, rows: range) -> None:
        """Writes the steps to no impulses."""
        self._sweep.builder.loop(_rest, here=self._impulses(rows))

    def look(self, rows: range) -> None:
        """Writes the steps to how far the velocities after the step take joints beyond their limits."""
        builder = self._sweep.builder
        builder.loop(_within, here=fields(beyond=self.beyond.at(0)))
        for shape, i, j, own, window in self._clusters(rows):
            sides = fields(low=self._relaxation.low.at(own), high=self._relaxation.high.at(own))
            builder.loop(_looking(shape, i, j), here=window | sides | fields(beyond=self.beyond.at([0] * len(own))))

    def end(self, impulses: Buffer, A: Buffer, size: int) -> None:
        """Writes the steps from solved impulses to those of a state.

        Args:
            impulses: of the state.
            A: size × size, of joints with friction and what comes before them at least.
            size: see A.
        """
        layout, relaxation = self._layout, self._relaxation
        for limited, rubbing, rows in self._groups(range(len(layout.joints))):
            if not (limited and rubbing):
                window = self._impulses(rows) | self._told(impulses, limited, rubbing, rows)
                self._sweep.builder.loop(_telling(limited), here=window)
                continue
            for shape, i, j, own, window in self._clusters(rows):
                bounds = [self._bounds[row] for row in own]
                window |= self._impulses(own) | self._told(impulses, limited, rubbing, own)
                window |= fields(low=relaxation.low.at(own), high=relaxation.high.at(own), bound=constants(bounds))
                window |= fields(mobility=A.at([(self._first + row) * (size + 1) for row in own]))
                self._sweep.builder.loop(_parting(shape, i, j), here=window)

    def _clusters(self, rows: Sequence[int]) -> Iterator[tuple[Shape, int, int, list[int], Window]]:
        """Joints in clusters of the same shape: the shape, number of body and entry, which they are, what they see."""
        sweep, joints = self._sweep, self._layout.joints
        cluster_of = sweep.robot.cluster_tree.cluster_of
        shape_of = {k: i for i, (_, clusters) in enumerate(sweep.shapes) for k in clusters}
        groups: dict[Hashable, list[int]] = {}
        for row in rows:
            link, j = joints[row]
            k = cluster_of[link]
            groups.setdefault((shape_of[k], sweep.instances[k].links.index(link), j), []).append(row)
        for (number, i, j), own in groups.items():  # type: ignore[misc]
            yield sweep.shapes[number][0], i, j, own, sweep.window(number, [cluster_of[joints[row][0]] for row in own])

    def _groups(self, rows: Sequence[int]) -> list[tuple[bool, bool, list[int]]]:
        """Whether joints have limits, whether they have friction, and which of them have the same."""
        groups: dict[tuple[bool, bool], list[int]] = {}
        for row in rows:
            joint = self._layout.joints[row]
            groups.setdefault((joint in self._layout.limited, joint in self._layout.rubbing), []).append(row)
        return [(*key, own) for key, own in groups.items()]

    def _impulses(self, rows: Sequence[int]) -> Window:
        return fields(own=self._relaxation.impulses.at([self._first + row for row in rows]))

    def _sides(self, rows: Sequence[int]) -> Window:
        """Limits of joints, and where the velocities go that reach them."""
        layout, links, found = self._layout, self._sweep.robot.tree.links, fields()
        for name, far, side in (("lower", -_FAR, self._relaxation.low), ("upper", _FAR, self._relaxation.high)):
            joints = [layout.joints[row] for row in rows]
            limits = [getattr(links[x[0]].kind, name)[x[1]] if x in layout.limited else far for x in joints]
            found |= fields(**{f"to_{name}": side.at(rows), name: constants(np.clip(limits, -_FAR, _FAR))})
        return found

    def _told(self, impulses: Buffer, limited: bool, rubbing: bool, rows: Sequence[int]) -> Window:
        """Where a state has the impulses of joints: first those of all limits, then those of friction."""
        found, layout = fields(), self._layout
        joints = [layout.joints[row] for row in rows]
        if limited:
            found |= fields(limit=impulses.at([self._first + layout.limited.index(joint) for joint in joints]))
        if rubbing:
            first = self._first + len(layout.limited)
            found |= fields(friction=impulses.at([first + layout.rubbing.index(joint) for joint in joints]))
        return found


def _velocity(here: View, shape: Shape, i: int, j: int, name: str) -> tuple[Any, Cluster]:
    cluster = Cluster(here, shape, True, later=True, moving=False)
    return cluster.G[shape.starts[i] + j] @ cluster.read(name), cluster


def _measuring(shape: Shape, i: int, j: int) -> Callable[[View], None]:
    def measuring(here: View) -> None:
        here.own, cluster = _velocity(here, shape, i, j, "u")
        q = cluster.q[i][j] if shape.kinds[i].nq == shape.kinds[i].nv else 0.0
        here.to_lower, here.to_upper = limit_velocities(here.lower, here.upper, q, here.step)

    return measuring


def _looking(shape: Shape, i: int, j: int) -> Callable[[View], None]:
    def looking(here: View) -> None:
        w, _ = _velocity(here, shape, i, j, "v_next")
        here.beyond = np.maximum(here.beyond, np.maximum(here.low - w, w - here.high))

    return looking


def _joining(limited: bool, rubbing: bool) -> Callable[[View], None]:
    def joining(here: View) -> None:
        here.own = (here.limit if limited else 0.0) + (here.friction if rubbing else 0.0)

    return joining


def _telling(limited: bool) -> Callable[[View], None]:
    def telling(here: View) -> None:
        if limited:
            here.limit = here.own
        else:
            here.friction = here.own

    return telling


def _parting(shape: Shape, i: int, j: int) -> Callable[[View], None]:
    def parting(here: View) -> None:
        w, _ = _velocity(here, shape, i, j, "v_next")
        here.limit, here.friction = joint_parts(here.mobility, here.low, here.high, here.bound, here.own, w)

    return parting


def _rest(here: View) -> None:
    here.own = np.array(0.0)


def _within(here: View) -> None:
    here.beyond = np.array(0.0)
