"""What clusters of one shape see while a pass runs over them, and the views of it that a trace or Python makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coupler.graph import Constants, Slot, Window

__all__ = ["ClusterViews", "ClusterWindows", "kernel_of"]

Fields = dict[str, Slot | Constants]


@dataclass
class ClusterWindows:
    """Where the fields of clusters lie, row by row, for all clusters that are passed with one kernel.

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

    cluster: Fields = field(default_factory=dict)
    models: list[Fields] = field(default_factory=list)
    joints: list[Fields] = field(default_factory=list)
    bodies: list[Fields] = field(default_factory=list)
    outputs: list[Fields] = field(default_factory=list)
    pairs: list[Fields] = field(default_factory=list)
    output_pairs: list[Fields] = field(default_factory=list)
    constraints: list[Fields] = field(default_factory=list)
    bonds: list[Fields] = field(default_factory=list)

    def windows(self) -> dict[str, Any]:
        """The parameters of a kernel, by the names of the attributes."""
        own = vars(self)
        return {name: Window(own[name]) if name == "cluster" else [Window(x) for x in own[name]] for name in own}


@dataclass
class ClusterViews:
    """The same, one row of it: each attribute a kernel's parameter, or a list of them."""

    cluster: Any
    models: list[Any]
    joints: list[Any]
    bodies: list[Any]
    outputs: list[Any]
    pairs: list[Any]
    output_pairs: list[Any]
    constraints: list[Any]
    bonds: list[Any]


def kernel_of(function: Callable[[ClusterViews], None], name: str) -> Callable[..., None]:
    """A function of a cluster's views as a kernel."""

    def kernel(**views: Any) -> None:
        function(ClusterViews(**views))

    kernel.__name__ = name
    return kernel
