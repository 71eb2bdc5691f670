"""The memory of bodies and clusters while a step is computed."""

from __future__ import annotations

from coupler.algorithms import efpa
from coupler.contact.step.columns import ColumnBody, ColumnCluster
from coupler.passes import Coordinate, Visit, afterwards, collected, entry, provided, symmetric


class StepBody(efpa.ArticulatedBody, ColumnBody):
    """The memory of a body, beside its articulated inertia and the columns that it feels.

    Poses are those at which forces are taken. Velocities are spatial, along the body's own axes there.
    """

    E, r = entry((3, 3)), entry(3)  # its pose
    start, v, u = entry(6), entry(6), entry(6)  # velocities before the step, v̄ of a round, and after it, no impulses
    du = entry(6)  # what impulses change of u
    bias = entry(6)  # its acceleration where ÿ = 0
    f = collected(6)  # the force that joints must answer
    a = afterwards(6)  # its acceleration by joints


class StageBody(StepBody):
    """The memory of a body in a step of several stages."""

    ahead = entry(6)  # its velocity after the step without impulses, along the axes that it then has


class StepCluster(efpa.RespondingCluster, ColumnCluster):
    """The memory of a cluster, beside factors of H and its columns; velocities are along its basis."""

    Dinv = entry(lambda shape: None if shape.factors else symmetric(shape.freedoms))
    factors = entry(lambda shape: shape.factors and shape.factors.size)  # of D, in place of D⁻¹
    y0 = entry(lambda shape: shape.freedoms)  # its acceleration, if all that carries it stays
    tau, start, v, u, v_next = Coordinate(), Coordinate(), Coordinate(), Coordinate(), Coordinate()
    at_rest = Coordinate()  # u°, near contacts; before it is known, the u of the first round
    jump = Coordinate()  # what impacts add to v⁺ in the end
    step = provided()  # h, s
    near, gone = provided(), provided()  # whether contacts are near, and which part of the step it has moved already
    change, fastest, fastest_near, rounds = (
        provided(),
        provided(),
        provided(),
        provided(),
    )  # of all clusters: see `Kick`
    dv = provided()  # what impulses do to its joints, if all that carries it stays


Visited = Visit[StepBody, StepCluster]
