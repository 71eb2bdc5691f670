"""Dead points of loops with a solution, which a step must not pass in silence.

A solution γ gives the positions of all joints of a cluster from its independent ones, on one branch. At a dead point,
where an arm is stretched or a crank is in line with its rod, two branches meet, and G = ∂γ/∂y is infinite. A real robot
passes such a pose onto the other branch, which γ does not know: on γ's own branch it would turn round, as if it hit a
wall. On the way there, 1/|G| goes to zero at a steady pace. So a step in which a row of G grows much is one of the last
before a dead point, and has no result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.compiled import attempted, remembered
from coupler.contact.scene import ContactScene
from coupler.graph import Part, Program, constants, fields
from coupler.model import Robot
from coupler.model.wording import listed
from coupler.passes import ClusterShape, ClusterWindows, Sweep, Visit, cleared

DEAD_POINT = (
    "a dead point, where the workspace of its independent joints ends and a closed form does not go on; "
    'robot.with_closure("numerical") passes it, and limits of joints would keep it from there'
)
_GROWTH = 1.3  # of a row of G within a step: some four steps before a dead point, which Euler's method never reaches
_CONFIGURATIONS = 15  # samples from which the usual lengths of rows of G are taken


def watch_dead_points(sweep: Sweep[Any, Any], scene: ContactScene, before: Part, after: Part) -> None:
    """Writes the steps that make velocities NaN where the next step would pass a dead point of a solution.

    Args:
        before: q before the step.
        after: q after the step.
    """
    robot, schedule = sweep.robot, sweep.schedule()
    watched = _watched_clusters(robot, scene.limits)
    usual = remembered(robot, _usual_rates, _usual_rates) if watched else np.zeros(0)

    def provide(windows: ClusterWindows, shape: ClusterShape, clusters: list[int]) -> None:
        links = [sweep.instances[k].links for k in clusters]
        for i, kind in enumerate(shape.kinds):
            if shape.stored[i]:
                place = robot.embedding.q_place[robot.tree.q_start[[members[i] for members in links]]]
                windows.joints[i] |= fields(before=before.at(place, kind.nq), after=after.at(place, kind.nq)).fields
        rows = [usual[robot.tree.velocities_of(members)[shape.dependent]] for members in links]
        windows.cluster["usual"] = constants(np.array(rows))

    for k in watched:
        sweep.visit(schedule, _watch, k, provide=provide)
    schedule.run()


def _watch(cluster: Visit[Any, Any]) -> None:
    joints = list(zip(cluster.views.joints, cluster.shape.stored, strict=True))
    before = cluster.elsewhere([view.before if stored else None for view, stored in joints])
    after = cluster.elsewhere([view.after if stored else None for view, stored in joints])
    dead = _grown(_rates(before), _rates(after), cluster.views.cluster.usual)
    v = cluster.memory.v_next
    for row in dead:
        v = np.where(row, np.nan, v)
    cluster.memory.v_next = v


def _rates(cluster: Visit[Any, Any]) -> Any:
    """The squared lengths of the rows of G that belong to dependent velocities."""
    G = cluster.G[cluster.shape.dependent]
    return np.sum(G * G, axis=-1)


def _grown(before: Any, after: Any, usual: Any) -> Any:
    """Whether each row of G grew much within a step, from the squares of their lengths."""
    return after > _GROWTH**2 * (before + usual)


def loops_near_dead_points(robot: Robot, before: np.ndarray, after: np.ndarray, *, limits: bool = True) -> str:
    """The names of the loops that are about to pass a dead point after a step; empty if none is.

    Args:
        before, after: (..., nq), where the step began, and where it ended.
        limits: whether joints stop at their limits.
    """
    clusters = remembered(robot, (_watched_clusters, limits), _watched_clusters, limits)
    if not clusters:
        return ""
    first, last = (attempted(robot, rates_program, q) for q in (before, after))
    grown = _grown(first, last, remembered(robot, _usual_rates, _usual_rates))
    for loop in robot.embedding.closure.loops:
        if loop.cluster in clusters and grown[..., loop.columns].any():
            named = {part.name for part in (*robot.loops, *robot.couplings)}
            return listed(constraint.name for constraint in loop.constraints if constraint.name in named)
    return ""


def rates_program(robot: Robot) -> Program:
    """The program from q to the squared length of each row of G; zero for joints in clusters without a solution."""
    sweep = Sweep(robot, "rates_of_solutions")
    sweep.inputs("q")
    squares, schedule = cleared(sweep, sweep.result("squares", robot.tree.nv)), sweep.schedule()

    def provide(windows: ClusterWindows, shape: ClusterShape, clusters: list[int]) -> None:
        for i, kind in enumerate(shape.kinds):
            links = [sweep.instances[k].links[i] for k in clusters]
            windows.joints[i]["squares"] = squares.at(robot.tree.v_start[links], kind.nv)

    for k in _watched_clusters(robot, limits=False):
        sweep.visit(schedule, _store_rates, k, provide=provide)
    schedule.run()
    return sweep.build()


def _store_rates(cluster: Visit[Any, Any]) -> None:
    squares = np.sum(cluster.G * cluster.G, axis=-1)
    for body, view in zip(cluster.bodies, cluster.views.joints, strict=True):
        view.squares = squares[body.entries]


def _watched_clusters(robot: Robot, limits: bool) -> list[int]:
    """The clusters with a solution that may have dead points, because they are not known to have none within limits."""
    watched = []
    for loop, explicit in zip(robot.embedding.closure.loops, robot.embedding.explicit, strict=True):
        forms = [robot.closed_forms.get(constraint.name) for constraint in loop.constraints]
        safe = limits and any(form is not None and not form.dead_points for form in forms)
        solutions = [solution for solution in robot.embedding.solutions if {*solution.outputs} & {*loop.links}]
        linear = all(solution.linear for solution in solutions)
        if explicit and not (safe or linear):
            watched.append(loop.cluster)
    return watched


def _usual_rates(robot: Robot) -> np.ndarray:
    """For each joint velocity the squared length of its row of G in a typical configuration: the median of samples."""
    rng = np.random.default_rng(0)
    q = np.stack([robot.neutral(), *(robot.random_state(rng)[0] for _ in range(_CONFIGURATIONS))])
    return np.nanmedian(attempted(robot, rates_program, q), axis=0)
