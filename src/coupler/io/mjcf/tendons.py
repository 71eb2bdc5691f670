"""Tendons of a compiled model in MJCF: springs between two points, and cables that actuators pull."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.names import PartNames
from coupler.io.mjcf.tree import Off, pose
from coupler.io.taken_names import TakenNames
from coupler.model import Around, Cable, RobotBuilder
from coupler.model.wording import counted

# MuJoCo's types of what a tendon runs over
_WRAP_PULLEY, _WRAP_SITE, _WRAP_SPHERE, _WRAP_CYLINDER = 2, 3, 4, 5


def cable_of(model: Compiled, names: PartNames, tendon: int) -> Cable | None:
    """A tendon over sites, pulleys and shapes as a cable; None for others, such as one that runs through a shape."""
    path = slice(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
    points, shares, divisor, broken = list[Any](), list[float](), 1.0, True
    for kind, number, figure in zip(model.wrap_type[path], model.wrap_objid[path], model.wrap_prm[path], strict=True):
        if kind == _WRAP_PULLEY:
            divisor, broken = float(figure), True  # behind a pulley, a new branch begins
        elif kind == _WRAP_SITE:
            shares += [0.0 if broken else 1.0 / divisor] if points else []
            points.append((names.bodies[model.site_bodyid[number]], model.site_pos[number]))
            broken = False
        elif kind in (_WRAP_SPHERE, _WRAP_CYLINDER):
            around = _around(model, names, int(number), round(float(figure)), cylinder=kind == _WRAP_CYLINDER)
            if around is None:
                return None
            points.append(around)
        else:
            return None
    return Cable(points, shares) if any(shares) else None


def _around(model: Compiled, names: PartNames, geom: int, side_site: int, *, cylinder: bool) -> Around | None:
    """The shape that a tendon runs around; None if it runs through it, or if its side is on another body."""
    at, side = pose(model.geom_pos[geom], model.geom_quat[geom]), None
    if side_site >= 0:
        side = model.site_pos[side_site]
        across = (at.E @ (side - at.r))[: 2 if cylinder else 3]
        if model.site_bodyid[side_site] != model.geom_bodyid[geom] or np.linalg.norm(across) < model.geom_size[geom, 0]:
            return None
    axis = at.E[2] if cylinder else None
    return Around(names.bodies[model.geom_bodyid[geom]], float(model.geom_size[geom, 0]), at.r, axis, side)


def add_tendons(
    model: Compiled, files: Files, names: PartNames, builder: RobotBuilder, off: Off, sums: frozenset[int]
) -> list[str]:
    """Adds the tendons that are springs between two points; returns a description of those that are left out.

    Tendons in `sums` are sums of joint positions that an equality keeps, or that an actuator pulls; they are left out
    silently unless they pull by themselves.
    """
    names_given, other, partly = [model.names["tendon"][i] for i in range(model.ntendon)], 0, 0
    taken = TakenNames(names_given)
    for i, name in enumerate(names_given):
        path = slice(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i])
        sites = model.wrap_objid[path]
        stiffness = 0.0 if off("SPRING") else float(model.tendon_stiffness[i])
        damping = 0.0 if off("DAMPER") else float(model.tendon_damping[i])
        shortest, longest = model.tendon_lengthspring[i]
        nonlinear = [model.tendon_stiffnesspoly[i], model.tendon_dampingpoly[i], model.tendon_springyield[i]]
        straight = len(sites) == 2 and (model.wrap_type[path] == _WRAP_SITE).all()
        other_effects = model.tendon_limited[i] or model.tendon_frictionloss[i] or model.tendon_armature[i]
        if i in sums and not (stiffness or damping or other_effects):
            continue
        if (
            not straight
            or not (stiffness or damping)
            or (stiffness and shortest != longest)
            or any(map(np.any, nonlinear))
        ):
            other += 1
            continue
        partly += bool(other_effects)
        first, second = (names.bodies[model.site_bodyid[site]] for site in sites)
        if first == second:
            builder.warn(f"tendon {name or i + 1!r} is left out: both ends are on {first!r}")
            continue
        ends, free = model.site_pos[sites], float(shortest) if stiffness else 0.0
        with files.where("spatial", name).blamed():
            name = name or taken.numbered(f"tendon_{i + 1}")
            builder.spring(name, first, second, *ends, stiffness=stiffness, free_length=free, damping=damping)
    left_out = [f"{counted(other, 'tendon')} other than a spring between two sites"] if other else []
    return left_out + ([f"limit, friction or armature of {counted(partly, 'such spring')}"] if partly else [])
