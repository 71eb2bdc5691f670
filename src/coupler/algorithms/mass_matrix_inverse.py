"""The inverse of the joint-space inertia matrix, block by block [003, eq. 26, 27].

H⁻¹ = B⁻¹ D⁻¹ B⁻ᵀ (eq. 27), where B⁻¹ = 1 − κ ψ X (eq. 26) is like B of factorization.py with the joints between two
clusters free: −Y takes the place of Y, and T = X − S Y that of X of each cluster in between.

The block of H⁻¹ for clusters c and k is a sum over all clusters that carry both. From the nearest of these to the
ground, all terms begin and end alike: with P = Tᵀ … Tᵀ (−Yᵀ), forces that are propagated from c, and from k, to bodies
of that nearest cluster. What stands between is summed once: Ω, the accelerations of these bodies per unit force on
them, Ω = S D⁻¹ Sᵀ + T Ω' Tᵀ with Ω' of the output bodies [001, eq. 67]. So H⁻¹_ck = P_cᵀ Ω P_k, one product a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.algorithms import efpa
from coupler.algorithms.articulated import response_by_output
from coupler.model import Robot
from coupler.passes import (
    ClusterShape,
    ClusterWindows,
    Indexed,
    Output,
    Schedule,
    Sweep,
    Visit,
    numbered,
    provided,
    velocities_of,
)
from coupler.spatial import mirrored


class BodyMemory(efpa.ArticulatedBody):
    """What a body that carries others remembers. Indices are numbers of bodies of its cluster, or of output bodies."""

    A = provided()  # 6 × freedoms: its acceleration per unit force at the joints of its cluster
    P = provided()  # 6 × freedoms: the force on an output body per unit force at the joints of the cluster
    Omega = Indexed()  # 6 × 6: its acceleration per unit force on another body of its cluster
    T = Indexed()  # 6 × 6: its acceleration per unit acceleration of an output body


class ClusterMemory(efpa.ArticulatedCluster):
    H = provided()  # the cluster's diagonal block of H⁻¹


def mass_matrix_inverse_program(robot: Robot) -> Any:
    """The program q → H⁻¹: those entries that `mass_matrix_inverse_entries` lists; all others are zero."""
    sweep = Sweep(robot, "mass_matrix_inverse", body=BodyMemory, cluster=ClusterMemory, oriented=())
    sweep.inputs("q")
    blocks = Blocks(sweep)
    sweep.outward(efpa.outward, carriers=True)
    sweep.inward(efpa.inward)
    sweep.outward(respond)
    blocks.run()
    return sweep.build()


def mass_matrix_inverse_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the program's entries; of two entries that are equal by symmetry, at least one is there."""
    return Blocks(Sweep(robot, "entries")).entries


def respond(cluster: Visit[BodyMemory, ClusterMemory]) -> None:
    """Computes a cluster's block D⁻¹ + Y Ω' Yᵀ, and accelerations per unit force: A at its joints, Ω on its bodies.

    A force on a body acts as Sᵀ on the joints and as Xᵀ on the output body, so Ω = A Sᵀ + T Ω' Xᵀ.
    """
    outputs, grounded = cluster.outputs, cluster.grounded
    outside = [[response_outside(one, other) for other in outputs] for one in outputs]  # Ω', zero on the ground
    Dinv = cluster.memory.Dinv
    Yt = [np.zeros((6, len(Dinv)))] if grounded else response_by_output(cluster, cluster.memory.Y)
    felt = [acceleration_by_forces(row, Yt) for row in outside]  # Ω' Yᵀ
    cluster.memory.H = mirrored(Dinv + block_between(Yt, felt))
    for body in cluster.carriers:
        body.memory.A = body.S @ cluster.memory.H - body.Xo @ felt[body.output.number]
        for other in cluster.carriers:
            a, b = body.output.number, other.output.number
            TO = body.Xo @ outside[a][b] - body.S @ felt[b].T
            Omega = body.memory.A @ other.S.T + (other.Xo @ TO.T).T
            body.memory.Omega[other.number] = mirrored(Omega) if other is body else Omega
    for output in [] if grounded else outputs:
        output.memory.P = -Yt[output.number]
        for body in cluster.carriers:
            T = -body.S @ Yt[output.number].T
            body.memory.T[output.number] = T + body.Xo.matrix() if output is body.output else T


