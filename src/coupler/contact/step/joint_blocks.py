"""Limits and dry friction of joints in the program of a step: a row of the contact problem for each such joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.contact.laws import joint_parts, limit_velocities
from coupler.contact.scene import ContactScene, Layout, recovery_speeds
from coupler.contact.scheme import SCHEMES
from coupler.contact.step.blocks import Blocks, wait
from coupler.contact.step.kick import rotation_biases
from coupler.graph import Slot, Vector, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.passes import ClusterWindows, Record, Shape, Sweep, Visit, provided

_FAR = 1e10  # rad or m: stands for a limit that a joint does not have, so that all numbers stay finite


class JointRow(Record):
    """What a cluster sees of a joint that has limits or friction."""

    own, impulse = provided(), provided()  # its velocity without impulses, and its impulse
    lower, upper = provided(), provided()  # limits of its position
    recovery = provided()  # how fast it may come back from beyond them; not there, if that is not bounded
    low, high = provided(), provided()  # the velocities that take it there
    waiting, joining = provided(), provided()  # whether it breaks its law without an impulse, and whether any does
    residual, tolerance = provided(), provided()
    limit, friction = provided(), provided()  # impulses of a state
    bound, a = provided(), provided()  # the largest impulse of friction, and the mobility


Provide = Callable[[ClusterWindows, list[int]], None]  # adds fields of some rows


class JointBlocks:
    """The joints that have limits or dry friction, in a program.

    States tell impulses of limits and of friction apart. Solved for is their sum: two rows of one joint would hand each
    other impulses for ever.
    """

    def __init__(self, sweep: Sweep[Any, Any], layout: Layout, blocks: Blocks, scene: ContactScene) -> None:
        """Args: a program, its layout, its problem, and what it takes into account."""
        self._sweep, self._layout, self._blocks = sweep, layout, blocks
        self._scene, recovery = scene, scene.recovery
        self._recovery = recovery_speeds(sweep.robot, layout.joints, recovery) if recovery < np.inf else None
        self._first = layout.contact_rows.total

    def measure(self, start: Vector) -> None:
        """Writes the steps to velocities of joints after a step without impulses, and to those that reach limits.

        Args:
            start: impulses of a state, from which the problem's are to start.
        """

        def provide(windows: ClusterWindows, rows: list[int]) -> None:
            windows.cluster["own"] = self._blocks.b.at([self._first + row for row in rows])
            windows.cluster |= self._sides(rows)

        measure = _measuring(self._scene, self._recovery is not None)
        self._visit(measure, range(len(self._layout.joints)), provide)
        for limited, rubbing, own in self._groups(range(len(self._layout.joints))):
            window = self._impulses(own) | self._told(start, limited, rubbing, own)
            self._sweep.builder.loop(_joining(limited, rubbing), view=window)

    def look(self, residual: Vector, tolerance: float) -> None:
        """Writes the steps that make idle joints wait which the velocities after the step take beyond their limits.

        Args:
            residual: how far impulses are from the laws, which this adds to.
            tolerance: by how much they may be, m/s.
        """

        def provide(windows: ClusterWindows, own: list[int]) -> None:
            windows.cluster |= self._known(own)
            windows.cluster["residual"] = residual.at([0] * len(own))
            windows.cluster["joining"] = self._blocks.joining.at([0] * len(own))
            windows.cluster["tolerance"] = constants(np.full(len(own), tolerance))

        limits_alone = range(len(self._layout.rubbing), len(self._layout.joints))
        self._visit(_look, limits_alone, provide, "idle")

    def end(self, impulses: Vector) -> None:
        """Writes the steps from solved impulses to those of a state."""
        layout = self._layout
        for limited, rubbing, rows in self._groups(range(len(layout.joints))):
            if not (limited and rubbing):
                window = self._impulses(rows) | self._told(impulses, limited, rubbing, rows)
                self._sweep.builder.loop(_telling(limited), view=window)
                continue

            def provide(windows: ClusterWindows, own: list[int]) -> None:
                windows.cluster |= self._told(impulses, True, True, own).fields
                windows.cluster |= self._known(own)

            self._visit(_part, rows, provide)

    def _visit(
        self,
        function: Callable[[Visit[Any, Any], int, int], None],
        rows: Sequence[int],
        provide: Provide,
        flag: str | None = None,
    ) -> None:
        """Runs a function of clusters of joints, and of the number of body and entry in them, where a flag holds."""
        schedule, contacts = self._sweep.schedule(), self._layout.contacts

        def where(own: list[int]) -> Slot:
            return self._blocks.flags[flag or "active"].at([contacts + row for row in own])

        def provide_rows(windows: ClusterWindows, shape: Shape, own: list[int]) -> None:
            provide(windows, own)

        for row in rows:
            link, j = self._layout.joints[row]
            k, i = self._sweep.number_in_cluster(link)
            flags = where if flag else None
            self._sweep.visit(schedule, function, k, i, j, key=(i, j), row=row, provide=provide_rows, where=flags)
        schedule.run()

    def _groups(self, rows: Sequence[int]) -> list[tuple[bool, bool, list[int]]]:
        """Whether joints have limits, whether they have friction, and which of them have the same."""
        layout = self._layout
        groups = grouped(rows, lambda row: (layout.joints[row] in layout.limited, layout.joints[row] in layout.rubbing))
        return [(*key, own) for key, own in groups.items()]

    def _impulses(self, rows: Sequence[int]) -> Window:
        return fields(own=self._blocks.impulses.at([self._first + row for row in rows]))

    def _known(self, rows: Sequence[int]) -> dict[str, Any]:
        """What is known of joints."""
        return dict(self._blocks.of([self._layout.contacts + row for row in rows]).fields)

    def _sides(self, rows: Sequence[int]) -> dict[str, Any]:
        """Limits of joints, and where the velocities go that reach them."""
        layout, links = self._layout, self._sweep.robot.tree.links
        sides = self._known(rows)
        for name, far in (("lower", -_FAR), ("upper", _FAR)):
            joints = [layout.joints[row] for row in rows]
            limits = [getattr(links[x[0]].kind, name)[x[1]] if x in layout.limited else far for x in joints]
            sides[name] = constants(np.clip(limits, -_FAR, _FAR))
        if self._recovery is not None:
            sides["recovery"] = constants(self._recovery[list(rows)])
        return sides

    def _told(self, impulses: Vector, limited: bool, rubbing: bool, rows: Sequence[int]) -> Window:
        """Where a state has the impulses of joints: first those of all limits, then those of friction."""
        places, layout = fields(), self._layout
        joints = [layout.joints[row] for row in rows]
        if limited:
            places |= fields(limit=impulses.at([self._first + layout.limited.index(joint) for joint in joints]))
        if rubbing:
            first = self._first + len(layout.limited)
            places |= fields(friction=impulses.at([first + layout.rubbing.index(joint) for joint in joints]))
        return places


def _velocity(cluster: Visit[Any, Any], i: int, j: int, v: Any) -> Any:
    """That of entry j of joint i, from independent velocities."""
    return cluster.G[cluster.shape.starts[i] + j] @ v


def _measuring(scene: ContactScene, bounded: bool) -> Callable[[Visit[Any, Any], int, int], None]:
    def measure(cluster: Visit[Any, Any], i: int, j: int) -> None:
        """The velocity of a joint without impulses, and those that take it from the step's start to its limits."""
        row, kind, memory = JointRow(cluster.views.cluster), cluster.shape.kinds[i], cluster.memory
        own = _velocity(cluster, i, j, memory.u)
        if scene.integrator in SCHEMES:  # where the joint then is
            own = own + memory.step * (
                cluster.g[cluster.shape.starts[i] + j] - _velocity(cluster, i, j, rotation_biases(cluster))
            )
        row.own = own
        q = cluster.q[i][j] if kind.nq == kind.nv else 0.0
        if scene.integrator == "midpoint":
            q = q - memory.step * memory.gone * _velocity(cluster, i, j, memory.start)
        recovery = row.recovery if bounded else None
        seen = scene.penetration if scene.integrator in SCHEMES else "position"
        row.low, row.high = limit_velocities(row.lower, row.upper, q, memory.step, own, recovery, seen)

    return measure


def _look(cluster: Visit[Any, Any], i: int, j: int) -> None:
    """Makes a joint wait that a velocity takes beyond its limits."""
    row, w = JointRow(cluster.views.cluster), _velocity(cluster, i, j, cluster.memory.v_next)
    beyond = np.maximum(row.low - w, w - row.high)
    row.residual = np.maximum(row.residual, beyond)
    wait(row, beyond > row.tolerance)


def _part(cluster: Visit[Any, Any], i: int, j: int) -> None:
    """The impulses of limit and of friction."""
    row, w = JointRow(cluster.views.cluster), _velocity(cluster, i, j, cluster.memory.v_next)
    row.limit, row.friction = joint_parts(row.a, row.low, row.high, row.bound, row.impulse[0], w)


def _joining(limited: bool, rubbing: bool) -> Callable[[View], None]:
    def joining(view: View) -> None:
        view.own = (view.limit if limited else 0.0) + (view.friction if rubbing else 0.0)

    return joining


def _telling(limited: bool) -> Callable[[View], None]:
    def telling(view: View) -> None:
        if limited:
            view.limit = view.own
        else:
            view.friction = view.own

    return telling
