"""Accelerations and inverse operational-space inertia from one set of articulated inertias [001, §VII, §VIII].

C-EFPA needs the articulated inertias that C-ABA computes, and a step with contacts needs both algorithms [002, §3.2].
Here, velocities, articulated inertias and bias forces are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coupler.algorithms import aba, efpa
from coupler.model import Robot
from coupler.passes import PathBody, PathCluster, Paths, Sweep, Visit, add_loads, entry, symmetric
from coupler.spatial import Transform


class BodyMemory(aba.BodyMemory, PathBody):
    """What C-ABA remembers, and the force and acceleration per unit force at a frame."""


class ClusterMemory(aba.ClusterMemory, PathCluster):
    """What C-ABA remembers, D⁻¹, and the accelerations of joints per unit force at a frame."""

    Dinv = entry(lambda shape: symmetric(shape.freedoms))


def dynamics_and_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program (q, v, tau) → a, J H⁻¹ Jᵀ: accelerations of independent joints, and the inverse inertia of frames.

    Args:
        frames: for each frame the number of its link, and the transform from the link's frame to the frame.
    """
    links, loaded = {link for link, _ in frames}, bool(robot.elements)
    sweep = Sweep(robot, "dynamics_and_osim", body=BodyMemory, cluster=ClusterMemory, loaded=loaded, oriented=links)
    sweep.inputs("q", "v", "tau")
    sweep.output("a")
    omega = sweep.result("omega", (6 * len(frames)) ** 2)
    add_loads(sweep, external=False)
    sweep.outward(aba.outward, carriers=True)
    sweep.inward(inward if frames else aba.inward)
    paths = Paths(sweep, frames)
    paths.inward(efpa.propagate)
    sweep.outward(aba.accelerate)
    paths.outward(efpa.respond)
    paths.multiply_pairs(omega)
    return sweep.build()


def inward(cluster: Visit[BodyMemory, ClusterMemory]) -> None:
    """The backward pass of C-ABA, which also stores D⁻¹ for forces at frames."""
    D = aba.inward(cluster)
    cluster.memory.Dinv = D.inverse()
