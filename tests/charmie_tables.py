"""CHARMIE as tables, in millimetres, as a designer would write them; and other people's file of the paper's tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import yaml

from coupler.robots import charmie as numbers

__all__ = ["charmie_tables", "published_tables", "save_tables"]

Table = list[list[Any]]
_MOMENTS = [f"{entry} (kg mm^2)" for entry in ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")]
_PLACE = ["x (mm)", "y (mm)", "z (mm)"]


def charmie_tables() -> dict[str, Table]:
    """All of the robot: main bodies with their own numbers, auxiliary ones without mass."""
    bodies: Table = [["body", "mass (kg)", *_PLACE, *_MOMENTS]]
    euler = ["euler", "e1 (rad)", "e2 (rad)", "e3 (rad)"]
    flags = ["position (rad)", "position (mm)", "actuated", "independent", "lower", "upper"]
    joints: Table = [["body", "type", "axis", "parent", *_PLACE, *euler, *flags]]
    points: Table = [["body", "point", *_PLACE]]

    def add(name: str, row: Any, weight: Any, driven: bool = True) -> None:
        kind, axis, parent, at = row
        turned = ["ZXZ", *numbers.TURNED[name]] if name in numbers.TURNED else ["", "", "", ""]
        moves = axis is not None and driven
        own = [moves and name not in numbers.INDIRECT, moves, *numbers.LIMITS.get(name, ())]
        joints.append([name, kind, _axis(axis), parent, *at, *turned, "", "", *own])
        mass, centre, moments = weight
        bodies.append([name, mass, *centre, *moments])

    for name, row in numbers.JOINTS.items():
        add(name, row, numbers.WEIGHTS[name.rstrip("ab")])
    for side in numbers.ARMS:
        for number, (kind, axis, carrier, at) in numbers.ARM.items():
            add(number + side, (kind, axis, carrier + side, at), numbers.WEIGHTS[number])
        for jaw in (1, 2):
            kind, axis, carrier, at = numbers.JAWS
            add(f"13{side}{jaw}", (kind, axis, carrier + side, at), numbers.WEIGHTS[f"13_{jaw}"], jaw == 1)
    for body, own in numbers.POINTS.items():
        points += [[body, point, *at] for point, at in own.items()]
    ours = {("3", "D"): numbers.D3, ("4", "E"): numbers.E4, ("4", "F"): numbers.F4, ("4", "S"): numbers.S4}
    struts: Table = [["strut", "from", "to", "axis", "actuated", "stiffness (N/mm)", "free length (mm)", "pretension"]]
    struts += [["4d", "3.D", "4.E", "x", True], ["5d", "4.F", "5.G", "x", True]]
    struts.append(["5s", "4.S", "5.I", "x", False, *_spring("5s")])
    loops: Table = [["loop", "type", "axis", "from", "to"]]
    for sign, side in ((-1, "l"), (1, "r")):
        lever, strut, slider = (f"4s{side}{part}" for part in "abc")
        ours |= {("3", f"S{side}"): numbers._mirrored(sign, numbers.S3), (slider, "pin"): (0, 0, -numbers.DROP)}
        ours |= {(lever, "a"): (sign * numbers.AT_SPRING, 0, 0), (lever, "b"): (sign * numbers.LEVER, 0, 0)}
        bodies += [[lever, 0], [slider, 0]]
        place = [1e3 * x for x in numbers._mirrored(sign, numbers.F3)]
        joints.append([lever, "R", "y", "3", *place, "", "", "", "", -sign * 0.48787514512])
        joints.append([slider, "P", "x", "4", *(1e3 * x for x in numbers.H4), "", "", "", "", "", sign * 171.33294])
        loops.append([f"4s{side}", "revolute", "y", f"{lever}.b", f"{slider}.pin"])
        struts.append([strut, f"3.S{side}", f"{lever}.a", "y", False, *_spring(strut)])
    points += [[body, point, *(1e3 * x for x in at)] for (body, point), at in ours.items()]
    couplings: Table = [["joint", "of", "ratio"], ["13a2", "13a1", -1], ["13b2", "13b1", -1]]
    return {
        "bodies": bodies,
        "points": points,
        "joints": joints,
        "loops": loops,
        "struts": struts,
        "couplings": couplings,
    }


def _axis(axis: Any) -> str:
    return "xyz"[axis.index(1)] if axis else ""


def _spring(name: str) -> list[float]:
    spring = numbers.SPRINGS[name]
    return [spring.stiffness / 1e3, 1e3 * spring.free_length, spring.pretension]


def published_tables(file: Path) -> dict[str, Any]:
    """The file of the paper's tables that others have made, with the exponents that coupler has corrected."""
    content = json.loads(file.read_text())
    moments = {body["name"]: body["inertia_about_com_kgm2"] for body in content["tree_expanded"]}
    moments["3"]["Iyz"] /= 10
    moments["8c"]["Iyy"] *= 10
    return content


def save_tables(tables: dict[str, Any], folder: Path, suffix: str) -> Path:
    """Writes tables as a YAML, JSON or CSV file; of CSV, returns the path of bodies.csv."""
    if suffix == ".csv":
        for name, rows in tables.items():
            with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(rows)
        return folder / "bodies.csv"
    path = folder / f"robot{suffix}"
    path.write_text(json.dumps(tables) if suffix == ".json" else yaml.safe_dump(tables), encoding="utf-8")
    return path
