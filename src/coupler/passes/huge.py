"""A warning for clusters so large that the programs of their dynamics take long to compile."""

from __future__ import annotations

from coupler.model import Robot
from coupler.model.errors import warn
from coupler.passes.shape import Clusters

_HUGE = 400  # joint velocities of a cluster, above which compilation takes more than some 20 s
_warned: set[str] = set()


def warn_of_huge_clusters(robot: Robot, clusters: Clusters) -> None:
    """Warns of each huge cluster of a robot, once in a process."""
    for shape, members in clusters.shapes:
        size, rows = int(shape.starts[-1]), len(shape.dependent)
        if size < _HUGE:
            continue
        first = robot.tree.links[clusters.instances[members[0]].links[0]].name
        message = (
            f"robot {robot.name!r}: the cluster that starts with body {first!r} has {size} joint velocities and {rows} "
            "rows of loops. Its dynamics and steps compile for some 20 s or longer when they are first called; after "
            "that they are in the cache on disk"
        )
        if message not in _warned:
            _warned.add(message)
            warn(message)
