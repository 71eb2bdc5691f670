"""Limits and dry friction of joints in the program of a step: one row of the contact problem for each such joint."""

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
from coupler.passes import ClusterShape, ClusterWindows, Record, Sweep, Visit, provided

_FAR = 1e10  # rad or m: stands for a limit that there is not, so that all numbers stay finite


class JointRow(Record):
    """The fields that a cluster sees of a joint with limits or friction."""

    free, impulse = provided(), provided()  # its velocity without impulses, and its impulse
    lower, upper = provided(), provided()  # limits of its position
    recovery = provided()  # how fast it may come back from beyond a limit; only if that is bounded
    low, high = provided(), provided()  # the velocities that take it to its limits within the step
    waiting, joining = provided(), provided()  # whether it is about to join the problem, and whether any block is
    residual, tolerance = provided(), provided()
    limit, friction = provided(), provided()  # its impulses in the state
    bound, a = provided(), provided()  # the largest impulse of friction, and the mobility


Provide = Callable[[ClusterWindows, list[int]], None]  # adds fields for some rows


class JointBlocks:
    """The joints that have limits or dry friction, as rows of the contact problem.

    A state has impulses of limits and of friction apart. The problem has one row for their sum, because sweeps over two
    rows of one joint would pass impulses back and forth for ever.
    """

    def __init__(self, sweep: Sweep[Any, Any], layout: Layout, blocks: Blocks, scene: ContactScene) -> None:
        self._sweep, self._layout, self._blocks = sweep, layout, blocks
        self._scene, recovery = scene, scene.recovery
        self._recovery = recovery_speeds(sweep.robot, layout.joints, recovery) if recovery < np.inf else None
        self._first = layout.contact_rows.total

    def measure(self, start: Vector) -> None:
        """Writes the steps that compute joint velocities without impulses, and the velocities that reach limits.

        Args:
            start: the impulses of the state before the step, from which those of the problem start.
        """

        def provide(windows: ClusterWindows, rows: list[int]) -> None:
            windows.cluster["free"] = self._blocks.b.at([self._first + row for row in rows])
            windows.cluster |= self._limits(rows)

        measure = _measuring(self._scene, self._recovery is not None)
        self._visit(measure, range(len(self._layout.joints)), provide)
        for limited, rubbing, rows in self._groups(range(len(self._layout.joints))):
            window = self._impulses(rows) | self._state_impulses(start, limited, rubbing, rows)
            self._sweep.builder.loop(_joining(limited, rubbing), view=window)

    def look(self, residual: Vector, tolerance: float) -> None:
        """Writes the steps that flag idle joints as waiting if velocities after the step take them beyond their limits.

        Args:
            residual: 1, the error of the laws, m/s or rad/s; the steps add to it.
            tolerance: how far beyond a limit a joint may go, m/s or rad/s.
        """

        def provide(windows: ClusterWindows, rows: list[int]) -> None:
            windows.cluster |= self._block_fields(rows)
            windows.cluster["residual"] = residual.at([0] * len(rows))
            windows.cluster["joining"] = self._blocks.joining.at([0] * len(rows))
            windows.cluster["tolerance"] = constants(np.full(len(rows), tolerance))

        limits_alone = range(len(self._layout.rubbing), len(self._layout.joints))
        self._visit(_look, limits_alone, provide, "idle")

    def end(self, impulses: Vector) -> None:
        """Writes the steps that turn solved impulses into those of a state, which keeps limits and friction apart."""
        for limited, rubbing, rows in self._groups(range(len(self._layout.joints))):
            if not (limited and rubbing):
                window = self._impulses(rows) | self._state_impulses(impulses, limited, rubbing, rows)
                self._sweep.builder.loop(_storing(limited), view=window)
                continue

            def provide(windows: ClusterWindows, rows: list[int]) -> None:
                windows.cluster |= self._state_impulses(impulses, True, True, rows).fields
                windows.cluster |= self._block_fields(rows)

            self._visit(_part, rows, provide)

    def _visit(
        self,
        function: Callable[[Visit[Any, Any], int, int], None],
        rows: Sequence[int],
        provide: Provide,
        flag: str | None = None,
    ) -> None:
        """Runs a function over joints: it takes a cluster, the number of a body there, and an entry of its velocity.

        Args:
            provide: adds the fields that the function sees besides the cluster.
            flag: the flag that joints must have; None for all.
        """
        schedule, contacts = self._sweep.schedule(), self._layout.contacts

        def where(rows: list[int]) -> Slot:
            return self._blocks.flags[flag or "active"].at([contacts + row for row in rows])

        def provide_rows(windows: ClusterWindows, shape: ClusterShape, rows: list[int]) -> None:
            provide(windows, rows)

        for row in rows:
            link, j = self._layout.joints[row]
            k, i = self._sweep.number_in_cluster(link)
            flags = where if flag else None
            self._sweep.visit(schedule, function, k, i, j, key=(i, j), row=row, provide=provide_rows, where=flags)
        schedule.run()

    def _groups(self, rows: Sequence[int]) -> list[tuple[bool, bool, list[int]]]:
        """Joints in groups: whether they have limits, whether they have friction, and the joints."""
        layout = self._layout
        groups = grouped(rows, lambda row: (layout.joints[row] in layout.limited, layout.joints[row] in layout.rubbing))
        return [(*key, group) for key, group in groups.items()]

    def _impulses(self, rows: Sequence[int]) -> Window:
        return fields(impulse=self._blocks.impulses.at([self._first + row for row in rows]))

    def _block_fields(self, rows: Sequence[int]) -> dict[str, Any]:
        """The fields that kernels see of joints as blocks."""
        return dict(self._blocks.of([self._layout.contacts + row for row in rows]).fields)

    def _limits(self, rows: Sequence[int]) -> dict[str, Any]:
        """The fields of joints' limits, besides those that kernels see of joints as blocks."""
        layout, links = self._layout, self._sweep.robot.tree.links
        limits_of = self._block_fields(rows)
        for name, far in (("lower", -_FAR), ("upper", _FAR)):
            joints = [layout.joints[row] for row in rows]
            limits = [getattr(links[x[0]].kind, name)[x[1]] if x in layout.limited else far for x in joints]
            limits_of[name] = constants(np.clip(limits, -_FAR, _FAR))
        if self._recovery is not None:
            limits_of["recovery"] = constants(self._recovery[list(rows)])
        return limits_of

    def _state_impulses(self, impulses: Vector, limited: bool, rubbing: bool, rows: Sequence[int]) -> Window:
        """The entries of a state for impulses of joints: after contacts come all limits, then friction."""
        places, layout = fields(), self._layout
        joints = [layout.joints[row] for row in rows]
        if limited:
            places |= fields(limit=impulses.at([self._first + layout.limited.index(joint) for joint in joints]))
        if rubbing:
            first = self._first + len(layout.limited)
            places |= fields(friction=impulses.at([first + layout.rubbing.index(joint) for joint in joints]))
        return places


