"""The actuators of a robot, checked: whether loops let them move, and whether they hold their mechanism."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.grouping import grouped
from coupler.model.actuator_limits import limited_actuators
from coupler.model.actuators import Actuator, terms_of
from coupler.model.errors import ModelError
from coupler.model.tolerances import TINY
from coupler.model.wording import counted, listed

if TYPE_CHECKING:
    from coupler.model.robot import Robot

_STILL = 1e-9  # relative to its gear: an actuator whose rates are all smaller does not move
_SINGULAR = 1e-9  # singular values below this part of the largest count as zero
_POSES = 4  # configurations in which actuators must fail to hold their mechanism for a warning

Rows = list[tuple[int, float]]  # of an actuator, entries of joint velocities and gears


def actuators_of(robot: Robot, described: Sequence[Actuator]) -> tuple[Actuator, ...]:
    """The actuators that are described, and a motor for each other joint that is marked as actuated.

    All are limited by the effort and velocity limits of their joints.

    Raises:
        ModelError: for an unknown or a fixed joint, and for an actuator that loops keep from moving.
    """
    names = Counter(actuator.name for actuator in described)
    for name, count in names.items():
        if count > 1:
            raise ModelError(f"there are {count} actuators {name!r}; each needs a name of its own")
    driven = {joint for actuator in described for joint in actuator.gears}
    actuators, taken = [*described], {*names}
    for joint in robot.joints:
        if joint.actuated and joint.name not in driven:
            actuators += _motors(joint.name, joint.kind.nv, taken)
    limited = limited_actuators(robot, actuators)
    _check_motion(robot, limited)
    return limited


def _motors(joint: str, freedoms: int, taken: set[str]) -> list[Actuator]:
    """A motor for each freedom of a joint, named after it."""
    gears: list[Any] = [1.0] if freedoms == 1 else np.eye(freedoms).tolist()
    motors = []
    for i, gear in enumerate(gears, 1):
        name = joint if freedoms == 1 else f"{joint}_{i}"
        while name in taken:
            name += "_motor"
        taken.add(name)
        motors.append(Actuator(name, {joint: gear}))
    return motors


def _check_motion(robot: Robot, actuators: Sequence[Actuator]) -> None:
    """Raises a ModelError for an actuator that no independent joint moves."""
    doubtful = [actuator for actuator in actuators if not actuator.along and not _is_independent(robot, actuator)]
    for G in _rates(robot, 2) if doubtful else ():
        doubtful = [actuator for actuator in doubtful if _is_still(_rows(robot, actuator), G)]
        if not doubtful:
            return
    if doubtful:
        raise ModelError(
            f"actuator {doubtful[0].name!r}: no independent joint moves it, as loops hold "
            f"{listed(doubtful[0].joints)}; it can drive nothing"
        )


def loose_mechanisms(robot: Robot, actuators: Sequence[Actuator]) -> list[str]:
    """Warnings of clusters that their actuators do not hold in any configuration, although there are enough of them.

    Legs between similar plates are an example: whatever their lengths, a platform on them can move.
    """
    acting: dict[int, dict[tuple[str, ...], Actuator]] = {}  # by cluster; those that act on the same joints count once
    for actuator in actuators:
        clusters = {robot.cluster_tree.cluster_of[link] for link, _, _ in terms_of(robot, actuator)}
        if len(clusters) == 1 and actuator.along is None:
            acting.setdefault(clusters.pop(), {})[actuator.joints] = actuator
    doubtful, entries = [], _entries_by_cluster(robot)
    for k, members in acting.items():
        few = len(members) < len(entries.get(k, []))
        if not few and any(not _is_independent(robot, actuator) for actuator in members.values()):
            doubtful.append((list(members.values()), entries[k], 0))
    for G in _rates(robot, _POSES) if doubtful else ():
        doubtful = [
            (members, places, max(rank, _rank(robot, members, G[:, places]))) for members, places, rank in doubtful
        ]
        doubtful = [case for case in doubtful if case[2] < len(case[1])]
        if not doubtful:
            break
    return [
        f"actuators {listed(actuator.name for actuator in members)} do not hold their mechanism: in all configurations "
        f"that were tried, {counted(len(places) - rank, 'freedom')} of "
        f"{listed(dict.fromkeys(robot.tree.joint_of(int(robot.embedding.v_index[i])) for i in places))} "
        f"can move while they stand still; change its dimensions"
        for members, places, rank in doubtful
    ]


def _entries_by_cluster(robot: Robot) -> dict[int, list[int]]:
    """The entries of v of each cluster."""
    links = [robot.tree.link_of(int(entry)) for entry in robot.embedding.v_index]
    return grouped(range(len(links)), lambda i: robot.cluster_tree.cluster_of[links[i]])


def _is_independent(robot: Robot, actuator: Actuator) -> bool:
    """Whether an actuator acts on an independent joint."""
    independent = {*robot.embedding.v_index.tolist()}
    return any(entry in independent for entry, _ in _rows(robot, actuator))


def _rows(robot: Robot, actuator: Actuator) -> Rows:
    return [(int(robot.tree.v_start[link]) + j, gear) for link, j, gear in terms_of(robot, actuator)]


def _rates(robot: Robot, poses: int) -> Iterator[np.ndarray]:
    """Yields G (joint velocities w = G v) at the neutral configuration and at random ones."""
    rng = np.random.default_rng(0)
    for i in range(poses):
        q = robot.states.random(rng) if i else robot.states.neutral
        yield robot.embedding.explicit_constraint(q[None], np.zeros((1, robot.nv)))[0][0]


def _row(rows: Rows, G: np.ndarray) -> np.ndarray:
    return sum((gear * G[entry] for entry, gear in rows), np.zeros(G.shape[1]))


def _is_still(rows: Rows, G: np.ndarray) -> bool:
    """Whether no independent joint moves an actuator."""
    return bool(np.abs(_row(rows, G)).max(initial=0.0) < _STILL * max(abs(gear) for _, gear in rows))


def _rank(robot: Robot, actuators: Iterable[Actuator], G: np.ndarray) -> int:
    """The rank of the map from independent velocities to those of actuators."""
    A = np.array([_row(_rows(robot, actuator), G) for actuator in actuators])
    A = A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), TINY)  # large gears must not hide small ones
    sizes = np.linalg.svd(A, compute_uv=False)
    return int((sizes > _SINGULAR * sizes[0]).sum()) if sizes.size else 0