def response_outside(one: Output[BodyMemory], other: Output[BodyMemory]) -> Any:
    """Ω': the acceleration of an output body per unit force on another one."""
    return np.zeros((6, 6)) if one.grounded else one.memory.Omega[other.number]


def pass_cluster(A: Sequence[Any], T: Sequence[Sequence[Any]], P: Sequence[Any]) -> Any:
    """The block Aᵀ P of a cluster and one that it carries, and P := Tᵀ P on its output bodies.

    By symmetry, the joints' acceleration per unit force on a body is Aᵀ.
    """
    on_outputs = [block_between(column, P) for column in zip(*T, strict=True)]
    return (block_between(A, P), *on_outputs) if on_outputs else block_between(A, P)


def acceleration_by_forces(Omega: Sequence[Any], P: Sequence[Any]) -> Any:
    """Σ Ω P: the acceleration of a body by forces on several bodies."""
    return reduce(add, (W @ p for W, p in zip(Omega, P, strict=True)))


def block_between(P: Sequence[Any], A: Sequence[Any]) -> Any:
    """Σ Pᵀ A: the block of two clusters, from forces by the one and accelerations by the other."""
    return reduce(add, (p.T @ a for p, a in zip(P, A, strict=True)))


class Blocks:
    """The blocks of H⁻¹, one for each two clusters that are coupled.

    Forces at the joints of a cluster are propagated to the ground as P, 6 × freedoms on each body that carries it.
    Clusters are taken from the tips inward. At each of them the P of all clusters that it carries arrive: two from
    different sides make their block there, each makes one with the cluster itself, and all are propagated to its output
    bodies. So memory holds one P for each cluster.

    Attributes:
        entries: rows and columns of the result's elements, one of two that are equal by symmetry.
    """

    def __init__(self, sweep: Sweep[Any, Any]) -> None:
        self._sweep, clusters = sweep, range(len(sweep.instances))
        self._parent = [cluster.parent for cluster in sweep.robot.cluster_tree.clusters]
        self._outputs = [instance.outputs for instance in sweep.instances]
        self._carriers: list[list[int]] = [[] for _ in clusters]
        for shape, members in sweep.shapes:
            for k in members:
                self._carriers[k] = [sweep.instances[k].links[i] for i in np.flatnonzero(shape.carries)]
        self._sides: list[list[list[int]]] = [[] for _ in clusters]  # for each cluster all that it carries, by child
        for k in reversed(clusters[1:]):
            self._sides[self._parent[k]].append([k, *(i for side in self._sides[k] for i in side)])
        columns = [velocities_of(sweep.robot, k) for k in clusters]
        self._sizes = [len(entries) for entries in columns]
        self._A, self._Omega, self._T, self._P, self._R = (sweep.store(name) for name in ("A", "Omega", "T", "P", "R"))
        self._H = sweep.result_store("H")
        for k in clusters[1:]:
            self._make_room(k)
        pairs = self._pairs()
        for j, k in pairs:
            self._H.add((j, k), (self._sizes[j], self._sizes[k]))
        blocks: Any = list(self._H.starts)
        rows = [np.repeat(columns[j], self._sizes[k]) for j, k in blocks]
        tiles, none = [np.tile(columns[k], self._sizes[j]) for j, k in blocks], np.zeros(0, int)
        self.entries = np.concatenate([none, *rows]), np.concatenate([none, *tiles])
        sweep.provide = self._provide

    def _make_room(self, k: int) -> None:
        """Makes room for a cluster's quantities."""
        self._H.add((k, k), (self._sizes[k], self._sizes[k]))
        for link in self._carriers[k]:
            self._A.add(link, (6, self._sizes[k]))
            for other in self._carriers[k]:
                self._Omega.add((link, other), (6, 6))
            for output in self._outputs[k] if self._parent[k] else ():
                self._T.add((link, output), (6, 6))
        j, width = k, 0
        while self._parent[j]:
            width, j = max(width, len(self._outputs[j])), self._parent[j]
        for i in range(width):
            self._P.add((k, i), (6, self._sizes[k]))
        for i in range(len(self._carriers[self._parent[k]])):
            for c in self._sides_of_child(k):
                self._R.add((self._sizes[c], i), (6, self._sizes[c]))

    def _sides_of_child(self, k: int) -> list[int]:
        """A cluster and all that it carries."""
        return next(side for side in self._sides[self._parent[k]] if side[0] == k)

    def _pairs(self) -> list[tuple[int, int]]:
        """Pairs of coupled clusters, in the order in which their blocks are computed."""
        pairs: list[tuple[int, int]] = []
        for j in reversed(range(1, len(self._parent))):
            for number, side in enumerate(self._sides[j]):
                others = [c for other in self._sides[j][:number] for c in other]
                pairs += [(c, k) for k in side for c in others]
            pairs += [(j, k) for side in self._sides[j] for k in side]
        return pairs

    def run(self) -> None:
        """Writes the steps that compute all blocks but the diagonal ones."""
        schedule = self._sweep.schedule()
        self._H.buffer  # noqa: B018  (an output, even where there is no block)
        for j in reversed(range(1, len(self._parent))):
            self._meet(schedule, j)
            self._pass(schedule, j)
        schedule.run()

    def _meet(self, schedule: Schedule, j: int) -> None:
        """Blocks of two clusters that cluster j carries on different sides."""
        P, R, Omega = self._P.place, self._R, self._Omega.place
        for number, side in enumerate(self._sides[j]):
            bodies = self._outputs[side[0]]
            others = [(c, self._outputs[other[0]]) for other in self._sides[j][:number] for c in other]
            accelerated = sorted({link for _, links in others for link in links})
            for k in side if others else ():
                forces = [P((k, i)) for i in range(len(bodies))]
                for i, link in enumerate(accelerated):
                    target = R.place((self._sizes[k], i))
                    schedule.call(acceleration_by_forces, [Omega((link, body)) for body in bodies], forces, out=target)
                for c, links in others:
                    forces_of_c = [P((c, i)) for i in range(len(links))]
                    motions = [R.place((self._sizes[k], accelerated.index(link))) for link in links]
                    schedule.call(block_between, forces_of_c, motions, out=self._H.place((c, k)))

    def _pass(self, schedule: Schedule, j: int) -> None:
        """Blocks of cluster j with all clusters that it carries; P moves on from its bodies to its output bodies."""
        moving_outputs = self._outputs[j] if self._parent[j] else ()
        for side in self._sides[j]:
            bodies = self._outputs[side[0]]
            A = [self._A.place(link) for link in bodies]
            T = [[self._T.place((link, output)) for output in moving_outputs] for link in bodies]
            for k in side:
                P = [self._P.place((k, i)) for i in range(max(len(bodies), len(moving_outputs)))]
                out = [self._H.place((j, k)), *P[: len(moving_outputs)]]
                schedule.call(pass_cluster, A, T, P[: len(bodies)], out=out)

    def _provide(self, windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        instances = [self._sweep.instances[k] for k in clusters]
        windows.cluster["H"] = self._H.at([(k, k) for k in clusters])
        carriers = [i for i, carries in enumerate(shape.carries) if carries]
        outputs = [i for i, grounded in enumerate(shape.grounded) if not grounded]
        for i in carriers:
            windows.bodies[i]["A"] = self._A.at([x.links[i] for x in instances])
            for j in carriers:
                both = [(x.links[i], x.links[j]) for x in instances]
                windows.bodies[i][numbered("Omega", j)] = self._Omega.at(both)
            for o in outputs:
                windows.bodies[i][numbered("T", o)] = self._T.at([(x.links[i], x.outputs[o]) for x in instances])
        for o in outputs:
            windows.outputs[o]["P"] = self._P.at([(k, o) for k in clusters])
            for p in outputs:
                both = [(x.outputs[o], x.outputs[p]) for x in instances]
                windows.outputs[o][numbered("Omega", p)] = self._Omega.at(both)
