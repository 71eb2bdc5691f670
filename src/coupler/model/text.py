"""A robot in words: its cluster tree, loops and freedoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coupler.grouping import grouped
from coupler.model.actuator_limits import limits_left_open
from coupler.model.wording import counted

if TYPE_CHECKING:
    from coupler.model.robot import Robot

_LINES, _DEPTH = 200, 40  # the most lines and levels of a cluster tree that are printed
_LISTED = 12  # the most names on a line


def robot_text(robot: Robot) -> str:
    """What `print` shows: a line of counts, the cluster tree, actuators, remarks and warnings.

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
    if robot.actuators:
        lines.append(f"driven by {_actuators(robot)}")
    lines += [f"note: {remark}" for remark in (*robot.remarks, *_idle(robot), *limits_left_open(robot))]
    return "\n".join([*lines, *(f"warning: {warning}" for warning in robot.warnings)])


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
    """The number of freedoms of a cluster, and of how many if loops take some away."""
    entries = robot.tree.velocities_of(robot.cluster_tree.clusters[k].bodies)
    count = int(np.isin(entries, robot.embedding.v_index).sum())
    return counted(count, "freedom") if count == len(entries) else f"{count} of {len(entries)} freedoms"


def _independent(robot: Robot, k: int) -> str:
    """The joints to which the freedoms of a cluster belong."""
    tree, index = robot.tree, robot.embedding.v_index
    own = [i for i in robot.cluster_tree.clusters[k].bodies if np.isin(tree.velocities(i), index).any()]
    return _shortened([f"{tree.links[link].joint} ({tree.links[link].kind.kind})" for link in own])


def _actuators(robot: Robot) -> str:
    """Its actuators by kind: motors, servos."""
    words = {"motor": ("motor", "motors"), "position": ("position servo", ""), "velocity": ("velocity servo", "")}
    words["damper"] = ("damper", "")
    parts = []
    for kind, (one, many) in words.items():
        names = [actuator.name for actuator in robot.actuators if actuator.kind == kind]
        parts += [f"{counted(len(names), one, many)}: {_shortened(names)}"] if names else []
    return "; ".join(parts)


def _idle(robot: Robot) -> list[str]:
    remarks = []
    for freedom in robot.idle:
        bodies = " with ".join(repr(robot.tree.links[link].name) for link in freedom.links)
        joint = robot.tree.links[freedom.joint].joint
        remarks.append(f"{bodies} can move alone, at joint {joint!r}: an idle freedom")
    return remarks


def _shortened(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
