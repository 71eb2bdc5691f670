"""Bodies, joints, frames and keyframes of a compiled model in MJCF."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.io.limits import KEYFRAMES
from coupler.io.mjcf.attributes import NO_LIMIT
from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.names import PartNames
from coupler.io.reading import add_body
from coupler.io.taken_names import TakenNames
from coupler.io.urdf.origins import NOISE
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
from coupler.model.wording import counted, listed
from coupler.rotation import about_axis, matrix_from_quaternion
from coupler.spatial import Transform

Off = Callable[[str], bool]  # whether a part of the model is switched off

FREE, BALL, SLIDE = range(3)  # MuJoCo's types of joints; the other is a hinge


def pose(pos: Any, quat: Any) -> Transform:
    """The transform to a frame with this origin and quaternion; entries within rounding of 0 and ±1 are made exact."""
    R = matrix_from_quaternion(np.array(quat))
    R = np.where(np.abs(np.abs(R) - 1.0) < NOISE, np.sign(R), _clean(R))
    return Transform(R.T, _clean(np.array(pos)))


def _clean(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < NOISE, 0.0, values)


def at_joints(model: Compiled) -> np.ndarray:
    """For each actuator, whether it drives a joint directly."""
    kind, second = model.actuator_trntype, model.actuator_trnid[:, 1]
    return (kind <= 1) | ((kind == 6) & (second < 0))  # along axes of the child or the parent, or all of a ball joint


def along_carriers(model: Compiled) -> np.ndarray:
    """For each actuator, whether it drives a free or ball joint along axes of what carries the joint's body.

    Forces on free joints are along these axes, and moments are if the file says so. Both at once may be along different
    axes, and do not count.
    """
    kind, gear = model.actuator_trntype, gears_of(model)
    types = np.where(at_joints(model), model.jnt_type[np.clip(model.actuator_trnid[:, 0], 0, model.njnt - 1)], SLIDE)
    pushes = (types == FREE) & gear[:, :3].any(axis=1) & ~gear[:, 3:].any(axis=1)
    return pushes | ((kind == 1) & np.isin(types, (FREE, BALL)))


def works(model: Compiled, off: Off) -> np.ndarray:
    """For each actuator, whether it is on: the file may switch off groups of actuators, or all."""
    return ((model.groups_off >> model.actuator_group) & 1 == 0) & (not off("ACTUATION"))


def gears_of(model: Compiled) -> np.ndarray:
    """The gear of each actuator, 6 numbers; an actuator with several outputs has the same for each."""
    return model.actuator_gear[model.actuator_outadr]


@dataclass(eq=False)
class Tree:
    """The kinematic tree of a model.

    Attributes:
        model: the compiled model of MuJoCo.
        files: the files that describe it.
        names: names of its parts.
        builder: the builder of the robot.
        locked: positions of the joints that equalities hold fixed, by joint number.
        hung: for each free joint of a body that is welded to another: the other body, and the weld's frame on both.
        off: tells which parts of the model its flags switch off.
    """

    model: Compiled
    files: Files
    names: PartNames
    builder: RobotBuilder
    locked: Mapping[int, float]
    hung: Mapping[int, tuple[str, Transform, Transform]]
    off: Off

    def add(self, floating: bool, contact_points: Collection[str]) -> None:
        """Adds bodies, joints and frames to the builder."""
        self._actuators()
        self._bodies()
        if floating:
            self._check_floating()
        for i in range(1, self.model.nbody):
            with self.files.where("body", self.model.names["body"][i]).blamed():
                self._carry(i, floating)
        self._frames(contact_points)

    # Bodies

    def _bodies(self) -> None:
        model, ideal = self.model, list[str]()
        for i in range(1, model.nbody):
            if not np.isfinite([model.body_mass[i], *model.body_inertia[i]]).all():
                raise self.files.where("body", model.names["body"][i]).error("its mass or inertia is too large")
            X = pose(model.body_ipos[i], model.body_iquat[i])
            inertia = X.E.T * model.body_inertia[i] @ X.E
            inertia = np.where(np.abs(inertia) < NOISE * np.abs(inertia).max(), 0.0, (inertia + inertia.T) / 2)
            numbers = float(model.body_mass[i]), X.r, inertia
            with self.files.where("body", model.names["body"][i]).blamed():
                ideal += [] if add_body(self.builder, self.names.bodies[i], *numbers) else [self.names.bodies[i]]
        if ideal:
            self.builder.warn(f"{counted(len(ideal), 'inertia')} that no real body has: {listed(ideal)}")

    # Joints

    def _actuators(self) -> None:
        """Finds driven joints, and the inertia and damping that their motors add: gear² times the motor's own."""
        model = self.model
        with np.errstate(over="ignore"):
            direct, squared = np.flatnonzero(at_joints(model)), np.square(gears_of(model)[:, 0])
        if not np.isfinite(squared).all():
            raise self.files.root.error(f"the gear of an actuator is too large: {np.abs(gears_of(model)).max():g}")
        drives = at_joints(model) & works(model, self.off) & ~along_carriers(model)
        self._driven = set(model.actuator_trnid[drives, 0].tolist())
        self._armature, self._damping = model.dof_armature.copy(), model.dof_damping.copy()
        for i in direct:
            joint = int(model.actuator_trnid[i, 0])
            if model.jnt_type[joint] >= SLIDE:
                self._armature[model.jnt_dofadr[joint]] += squared[i] * model.actuator_armature[i]
                self._damping[model.jnt_dofadr[joint]] += squared[i] * model.actuator_damping[i]

    def _check_floating(self) -> None:
        model, names = self.model, self.names
        roots = [i for i in range(1, model.nbody) if model.body_parentid[i] == 0]
        if len(roots) != 1:
            raise self.files.root.error(
                f"floating=True needs one root body, but there are {listed(names.bodies[i] for i in roots)}: hang the "
                "others on one of them, or give the one that floats a <freejoint/>"
            )
        first = model.body_jntadr[roots[0]]
        if first >= 0 and model.jnt_type[first] != FREE:
            raise self.files.where("body", model.names["body"][roots[0]]).error(
                f"floating=True needs a root body without joints, but {names.bodies[roots[0]]!r} has "
                f"{names.joints[first]!r}"
            )

    def _carry(self, i: int, floating: bool) -> None:
        """Connects a body to its parent by a chain of all its joints."""
        model, names, b = self.model, self.names, self.builder
        parent, body = names.bodies[model.body_parentid[i]], names.bodies[i]
        at, joints = pose(model.body_pos[i], model.body_quat[i]), model.joints_of(i)
        if not joints and floating and parent == GROUND:
            start = np.concatenate([model.body_pos[i], model.body_quat[i]])
            b.joint(names.taken_joints.numbered("floating_base"), Free(), parent, body, start=start)
        elif not joints:
            b.joint(names.taken_joints.numbered(f"{body}_weld"), Fixed(), parent, body, at)
        for j in joints:
            name = names.joints[j]
            child = body if j == joints[-1] else names.taken_frames.numbered(f"{name}_carrier")
            if child != body:
                b.body(child)
            if j in self.hung:
                parent, at, meets = self.hung[j]
                b.joint(name, Fixed(), parent, body, at, meets=meets)
            else:
                self._joint(j, name, parent, child, at)
            parent, at = child, Transform.identity()

    def _joint(self, j: int, name: str, parent: str, child: str, at: Transform) -> None:
        """Adds a joint between two frames: of a body before and after the joint moves."""
        model, kind = self.model, self._kind(j)
        point, axis, adr = _clean(model.jnt_pos[j]), _clean(model.jnt_axis[j]), model.jnt_qposadr[j]
        start = model.qpos0[adr : adr + kind.nq]
        if model.jnt_type[j] == FREE:  # its position is absolute, wherever the file places the body
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
        if kind == FREE:  # MuJoCo has its springs, friction and armature along axes of the world
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

    def _frames(self, contact_points: Collection[str]) -> None:
        model, names, ground = self.model, self.names, ""
        for i, name in enumerate(names.sites):
            body = names.bodies[model.site_bodyid[i]]
            if body == GROUND:
                if not ground:  # frames need a body
                    ground = names.taken_frames.numbered("world")
                    self.builder.body(ground)
                    self.builder.joint(names.taken_joints.numbered(f"{ground}_weld"), Fixed(), GROUND, ground)
                body = ground
            if model.names["site"][i] in contact_points:
                self.builder.contact(name, body, model.site_pos[i])
            else:
                self.builder.frame(name, body, pose(model.site_pos[i], model.site_quat[i]))


