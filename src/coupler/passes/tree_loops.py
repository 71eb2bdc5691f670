"""Large clusters by loops over their joints: poses, K, inertias and forces of their trees, seen by their output bodies.

A pass over a cluster is one trace, in which the arithmetic of each body is spelled out. For a hundred bodies that takes
long to compile, and to run: it is too long for the instruction cache. What is the same for every joint is therefore
computed by loops over joints, before the pass, which sees the results as what the cluster knows.

    H_ij = s_iᵀ Iᶜ_j s_j for a joint i that carries j,    h_i = s_iᵀ Σ (I a + v ×* I v), a for ÿ = 0

s is the motion of a joint, and Iᶜ the inertia of all that it carries. Such clusters have joints of one freedom, hang on
one output body, and carry no other cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.graph import Buffer, Slot, View, Window, constants, fields, symmetric
from coupler.model.embedding.constraint_steps import ConstraintSteps, constant_fields
from coupler.model.tolerances import STEEP
from coupler.passes.records import Array, Record, provided
from coupler.passes.shape import ClusterShape
from coupler.passes.windows import ClusterWindows
from coupler.spatial import RigidInertia, Transform, cross_force, cross_motion, mirrored

if TYPE_CHECKING:
    from coupler.passes.cluster import Visit
    from coupler.passes.sweep import Sweep

_AT_ONCE = 32  # numbers of R⁻ᵀ of which the largest is found by one turn of a loop


class TreeRecord(Record):
    """What loops over its joints have found of a cluster, seen by its output body."""

    columns, residuals, kept_residuals, biases = provided(), provided(), provided(), provided()  # Kᵀ, φ and k of loops
    pairs, momenta = provided(), provided()  # of the tree: H_ij of `pairs_of`, and Iᶜ s of each joint
    bias_forces, force = provided(), provided()  # h of all joints, and the force that the output body feels
    total_m, total_h, total_I = provided(), provided(), provided()  # the inertia that it carries


class LoopedJoint(Record):
    """The same of one of its bodies and that body's joint."""

    pose_E, pose_r, motion = provided(), provided(), provided()  # its pose, and s, 1 × 6
    speed, bias = provided(), provided()  # entries of w and g


def pairs_of(shape: ClusterShape) -> list[tuple[int, int]]:
    """Each body of a cluster with each of those that carry it, and with itself."""
    return [(other, body) for body, path in enumerate(shape.paths) for other in path]


