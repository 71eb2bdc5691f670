"""What actuators of a compiled model in MJCF move: joints, with gears, or transmissions whose gear depends on the pose.

Tendons over sites are cables. A site pushes its body with a wrench along axes of its own. If a single joint lies
between the body and the ground, as with a drone and its propellers, that is the same force on the joint in every pose,
and a gear. A wrench relative to another site acts on both bodies, and is in balance; MuJoCo's lacks the moment of its
force about that site. An adhesion acts on all contacts of a body.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.names import PartNames
from coupler.io.mjcf.tendons import cable_of
from coupler.io.mjcf.tree import BALL, FREE, SLIDE, Tree, along_carriers, gears_of, pose, works
from coupler.model import Adhesion, Cable, SliderCrank, Transmission, Wrench
from coupler.model.transmissions import End
from coupler.spatial import Transform

_JOINT, _IN_PARENT, _CRANK, _TENDON, _SITE, _BODY = range(6)  # MuJoCo's transmissions
_LEFT_OUT = {  # those that are not modelled, for one and for several
    _TENDON: ("actuator at a tendon that runs through a shape", "actuators at tendons that run through shapes"),
}


Known = Adhesion | Cable | SliderCrank | Wrench


class LeftOut(Exception):
    """An actuator that is not modelled, with phrases for one such actuator and for several."""


def driven_tendons(model: Compiled, names: PartNames) -> set[int]:
    """The tendons that actuators pull and that are sums of joints or cables."""
    tendons = model.actuator_trnid[model.actuator_trntype == _TENDON, 0].tolist()
    return {tendon for tendon in tendons if model.joint_sum(tendon) is not None or cable_of(model, names, tendon)}


def way_of(model: Compiled, tree: Tree, i: int) -> dict[str, Any] | Known:
    """What an actuator moves: joints, each with a gear, or a transmission.

    Raises:
        LeftOut: for actuators that are switched off or can move nothing, and for transmissions that are not modelled.
    """
    if not works(model, tree.off)[i]:
        raise LeftOut("actuator that is switched off", "actuators that are switched off")
    if model.actuator_ctrlnum[i] != 1:
        raise LeftOut("actuator with several controls", "actuators with several controls")
    way = _transmission(model, tree, i)
    if way is None:
        way = _gears(model, tree, i)
    elif not (way.by_contact or _moves(model, tree, way)):
        raise LeftOut("actuator of fixed joints", "actuators of fixed joints")
    return way


def _transmission(model: Compiled, tree: Tree, i: int) -> Known | None:
    """The transmission of an actuator whose gear depends on the pose; None for gears of joints.

    Raises:
        LeftOut: for tendons that run through shapes.
    """
    kind, (target, second), gear = int(model.actuator_trntype[i]), model.actuator_trnid[i], gears_of(model)[i]
    of_sites = kind in (_SITE, _CRANK)
    sites = {site: _end(model, tree, int(site)) for site in (target, second) if of_sites and site >= 0}
    if kind == _SITE and second < 0 and _only_joint(model, tree, target) is None:
        _check_gear(gear)
        return Wrench(sites[target].body, gear[:3], gear[3:], sites[target].at)
    if kind == _SITE and second >= 0:
        _check_gear(gear)
        body, at = sites[target]
        return Wrench(body, gear[:3], gear[3:], at, against=sites[second].body, origin=sites[second].at)
    if kind == _BODY:
        return Adhesion(tree.names.bodies[target])
    if kind == _CRANK:
        _check_gear(gear[:1])
        (crank, meets), (slider, at), rod = sites[target], sites[second], float(model.actuator_cranklength[i])
        return SliderCrank(slider, crank, rod, at.r, meets.r, at.E.T @ (0.0, 0.0, 1.0), float(gear[0]))
    if kind == _TENDON and model.joint_sum(target) is None:
        cable = cable_of(model, tree.names, target)
        if cable is None:
            raise LeftOut(*_LEFT_OUT[_TENDON])
        _check_gear(gear[:1])
        return cable.scaled(float(gear[0]))
    return _along_carrier(model, tree, int(target), gear) if along_carriers(model)[i] else None


def _along_carrier(model: Compiled, tree: Tree, joint: int, gear: np.ndarray) -> Wrench:
    """The wrench for an actuator of a ball or free joint along the axes of what carries it."""
    body = int(model.jnt_bodyid[joint])
    carrier = tree.names.bodies[model.body_parentid[body]]
    if model.jnt_type[joint] == FREE:
        _check_gear(gear)
        return Wrench(tree.names.bodies[body], gear[:3], gear[3:], against=carrier)
    _check_gear(gear[:3])
    # The joint turns from the pose in which the file shows the body.
    at, turned = Transform.translation(model.jnt_pos[joint]), pose((0, 0, 0), model.body_quat[body])
    return Wrench(tree.names.bodies[body], (0, 0, 0), gear[:3], at, against=carrier, origin=turned)


def _end(model: Compiled, tree: Tree, site: int) -> End:
    """A site, as an end of a transmission."""
    return End(tree.names.bodies[model.site_bodyid[site]], pose(model.site_pos[site], model.site_quat[site]))


def _check_gear(gear: np.ndarray) -> None:
    if not gear.any():
        raise LeftOut("actuator whose gear is zero", "actuators whose gears are zero")


def _moves(model: Compiled, tree: Tree, along: Transmission) -> bool:
    """Whether some joint moves a transmission."""
    number = {name: i for i, name in enumerate(tree.names.bodies)}
    above = [{*_joints_above(model, tree, number[end.body])} for end in along.ends]
    return bool(set.union(*above) - (set.intersection(*above) if along.is_balanced else set()))


def _gears(model: Compiled, tree: Tree, i: int) -> dict[str, Any]:
    """For each joint, how far the actuator moves per unit of the joint's position.

    Raises:
        LeftOut: for actuators of fixed joints, and for other transmissions.
    """
    kind, target, gear = int(model.actuator_trntype[i]), int(model.actuator_trnid[i, 0]), gears_of(model)[i]
    fixed = {*tree.locked, *tree.hung}
    if kind == _TENDON:
        ratios: dict[str, Any] = {}
        for joint, factor in model.joint_sum(target) or ():
            if joint not in fixed:
                name = tree.names.joints[joint]
                ratios[name] = ratios.get(name, 0.0) + float(gear[0] * factor)
        ratios = {name: ratio for name, ratio in ratios.items() if ratio}
        if not ratios:
            raise LeftOut("actuator of fixed joints", "actuators of fixed joints")
        return ratios
    if kind == _SITE and (joint := _only_joint(model, tree, target)) is not None:
        return _nonzero({tree.names.joints[joint]: _site_gear(model, joint, target, gear)})
    if kind not in (_JOINT, _IN_PARENT):
        raise LeftOut(*_LEFT_OUT.get(kind, ("actuator of an unknown kind", "actuators of unknown kinds")))
    if target in fixed:
        raise LeftOut("actuator of fixed joints", "actuators of fixed joints")
    name, type_ = tree.names.joints[target], int(model.jnt_type[target])
    if type_ == FREE and gear[:3].any():
        raise LeftOut(
            "actuator of a free joint with a force along the world's axes and a moment along its own",
            "actuators of free joints with forces along the world's axes and moments along their own",
        )
    if type_ == FREE:
        return _nonzero({name: np.concatenate([gear[3:], np.zeros(3)])})
    return _nonzero({name: gear[:3] if type_ == BALL else float(gear[0])})


def _nonzero(gears: dict[str, Any]) -> dict[str, Any]:
    if not np.any(next(iter(gears.values()))):
        raise LeftOut("actuator whose gear is zero", "actuators whose gears are zero")
    return gears


def _only_joint(model: Compiled, tree: Tree, site: int) -> int | None:
    """The joint between a site's body and the ground, if there is exactly one."""
    joints = _joints_above(model, tree, int(model.site_bodyid[site]))
    return joints[0] if len(joints) == 1 and joints[0] not in tree.hung else None


