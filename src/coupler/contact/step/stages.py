"""Steps of several stages with contact, as steps of a program: Runge-Kutta, and the trapezoidal rule. [002, §4.1]

A step runs in the chart q = q₀ ⊕ u around its start (see simulate/chart.py), where u̇ = dexp⁻¹ v. Its first stage is
that of Euler's method: accelerations, with the impulses λ of the contact problem as forces λ/h. Each further stage
takes accelerations at the state that it reaches, with the same forces: those of contacts where these are by then
(carried.py), those of limits and dry friction at their joints.

Clusters of loops without a solution carry the velocities w of all their joints, as in drift.py, and u has an entry for
each of them. Every stage, and the end, is projected onto the loops: to the nearest configuration that closes them, and
to N Nᵀ w there. This is the method itself, applied to u and w under a vector field that depends on what they are
projected to. So it keeps its order. [Hairer, Lubich, Wanner, Geometric numerical integration, IV.4]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.contact.floating import centre_of, turned_velocity
from coupler.contact.kernels import clear, in_parts
from coupler.contact.scene import Layout
from coupler.contact.scheme import Progress, Scheme
from coupler.contact.step.closing import Closing
from coupler.contact.step.kick import Kick
from coupler.contact.step.memory import StepBody, StepCluster
from coupler.contact.step.stage_contacts import StageContacts
from coupler.contact.step.stage_passes import first_rates, fit, rates, settling
from coupler.graph import Buffer, Part, Vector, View, constants, fields
from coupler.model.embedding.constraint_steps import by_kind
from coupler.model.joint import Joint
from coupler.passes import ClusterShape, ClusterWindows, Sweep, collect_loads

_VECTORS = ("u", "x", "moves", "u_rate", "x_rate", "u_sum", "x_sum", "jump")


class Stages:
    """The stages of a step, from the accelerations at its start to its end.

    Vectors have one entry for each carried velocity: first the independent ones, then those of all joints in loops
    without a solution. `u` and `x` are the chart's coordinates and the velocities of a stage, `moves` its velocities
    once they fit the loops, `u_rate` and `x_rate` their rates, `u_sum` and `x_sum` weighted sums of rates, and `jump`
    what impacts add in the end.

    Args:
        h: the step's length, s.
        kick: the passes to accelerations.
        closing: closes loops without a solution; None if there are none.
        before, after: q, v and w before the step, and after it.

    Attributes:
        progress: returns a window of that many rows on how far the step is; see `Progress`.
        drive: writes the steps that add forces of actuators to those at joints of a stage; None if there are none.
    """

    def __init__(
        self,
        sweep: Sweep[StepBody, StepCluster],
        layout: Layout,
        h: float,
        scheme: Scheme,
        kick: Kick,
        closing: Closing | None,
        before: dict[str, Part],
        after: dict[str, Part],
    ) -> None:
        self._sweep, self._layout, self._h, self._kick = sweep, layout, h, kick
        self._before, self._after, builder, robot = before, after, sweep.builder, sweep.robot
        self._size = robot.nv + before["w"].size
        self._vectors = {name: builder.scratch(f"stage_{name}", self._size) for name in _VECTORS}
        self._q, self._progress = builder.scratch("stage_q", robot.nq), Progress(builder, scheme, h)
        self.progress = self._progress.at
        self._pushes = builder.scratch("pushes", robot.tree.nv) if layout.joints else None
        self._closing = closing
        self.drive: Callable[[], None] | None = None

    def provide(self, windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        """Adds the fields that passes see of joints: entries of vectors, and forces of limits and dry friction."""
        tree = self._sweep.robot.tree
        for i, kind in enumerate(shape.kinds):
            links = [self._sweep.instances[k].links[i] for k in clusters]
            if self._pushes is not None:
                windows.joints[i]["push"] = self._pushes.at(tree.v_start[links], kind.nv)
            if not shape.solved or shape.free[i]:
                place = self._place(links, shape.free[i][0] if shape.solved else 0)
                size = len(shape.free[i]) if shape.solved else kind.nv
                windows.joints[i] |= {f"stage_{name}": vector.at(place, size) for name, vector in self._vectors.items()}

    def write(
        self, contacts: StageContacts | None, impulses: Vector | None, jump: Buffer | None, loads: Buffer | None
    ) -> None:
        """Writes all stages, and the end of the step.

        Args:
            contacts: the contacts, whose forces are known; None if there are none.
            impulses: the impulses of all contacts and joints; None if there are none.
            jump: the velocities that impacts add once positions have moved; None if nothing rebounds in this way.
            loads: the input of forces on bodies; None if there is none.
        """
        sweep, builder = self._sweep, self._sweep.builder
        if self._pushes is not None:
            assert impulses is not None
            self._push(impulses)
        if jump is not None:
            sweep.vectors["jump"] = jump
        self._progress.begin()
        for name in ("x_rate", "jump") if self._closing else ():  # entries of v in loops, which w stands for, stay zero
            clear(builder, self._vectors[name])
        sweep.outward(first_rates(jump is not None))
        sums = {name: self._vectors[name] for name in ("u_rate", "x_rate", "u_sum", "x_sum")}
        self._elementwise(_start, x=self._carried(self._before), **sums)
        with self._progress.each_stage():
            self._go_on(self._vectors["u_rate"], self._vectors["x_rate"], self._vectors["x"], self._q)
            self._accelerate(contacts, loads)
            self._each_joint(_chart_rate, ("u", "moves", "u_rate"))
            self._elementwise(_add, **sums)
        self._progress.end()
        self._go_on(self._vectors["u_sum"], self._vectors["x_sum"], self._carried(self._after), self._after["q"])
        self._finish(jump is not None)

    def _accelerate(self, contacts: StageContacts | None, loads: Buffer | None) -> None:
        """Writes the passes to velocities of a stage that fit its loops, and to accelerations there."""
        sweep = self._sweep
        q, sweep.vectors["q"] = sweep.vectors["q"], self._q
        sweep.forget()
        sweep.outward(settling(self._pushes is not None))
        if self.drive:
            self.drive()
        if sweep.loaded:
            collect_loads(sweep, loads)
        if contacts:
            contacts.press(sweep)
        sweep.inward(self._kick.factorise_and_answer)
        sweep.outward(rates)
        sweep.vectors["q"] = q

    def _push(self, impulses: Vector) -> None:
        """Writes the steps that compute forces of limits and dry friction, which act at joints for the whole step."""
        builder, tree, joints = self._sweep.builder, self._sweep.robot.tree, self._layout.joints
        assert self._pushes is not None
        clear(builder, self._pushes)
        places = [int(tree.v_start[link]) + j for link, j in joints]
        rows = [self._layout.contact_rows.total + i for i in range(len(joints))]
        pace = constants(np.full(len(joints), 1.0 / self._h))
        builder.loop(_spread, row=fields(impulse=impulses.at(rows), force=self._pushes.at(places), pace=pace))

    def _go_on(self, u_rate: Vector, x_rate: Vector, x: Vector, q: Vector) -> None:
        """Writes the steps that compute u, velocities, and positions that close loops, from rates."""
        start, u = self._carried(self._before), self._vectors["u"]
        self._elementwise(_go_on, start=start, u_rate=u_rate, x_rate=x_rate, u=u, x=x)
        robot, builder = self._sweep.robot, self._sweep.builder
        for kind, links in by_kind(robot.tree, self._layout.moving_links):
            at = self._q_place(links)
            joint = fields(q=self._before["q"].at(at, kind.nq), after=q.at(at, kind.nq))
            builder.loop(_advancing(kind), joint=joint | fields(u=self._vectors["u"].at(self._place(links), kind.nv)))
        if self._closing is None:
            return
        for kind, links in by_kind(robot.tree, self._layout.loop_links):
            joint = self._closing.ends(links, kind)
            joint |= fields(q=self._before["q"].at(self._q_place(links), kind.nq))
            builder.loop(_start_newton, joint=joint | fields(u=self._vectors["u"].at(self._place(links), kind.nv)))
        self._closing.close(q)

    def _finish(self, jumping: bool) -> None:
        """Writes the steps that add velocities by impacts, and fit velocities to the loops after the step."""
        sweep, robot, x = self._sweep, self._sweep.robot, self._carried(self._after)
        if jumping:
            for kind, links in by_kind(robot.tree, [link for link in self._layout.moving_links if self._floats(link)]):
                at, entries = self._q_place(links), self._vectors["jump"].at(self._place(links), kind.nv)
                ends = fields(before=self._before["q"].at(at, kind.nq), after=self._after["q"].at(at, kind.nq))
                centre = constants([centre_of(robot.tree.links[link]) + 0.0 for link in links])
                sweep.builder.loop(_turn, joint=ends | fields(jump=entries, centre=centre))
            self._elementwise(_add_jump, x=x, jump=self._vectors["jump"])
        if self._closing is None:
            return

        def provide(windows: ClusterWindows, shape: ClusterShape, clusters: list[int]) -> None:
            for i, kind in enumerate(shape.kinds):
                links = [sweep.instances[k].links[i] for k in clusters]
                windows.joints[i] |= fields(
                    w_next=self._after["w"].at([self._layout.w_place[link] for link in links], kind.nv),
                    q_next=self._after["q"].at(self._q_place(links), kind.nq),
                ).fields

        schedule = sweep.schedule()
        for k in sorted({sweep.number_in_cluster(link)[0] for link in self._layout.loop_links}):
            sweep.visit(schedule, fit, k, provide=provide)
        schedule.run()

    def _each_joint(self, kernel: Any, names: Sequence[str]) -> None:
        """Writes loops over all joints whose velocities are carried, with their entries of some vectors."""
        for kind, links in by_kind(self._sweep.robot.tree, [*self._layout.moving_links, *self._layout.loop_links]):
            joint = fields(**{name: self._vectors[name].at(self._place(links), kind.nv) for name in names})
            self._sweep.builder.loop(kernel(kind), joint=joint)

    def _elementwise(self, kernel: Any, **vectors: Vector) -> None:
        """Writes loops over all entries of some vectors, with how far the step is."""
        for starts, size in in_parts(self._size):
            row = fields(**{name: vector.at(starts, size) for name, vector in vectors.items()})
            self._sweep.builder.loop(kernel, row=row | self._progress.at(len(starts)))

    def _carried(self, state: dict[str, Part]) -> Part:
        """v and w of a state, which lie side by side, as one vector of carried velocities."""
        return Part(state["v"].buffer, state["v"].start, self._size)

    def _place(self, links: Sequence[int], first: int = 0) -> np.ndarray:
        """The entries of joints (or those from `first` on) in vectors of carried velocities."""
        robot, places = self._sweep.robot, self._layout.w_place
        return np.array(
            [
                robot.nv + places[link] if link in places else robot.embedding.v_place[robot.tree.v_start[link] + first]
                for link in links
            ]
        )

    def _q_place(self, links: Sequence[int]) -> np.ndarray:
        return self._sweep.robot.embedding.q_place[self._sweep.robot.tree.q_start[list(links)]]

    def _floats(self, link: int) -> bool:
        return self._sweep.robot.tree.links[link].kind.floats


# Kernels of joints


def _advancing(kind: Joint) -> Any:
    def advance(joint: View) -> None:
        joint.after = kind.integrate(joint.q, joint.u)

    return advance


def _start_newton(joint: View) -> None:
    joint.position, joint.shift = joint.q, joint.u


def _chart_rate(kind: Joint) -> Any:
    def chart_rate(joint: View) -> None:
        joint.u_rate = kind.chart_rate(joint.u, joint.moves)

    return chart_rate


def _turn(joint: View) -> None:
    """Turns a jump of velocities to the axes after the step."""
    joint.jump = turned_velocity(joint.jump, joint.before[3:], joint.after[3:], joint.centre)


# Kernels of vectors


def _start(row: View) -> None:
    row.u_rate = row.x
    row.u_sum, row.x_sum = row.weight * row.x, row.weight * row.x_rate


def _go_on(row: View) -> None:
    row.u, row.x = row.ahead * row.u_rate, row.start + row.ahead * row.x_rate


def _add(row: View) -> None:
    row.u_sum += row.weight * row.u_rate
    row.x_sum += row.weight * row.x_rate


def _add_jump(row: View) -> None:
    row.x += row.jump


def _spread(row: View) -> None:
    row.force = row.pace * row.impulse
