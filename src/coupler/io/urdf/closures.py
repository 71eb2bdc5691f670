"""Loops of a URDF that are described beside it, since URDF itself has none.

There are three ways. A YAML file with `closed_loop` lists pairs of frames, `type` how each is held ("3d": point to
point, "6d": welded), `name_mot` the motors, and `joint_name` with `joint_type` the joints of types that URDF lacks. A
YAML file with `submechanisms` has `loop_constraints` in each: the frame of a cut joint, two bodies, and the axes along
which they are held there, as published with the robot of [003]. Frames named closing_NAME_1 and closing_NAME_2 are
connected by ball joints.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coupler.io.packages import real_path
from coupler.io.reading import Closures
from coupler.io.urdf.beside import files_beside, tell_unused
from coupler.io.urdf.constraints import read_transmissions
from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import JointPart, LoopPart
from coupler.io.xml import parse_file
from coupler.io.yaml import line_of, parse_yaml
from coupler.model import Fixed, Held, LoopKind, ModelError, Revolute, Spherical
from coupler.model.numbers import LARGEST
from coupler.model.wording import clipped, counted, listed
from coupler.spatial import Transform

_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}


def add_closures(d: Description, closures: Closures, folders: Iterable[Path] = ()) -> None:
    """Adds the loops that the user gives, or those that are described beside the robot's file.

    Args:
        d: the robot.
        closures: what the user gives; see `load`.
        folders: where else the files of submechanisms may be than beside the file that names them.

    Raises:
        ModelError: for an unknown frame or joint; it names file and line.
    """
    if isinstance(closures, str | Path):
        path = Path(closures)
        content = parse_yaml(path)
        if not _describes_loops(content):
            raise ModelError(f"{path}: it describes no loops: it has neither 'closed_loop' nor 'submechanisms'")
        _add(d, path, content, folders)
    elif isinstance(closures, list | tuple):
        for i, given in enumerate(closures, 1):
            _add_pair(d, f"closures[{i - 1}]", f"closure_{i}", given)
    elif closures not in (None, True, False):
        raise ModelError(
            f"closures must be a YAML file, a list of pairs of frames, or False for none, got {closures!r}"
        )
    elif closures is not False:
        for path in files_beside(d):
            try:
                content = parse_yaml(path)
            except ModelError as error:
                raise ModelError(f"{error} (pass closures=False if it has nothing to do with loops)") from None
            if _describes_loops(content):
                _add(d, path, content, folders)
                break
        else:
            tell_unused(d)
        _add_closing_frames(d)


def _describes_loops(content: Any) -> bool:
    return isinstance(content, dict) and ("closed_loop" in content or "submechanisms" in content)


def _add(d: Description, path: Path, content: dict[str, Any], folders: Iterable[Path]) -> None:
    if "submechanisms" in content:
        for part in _list(path, content["submechanisms"], "submechanisms"):
            _Submechanism(d, path, part, [path.parent, *folders]).add()
    if "closed_loop" in content:
        _add_pairs(d, path, content)


# Pairs of frames


def _add_pairs(d: Description, path: Path, content: dict[str, Any]) -> None:
    pairs = _list(path, content["closed_loop"], "closed_loop")
    words = _list(path, content.get("type") or ["6d"] * len(pairs), "type")
    if len(words) != len(pairs):
        raise ModelError(f"{path}{line_of(words)}: type has {len(words)} entries for {counted(len(pairs), 'loop')}")
    for pair, word in zip(pairs, words, strict=True):
        where = f"{path}{line_of(pair)}"
        if not isinstance(pair, list) or len(pair) != 2:
            raise ModelError(f"{where}: a closed loop is a pair of frames, got {clipped(pair)}")
        _add_pair(d, where, "", [*pair, word])
    for joint in _known(d, path, _list(path, content.get("name_mot") or [], "name_mot")):
        joint.actuated = True
    names, kinds = (_list(path, content.get(key) or [], key) for key in ("joint_name", "joint_type"))
    if len(names) != len(kinds):
        where = f"{path}{line_of(names or kinds)}"
        raise ModelError(
            f"{where}: joint_name has {counted(len(names), 'entry', 'entries')} and joint_type {len(kinds)}"
        )
    for name, kind in zip(names, kinds, strict=True):
        for joint in _known(d, path, [name]):
            _change_kind(joint, path, kind)


def _add_pair(d: Description, where: str, name: str, given: Any) -> None:
    """A loop between two frames; an optional third string says how they are held, by default as by a ball joint."""
    words = given if isinstance(given, list | tuple) else []
    if len(words) not in (2, 3) or not all(isinstance(word, str) for word in words):
        raise ModelError(f"{where}: a closure is two frames and how they are held ('3d' or '6d'), got {clipped(given)}")
    first, second = (_link(d, where, frame) for frame in given[:2])
    word = str(given[2]).lower() if len(given) == 3 else "3d"
    kinds: dict[str, LoopKind] = {"3d": Spherical(), "6d": Fixed(), "ball": Spherical(), "spherical": Spherical()}
    kinds |= {"weld": Fixed(), "fixed": Fixed(), "revolute": Revolute()}
    if word not in kinds:
        raise ModelError(f"{where}: there is no closure of type {clipped(given[2])}; there are {listed(kinds)}")
    place = Transform.identity()
    _append(d, LoopPart(name or f"{given[0]}-{given[1]}", kinds[word], first, second, place, place))


def _change_kind(joint: JointPart, path: Path, kind: Any) -> None:
    """Changes a joint to a type that URDF lacks; its limits, which were those of one freedom, no longer apply."""
    for word in ("lower", "upper", "rest"):
        joint.properties.pop(word, None)
    universal = re.fullmatch(r"UJOINT_([XYZ])([XYZ])", str(kind))
    if universal and universal[1] != universal[2]:
        joint.kind, joint.axes = "universal", [np.array(_AXES[letter]) for letter in universal.groups()]
    elif kind == "SPHERICAL":
        joint.kind = "spherical"
    elif kind == "FIXED":
        joint.kind, joint.properties = "fixed", {}
    else:
        where = f"{path}{line_of(kind)}"
        raise ModelError(
            f"{where}: there is no joint type {clipped(kind)}; there are 'SPHERICAL', 'FIXED', 'UJOINT_XY'"
        )


def _add_closing_frames(d: Description) -> None:
    """Loops between frames whose names form a pair."""
    names = []
    for name in d.links:
        match = re.fullmatch(r"(closing_.+)_1", name)
        if match and f"{match[1]}_2" in d.links:
            names.append(match[1])
    for name in names:
        _add_pair(d, str(d.root.file), name, [f"{name}_1", f"{name}_2"])
    if names:
        d.warnings.append(
            f"{counted(len(names), 'loop')} closed by a ball joint between frames such as {names[0]}_1 and "
            f"{names[0]}_2; pass closures=False if they are not loops"
        )


# Submechanisms


class _Submechanism:
    """One entry of `submechanisms`."""

    def __init__(self, d: Description, path: Path, part: Any, folders: Sequence[Path]) -> None:
        if not isinstance(part, dict):
            raise ModelError(f"{path}{line_of(part)}: a submechanism must be a mapping, got {clipped(part)}")
        self.d, self.path, self.part, self.folders = d, path, part, folders

    def add(self) -> None:
        for joint in _known(self.d, self.path, self._names("jointnames_active")):
            joint.actuated = True
        for joint in _known(self.d, self.path, self._names("jointnames_independent")):
            joint.independent = True
        for constraint in self._names("loop_constraints"):
            self._add_loop(constraint)
        if self.part.get("type") == "TRANSMISSION" and "file_path" in self.part:
            self._add_transmission(self.part["file_path"])
            return
        all_independent = len(self._names("jointnames_spanningtree")) == len(self._names("jointnames_independent"))
        if not all_independent and not self._names("loop_constraints"):
            name = str(self.part.get("name") or self.part.get("contextual_name") or "without a name")
            self.d.warnings.append(
                f"submechanism {name!r} is left open: the file does not describe how its joints are related"
            )

    def _names(self, key: str) -> list[Any]:
        return _list(self.path, self.part.get(key) or [], key)

    def _add_loop(self, constraint: Any) -> None:
        """Two bodies held along axes of a cut joint's frame, with all joints at zero."""
        where = f"{self.path}{line_of(constraint)}"
        keys = ("cut_joint", "predecessor_body", "successor_body", "constraint_axes")
        if not isinstance(constraint, dict) or any(key not in constraint for key in keys):
            raise ModelError(f"{where}: a loop constraint needs {listed(keys)}")
        cut = _joint(self.d, self.path, constraint["cut_joint"])
        first, second = (_link(self.d, where, constraint[key]) for key in keys[1:3])
        X = self.d.zero_pose(cut.child)
        at, meets = (X @ self.d.zero_pose(link).inverse() for link in (first, second))
        axes = [self._axis(axis) for axis in _list(self.path, constraint["constraint_axes"], "constraint_axes", where)]
        try:
            kind = _kind_of(axes)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
        _append(self.d, LoopPart(f"{cut.name}_loop", kind, first, second, at, meets))

    def _axis(self, given: Any) -> list[float]:
        axis = given.get("axis") if isinstance(given, dict) else None
        numbers = axis if isinstance(axis, list) else []
        if len(numbers) != 6 or not all(type(x) in (int, float) and abs(x) <= LARGEST for x in numbers):
            raise ModelError(f"{self.path}{line_of(given)}: a constraint axis is six numbers, got {clipped(axis)}")
        return numbers

    def _add_transmission(self, name: Any) -> None:
        """Couplings from the submechanism's own URDF."""
        allowed, outside = [real_path(folder) for folder in self.folders], False
        for folder in self.folders:
            path = folder / str(name)
            try:
                real = real_path(path)
            except ModelError:  # not a valid file name
                continue
            inside = any(real.is_relative_to(within) for within in allowed)
            if inside and os.path.isfile(path):
                read_transmissions(parse_file(path), self.d)
                return
            outside |= not inside
        why = "it is outside the folder" if outside else "there is no such file"
        self.d.warnings.append(
            f"the transmission that {clipped(name)} describes is left out: {why}; name its folder in packages={{...}}"
        )