def _joints_above(model: Compiled, tree: Tree, body: int) -> list[int]:
    """The joints between a body and the ground that are not locked."""
    joints = list[int]()
    while body:
        joints += [j for j in model.joints_of(body) if j not in tree.locked]
        body = int(model.body_parentid[body])
    return joints


def _site_gear(model: Compiled, joint: int, site: int, gear: np.ndarray) -> Any:
    """How far a site moves along a gear (linear first, in the site's axes) per unit of a joint's velocity."""
    body, at = int(model.site_bodyid[site]), pose(model.site_pos[site], model.site_quat[site])
    while body != model.jnt_bodyid[joint]:
        at = at @ pose(model.body_pos[body], model.body_quat[body])
        body = int(model.body_parentid[body])
    push, turn = at.E.T @ gear[:3], at.E.T @ gear[3:]  # along the axes of the joint's body
    kind, axis = int(model.jnt_type[joint]), model.jnt_axis[joint]
    if kind == FREE:
        return np.concatenate([turn + np.cross(at.r, push), push])
    if kind == SLIDE:
        return float(axis @ push)
    moment = turn + np.cross(at.r - model.jnt_pos[joint], push)
    return moment if kind == BALL else float(axis @ moment)


def is_still(model: Compiled, i: int) -> bool:
    """Whether MuJoCo takes an actuator's length as zero: that of a site alone, and that of a free joint."""
    kind, (target, second) = int(model.actuator_trntype[i]), model.actuator_trnid[i]
    free = kind in (_JOINT, _IN_PARENT) and model.jnt_type[target] == FREE
    return free or (kind == _SITE and second < 0)


def is_at_ball(model: Compiled, i: int) -> bool:
    """Whether an actuator drives a ball joint along axes that turn with its body, so that it has no position."""
    return model.actuator_trntype[i] == _JOINT and model.jnt_type[model.actuator_trnid[i, 0]] == BALL
