"""Loops and transmissions of a YAML file with `submechanisms`, as published with the robot of [003].

Each submechanism has `loop_constraints`: the frame of a cut joint, two bodies, and the axes along which they are held
there. A transmission is described in a URDF of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coupler.io.packages import real_path
from coupler.io.urdf.closure_files import ClosureFile, link_of
from coupler.io.urdf.parts import LoopPart
from coupler.io.urdf.transmissions import read_transmissions
from coupler.io.xml import parse_file
from coupler.model import Fixed, Held, LoopKind, ModelError, Spherical
from coupler.model.numbers import LARGEST
from coupler.model.wording import clipped, listed


class Submechanism:
    """One entry of `submechanisms`.

    Args:
        file: the file that it is in.
        part: the content of the entry.
        folders: the folders in which files that it names may be.
    """

    def __init__(self, file: ClosureFile, part: Any, folders: Sequence[Path]) -> None:
        if not isinstance(part, dict):
            raise file.error(part, f"a submechanism must be a mapping, got {clipped(part)}")
        self.file, self.part, self.folders = file, part, folders

    def add(self) -> None:
        """Marks joints as active or independent, and adds loops or the couplings of a transmission."""
        for joint in self.file.joints(self._list("jointnames_active")):
            joint.actuated = True
        for joint in self.file.joints(self._list("jointnames_independent")):
            joint.independent = True
        for constraint in self._list("loop_constraints"):
            self._add_loop(constraint)
        if self.part.get("type") == "TRANSMISSION" and "file_path" in self.part:
            self._add_transmission(self.part["file_path"])
            return
        all_independent = len(self._list("jointnames_spanningtree")) == len(self._list("jointnames_independent"))
        if not all_independent and not self._list("loop_constraints"):
            name = str(self.part.get("name") or self.part.get("contextual_name") or "without a name")
            self.file.d.warnings.append(
                f"submechanism {name!r} is left open: the file does not describe how its joints are related"
            )

    def _list(self, key: str) -> list[Any]:
        return self.file.entries(self.part.get(key) or [], key)

    def _add_loop(self, constraint: Any) -> None:
        """Adds a loop that holds two bodies along axes of a cut joint's frame, as it is with all joints at zero."""
        d, where = self.file.d, self.file.where(constraint)
        keys = ("cut_joint", "predecessor_body", "successor_body", "constraint_axes")
        if not isinstance(constraint, dict) or any(key not in constraint for key in keys):
            raise ModelError(f"{where}: a loop constraint needs {listed(keys)}")
        cut = self.file.joint(constraint["cut_joint"])
        first, second = (link_of(d, where, constraint[key]) for key in keys[1:3])
        X = d.zero_pose(cut.child)
        at, meets = (X @ d.zero_pose(link).inverse() for link in (first, second))
        axes = [self._axis(axis) for axis in self.file.entries(constraint["constraint_axes"], "constraint_axes", where)]
        try:
            kind = _kind_of(axes)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
        d.loops.append(LoopPart(d.new_name(f"{cut.name}_loop"), kind, first, second, at, meets))

    def _axis(self, entry: Any) -> list[float]:
        axis = entry.get("axis") if isinstance(entry, dict) else None
        numbers = axis if isinstance(axis, list) else []
        if len(numbers) != 6 or not all(type(x) in (int, float) and abs(x) <= LARGEST for x in numbers):
            raise self.file.error(entry, f"a constraint axis is six numbers, got {clipped(axis)}")
        return numbers

    def _add_transmission(self, name: Any) -> None:
        """Adds the couplings in the submechanism's own URDF."""
        allowed, outside = [real_path(folder) for folder in self.folders], False
        for folder in self.folders:
            path = folder / str(name)
            try:
                real = real_path(path)
            except ModelError:  # not a valid file name
                continue
            inside = any(real.is_relative_to(within) for within in allowed)
            if inside and os.path.isfile(path):
                read_transmissions(parse_file(path), self.file.d)
                return
            outside |= not inside
        why = "it is outside the folder" if outside else "there is no such file"
        self.file.d.warnings.append(
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