class TreeLoops:
    """The loops over joints of those clusters of a program that are seen this way.

    Attributes:
        clusters: their numbers.
        all_loops: whether no other cluster has loops without a solution.
        q, phi: positions where they were placed last, and residuals of their loops there.
    """

    def __init__(self, sweep: Sweep[Any, Any], clusters: Sequence[int]) -> None:
        b, tree, embedding = sweep.builder, sweep.robot.tree, sweep.robot.embedding
        self._sweep, self.clusters = sweep, list(clusters)
        self._number = {k: i for i, k in enumerate(clusters)}
        number = {loop.cluster: i for i, loop in enumerate(embedding.closure.loops)}
        loops = [embedding.closure.loops[number[k]].keeping(embedding.choices[number[k]].rows) for k in clusters]
        self.all_loops = all(k in clusters or embedding.explicit[i] for k, i in number.items())
        self.q, self._w, self._g = (
            b.scratch(f"tree_{x}", n) for x, n in (("q", tree.nq), ("w", tree.nv), ("g", tree.nv))
        )
        self.phi = b.scratch("tree_phi", sum(loop.rows for loop in loops))
        self._k = b.scratch("tree_k", sum(loop.kept for loop in loops))
        self._starts_of_phi = np.cumsum([0, *(loop.rows for loop in loops)])
        self._steps = ConstraintSteps(b, tree, loops, self.q, None, self.q, self.phi)
        self._links = [link for k in clusters for link in sweep.instances[k].links]
        self._row = {link: i for i, link in enumerate(self._links)}
        count = len(self._links)
        inertia = {"m": (), "h": 3, "I": symmetric(3)}
        totals = {f"total_{name}": size for name, size in inertia.items()}
        self._bodies = b.records("tree_body", count + len(clusters), **inertia, **totals, C=6, f=6)
        self._carriers = []  # of each body what carries it: a body, or an output body, which come last
        for k in clusters:
            for link in sweep.instances[k].links:
                self._carriers.append(self._row.get(tree.parent[link], count + self._number[k]))
        self._starts = np.cumsum([0, *(len(sweep.instances[k].links) for k in clusters)])
        self._pairs = [
            (start + i, start + j)
            for k, start in zip(clusters, self._starts.tolist(), strict=False)
            for i, j in pairs_of(sweep.shapes[sweep.shape_of[k]][0])
        ]
        self._pair_starts = np.cumsum([0, *(len(pairs_of(sweep.shapes[sweep.shape_of[k]][0])) for k in clusters)])
        self._H, self._momenta = b.scratch("tree_H", len(self._pairs)), b.scratch("tree_momenta", 6 * count)
        self._h = b.scratch("tree_h", count)

    def provide(self, windows: ClusterWindows, clusters: Sequence[int]) -> None:
        """Adds what is found to what clusters of a shape see."""
        numbers = [self._number[k] for k in clusters]
        loops = [self._steps.clusters[i] for i in numbers]
        first, n = self._starts[numbers], len(windows.joints)
        (m, rows), pairs = (loops[0][0].kept, loops[0][0].rows), int(np.diff(self._pair_starts)[numbers[0]])
        outputs = self._bodies[[len(self._links) + i for i in numbers]].fields
        windows.cluster |= {
            "columns": self._steps.K.at([K for _, _, K in loops], (n, m)),
            "residuals": self.phi.at(self._starts_of_phi[numbers], rows),
            "kept_residuals": self._steps.f.at([f for _, f, _ in loops], m),
            "biases": self._k.at([f for _, f, _ in loops], m),
            "pairs": self._H.at(self._pair_starts[numbers], pairs),
            "momenta": self._momenta.at(6 * first, (n, 6)),
            "bias_forces": self._h.at(first, n),
            "force": outputs["f"],
        } | {name: outputs[name] for name in ("total_m", "total_h", "total_I")}
        for i, joint in enumerate(windows.joints):
            links = [self._sweep.instances[k].links[i] for k in clusters]
            pose = self._steps.poses(links).fields
            joint |= {"pose_E": pose["E"], "pose_r": pose["r"], "motion": self._steps.motions(links)}
            v = self._sweep.robot.tree.v_start[links]
            joint |= {"speed": self._w.at(v, 1), "bias": self._g.at(v, 1)}

    def scratch(self) -> dict[str, Buffer]:
        """Where Newton's method, closing all loops, can leave what it finds; see `place`."""
        return self._steps.scratch()

    def place(self, q: Any, closed: bool) -> None:
        """Writes the loops that find poses, and φ and K of loops.

        Args:
            q: positions, a vector over those of the robot.
            closed: whether loops have just been closed there; if all were, their poses and φ may be known from that.
        """
        if not (closed and self.all_loops):
            tree, embedding = self._sweep.robot.tree, self._sweep.robot.embedding
            places = tree.q_start[self._links]
            source, target = q.at(embedding.q_place[places]), self.q.at(places)
            self._sweep.builder.loop(_assign, entry=fields(source=source, target=target))
            self._steps.place()
            self._steps.measure()
        self._steps.coupled_columns()

    def weigh(self) -> None:
        """Writes the loops that find H of the trees, momenta of their joints, and what output bodies carry."""
        b, count = self._sweep.builder, len(self._links)
        models = [model for k in self.clusters for model in self._sweep.instances[k].models]
        model = Window(constant_fields([{x: numbers[x] for x in ("m", "h", "I")} for numbers in models]))
        b.loop(_see_inertia, body=self._bodies[:count], pose=self._steps.poses(self._links), model=model)
        b.loop(_carry_nothing, output=self._bodies[count:])
        momenta = fields(p=self._momenta.at(6 * np.arange(count), 6), s=self._steps.motions(self._links))
        bodies: dict[str, Any] = {"body": self._bodies[:count], "carrier": self._bodies[self._carriers]}
        b.loop(_gather, backwards=True, joint=momenta, **bodies)
        i, j = np.transpose(self._pairs)
        motions = self._steps.motions([self._links[x] for x in i])
        entry = fields(H=self._H.at(range(len(i))), s=motions, p=self._momenta.at(6 * j, 6))
        b.loop(_entry_of_H, entry=entry)

    def check(self) -> None:
        """Writes the loop that tells how far loops are from regular, once clusters remember R⁻ᵀ of them."""
        b, gap = self._sweep.builder, self._sweep.gap
        assert gap is not None
        for k in self.clusters:
            slot, shape = self._sweep.windows([k]).cluster["K_inverse"], self._sweep.shapes[self._sweep.shape_of[k]][0]
            assert isinstance(slot, Slot)
            count = int(shape.null_space.inverse.sum())  # its first numbers are those of R⁻ᵀ
            size = min(count, _AT_ONCE)
            starts = np.minimum(np.arange(0, count, size), count - size)
            row = fields(inverse=slot.buffer.at(int(slot.bases[0]) + slot.offset + starts, size))
            b.loop(_note_steepness, row=row | fields(gap=gap.at([0] * len(starts))))

    def push(self, acceleration: str) -> None:
        """Writes the passes and loops that find g of loops, h, and forces on output bodies.

        Args:
            acceleration: what output bodies remember their own by.
        """
        self._sweep.builder.once((self, acceleration), lambda: self._push(acceleration))

    def _push(self, acceleration: str) -> None:
        b, count, tree = self._sweep.builder, len(self._links), self._sweep.robot.tree
        self._visit(_tell_speeds)
        self._steps.bias(self._w, self._k)
        self._visit(_tell_biases)
        b.loop(_bear_nothing, output=self._bodies[count:])
        carriers, v = self._bodies[self._carriers], tree.v_start[self._links]
        joint = fields(s=self._steps.motions(self._links), g=self._g.at(v), h=self._h.at(range(count)))
        known: dict[str, Any] = {"motion": self._steps.link_motions(self._links), "output": self._outputs(acceleration)}
        b.loop(_push, body=self._bodies[:count], carrier=carriers, joint=joint, **known)
        b.loop(_collect, backwards=True, body=self._bodies[:count], carrier=carriers, joint=joint)

    def _visit(self, function: Any) -> None:
        schedule = self._sweep.schedule()
        for k in self.clusters:
            self._sweep.visit(schedule, function, k)
        schedule.run()

    def _outputs(self, acceleration: str) -> Window:
        """Velocities and accelerations of the output body of each link."""
        outputs = [self._sweep.instances[k].outputs[0] for k in self.clusters for _ in self._sweep.instances[k].links]
        if not any(outputs):
            fall = np.concatenate([np.zeros(3), -self._sweep.robot.gravity])
            return fields(v=constants(np.zeros((len(outputs), 6))), a=constants(np.tile(fall, (len(outputs), 1))))
        memory = self._sweep.bodies(outputs).fields
        return fields(v=memory["v"], a=memory[acceleration])


