"""How the limits of joints limit the actuators that act on them, alone and together. [003, §II]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coupler.model.actuators import UNLIMITED, Actuator, terms_of
from coupler.model.wording import listed

if TYPE_CHECKING:
    from coupler.model.robot import Robot


def limited_actuators(robot: Robot, actuators: Sequence[Actuator]) -> tuple[Actuator, ...]:
    """The actuators with the limits of their joints; limits that `shared_limits` applies to sums are left out."""
    together = {link for shared in shared_limits(robot, actuators) for link in shared.joints}
    return tuple(_limited(robot, actuator, together) for actuator in actuators)


def _limited(robot: Robot, actuator: Actuator, shared: set[int]) -> Actuator:
    """The actuator with the limits of its joints; effort limits of shared joints are left out."""
    terms = terms_of(robot, actuator)
    if actuator.along is not None:  # its gears depend on the pose, so that no limit of its own amounts to theirs
        return actuator
    kinds = [(robot.tree.links[link].kind, j, abs(gear)) for link, j, gear in terms]
    alone = [kind for kind, (link, _, _) in zip(kinds, terms, strict=True) if link not in shared]
    largest_effort = min((float(kind.effort_limit[j]) / gear for kind, j, gear in alone), default=np.inf)
    low, high = max(actuator.effort[0], -largest_effort), min(actuator.effort[1], largest_effort)
    kind, j, gear = kinds[0]
    fastest = float(kind.velocity_limit[j]) * gear if len(kinds) == 1 else np.inf
    if (low, high) == actuator.effort and fastest >= actuator.speed:
        return actuator
    return replace(actuator, effort=(low, high), speed=min(actuator.speed, fastest if fastest > 0.0 else np.inf))


class SharedLimit(NamedTuple):
    """Effort limits of joints on which several actuators act, for the sums of their forces there.

    Where a sum exceeds its limit, the forces of all members are reduced by one factor.

    Attributes:
        members: the numbers of these actuators.
        joints: the links of the joints.
        limits: the effort limit of each joint, N m or N.
        gears: for each joint, the gears of all members there; zero for one that does not act on it.
        servos: whether some members are servos. There is one joint then, and they act on it alone.
    """

    members: tuple[int, ...]
    joints: tuple[int, ...]
    limits: tuple[float, ...]
    gears: tuple[tuple[float, ...], ...]
    servos: bool


def shared_limits(robot: Robot, actuators: Sequence[Actuator]) -> list[SharedLimit]:
    """The effort limits that hold for sums over several actuators.

    These are the limits of joints that motors drive, and of a single joint that servos drive, each of them this joint
    alone and without limits of its own. In all other cases it is undefined which servo yields, and limits hold for each
    actuator by itself.
    """
    return [shared for shared in _limits_of_several(robot, actuators) if _is_kept(robot, actuators, shared)]


def limits_left_open(robot: Robot) -> list[str]:
    """Remarks about joint limits that actuators keep each by itself instead of together, or not at all."""
    limits = _limits_of_several(robot, robot.actuators)
    shared = [limit for limit in limits if not _is_kept(robot, robot.actuators, limit)]
    efforts = [
        f"the effort limit of joint {robot.tree.links[link].joint!r} limits each of "
        f"{listed(robot.actuators[i].name for i, gear in zip(limit.members, gears, strict=True) if gear)}, "
        "and not their sum"
        for limit in shared
        for link, gears in zip(limit.joints, limit.gears, strict=True)
    ]
    several: dict[str, list[str]] = {}  # by joint with a velocity limit, its actuators that act on several joints
    for actuator in robot.actuators:
        terms = terms_of(robot, actuator)
        for link, j, _ in terms if len(terms) > 1 and actuator.along is None else ():
            if 0.0 < robot.tree.links[link].kind.velocity_limit[j] < np.inf:
                several.setdefault(robot.tree.links[link].joint, []).append(actuator.name)
    posed = {actuator.name: _limited_joints(robot, actuator) for actuator in robot.actuators if actuator.along}
    return [
        *efforts,
        *(
            f"the velocity limit of joint {joint!r} does not limit {listed(names)}, which moves several joints"
            for joint, names in several.items()
        ),
        *(
            f"effort and velocity limits of {listed(joints)} do not limit {name!r}, whose gear depends on the pose"
            for name, joints in posed.items()
            if joints
        ),
    ]


def _limited_joints(robot: Robot, actuator: Actuator) -> list[str]:
    """The joints with effort or velocity limits among those that an actuator moves."""
    kinds = {robot.tree.links[link].joint: robot.tree.links[link].kind for link, _, _ in terms_of(robot, actuator)}
    return [
        joint
        for joint, kind in kinds.items()
        if np.isfinite(kind.effort_limit).any() or ((kind.velocity_limit > 0.0) & (kind.velocity_limit < np.inf)).any()
    ]


def _is_kept(robot: Robot, actuators: Sequence[Actuator], shared: SharedLimit) -> bool:
    """Whether the limits hold for sums over several actuators."""
    if not shared.servos:
        return True
    fastest = robot.tree.links[shared.joints[0]].kind.velocity_limit[0]
    members = [actuators[i] for i in shared.members]
    alone = all(len(terms_of(robot, member)) == 1 and member.speed == np.inf for member in members)
    return alone and fastest == np.inf and all(member.effort == UNLIMITED for member in members if member.servo)


def _limits_of_several(robot: Robot, actuators: Sequence[Actuator]) -> list[SharedLimit]:
    """The effort limits of joints of one freedom on which several actuators act, grouped by common actuators."""
    at: dict[int, dict[int, float]] = {}
    for number, actuator in enumerate(actuators):
        for link, _, gear in terms_of(robot, actuator) if actuator.along is None else ():
            kind = robot.tree.links[link].kind
            if kind.nv == 1 and np.isfinite(kind.effort_limit[0]):
                at.setdefault(link, {})[number] = gear
    groups: list[list[int]] = []
    for link in [link for link, gears in at.items() if len(gears) > 1]:
        joined = [group for group in groups if any(not at[link].keys().isdisjoint(at[other]) for other in group)]
        whole = [*(other for group in joined for other in group), link]
        groups = [*(group for group in groups if group not in joined), whole]
    shared = []
    for links in groups:
        members = tuple(sorted({number for link in links for number in at[link]}))
        limits = tuple(float(robot.tree.links[link].kind.effort_limit[0]) for link in links)
        gears = tuple(tuple(at[link].get(number, 0.0) for number in members) for link in links)
        shared.append(SharedLimit(members, tuple(links), limits, gears, any(actuators[i].servo for i in members)))
    return shared
