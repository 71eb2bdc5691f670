"""Warnings about the start of a simulation: overlaps, pairs that are left out, and robots that can touch nothing."""

from __future__ import annotations

import numpy as np

from coupler.contact.collision.forms import is_endless
from coupler.contact.collision.proximity import Proximity
from coupler.contact.scene import ContactScene, limited_joints, recovery_speeds, turns
from coupler.model import Robot
from coupler.model.errors import warn
from coupler.model.wording import counted, in_state, length, some
from coupler.simulate.engine import Engine

_TOLD = 1e-4  # m or rad: deeper overlaps at the start are reported; posing a robot leaves smaller ones


def warn_if_it_can_only_fall(engine: Engine) -> None:
    """Warns of a floating robot that can touch nothing."""
    robot = engine.robot
    held = {link for loop in robot.embedding.closure.loops for link in loop.links}
    floating = any(link.kind.floats and i not in held for i, link in enumerate(robot.tree.links))
    if floating and robot.gravity.any() and not engine.layout.contacts:
        text = f"robot {robot.name!r} floats, and can touch nothing: {_why_it_touches_nothing(robot)}"
        warn(text)


def _why_it_touches_nothing(robot: Robot) -> str:
    """Names what is missing: shapes of the robot, a floor, or contacts that the options select."""
    touching = {bool(robot.tree.place[shape.body][0]) for shape in robot.shapes if shape.touches}
    moving = (body for body in robot.bodies.values() if robot.tree.place[body.name][0])
    if True not in touching and not any(body.contacts for body in moving):
        return "its bodies have no contact points, and no shapes that touch; robot.with_shape() adds some"
    if False not in touching:
        return "robot.with_floor() adds a floor"
    return "the option contacts, or groups and exclusions of its shapes, leave nothing"


def warn_of_selection(engine: Engine) -> None:
    """Warns of pairs that are left out because they overlap in the neutral pose."""
    deepest = sorted(engine.selection.overlapping, key=lambda pair: -pair[1])
    if deepest:
        name, depth = deepest[0]
        more = f", and {counted(len(deepest) - 1, 'other pair')}" if deepest[1:] else ""
        warn(
            f"robot {engine.robot.name!r}: shapes that overlap in its neutral pose do not touch: {name}, by "
            f"{length(depth)}{more}; `Simulation.left_out` lists all, and contacts=[...] includes pairs that it "
            "names in full"
        )


def warn_of_overlaps_in(engine: Engine, q: np.ndarray) -> None:
    """Warns of overlaps in a start configuration, (nq,), and of joints beyond their limits."""
    pairs = engine.scene.pairs
    proximity, gaps = Proximity(engine.robot, pairs, q[None]), list[float]()
    for i, pair in enumerate(pairs):
        may_overlap = proximity.nearest(i, 0.0) < 0.0
        gaps += proximity.gaps(i, 0) if may_overlap else pair.count * [np.inf]
    warn_of_overlaps(engine.robot, engine, q, np.array(gaps))


def warn_of_overlaps(
    robot: Robot, engine: Engine, q: np.ndarray, gaps: np.ndarray, least: np.ndarray | None = None
) -> None:
    """Warns of overlaps and of joints beyond their limits, once for all states.

    Args:
        robot: the robot, with the parameters of all states.
        engine: the engine, with the settings of a step.
        q: (..., nq), the configurations to start from.
        gaps: (contacts,), the least gap of each contact at the start of any state, m.
        least: (...), the least gap of each state, m; not needed for a single state.
    """
    scene, findings, joints = engine.scene, [], _joint_overlaps(robot, engine.scene, q)
    if len(gaps) and (deepest := float(gaps.min())) < -_TOLD:
        where, state = "", ""
        if least is not None and least.ndim:
            states = np.argwhere(least < -_TOLD).tolist()
            named = some([str(tuple(index) if len(index) > 1 else index[0]) for index in states])
            where = f"{len(states)} of {counted(least.size, 'state')} ({named}), in "
            state = in_state([int(i) for i in np.unravel_index(int(least.argmin()), least.shape)])
        contacts = counted(int((gaps < -_TOLD).sum()), "contact")
        depth = f"{engine.contacts[int(gaps.argmin())]} by {length(-deepest)}{state}"
        findings.append(f"overlaps at the start in {where}{contacts}, {depth}, {_parted(robot, scene, deepest)}")
    if joints:
        more = f", and {counted(len(joints) - 1, 'other joint')} beyond" if len(joints) > 1 else ""
        findings.append(f"starts with {joints[0]}{more}")
    if findings:
        elsewhere = f"start elsewhere{_out_of_ground(robot, scene, gaps)}, or see options recovery and penetration"
        warn(f"robot {robot.name!r} {'; it '.join(findings)}; {elsewhere}")


def _out_of_ground(robot: Robot, scene: ContactScene, gaps: np.ndarray) -> str:
    """A hint how much higher a floating robot, or how much lower the ground, must be if that is the deepest overlap."""
    ends = np.cumsum([pair.count for pair in scene.pairs])
    pair = scene.pairs[int(np.searchsorted(ends, int(gaps.argmin()), "right"))] if len(gaps) else None
    if pair is None or not gaps.min() < -_TOLD or not is_endless(pair.other.geometry):
        return ""
    tree, depth = robot.tree, f"{-gaps.min():.3g} m"
    if tree.place[pair.other.body][0]:
        return ""
    if any(tree.links[link].kind.floats for link in tree.carriers(tree.place[pair.one.body][0])):
        level = np.allclose(pair.other.at.E[2], (0.0, 0.0, 1.0))
        return f", say {depth} higher" if level else ""
    return f", put the ground {depth} lower (with_floor(height=...))"


def _parted(robot: Robot, scene: ContactScene, gap: float) -> str:
    """A phrase that says what happens to an overlap with the present options."""
    seen = scene.seen(gap, robot)
    fast = -float(seen) / scene.step
    if fast <= 0.0:
        return "which is kept from growing"
    if fast > scene.recovery:
        return f"which is let out with {scene.recovery:.3g} m/s"
    first = "which the first step parts" if seen == gap else "which steps part"
    return f"{first} with {fast:.3g} m/s"


def _joint_overlaps(robot: Robot, scene: ContactScene, q: np.ndarray) -> list[str]:
    """A sentence for each joint that is beyond a limit in configurations, (..., nq), the furthest first."""
    joints = limited_joints(robot) if scene.limits else []
    p, overlaps = robot.embedding.positions(q), list[tuple[float, str]]()
    for joint, recovery in zip(joints, recovery_speeds(robot, joints, scene.recovery), strict=True):
        (link, j), unit = joint, "rad" if turns(robot, joint) else "m"
        kind, at = robot.tree.links[link].kind, p[..., robot.tree.q_start[link] + j]
        all_beyond = np.maximum(kind.lower[j] - at, at - kind.upper[j])
        beyond = float(all_beyond.max(initial=0.0))
        if beyond > _TOLD:
            state = in_state([int(i) for i in np.unravel_index(int(all_beyond.argmax()), all_beyond.shape)])
            what = f"joint {robot.tree.links[link].joint!r} {beyond:.3g} {unit} beyond its limit{state}"
            back = f"from where it comes back with {min(beyond / scene.step, recovery):.3g} {unit}/s"
            overlaps.append((beyond, f"{what}, {back}"))
    return [text for _, text in sorted(overlaps, reverse=True)]
