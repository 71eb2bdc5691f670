"""Bodies, joints and frames of a compiled model in MJCF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.io.bodies import add_body
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.words import NO_LIMIT
from coupler.io.urdf.places import NOISE
from coupler.model import (
    Continuous,
    Fixed,
    Free,
    Joint,
    Prismatic,
    Revolute,
    RobotBuilder,
    Spherical,
)
from coupler.model.tree import GROUND
from coupler.model.words import counted, listed
from coupler.rotation import about_axis, matrix_from_quaternion
from coupler.spatial import Transform

__all__ = ["BALL", "EQUALITIES", "FREE", "Names", "Off", "Parts", "at_joints", "fresh", "gears", "pose"]

Off = Callable[[str], bool]  # whether a part of the model is switched off

FREE, BALL, SLIDE = range(3)  # MuJoCo's types of joints; the other is a hinge
EQUALITIES = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance")


def pose(pos: Any, quat: Any) -> Transform:
    """The transform to a frame that is given by its origin and quaternion, with zeros and ones as they are meant."""
    R = matrix_from_quaternion(np.array(quat))
    R = np.where(np.abs(np.abs(R) - 1.0) < NOISE, np.sign(R), _clean(R))
    return Transform(R.T, _clean(np.array(pos)))


def _clean(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < NOISE, 0.0, values)


def fresh(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken; from now on it is."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


def at_joints(model: Any) -> np.ndarray:
    """Which actuators drive a joint directly."""
    kind, second = model.actuator_trntype, model.actuator_trnid[:, 1]
    return (kind <= 1) | ((kind == 6) & (second < 0))  # in the frame of the child or the parent, or a ball as a whole


def gears(model: Any) -> np.ndarray:
    """Six numbers for each actuator: an actuator of several outputs has a row for each there, all alike."""
    return model.actuator_gear[model.actuator_outadr]


class Names:
    """Names of a model's bodies, joints and sites: the file's own wherever they are free.

    Attributes:
        bodies, joints, sites, equalities: by their numbers; body 0 is the ground.
        places, bonds: what is taken, of names of bodies and frames, and of joints and loops.
        renamed: what has another name than in the file.
    """

    def __init__(self, model: Any) -> None:
        self.places, self.bonds, self.renamed = {GROUND}, set[str](), dict[str, str]()
        bodies = [model.body(i).name for i in range(1, model.nbody)]
        sites = [model.site(i).name for i in range(model.nsite)]
        joints = [model.jnt(i).name for i in range(model.njnt)]
        equalities = [model.equality(i).name for i in range(model.neq)]
        bodies, sites = self._kept("body", bodies, self.places), self._kept("site", sites, self.places)
        joints, equalities = self._kept("joint", joints, self.bonds), self._kept("equality", equalities, self.bonds)
        # All of the file's come before any of ours.
        self.bodies = [GROUND, *(n or fresh(f"body_{i}", self.places) for i, n in enumerate(bodies, 1))]
        on = [self.bodies[i] if i else "world" for i in model.site_bodyid]
        self.sites = [n or fresh(f"{on[i]}_site", self.places) for i, n in enumerate(sites)]
        on = [self.bodies[i] for i in model.jnt_bodyid]
        self.joints = [n or fresh(f"{on[i]}_joint", self.bonds) for i, n in enumerate(joints)]
        kinds = [EQUALITIES[kind].replace("joint", "coupling") for kind in model.eq_type]
        counts = [kinds[: i + 1].count(kind) for i, kind in enumerate(kinds)]
        self.equalities = [n or fresh(f"{kinds[i]}_{counts[i]}", self.bonds) for i, n in enumerate(equalities)]

    def _kept(self, what: str, names: list[str], taken: set[str]) -> list[str]:
        """Names of the file; one that is taken gets an ending."""
        kept = []
        for name in names:
            own = fresh(f"{name}_{what}", taken) if name in taken else name
            if own != name:
                self.renamed[f"{what} {name!r}"] = own
            kept.append(own)
            taken.update({own} - {""})
        return kept


@dataclass(eq=False)
class Parts:
    """What describes the tree of a model to a builder.

    Attributes:
        model: MuJoCo's.
        files: where it comes from.
        names: of its parts.
        builder: what is told of it.
        locked: positions of joints that equalities hold.
        hung: for joints that a weld makes fixed the body that carries theirs, and where it is on the two.
        off: what the model's flags switch off.
    """

    model: Any
    files: Files
    names: Names
    builder: RobotBuilder
    locked: Mapping[int, float]
    hung: Mapping[int, tuple[str, Transform, Transform]]
    off: Off

    def add(self, floating: bool) -> None:
        """Tells the builder all of it."""
        self._actuators()
        self._bodies()
        if floating:
            self._check_floating()
        for i in range(1, self.model.nbody):
            with self.files.where("body", self.model.body(i).name).blamed():
                self._carry(i, floating)
        self._frames()

    # Bodies

    def _bodies(self) -> None:
        model, ideal = self.model, list[str]()
        for i in range(1, model.nbody):
            X = pose(model.body_ipos[i], model.body_iquat[i])
            inertia = X.E.T * model.body_inertia[i] @ X.E
            inertia = np.where(np.abs(inertia) < NOISE * np.abs(inertia).max(), 0.0, (inertia + inertia.T) / 2)
            numbers = float(model.body_mass[i]), X.r, inertia
            with self.files.where("body", model.body(i).name).blamed():
                ideal += [] if add_body(self.builder, self.names.bodies[i], *numbers) else [self.names.bodies[i]]
        if ideal:
            self.builder.warn(f"{counted(len(ideal), 'inertia')} that no real body has: {listed(ideal)}")

    # Joints

    def _actuators(self) -> None:
        """Which joints are driven, and what inertia and damping motors add to them: gear² times their own."""
        model = self.model
        direct, ratio = np.flatnonzero(at_joints(model)), gears(model)[:, 0]
        self._driven = set(model.actuator_trnid[direct, 0].tolist())
        self._armature, self._damping = model.dof_armature.copy(), model.dof_damping.copy()
        for i in direct:
            joint, gear = int(model.actuator_trnid[i, 0]), float(ratio[i])
            if model.jnt_type[joint] >= SLIDE:
                self._armature[model.jnt_dofadr[joint]] += gear**2 * model.actuator_armature[i]
                self._damping[model.jnt_dofadr[joint]] += gear**2 * model.actuator_damping[i]

    def _check_floating(self) -> None:
        model, names = self.model, self.names
        roots = [i for i in range(1, model.nbody) if model.body_parentid[i] == 0]
        if len(roots) != 1:
            raise self.files.root.error(
                f"floating=True asks for one root body, and it has {listed(names.bodies[i] for i in roots)}: hang the "
                "others on one of them, or give the one that floats a <freejoint/>"
            )
        first = model.body_jntadr[roots[0]]
        if first >= 0 and model.jnt_type[first] != FREE:
            raise self.files.where("body", model.body(roots[0]).name).error(
                f"floating=True asks for a root body without joints, and {names.bodies[roots[0]]!r} has "
                f"{names.joints[first]!r}"
            )

    def _carry(self, i: int, floating: bool) -> None:
        """Hangs a body on its parent, by all its joints in a row."""
        model, names, b = self.model, self.names, self.builder
        parent, body = names.bodies[model.body_parentid[i]], names.bodies[i]
        at, own = pose(model.body_pos[i], model.body_quat[i]), range(model.body_jntnum[i])
        if not own and floating and parent == GROUND:
            start = np.concatenate([model.body_pos[i], model.body_quat[i]])
            b.joint(fresh("floating_base", names.bonds), Free(), parent, body, start=start)
        elif not own:
            b.joint(fresh(f"{body}_weld", names.bonds), Fixed(), parent, body, at)
        for count in own:
            j = model.body_jntadr[i] + count
            name = names.joints[j]
            child = body if count == own[-1] else fresh(f"{name}_carrier", names.places)
            if child != body:
                b.body(child)
            if j in self.hung:
                parent, at, meets = self.hung[j]
                b.joint(name, Fixed(), parent, body, at, meets=meets)
            else:
                self._joint(j, name, parent, child, at)
            parent, at = child, Transform.identity()

    def _joint(self, j: int, name: str, parent: str, child: str, at: Transform) -> None:
        """A joint between a body's frame before and after it moves."""
        model, kind = self.model, self._kind(j)
        point, axis, adr = _clean(model.jnt_pos[j]), _clean(model.jnt_axis[j]), model.jnt_qposadr[j]
        start = model.qpos0[adr : adr + kind.nq]
        if model.jnt_type[j] == FREE:  # its position is that in the world, whatever the body's place in the file
            at, point = Transform.identity(), np.zeros(3)
        elif model.jnt_type[j] == SLIDE:
            at, point = Transform.translation(-axis * start[0]) @ at, np.zeros(3)
        else:
            back = about_axis(axis, -start[0]).T if model.jnt_type[j] != BALL and start[0] else np.eye(3)
            at = Transform(back, point) @ at
        meets = point if point.any() else None
        if j in self.locked:
            at = kind.transform(np.array([self.locked[j]])) @ at
            self.builder.joint(name, Fixed(), parent, child, at, meets=meets)
        else:
            self.builder.joint(name, kind, parent, child, at, meets=meets, start=start, actuated=j in self._driven)

    def _kind(self, j: int) -> Joint:
        model = self.model
        kind, dof, adr = int(model.jnt_type[j]), model.jnt_dofadr[j], model.jnt_qposadr[j]
        given: dict[str, Any] = {"damping": 0.0 if self.off("DAMPER") else self._damping[dof]}
        if kind == FREE:  # springs, friction and armatures go by the world's axes there and by the body's here
            return Free(**given)
        stiffness = 0.0 if self.off("SPRING") else float(model.jnt_stiffness[j])
        given |= {"stiffness": stiffness, "armature": self._armature[dof]}
        given |= {"friction": 0.0 if self.off("FRICTIONLOSS") else model.dof_frictionloss[dof]}
        if kind == BALL:
            return Spherical(rest=model.qpos_spring[adr : adr + 4] if stiffness else None, **given)
        given |= {"axis": _clean(model.jnt_axis[j]), "rest": model.qpos_spring[adr] if stiffness else None}
        if model.jnt_actfrclimited[j]:
            given |= {"effort_limit": np.abs(model.jnt_actfrcrange[j]).max()}
        limited = model.jnt_limited[j] and not self.off("LIMIT")
        bounds = np.where(np.abs(model.jnt_range[j]) < NO_LIMIT, model.jnt_range[j], (-np.inf, np.inf))
        limits = dict(zip(("lower", "upper"), bounds, strict=True)) if limited else {}
        if kind == SLIDE:
            return Prismatic(**limits, **given)
        return Revolute(**limits, **given) if limits else Continuous(**given)

    # Frames

    def _frames(self) -> None:
        model, names, ground = self.model, self.names, ""
        for i, name in enumerate(names.sites):
            body = names.bodies[model.site_bodyid[i]]
            if body == GROUND:
                if not ground:  # frames are on bodies
                    ground = fresh("world", names.places)
                    self.builder.body(ground)
                    self.builder.joint(fresh(f"{ground}_weld", names.bonds), Fixed(), GROUND, ground)
                body = ground
            self.builder.frame(name, body, pose(model.site_pos[i], model.site_quat[i]))
