"""A robot in words: its cluster tree, loops and freedoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coupler.grouping import grouped
from coupler.model.actuator_limits import limits_left_open
from coupler.model.wording import counted, listed, some

if TYPE_CHECKING:
    from coupler.model.parameter_layout import GivenParameters
    from coupler.model.robot import Robot

_LINES, _DEPTH = 200, 40  # the most lines and levels of a cluster tree that are printed
_USUAL = (0.0, 0.0, -9.81)  # m/s², the gravity of robots that are described without one
_LISTED = 12  # the most names on a line


def robot_text(robot: Robot) -> str:
    """What `print` shows: the lines of the tree, what drives the robot, gravity if unusual, notes and warnings."""
    drive = [f"driven by {_actuators(robot)}"] if robot.actuators else []
    notes, warnings = (f"note: {note}" for note in notes_of(robot)), (f"warning: {text}" for text in robot.warnings)
    weight = [] if np.array_equal(robot.gravity, _USUAL) else [f"gravity {gravity_text(robot.gravity)}"]
    given = [] if robot.given is None else [f"with parameters {_parameters(robot.given)}"]
    return "\n".join([*tree_lines(robot), *drive, *weight, *given, *notes, *warnings])


def _parameters(given: GivenParameters) -> str:
    """The names of given parameters, and for how many states they were given."""
    batch = given.packed.shape[:-1]
    return listed(given.values) + (f", of {' × '.join(map(str, batch))} states" if batch else "")


def gravity_text(gravity: np.ndarray) -> str:
    """Gravity with its unit."""
    return "({:g}, {:g}, {:g}) m/s²".format(*gravity)


def notes_of(robot: Robot) -> list[str]:
    """Remarks about the robot, its idle freedoms, and limits of actuators that are left open."""
    idle = idle_text(robot)
    freedoms = [f"{idle}: {'an idle freedom' if len(robot.idle) == 1 else 'idle freedoms'}"] if idle else []
    return [*robot.remarks, *freedoms, *limits_left_open(robot)]


def idle_text(robot: Robot) -> str:
    """A sentence on bodies that can move alone (idle freedoms), and at which joints; empty if none can."""
    links = robot.tree.links
    bodies = [" with ".join(repr(links[link].name) for link in freedom.links) for freedom in robot.idle]
    joints = [repr(links[freedom.joint].joint) for freedom in robot.idle]
    if len(bodies) == 1:
        return f"body {bodies[0]} can move alone, at joint {joints[0]}"
    places = [f"{body} at joint {joint}" for body, joint in zip(bodies, joints, strict=True)]
    return f"{len(places)} bodies can move alone: {some(places)}" if places else ""


def tree_lines(robot: Robot) -> list[str]:
    """A line of counts, and a line for each cluster of the tree.

    Each cluster has a line with its bodies, its constraints, and its freedoms: how many of how many joint velocities,
    and which joints they belong to.
    """
    clusters = robot.cluster_tree.clusters
    counts = [counted(len(robot.bodies), "body", "bodies"), counted(len(robot.joints), "joint")]
    counts += [counted(len(x), name) for x, name in ((robot.loops, "loop"), (robot.couplings, "coupling")) if x]
    lines = [
        f"{robot.name}: {', '.join(counts)}; {counted(robot.nq, 'position')}, {counted(robot.nv, 'freedom')}",
        "ground",
    ]
    children = grouped(range(1, len(clusters)), lambda k: clusters[k].parent)
    waiting = [(k, "") for k in reversed(children.get(0, []))]
    while waiting and len(lines) < _LINES:
        k, indent = waiting.pop()
        if len(indent) > 3 * _DEPTH:
            continue
        last = k == children[clusters[k].parent][-1]
        lines.append(f"{indent}{'└─' if last else '├─'} {_cluster(robot, k)}")
        waiting += [(child, indent + ("   " if last else "│  ")) for child in reversed(children.get(k, []))]
    if len(lines) <= len(clusters):
        lines.append(f"... and {counted(len(clusters) + 1 - len(lines), 'more cluster')}")
    return lines


def _cluster(robot: Robot, k: int) -> str:
    links = robot.cluster_tree.clusters[k].bodies
    what = f"{k}: {_shortened([_link(robot, link) for link in links])}"
    bonds = [c.name for loop in robot.embedding.closure.loops if loop.cluster == k for c in loop.constraints]
    if bonds:
        what += f" [{_shortened(bonds)}]"
    return f"{what} · {freedoms_text(robot, k)}: {_independent(robot, k)}"


def _link(robot: Robot, link: int) -> str:
    """The first body of a link, with those that are welded to it in brackets."""
    first, *others = robot.tree.links[link].bodies
    return f"{first} (+ {', '.join(others)})" if others else first


def freedoms_text(robot: Robot, k: int) -> str:
    """The number of freedoms of a cluster, as "2 of 4 freedoms" if loops take some away."""
    entries = robot.tree.velocities_of(robot.cluster_tree.clusters[k].bodies)
    count = int(np.isin(entries, robot.embedding.v_index).sum())
    return counted(count, "freedom") if count == len(entries) else f"{count} of {len(entries)} freedoms"


def _independent(robot: Robot, k: int) -> str:
    """The joints to which the freedoms of a cluster belong."""
    tree, index = robot.tree, robot.embedding.v_index
    moving = [i for i in robot.cluster_tree.clusters[k].bodies if np.isin(tree.velocities(i), index).any()]
    return _shortened([f"{tree.links[link].joint} ({tree.links[link].kind.kind})" for link in moving])


def _actuators(robot: Robot) -> str:
    """The robot's actuators by kind: motors, servos, dampers."""
    words = {"motor": ("motor", "motors"), "position": ("position servo", ""), "velocity": ("velocity servo", "")}
    words["damper"] = ("damper", "")
    parts = []
    for kind, (one, many) in words.items():
        names = [actuator.name for actuator in robot.actuators if actuator.kind == kind]
        parts += [f"{counted(len(names), one, many)}: {_shortened(names)}"] if names else []
    return "; ".join(parts)


def _shortened(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
