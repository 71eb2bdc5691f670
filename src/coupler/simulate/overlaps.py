"""What overlaps, or is beyond a joint's limit, where a simulation starts: told once, with what will come of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from coupler.contact.laws import gap_seen
from coupler.contact.scene import ContactScene, limited_joints, recovery_speeds, turns
from coupler.model import ModelWarning, Robot
from coupler.model.wording import counted

__all__ = ["joint_overlaps", "warn_of_overlaps"]

_TOLD = 1e-4  # m or rad: a deeper overlap at the start is told; less is what the posing of a robot leaves


def warn_of_overlaps(
    robot: Robot, scene: ContactScene, gaps: np.ndarray, names: Sequence[str], joints: Sequence[str] = ()
) -> None:
    """Warns of overlaps, once for all.

    Args:
        robot: the robot that starts.
        scene: what a step takes into account.
        gaps: (contacts,), the least that each starts with, m.
        names: of the contacts.
        joints: sentences on joints beyond their limits; see `joint_overlaps`.
    """
    findings = []
    if len(gaps) and (deepest := float(gaps.min())) < -_TOLD:
        what = f"overlaps at the start in {counted(int((gaps < -_TOLD).sum()), 'contact')}"
        findings.append(f"{what}, {names[int(gaps.argmin())]} by {-deepest * 1e3:.3g} mm, {_parted(scene, deepest)}")
    if joints:
        more = f", and {counted(len(joints) - 1, 'other joint')} beyond" if len(joints) > 1 else ""
        findings.append(f"starts with {joints[0]}{more}")
    if findings:
        text = (
            f"robot {robot.name!r} {'; it '.join(findings)}; start elsewhere, or see options recovery and penetration"
        )
        warnings.warn(text, ModelWarning, stacklevel=4)


def _parted(scene: ContactScene, gap: float) -> str:
    """What becomes of an overlap under the options in force."""
    fast = -float(gap_seen(gap, scene.penetration)) / scene.step
    if fast <= 0.0:
        return "which is kept from growing"
    if fast > scene.recovery:
        return f"which is let out with {scene.recovery:.3g} m/s"
    first = "which the first step parts" if gap_seen(gap, scene.penetration) == gap else "which steps part"
    return f"{first} with {fast:.3g} m/s"


def joint_overlaps(robot: Robot, scene: ContactScene, q: np.ndarray) -> list[str]:
    """A sentence on each joint that is beyond a limit in a configuration, (nq,), the furthest first."""
    joints = limited_joints(robot) if scene.limits else []
    p, overlaps = robot.embedding.positions(q), list[tuple[float, str]]()
    for joint, recovery in zip(joints, recovery_speeds(robot, joints, scene.recovery), strict=True):
        (link, j), unit = joint, "rad" if turns(robot, joint) else "m"
        kind, at = robot.tree.links[link].kind, p[robot.tree.q_start[link] + j]
        beyond = max(float(kind.lower[j] - at), float(at - kind.upper[j]))
        if beyond > _TOLD:
            what = f"joint {robot.tree.links[link].joint!r} {beyond:.3g} {unit} beyond its limit"
            back = f"from where it comes back with {min(beyond / scene.step, recovery):.3g} {unit}/s"
            overlaps.append((beyond, f"{what}, {back}"))
    return [text for _, text in sorted(overlaps, reverse=True)]
