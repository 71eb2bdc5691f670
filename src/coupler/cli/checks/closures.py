"""Loops that are open, singular or idle, and what loading and building the robot warned of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coupler.cli.checks.finding import Finding
from coupler.model import ModelError, Robot
from coupler.model.embedding.assembly import described
from coupler.model.words import listed

__all__ = ["idle_freedoms", "open_loops", "remarks", "singular_loops", "warnings"]

_ROUNDED = 1e-5  # m or rad, gaps that files have because they round their numbers
_LISTED = 8  # loops in a finding
_NEAR = 1e-3  # how far coordinates are from singular; usual is 0.1
_STATES = 4  # random ones that are looked at

_UNKNOWN = "say it otherwise in the file, or mind it when you use the robot"
_HINTS = {  # words of a warning, and the way out
    "not modelled": _UNKNOWN,
    "is singular where its joints start": 'start its joints elsewhere: start="..." on one of them',
    "beyond the limits of its joints": "are limits, lengths and zero positions those of one assembly?",
    "nothing resists a motion": "give its bodies mass and inertia, or its joints an armature",
    "does nothing: its bodies": "leave it out, or end it on another body",
    "keyframe": "give positions at which its loops are closed",
    "no real body has": 'right for planar models and spinning rotors; ideal="true" on a link says that it is meant',
    "meshes": "nothing but pictures and contact need them; --package NAME=FOLDER says where they are",
}


def warnings(robot: Robot) -> Iterator[Finding]:
    """What was suspicious when the robot was loaded and built."""
    for text in robot.warnings:
        yield Finding("warning", text, next((hint for words, hint in _HINTS.items() if words in text), _UNKNOWN))


def remarks(robot: Robot) -> Iterator[Finding]:
    """Rows of loops that follow from others."""
    for text in robot.remarks:
        yield Finding("note", text, "usual for planar loops, whose rows out of the plane are dropped; nothing to do")


def open_loops(robot: Robot) -> Iterator[Finding]:
    """Loops that are open where the joints start, which is at zero unless the description says otherwise."""
    p = np.concatenate([link.start for link in robot.tree.links])
    try:
        errors = robot.loop_errors(p[robot.embedding.q_index])
    except ModelError as error:  # a coupling's solution gives nothing there
        yield Finding("warning", f"where its joints start, {error}", 'start="..." on joints says where to start')
        return
    names = [bond.name for bond in (*robot.loops, *robot.couplings)]
    gaps = {name: float(errors[name]) for name in names if not errors[name] <= _ROUNDED}
    if gaps:
        told = ", ".join(f"{name!r} by {gap:.3g}" for name, gap in list(gaps.items())[:_LISTED])
        more = f" and {len(gaps) - _LISTED} more" if len(gaps) > _LISTED else ""
        yield Finding(
            "note",
            f"open where its joints start is {told}{more} (m or rad)",
            'neutral() is a closed configuration nearby; start="..." on joints says where to look for another',
        )


def singular_loops(robot: Robot) -> Iterator[Finding]:
    """Loops whose coordinates are nearly singular, at the neutral configuration or at random ones."""
    embedding = robot.embedding
    implicit = [i for i, explicit in enumerate(embedding.explicit) if not explicit]
    if not implicit:
        return
    try:
        drawn = [robot.random_state(seed)[0] for seed in range(_STATES)]
    except ModelError as error:
        yield Finding(
            "error", f"no closed configuration is found at random: {error}", "are the limits of joints right?"
        )
        drawn = []
    quality = embedding.quality(embedding.positions(np.array([robot.neutral(), *drawn])))
    for i in implicit:
        worst = float(quality[:, i].min())
        if worst < _NEAR:
            what = described(embedding.closure.loops[i], robot.tree)
            where = "the neutral configuration" if quality[0, i] < _NEAR else "a random configuration"
            number = 1 / max(worst, 1e-300)
            yield Finding(
                "warning",
                f"{what} is nearly singular at {where}: its dependent joints have the condition number {number:.2g}",
                "mark other joints of the loop as independent, or start it elsewhere",
            )


def idle_freedoms(robot: Robot) -> Iterator[Finding]:
    """Motions that nothing else takes part in."""
    links = robot.tree.links
    for freedom in robot.idle:
        yield Finding(
            "warning",
            f"body {listed(links[link].name for link in freedom.links)} can move alone, at joint "
            f"{links[freedom.joint].joint!r}",
            "lock it: --lock-idle, or load(..., lock_idle=True)",
        )
