"""Clusters so large that the programs of their dynamics take long to compile: they are told of."""

from __future__ import annotations

import warnings

from coupler.model import ModelWarning, Robot
from coupler.passes.shape import Clusters

_HUGE = 400  # joint velocities of a cluster, from which on it takes more than some 20 s
_told: set[str] = set()


def tell_of_huge_clusters(robot: Robot, clusters: Clusters) -> None:
    """Warns once of each huge cluster of a robot."""
    for shape, alike in clusters.shapes:
        size, rows = int(shape.starts[-1]), len(shape.dependent)
        if size < _HUGE:
            continue
        first = robot.tree.links[clusters.instances[alike[0]].links[0]].name
        message = (
            f"robot {robot.name!r}: the cluster that starts with body {first!r} has {size} joint velocities and {rows} "
            "rows of loops. Its dynamics and steps compile for some 20 s or longer when they are first called; after "
            "that they are in the cache on disk"
        )
        if message not in _told:
            _told.add(message)
            warnings.warn(message, ModelWarning, stacklevel=2)
