"""Why a step is not possible, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coupler.contact.dead_points import DEAD_POINT, loops_near_dead_points
from coupler.model import ModelError
from coupler.model.wording import in_state

if TYPE_CHECKING:
    from coupler.simulate.engine import Engine

__all__ = ["why_not"]


def why_not(engine: Engine, state: np.ndarray, result: np.ndarray) -> str:
    """What is wrong with a step that has no finite result, of one state or of the first such state of several."""
    robot = engine.robot
    where = [int(i) for i in np.argwhere(~np.isfinite(result).all(axis=-1))[0]] if result.ndim > 1 else []
    own = state[tuple(where)]
    try:
        q = own[engine.layout.places["q"]]
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
    v = own[engine.layout.places["v"]]
    fast = float(np.abs(v).max(initial=0.0))
    try:
        if robot.closed_forms:
            robot.integrate(q, v, engine.step)
    except ModelError as error:
        return (
            f"{error}{in_state(where)}; a step of {engine.step:g} s leads to the end of its workspace, or to a dead "
            'point, which it passes with closure="numerical"'
        )
    return (
        f"robot {robot.name!r}: a step of {engine.step:g} s is not possible{in_state(where)}: a loop cannot "
        f"close, or numbers grow out of bounds (the largest velocity is {fast:.3g}); shorter steps or weaker "
        "forces may help"
    )
