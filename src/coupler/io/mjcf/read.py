"""Reading MJCF.

MuJoCo itself reads and compiles the file, with its defaults, includes, `fromto`, inertia from shapes and so on. The
robot is built from the numbers of the compiled model. Equalities are exact here, where MuJoCo enforces them softly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.io.mjcf.actuators import add_actuators
from coupler.io.mjcf.compilation import Compiled, compile_model
from coupler.io.mjcf.contacts import add_pairs, contact_points
from coupler.io.mjcf.equalities import Equalities
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.names import PartNames
from coupler.io.mjcf.shapes import add_shapes
from coupler.io.mjcf.tendons import add_tendons
from coupler.io.mjcf.transmissions import driven_tendons
from coupler.io.mjcf.tree import BALL, FREE, Off, Tree, add_keyframes, at_joints
from coupler.io.reading import Options
from coupler.io.xml import Element
from coupler.model import RobotBuilder
from coupler.model.wording import clipped, counted, some


def read_mjcf(root: Element, options: Options) -> tuple[RobotBuilder, list[str]]:
    """The robot that a file describes, ready to be built, and a list of what coupler does not model.

    Args:
        root: the root element of the main file.
        options: how to read it. Files outside the main file's folder are refused, unless they are in a folder that
            `packages` names.

    Raises:
        ModelError: for a file that cannot be read; it names file, line and element.
    """
    files = Files(root, options.packages)
    model = compile_model(files)
    off, left_out = _switched_off(model), list(model.left_out)
    gravity = model.gravity * (not off("GRAVITY")) if options.gravity is None else options.gravity
    builder = RobotBuilder(root.get("model") or root.file.stem, gravity)
    for text in model.warnings:
        builder.warn(f"MuJoCo warns: {text}")
    if model.sensors:
        builder.remark(f"{counted(model.sensors, 'sensor')} left out; sites are kept as frames")
    names = PartNames(model)
    equalities = Equalities(model, files, names, off("EQUALITY"), options.floating)
    tree = Tree(model, files, names, builder, equalities.locked, equalities.hung, off)
    tree.add(options.floating, contact_points(root))
    equalities.add(builder)
    left_out += equalities.left_out
    shapes, lost = add_shapes(model, files, names, builder, not off("CONTACT"))
    left_out += lost
    if not off("CONTACT"):
        left_out += add_pairs(model, names, shapes, builder)
    left_out += add_tendons(model, files, names, builder, off, equalities.summed | driven_tendons(model, names))
    left_out += add_actuators(model, files, tree, builder)
    add_keyframes(model, tree, builder)
    left_out += _forces(model) + _contacts(model, off)
    if len(names.renamed) == 1:
        ((what, name),) = names.renamed.items()
        builder.warn(f"{what} is renamed {name!r}, since the name is taken")
    elif names.renamed:
        changes = some([f"{clipped(what, quote=False)} to {clipped(name)}" for what, name in names.renamed.items()])
        builder.warn(f"{len(names.renamed)} parts are renamed, since their names are taken: {changes}")
    return builder, left_out


def _switched_off(model: Compiled) -> Off:
    """Whether a part of MuJoCo's model is switched off by a flag."""
    constraints = {"EQUALITY", "LIMIT", "FRICTIONLOSS", "CONTACT"} if "CONSTRAINT" in model.disabled else set[str]()
    return (model.disabled | constraints).__contains__


def _counts(*findings: tuple[Any, str, str]) -> list[str]:
    """Counts the non-zero entries of arrays, each with a phrase for one of them and for several."""
    counts = [(int(np.count_nonzero(entries)), one, many) for entries, one, many in findings]
    return [counted(count, one, many) for count, one, many in counts if count]


def _forces(model: Compiled) -> list[str]:
    """Descriptions of forces on bodies in MuJoCo that are not modelled here."""
    free, ball = model.jnt_type == FREE, model.jnt_type == BALL
    of_free = free[model.dof_jntid]
    figures = model.dof_armature * of_free, model.dof_frictionloss * of_free
    asymmetric = model.jnt_actfrclimited * (model.jnt_actfrcrange.sum(axis=1) != 0.0)
    direct = at_joints(model)
    simple = direct & ~np.isin(model.actuator_trnid[:, 0], np.flatnonzero(free | ball))
    motors = (model.actuator_armature != 0.0) | (model.actuator_damping != 0.0)
    return ["the fluid around the bodies"] * model.fluid + _counts(
        (ball & (model.jnt_limited != 0), "limit of a ball joint", "limits of ball joints"),
        (free & (model.jnt_stiffness != 0.0), "stiffness of a free joint", "stiffnesses of free joints"),
        (
            _joints(model, *figures),
            "armature or friction of a free joint",
            "armatures or frictions of free joints",
        ),
        (_rows(model.jnt_stiffnesspoly), "stiffness that is not constant", "stiffnesses that are not constant"),
        (_joints(model, model.dof_dampingpoly), "damping that is not constant", "dampings that are not constant"),
        (model.jnt_springyield, "springyield of a joint", "springyields of joints"),
        (asymmetric, "actfrcrange that is not symmetric", "actfrcranges that are not symmetric"),
        (motors & ~simple, "armature or damping of an actuator", "armatures or dampings of actuators"),
        (_rows(model.actuator_dampingpoly), "damping of an actuator, not constant", "dampings of actuators"),
        (model.tendon_actfrclimited, "actuatorfrcrange of a tendon", "actuatorfrcranges of tendons"),
        (model.body_gravcomp, "gravcomp of a body", "gravcomps of bodies"),
        (model.body_mocapid >= 0, "mocap body, which stands still", "mocap bodies, which stand still"),
        (np.ones(model.nflex), "flex", "flexes"),
        (np.ones(model.nplugin), "plugin", "plugins"),
    )


def _joints(model: Compiled, *of_dofs: np.ndarray) -> np.ndarray:
    """The joints that have a non-zero entry for one of their freedoms, counted from 1."""
    return np.unique(model.dof_jntid[np.any([_rows(values) for values in of_dofs], axis=0)]) + 1


def _rows(values: np.ndarray) -> np.ndarray:
    """Whether each row has a non-zero entry."""
    return np.any(values, axis=tuple(range(1, values.ndim)))


def _contacts(model: Compiled, off: Off) -> list[str]:
    """Descriptions of settings for contacts and limits in MuJoCo that are not modelled here."""
    touches = (model.geom_contype | model.geom_conaffinity) != 0
    margins = np.concatenate([model.geom_margin * touches, model.pair_margin]) * (not off("CONTACT"))
    limits = model.jnt_margin * (model.jnt_limited != 0) * (not off("LIMIT"))
    texts = ["contacts between the bodies of a joint, which the file switches on"] * off("FILTERPARENT")
    texts += ["the contact override of <option>"] * model.overrides
    return texts + _counts(
        (
            margins,
            "margin of a geom or pair, which MuJoCo keeps apart",
            "margins of geoms or pairs, which MuJoCo keeps apart",
        ),
        (limits, "margin of a joint limit", "margins of joint limits"),
        (_rows(model.geom_adhesion), "adhesion of a geom", "adhesions of geoms"),
        (_rows(model.pair_adhesion), "adhesion of a contact pair", "adhesions of contact pairs"),
        (_rows(model.geom_surfacevel), "surfacevel of a geom", "surfacevels of geoms"),
    )
