"""Which contacts press in the end, as steps of a program, and the work of those that part what overlaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from coupler.contact.scene import ContactScene
from coupler.contact.step.blocks import Blocks, shared
from coupler.graph import Vector, View, constants, fields
from coupler.model import Robot

_OVERLAP = 1e-6  # m: to part less deep overlaps is no work to be told
_ANY_SPEED = 1e30  # m/s: a recovery without a bound


def count_pressing(
    robot: Robot, blocks: Blocks, scene: ContactScene, gaps: Vector, totals: Mapping[str, Vector], *, rebound: bool
) -> None:
    """Writes the steps to both, from solved impulses; active blocks are listed from now on.

    Args:
        blocks: of contacts first.
        scene: what counts.
        gaps: of all contacts, m.
        totals: `touching`, 1, how many contacts press; `parting`, 1, the most work that they do on what overlaps, J.
            Both are added to.
        rebound: whether contacts have impulses that are not active.
    """
    builder, speeds = blocks.builder, {"pace": 1.0 / scene.step, "recovery": min(scene.recovery, _ANY_SPEED)}
    builder.list_flags(blocks.flags["active"])
    for contacts in blocks.alike(range(blocks.contacts)):
        limits = {name: constants(np.full(len(contacts), speed)) for name, speed in speeds.items()}
        limits |= scene.gravity_for(robot, len(contacts))
        block = blocks.of(contacts) | shared(**totals)(contacts) | fields(gap=gaps.at(contacts), **limits)
        listed = {} if rebound else blocks.among("active", contacts)
        builder.loop(_counting(scene), block=block, **listed)


def _counting(scene: ContactScene) -> Callable[[View], None]:
    def count(block: View) -> None:
        block.touching = block.touching + np.where(block.impulse[0] > 0.0, 1.0, 0.0)
        speed = np.minimum(np.maximum(-scene.seen(block.gap, block), 0.0) * block.pace, block.recovery)
        block.parting = block.parting + np.where(block.gap < -_OVERLAP, block.impulse[0] * speed, 0.0)

    return count