def _velocity(cluster: Visit[Any, Any], i: int, j: int, v: Any) -> Any:
    """The velocity of entry j of joint i, from velocities along the cluster's basis."""
    return cluster.G[cluster.shape.starts[i] + j] @ v


def _measuring(scene: ContactScene, bounded: bool) -> Callable[[Visit[Any, Any], int, int], None]:
    def measure(cluster: Visit[Any, Any], i: int, j: int) -> None:
        """Computes a joint's velocity without impulses, and those that take it from the step's start to its limits."""
        row, kind, memory = JointRow(cluster.views.cluster), cluster.shape.kinds[i], cluster.memory
        free = _velocity(cluster, i, j, memory.u)
        if scene.integrator in SCHEMES:  # at the configuration and along the axes of the step's end
            free = free + memory.step * (
                cluster.g[cluster.shape.starts[i] + j] - _velocity(cluster, i, j, rotation_biases(cluster))
            )
        row.free = free
        q = cluster.q[i][j] if kind.nq == kind.nv else 0.0
        if scene.integrator == "midpoint":  # limits count from where the step started
            q = q - memory.step * memory.gone * _velocity(cluster, i, j, memory.start)
        if scene.integrator not in SCHEMES:  # loops bend its way: a slide turns round at its dead point, and not beyond
            left = memory.step * (1.0 - memory.gone if scene.integrator == "midpoint" else 1.0)
            q = q + 0.5 * left * left * cluster.g[cluster.shape.starts[i] + j]
        recovery = row.recovery if bounded else None
        seen = lambda gap: scene.seen_by_joint(gap, cluster)  # noqa: E731
        before = _velocity(cluster, i, j, memory.start)
        row.low, row.high = limit_velocities(row.lower, row.upper, q, memory.step, before, recovery, seen)

    return measure


def _look(cluster: Visit[Any, Any], i: int, j: int) -> None:
    """Flags a joint as waiting if its velocity takes it beyond its limits."""
    row, w = JointRow(cluster.views.cluster), _velocity(cluster, i, j, cluster.memory.v_next)
    beyond = np.maximum(row.low - w, w - row.high)
    row.residual = np.maximum(row.residual, beyond)
    wait(row, beyond > row.tolerance)


def _part(cluster: Visit[Any, Any], i: int, j: int) -> None:
    """Splits the impulse of a joint into the parts of its limit and of its friction."""
    row, w = JointRow(cluster.views.cluster), _velocity(cluster, i, j, cluster.memory.v_next)
    row.limit, row.friction = joint_parts(row.a, row.low, row.high, row.bound, row.impulse[0], w)


def _joining(limited: bool, rubbing: bool) -> Callable[[View], None]:
    def join(view: View) -> None:
        view.impulse = (view.limit if limited else 0.0) + (view.friction if rubbing else 0.0)

    return join


def _storing(limited: bool) -> Callable[[View], None]:
    def store(view: View) -> None:
        if limited:
            view.limit = view.impulse
        else:
            view.friction = view.impulse

    return store
