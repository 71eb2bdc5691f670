"""Records that every cluster has, whatever the algorithm."""

from __future__ import annotations

from coupler.passes.records import ClusterRecord, Coordinate, Record, entry, provided


class BodyPair(Record):
    """Two bodies of a cluster that carry the same other cluster, so that each feels the other's acceleration."""

    IA = entry((6, 6))  # the force on the first per unit of acceleration of the second


class ClusterStore(Record):
    """What every cluster stores between passes, and what its program provides."""

    GD, gD = provided(), provided()  # rows of G and entries of g for dependent velocities
    N, K_inverse, g = provided(), provided(), provided()  # or, in tangent coordinates, G, K⁺ and g
    gap, gravity = provided(), provided()


class Speed(ClusterRecord):
    v = Coordinate()
