"""Positions after a step, as steps of a program: q ⊕ h v.

Orientations turn by exp(h ω). Loops without a solution are closed by Newton's method, from where the velocities of all
their joints lead. Floating bodies go straight, and their velocity, which came along the axes before the step, is told
along those after it: so momentum stays what impulses make of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.floating import straight_motion
from coupler.contact.kernels import assign
from coupler.graph import Buffer, View, constants, fields
from coupler.model.embedding.scene import by_kind
from coupler.model.joint import Joint
from coupler.model.tolerances import CLOSED
from coupler.passes import ClusterWindows, Record, Shape, Sweep, Visit, provided

__all__ = ["advance"]


class Spread(Record):
    """Of a joint in a loop: where its position is among those of all joints, and how far its velocity leads."""

    position, shift = provided(), provided()


def advance(sweep: Sweep[Any, Any], h: float, q: Buffer, v: Buffer, q_next: Buffer) -> None:
    """Writes the steps to q_next, and to velocities of floating bodies.

    Args:
        sweep: the program, after a pass in which clusters remembered G.
        h: the step's length, s.
        q: where it starts.
        v: velocities in the step; those of floating bodies become what they are after it.
        q_next: where it ends.
    """
    robot, tree, embedding = sweep.robot, sweep.robot.tree, sweep.robot.embedding
    q_place = np.full(tree.nq, -1)
    q_place[embedding.q_index] = np.arange(robot.nq)
    held = _close(sweep, h, q_place, q_next)
    stored = [link for link in range(1, len(tree.links)) if q_place[tree.q_start[link]] >= 0 and link not in held]
    for kind, links in by_kind(tree, stored):
        at, along = q_place[tree.q_start[links]], embedding.v_place[tree.v_start[links]]
        joint = fields(q=q.at(at, kind.nq), v=v.at(along, kind.nv), after=q_next.at(at, kind.nq))
        step = fields(h=constants(np.full(len(links), h)))
        sweep.builder.loop(_fly if kind.floats else _moving(kind), here=joint | step)


def _moving(kind: Joint) -> Callable[[View], None]:
    def moving(here: View) -> None:
        after = kind.integrate(here.q, here.h * here.v)
        here.after = after if kind.nq == kind.nv else kind.normalize(after)

    return moving


def _fly(here: View) -> None:
    here.after, here.v = straight_motion(here.q, here.v, here.h)


def _close(sweep: Sweep[Any, Any], h: float, q_place: np.ndarray, q_next: Buffer) -> set[int]:
    """Writes the steps that close loops without solutions; returns the links in them."""
    shapes = [i for i, (shape, _) in enumerate(sweep.shapes) if not shape.solved]
    if not shapes:
        return set()
    robot, tree, builder = sweep.robot, sweep.robot.tree, sweep.builder
    sizes = {"p": tree.nq, "step": tree.nv, "weight": tree.nv, "p_next": tree.nq}
    vectors = {name: builder.scratch(f"all_{name}", size) for name, size in sizes.items()}
    known = {"p": robot.states.neutral, "step": np.zeros(tree.nv), "weight": robot.states.dependent}
    for name, values in known.items():  # joints that no loop holds stay where they are
        builder.loop(_fill, here=fields(x=vectors[name].at(range(len(values))), value=constants(values)))

    def provide(windows: ClusterWindows, shape: Shape, clusters: list[int]) -> None:
        for i, kind in enumerate(shape.kinds):
            links = [sweep.instances[k].links[i] for k in clusters]
            windows.joints[i]["position"] = vectors["p"].at(tree.q_start[links], kind.nq)
            windows.joints[i]["shift"] = vectors["step"].at(tree.v_start[links], kind.nv)

    schedule = sweep.schedule()
    clusters = [k for number in shapes for k in sweep.shapes[number][1]]
    for k in clusters:
        sweep.visit(schedule, _spread, k, provide=provide)
    schedule.run()
    held = {link for k in clusters for link in sweep.instances[k].links}
    program = robot.states.closing_program()
    phi = builder.scratch("phi", next(x.size for x in program.outputs if x.name == "phi"))
    names = {"p": "p", "step": "step", "weight": "weight", "q": "p_next"}
    builder.call(program, phi=phi, **{name: vectors[ours] for name, ours in names.items()})
    assert sweep.gap is not None
    builder.loop(_note_open_loops, here=fields(phi=phi.at(range(phi.size)), gap=sweep.gap.at([0] * phi.size)))
    places = [(p, q_place[p]) for link in held for p in tree.positions(link)]
    source, target = vectors["p_next"].at([p for p, _ in places]), q_next.at([at for _, at in places])
    builder.loop(assign, row=fields(source=source, target=target))
    return held


def _spread(cluster: Visit[Any, Any]) -> None:
    """Positions of all joints of a cluster, and how far their velocities lead."""
    shift = cluster.memory.step * (cluster.G @ cluster.memory.v_next)
    for body, q, view in zip(cluster.bodies, cluster.q, cluster.views.joints, strict=True):
        joint = Spread(view)
        joint.position, joint.shift = q, shift[body.entries]


def _fill(here: View) -> None:
    here.x = here.value


def _note_open_loops(here: View) -> None:
    """A loop that does not close makes the configuration invalid."""
    here.gap = np.maximum(here.gap, np.where(np.abs(here.phi) < CLOSED, 0.0, 1.0))
