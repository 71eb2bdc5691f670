"""Which joint of another library is which joint here: by names, by bodies, and by parts of joints in a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.convert.layouts import SIZES, LibraryLayout, Slot
from coupler.model import Helical, ModelError, Planar, Robot
from coupler.model.tree import TreeJoint
from coupler.model.wording import listed


@dataclass(frozen=True, eq=False)
class Match:
    """A joint of the other library with its counterpart in the robot.

    The counterpart is a whole joint, a part of one (counted from 0), or a joint that does not move.
    """

    slot: Slot
    joint: TreeJoint
    part: int | None = None


def matched_joints(robot: Robot, layout: LibraryLayout) -> list[Match]:
    """Each joint of the other library with its counterpart in the robot.

    Raises:
        ModelError: for a joint that one of the two does not have, or that is of another kind.
    """
    joints = {joint.name: joint for joint in robot.joints}
    floating = {joint.child: joint for joint in robot.joints if joint.kind.floats}
    parts = {}
    for joint in robot.joints:  # which files hold as several in a row; the angles of a ball would be Euler's, not ours
        if joint.kind.nq == joint.kind.nv > 1 or isinstance(joint.kind, Helical):
            parts |= {f"{joint.name}_{i + 1}": (joint, i) for i in range(max(joint.kind.nv, 2))}
    matches = []
    for slot in layout.slots:
        if slot.name in joints:
            match = Match(slot, joints[slot.name])
        elif slot.form == "free" and slot.body in floating:
            match = Match(slot, floating[slot.body])
        elif slot.name in parts:
            match = Match(slot, *parts[slot.name])
        else:
            raise ModelError(
                f"{layout.library}'s model has a joint {slot.name!r} that robot {robot.name!r} does not have; "
                f"it has {listed(joints)}"
            )
        _check_form(robot, layout, match)
        matches.append(match)
    matched = {match.joint.name for match in matches} | layout.dependent
    missing = [name for name in robot.tree.number if name not in matched]
    if missing:
        raise ModelError(
            f"robot {robot.name!r} moves joints that {layout.library}'s model does not have: {listed(missing)}; load "
            "both from the same file, and let both float or neither"
        )
    return matches


def _check_form(robot: Robot, layout: LibraryLayout, match: Match) -> None:
    kind, form = match.joint.kind, match.slot.form
    if match.joint.name not in robot.tree.number:
        return  # fixed here
    nv = 1 if match.part is not None else kind.nv
    if nv != SIZES[form][1] or (form == "ball") != (kind.nq == 4 and nv == 3):
        raise ModelError(
            f"joint {match.joint.name!r}: {kind.kind} here, {form} in {layout.library}'s model: there is no conversion"
        )
    if form == "planar" and isinstance(kind, Planar) and not np.array_equal(kind.normal, (0.0, 0.0, 1.0)):
        raise ModelError(
            f"joint {match.joint.name!r}: {layout.library} has planes across z only: turn its frame to match"
        )
