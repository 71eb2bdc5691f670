"""Loops of a URDF that are described beside it, since URDF itself has none.

There are three ways to describe them:
- A YAML file with `closed_loop` lists pairs of frames. `type` says how each pair is held ("3d": point to point, "6d":
  welded), `name_mot` which joints have motors, and `joint_name` with `joint_type` which joints are of a type that URDF
  lacks.
- A YAML file with `submechanisms`: see `submechanisms`.
- Frames named closing_NAME_1 and closing_NAME_2 are connected by ball joints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from coupler.io.reading import Closures
from coupler.io.urdf.beside import files_beside, warn_of_unused
from coupler.io.urdf.closure_files import ClosureFile, link_of
from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import JointPart, LoopPart
from coupler.io.urdf.submechanisms import Submechanism
from coupler.io.yaml import parse_yaml
from coupler.model import Fixed, LoopKind, ModelError, Revolute, Spherical
from coupler.model.wording import clipped, counted, listed
from coupler.spatial import Transform

_KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")  # of a file with pairs of frames
_ALIKE = 0.8  # words are taken for misspelt from this likeness on
_SAME = 8  # digits after the point, m, up to which points are the same
_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}


def add_closures(d: Description, closures: Closures, folders: Iterable[Path] = ()) -> None:
    """Adds the loops that the user gives, or those that are described beside the robot's file.

    Args:
        closures: what the user gives; see `load`.
        folders: further folders for files of submechanisms, which may also be beside the file that names them.

    Raises:
        ModelError: for an unknown frame or joint; it names file and line.
    """
    if isinstance(closures, str | Path):
        path = Path(closures)
        content = parse_yaml(path)
        if not _describes_loops(content):
            raise ModelError(f"{path}: it describes no loops: it has neither 'closed_loop' nor 'submechanisms'")
        _add_file(d, path, content, folders)
    elif isinstance(closures, list | tuple):
        for i, given in enumerate(closures, 1):
            _add_pair(d, f"closures[{i - 1}]", f"closure_{i}", given)
    elif closures not in (None, True, False):
        raise ModelError(
            f"closures must be a YAML file, a list of pairs of frames, or False for none, got {closures!r}"
        )
    elif closures is not False:
        in_file = len(d.loops)
        for path in files_beside(d):
            try:
                content = parse_yaml(path)
            except ModelError as error:
                raise ModelError(f"{error} (pass closures=False if it has nothing to do with loops)") from None
            if _describes_loops(content):
                _add_file(d, path, content, folders)
                break
            _warn_of_misspelt(d, path, content)
        else:
            warn_of_unused(d)
        ended_in_frames = _add_closing_frames(d)
        _leave_out_known_loops(d, in_file)
        _warn_of_frames([loop for loop in d.loops if loop in ended_in_frames], d)


def _leave_out_known_loops(d: Description, in_file: int) -> None:
    """Drops loops that the robot's own file has, too, as when a robot was saved with loops from a file beside it.

    Args:
        in_file: the number of loops from the robot's own file, which come first.
    """
    if not 0 < in_file < len(d.loops):
        return
    movers = d.movers()

    def held(loop: LoopPart) -> tuple[Any, ...]:
        """The kind of a loop, and the points that it holds together, each relative to the body that moves it."""
        points = []
        for link, at in ((loop.first, loop.at), (loop.second, loop.meets)):
            mover, placed = movers[link]
            points.append((mover, *np.round((at @ placed).r, _SAME)))
        return type(loop.kind), frozenset(points)

    known, added = {held(loop) for loop in d.loops[:in_file]}, d.loops[in_file:]
    d.loops[in_file:] = [loop for loop in added if held(loop) not in known]
    if left_out := len(added) - len(d.loops[in_file:]):
        d.remarks.append(f"{counted(left_out, 'loop')} beside the file left out, which the file has itself")


def _describes_loops(content: Any) -> bool:
    return isinstance(content, dict) and ("closed_loop" in content or "submechanisms" in content)


def _warn_of_misspelt(d: Description, path: Path, content: Any) -> None:
    """Warns of a key that looks like a misspelt `closed_loop` or `submechanisms`."""
    for key in content if isinstance(content, dict) else ():
        meant = get_close_matches(str(key).lower(), ("closed_loop", "submechanisms"), 1, _ALIKE)
        if meant:
            d.warnings.append(f"{path.name} describes no loops: is its key {clipped(key)} meant to be {meant[0]!r}?")


def _add_file(d: Description, path: Path, content: dict[str, Any], folders: Iterable[Path]) -> None:
    file = ClosureFile(d, path)
    if "submechanisms" in content:
        for part in file.entries(content["submechanisms"], "submechanisms"):
            Submechanism(file, part, [path.parent, *folders]).add()
    if "closed_loop" in content:
        _add_pairs(file, content)
    if file.absent:
        d.warnings.append(
            f"{path.name} names joints that {d.root.file.name} does not have, which are left out: {listed(file.absent)}"
        )


# Pairs of frames


def _add_pairs(file: ClosureFile, content: dict[str, Any]) -> None:
    others = [str(key) for key in content if key not in (*_KEYS, "submechanisms")]
    if others:
        file.d.warnings.append(
            f"{file.path.name} has keys that are not read: {listed(others)}; beside closed_loop there may be "
            f"{listed(_KEYS[1:])}"
        )
    pairs = file.entries(content["closed_loop"], "closed_loop")
    words = file.entries(content.get("type") or ["6d"] * len(pairs), "type")
    if len(words) != len(pairs):
        raise file.error(words, f"'type' names {counted(len(words), 'kind')} for {counted(len(pairs), 'loop')}")
    for pair, word in zip(pairs, words, strict=True):
        if not isinstance(pair, list) or len(pair) != 2:
            raise file.error(pair, f"a closed loop is a pair of frames, got {clipped(pair)}")
        _add_pair(file.d, file.where(pair), "", [*pair, word])
    for joint in file.joints(file.entries(content.get("name_mot") or [], "name_mot")):
        joint.actuated = True
    names, kinds = (file.entries(content.get(key) or [], key) for key in ("joint_name", "joint_type"))
    if len(names) != len(kinds):
        raise file.error(
            names or kinds, f"joint_name has {counted(len(names), 'entry', 'entries')} and joint_type {len(kinds)}"
        )
    for name, kind in zip(names, kinds, strict=True):
        for joint in file.joints([name]):
            _change_kind(file, joint, kind)


def _add_pair(d: Description, where: str, name: str, given: Any) -> None:
    """Adds a loop between two frames; an optional third string says how they are held, by default by a ball joint."""
    words = given if isinstance(given, list | tuple) else []
    if len(words) not in (2, 3) or not all(isinstance(word, str) for word in words):
        raise ModelError(f"{where}: a closure is two frames and how they are held ('3d' or '6d'), got {clipped(given)}")
    first, second = (link_of(d, where, frame) for frame in given[:2])
    word = str(given[2]).lower() if len(given) == 3 else "3d"
    kinds: dict[str, LoopKind] = {"3d": Spherical(), "6d": Fixed(), "ball": Spherical(), "spherical": Spherical()}
    kinds |= {"weld": Fixed(), "fixed": Fixed(), "revolute": Revolute()}
    if word not in kinds:
        raise ModelError(f"{where}: there is no closure of type {clipped(given[2])}; there are {listed(kinds)}")
    place = Transform.identity()
    name = d.new_name(name or f"{given[0]}-{given[1]}")
    d.loops.append(LoopPart(name, kinds[word], first, second, place, place))


def _change_kind(file: ClosureFile, joint: JointPart, kind: Any) -> None:
    """Changes a joint to a type that URDF lacks; its limits, which were those of one freedom, no longer apply."""
    for word in ("lower", "upper", "rest"):
        joint.properties.pop(word, None)
    universal = re.fullmatch(r"UJOINT_([XYZ])([XYZ])", str(kind))
    if universal and universal[1] != universal[2]:
        joint.kind, joint.axes = "universal", [np.array(_AXES[letter]) for letter in universal.groups()]
    elif kind == "SPHERICAL":
        joint.kind = "spherical"
    elif kind == "FIXED":
        joint.fix()
    else:
        raise file.error(kind, f"there is no joint type {clipped(kind)}; there are 'SPHERICAL', 'FIXED', 'UJOINT_XY'")


def _add_closing_frames(d: Description) -> list[LoopPart]:
    """Adds a loop for each pair of frames closing_NAME_1 and closing_NAME_2."""
    before = len(d.loops)
    for name in d.links:
        match = re.fullmatch(r"(closing_.+)_1", name)
        if match and f"{match[1]}_2" in d.links:
            _add_pair(d, str(d.root.file), match[1], [f"{match[1]}_1", f"{match[1]}_2"])
    return d.loops[before:]


def _warn_of_frames(loops: list[LoopPart], d: Description) -> None:
    if loops:
        d.warnings.append(
            f"{counted(len(loops), 'loop')} closed by a ball joint between frames such as {loops[0].first} and "
            f"{loops[0].second}; pass closures=False if they are not loops"
        )