def add_keyframes(model: Compiled, tree: Tree, builder: RobotBuilder) -> None:
    """Adds the file's keyframes as named states; their controls are not read."""
    names = model.names["key"]
    if len(names) > KEYFRAMES:
        raise tree.files.root.error(f"it has {len(names)} keyframes; a file may have {KEYFRAMES}")
    taken, fixed = TakenNames(names), {*tree.locked, *tree.hung}
    for i, name in enumerate(names):
        positions, velocities = dict[str, Any](), dict[str, Any]()
        for j in (j for j in range(model.njnt) if j not in fixed):
            nq, nv = ((7, 6), (4, 3), (1, 1), (1, 1))[model.jnt_type[j]]
            adr, dof = model.jnt_qposadr[j], model.jnt_dofadr[j]
            p, w = model.key_qpos[i, adr : adr + nq].copy(), model.key_qvel[i, dof : dof + nv].copy()
            if nv == 6:  # MuJoCo's is linear first, along the world's axes; ours angular first, along the body's
                w = np.concatenate([w[3:], matrix_from_quaternion(p[3:]).T @ w[:3]])
            positions[tree.names.joints[j]] = p if nq > 1 else p[0]
            velocities[tree.names.joints[j]] = w if nv > 1 else w[0]
        moving = any(np.any(w) for w in velocities.values())
        builder.keyframe(name or taken.numbered(f"key_{i + 1}"), positions, velocities if moving else None)
    controlled = int(sum(bool(model.key_ctrl[i].any() or model.key_act[i].any()) for i in range(model.nkey)))
    if controlled:
        builder.remark(f"ctrl and act of {counted(controlled, 'keyframe')} left out: a keyframe is a state")
