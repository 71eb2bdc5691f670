"""What clusters of one shape see while a pass runs over them: windows, and the views that a trace or Python makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from coupler.graph import Constants, Slot, Window

Fields = dict[str, Slot | Constants]
T = TypeVar("T")


@dataclass
class ClusterParts(Generic[T]):
    """Something of each part of a cluster; see `ClusterWindows` and `ClusterViews`.

    Attributes:
        cluster: of the cluster as a whole.
        models: of each body the constants of its joint and inertia.
        joints: of each body its joint's position and its parts of vectors over independent velocities.
        bodies: of each body what it remembers.
        outputs: of each body outside that carries the cluster what that remembers.
        pairs: of each pair of bodies that feel each other's inertia.
        output_pairs: of each pair of output bodies.
        constraints: of each constraint by which the cluster is embedded its numbers.
        bonds: of each loop joint or coupling its numbers and the force in it, where forces are asked for.
    """

    cluster: T
    models: list[T]
    joints: list[T]
    bodies: list[T]
    outputs: list[T]
    pairs: list[T] = field(default_factory=list)
    output_pairs: list[T] = field(default_factory=list)
    constraints: list[T] = field(default_factory=list)
    bonds: list[T] = field(default_factory=list)


class ClusterWindows(ClusterParts[Fields]):
    """Where the fields of clusters lie, row by row, for all clusters that are passed with one kernel."""

    def windows(self) -> dict[str, Any]:
        """The parameters of a kernel, by the names of the attributes."""
        own = vars(self)
        return {name: Window(own[name]) if name == "cluster" else [Window(x) for x in own[name]] for name in own}


ClusterViews = ClusterParts[Any]  # one row of it: each attribute a kernel's parameter, or a list of them


def kernel_of(function: Callable[[ClusterViews], object], name: str) -> Callable[..., None]:
    """A function of a cluster's views as a kernel; what it returns is for Python callers alone."""

    def kernel(**views: Any) -> None:
        function(ClusterViews(**views))

    kernel.__name__ = name
    return kernel
