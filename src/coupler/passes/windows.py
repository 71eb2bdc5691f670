"""What clusters of one shape see during a pass: windows for all rows, and the views of one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from coupler.graph import Constants, Slot, Window

Fields = dict[str, Slot | Constants]
T = TypeVar("T")


@dataclass
class ClusterParts(Generic[T]):
    """A value for each part of a cluster; see `ClusterWindows` and `ClusterViews`.

    Attributes:
        cluster: the cluster as a whole.
        models: for each body the constants of its joint and inertia.
        joints: for each body its joint's position and its parts of vectors over independent velocities.
        bodies: for each body its memory.
        outputs: for each output body its memory.
        pairs: for each pair of bodies that carry the same cluster their memory.
        output_pairs: for each pair of output bodies their memory.
        constraints: for each constraint that the cluster is embedded by its numbers.
        bonds: for each loop joint or coupling its numbers and the force in it, in programs that compute these forces.
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
    """The places of clusters' fields, row by row, for all clusters that one kernel serves."""

    def windows(self) -> dict[str, Any]:
        """The parameters of a kernel, by the names of the attributes."""
        parts = vars(self)
        return {x: Window(parts[x]) if x == "cluster" else [Window(part) for part in parts[x]] for x in parts}


ClusterViews = ClusterParts[Any]  # one row: each attribute is a kernel's parameter, or a list of them


def kernel_of(function: Callable[[ClusterViews], object], name: str) -> Callable[..., None]:
    """A function of a cluster's views as a kernel, which returns nothing."""

    def kernel(**views: Any) -> None:
        function(ClusterViews(**views))

    kernel.__name__ = name
    return kernel
