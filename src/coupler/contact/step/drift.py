"""Positions within a step, as steps of a program: where it takes forces, and where it ends; see halves.py.

Orientations turn by exp(h ω). Floating bodies move along straight lines. A loop without a solution is closed at the
configuration nearest to where the velocities of all its joints lead: no joint decides where the others go, and the loop
passes a dead point on the branch that it is on. That is why the velocities w of all joints in such loops are part of
the state. At the end of a step they are as fast along its basis N as the kick has made them, Nᵀ w = y, and fit the
loops where these are by then, K w = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.contact.floating import centre_of, straight_motion, turned_velocity
from coupler.contact.kernels import copy
from coupler.contact.scene import Layout
from coupler.contact.step.closing import Closing
from coupler.contact.step.fitting import Fitting
from coupler.contact.step.halves import Halves
from coupler.graph import Buffer, Part, Vector, View, Window, constants, fields
from coupler.linear import fitted
from coupler.model.embedding.constraint_steps import by_kind
from coupler.model.joint import Joint
from coupler.passes import ClusterShape, ClusterWindows, Record, Sweep, Visit, provided


class UnsolvedJoint(Record):
    """The fields that a cluster sees of one of its joints in a loop without a solution."""

    w_next, q_next = provided(), provided()  # its velocity and position after the step
    part, step = provided(), provided()  # which part of the step it moves, and the step's length, s
    position, shift = provided(), provided()  # where Newton's method starts, and how far it moves first


class Drift:
    """The positions of a robot within a step.

    Args:
        h: the step's length, s.
        halves: how trees of bodies move.
        before, after: q, v and w before the step, and after it.

    Attributes:
        closing: closes loops without a solution; None if there are none.
    """

    def __init__(
        self,
        sweep: Sweep[Any, Any],
        layout: Layout,
        h: float,
        halves: Halves,
        before: dict[str, Part],
        after: dict[str, Part],
    ) -> None:
        self._sweep, self._layout, self._h, self._halves = sweep, layout, h, halves
        self._before, self._after = before, after
        self.closing = Closing(sweep, layout) if layout.loop_links else None
        self._loop_clusters = sorted({sweep.number_in_cluster(link)[0] for link in layout.loop_links})
        self._fitting = Fitting(sweep, sweep.trees.clusters) if sweep.trees else None

    def provide(self, windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        """Adds fields of joints that passes see: velocities in loops before the step, centres of floating bodies."""
        for i, kind in enumerate(shape.kinds):
            links = [self._sweep.instances[k].links[i] for k in clusters]
            if not shape.solved:
                windows.joints[i]["w"] = self._loop_velocities(self._before, links, kind)
            if kind.floats:
                windows.joints[i]["centre"] = self._centres(links)

    def begin(self) -> None:
        """Writes the steps that compute positions where forces are taken, and start velocities along the axes there."""
        sweep, builder, tree = self._sweep, self._sweep.builder, self._sweep.robot.tree
        q, start = builder.scratch("middle", sweep.robot.nq), builder.scratch("start", sweep.robot.nv)
        sweep.vectors |= {"q": q, "start": start}
        copy(builder, self._before["v"], start, start.size)
        for kind, links in by_kind(tree, self._layout.moving_links):
            joint = self._joint(self._before["q"], q, start, kind, links)
            joint |= fields(part=self._halves.first(self._trees(links)))
            builder.loop((_flying if kind.floats else _moving)(kind), joint=joint)
        if self.closing is not None:
            for kind, links in by_kind(tree, self._layout.loop_links):
                joint = self.closing.ends(links, kind) | self._steps(len(links))
                joint |= fields(q=self._before["q"].at(self._q_place(links), kind.nq))
                joint |= fields(w=self._loop_velocities(self._before, links, kind))
                joint |= fields(part=self._halves.first(self._trees(links)))
                builder.loop(_lead, joint=joint)
            self.closing.close(q)

    def stay(self) -> None:
        """Makes forces be taken at the start of the step, so that nothing moves before."""
        start = self._before["v"]
        if self.closing is not None:  # clusters of loops have velocities along their own bases
            start = self._sweep.builder.scratch("start", start.size)
            copy(self._sweep.builder, self._before["v"], start, start.size)
        self._sweep.vectors |= {"q": self._before["q"], "start": start}

    def end(self, jump: Buffer | None) -> None:
        """Writes the steps that compute positions and velocities where the step ends.

        Args:
            jump: the velocities that impacts add once positions have moved; None if nothing rebounds in this way.
        """
        sweep, switched, v_next = self._sweep, self._halves.switch, self._sweep.vectors["v_next"]
        if self.closing is not None:
            self._visit_loops(_lead_on, self._loop_clusters)
            self.closing.close(self._after["q"])
        for kind, links in by_kind(sweep.robot.tree, self._layout.moving_links):
            joint = self._joint(sweep.vectors["q"], self._after["q"], v_next, kind, links)
            joint |= fields(part=self._halves.last(self._trees(links))) | self._origin(links, kind)
            if switched:
                joint |= fields(start=sweep.vectors["start"].at(self._v_place(links), kind.nv))
            if jump is not None and kind.floats:
                joint |= fields(jump=jump.at(self._v_place(links), kind.nv))
            sweep.builder.loop((_flying if kind.floats else _moving)(kind, switched, jump is not None), joint=joint)
        if jump is not None:
            rows = range(jump.size)
            sweep.builder.loop(_add_jump, row=fields(v=v_next.at(rows), jump=jump.at(rows)))
        if self.closing is not None:
            fitted = sweep.trees.clusters if sweep.trees else ()
            self._visit_loops(_fit_velocities, [k for k in self._loop_clusters if k not in fitted])
        if sweep.trees and self._fitting:
            sweep.trees.place(self._after["q"], closed=True)
            self._fitting.write(self._provide_ends)

    def _visit_loops(self, function: Callable[[Visit[Any, Any], bool], None], clusters: Sequence[int]) -> None:
        """Runs a function of clusters with loops without a solution, and of whether trees can move either way."""
        schedule = self._sweep.schedule()
        for k in clusters:
            self._sweep.visit(schedule, function, k, self._halves.switch, provide=self._provide_ends)
        schedule.run()

    def _provide_ends(self, windows: ClusterWindows, shape: ClusterShape, clusters: list[int]) -> None:
        """Adds fields of joints of loops, where the step ends, that passes see."""
        closing = self.closing
        assert closing is not None
        for i, kind in enumerate(shape.kinds):
            links = [self._sweep.instances[k].links[i] for k in clusters]
            joints = closing.ends(links, kind) | self._steps(len(links)) | self._origin(links, kind)
            joints |= fields(
                w_next=self._loop_velocities(self._after, links, kind),
                q_next=self._after["q"].at(self._q_place(links), kind.nq),
                part=self._halves.last(self._trees(links)),
            )
            windows.joints[i] |= joints.fields

    def _joint(self, q: Vector, q_next: Vector, v: Vector, kind: Joint, links: Sequence[int]) -> Window:
        """The fields of joints outside such loops: q, the position after moving, and v, turned to the axes there."""
        q_place, v_place = self._q_place(links), self._v_place(links)
        joint = fields(q=q.at(q_place, kind.nq), v=v.at(v_place, kind.nv), after=q_next.at(q_place, kind.nq))
        return joint | self._steps(len(links)) | (fields(centre=self._centres(links)) if kind.floats else fields())

    def _origin(self, links: Sequence[int], kind: Joint) -> Window:
        """The fields for positions of joints before the step, and for whether joints move from there after all."""
        if not self._halves.switch:
            return fields()
        before, trees = self._before["q"].at(self._q_place(links), kind.nq), self._trees(links)
        return fields(before=before, acted=self._halves.acted(trees), first=self._halves.first(trees))

    def _steps(self, count: int) -> Window:
        return fields(step=constants(np.full(count, self._h)))

    def _centres(self, links: Sequence[int]) -> Any:
        return constants([centre_of(self._sweep.robot.tree.links[link]) + 0.0 for link in links])

    def _loop_velocities(self, state: dict[str, Part], links: Sequence[int], kind: Joint) -> Any:
        return state["w"].at([self._layout.w_place[link] for link in links], kind.nv)

    def _trees(self, links: Sequence[int]) -> list[int]:
        return [self._layout.tree_of(link) for link in links]

    def _v_place(self, links: Sequence[int]) -> np.ndarray:
        return self._sweep.robot.embedding.v_place[self._sweep.robot.tree.v_start[list(links)]]

    def _q_place(self, links: Sequence[int]) -> np.ndarray:
        return self._sweep.robot.embedding.q_place[self._sweep.robot.tree.q_start[list(links)]]


def _moving(kind: Joint, switched: bool = False, jumping: bool = False) -> Callable[[View], None]:
    def moving(joint: View) -> None:
        q, v = joint.q, joint.v
        if switched:
            q, v = np.where(joint.acted > 0.0, joint.before, q), _travel_velocity(joint, joint.start, v)
        after = kind.integrate(q, joint.part * joint.step * v)
        joint.after = after if kind.nq == kind.nv else kind.normalize(after)

    return moving


def _flying(kind: Joint, switched: bool = False, jumping: bool = False) -> Callable[[View], None]:
    def flying(joint: View) -> None:
        length, axes = joint.part * joint.step, joint.q[3:]
        if not switched:
            joint.after, v = straight_motion(joint.q, joint.v, length, joint.centre)
        else:
            q, v = np.where(joint.acted > 0.0, joint.before, joint.q), _travel_velocity(joint, joint.start, joint.v)
            joint.after, _ = straight_motion(q, v, length, joint.centre, axes)
            v = turned_velocity(joint.v, axes, joint.after[3:], joint.centre)
        if jumping:
            joint.jump = turned_velocity(joint.jump, axes, joint.after[3:], joint.centre)
        joint.v = v

    return flying


def _travel_velocity(tree: View, start: Any, v: Any) -> Any:
    """The velocity with which a tree moves the rest of its way: v after the step, with one exception.

    A tree that has not moved so far, and that impulses do not act on after all, moves with the mean of the velocities
    before and after the step, which is as exact for a parabola as two halves are.
    """
    return np.where((tree.first <= 0.0) & (tree.acted <= 0.0), 0.5 * (start + v), v)


def _add_jump(row: View) -> None:
    row.v += row.jump


def _lead(joint: View) -> None:
    """Computes where a joint of a loop is, and how far its velocity takes it before forces are taken."""
    joint.position, joint.shift = joint.q, joint.part * joint.step * joint.w


def _lead_on(cluster: Visit[Any, Any], switched: bool) -> None:
    """Does as `_lead` for all joints of a cluster once impulses are known, with the velocities after the step."""
    y = cluster.memory.v_next
    if switched:
        y = _travel_velocity(cluster.views.joints[0], cluster.memory.start, y)
    w = cluster.G @ y
    for body, q, view in zip(cluster.bodies, cluster.q, cluster.views.joints, strict=True):
        view.position = np.where(view.acted > 0.0, view.before, q) if switched else q
        view.shift = view.part * view.step * w[body.entries]


def _fit_velocities(cluster: Visit[Any, Any], switched: bool) -> None:
    """Computes w = N y + K⁺ z that fits the loops after the step, K' w = 0; v is a part of w."""
    y, joints = cluster.memory.v_next, [UnsolvedJoint(view) for view in cluster.views.joints]
    K = cluster.elsewhere([joint.q_next for joint in joints]).loops.K
    w = fitted(K, cluster.K_inverse, cluster.G @ y)
    for body, joint in zip(cluster.bodies, joints, strict=True):
        joint.w_next = w[body.entries]
    cluster.memory.v_next = w[cluster.shape.independent]
