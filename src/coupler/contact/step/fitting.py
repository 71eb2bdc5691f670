"""Velocities of large clusters that fit their loops after a step, as steps of a program: w = N y + K⁺ z with K' w = 0.

K' of the loops after the step is nearly K, of which N and K⁺ are, so that w −= K⁺ K' w gets there in a few rounds, each
of which is two products with vectors. Rounds end where they no longer gain. Where that is not near enough, as after a
large motion, the system (K' K⁺) z = −K' N y is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.graph import View, fields
from coupler.linear import fitted
from coupler.passes import ClusterShape, ClusterWindows, Record, Sweep, Visit, provided

_ROUNDS = 20
_EXACT = 1e-15  # of the largest entry of w: a smaller K' w needs no further round
_ENOUGH = 1e-14  # likewise: up to this K' w, no system needs to be solved
_GAIN = 0.5  # another round follows if one leaves at most this part of K' w


class FittedJoint(Record):
    """The field that a cluster sees of one of its joints: its velocity after the step."""

    w_next = provided()


class FittedCluster(Record):
    """The fields that a cluster sees of itself: K' w, and the largest residual of all clusters."""

    open = provided()
    worst, before, fastest = provided(), provided(), provided()


class Fitting:
    """The steps that make velocities of some clusters fit their loops."""

    def __init__(self, sweep: Sweep[Any, Any], clusters: Sequence[int]) -> None:
        self._sweep, self._clusters, b = sweep, clusters, sweep.builder
        sizes = [len(self._shape(k).dependent) for k in clusters]
        self._start = dict(zip(clusters, np.cumsum([0, *sizes]).tolist(), strict=False))
        self._open, self._progress = b.scratch("fit_open", sum(sizes)), b.scratch("fit_progress", 3)

    def write(self, provide: Callable[[ClusterWindows, ClusterShape, list[int]], None]) -> None:
        """Writes the steps; clusters are provided with the velocities of their joints after the step."""
        builder, progress = self._sweep.builder, fields(**self._told(1))
        builder.loop(_begin, progress=progress)
        self._visit(_spread, provide)
        with builder.repeat(until=_gains_no_more, at_most=_ROUNDS, progress=progress):
            builder.loop(_begin_round, progress=progress)
            self._visit(_correct, provide)
        with builder.repeat(until=_is_enough, at_most=1, rare=True, progress=progress):
            self._visit(_solve, provide)
        self._visit(_take, provide)

    def _visit(self, function: Callable[..., None], provide: Callable[..., None]) -> None:
        def provide_all(windows: ClusterWindows, shape: ClusterShape, clusters: list[int]) -> None:
            provide(windows, shape, clusters)
            rows = self._open.at([self._start[k] for k in clusters], len(shape.dependent))
            windows.cluster |= {"open": rows, **self._told(len(clusters))}

        schedule = self._sweep.schedule()
        for k in self._clusters:
            self._sweep.visit(schedule, function, k, provide=provide_all)
        schedule.run()

    def _told(self, rows: int) -> dict[str, Any]:
        names = enumerate(("worst", "before", "fastest"))
        return {name: self._progress.at([i] * rows) for i, name in names}

    def _shape(self, cluster: int) -> ClusterShape:
        return self._sweep.shapes[self._sweep.shape_of[cluster]][0]


def _begin(progress: View) -> None:
    progress.worst = progress.fastest = np.array(0.0)
    progress.before = np.array(np.inf)


def _begin_round(progress: View) -> None:
    progress.before, progress.worst = progress.worst, np.array(0.0)


def _gains_no_more(progress: View) -> Any:
    return (progress.worst <= _EXACT * progress.fastest) | ~(progress.worst < _GAIN * progress.before)


def _is_enough(progress: View) -> Any:
    return progress.worst <= _ENOUGH * progress.fastest


def _spread(cluster: Visit[Any, Any]) -> None:
    """Computes N y, from which rounds start."""
    w, seen = cluster.G @ cluster.memory.v_next, FittedCluster(cluster.views.cluster)
    seen.fastest = np.maximum(seen.fastest, _largest(w))
    _tell(cluster, w)


def _correct(cluster: Visit[Any, Any]) -> None:
    _tell(cluster, _velocities(cluster) - cluster.K_inverse @ FittedCluster(cluster.views.cluster).open)


def _solve(cluster: Visit[Any, Any]) -> None:
    _tell(cluster, fitted(cluster.loops.K, cluster.K_inverse, cluster.G @ cluster.memory.v_next))


def _take(cluster: Visit[Any, Any]) -> None:
    """Takes the velocities of independent joints from the fitted velocities of all joints."""
    cluster.memory.v_next = _velocities(cluster)[cluster.shape.independent]


def _velocities(cluster: Visit[Any, Any]) -> Any:
    return np.concatenate([FittedJoint(view).w_next for view in cluster.views.joints])


def _tell(cluster: Visit[Any, Any], w: Any) -> None:
    """Stores velocities w, and the residual K w of the loops in their present configuration."""
    seen = FittedCluster(cluster.views.cluster)
    for body, view in zip(cluster.bodies, cluster.views.joints, strict=True):
        FittedJoint(view).w_next = w[body.entries]
    residual = cluster.loops.K @ w
    seen.open, seen.worst = residual, np.maximum(seen.worst, _largest(residual))


def _largest(values: Any) -> Any:
    """The largest magnitude of some values, by pairwise comparisons, which need not wait for each other."""
    values = np.abs(values)
    while len(values) > 1:
        half = len(values) // 2
        values = np.concatenate([np.maximum(values[:half], values[half : 2 * half]), values[2 * half :]])
    return values[0]