def _kind_of(axes: list[list[float]]) -> LoopKind:
    """The loop that holds two frames along the given axes."""
    rows = np.array(axes, dtype=float)
    if len(rows) == 6 and np.linalg.matrix_rank(rows) == 6:
        return Fixed()
    if len(rows) == 3 and not rows[:, :3].any() and np.linalg.matrix_rank(rows) == 3:
        return Spherical()
    return Held(rows)


# Names


def _list(path: Path, given: Any, key: str, where: str = "") -> list[Any]:
    if not isinstance(given, list):
        raise ModelError(f"{where or f'{path}{line_of(given)}'}: {key} must be a list, got {clipped(given)}")
    return given


def _known(d: Description, path: Path, names: list[Any]) -> list[JointPart]:
    """The joints of these names; those that the robot does not have are told, and left out."""
    absent = [name for name in names if isinstance(name, str) and name not in d.joints]
    if absent:
        d.warnings.append(f"{path.name} names joints that {d.root.file.name} does not have, left out: {listed(absent)}")
    return [_joint(d, path, name) for name in names if name not in absent]


def _joint(d: Description, path: Path, name: Any) -> JointPart:
    if not isinstance(name, str) or name not in d.joints:
        where = f"{path}{line_of(name)}: {d.root.file.name}"
        raise ModelError(f"{where} has no joint {clipped(name)}; it has {listed(d.joints)}")
    return d.joints[str(name)]


def _link(d: Description, where: str, name: Any) -> str:
    """The link of a frame, which is named after a link, or after the joint that carries the link."""
    name = d.renamed.get(name, name) if isinstance(name, str) else name
    if isinstance(name, str) and name in d.links:
        return str(name)
    if isinstance(name, str) and name in d.joints:
        return d.joints[str(name)].child
    raise ModelError(f"{where}: {d.root.file.name} has no frame {clipped(name)}; it has {listed(d.links)}")


def _append(d: Description, loop: LoopPart) -> None:
    loop.name = d.new_name(loop.name)
    d.loops.append(loop)
