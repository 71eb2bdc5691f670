"""Loops that are open or singular, idle freedoms, and warnings from loading and building the robot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from coupler.cli.checks.finding import Finding
from coupler.model import ModelError, Robot
from coupler.model.embedding.constraints import LoopConstraint
from coupler.model.embedding.gaps import apart, described
from coupler.model.text import idle_text
from coupler.model.tolerances import TINY
from coupler.model.wording import some

_ROUNDED = 1e-5  # m or rad: smaller gaps come from the rounded numbers of files
_NEAR = 1e-3  # quality of the coordinates, 0 where they are singular and usually about 0.1: less is suspicious
_STATES = 4  # random configurations that are tried

_HINTS = {  # what to do about a warning with these words in it; warnings without a hint speak for themselves
    "meshes are missing": "only pictures and contact need meshes; put the files where the robot's file says",
    "not modelled": "the robot moves as if these were not there; if one of them matters, model it in another way",
    "singular where": 'start joints elsewhere: start="..." on a joint of each loop',
    "closed only beyond the limits": "do limits, lengths and zero positions belong to the same assembly?",
    "nothing resists a motion": "give its bodies mass and inertia, or its joints an armature",
    "does nothing: its bodies": "leave it out, or end it on another body",
    "keyframe": "give positions at which its loops are closed",
    "no real body has": 'fine for planar models and spinning rotors: mark the link ideal="true"; otherwise mend it',
    "inertia but no mass": "fine for rotors, of which only the spin matters; otherwise give them a mass",
    "the transmission that": "--package NAME=FOLDER says where its file is",
    "meshes": "only pictures and contact need them; --package NAME=FOLDER says where they are",
    "but is not used": "--closures FILE uses it",
    "but are not used": "--closures FILE uses one of them",
    "if they are not loops": "--closures none leaves them open",
    "made fixed": "nothing to do, unless it should move: then take the equality out",
}
_REMARKS = {
    "from the others": "normal for planar loops, whose rows out of the plane are dropped; nothing to do",
    "closed analytically": "--closure numerical, or load(..., closure=...), chooses otherwise",
    "closed numerically": "see --closure, or load(..., closure=...)",
}


def _hint(text: str, hints: Mapping[str, str]) -> str:
    return next((hint for words, hint in hints.items() if words in text), "")


def warnings(robot: Robot) -> Iterator[Finding]:
    """Warnings from loading and building the robot."""
    for text in robot.warnings:
        yield Finding("warning", text, _hint(text, _HINTS))


def remarks(robot: Robot) -> Iterator[Finding]:
    """Redundant rows of loops, which loops have a closed form, and other remarks."""
    for text in robot.remarks:
        yield Finding("note", text, _hint(text, _REMARKS))


def open_loops(robot: Robot) -> Iterator[Finding]:
    """Loops that are open at the start positions of their joints, which are zero unless the file gives others."""
    q = np.concatenate([link.start for link in robot.tree.links])[robot.embedding.q_index]
    try:
        errors = robot.loop_errors(q)
    except ModelError as error:  # a coupling has no solution there
        yield Finding("warning", f"where its joints start, {error}", 'set start="..." on joints to start elsewhere')
        return
    named = {part.name for part in (*robot.loops, *robot.couplings)}
    wide = [name for name, error in errors.items() if name in named and not error <= _ROUNDED]
    if wide:
        gaps = _gaps(robot, q)
        yield Finding(
            "note",
            ("a loop is open where its" if len(wide) == 1 else f"{len(wide)} loops are open where their")
            + f" joints start: {some([f'{name!r} by {gaps[name]}' for name in wide])}",
            'neutral() is the closed configuration that was found from there; start="..." on joints starts elsewhere',
        )


def _gaps(robot: Robot, q: np.ndarray) -> dict[str, str]:
    """The gaps of loop joints and couplings in a configuration, by name, as text in m and rad."""
    closure, gaps = robot.embedding.closure, dict[str, str]()
    phi = closure.at(robot.embedding.positions(q))[0]
    for constraint, rows in closure.constraints():
        sizes = [(float(np.abs(phi[rows]).max(initial=0.0)), "(rad, m, or what its function gives)")]
        if isinstance(constraint, LoopConstraint):
            sizes = list(zip(apart(constraint, phi[rows]), ("m", "rad"), strict=True))
        gaps[constraint.name] = " and ".join(f"{size:.3g} {unit}" for size, unit in sizes if not size <= _ROUNDED / 10)
    return gaps


def singular_loops(robot: Robot) -> Iterator[Finding]:
    """Loops whose coordinates are nearly singular, in the neutral configuration or in random ones."""
    embedding = robot.embedding
    implicit = [i for i, explicit in enumerate(embedding.explicit) if not explicit]
    if not implicit:
        return
    try:
        random = [robot.random_state(seed)[0] for seed in range(_STATES)]
    except ModelError as error:
        yield Finding("error", f"no closed random configuration was found: {error}", "are the joint limits right?")
        random = []
    quality = embedding.quality(embedding.positions(np.array([robot.neutral(), *random])))
    for i in implicit:
        worst = float(quality[:, i].min())
        if worst < _NEAR:
            what = described(embedding.closure.loops[i], robot.tree)
            where = "the neutral configuration" if quality[0, i] < _NEAR else "a random configuration"
            number = 1 / max(worst, TINY)
            yield Finding(
                "warning",
                f"{what} is nearly singular in {where}: the condition number of its dependent joints is {number:.2g}",
                "mark other joints of the loop as independent, or start its joints elsewhere",
            )


def idle_freedoms(robot: Robot) -> Iterator[Finding]:
    """Idle freedoms: motions in which no other part of the robot takes part; one finding for all of them."""
    if robot.idle:
        them = "it" if len(robot.idle) == 1 else "them"
        yield Finding("warning", idle_text(robot), f"lock {them} with --lock-idle, or load(..., lock_idle=True)")
