"""Explains why a step is not possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.contact.step.dead_points import DEAD_POINT, loops_near_dead_points
from coupler.model import ModelError
from coupler.model.actuators import too_short_rods
from coupler.model.tolerances import TINY
from coupler.model.wording import in_state

if TYPE_CHECKING:
    from coupler.simulate.engine import Engine

_TURN = 0.1  # rad or m: the fastest joint should not move further in a step
_ODD_STEP = 1e-6  # s: nobody takes shorter steps; numbers have been growing for long


def why_not(engine: Engine, state: np.ndarray, result: np.ndarray, tau: Any = None) -> str:
    """Why a step has no finite result, for one state or for the first such state of several.

    Args:
        tau: forces at joints, if they may be those of a controller.
    """
    robot = engine.robot
    where = [int(i) for i in np.argwhere(~np.isfinite(result).all(axis=-1))[0]] if result.ndim > 1 else []
    failed = state[tuple(where)]
    try:
        q = failed[engine.layout.places["q"]]
        robot.check_closed(q)
    except ModelError as error:
        return f"{error}{in_state(where)}"
    loop = robot.states.extra_freedoms(robot.embedding.positions(q))
    if loop:
        return (
            f"robot {robot.name!r}: a step of {engine.step:g} s is not possible{in_state(where)}: {loop} is "
            "near a pose at which it has more freedoms than elsewhere, and mechanics does not decide on which way "
            "it goes on; limits of joints would keep it from there"
        )
    after = result[(*where, engine.layout.places["q"])]
    if np.isfinite(after).all():
        loops = loops_near_dead_points(robot, q, after, limits=engine.scene.limits)
        if loops:
            return (
                f"robot {robot.name!r}: a step of {engine.step:g} s is not possible{in_state(where)}: {loops} comes to "
                f"{DEAD_POINT}"
            )
    v = failed[engine.layout.places["v"]]
    try:
        if robot.closed_forms:
            robot.integrate(q, v, engine.step)
    except ModelError as error:
        return (
            f"{error}{in_state(where)}; a step of {engine.step:g} s leads to the end of its workspace, or to a dead "
            'point, which it passes with closure="numerical"'
        )
    joint, speed, better = fastest_joint(engine, failed)
    shorter = f"steps of {better:.2g} s from the start" if better > _ODD_STEP else "much shorter steps"
    return (
        f"robot {robot.name!r}: a step of {engine.step:g} s is not possible{in_state(where)}: a loop cannot close,"
        f"{too_short_rods(robot)} or numbers grow out of bounds (joint {joint!r} is the fastest, with {speed:.3g} "
        f"rad/s or m/s); {shorter}, or weaker forces{or_midpoint(engine)}{or_servos(tau)}, may help"
    )


def or_midpoint(engine: Engine) -> str:
    """The default integrator as another way out, for messages about steps of other ones."""
    return ', or integrator="midpoint"' if engine.scene.integrator != "midpoint" else ""


def or_servos(tau: Any) -> str:
    """Servos as another way out, for messages about steps in which a controller acts: they are never too stiff."""
    return "" if tau is None or not np.any(tau) else ", or servos of the robot in place of a stiff controller"


def fastest_joint(engine: Engine, state: np.ndarray) -> tuple[str, float, float]:
    """The fastest independent joint in a state, its speed, and a step that is short enough for it, s."""
    robot, v = engine.robot, state[engine.layout.places["v"]]
    speeds = {joint: float(np.abs(v[robot.v_slice(joint)]).max(initial=0.0)) for joint in robot.independent_joints}
    joint = max(speeds, key=lambda name: speeds[name])
    return joint, speeds[joint], min(_TURN / max(speeds[joint], TINY), 0.5 * engine.step)