def inertia_of_tree(cluster: Visit[Any, Any]) -> tuple[Array, Array, RigidInertia]:
    """H of a cluster's tree, momenta of its joints on the output body, 6 × n, and the inertia that this carries."""
    record = TreeRecord(cluster.views.cluster)
    H: Any = [[0.0] * len(cluster.bodies) for _ in cluster.bodies]
    for (i, j), entry in zip(pairs_of(cluster.shape), record.pairs, strict=True):
        H[i][j] = H[j][i] = entry
    return np.array(H), record.momenta.T, RigidInertia(record.total_m, record.total_h, record.total_I)


# Passes


def _tell_speeds(cluster: Visit[Any, Any]) -> None:
    w = cluster.G @ cluster.v
    for view, speed in zip(cluster.views.joints, w, strict=True):
        LoopedJoint(view).speed = np.array([speed])


def _tell_biases(cluster: Visit[Any, Any]) -> None:
    g = cluster.K_inverse @ cluster.loops.k
    for view, bias in zip(cluster.views.joints, g, strict=True):
        LoopedJoint(view).bias = np.array([bias])


# Kernels


def _assign(entry: View) -> None:
    entry.target = entry.source


def _see_inertia(body: View, pose: View, model: View) -> None:
    inertia = RigidInertia(model.m, model.h, mirrored(model.I)).seen_from(Transform(pose.E, pose.r))
    body.m, body.h, body.I = inertia.m, inertia.h, inertia.I
    body.total_m, body.total_h, body.total_I = inertia.m, inertia.h, inertia.I


def _carry_nothing(output: View) -> None:
    output.total_m, output.total_h, output.total_I = np.array(0.0), np.zeros(3), np.zeros((3, 3))


def _gather(body: View, carrier: View, joint: View) -> None:
    """The momentum of all that a joint carries, by unit of its velocity; and this is what its carrier carries, too."""
    joint.p = RigidInertia(body.total_m, body.total_h, body.total_I) @ joint.s[0]
    carrier.total_m, carrier.total_h = carrier.total_m + body.total_m, carrier.total_h + body.total_h
    carrier.total_I = carrier.total_I + body.total_I


def _note_steepness(row: View) -> None:
    largest = np.abs(row.inverse)
    while len(largest) > 1:  # by halves: one after the other, each would wait for the one before
        half = len(largest) // 2
        largest = np.concatenate([np.maximum(largest[:half], largest[half : 2 * half]), largest[2 * half :]])
    row.gap = np.maximum(row.gap, STEEP * largest[0])


def _entry_of_H(entry: View) -> None:
    entry.H = entry.s[0] @ entry.p


def _bear_nothing(output: View) -> None:
    output.C = output.f = np.zeros(6)


def _push(body: View, carrier: View, joint: View, motion: View, output: View) -> None:
    """The force that a body needs for its acceleration where ÿ = 0. [001, eq. 25, 31, 33]"""
    body.C = C = carrier.C + joint.g * joint.s[0]
    inertia, v = RigidInertia(body.m, body.h, body.I), output.v + motion.V
    a = output.a + cross_motion(output.v, motion.V) + motion.A + C
    body.f = inertia @ a + cross_force(v, inertia @ v)


def _collect(body: View, carrier: View, joint: View) -> None:
    joint.h = joint.s[0] @ body.f
    carrier.f = carrier.f + body.f
