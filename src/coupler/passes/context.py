"""What a program declares about the clusters of its robot, and what a pass may count on when it visits one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coupler.passes.shape import ClusterShape


@dataclass(frozen=True)
class Context:
    """The options that a program was begun with (see `Sweep`), and the state of its passes.

    Attributes:
        body, cluster, loaded, leaf_bodies, leaf_clusters, tangent, looped: the program's options.
        all_rows: whether redundant rows of loops count, too, in deciding whether a loop is open.
        moving: whether the program has velocities.
        seen_before: whether an earlier pass has visited the cluster.
        known_velocities: whether an earlier pass has stored velocities that are still valid.
    """

    body: type[Any]
    cluster: type[Any]
    loaded: bool
    leaf_bodies: bool
    leaf_clusters: bool
    tangent: bool
    all_rows: bool
    looped: bool = False
    moving: bool = False
    seen_before: bool = False
    known_velocities: bool = True

    @property
    def paired(self) -> bool:
        """Whether pairs of bodies have memory: two that carry the same cluster share a block of collected Iᴬ."""
        return "IA" in self.body.layout("collected")

    def remembers(self, shape: ClusterShape) -> bool:
        """Whether clusters of a shape store what follows from their positions."""
        return self.leaf_clusters or any(shape.carries)
