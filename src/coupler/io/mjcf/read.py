"""Robots from MuJoCo's MJCF.

MuJoCo itself reads and compiles the file: defaults, includes, `fromto`, inertia from shapes and the rest of the format
are its business. The robot is described from the compiled model's numbers. Equalities are kept exactly, where MuJoCo
keeps them softly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.io.mjcf.compilation import compiled, imported
from coupler.io.mjcf.equalities import Bonds, add_keyframes, add_tendons
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.shapes import add_shapes
from coupler.io.mjcf.tree import BALL, FREE, Names, Off, Parts, at_joints, gears
from coupler.io.reading import Options
from coupler.io.xml import Element
from coupler.model import RobotBuilder
from coupler.model.words import counted

__all__ = ["read_mjcf"]


def read_mjcf(root: Element, options: Options) -> tuple[RobotBuilder, list[str]]:
    """The robot that a file describes, not yet built, and what the file says and coupler does not model.

    Args:
        root: of the main file.
        options: how it is to be read. Files outside of the main file's folder are refused, unless they are in a folder
            that is named in `packages`.

    Raises:
        ModelError: naming file, line and element.
    """
    files = Files(root, options.packages)
    model, spec, untold, warnings = compiled(files)
    off = _switched_off(model)
    gravity = model.opt.gravity.copy() * (not off("GRAVITY")) if options.gravity is None else options.gravity
    builder = RobotBuilder(root.get("model") or root.file.stem, gravity)
    for text in warnings:
        builder.warn(f"MuJoCo warns: {text}")
    names = Names(model)
    bonds = Bonds(model, files, names, off("EQUALITY"), options.floating)
    parts = Parts(model, files, names, builder, bonds.locked, bonds.hung, off)
    parts.add(options.floating)
    bonds.add(builder)
    untold += bonds.untold
    untold += add_shapes(model, spec, files, names, builder, not off("CONTACT"))
    untold += add_tendons(model, files, names, builder, off, bonds.summed)
    untold += add_keyframes(model, parts, builder)
    untold += _forces(model) + _contacts(model)
    for what, name in names.renamed.items():
        builder.warn(f"{what} is called {name!r} here, since the name is taken")
    return builder, untold


def _switched_off(model: Any) -> Off:
    """Whether a part of MuJoCo's model is switched off by a flag."""
    bits, flags = imported().mjtDisableBit, model.opt.disableflags
    constraints = "EQUALITY", "LIMIT", "FRICTIONLOSS", "CONTACT"

    def off(name: str) -> bool:
        own, every = (int(getattr(bits, f"mjDSBL_{bit}")) for bit in (name, "CONSTRAINT"))
        return bool(flags & own or (flags & every and name in constraints))

    return off


def _counts(*findings: tuple[Any, str, str]) -> list[str]:
    """What of a list of things there is, by the non-zero entries of an array: with one of them, and with several."""
    counts = [(int(np.count_nonzero(found)), one, many) for found, one, many in findings]
    return [counted(count, one, many) for count, one, many in counts if count]


def _forces(model: Any) -> list[str]:
    """What moves or holds bodies in MuJoCo, and not here."""
    free, ball = model.jnt_type == FREE, model.jnt_type == BALL
    own = free[model.dof_jntid]
    rigid = model.dof_armature * own, model.dof_frictionloss * own
    apart = model.jnt_actfrclimited * (model.jnt_actfrcrange.sum(axis=1) != 0.0)
    direct = at_joints(model)
    simple = direct & ~np.isin(model.actuator_trnid[:, 0], np.flatnonzero(free | ball))
    motors = (model.actuator_armature != 0.0) | (model.actuator_damping != 0.0)
    fluid = model.opt.density or model.opt.viscosity
    return ["the fluid around the bodies"] * bool(fluid) + _counts(
        (ball & (model.jnt_limited != 0), "limit of a ball joint", "limits of ball joints"),
        (free & (model.jnt_stiffness != 0.0), "stiffness of a free joint", "stiffnesses of free joints"),
        (_joints(model, *rigid), "armature or friction of a free joint", "armatures or frictions of free joints"),
        (_rows(model.jnt_stiffnesspoly), "stiffness that is not constant", "stiffnesses that are not constant"),
        (_joints(model, model.dof_dampingpoly), "damping that is not constant", "dampings that are not constant"),
        (model.jnt_springyield, "springyield of a joint", "springyields of joints"),
        (apart, "actfrcrange that is not symmetric", "actfrcranges that are not symmetric"),
        (
            direct & ~_plain(model),
            "actuator's law: its joint is marked as actuated",
            "actuators' laws: their joints are marked as actuated",
        ),
        (~direct, "actuator that drives no joint directly", "actuators that drive no joint directly"),
        (motors & ~simple, "armature or damping of an actuator", "armatures or dampings of actuators"),
        (_rows(model.actuator_dampingpoly), "damping of an actuator, not constant", "dampings of actuators"),
        (model.body_gravcomp, "gravcomp of a body", "gravcomps of bodies"),
        (model.body_mocapid >= 0, "mocap body, which stands still", "mocap bodies, which stand still"),
        (np.ones(model.nflex), "flex", "flexes"),
        (np.ones(model.nplugin), "plugin", "plugins"),
    )


def _plain(model: Any) -> np.ndarray:
    """Which actuators are a force at a joint and nothing else: no gear, no feedback, no limits."""
    types = model.actuator_dyntype, model.actuator_gaintype, model.actuator_biastype
    unit = (model.actuator_gainprm[:, 0] == 1.0) & (gears(model) == np.eye(6)[0]).all(axis=1)
    spans = zip(model.actuator_ctrladr, model.actuator_ctrlnum, strict=True)
    limited = np.array([model.actuator_ctrllimited[adr : adr + num].any() for adr, num in spans], bool)
    return unit & ~np.any(types, axis=0) & ~limited & (model.actuator_forcelimited == 0)


def _joints(model: Any, *of_dofs: np.ndarray) -> np.ndarray:
    """The joints with an entry, for numbers of their freedoms."""
    return np.unique(model.dof_jntid[np.any([_rows(values) for values in of_dofs], axis=0)]) + 1


def _rows(values: np.ndarray) -> np.ndarray:
    """Whether there is anything in each row."""
    return np.any(values, axis=tuple(range(1, values.ndim)))


def _contacts(model: Any) -> list[str]:
    """What changes contacts in MuJoCo, and not here."""
    return _counts(
        (np.ones(model.npair), "contact pair", "contact pairs"),
        (np.ones(model.nexclude), "contact exclude", "contact excludes"),
        (_rows(model.geom_adhesion), "adhesion of a geom", "adhesions of geoms"),
        (_rows(model.geom_surfacevel), "surfacevel of a geom", "surfacevels of geoms"),
    )
