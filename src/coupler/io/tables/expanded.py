"""Trees written out body by body, each with the joint that carries it, as in files of published tables.

`tree_expanded` has the bodies, in SI units; points of a body may be listed in `table..._body5_points_m`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from coupler.io.writing import rpy_of
from coupler.model import ModelError
from coupler.model.tree import GROUND
from coupler.model.wording import clipped

EXPANDED = "tree_expanded"
_WORLD = ("world", GROUND)
_POINTS = re.compile(r"table\w*_body(\w+)_points_m")
_KEYS = ("name", "parent", "joint_type", "placement_in_parent_m", "mass_kg", "com_in_body_origin_m")
_EXACT = 1e-9  # how far E Eᵀ may be from 1: these files are computed, and print most of their digits
_ROTATION = "fixed_rotation_parent_from_body"  # of vectors along the body's axes to the parent's


def tables_of_tree(file: Path, content: dict[str, Any]) -> dict[str, Any]:
    """A tree that is written out, as the tables that `read_tables` takes."""
    tree = content[EXPANDED]
    if not isinstance(tree, list):
        raise ModelError(f"{file}: {EXPANDED} must be a list of bodies, got {clipped(tree)}")
    bodies, joints = [], []
    for number, entry in enumerate(tree, 1):
        where = f"{file}: {EXPANDED}, row {number}"
        if not isinstance(entry, dict):
            raise ModelError(f"{where}: it must be a mapping, got {clipped(entry)}")
        missing = [key for key in _KEYS if key not in entry]
        if missing:
            raise ModelError(f"{where}: its {missing[0]!r} is missing")
        moments = entry.get("inertia_about_com_kgm2") or {}
        if not isinstance(moments, dict):
            raise ModelError(f"{where}: its inertia must be a mapping from Ixx, ... to numbers, got {clipped(moments)}")
        name, centre = entry["name"], _xyz(where, entry["com_in_body_origin_m"])
        bodies.append({"body": name, "mass": entry["mass_kg"]} | centre | moments)
        parent = GROUND if entry["parent"] in _WORLD else entry["parent"]
        joint = {"body": name, "parent": parent, "type": entry["joint_type"], "axis": _axis(entry.get("axis"))}
        turned = _euler(where, entry[_ROTATION]) if entry.get(_ROTATION) is not None else {}
        joints.append(joint | _xyz(where, entry["placement_in_parent_m"]) | turned)
    about = {"robot": content["robot"]} if "robot" in content else {}
    return about | {"bodies": bodies, "joints": joints, "points": _points(file, content)}


def _points(file: Path, content: dict[str, Any]) -> list[dict[str, Any]]:
    """The table of points on bodies; names of points may end in the body's, as G_5 does."""
    rows = []
    for key, points in content.items():
        matched = _POINTS.fullmatch(str(key))
        if not matched:
            continue
        if not isinstance(points, dict):
            raise ModelError(f"{file}: {key} must be a mapping from points to places, got {clipped(points)}")
        body = matched[1]
        for point, place in points.items():
            where = f"{file}: {key}, {clipped(point)}"
            rows.append({"body": body, "point": str(point).removesuffix(f"_{body}")} | _xyz(where, place))
    return rows


def _xyz(where: str, place: Any) -> dict[str, Any]:
    if not isinstance(place, list) or len(place) != 3:
        raise ModelError(f"{where}: expected the three numbers of a place, got {clipped(place)}")
    return dict(zip("xyz", place, strict=True))


def _axis(axis: Any) -> Any:
    return " ".join(map(str, axis)) if isinstance(axis, list) else "" if axis is None else axis


def _euler(where: str, rotation: Any) -> dict[str, Any]:
    try:
        R = np.array(rotation, float)
    except (TypeError, ValueError, OverflowError):
        R = np.zeros(0)
    if (
        R.shape != (3, 3)
        or not np.abs(R).max() < 2.0
        or np.abs(R @ R.T - np.eye(3)).max() > _EXACT
        or np.linalg.det(R) < 0
    ):
        raise ModelError(f"{where}: its {_ROTATION!r} must be a rotation, 3 × 3, got {clipped(rotation)}")
    return {"euler": "xyz"} | dict(zip(("e1", "e2", "e3"), rpy_of(R).tolist(), strict=True))
